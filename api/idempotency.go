package api

import (
	"net/http"

	"github.com/google/uuid"

	"catalogd/internal/fault"
)

// idempotencyHeader is how a client marks a mutation that it may send again. Keys are not announced and not kept yet;
// one that the specification does not allow is refused all the same, because its sender believes to be protected.
const idempotencyHeader = "Idempotency-Key"

// idempotencyKeyBytes is the length of a UUID with its dashes, the one form of keys.
const idempotencyKeyBytes = 36

// checkIdempotencyKey refuses mutations whose key is no UUID.
func checkIdempotencyKey(next HandlerFunc) HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		keys := r.Header.Values(idempotencyHeader)
		if len(keys) == 0 || !mutates(r.Method) {
			return next(w, r)
		}
		if len(keys) > 1 {
			return fault.New(fault.BadRequest, "more than one %s header", idempotencyHeader)
		}
		if _, err := uuid.Parse(keys[0]); err != nil || len(keys[0]) != idempotencyKeyBytes {
			return fault.New(fault.BadRequest, "%s must be a UUID of %d characters, not %q", idempotencyHeader, idempotencyKeyBytes, cut(keys[0]))
		}
		return next(w, r)
	}
}
