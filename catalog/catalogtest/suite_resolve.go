package catalogtest

import (
	"reflect"
	"slices"
	"strings"

	"github.com/google/uuid"

	"catalogd/auth"
	"catalogd/authz"
	"catalogd/catalog"
)

var resolvePromises = []promise{
	{"WhatIsMissingIsNil", func(b *bench) {
		res := b.resolve(catalog.Lookup{Warehouse: "nowhere", Namespace: catalog.Namespace{"a"}, Table: "t"})
		if res.Warehouse != nil || res.Namespace != nil || res.Table != nil || res.Caller != nil || len(res.Grants) != 0 {
			b.Errorf("resolved %+v", res)
		}
		res = b.resolve(catalog.Lookup{Namespace: catalog.Namespace{"a", "b"}, Table: "t"})
		if res.Warehouse == nil || len(res.Ancestors) != 0 || res.Namespace != nil || res.Table != nil || res.View != nil {
			b.Errorf("resolved %+v", res)
		}
	}},
	{"WarehouseByNameOrID", func(b *bench) {
		for _, name := range []string{"w", b.warehouse.ID.String()} {
			res := b.resolve(catalog.Lookup{Warehouse: name})
			if res.Warehouse == nil || !reflect.DeepEqual(*res.Warehouse, b.warehouse) {
				b.Errorf("%s: resolved %+v", name, res.Warehouse)
			}
		}
		for _, name := range []string{strings.ToUpper(b.warehouse.ID.String()), "{" + b.warehouse.ID.String() + "}", "W", ""} {
			res, err := b.store.Resolve(b.Context(), catalog.Lookup{Principal: b.principal, Warehouse: name})
			b.must(err)
			if res.Warehouse != nil {
				b.Errorf("%q leads to a warehouse", name)
			}
		}
		named := b.addWarehouse(b.warehouse.ID.String(), "s3://named/base")
		if res := b.resolve(catalog.Lookup{Warehouse: named.Name}); res.Warehouse.ID != named.ID {
			b.Error("an id won against a name")
		}
	}},
	{"AncestorsComeOutermostFirst", func(b *bench) {
		one, two, three := b.namespace("a"), b.namespace("a", "b"), b.namespace("a", "b", "c")
		t := b.table(three, "t")
		res := b.resolve(catalog.Lookup{Namespace: three.Levels, Table: "t"})
		b.wantAncestors(res, one, two)
		if res.Namespace == nil || res.Namespace.ID != three.ID {
			b.Fatalf("namespace %+v", res.Namespace)
		}
		b.wantTable(res.Table, t)
		if n := len(res.Path()); n != 6 {
			b.Errorf("a path of %d", n)
		}
		res = b.resolve(catalog.Lookup{Namespace: catalog.Namespace{"a", "b", "x", "y"}, Table: "t"})
		b.wantAncestors(res, one, two)
		if res.Namespace != nil || res.Table != nil {
			b.Errorf("resolved %+v", res)
		}
	}},
	{"AViewIsNoTable", func(b *bench) {
		a := b.namespace("a")
		b.view(a, "v")
		res := b.resolve(catalog.Lookup{Namespace: a.Levels, Table: "v"})
		if res.View == nil || res.Table != nil || res.Namespace == nil {
			b.Errorf("resolved %+v", res)
		}
	}},
	{"ATableIsInItsOwnNamespaceAlone", func(b *bench) {
		a := b.namespace("a")
		b.namespace("a", "b")
		b.table(a, "t")
		if res := b.resolve(catalog.Lookup{Namespace: catalog.Namespace{"a", "b"}, Table: "t"}); res.Table != nil {
			b.Error("the parent's table was found below")
		}
	}},
	{"GrantsAlongThePath", grantsAlongThePath},
	{"RolesOfTheTokenAlone", rolesOfTheToken},
	{"RolesThatATokenBrings", rolesBrought},
	{"Field_C001_WarehousesOfWhoNamesNone", warehousesOfWhoNamesNone},
	{"TheSystemIsKnownAndHasNothing", func(b *bench) {
		res := b.resolve(catalog.Lookup{Principal: auth.MaintenancePrincipal()})
		if err := res.Caller.Admit(auth.MaintenancePrincipal(), at); err != nil || len(res.Grants) != 0 {
			b.Errorf("resolved %+v: %v", res, err)
		}
		grants, state, err := b.store.ResolveGrants(b.Context(), catalog.Lookup{Principal: auth.MaintenancePrincipal()})
		b.must(err)
		if err := state.Admit(auth.MaintenancePrincipal(), at); err != nil || len(grants) != 0 {
			b.Errorf("grants %v: %v", grants, err)
		}
	}},
	{"ADroppedSecurableTakesItsGrants", func(b *bench) {
		role, reader := b.addPrincipalRole("r"), b.addCatalogRole("c")
		b.addPrincipal(role)
		b.must(b.admin.AssignCatalogRole(b.Context(), role.ID, reader.ID, b.fact("assign", "c")))
		a := b.namespace("a")
		made := b.table(a, "t")
		b.grant(reader, authz.TableReadData, authz.Table, made.ID)
		b.drop(made)
		grants, err := b.admin.ListGrants(b.Context(), reader, catalog.GrantKey{}, 0)
		b.must(err)
		if len(grants) != 0 {
			b.Errorf("grants %v", grants)
		}
	}},
	{"DenialsAreRecorded", func(b *bench) {
		before := len(b.back.EventRows(b))
		b.must(b.store.RecordDenial(b.Context(), catalog.Denial{
			At: at, Caller: catalog.Caller{Principal: b.principal}, Operation: "drop-table", Subject: "a.t\x00\xff", Reason: "no grant",
		}))
		rows := b.back.AuditRows(b)
		last := rows[len(rows)-1]
		if last.Allowed || last.Operation != "drop-table" || last.Reason != "no grant" || last.Principal != "alice" || last.Event != uuid.Nil {
			b.Errorf("audit row %+v", last)
		}
		if len(b.back.EventRows(b)) != before {
			b.Error("a denial is no event")
		}
	}},
}

