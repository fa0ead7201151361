package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"catalogd/auth"
	"catalogd/internal/fault"
	"catalogd/internal/telemetry"
)

// oneToken lets "Bearer good" in and counts how often it was asked.
type oneToken struct{ asked int }

func (a *oneToken) Authenticate(_ context.Context, authorization string) (auth.Principal, error) {
	a.asked++
	if authorization != "Bearer good" {
		return auth.Principal{}, fault.New(fault.Unauthenticated, "the token is not valid")
	}
	return auth.Principal{Name: "ann"}, nil
}

// testServer is a Server with its log and its metrics.
type testServer struct {
	*Server
	tokens   *oneToken
	log      *bytes.Buffer
	registry *prometheus.Registry
}

func newTestServer(t *testing.T, endpoints ...Endpoint) *testServer {
	t.Helper()
	ts := &testServer{tokens: &oneToken{}, log: &bytes.Buffer{}, registry: prometheus.NewRegistry()}
	server, err := NewServer(ServerConfig{
		Endpoints: endpoints, Authenticator: ts.tokens, Metrics: telemetry.NewMetrics(ts.registry),
		Log: telemetry.NewLogger(ts.log, slog.LevelDebug, "json"),
	})
	if err != nil {
		t.Fatal(err)
	}
	ts.Server = server
	return ts
}

// send sends a request over a real connection's worth of parsing: the target is parsed as net/http does.
func (ts *testServer) send(t *testing.T, method, target, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	ts.ServeHTTP(w, r)
	return w
}

// lastLine gives the last log line.
func (ts *testServer) lastLine(t *testing.T) map[string]any {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(ts.log.String()), "\n")
	var line map[string]any
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &line); err != nil {
		t.Fatalf("log line %q: %v", lines[len(lines)-1], err)
	}
	return line
}

func wireErrorOf(t *testing.T, w *httptest.ResponseRecorder) ErrorModel {
	t.Helper()
	var body ErrorBody
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
		t.Fatalf("answer %d %q is not an error body: %v", w.Code, w.Body, err)
	}
	if body.Error.Code != w.Code {
		t.Errorf("body's code %d is not the status %d", body.Error.Code, w.Code)
	}
	if ct := w.Header().Get("Content-Type"); ct != "application/json" {
		t.Errorf("Content-Type is %q", ct)
	}
	return body.Error
}

