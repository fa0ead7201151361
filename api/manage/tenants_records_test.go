package manage_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// sealedCursor is a cursor, whose content nobody but the server reads: each look gets another text.
var sealedCursor = regexp.MustCompile(`"(cursor|next-page-token)":"[^"]*"`)

// TestTenants_RecordsAreTheirOwn has one tenant work between two looks of the other one: what the other reads of the audit, of events and of
// metrics is the same to the byte, so nothing of it is there to be read, counted or guessed from a position.
func TestTenants_RecordsAreTheirOwn(t *testing.T) {
	o := newOffice(t)
	root := o.admin()
	tenants := map[string]*person{}
	for _, name := range []string{"north", "south"} {
		o.open(name)
		o.furnish(root, name, "a")
		tenants[name] = o.login(o.hire("of-"+name, name+"-admins"), "")
		root.want(201, put, "/principal-roles/"+name+"-admins/catalog-roles/"+name, `{"catalogRole":{"name":"catalog_admin"}}`)
		o.let(name+"-admins", name, "CATALOG_MANAGE_CONTENT")
	}
	north, south := tenants["north"], tenants["south"]
	report := operationBodies["report-metrics"]
	if r := south.catalogCall(post, "/south/namespaces/a/tables/t/metrics", report); r.status != 204 {
		t.Fatal(r.status, r.body)
	}
	const metrics = "/catalogs/south/namespaces/a/tables/t/metrics"
	look := func() (seen []string) {
		for _, path := range []string{"/events?catalog=south&pageSize=1000", "/audit?catalog=south&pageSize=1000", metrics, "/catalogs/south/grants"} {
			seen = append(seen, sealedCursor.ReplaceAllString(south.want(200, get, path, "").body, "cursor"))
		}
		r := south.catalogCall(get, "/south/namespaces/a/tables/t", "")
		return append(seen, r.body, r.header.Get("ETag"))
	}
	before := look()
	for _, c := range []struct{ path, body string }{
		{"/namespaces", `{"namespace":["secret"]}`}, {"/namespaces/secret/tables", plainTable("hidden", "")},
		{"/namespaces/a/tables/t", operationBodies["commit-table"]}, {"/namespaces/a/tables/t/metrics", report},
	} {
		if r := north.catalogCall(post, "/north"+c.path, c.body); r.status >= 300 {
			t.Fatalf("%s: %d %s", c.path, r.status, r.body)
		}
	}
	north.want(403, get, "/catalogs/south/grants", "")
	north.want(403, get, "/principals", "")
	after := look()
	for i := range before {
		// The refusal of north on south is south's to know; nothing else is new.
		if i != 1 && before[i] != after[i] {
			t.Errorf("what south reads changed by what north did:\n%s\n%s", before[i], after[i])
		}
		for _, word := range []string{"secret", "hidden"} {
			if strings.Contains(after[i], word) {
				t.Errorf("%q is in %s", word, after[i])
			}
		}
	}
	// North's tag opens nothing, and is told from no other.
	tag := north.catalogCall(get, "/north/namespaces/a/tables/t", "").header.Get("ETag")
	if tag == "" {
		t.Fatal("no tag")
	}
	for _, sent := range []string{tag, `"x"`, "*"} {
		path := "/api/catalog/v1/north/namespaces/a/tables/t"
		if r := o.sendWith(get, path, south.token, "", http.Header{"If-None-Match": {sent}}); r.status != 403 || r.header.Get("ETag") != "" {
			t.Errorf("If-None-Match %s: %d %v", sent, r.status, r.header)
		}
	}
}

// A place below another tenant's tables is refused as any place outside of one's own warehouse is, whether there is something or not.
func TestTenants_PlacesTellNothing(t *testing.T) {
	o, root := newTenants(t)
	south := o.login(o.hire("of-south", "south-admins"), "")
	o.let("south-admins", "south", "CATALOG_MANAGE_CONTENT")
	location, _ := root.catalogCall(get, "/north/namespaces/a/tables/t", "").at(t, "metadata", "location").(string)
	if !strings.HasPrefix(location, "file:///lakes/north/") {
		t.Fatal(location)
	}
	for _, path := range []string{"/namespaces", "/namespaces/a/tables"} {
		answers := map[string]bool{}
		for _, place := range []string{location, location + "/below", "file:///lakes/north/none", "file:///lakes/nobody/none"} {
			body := plainTable("u", `,"location":`+quote(place))
			if path == "/namespaces" {
				body = `{"namespace":["u"],"properties":{"location":` + quote(place) + `}}`
			}
			r := south.catalogCall(post, "/south"+path, body)
			if r.status != 400 {
				t.Errorf("%s at %s: %d %s", path, place, r.status, r.body)
			}
			answers[strings.ReplaceAll(strings.ReplaceAll(r.body, place, "_"), r.header.Get("X-Request-Id"), "_")] = true
		}
		if len(answers) != 1 {
			t.Errorf("%s: places are told apart: %v", path, answers)
		}
	}
}
