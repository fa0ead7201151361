package api

import (
	"net/http"
	"strings"
	"testing"

	"catalogd/catalog"
)

func TestIdempotencyKey(t *testing.T) {
	done := 0
	handler := func(w http.ResponseWriter, _ *http.Request) error {
		done++
		return NoContent(w)
	}
	ts := newTestServer(t, Endpoint{Method: "POST", Pattern: "/x", Operation: "write", Handler: handler},
		Endpoint{Method: "GET", Pattern: "/x", Operation: "read", Handler: handler}, publicRow("POST", "/public", handler))
	const key = "0198e7a0-0000-7000-8000-00000000000a"
	for _, c := range []struct {
		method, target string
		keys           []string
		status         int
	}{
		{"POST", "/x", nil, 204},
		{"POST", "/x", []string{key}, 204},
		{"POST", "/x", []string{strings.ToUpper(key)}, 204},
		{"POST", "/x", []string{""}, 400},
		{"POST", "/x", []string{"nonsense"}, 400},
		{"POST", "/x", []string{key[:35]}, 400},
		{"POST", "/x", []string{"00000000-0000-0000-0000-000000000000"}, 400}, // what a client without randomness sends
		{"POST", "/x", []string{"{" + key + "}"}, 400},
		{"POST", "/x", []string{"urn:uuid:" + key}, 400},
		{"POST", "/x", []string{strings.ReplaceAll(key, "-", "")}, 400},
		{"POST", "/x", []string{key, key}, 400},
		{"GET", "/x", []string{"nonsense"}, 204},
		{"POST", "/public", []string{"nonsense"}, 204},
	} {
		before := done
		headers := []string{"Authorization", "Bearer good"}
		for _, k := range c.keys {
			headers = append(headers, "Idempotency-Key", k)
		}
		w := ts.send(t, c.method, c.target, "", headers...)
		if w.Code != c.status || (done > before) != (c.status == 204) {
			t.Errorf("%s %s with %q: %d, done %d times", c.method, c.target, c.keys, w.Code, done-before)
		}
		if e := w.Body.String(); c.status == 400 && !strings.Contains(e, "Idempotency-Key") {
			t.Errorf("%q: refused with %s", c.keys, e)
		}
	}
}

// Who is not signed in learns that first.
func TestIdempotencyKey_AfterTheToken(t *testing.T) {
	ts := newTestServer(t, Endpoint{Method: "POST", Pattern: "/x", Operation: "write", Handler: func(http.ResponseWriter, *http.Request) error { return nil }})
	if w := ts.send(t, "POST", "/x", "", "Idempotency-Key", "nonsense"); w.Code != 401 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// What makes a request this one is in the key's hash: method, path, query and body, however the body arrives.
func TestIdempotencyKey_HashOfTheRequest(t *testing.T) {
	var seen catalog.RequestKey
	handler := func(w http.ResponseWriter, r *http.Request) error {
		if r.ContentLength != 0 {
			if _, err := ReadBody(r); err != nil {
				return err
			}
		}
		seen = CallerOf(r).Key
		return NoContent(w)
	}
	ts := newTestServer(t, Endpoint{Method: "POST", Pattern: "/x/{name}", Operation: "write", Handler: handler},
		Endpoint{Method: "DELETE", Pattern: "/x/{name}", Operation: "drop", Handler: handler})
	const key = "0198e7a0-0000-7000-8000-00000000000a"
	hashOf := func(method, target, body string) [32]byte {
		seen = catalog.RequestKey{}
		if w := ts.send(t, method, target, body, "Authorization", "Bearer good", "Idempotency-Key", key); w.Code != 204 {
			t.Fatalf("%s %s: %d %s", method, target, w.Code, w.Body)
		}
		if seen.ID.String() != key || seen.Operation == "" {
			t.Errorf("%s %s: %+v", method, target, seen)
		}
		return seen.Hash
	}
	first := hashOf("POST", "/x/a", `{"k":1}`)
	if again := hashOf("POST", "/x/a", `{"k":1}`); again != first {
		t.Error("the same request has two hashes")
	}
	hashes := map[[32]byte]string{first: "first"}
	for _, other := range [][3]string{
		{"POST", "/x/a", `{"k":2}`}, {"POST", "/x/a", `{"k":1} `}, {"POST", "/x/b", `{"k":1}`}, {"POST", "/x/a%2Fb", `{"k":1}`},
		{"POST", "/x/a?k=1", `{"k":1}`}, {"DELETE", "/x/a", ""}, {"DELETE", "/x/a?purgeRequested=true", ""},
	} {
		h := hashOf(other[0], other[1], other[2])
		if twin, taken := hashes[h]; taken {
			t.Errorf("%v has the hash of %s", other, twin)
		}
		hashes[h] = other[0] + " " + other[1]
	}
}