// An open server takes who shows nothing for its principal, and asks everybody else as ever.
func TestServer_OpenToWhoShowsNothing(t *testing.T) {
	var came auth.Principal
	row := Endpoint{Method: "GET", Pattern: "/a", Operation: "test", Handler: func(w http.ResponseWriter, r *http.Request) error {
		came = CallerOf(r).Principal
		return nil
	}}
	ts := newTestServer(t, row)
	if w := ts.send(t, "GET", "/a", ""); w.Code != http.StatusUnauthorized {
		t.Errorf("a closed server answers %d", w.Code)
	}
	open, err := NewServer(ServerConfig{
		Endpoints: []Endpoint{row}, Authenticator: ts.tokens, Metrics: telemetry.NewMetrics(prometheus.NewRegistry()),
		Log:       telemetry.NewLogger(ts.log, slog.LevelDebug, "json"),
		Anonymous: func(context.Context) (auth.Principal, error) { return auth.Principal{Name: "trial"}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	ts.Server = open
	for _, c := range []struct {
		headers []string
		status  int
		name    string
	}{
		{nil, 200, "trial"},
		{[]string{"Authorization", ""}, 200, "trial"},
		{[]string{"Authorization", "Bearer None"}, 200, "trial"},
		{[]string{"Authorization", "Bearer"}, 200, "trial"},
		{[]string{"Authorization", "Bearer wrong"}, 401, ""},
		{[]string{"Authorization", "", "Authorization", ""}, 401, ""},
		{[]string{"Authorization", "Basic YTpi"}, 401, ""},
	} {
		came = auth.Principal{}
		if w := ts.send(t, "GET", "/a", "", c.headers...); w.Code != c.status || came.Name != c.name {
			t.Errorf("%q: %d as %q, want %d as %q", c.headers, w.Code, came.Name, c.status, c.name)
		}
	}
}

// A page in somebody's browser reaches what is open on his machine, and is kept out, also from what is public: the token route.
func TestServer_OpenOnThisMachineIsNotOpenToPages(t *testing.T) {
	ts := newTestServer(t, publicRow("POST", "/a", func(http.ResponseWriter, *http.Request) error { return nil }))
	open, err := NewServer(ServerConfig{
		Endpoints:     []Endpoint{publicRow("POST", "/a", func(http.ResponseWriter, *http.Request) error { return nil })},
		Authenticator: ts.tokens, Metrics: telemetry.NewMetrics(prometheus.NewRegistry()),
		Log: telemetry.NewLogger(ts.log, slog.LevelDebug, "json"), KeepPagesOut: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		host, header, value string
		status              int
	}{
		{"127.0.0.1:8181", "", "", 200},
		{"[::1]:8181", "", "", 200},
		{"[::1]", "", "", 200},
		{"localhost", "", "", 200},
		{"LocalHost:8181", "", "", 200},
		{"rebound.example.com:8181", "", "", 403},
		{"rebound.example.com", "", "", 403},
		{"localhost.example.com", "", "", 403},
		{"localhost:8181", "Origin", "http://localhost:8181", 200},
		{"localhost:8181", "Origin", "https://example.com", 403},
		{"localhost:8181", "Origin", "null", 403},
		{"localhost:8181", "Sec-Fetch-Site", "cross-site", 403},
	} {
		r := httptest.NewRequest("POST", "/a", nil)
		r.Host = c.host
		if c.header != "" {
			r.Header.Set(c.header, c.value)
		}
		w := httptest.NewRecorder()
		if open.ServeHTTP(w, r); w.Code != c.status {
			t.Errorf("%s %s %s: %d %s, want %d", c.host, c.header, c.value, w.Code, w.Body, c.status)
		}
		w = httptest.NewRecorder()
		if ts.Server.ServeHTTP(w, r); w.Code != 200 {
			t.Errorf("%s %s %s at a server that is not open: %d", c.host, c.header, c.value, w.Code)
		}
	}
}

func publicRow(method, pattern string, handler HandlerFunc) Endpoint {
	return Endpoint{Method: method, Pattern: pattern, Operation: "test", Access: Public, Handler: handler}
}

func TestServer_RefusesFaultyRows(t *testing.T) {
	ok := publicRow("GET", "/a", func(http.ResponseWriter, *http.Request) error { return nil })
	for name, change := range map[string]func(e *Endpoint){
		"no method":    func(e *Endpoint) { e.Method = "" },
		"no slash":     func(e *Endpoint) { e.Pattern = "a" },
		"no operation": func(e *Endpoint) { e.Operation = "" },
		"no handler":   func(e *Endpoint) { e.Handler = nil },
		"twice":        func(*Endpoint) {},
	} {
		t.Run(name, func(t *testing.T) {
			bad := ok
			change(&bad)
			if _, err := NewServer(ServerConfig{Endpoints: []Endpoint{ok, bad}}); err == nil {
				t.Error("accepted")
			}
		})
	}
}

func TestServer_AuthenticatesBeforeTheHandler(t *testing.T) {
	called := 0
	ts := newTestServer(t, Endpoint{Method: "GET", Pattern: "/x", Operation: "see-x",
		Handler: func(w http.ResponseWriter, r *http.Request) error {
			called++
			if c := CallerOf(r); c.Principal.Name != "ann" || c.RequestID == "" || c.Client != "192.0.2.1" {
				t.Errorf("caller is %+v", c)
			}
			return NoContent(w)
		}})
	for _, c := range []struct {
		name    string
		headers []string
		asked   int
	}{
		{"missing", nil, 0},
		{"empty", []string{"Authorization", ""}, 0},
		{"PyIceberg without a credential", []string{"Authorization", "Bearer None"}, 0},
		{"bearer alone", []string{"Authorization", "Bearer "}, 0},
		{"two headers", []string{"Authorization", "Bearer good", "Authorization", "Bearer good"}, 0},
		{"unknown token", []string{"Authorization", "Bearer bad"}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			ts.tokens.asked = 0
			w := ts.send(t, "GET", "/x", "", c.headers...)
			if e := wireErrorOf(t, w); w.Code != 401 || e.Type != "NotAuthorizedException" {
				t.Errorf("answer is %d %+v", w.Code, e)
			}
			if ts.tokens.asked != c.asked {
				t.Errorf("authenticator was asked %d times, want %d", ts.tokens.asked, c.asked)
			}
			if len(w.Header()["WWW-Authenticate"]) != 1 {
				t.Errorf("WWW-Authenticate is missing: %v", w.Header())
			}
		})
	}
	if called != 0 {
		t.Errorf("handler ran %d times without a caller", called)
	}
	if w := ts.send(t, "GET", "/x", "", "Authorization", "Bearer good"); w.Code != 204 || called != 1 {
		t.Errorf("signed in: %d, handler ran %d times", w.Code, called)
	}
}

func TestServer_PanicBecomes500AndKeepsServing(t *testing.T) {
	ts := newTestServer(t,
		publicRow("GET", "/boom", func(http.ResponseWriter, *http.Request) error { panic("secret detail") }))
	w := ts.send(t, "GET", "/boom", "")
	if e := wireErrorOf(t, w); w.Code != 500 || e.Type != "InternalServerError" || strings.Contains(e.Message, "secret detail") {
		t.Errorf("answer is %d %+v", w.Code, e)
	}
	line := ts.lastLine(t)
	if !strings.Contains(line["cause"].(string), "secret detail") || !strings.Contains(line["stack"].(string), "server_test.go") {
		t.Errorf("log line has no cause or stack: %v", line)
	}
	if got := series(t, ts.registry, "catalogd_http_panics_total"); !slices.Equal(got, []string{"catalogd_http_panics_total 1"}) {
		t.Errorf("panics counted: %v", got)
	}
}

// series gives the registry's lines in Prometheus' text form that begin with the name.
func series(t *testing.T, registry *prometheus.Registry, name string) []string {
	t.Helper()
	w := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	var lines []string
	for _, line := range strings.Split(w.Body.String(), "\n") {
		if strings.HasPrefix(line, name) {
			lines = append(lines, line)
		}
	}
	return lines
}

func TestServer_ErrorAfterHalfAnAnswerCutsTheConnection(t *testing.T) {
	ts := newTestServer(t, publicRow("GET", "/half", func(w http.ResponseWriter, _ *http.Request) error {
		_, _ = w.Write([]byte(`{"a":`))
		return fault.New(fault.NoSuchTable, "gone")
	}))
	server := httptest.NewServer(ts)
	defer server.Close()
	resp, err := server.Client().Get(server.URL + "/half")
	if err == nil {
		_, err = io.ReadAll(resp.Body)
		resp.Body.Close()
	}
	if err == nil {
		t.Error("the client took half an answer for a whole one")
	}
}

func TestServer_OneLogLineARequest(t *testing.T) {
	ts := newTestServer(t, Endpoint{Method: "GET", Pattern: "/t/{name}", Operation: "load-table",
		Handler: func(w http.ResponseWriter, r *http.Request) error {
			Annotate(r, "lake", "ns.t")
			switch name, _ := Param(r, "name"); name {
			case "missing":
				return fault.New(fault.NoSuchTable, "Table does not exist")
			case "broken":
				return fault.Wrap(fault.Internal, errors.New("disk on fire"), "the table could not be read")
			}
			return NoContent(w)
		}})
	for _, c := range []struct {
		path, level, kind, cause string
		status                   float64
	}{
		{"/t/there", "INFO", "", "", 204},
		{"/t/missing", "DEBUG", "no-such-table", "", 404},
		{"/t/broken", "ERROR", "internal", "the table could not be read: disk on fire", 500},
	} {
		ts.log.Reset()
		w := ts.send(t, "GET", c.path, "", "Authorization", "Bearer good", "X-Client-Version", "1.12.0",
			"X-Request-Id", "abc-1")
		line := ts.lastLine(t)
		if n := strings.Count(ts.log.String(), "\n"); n != 1 {
			t.Errorf("%s: %d log lines", c.path, n)
		}
		want := map[string]any{"level": c.level, "status": c.status, "operation": "load-table", "principal": "ann",
			"warehouse": "lake", "subject": "ns.t", "request_id": "abc-1", "client_version": "1.12.0"}
		if c.kind != "" {
			want["kind"] = c.kind
		}
		if c.cause != "" {
			want["cause"] = c.cause
		}
		for key, value := range want {
			if line[key] != value {
				t.Errorf("%s: %s is %v, want %v", c.path, key, line[key], value)
			}
		}
		if strings.Contains(ts.log.String(), "good") {
			t.Errorf("%s: the token is in the log", c.path)
		}
		if strings.Contains(w.Body.String(), "fire") {
			t.Errorf("%s: the cause went to the client", c.path)
		}
	}
	want := []string{
		`catalogd_http_requests_total{class="2xx",operation="load-table"} 1`,
		`catalogd_http_requests_total{class="4xx",operation="load-table"} 1`,
		`catalogd_http_requests_total{class="5xx",operation="load-table"} 1`,
	}
	if got := series(t, ts.registry, "catalogd_http_requests_total"); !slices.Equal(got, want) {
		t.Errorf("series of requests: %q", got)
	}
}

func TestServer_RequestIDs(t *testing.T) {
	ts := newTestServer(t, publicRow("GET", "/x", func(w http.ResponseWriter, _ *http.Request) error { return NoContent(w) }))
	for given, kept := range map[string]bool{
		"": false, "trace-1.2_3": true, "with space": false, "line\tbreak": false, strings.Repeat("a", 65): false,
	} {
		got := ts.send(t, "GET", "/x", "", "X-Request-Id", given).Header().Get("X-Request-Id")
		if kept != (got == given) || got == "" {
			t.Errorf("id %q came back as %q", given, got)
		}
	}
}

func TestServer_MutationsOutliveTheClient(t *testing.T) {
	ctx, leave := context.WithCancel(context.Background())
	leave()
	seen := map[string]error{}
	handler := func(w http.ResponseWriter, r *http.Request) error {
		seen[r.Method] = r.Context().Err()
		if _, bounded := r.Context().Deadline(); !bounded {
			t.Errorf("%s has no deadline", r.Method)
		}
		return NoContent(w)
	}
	ts := newTestServer(t, publicRow("GET", "/x", handler), publicRow("POST", "/x", handler), publicRow("DELETE", "/x", handler))
	for _, method := range []string{"GET", "POST", "DELETE"} {
		ts.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(method, "/x", nil).WithContext(ctx))
	}
	if seen["GET"] == nil || seen["POST"] != nil || seen["DELETE"] != nil {
		t.Errorf("contexts of a client that left: %v", seen)
	}
}

func TestServer_BodyLimit(t *testing.T) {
	row := publicRow("POST", "/x", func(w http.ResponseWriter, r *http.Request) error {
		var v any
		if err := DecodeJSON(r, &v); err != nil {
			return err
		}
		return NoContent(w)
	})
	row.BodyBytesMax = 16
	ts := newTestServer(t, row)
	if w := ts.send(t, "POST", "/x", `"0123456789abcd"`); w.Code != 204 {
		t.Errorf("16 bytes: %d", w.Code)
	}
	w := ts.send(t, "POST", "/x", `"0123456789abcde"`)
	if e := wireErrorOf(t, w); w.Code != 413 || !strings.Contains(e.Message, "16 bytes") {
		t.Errorf("17 bytes: %d %+v", w.Code, e)
	}
}

func TestServer_WrongBaseNamesTheRightOne(t *testing.T) {
	ts := newTestServer(t, publicRow("GET", CatalogBase+"/v1/config", func(w http.ResponseWriter, _ *http.Request) error { return NoContent(w) }))
	for _, path := range []string{"/rest/v1/config", "/api/catalog/config", "/api/catalog/v1/v1/config", "/nessie/iceberg/v1/config"} {
		w := ts.send(t, "GET", path, "")
		if e := wireErrorOf(t, w); w.Code != 404 || !strings.Contains(e.Message, "/api/catalog ") {
			t.Errorf("%s: %d %+v", path, w.Code, e)
		}
	}
	w := ts.send(t, "PUT", "/api/catalog/v1/config", "")
	if wireErrorOf(t, w); w.Code != 405 || w.Header().Get("Allow") != "GET" {
		t.Errorf("PUT: %d, Allow %q", w.Code, w.Header().Get("Allow"))
	}
	if w := ts.send(t, "BREW", "/api/catalog/v1/config", ""); w.Code != 405 {
		t.Errorf("unknown method: %d", w.Code)
	}
	if w := ts.send(t, "HEAD", "/nowhere", ""); w.Code != 404 || w.Body.Len() != 0 {
		t.Errorf("HEAD: %d %q", w.Code, w.Body)
	}
}

func TestServer_AliasesOfTheCatalogBase(t *testing.T) {
	ts := newTestServer(t,
		publicRow("GET", CatalogBase+"/v1/config", func(w http.ResponseWriter, _ *http.Request) error { return NoContent(w) }),
		publicRow("GET", ManagementBase+"/v1/catalogs", func(w http.ResponseWriter, _ *http.Request) error { return NoContent(w) }))
	for path, status := range map[string]int{
		"/api/catalog/v1/config": 204, "/v1/config": 204, "/catalog/v1/config": 204, "/polaris/api/catalog/v1/config": 204,
		"/iceberg/v1/config": 204, "/api/catalog/v1/config/": 204, "/api/catalog//v1/config": 204, "//v1/config": 204,
		"/api/management/v1/catalogs": 204, "/v1/catalogs": 404, "/api/catalog/v2/config": 404,
	} {
		if w := ts.send(t, "GET", path, ""); w.Code != status {
			t.Errorf("%s: %d, want %d", path, w.Code, status)
		}
	}
}
