package manage_test

import "testing"

// A grant on a namespace is one on the tables that come to be in it later, on every server; with the grant that ends, at the next request.
func TestGrants_OnANamespaceReachLaterTables(t *testing.T) {
	o := newOffice(t)
	root := o.furnished()
	branch := o.branch()
	ann := o.login(o.hire("ann", "analysts"), "")
	root.want(201, post, "/catalogs/lake/catalog-roles", `{"catalogRole":{"name":"readers"}}`)
	root.want(201, put, "/principal-roles/analysts/catalog-roles/lake", `{"catalogRole":{"name":"readers"}}`)
	const grant = `{"grant":{"type":"namespace","namespace":["a"],"privilege":"TABLE_READ_DATA"}}`
	root.want(201, put, "/catalogs/lake/catalog-roles/readers/grants", grant)

	const later = `{"name":"later","schema":{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":false,"type":"long"}]}}`
	if r := root.catalogCall(post, "/lake/namespaces", `{"namespace":["b"]}`); r.status != 200 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	for _, namespace := range []string{"a", "b"} {
		if r := root.catalogCall(post, "/lake/namespaces/"+namespace+"/tables", later); r.status != 200 {
			t.Fatalf("%s: %d %s", namespace, r.status, r.body)
		}
	}
	everywhere := func(path string, status int) {
		t.Helper()
		for name, at := range map[string]*office{"this server": o, "another": branch} {
			if r := (&person{at, ann.token}).catalogCall(get, path, ""); r.status != status {
				t.Errorf("%s at %s: %d %s, want %d", path, name, r.status, r.body, status)
			}
		}
	}
	everywhere("/lake/namespaces/a/tables/later", 200)
	everywhere("/lake/namespaces/b/tables/later", 403)
	root.want(201, post, "/catalogs/lake/catalog-roles/readers/grants", grant) // Polaris' way to take one back
	everywhere("/lake/namespaces/a/tables/later", 403)
}
