package manage_test

import (
	"strings"
	"testing"
)

// ann may make namespaces and nothing else; what she makes is hers, with all that comes to be in it.
func TestOwners_WhoMakesItMayUseIt(t *testing.T) {
	o := newOffice(t)
	o.open("lake")
	credential := o.hire("ann", "makers")
	ann, bob := o.login(credential, ""), o.login(o.hire("bob", "makers"), "")
	o.let("makers", "lake", "NAMESPACE_CREATE")
	if r := ann.catalogCall(post, "/lake/namespaces", `{"namespace":["hers"]}`); r.status != 200 {
		t.Fatal(r.body)
	}
	const tables = "/lake/namespaces/hers/tables"
	if r := ann.catalogCall(post, tables, tableBody); r.status != 200 {
		t.Errorf("a table in it: %d %s", r.status, r.body)
	}
	for status, p := range map[int]*person{200: ann, 403: bob} {
		for _, c := range []struct{ method, path, body string }{
			{get, tables + "/t", ""}, {post, tables + "/t", operationBodies["commit-table"]},
			{post, "/lake/namespaces/hers/properties", operationBodies["update-namespace"]},
		} {
			if r := p.catalogCall(c.method, c.path, c.body); r.status != status {
				t.Errorf("%s %s: %d %s, want %d", c.method, c.path, r.status, r.body, status)
			}
		}
	}
	// A token that is narrowed to a role has what the role has.
	if r := o.login(credential, "PRINCIPAL_ROLE:makers").catalogCall(get, tables+"/t", ""); r.status != 403 {
		t.Errorf("narrowed: %d", r.status)
	}
	// Who owns may grant, and is found by every question.
	root := o.admin()
	root.want(201, post, "/catalogs/lake/catalog-roles", `{"catalogRole":{"name":"lookers"}}`)
	ann.want(201, put, "/catalogs/lake/catalog-roles/lookers/grants", `{"grant":{"type":"table","namespace":["hers"],"tableName":"t","privilege":"SELECT"}}`)
	ask := `{"questions":[{"privilege":"TABLE_WRITE_DATA","securable":{"catalog":"lake","namespace":["hers"],"table":"t"}}]}`
	if r := ann.want(200, post, "/can-i", ask); !strings.Contains(r.body, `"allowed":true`) || !strings.Contains(r.body, "it owns") {
		t.Errorf("can-i: %s", r.body)
	}
	for path, p := range map[string]*person{
		"/who-can?privilege=TABLE_DROP&catalog=lake&namespace=hers&table=t": root, "/principals/ann/reach": ann, "/principals/ann/reach?catalog=lake": root,
	} {
		if r := p.want(200, get, path, ""); !strings.Contains(r.body, "OWNERSHIP") {
			t.Errorf("%s: %s", path, r.body)
		}
	}
	if r := root.want(200, get, "/catalogs/lake/owner?namespace=hers&table=t", ""); r.at(t, "owner") != "ann" {
		t.Errorf("owner: %s", r.body)
	}
}

// What is handed on is the other's at once, and nobody's when its owner goes.
func TestOwners_AreChangedAndGo(t *testing.T) {
	o := newOffice(t)
	o.open("lake")
	root := o.admin()
	o.furnish(root, "lake", "a")
	ann, bob := o.login(o.hire("ann"), ""), o.login(o.hire("bob"), "")
	const table = `"namespace":["a"],"table":"t"`
	reads := func(p *person) int { return p.catalogCall(get, "/lake/namespaces/a/tables/t", "").status }
	if reads(ann) != 403 {
		t.Error("ann reads before it is hers")
	}
	root.want(404, put, "/catalogs/lake/owner", `{`+table+`,"owner":"none"}`)
	root.want(400, put, "/catalogs/lake/owner", `{`+table+`}`)
	root.want(404, put, "/catalogs/lake/owner", `{"namespace":["a"],"table":"none","owner":"ann"}`)
	root.want(204, put, "/catalogs/lake/owner", `{`+table+`,"owner":"ann"}`)
	if reads(ann) != 200 || reads(bob) != 403 {
		t.Error("ann does not read what is hers, or bob does")
	}
	if r := ann.catalogCall(get, "/lake/namespaces/a/tables", ""); r.status != 200 || strings.Count(r.body, `"name"`) != 1 {
		t.Errorf("ann lists %d %s", r.status, r.body)
	}
	if r := o.send(get, "/api/catalog/v1/config", ann.token, "", ""); r.status != 200 {
		t.Errorf("the only warehouse that ann sees something in: %d %s", r.status, r.body)
	}
	bob.want(403, put, "/catalogs/lake/owner", `{`+table+`,"owner":"bob"}`)
	bob.want(403, get, "/catalogs/lake/owner?namespace=a&table=t", "")
	ann.want(403, put, "/catalogs/lake/owner", `{`+table+`,"owner":"bob"}`)  // she may not learn who exists
	ann.want(403, put, "/catalogs/lake/owner", `{`+table+`,"owner":"none"}`) // and is told the same of nobody
	root.want(204, put, "/catalogs/lake/owner", `{`+table+`,"owner":"bob"}`)
	if reads(ann) != 403 || reads(bob) != 200 {
		t.Error("the table did not pass from ann to bob")
	}
	root.want(204, del, "/principals/bob", "")
	if r := root.want(200, get, "/catalogs/lake/owner?namespace=a&table=t", ""); r.object(t)["owner"] != nil {
		t.Errorf("after its owner went: %s", r.body)
	}
	root.want(204, put, "/catalogs/lake/owner", `{"namespace":["a"],"owner":"ann"}`)
	if reads(ann) != 200 {
		t.Error("the namespace is hers and its table is not")
	}
	root.want(204, put, "/catalogs/lake/owner", `{"namespace":["a"],"owner":""}`)
	if reads(ann) != 403 {
		t.Error("it was taken away and ann reads")
	}
}