func (b *bench) wantAncestors(res catalog.Resolution, want ...catalog.NamespaceRecord) {
	b.Helper()
	if len(res.Ancestors) != len(want) {
		b.Fatalf("ancestors %+v", res.Ancestors)
	}
	for i, n := range want {
		if res.Ancestors[i].ID != n.ID || res.Ancestors[i].Properties["owner"] != "alice" {
			b.Errorf("ancestor %d is %+v, want %s", i, res.Ancestors[i], n.Levels)
		}
	}
}

func (b *bench) grant(r catalog.RoleRecord, p authz.Privilege, kind authz.SecurableKind, id uuid.UUID) authz.Grant {
	b.Helper()
	b.must(b.admin.AddGrant(b.Context(), r, catalog.RoleGrant{Privilege: p, Kind: kind, ID: id}, b.fact("grant", r.Name)))
	return authz.Grant{Privilege: p, Kind: kind, SecurableID: id, Role: r.Name}
}

// grantsAlongThePath has a grant on everything of a path, and on everything beside it.
func grantsAlongThePath(b *bench) {
	role, reader, unused := b.addPrincipalRole("r"), b.addCatalogRole("reader"), b.addCatalogRole("unused")
	b.addPrincipal(role)
	b.must(b.admin.AssignCatalogRole(b.Context(), role.ID, reader.ID, b.fact("assign", "reader")))
	outer, inner := b.namespace("a"), b.namespace("a", "b")
	made, beside := b.table(inner, "t"), b.table(inner, "u")
	root := b.grant(role, authz.CatalogList, authz.Root, authz.RootID)
	onWarehouse := b.grant(reader, authz.CatalogReadProperties, authz.Catalog, b.warehouse.ID)
	onOuter := b.grant(reader, authz.NamespaceList, authz.Namespace, outer.ID)
	onInner := b.grant(reader, authz.TableList, authz.Namespace, inner.ID)
	onTable := b.grant(reader, authz.TableReadData, authz.Table, made.ID)
	b.grant(reader, authz.TableWriteData, authz.Table, beside.ID)
	b.grant(unused, authz.TableDrop, authz.Table, made.ID)
	b.grant(reader, authz.TableDrop, authz.Namespace, made.ID) // an id of another kind is another securable

	res := b.resolve(catalog.Lookup{Namespace: inner.Levels, Table: "t"})
	if res.Caller == nil {
		b.Error("the principal is not known")
	}
	b.sameGrants(res.Grants, []authz.Grant{root, onWarehouse, onOuter, onInner, onTable})
	b.sameGrants(b.resolve(catalog.Lookup{Namespace: inner.Levels}).Grants, []authz.Grant{root, onWarehouse, onOuter, onInner})
	b.sameGrants(b.resolve(catalog.Lookup{Namespace: catalog.Namespace{"a", "x"}, Table: "t"}).Grants,
		[]authz.Grant{root, onWarehouse, onOuter})
	b.sameGrants(b.resolve(catalog.Lookup{}).Grants, []authz.Grant{root, onWarehouse})
	b.sameGrants(b.resolve(catalog.Lookup{Warehouse: "nowhere"}).Grants, []authz.Grant{root})
	grants, state, err := b.store.ResolveGrants(b.Context(), catalog.Lookup{Principal: b.principal})
	b.must(err)
	if state == nil {
		b.Error("the principal is not known")
	}
	b.sameGrants(grants, []authz.Grant{root})
	b.warehouse = b.addWarehouse("other", "s3://other/base")
	b.namespace("a")
	b.sameGrants(b.resolve(catalog.Lookup{Namespace: outer.Levels}).Grants, []authz.Grant{root})
}

