package catalogtest

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"catalogd/auth"
	"catalogd/authz"
	"catalogd/catalog"
)

var accessPromises = []promise{
	{"WhoCanIsWhomDecideAllows", func(b *bench) {
		for seed := range accessDraws {
			newStaffed(b, seed, accessDraw.Example(seed)).check()
		}
	}},
	{"WhoCanWantsEveryWish", whoCanWantsEveryWish},
	{"WhoCanPages", whoCanPages},
	{"HoldingsNameRolesWithoutGrants", holdingsNameRoles},
	{"NobodyHoldsNothing", func(b *bench) {
		held, err := b.admin.Holdings(b.Context(), catalog.Holder{ID: uuid.New()}, b.warehouse.ID, b.resolve(catalog.Lookup{}).Path())
		b.must(err)
		if len(held.Grants)+len(held.Roles) != 0 {
			b.Errorf("held %+v", held)
		}
		found, err := b.admin.Reach(b.Context(), catalog.ReachQuery{Of: catalog.Holder{ID: uuid.New()}})
		b.must(err)
		if len(found) != 0 {
			b.Errorf("reached %+v", found)
		}
	}},
	{"ReachIsInOrderAndPages", reachInOrder},
	{"ReachIsWhatTheViewerMaySee", reachOfTheViewer},
	{"ReachForgetsWhatIsDropped", func(b *bench) {
		role, reader := b.addPrincipalRole("r"), b.addCatalogRole("c")
		b.addPrincipal(role)
		b.must(b.admin.AssignCatalogRole(b.Context(), role.ID, reader.ID, b.fact("assign", "c")))
		made := b.table(b.namespace("a"), "t")
		b.grant(reader, authz.TableReadData, authz.Table, made.ID)
		b.wantReach(catalog.ReachQuery{}, "table w a t r/c TABLE_READ_DATA")
		b.drop(made)
		b.wantReach(catalog.ReachQuery{})
	}},
}

// accessDraws is how many drawn worlds the property is held against: each is some forty round trips.
const accessDraws = 12

// draw is what is drawn: who has which role, and which role holds what. Numbers are indexes.
type draw struct {
	members   [][2]int // principal, principal role
	roles     [][2]int // principal role, catalog role
	grants    [][2]int // catalog role, securable of its warehouse
	rootRoles []int    // principal roles with a grant on the service
	held      []authz.Privilege
	questions []authz.Privilege
}

const (
	drawnPrincipals, drawnPrincipalRoles, drawnCatalogRoles, drawnSecurables = 3, 3, 3, 6
	drawnQuestions                                                           = 12
)

var accessDraw = rapid.Custom(func(t *rapid.T) draw {
	pairs := func(label string, a, b int) [][2]int {
		return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) [2]int {
			return [2]int{rapid.IntRange(0, a-1).Draw(t, "from"), rapid.IntRange(0, b-1).Draw(t, "to")}
		}), 1, 6).Draw(t, label)
	}
	// Few privileges that have much to do with each other, so that answers differ.
	some := rapid.SampledFrom([]authz.Privilege{
		authz.TableList, authz.TableReadData, authz.TableWriteData, authz.TableFullMetadata, authz.CatalogManageContent, authz.ViewList,
		authz.NamespaceList, authz.CatalogManageAccess, authz.TableListGrants, authz.Select, authz.Insert, authz.Ownership, authz.TableDrop,
	})
	d := draw{
		members: pairs("members", drawnPrincipals, drawnPrincipalRoles), roles: pairs("roles", drawnPrincipalRoles, drawnCatalogRoles),
		grants:    pairs("grants", drawnCatalogRoles, drawnSecurables),
		rootRoles: rapid.SliceOfN(rapid.IntRange(0, drawnPrincipalRoles-1), 0, 1).Draw(t, "root"),
		questions: rapid.SliceOfN(some, drawnQuestions, drawnQuestions).Draw(t, "questions"),
	}
	d.held = rapid.SliceOfN(some, len(d.grants), len(d.grants)).Draw(t, "held")
	return d
})

