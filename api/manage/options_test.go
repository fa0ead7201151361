package manage_test

import (
	"strings"
	"testing"
)

func catalogWith(name, properties string) string {
	return strings.Replace(fileCatalog(name, "file:///"+name), `"properties":{`, `"properties":{`+properties+`,`, 1)
}

// What would steer clients is refused when a warehouse is made and when it is changed, and nothing is kept of it.
func TestField_C009_WarehousePropertiesThatSteerAreRefused(t *testing.T) {
	o := newOffice(t)
	root := o.admin()
	for _, name := range []string{"s3.endpoint", "config-default.token", "config-override.header.x", "table-override.io-impl", "config-default.prefix"} {
		r := root.want(400, post, "/catalogs", catalogWith("bad", `"`+name+`":"hush"`))
		if !strings.Contains(r.body, name) || strings.Contains(r.body, "hush") {
			t.Errorf("%s: %s", name, r.body)
		}
	}
	o.open("lake")
	root.want(400, put, "/catalogs/lake", `{"currentEntityVersion":1,"properties":{"config-default.uri":"x"}}`)
	root.want(200, put, "/catalogs/lake", `{"currentEntityVersion":1,"properties":{"config-default.rest-page-size":"7","owner":"x"}}`)
}

// Whether names are folded is said when a warehouse is made, is shown, may be said again, and never changes.
func TestField_C029_FoldingIsChosenOnce(t *testing.T) {
	o := newOffice(t)
	root := o.admin()
	r := root.want(201, post, "/catalogs", catalogWith("fold", `"case-insensitive-names":"true"`))
	if !strings.Contains(r.body, `"case-insensitive-names":"true"`) {
		t.Errorf("made: %s", r.body)
	}
	root.want(201, post, "/catalogs", catalogWith("exact", `"case-insensitive-names":"false"`))
	if r := root.want(200, get, "/catalogs/exact", ""); strings.Contains(r.body, "case-insensitive") {
		t.Errorf("exact: %s", r.body)
	}
	root.want(400, post, "/catalogs", catalogWith("odd", `"case-insensitive-names":"maybe"`))
	for _, body := range []string{
		`{"currentEntityVersion":1,"properties":{"case-insensitive-names":"true","k":"v"}}`, `{"currentEntityVersion":2,"properties":{"k":"w"}}`,
	} {
		if r := root.want(200, put, "/catalogs/fold", body); !strings.Contains(r.body, `"case-insensitive-names":"true"`) {
			t.Errorf("updated: %s", r.body)
		}
	}
	if r := root.want(400, put, "/catalogs/fold", `{"currentEntityVersion":3,"properties":{"case-insensitive-names":"false"}}`); !strings.Contains(r.body, "make another warehouse") {
		t.Errorf("refused: %s", r.body)
	}
	root.want(400, put, "/catalogs/exact", `{"currentEntityVersion":1,"properties":{"case-insensitive-names":"true"}}`)
	if r := root.catalogCall(post, "/fold/namespaces", `{"namespace":["Sales"]}`); r.status != 200 {
		t.Fatal(r.body)
	}
	if r := root.catalogCall(get, "/fold/namespaces/sALES", ""); r.status != 200 {
		t.Errorf("another spelling: %d %s", r.status, r.body)
	}
	if r := root.catalogCall(post, "/fold/namespaces", `{"namespace":["sales"]}`); r.status != 409 {
		t.Errorf("a clash: %d %s", r.status, r.body)
	}
}
