package manage_test

import (
	"strings"
	"testing"

	"catalogd/auth"
	"catalogd/catalog"
	"catalogd/catalog/commit"
)

func TestDropped_IsListedToWhoReadsTheWarehousesTables(t *testing.T) {
	o := newOffice(t)
	o.open("lake")
	body, err := commit.DecodeCreate([]byte(`{"name":"t","schema":{"type":"struct","fields":[{"id":1,"name":"id","type":"long","required":false}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	ns := catalog.Namespace{"a.b", "c"}
	caller := catalog.Caller{Principal: auth.MaintenancePrincipal()}
	for _, levels := range []catalog.Namespace{ns[:1], ns} {
		if _, err := o.service.CreateNamespace(t.Context(), caller, "lake", levels, nil); err != nil {
			t.Fatal(err)
		}
	}
	made, err := o.service.CreateTable(t.Context(), caller, catalog.CreateTableRequest{Warehouse: "lake", Namespace: ns, Body: body})
	if err != nil {
		t.Fatal(err)
	}
	o.admin().want(200, get, "/catalogs/lake/dropped-tables", "")
	err = o.service.DropTable(t.Context(), caller, catalog.DropTableRequest{
		Warehouse: "lake", Ident: catalog.Identifier{Namespace: ns, Name: "t"}, Purge: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	r := o.admin().want(200, get, "/catalogs/lake/dropped-tables", "")
	for _, part := range []string{
		`"kind":"table"`, `"namespace":["a.b","c"]`, `"name":"t"`, `"metadata_location":"` + made.MetadataLocation + `"`, `"purge_requested":true`, `"purge_job":"`,
	} {
		if !strings.Contains(r.body, part) {
			t.Errorf("no %s in %s", part, r.body)
		}
	}
	credential := o.hire("clerk", "clerks")
	o.login(credential, "").want(403, get, "/catalogs/lake/dropped-tables", "")
	o.let("clerks", "lake", "TABLE_READ_PROPERTIES")
	o.login(credential, "").want(200, get, "/catalogs/lake/dropped-tables", "")
}
