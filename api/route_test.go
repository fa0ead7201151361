package api

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// echoServer answers the decoded names of the path, joined by "|".
func echoServer(t *testing.T) *testServer {
	return newTestServer(t, publicRow("GET", "/v1/{prefix}/namespaces/{namespace}/tables/{table}",
		func(w http.ResponseWriter, r *http.Request) error {
			var names []string
			for _, param := range []string{"prefix", "namespace", "table"} {
				name, err := Param(r, param)
				if err != nil {
					return err
				}
				names = append(names, name)
			}
			w.Header().Set("Content-Type", "text/plain")
			_, err := w.Write([]byte(strings.Join(names, "|")))
			return err
		}))
}

func TestParam_DecodesOnceFromTheEscapedPath(t *testing.T) {
	ts := echoServer(t)
	for path, want := range map[string]string{
		"/v1/p/namespaces/a%1Fb/tables/t":      "p|a\x1fb|t",
		"/v1/p/namespaces/a%1fb/tables/t":      "p|a\x1fb|t",
		"/v1/p/namespaces/a/tables/foo%2Fbar":  "p|a|foo/bar",
		"/v1/p/namespaces/a/tables/foo%2fbar":  "p|a|foo/bar",
		"/v1/p/namespaces/a/tables/x+y":        "p|a|x y",
		"/v1/p/namespaces/a/tables/x%20y":      "p|a|x y",
		"/v1/p/namespaces/a/tables/x%2By":      "p|a|x+y",
		"/v1/p/namespaces/a/tables/%2525":      "p|a|%25",
		"/v1/p/namespaces/a/tables/a%251Fb":    "p|a|a%1Fb",
		"/v1/p/namespaces/a/tables/50%25":      "p|a|50%",
		"/v1/p/namespaces/a/tables/t/":         "p|a|t",
		"/v1/p/namespaces/%2E%2E/tables/..":    "p|..|..",
		"/v1/p/namespaces/a/tables/%41":        "p|a|A",
		"/v1/p/namespaces/a/tables/t%3Fx%23y":  "p|a|t?x#y",
		"/v1/Z%C3%BCrich/namespaces/a/tables/": "",
	} {
		w := ts.send(t, "GET", path, "")
		if want == "" {
			if w.Code != 404 {
				t.Errorf("%s: %d, want 404", path, w.Code)
			}
			continue
		}
		if w.Code != 200 || w.Body.String() != want {
			t.Errorf("%s: %d %q, want %q", path, w.Code, w.Body, want)
		}
	}
}

func TestParam_RefusesWhatNoNameCanHold(t *testing.T) {
	ts := echoServer(t)
	for _, path := range []string{
		"/v1/p/namespaces/a/tables/%FF", "/v1/p/namespaces/%C3/tables/t", "/v1/p/namespaces/a/tables/a%00b",
	} {
		w := ts.send(t, "GET", path, "")
		if e := wireErrorOf(t, w); w.Code != 400 || e.Type != "BadRequestException" {
			t.Errorf("%s: %d %+v", path, w.Code, e)
		}
	}
}

func TestRoute_AnEmptyNameIsNotTheNameBehindIt(t *testing.T) {
	ts := echoServer(t)
	for _, path := range []string{"/v1/p/namespaces//tables/t", "/v1//namespaces/a/tables/t", "/v1/p/namespaces/a/tables//"} {
		if w := ts.send(t, "GET", path, ""); w.Code != 404 {
			t.Errorf("%s: %d %q, want 404", path, w.Code, w.Body)
		}
	}
}

// Any name, escaped by any of the clients' ways, comes back as it was.
func TestParam_EveryClientsEscapingComesBack(t *testing.T) {
	ts := echoServer(t)
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.StringOfN(rapid.RuneFrom([]rune("aB1 +/%.~-_?#&=;:'\"\\$,()äß日\U0001F600\x1f")), 1, 12, -1).Draw(rt, "name")
		for client, escaped := range map[string]string{
			"java":   url.QueryEscape(name),
			"python": strings.ReplaceAll(url.QueryEscape(name), "+", "%20"),
			"lower":  lowerEscapes(url.QueryEscape(name)),
		} {
			r := httptest.NewRequest("GET", "/v1/p/namespaces/"+escaped+"/tables/t", nil)
			w := httptest.NewRecorder()
			ts.ServeHTTP(w, r)
			if want := "p|" + name + "|t"; w.Code != 200 || w.Body.String() != want {
				rt.Fatalf("%s sent %q: %d %q, want %q", client, escaped, w.Code, w.Body, want)
			}
		}
	})
}

// lowerEscapes writes the hex digits of percent escapes in lower case, as some proxies do.
func lowerEscapes(s string) string {
	out := []byte(s)
	for i := 0; i+2 < len(out); i++ {
		if out[i] == '%' {
			copy(out[i+1:i+3], strings.ToLower(string(out[i+1:i+3])))
		}
	}
	return string(out)
}

func TestQuery_BadOnesAreRefused(t *testing.T) {
	for raw, ok := range map[string]bool{
		"": true, "a=b": true, "a=%C3%BC": true, "a=x+y%2B": true, "a=%zz": false, "a=b;c=d": false, "a=%FF": false, "a=%00": false,
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.URL.RawQuery = raw
		if _, err := Query(r); (err == nil) != ok {
			t.Errorf("%q: %v", raw, err)
		}
	}
}
