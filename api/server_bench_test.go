package api

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"catalogd/auth"
	"catalogd/internal/telemetry"
)

type anybody struct{}

func (anybody) Authenticate(context.Context, string) (auth.Principal, error) {
	return auth.Principal{Name: "ann"}, nil
}

// BenchmarkServer is what a request costs before and after its handler: routing, limits, log line, metrics.
func BenchmarkServer(b *testing.B) {
	server, err := NewServer(ServerConfig{
		Endpoints: []Endpoint{{
			Method: "GET", Pattern: CatalogBase + "/v1/{prefix}/namespaces/{namespace}/tables/{table}", Operation: "load-table",
			Handler: func(w http.ResponseWriter, r *http.Request) error {
				if _, err := Param(r, "table"); err != nil {
					return err
				}
				return NoContent(w)
			},
		}},
		Authenticator: anybody{}, Metrics: telemetry.NewMetrics(prometheus.NewRegistry()),
		Log: telemetry.NewLogger(io.Discard, slog.LevelInfo, "json"),
	})
	if err != nil {
		b.Fatal(err)
	}
	r := httptest.NewRequest("GET", "/api/catalog/v1/lake/namespaces/a%1Fb/tables/t", nil)
	r.Header.Set("Authorization", "Bearer x")
	b.ReportAllocs()
	for b.Loop() {
		server.ServeHTTP(httptest.NewRecorder(), r)
	}
}