// staffed is a bench with what was drawn.
type staffed struct {
	*bench
	draw       draw
	principals []auth.Principal
	lookups    []catalog.Lookup
}

func newStaffed(b *bench, seed int, d draw) *staffed {
	b.Helper()
	w := &staffed{bench: b, draw: d}
	name := func(what string, i int) string { return fmt.Sprintf("%s%d-%d", what, seed, i) }
	top := b.namespace(name("a", 0))
	inner := b.namespace(top.Levels[0], "b")
	t, u, v := b.table(top, "t"), b.table(inner, "u"), b.view(inner, "v")
	securables := []authz.Securable{
		{Kind: authz.Catalog, ID: b.warehouse.ID}, {Kind: authz.Namespace, ID: top.ID}, {Kind: authz.Namespace, ID: inner.ID},
		{Kind: authz.Table, ID: t.ID}, {Kind: authz.Table, ID: u.ID}, {Kind: authz.View, ID: v.ID},
	}
	w.lookups = []catalog.Lookup{
		{}, {Namespace: top.Levels}, {Namespace: inner.Levels}, {Namespace: top.Levels, Table: "t"},
		{Namespace: inner.Levels, Table: "u"}, {Namespace: inner.Levels, Table: "v"},
	}
	var holders, roles []catalog.RoleRecord
	for i := range drawnPrincipalRoles {
		holders = append(holders, b.addPrincipalRole(name("p", i)))
	}
	for i := range drawnCatalogRoles {
		roles = append(roles, b.addCatalogRole(name("c", i)))
	}
	for i := range drawnPrincipals {
		b.principal = auth.Principal{ID: uuid.New(), Name: name("x", i), Kind: auth.Service, Roles: auth.RoleScope{All: true}}
		b.addPrincipal()
		w.principals = append(w.principals, b.principal)
	}
	for _, m := range d.members {
		b.must(b.admin.AssignPrincipalRole(b.Context(), w.principals[m[0]].ID, holders[m[1]].ID, b.fact("assign", "p")))
	}
	for _, m := range d.roles {
		b.must(b.admin.AssignCatalogRole(b.Context(), holders[m[0]].ID, roles[m[1]].ID, b.fact("assign", "c")))
	}
	for i, g := range d.grants {
		on := securables[g[1]]
		b.grant(roles[g[0]], d.held[i], on.Kind, on.ID)
	}
	for _, i := range d.rootRoles {
		b.grant(holders[i], authz.ServiceManageAccess, authz.Root, authz.RootID)
	}
	return w
}

// check asks who can, and decides for everybody by what Resolve gives.
func (w *staffed) check() {
	w.Helper()
	for i, wanted := range append(w.draw.questions, authz.CatalogList) {
		lookup := w.lookups[i%len(w.lookups)]
		path := w.resolve(lookup).Path()
		var want []string
		for _, p := range w.principals {
			lookup.Principal = p
			if authz.Decide(w.resolve(lookup).Grants, path, wanted).Allowed {
				want = append(want, p.Name)
			}
		}
		got, err := w.admin.WhoCan(w.Context(), catalog.AccessQuery{
			WarehouseID: w.warehouse.ID, Wishes: []catalog.AccessWish{{Privileges: authz.Implying(wanted), Path: path}},
		}, catalog.Page{})
		w.must(err)
		var names []string
		for _, a := range got {
			if !slices.ContainsFunc(w.principals, func(p auth.Principal) bool { return p.Name == a.Principal }) {
				continue // of an earlier draw: grants on the warehouse and the service are for all to see
			}
			names = append(names, a.Principal)
			w.wantEnough(a, path, wanted)
		}
		if !slices.Equal(names, want) {
			w.Errorf("%s on %v: who can says %v, decisions say %v\n%+v", wanted, path, names, want, w.draw)
		}
	}
}

