package rest

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"catalogd/api"
)

// FuzzBodies: whatever the body of a mutation is, the answer is a sound one and what is there stays whole.
func FuzzBodies(f *testing.F) {
	var routes []api.Endpoint
	for _, e := range Endpoints(Config{}) {
		if body, wanted := denyBodies[e.Operation]; wanted && strings.HasPrefix(e.Pattern, catalogV1) {
			routes = append(routes, e)
			f.Add(len(routes)-1, body)
		}
	}
	for i, e := range routes {
		for _, body := range []string{"", "null", "[]", "{}", `{"name":1}`, `{"updates":[{"action":"remove-snapshot-ref"}]}`, `{"requirements":[{"type":"assert-create"}],"updates":[]}`} {
			f.Add(i, body)
		}
		if e.Operation == "commit-table" {
			for _, u := range []string{
				`{"action":"add-snapshot","snapshot":{"snapshot-id":1,"timestamp-ms":1,"manifest-list":"x"}}`, `{"action":"set-location","location":"file:///x"}`,
				`{"action":"upgrade-format-version","format-version":3}`, `{"action":"add-schema","schema":{"type":"struct","fields":[{"id":1,"name":"a","type":{"type":"list"}}]}}`,
			} {
				f.Add(i, `{"requirements":[],"updates":[`+u+`]}`)
			}
		}
	}
	f.Fuzz(func(t *testing.T, route int, body string) {
		if route < 0 || route >= len(routes) {
			return
		}
		l := newLake(t)
		l.furnish(t, "a")
		e := routes[route]
		target, _ := requestOf(e, "a")
		got := l.as("ann").send(t, e.Method, target, body)
		if got.status >= http.StatusInternalServerError && got.errorType() != "CommitStateUnknownException" {
			t.Errorf("%s %s: %d %s", e.Operation, body, got.status, got.body)
		}
		if got.status != http.StatusNoContent && got.json() == nil {
			t.Errorf("%s %s: %d with a body that is not JSON: %s", e.Operation, body, got.status, got.body)
		}
		if slices.Contains([]string{"rename-table", "rename-view", "register-table", "register-view"}, e.Operation) {
			return // the names may hold something else now
		}
		for _, path := range []string{"/namespaces/a/tables/t", "/namespaces/a/views/v"} {
			if loaded := l.as("ann").send(t, http.MethodGet, catalogV1+"/lake"+path, ""); loaded.status != http.StatusOK || loaded.json() == nil {
				t.Errorf("after %s %s, %s answers %d %s", e.Operation, body, path, loaded.status, loaded.body)
			}
		}
	})
}
