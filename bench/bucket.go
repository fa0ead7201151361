package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
)

// bucket is an object store in memory that counts its calls. It checks no signature.
type bucket struct {
	*httptest.Server
	calls   atomic.Int64
	mu      sync.Mutex
	objects map[string][]byte
}

func newBucket() *bucket {
	b := &bucket{objects: map[string][]byte{}}
	b.Server = httptest.NewServer(b)
	return b
}

func (b *bucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.calls.Add(1)
	b.mu.Lock()
	defer b.mu.Unlock()
	object, there := b.objects[r.URL.Path]
	switch r.Method {
	case http.MethodPut:
		body, err := io.ReadAll(r.Body)
		if err != nil || strings.HasPrefix(r.Header.Get("X-Amz-Content-Sha256"), "STREAMING") {
			http.Error(w, "this body is not understood", http.StatusBadRequest)
			return
		}
		if there && r.Header.Get("If-None-Match") == "*" {
			w.WriteHeader(http.StatusPreconditionFailed)
			return
		}
		b.objects[r.URL.Path] = body
		w.Header().Set("ETag", `"x"`)
	case http.MethodGet, http.MethodHead:
		if !there {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = w.Write(object)
	case http.MethodDelete:
		delete(b.objects, r.URL.Path)
		w.WriteHeader(http.StatusNoContent)
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}