// wantEnough wants that each grant that is named is enough by itself, and is the principal's.
func (b *bench) wantEnough(a catalog.Access, path []authz.Securable, wanted authz.Privilege) {
	b.Helper()
	if len(a.By) == 0 {
		b.Errorf("%s may %s by nothing", a.Principal, wanted)
	}
	p, err := b.admin.FindPrincipal(b.Context(), a.Principal)
	b.must(err)
	held, err := b.admin.Holdings(b.Context(), catalog.Holder{ID: p.ID}, b.warehouse.ID, path)
	b.must(err)
	for _, by := range a.By {
		if !authz.Decide([]authz.Grant{by.Grant}, path, wanted).Allowed || !slices.Contains(held.Grants, by) {
			b.Errorf("%s may %s by %+v, holding %+v", a.Principal, wanted, by, held.Grants)
		}
	}
}

// whoCanWantsEveryWish asks for two privileges that two principals have one of each, and a third both by two roles.
func whoCanWantsEveryWish(b *bench) {
	a := b.namespace("a")
	made := b.table(a, "t")
	drops, creates := b.addCatalogRole("drops"), b.addCatalogRole("creates")
	b.grant(drops, authz.TableDrop, authz.Table, made.ID)
	b.grant(creates, authz.TableCreate, authz.Namespace, a.ID)
	one, two := b.addPrincipalRole("one"), b.addPrincipalRole("two")
	b.must(b.admin.AssignCatalogRole(b.Context(), one.ID, drops.ID, b.fact("assign", "drops")))
	b.must(b.admin.AssignCatalogRole(b.Context(), two.ID, creates.ID, b.fact("assign", "creates")))
	for name, roles := range map[string][]catalog.RoleRecord{"ann": {one}, "bob": {two}, "eve": {one, two}} {
		b.principal = auth.Principal{ID: uuid.New(), Name: name, Kind: auth.Service, Roles: auth.RoleScope{All: true}}
		b.addPrincipal(roles...)
	}
	path := b.resolve(catalog.Lookup{Namespace: a.Levels, Table: "t"}).Path()
	got, err := b.admin.WhoCan(b.Context(), catalog.AccessQuery{WarehouseID: b.warehouse.ID, Wishes: []catalog.AccessWish{
		{Privileges: authz.Implying(authz.TableDrop), Path: path}, {Privileges: authz.Implying(authz.TableCreate), Path: path[:3]},
	}}, catalog.Page{})
	b.must(err)
	if len(got) != 1 || got[0].Principal != "eve" || len(got[0].By) != 2 || got[0].By[0].CatalogRole != "creates" || got[0].By[1].CatalogRole != "drops" {
		b.Errorf("got %+v", got)
	}
}

func whoCanPages(b *bench) {
	role, reader := b.addPrincipalRole("r"), b.addCatalogRole("c")
	b.must(b.admin.AssignCatalogRole(b.Context(), role.ID, reader.ID, b.fact("assign", "c")))
	for i := range catalog.ChainsMax + 3 { // more ways than are named
		made := b.addPrincipalRole(fmt.Sprintf("r%02d", i))
		b.must(b.admin.AssignCatalogRole(b.Context(), made.ID, reader.ID, b.fact("assign", "c")))
	}
	b.grant(reader, authz.TableReadData, authz.Catalog, b.warehouse.ID)
	b.grant(reader, authz.TableWriteData, authz.Catalog, b.warehouse.ID)
	names := []string{"B", "a", "b", "ä"}
	for _, name := range names {
		b.principal = auth.Principal{ID: uuid.New(), Name: name, Kind: auth.Service, Roles: auth.RoleScope{All: true}}
		b.addPrincipal(role)
	}
	q := catalog.AccessQuery{WarehouseID: b.warehouse.ID, Wishes: []catalog.AccessWish{
		{Privileges: authz.Implying(authz.TableReadData), Path: b.resolve(catalog.Lookup{}).Path()},
	}}
	var got []string
	for after := ""; ; {
		page, err := b.admin.WhoCan(b.Context(), q, catalog.Page{After: after, Limit: 3})
		b.must(err)
		if len(page) == 0 {
			break
		}
		for _, a := range page {
			got = append(got, a.Principal)
			if len(a.By) != 2 {
				b.Errorf("%s may by %+v", a.Principal, a.By)
			}
		}
		after = got[len(got)-1]
	}
	if !slices.Equal(got, names) {
		b.Errorf("got %q", got)
	}
	for i := range catalog.ChainsMax + 3 {
		r, err := b.admin.FindRole(b.Context(), uuid.Nil, fmt.Sprintf("r%02d", i))
		b.must(err)
		b.must(b.admin.AssignPrincipalRole(b.Context(), b.principal.ID, r.ID, b.fact("assign", "r")))
	}
	page, err := b.admin.WhoCan(b.Context(), q, catalog.Page{After: "b\x00c"})
	b.must(err)
	if len(page) != 1 || len(page[0].By) != catalog.ChainsMax {
		b.Errorf("got %+v", page)
	}
}

