package api

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// FuzzPath: a name arrives as it was sent, whichever client escaped it, and no path whatsoever breaks the server.
func FuzzPath(f *testing.F) {
	for _, name := range []string{"t", "a/b", "a b", "a+b", "50%", "%1F", "..", "é", "日本", "a\x1fb", "?#", "\xff", "a\x00b", ""} {
		f.Add(name, "/v1/p/namespaces/"+name+"/tables/t")
	}
	for _, raw := range []string{"//v1//p/namespaces/a/tables/t//", "/v1/p/namespaces/%/tables/t", "*", "/%2e%2e/%2e", "/api/catalog/v1/p/namespaces/a%1fb/tables/%2F?x=%"} {
		f.Add("t", raw)
	}
	f.Fuzz(func(t *testing.T, name, raw string) {
		ts := echoServer(t)
		escapes := []func(string) string{url.QueryEscape, escapeAll} // Java's and the most careful
		if !strings.Contains(name, "+") {                            // a raw plus is a blank, so Go's own way of escaping is ambiguous
			escapes = append(escapes, url.PathEscape)
		}
		for _, escape := range escapes {
			target := "/v1/p/namespaces/" + escape(name) + "/tables/" + escape(name)
			w := ts.send(t, http.MethodGet, target, "")
			switch {
			case name == "":
				if w.Code != http.StatusNotFound {
					t.Errorf("%s: %d", target, w.Code)
				}
			case checkText(name) != nil:
				if w.Code != http.StatusBadRequest {
					t.Errorf("%s: %d", target, w.Code)
				}
			case w.Code != http.StatusOK || w.Body.String() != "p|"+name+"|"+name:
				t.Errorf("%s: %d %q", target, w.Code, w.Body)
			}
		}
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET " + raw + " HTTP/1.1\r\nHost: h\r\n\r\n")))
		if err != nil {
			return // net/http answers such a request itself
		}
		w := httptest.NewRecorder()
		if ts.ServeHTTP(w, r); w.Code >= http.StatusInternalServerError {
			t.Errorf("%q: %d %s", raw, w.Code, w.Body)
		}
	})
}

// escapeAll escapes every byte.
func escapeAll(s string) string {
	const digits = "0123456789abcdef"
	out := make([]byte, 0, 3*len(s))
	for i := range len(s) {
		out = append(out, '%', digits[s[i]>>4], digits[s[i]&15])
	}
	return string(out)
}
