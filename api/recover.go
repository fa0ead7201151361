package api

import (
	"fmt"
	"net/http"
	"runtime/debug"

	"catalogd/internal/fault"
	"catalogd/internal/telemetry"
)

// recoverPanics turns a panic into a 500 and a log line with its stack. net/http's own word for "cut the connection"
// passes through.
func recoverPanics(metrics *telemetry.Metrics, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			reason := recover()
			if reason == nil {
				return
			}
			if reason == http.ErrAbortHandler { //nolint:errorlint // the sentinel itself is what net/http looks for
				panic(reason)
			}
			metrics.Panicked()
			eventOf(r.Context()).notice = string(debug.Stack())
			fail(w, r, fault.Wrap(fault.Internal, fmt.Errorf("panic: %v", reason),
				"internal error; the server's log has the cause under this request's id"))
		}()
		next.ServeHTTP(w, r)
	})
}