func holdingsNameRoles(b *bench) {
	one, two := b.addPrincipalRole("one"), b.addPrincipalRole("two")
	b.addPrincipal(one, two)
	reader, empty := b.addCatalogRole("reader"), b.addCatalogRole("empty")
	for _, r := range []catalog.RoleRecord{reader, empty} {
		b.must(b.admin.AssignCatalogRole(b.Context(), one.ID, r.ID, b.fact("assign", r.Name)))
	}
	a := b.namespace("a")
	made := b.table(a, "t")
	onTable := b.grant(reader, authz.TableReadData, authz.Table, made.ID)
	onWarehouse := b.grant(reader, authz.TableList, authz.Catalog, b.warehouse.ID)
	root := b.grant(two, authz.CatalogList, authz.Root, authz.RootID)
	path := b.resolve(catalog.Lookup{Namespace: a.Levels, Table: "t"}).Path()
	held, err := b.admin.Holdings(b.Context(), catalog.Holder{ID: b.principal.ID}, b.warehouse.ID, path)
	b.must(err)
	want := catalog.Holdings{
		Grants: []catalog.HeldGrant{
			{Grant: root, PrincipalRole: "two"}, {Grant: onWarehouse, PrincipalRole: "one", CatalogRole: "reader"},
			{Grant: onTable, PrincipalRole: "one", CatalogRole: "reader"},
		},
		Roles: []catalog.HeldRole{
			{PrincipalRole: "one"}, {PrincipalRole: "one", CatalogRole: "empty"}, {PrincipalRole: "one", CatalogRole: "reader"}, {PrincipalRole: "two"},
		},
	}
	if !reflect.DeepEqual(held, want) {
		b.Errorf("held %+v\nwant %+v", held, want)
	}
	other := b.addWarehouse("other", "s3://other/base")
	held, err = b.admin.Holdings(b.Context(), catalog.Holder{ID: b.principal.ID}, other.ID, []authz.Securable{path[0], {Kind: authz.Catalog, ID: other.ID}})
	b.must(err)
	want = catalog.Holdings{Grants: want.Grants[:1], Roles: []catalog.HeldRole{{PrincipalRole: "one"}, {PrincipalRole: "two"}}}
	if !reflect.DeepEqual(held, want) {
		b.Errorf("in another warehouse: held %+v\nwant %+v", held, want)
	}
}

// wantReach compares what the bench's principal reaches, a line each: kind, place, and role/role privilege of each grant.
func (b *bench) wantReach(q catalog.ReachQuery, want ...string) {
	b.Helper()
	q.Of.ID = b.principal.ID
	found, err := b.admin.Reach(b.Context(), q)
	b.must(err)
	var got []string
	for _, r := range found {
		line := fmt.Sprintf("%s %s %s %s", r.Key.Kind, r.Key.Warehouse, r.Key.Namespace, r.Key.Name)
		for _, g := range r.By {
			line += fmt.Sprintf(" %s/%s %s", g.PrincipalRole, g.CatalogRole, g.Privilege)
			if g.Kind != r.Key.Kind {
				b.Errorf("%s by a grant on a %s", line, g.Kind)
			}
		}
		got = append(got, line)
	}
	if !slices.Equal(got, want) {
		b.Errorf("reached\n%q\nwant\n%q", got, want)
	}
}

