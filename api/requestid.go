package api

import (
	"net/http"

	"github.com/google/uuid"
)

// requestIDHeader carries the id both ways.
const requestIDHeader = "X-Request-Id"

// requestIDBytesMax bounds ids that clients choose.
const requestIDBytesMax = 64

// identify gives the request an id: the client's own when it is sane, so that one id runs through a chain of
// services, else a fresh one. The answer repeats it.
func identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get(requestIDHeader)
		if !saneRequestID(id) {
			id = uuid.Must(uuid.NewV7()).String()
		}
		eventOf(r.Context()).requestID = id
		w.Header().Set(requestIDHeader, id)
		next.ServeHTTP(w, r)
	})
}

// saneRequestID: letters, digits and "._-" only, because ids end up in logs and audit rows.
func saneRequestID(id string) bool {
	if id == "" || len(id) > requestIDBytesMax {
		return false
	}
	for _, c := range []byte(id) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}