// rolesOfTheToken narrows the principal to some of its roles.
func rolesOfTheToken(b *bench) {
	one, two, other := b.addPrincipalRole("one"), b.addPrincipalRole("two"), b.addPrincipalRole("other")
	b.addPrincipal(one, two)
	inOne, inTwo := b.addCatalogRole("c1"), b.addCatalogRole("c2")
	b.must(b.admin.AssignCatalogRole(b.Context(), one.ID, inOne.ID, b.fact("assign", "c1")))
	b.must(b.admin.AssignCatalogRole(b.Context(), two.ID, inTwo.ID, b.fact("assign", "c2")))
	byOne := b.grant(inOne, authz.TableList, authz.Catalog, b.warehouse.ID)
	byTwo := b.grant(inTwo, authz.TableList, authz.Catalog, b.warehouse.ID)
	b.grant(other, authz.CatalogList, authz.Root, authz.RootID)
	with := func(scope auth.RoleScope) []authz.Grant {
		p := b.principal
		p.Roles = scope
		return b.resolve(catalog.Lookup{Principal: p}).Grants
	}
	b.sameGrants(with(auth.RoleScope{All: true}), []authz.Grant{byOne, byTwo})
	b.sameGrants(with(auth.RoleScope{Names: []string{"two"}}), []authz.Grant{byTwo})
	b.sameGrants(with(auth.RoleScope{Names: []string{"other", "TWO", "two\x00"}}), nil)
	b.sameGrants(with(auth.RoleScope{}), nil)
	b.must(b.admin.RevokePrincipalRole(b.Context(), b.principal.ID, two.ID, b.fact("revoke", "two")))
	b.sameGrants(with(auth.RoleScope{All: true}), []authz.Grant{byOne})
	b.must(b.admin.DropPrincipal(b.Context(), b.principal.ID, b.fact("drop-principal", "alice")))
	res := b.resolve(catalog.Lookup{})
	if res.Caller != nil || len(res.Grants) != 0 {
		b.Errorf("a dropped principal is still known: %+v", res)
	}
}

// warehousesOfWhoNamesNone counts what a caller may mean, with a grant deep in one of many warehouses.
func warehousesOfWhoNamesNone(b *bench) {
	names := func(all []catalog.Warehouse) (found []string) {
		for _, w := range all {
			found = append(found, w.Name)
		}
		return found
	}
	want := func(granted, all []string, known bool, root ...authz.Grant) {
		b.Helper()
		found, err := b.store.ResolveWarehouses(b.Context(), b.principal)
		b.must(err)
		if (found.Caller != nil) != known || !slices.Equal(names(found.Granted), granted) || !slices.Equal(names(found.All), all) {
			b.Errorf("known %t, granted %v, all %v", found.Caller != nil, names(found.Granted), names(found.All))
		}
		b.sameGrants(found.RootGrants, root)
	}
	want(nil, []string{"w"}, false)
	role, reader := b.addPrincipalRole("r"), b.addCatalogRole("reader")
	b.addPrincipal(role)
	made := b.table(b.namespace("a"), "t")
	b.grant(reader, authz.TableReadData, authz.Table, made.ID)
	want(nil, []string{"w"}, true)
	b.must(b.admin.AssignCatalogRole(b.Context(), role.ID, reader.ID, b.fact("assign", "reader")))
	first := b.warehouse
	b.addWarehouse("a", "s3://a/base")
	b.addWarehouse("z", "s3://z/base")
	want([]string{"w"}, []string{"a", "w"}, true)
	found, err := b.store.ResolveWarehouses(b.Context(), b.principal)
	b.must(err)
	if !reflect.DeepEqual(found.Granted[0], first) {
		b.Errorf("found %+v\nwant  %+v", found.Granted[0], first)
	}
	root := b.grant(role, authz.CatalogList, authz.Root, authz.RootID)
	want([]string{"w"}, []string{"a", "w"}, true, root)
	b.principal.Roles = auth.RoleScope{Names: []string{"another"}}
	want(nil, []string{"a", "w"}, true)
}

