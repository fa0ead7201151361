package api

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"catalogd/internal/fault"
)

// readyTimeoutMax bounds one check of readiness: orchestrators ask every few seconds.
const readyTimeoutMax = 3 * time.Second

// OpsHandler serves the ops listener: /healthz (the process answers), /readyz (ready gives nil) and /metrics. It asks
// for no credentials; the listener is for loopback or a private network. details, which may be nil, adds to what /readyz says
// and decides nothing: what the server can do without.
func OpsHandler(ready func(ctx context.Context) error, details func() map[string]any, gatherer prometheus.Gatherer) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		writeState(w, http.StatusOK, map[string]any{"status": "ok"})
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), readyTimeoutMax)
		defer cancel()
		state := map[string]any{}
		if details != nil {
			maps.Copy(state, details())
		}
		if err := ready(ctx); err != nil {
			state["status"], state["reason"] = "not ready", fault.Message(err)
			writeState(w, http.StatusServiceUnavailable, state)
			return
		}
		state["status"] = "ready"
		writeState(w, http.StatusOK, state)
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{}))
	return mux
}

func writeState(w http.ResponseWriter, status int, state map[string]any) {
	body, err := json.Marshal(state)
	if err != nil { // texts and lists of them: cannot happen
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