// reaching gives the bench's principal grants on everything there is, in two warehouses.
func (b *bench) reaching() (other catalog.Warehouse) {
	b.Helper()
	role, reader := b.addPrincipalRole("r"), b.addCatalogRole("c")
	b.addPrincipal(role)
	a, inner := b.namespace("a"), b.namespace("a", "b")
	t, v := b.table(a, "t"), b.view(inner, "v")
	first := b.warehouse
	b.warehouse = b.addWarehouse("other", "s3://other/base")
	far := b.addCatalogRole("far")
	for _, r := range []catalog.RoleRecord{reader, far} {
		b.must(b.admin.AssignCatalogRole(b.Context(), role.ID, r.ID, b.fact("assign", r.Name)))
	}
	b.grant(role, authz.CatalogList, authz.Root, authz.RootID)
	b.grant(far, authz.TableReadData, authz.Catalog, b.warehouse.ID)
	b.grant(reader, authz.TableList, authz.Catalog, first.ID)
	b.grant(reader, authz.TableList, authz.Namespace, a.ID)
	b.grant(reader, authz.TableReadData, authz.Table, t.ID)
	b.grant(reader, authz.TableDrop, authz.Table, t.ID)
	b.grant(reader, authz.ViewList, authz.View, v.ID)
	b.grant(far, authz.TableDrop, authz.Catalog, first.ID) // in another warehouse than its own it is nothing
	other, b.warehouse = b.warehouse, first
	return other
}

var reachedInW = []string{
	"catalog w   r/c TABLE_LIST", "namespace w a  r/c TABLE_LIST", "table w a t r/c TABLE_DROP r/c TABLE_READ_DATA", "view w a.b v r/c VIEW_LIST",
}

func reachInOrder(b *bench) {
	other := b.reaching()
	all := append([]string{"root    r/ CATALOG_LIST", "catalog other   r/far TABLE_READ_DATA"}, reachedInW...)
	b.wantReach(catalog.ReachQuery{}, all...)
	b.wantReach(catalog.ReachQuery{WarehouseID: b.warehouse.ID}, reachedInW...)
	b.wantReach(catalog.ReachQuery{WarehouseID: other.ID}, all[1:2]...)
	var after catalog.ReachKey
	for _, line := range all {
		b.wantReach(catalog.ReachQuery{After: after, Limit: 1}, line)
		found, err := b.admin.Reach(b.Context(), catalog.ReachQuery{Of: catalog.Holder{ID: b.principal.ID}, After: after, Limit: 1})
		b.must(err)
		after = found[0].Key
	}
	b.wantReach(catalog.ReachQuery{After: after, Limit: 1})
}

func reachOfTheViewer(b *bench) {
	other := b.reaching()
	subject := b.principal
	b.principal = auth.Principal{ID: uuid.New(), Name: "viewer", Kind: auth.Service, Roles: auth.RoleScope{All: true}}
	viewers := b.addPrincipalRole("viewers")
	b.addPrincipal(viewers)
	auditor := b.addCatalogRole("auditor")
	b.must(b.admin.AssignCatalogRole(b.Context(), viewers.ID, auditor.ID, b.fact("assign", "auditor")))
	viewer := b.principal
	b.principal = subject
	q := catalog.ReachQuery{Viewer: &viewer, ViewerPrivileges: authz.Implying(authz.CatalogRoleListGrants)}
	root := "root    r/ CATALOG_LIST"
	b.wantReach(q, root)
	b.grant(auditor, authz.CatalogManageAccess, authz.Catalog, b.warehouse.ID)
	b.wantReach(q, append([]string{root}, reachedInW...)...)
	viewer.Roles = auth.RoleScope{Names: []string{"another"}}
	b.wantReach(q, root)
	viewer.Roles = auth.RoleScope{Names: []string{"viewers"}}
	q.WarehouseID = other.ID
	b.wantReach(q)
}
