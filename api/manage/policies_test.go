package manage_test

import (
	"strings"
	"testing"
)

// Lists of what this server has none of are empty for who sees where they would be; everything else is refused and says why.
func TestPolicies_ListsAreEmptyAndTheRestIsRefused(t *testing.T) {
	o := newOffice(t)
	o.open("lake")
	root := o.admin()
	o.furnish(root, "lake", "a")
	const base = "/api/catalog/polaris/v1/lake"
	send := func(p *person, method, path, body string) reply {
		r := o.send(method, base+path, p.token, "application/json", body)
		if err := document().CheckAnswer(method, strings.Split(base+path, "?")[0], r.status, []byte(r.body)); err != nil {
			t.Errorf("openapi/management.yaml: %v: %s", err, r.body)
		}
		return r
	}
	nobody := o.login(o.hire("nobody"), "")
	for path, field := range map[string]string{
		"/namespaces/a/policies": "identifiers", "/namespaces/a/generic-tables": "identifiers", "/applicable-policies": "applicable-policies",
		"/applicable-policies?namespace=a": "applicable-policies", "/applicable-policies?namespace=a&target-name=t": "applicable-policies",
	} {
		if r := send(root, get, path, ""); r.status != 200 || !strings.Contains(r.body, `"`+field+`":[]`) {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
		if r := send(nobody, get, path, ""); r.status != 403 {
			t.Errorf("%s without rights: %d %s", path, r.status, r.body)
		}
	}
	for path, status := range map[string]int{
		"/namespaces/none/policies": 404, "/applicable-policies?namespace=a&target-name=none": 404, "/namespaces/none/generic-tables": 404,
		"/namespaces/a/policies/p": 404, "/namespaces/a/generic-tables/g": 404,
	} {
		if r := send(root, get, path, ""); r.status != status {
			t.Errorf("%s: %d %s, want %d", path, r.status, r.body, status)
		}
	}
	for _, c := range []struct {
		method, path string
		status       int
		text         string
	}{
		{post, "/namespaces/a/policies", 406, "maintenance set"}, {put, "/namespaces/a/policies/p", 404, "no policies"},
		{del, "/namespaces/a/policies/p", 404, "no policies"}, {put, "/namespaces/a/policies/p/mappings", 404, "no policies"},
		{post, "/namespaces/a/policies/p/mappings", 404, "no policies"}, {post, "/namespaces/a/generic-tables", 406, "not served"},
		{del, "/namespaces/a/generic-tables/g", 404, "not served"},
	} {
		if r := send(root, c.method, c.path, `{}`); r.status != c.status || !strings.Contains(r.body, c.text) {
			t.Errorf("%s %s: %d %s, want %d", c.method, c.path, r.status, r.body, c.status)
		}
	}
}
