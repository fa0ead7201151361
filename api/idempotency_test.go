package api

import (
	"net/http"
	"strings"
	"testing"
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
