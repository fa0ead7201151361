package manage_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"catalogd/api"
	"catalogd/api/manage"
)

// The page has every call, and needs nothing but itself.
func TestReference_HasEveryCallAndNoAssets(t *testing.T) {
	rows := manage.ReferenceEndpoints()
	get := func(i int) *httptest.ResponseRecorder {
		t.Helper()
		w := httptest.NewRecorder()
		if err := rows[i].Handler(w, httptest.NewRequest("GET", rows[i].Pattern, nil)); err != nil {
			t.Fatal(err)
		}
		return w
	}
	page := get(0)
	html := page.Body.String()
	for _, e := range manage.Endpoints(manage.Config{}) {
		if !strings.Contains(html, `id="`+e.Operation+`"`) || !strings.Contains(html, e.Pattern+"<") {
			t.Errorf("%s %s is not in the reference", e.Method, e.Pattern)
		}
	}
	for _, outside := range []string{"<script", "src=", "url(", "@import", `href="http`, "ZgotmplZ", "<link"} {
		if strings.Contains(html, outside) {
			t.Errorf("the page has %q", outside)
		}
	}
	for _, part := range strings.Split(html, `href="#`)[1:] {
		if target, _, _ := strings.Cut(part, `"`); !strings.Contains(html, `id="`+target+`"`) {
			t.Errorf("a link leads to #%s, which is nowhere", target)
		}
	}
	if policy := page.Header().Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'; style-src 'sha256-") {
		t.Errorf("policy %q", policy)
	}
	if text := get(1).Body.String(); !strings.HasPrefix(text, "openapi: 3.1") {
		t.Errorf("the description begins %.40q", text)
	}
	for _, e := range rows {
		if e.Access != api.Public {
			t.Errorf("%s wants a token: a browser has none", e.Pattern)
		}
	}
}
