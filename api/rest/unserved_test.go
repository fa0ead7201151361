package rest

import (
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"catalogd/api"
)

// A route that is not announced still answers in the right shape.
func TestUnserved_AnswersAreTyped(t *testing.T) {
	ts := newDoor(t, Config{})
	for _, c := range []struct {
		method, path string
		status       int
		kind         string
	}{
		{"POST", "/v1/lake/namespaces/a/tables/t/plan", 406, "UnsupportedOperationException"},
		{"GET", "/v1/lake/namespaces/a/tables/t/plan/x", 406, "UnsupportedOperationException"},
		{"POST", "/v1/lake/namespaces/a/tables/t/sign", 406, "UnsupportedOperationException"},
		{"POST", "/v1/aws/s3/sign", 406, "UnsupportedOperationException"},
		{"PUT", "/v1/lake/namespaces/a/tables/t", 405, "UnsupportedOperationException"},
	} {
		a := ts.send(t, c.method, c.path, "{}")
		if a.status != c.status || a.errorType() != c.kind || a.errorCode() != c.status {
			t.Errorf("%s %s: %d %s, want %d %s", c.method, c.path, a.status, a.body, c.status, c.kind)
		}
	}
}

// Only what is served is announced, spelled as in the OpenAPI document.
func TestField_C008_EndpointsListIsWhatIsServed(t *testing.T) {
	h := &handlers{}
	announced := templatesOf(h.served())
	for _, want := range []string{
		"GET /v1/{prefix}/namespaces", "HEAD /v1/{prefix}/namespaces/{namespace}",
		"POST /v1/{prefix}/namespaces/{namespace}/properties", "HEAD /v1/{prefix}/namespaces/{namespace}/tables/{table}",
		"GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials",
		"POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics",
		"POST /v1/{prefix}/namespaces/{namespace}/register", "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/unregister",
		"POST /v1/{prefix}/tables/rename", "POST /v1/{prefix}/transactions/commit",
		"GET /v1/{prefix}/namespaces/{namespace}/views", "POST /v1/{prefix}/namespaces/{namespace}/views",
		"GET /v1/{prefix}/namespaces/{namespace}/views/{view}", "POST /v1/{prefix}/namespaces/{namespace}/views/{view}",
		"HEAD /v1/{prefix}/namespaces/{namespace}/views/{view}", "DELETE /v1/{prefix}/namespaces/{namespace}/views/{view}",
		"POST /v1/{prefix}/views/rename",
	} {
		if !slices.Contains(announced, want) {
			t.Errorf("%s is not announced", want)
		}
	}
	for _, e := range h.unserved() {
		if template := e.Method + " " + strings.TrimPrefix(e.Pattern, api.CatalogBase); slices.Contains(announced, template) {
			t.Errorf("%s is announced and refused", template)
		}
	}
	if slices.ContainsFunc(announced, func(s string) bool { return strings.Count(s, " ") != 1 }) {
		t.Errorf("entries are METHOD, one space, template: %q", announced)
	}
}

func TestDelegated(t *testing.T) {
	for value, want := range map[string]bool{
		"vended-credentials": true, "vended-credentials,remote-signing": true, "remote-signing, vended-credentials": true,
		"VENDED-CREDENTIALS": true, "remote-signing": false, "foo": false, "": false, ",": false, "vended-credentials-x": false,
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("x-iceberg-access-delegation", value)
		if got := delegated(r); got != want {
			t.Errorf("%q: %v", value, got)
		}
	}
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Add(delegationHeader, "remote-signing")
	r.Header.Add(delegationHeader, "vended-credentials")
	if !delegated(r) {
		t.Error("two header lines are one list")
	}
}
