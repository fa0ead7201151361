package api

import (
	"crypto/sha256"
	"hash"
	"io"
	"net/http"

	"github.com/google/uuid"

	"catalogd/catalog"
	"catalogd/internal/fault"
)

// idempotencyHeader is how a client marks a mutation that it may send again. The domain answers the repeat.
const idempotencyHeader = "Idempotency-Key"

// idempotencyKeyBytes is the length of a UUID with its dashes, the one form of keys.
const idempotencyKeyBytes = 36

// requestKey is the key of a request while its handler runs.
type requestKey struct {
	id   uuid.UUID
	hash hash.Hash // of what makes the request this one; the body goes in while it is read
}

// takeIdempotencyKey notes a mutation's key and refuses one that the specification does not allow: its sender believes to
// be protected. The hash covers method, path and query as they came over the wire, and the body. The base of the path
// counts as well: who repeats a request sends it to the same address.
func takeIdempotencyKey(next HandlerFunc) HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) error {
		keys := r.Header.Values(idempotencyHeader)
		if len(keys) == 0 || !mutates(r.Method) {
			return next(w, r)
		}
		if len(keys) > 1 {
			return fault.New(fault.BadRequest, "more than one %s header", idempotencyHeader)
		}
		id, err := uuid.Parse(keys[0])
		if err != nil || len(keys[0]) != idempotencyKeyBytes || id == uuid.Nil {
			return fault.New(fault.BadRequest, "%s must be a UUID of %d characters, not %q", idempotencyHeader, idempotencyKeyBytes, cut(keys[0]))
		}
		key := &requestKey{id: id, hash: sha256.New()}
		for _, part := range []string{r.Method, routePath(r.URL), r.URL.RawQuery} {
			key.hash.Write([]byte(part))
			key.hash.Write([]byte{0})
		}
		if r.Body != nil && r.Body != http.NoBody {
			r.Body = &hashedBody{ReadCloser: r.Body, hash: key.hash}
		}
		eventOf(r.Context()).key = key
		return next(w, r)
	}
}

// keyOf gives the request's key for the domain. What has not been read of the body by now is not in its hash.
func (e *event) keyOf() catalog.RequestKey {
	if e.key == nil {
		return catalog.RequestKey{}
	}
	k := catalog.RequestKey{ID: e.key.id, Operation: e.operation}
	e.key.hash.Sum(k.Hash[:0])
	return k
}

// hashedBody hashes what is read from a body.
type hashedBody struct {
	io.ReadCloser
	hash hash.Hash
}

func (b *hashedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.hash.Write(p[:n])
	return n, err
}
