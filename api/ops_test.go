package api

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"testing"

	"catalogd/internal/fault"
	"catalogd/internal/telemetry"
)

func TestOpsHandler(t *testing.T) {
	var unready error
	registry := telemetry.NewRegistry()
	telemetry.NewMetrics(registry).RequestBegan()
	details := func() map[string]any { return map[string]any{"issuers": []string{"one is away"}} }
	handler := OpsHandler(func(context.Context) error { return unready }, details, registry)
	get := func(path string) (int, string) {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		return w.Code, w.Body.String()
	}
	if code, _ := get("/healthz"); code != 200 {
		t.Errorf("healthz: %d", code)
	}
	if code, body := get("/readyz"); code != 200 || !strings.Contains(body, "one is away") || !strings.Contains(body, `"status":"ready"`) {
		t.Errorf("readyz: %d %s", code, body)
	}
	unready = fault.Wrap(fault.Busy, errors.New("dial tcp: password=x"), "Postgres does not answer")
	code, body := get("/readyz")
	if code != 503 || !strings.Contains(body, "Postgres does not answer") || strings.Contains(body, "password") {
		t.Errorf("readyz: %d %s", code, body)
	}
	if code, _ := get("/healthz"); code != 200 {
		t.Errorf("healthz while not ready: %d", code)
	}
	code, body = get("/metrics")
	if code != 200 || !strings.Contains(body, "catalogd_http_requests_in_flight 1") || !strings.Contains(body, "go_goroutines") {
		t.Errorf("metrics: %d", code)
	}
}

func TestRootEndpoint_NamesTheBases(t *testing.T) {
	ts := newTestServer(t, RootEndpoint())
	w := ts.send(t, "GET", "/", "")
	if w.Code != 200 || !strings.Contains(w.Body.String(), CatalogBase) {
		t.Errorf("/: %d %s", w.Code, w.Body)
	}
}

// rawAnswer sends bytes and gives the answer's bytes.
func rawAnswer(t *testing.T, address, request string) string {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}