// rolesBrought has roles that an identity provider's token gives: they count while they are there and marked federated.
func rolesBrought(b *bench) {
	given, plain := b.addPrincipalRole("given"), b.addPrincipalRole("plain")
	brought, second := b.addFederatedRole("brought"), b.addFederatedRole("second")
	b.addPrincipal(given)
	reader, other := b.addCatalogRole("reader"), b.addCatalogRole("other")
	b.must(b.admin.AssignCatalogRole(b.Context(), brought.ID, reader.ID, b.fact("assign", "reader")))
	b.must(b.admin.AssignCatalogRole(b.Context(), plain.ID, other.ID, b.fact("assign", "other")))
	byGiven := b.grant(given, authz.CatalogList, authz.Root, authz.RootID)
	onRoot := b.grant(brought, authz.CatalogCreate, authz.Root, authz.RootID)
	made := b.table(b.namespace("a"), "t")
	byReader := b.grant(reader, authz.TableReadData, authz.Table, made.ID)
	b.grant(other, authz.TableWriteData, authz.Table, made.ID)
	bySecond := b.grant(second, authz.CatalogDrop, authz.Root, authz.RootID)
	want := func(scope auth.RoleScope, grants ...authz.Grant) {
		b.Helper()
		p := b.principal
		p.Roles = scope
		for range 2 { // whole, and with what is kept of it
			b.sameGrants(b.resolve(catalog.Lookup{Principal: p, Namespace: catalog.Namespace{"a"}, Table: "t"}).Grants, grants)
		}
		var root []authz.Grant
		for _, g := range grants {
			if g.Kind == authz.Root {
				root = append(root, g)
			}
		}
		found, state, err := b.store.ResolveGrants(b.Context(), catalog.Lookup{Principal: p})
		b.must(err)
		if state == nil {
			b.Error("the principal is not known")
		}
		b.sameGrants(found, root)
	}
	want(auth.RoleScope{All: true}, byGiven)
	want(auth.RoleScope{All: true, Brought: []string{"brought"}}, byGiven, onRoot, byReader)
	want(auth.RoleScope{All: true, Brought: []string{"brought", "second"}}, byGiven, onRoot, byReader, bySecond)
	want(auth.RoleScope{All: true, Brought: []string{"plain", "BROUGHT", "nobody", "brought\x00"}}, byGiven)
	want(auth.RoleScope{Names: []string{"given"}, Brought: []string{"brought", "second"}}, byGiven)
	want(auth.RoleScope{Names: []string{"second"}, Brought: []string{"brought", "second"}}, bySecond)
	want(auth.RoleScope{Names: []string{"brought"}})
	want(auth.RoleScope{Brought: []string{"brought"}})

	held, err := b.admin.Holdings(b.Context(), catalog.Holder{ID: b.principal.ID, Brought: []string{"brought", "plain"}}, b.warehouse.ID,
		[]authz.Securable{{Kind: authz.Root, ID: authz.RootID}, {Kind: authz.Table, ID: made.ID}})
	b.must(err)
	roles := []catalog.HeldRole{{PrincipalRole: "brought"}, {PrincipalRole: "brought", CatalogRole: "reader"}, {PrincipalRole: "given"}}
	if !reflect.DeepEqual(held.Roles, roles) || len(held.Grants) != 3 {
		b.Errorf("held %+v", held)
	}

	b.must(b.admin.DropRole(b.Context(), brought, b.fact("drop-principal-role", "brought")))
	want(auth.RoleScope{All: true, Brought: []string{"brought", "second"}}, byGiven, bySecond)
	b.must(b.admin.DropPrincipal(b.Context(), b.principal.ID, b.fact("drop-principal", "alice")))
	p := b.principal
	p.Roles = auth.RoleScope{All: true, Brought: []string{"second"}}
	if res := b.resolve(catalog.Lookup{Principal: p}); res.Caller != nil || len(res.Grants) != 0 {
		b.Errorf("a dropped principal is still known: %+v", res)
	}
}
