package telemetry

import (
	"bytes"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

func TestNewLogger_MasksSecretsByName(t *testing.T) {
	for _, format := range []string{"json", "text"} {
		var out bytes.Buffer
		log := NewLogger(&out, slog.LevelInfo, format)
		log.Info("x", "Authorization", "hush1", "client_secret", "hush2", "token", "hush3", "token_id", "seen1",
			slog.Group("config", "s3.secret-access-key", "hush4", "s3.session-token", "hush5", "region", "seen2"))
		if text := out.String(); strings.Contains(text, "hush") || strings.Count(text, "seen") != 2 {
			t.Errorf("%s: %s", format, text)
		}
	}
}

func TestMetrics_LabelsAreOperationsAndClasses(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := NewMetrics(registry)
	for _, status := range []int{200, 204, 404, 500, 0, 999} {
		m.RequestBegan()
		m.RequestEnded("load-table", status, time.Millisecond)
	}
	CountDeniedLogins(registry, func() uint64 { return 7 })
	w := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	for _, line := range []string{
		`catalogd_http_requests_total{class="2xx",operation="load-table"} 2`,
		`catalogd_http_requests_total{class="4xx",operation="load-table"} 1`,
		`catalogd_http_requests_total{class="5xx",operation="load-table"} 1`,
		`catalogd_http_requests_total{class="other",operation="load-table"} 2`,
		`catalogd_http_requests_in_flight 0`,
		`catalogd_logins_denied_total 7`,
		`catalogd_http_request_seconds_count{operation="load-table"} 6`,
	} {
		if !strings.Contains(w.Body.String(), line+"\n") {
			t.Errorf("%s is not in\n%s", line, w.Body)
		}
	}
}

func TestPlainNames_SoundLikeNoSecret(t *testing.T) {
	for name := range plainNames {
		for _, word := range append([]string{"token"}, secretWords...) {
			if strings.Contains(name, word) {
				t.Errorf("%s holds %s", name, word)
			}
		}
	}
}
