package catalogtest

import (
	"maps"
	"reflect"

	"github.com/google/uuid"

	"catalogd/auth"
	"catalogd/authz"
	"catalogd/catalog"
	"catalogd/internal/fault"
	"catalogd/vending"
)

var warehousePromises = []promise{
	{"CreatedIsFound", func(b *bench) {
		found, err := b.store.FindWarehouse(b.Context(), "w")
		b.must(err)
		if !reflect.DeepEqual(found, b.warehouse) {
			b.Errorf("found %+v\nwant  %+v", found, b.warehouse)
		}
		_, err = b.store.FindWarehouse(b.Context(), "W")
		b.refused(err, fault.NoSuchWarehouse, "Warehouse does not exist: W")
	}},
	{"NameIsTakenOnce", func(b *bench) {
		b.leavesNoTrace(func() {
			b.refused(b.createWarehouse("w", "s3://other/x"), fault.AlreadyExists, "Warehouse already exists: w")
		})
	}},
	{"BasesNeverOverlap", func(b *bench) {
		b.leavesNoTrace(func() {
			for _, base := range []string{"s3://bucket/base", "s3://bucket/base/in", "s3://bucket", "s3a://bucket/base"} {
				b.refused(b.createWarehouse("x", base), fault.BadRequest, "")
			}
		})
		b.must(b.createWarehouse("beside", "s3://bucket/base2"))
	}},
	{"BasesKeepOffForeignTables", func(b *bench) {
		b.must(b.commit(b.newTable(b.namespace("a"), "t", "s3://bucket/far/away")))
		b.refused(b.createWarehouse("x", "s3://bucket/far"), fault.BadRequest, "")
		b.refused(b.createWarehouse("x", "s3://bucket/far/away/in"), fault.BadRequest, "")
		b.must(b.createWarehouse("x", "s3://bucket/farther"))
	}},
	{"ListIsByName", func(b *bench) {
		b.addWarehouse("b", "s3://b/x")
		b.addWarehouse("B", "s3://c/x")
		all, err := b.store.ListWarehouses(b.Context(), catalog.ListQuery{})
		b.must(err)
		if len(all) != 3 || all[0].Name != "B" || all[1].Name != "b" || !reflect.DeepEqual(all[2], b.warehouse) {
			b.Errorf("listed %+v", all)
		}
	}},
	{"UpdateWantsTheVersion", func(b *bench) {
		next := b.warehouse
		next.Properties = map[string]string{"k": "v"}
		next.Storage = vending.Profile{StorageType: "S3", Region: "elsewhere"}
		b.must(b.store.UpdateWarehouse(b.Context(), next, b.fact("update-warehouse", "w")))
		b.leavesNoTrace(func() {
			b.refused(b.store.UpdateWarehouse(b.Context(), next, b.fact("update-warehouse", "w")), fault.VersionConflict, "")
			gone := next
			gone.ID, gone.Name = uuid.New(), "x"
			b.refused(b.store.UpdateWarehouse(b.Context(), gone, b.fact("update-warehouse", "x")), fault.NoSuchWarehouse, "Warehouse does not exist: x")
		})
		found, err := b.store.FindWarehouse(b.Context(), "w")
		b.must(err)
		if found.Version != 2 || !maps.Equal(found.Properties, next.Properties) || found.Storage.Region != "elsewhere" || found.Location != b.warehouse.Location {
			b.Errorf("found %+v", found)
		}
	}},
	{"DropWantsItEmpty", func(b *bench) {
		a := b.namespace("a")
		drop := func() error { return b.store.DropWarehouse(b.Context(), b.warehouse.ID, b.fact("drop-warehouse", "w")) }
		b.leavesNoTrace(func() { b.refused(drop(), fault.NamespaceNotEmpty, "") })
		b.drop(b.table(a, "t"))
		b.staged(catalog.Identifier{Namespace: a.Levels, Name: "u"}, "")
		b.must(b.store.DropNamespace(b.Context(), a.ID, b.fact("drop-namespace", "a")))
		b.must(drop())
		b.leavesNoTrace(func() { b.refused(drop(), fault.NoSuchWarehouse, "Warehouse does not exist: w") })
		b.must(b.createWarehouse("w", "s3://bucket/base"))
	}},
	{"ServiceAdminsMayUseIt", func(b *bench) {
		role := b.addPrincipalRole("service_admin")
		b.addPrincipal(role)
		w := b.addWarehouse("mine", "s3://mine/base")
		res := b.resolve(catalog.Lookup{Warehouse: "mine"})
		var want []authz.Grant
		for _, p := range []authz.Privilege{authz.CatalogManageAccess, authz.CatalogManageMetadata, authz.CatalogManageContent} {
			want = append(want, authz.Grant{Privilege: p, Kind: authz.Catalog, SecurableID: w.ID, Role: "catalog_admin"})
		}
		b.sameGrants(res.Grants, want)
		role, err := b.admin.FindRole(b.Context(), w.ID, "catalog_admin")
		b.must(err)
		if role.Version != 1 || role.WarehouseID != w.ID {
			b.Errorf("role %+v", role)
		}
	}},
}

func (b *bench) createWarehouse(name, location string) error {
	w := catalog.Warehouse{ID: uuid.New(), Name: name, Location: location, Storage: vending.Profile{StorageType: "S3"}}
	return b.store.CreateWarehouse(b.Context(), w, b.fact("create-warehouse", name))
}

func (b *bench) addPrincipalRole(name string) catalog.RoleRecord {
	b.Helper()
	r := catalog.RoleRecord{ID: uuid.New(), Name: name, CreatedAt: at}
	b.must(b.admin.CreateRole(b.Context(), r, b.fact("create-role", name)))
	return r
}

func (b *bench) addFederatedRole(name string) catalog.RoleRecord {
	b.Helper()
	r := catalog.RoleRecord{ID: uuid.New(), Name: name, Federated: true, CreatedAt: at}
	b.must(b.admin.CreateRole(b.Context(), r, b.fact("create-role", name)))
	return r
}

func (b *bench) addCatalogRole(name string) catalog.RoleRecord {
	b.Helper()
	r := catalog.RoleRecord{ID: uuid.New(), WarehouseID: b.warehouse.ID, Name: name, CreatedAt: at}
	b.must(b.admin.CreateRole(b.Context(), r, b.fact("create-role", name)))
	return r
}

// addPrincipal makes the bench's principal and gives it roles.
func (b *bench) addPrincipal(roles ...catalog.RoleRecord) {
	b.Helper()
	p := catalog.PrincipalRecord{ID: b.principal.ID, Name: b.principal.Name, ClientID: "client-" + b.principal.Name, Kind: auth.Service, CreatedAt: at}
	secret := auth.StoredSecret{Algorithm: "hmac-sha256", Form: []byte{1}}
	b.must(b.admin.CreatePrincipal(b.Context(), p, secret, b.fact("create-principal", p.Name)))
	for _, r := range roles {
		b.must(b.admin.AssignPrincipalRole(b.Context(), p.ID, r.ID, b.fact("assign-role", r.Name)))
	}
}
