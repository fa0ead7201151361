package store

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"catalogd/auth"
	"catalogd/authz"
	"catalogd/catalog"
	"catalogd/internal/fault"
	"catalogd/vending"
)

// staff is a store with helpers to fill it.
type staff struct {
	*Store
	t *testing.T
}

func newStaff(t *testing.T) *staff { return &staff{openStore(t), t} }

func adminFact(operation string) catalog.Fact {
	return catalog.Fact{ID: uuid.New(), At: time.Now().UTC().Truncate(time.Microsecond), Operation: operation, Subject: operation}
}

func (s *staff) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *staff) principal(name string) catalog.PrincipalRecord {
	s.t.Helper()
	f := adminFact("create-principal")
	p := catalog.PrincipalRecord{
		ID: uuid.New(), Name: name, ClientID: "id-" + name, Kind: auth.Service, Properties: map[string]string{"k": name},
		Version: 1, CreatedAt: f.At, UpdatedAt: f.At,
	}
	s.must(s.CreatePrincipal(s.t.Context(), p, auth.StoredSecret{Algorithm: "a", Form: []byte(name)}, f))
	return p
}

func (s *staff) role(warehouse uuid.UUID, name string) catalog.RoleRecord {
	s.t.Helper()
	f := adminFact("create-role")
	r := catalog.RoleRecord{ID: uuid.New(), WarehouseID: warehouse, Name: name, Version: 1, CreatedAt: f.At, UpdatedAt: f.At}
	s.must(s.CreateRole(s.t.Context(), r, f))
	return r
}

func (s *staff) administrators() catalog.RoleRecord {
	s.t.Helper()
	r := s.role(uuid.Nil, "service_admin")
	s.must(s.AddGrant(s.t.Context(), r, adminGrant(), adminFact("add-grant")))
	return r
}

func adminGrant() catalog.RoleGrant {
	return catalog.RoleGrant{Privilege: authz.ServiceManageAccess, Kind: authz.Root, ID: authz.RootID}
}

func (s *staff) assign(p catalog.PrincipalRecord, r catalog.RoleRecord) {
	s.t.Helper()
	s.must(s.AssignPrincipalRole(s.t.Context(), p.ID, r.ID, adminFact("assign")))
}

func (s *staff) events() int {
	s.t.Helper()
	var n int
	s.must(s.read(s.t.Context(), func(q querier) error {
		return q.QueryRow(s.t.Context(), "SELECT count(*) FROM events").Scan(&n)
	}))
	return n
}

func wantKind(t *testing.T, err error, kind fault.Kind) {
	t.Helper()
	if !fault.Is(err, kind) {
		t.Errorf("got %v, want %s", err, kind)
	}
}

func TestPrincipals_AccountsFollowThem(t *testing.T) {
	s := newStaff(t)
	ctx := t.Context()
	ann, zed := s.principal("ann"), s.role(uuid.Nil, "zed")
	s.assign(ann, zed)
	s.assign(ann, s.role(uuid.Nil, "alpha"))
	for name, find := range map[string]func() (auth.Account, error){
		"client id": func() (auth.Account, error) { return s.FindAccountByClientID(ctx, ann.ClientID) },
		"id":        func() (auth.Account, error) { return s.FindAccountByID(ctx, ann.ID) },
	} {
		a, err := find()
		s.must(err)
		if a.ID != ann.ID || a.Name != "ann" || a.Kind != auth.Service || string(a.Secret.Form) != "ann" || !slices.Equal(a.Roles, []string{"alpha", "zed"}) {
			t.Errorf("by %s: %+v", name, a)
		}
	}
	for _, odd := range []string{"", "none", "\x00", "\xff", "' OR true --"} {
		_, err := s.FindAccountByClientID(ctx, odd)
		wantKind(t, err, fault.NotFound)
		_, err = s.FindPrincipal(ctx, odd)
		wantKind(t, err, fault.NotFound)
	}
	s.must(s.ReplaceSecret(ctx, catalog.SecretChange{PrincipalID: ann.ID, ClientID: "", Secret: auth.StoredSecret{Algorithm: "b", Form: []byte("new"), RotationRequired: true}}, adminFact("rotate")))
	a, err := s.FindAccountByClientID(ctx, ann.ClientID)
	s.must(err)
	if string(a.Secret.Form) != "new" || a.Secret.Algorithm != "b" || !a.Secret.RotationRequired {
		t.Errorf("after the rotation: %s %v", a.Secret.Algorithm, a.Secret.RotationRequired)
	}
	found, err := s.FindPrincipal(ctx, "ann")
	s.must(err)
	all, err := s.ListPrincipals(ctx, catalog.ListQuery{})
	s.must(err)
	with, err := s.PrincipalsWith(ctx, zed.ID, catalog.ListQuery{})
	s.must(err)
	if !found.RotationRequired || len(all) != 1 || !all[0].RotationRequired || len(with) != 1 || !with[0].RotationRequired {
		t.Errorf("that the secret must be rotated is not told: %+v, %+v, %+v", found, all, with)
	}
	wantKind(t, s.ReplaceSecret(ctx, catalog.SecretChange{PrincipalID: ann.ID, Secret: a.Secret, Replaces: "another"}, adminFact("rotate")), fault.Forbidden)
	s.must(s.ReplaceSecret(ctx, catalog.SecretChange{PrincipalID: ann.ID, ClientID: "other", Secret: auth.StoredSecret{Algorithm: "b", Form: []byte("new")}}, adminFact("reset")))
	_, err = s.FindAccountByClientID(ctx, ann.ClientID)
	wantKind(t, err, fault.NotFound)
	s.principal("bob")
	wantKind(t, s.ReplaceSecret(ctx, catalog.SecretChange{PrincipalID: ann.ID, ClientID: "id-bob", Secret: auth.StoredSecret{Algorithm: "b", Form: []byte("x")}}, adminFact("reset")), fault.AlreadyExists)
	s.must(s.DropPrincipal(ctx, ann.ID, adminFact("drop")))
	_, err = s.FindAccountByID(ctx, ann.ID)
	wantKind(t, err, fault.NotFound)
	wantKind(t, s.DropPrincipal(ctx, ann.ID, adminFact("drop")), fault.NotFound)
	wantKind(t, s.ReplaceSecret(ctx, catalog.SecretChange{PrincipalID: ann.ID, ClientID: "", Secret: auth.StoredSecret{}}, adminFact("rotate")), fault.NotFound)
}

// Every mutation leaves one event; a refused or repeated one leaves none.
func TestAdmin_FactsOfWhatHappened(t *testing.T) {
	s := newStaff(t)
	ctx := t.Context()
	ann, role, w := s.principal("ann"), s.role(uuid.Nil, "r"), s.warehouse("lake")
	inside := s.role(w.ID, "readers")
	grant := catalog.RoleGrant{Privilege: authz.TableReadData, Kind: authz.Catalog, ID: w.ID}
	steps := []struct {
		name string
		do   func() error
		want int
	}{
		{"assign", func() error { return s.AssignPrincipalRole(ctx, ann.ID, role.ID, adminFact("x")) }, 1},
		{"assign again", func() error { return s.AssignPrincipalRole(ctx, ann.ID, role.ID, adminFact("x")) }, 0},
		{"assign catalog role", func() error { return s.AssignCatalogRole(ctx, role.ID, inside.ID, adminFact("x")) }, 1},
		{"assign catalog role again", func() error { return s.AssignCatalogRole(ctx, role.ID, inside.ID, adminFact("x")) }, 0},
		{"grant", func() error { return s.AddGrant(ctx, inside, grant, adminFact("x")) }, 1},
		{"grant again", func() error { return s.AddGrant(ctx, inside, grant, adminFact("x")) }, 0},
		{"revoke", func() error { return s.RevokeGrant(ctx, inside, grant, adminFact("x")) }, 1},
		{"revoke again", func() error { return s.RevokeGrant(ctx, inside, grant, adminFact("x")) }, 0},
		{"update", func() error { return s.UpdatePrincipal(ctx, ann, adminFact("x")) }, 1},
		{"take back", func() error { return s.RevokePrincipalRole(ctx, ann.ID, role.ID, adminFact("x")) }, 1},
		{"take back catalog role", func() error { return s.RevokeCatalogRole(ctx, role.ID, inside.ID, adminFact("x")) }, 1},
	}
	for _, step := range steps {
		before := s.events()
		s.must(step.do())
		if got := s.events() - before; got != step.want {
			t.Errorf("%s: %d events, want %d", step.name, got, step.want)
		}
	}
	before := s.events()
	wantKind(t, s.UpdatePrincipal(ctx, ann, adminFact("x")), fault.VersionConflict)
	wantKind(t, s.UpdatePrincipal(ctx, catalog.PrincipalRecord{ID: uuid.New(), Version: 1}, adminFact("x")), fault.NotFound)
	wantKind(t, s.UpdateRole(ctx, catalog.RoleRecord{ID: uuid.New(), Version: 1}, adminFact("x")), fault.NotFound)
	wantKind(t, s.UpdateRole(ctx, catalog.RoleRecord{ID: inside.ID, WarehouseID: w.ID, Version: 9}, adminFact("x")), fault.VersionConflict)
	wantKind(t, s.RevokePrincipalRole(ctx, ann.ID, role.ID, adminFact("x")), fault.NotFound)
	wantKind(t, s.RevokeCatalogRole(ctx, role.ID, inside.ID, adminFact("x")), fault.NotFound)
	wantKind(t, s.AssignPrincipalRole(ctx, ann.ID, uuid.New(), adminFact("x")), fault.NotFound)
	wantKind(t, s.AssignPrincipalRole(ctx, uuid.New(), role.ID, adminFact("x")), fault.NotFound)
	wantKind(t, s.AssignCatalogRole(ctx, role.ID, uuid.New(), adminFact("x")), fault.NotFound)
	wantKind(t, s.AddGrant(ctx, catalog.RoleRecord{ID: uuid.New(), WarehouseID: w.ID}, grant, adminFact("x")), fault.NotFound)
	wantKind(t, s.CreateRole(ctx, catalog.RoleRecord{ID: uuid.New(), Name: "r"}, adminFact("x")), fault.AlreadyExists)
	wantKind(t, s.CreateRole(ctx, catalog.RoleRecord{ID: uuid.New(), WarehouseID: w.ID, Name: "readers"}, adminFact("x")), fault.AlreadyExists)
	wantKind(t, s.CreateRole(ctx, catalog.RoleRecord{ID: uuid.New(), WarehouseID: uuid.New(), Name: "readers"}, adminFact("x")), fault.NoSuchWarehouse)
	if got := s.events(); got != before {
		t.Errorf("%d events of refusals", got-before)
	}
}

func (s *staff) warehouse(name string) catalog.Warehouse {
	s.t.Helper()
	f := adminFact("create-warehouse")
	w := catalog.Warehouse{
		ID: uuid.New(), Name: name, Location: "file:///" + name, Version: 1, CreatedAt: f.At, UpdatedAt: f.At,
		Storage: vending.Profile{StorageType: "FILE", AllowedLocations: []string{"file:///" + name}},
	}
	s.must(s.CreateWarehouse(s.t.Context(), w, f))
	return w
}

// Grants name their securable as it is called now, and go with it and with their role.
func TestGrants_FollowTheirSecurables(t *testing.T) {
	s := newStaff(t)
	ctx := t.Context()
	w := s.warehouse("lake")
	role := s.role(w.ID, "readers")
	namespace := func(levels ...string) catalog.NamespaceRecord {
		n := catalog.NamespaceRecord{ID: uuid.New(), Levels: levels}
		s.must(s.CreateNamespace(ctx, catalog.NamespaceCreate{Record: n, WarehouseID: w.ID, Fact: adminFact("create-namespace")}))
		return n
	}
	a, b := namespace("a"), namespace("b")
	table := catalog.TableRecord{
		ID: uuid.New(), Kind: catalog.KindTable, NamespaceID: a.ID, Ident: catalog.Identifier{Namespace: a.Levels, Name: "t"}, UUID: uuid.New(),
		Location: "file:///lake/t", MetadataLocation: "file:///lake/t/metadata/1.json", FormatVersion: 2,
	}
	s.must(s.CommitPointers(ctx, []catalog.PointerChange{{Record: table, WarehouseID: w.ID, Fact: adminFact("create-table")}}, catalog.Fence{}))
	for _, g := range []catalog.RoleGrant{
		{Privilege: authz.TableReadData, Kind: authz.Table, ID: table.ID},
		{Privilege: authz.NamespaceList, Kind: authz.Namespace, ID: b.ID},
		{Privilege: authz.CatalogManageAccess, Kind: authz.Catalog, ID: w.ID},
		{Privilege: authz.TableList, Kind: authz.Namespace, ID: uuid.New()}, // of something that is gone
	} {
		s.must(s.AddGrant(ctx, role, g, adminFact("add-grant")))
	}
	list := func() (names []string) {
		grants, err := s.ListGrants(ctx, role, catalog.GrantKey{}, 0)
		s.must(err)
		for _, g := range grants {
			names = append(names, string(g.Privilege)+" "+string(g.Kind)+" "+catalog.Identifier{Namespace: g.Namespace, Name: g.Name}.String())
		}
		return names
	}
	if got, want := list(), []string{"CATALOG_MANAGE_ACCESS catalog ", "TABLE_READ_DATA table a.t", "NAMESPACE_LIST namespace b"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	s.must(s.RenameTable(ctx, catalog.TableRename{ID: table.ID, Kind: catalog.KindTable, TargetNamespaceID: b.ID,
		Target: catalog.Identifier{Namespace: b.Levels, Name: "u"}, Fact: adminFact("rename-table")}))
	if got, want := list(), []string{"CATALOG_MANAGE_ACCESS catalog ", "NAMESPACE_LIST namespace b", "TABLE_READ_DATA table b.u"}; !slices.Equal(got, want) {
		t.Errorf("after the rename %q, want %q", got, want)
	}
	s.must(s.DropTable(ctx, catalog.TableDrop{ID: table.ID, Kind: catalog.KindTable, Fact: adminFact("drop-table")}))
	s.must(s.DropNamespace(ctx, b.ID, adminFact("drop-namespace")))
	if got, want := list(), []string{"CATALOG_MANAGE_ACCESS catalog "}; !slices.Equal(got, want) {
		t.Errorf("after the drops %q, want %q", got, want)
	}
	s.must(s.DropRole(ctx, role, adminFact("drop-role")))
	var left int
	s.must(s.read(ctx, func(q querier) error {
		return q.QueryRow(ctx, "SELECT count(*) FROM grants WHERE role_id = $1", role.ID).Scan(&left)
	}))
	if left != 0 {
		t.Errorf("%d grants of a role that is gone", left)
	}
}

// However administrators leave, and however many at once, one stays.
func TestAdministrators_TheLastOneStays(t *testing.T) {
	s := newStaff(t)
	ctx := t.Context()
	admins := s.administrators()
	var people []catalog.PrincipalRecord
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		p := s.principal(name)
		s.assign(p, admins)
		people = append(people, p)
	}
	var wait sync.WaitGroup
	var refused sync.Map
	for i, p := range people {
		wait.Go(func() {
			var err error
			if i%2 == 0 {
				err = s.RevokePrincipalRole(ctx, p.ID, admins.ID, adminFact("revoke"))
			} else {
				err = s.DropPrincipal(ctx, p.ID, adminFact("drop"))
			}
			if err != nil {
				refused.Store(p.Name, err)
			}
		})
	}
	wait.Wait()
	count := 0
	refused.Range(func(name, err any) bool {
		count++
		wantKind(t, err.(error), fault.IllegalArgument)
		return true
	})
	left, err := s.PrincipalsWith(ctx, admins.ID, catalog.ListQuery{})
	s.must(err)
	if len(left) != 1 || count != 1 {
		t.Fatalf("%d administrators are left, %d were refused", len(left), count)
	}
	wantKind(t, s.DropRole(ctx, admins, adminFact("drop-role")), fault.IllegalArgument)
	wantKind(t, s.RevokeGrant(ctx, admins, adminGrant(), adminFact("revoke-grant")), fault.IllegalArgument)
	// Somebody who is no administrator may go.
	s.must(s.DropPrincipal(ctx, s.principal("x").ID, adminFact("drop")))
}

// Who is administrator by an identity provider does not count: it may be away, or take him away.
func TestAdministrators_TheLastOneWithASecretStays(t *testing.T) {
	s := newStaff(t)
	ctx := t.Context()
	admins, last := s.administrators(), s.principal("last")
	s.assign(last, admins)
	s.must(s.CreateIdentity(ctx, newIdentity("sso:boss", "u-1")))
	boss, err := s.FindPrincipal(ctx, "sso:boss")
	s.must(err)
	s.assign(boss, admins)
	wantKind(t, s.RevokePrincipalRole(ctx, last.ID, admins.ID, adminFact("revoke")), fault.IllegalArgument)
	wantKind(t, s.DropPrincipal(ctx, last.ID, adminFact("drop")), fault.IllegalArgument)
	s.must(s.RevokePrincipalRole(ctx, boss.ID, admins.ID, adminFact("revoke")))
	s.assign(boss, admins)
	s.assign(s.principal("other"), admins)
	s.must(s.DropPrincipal(ctx, last.ID, adminFact("drop")))
}

// A grant that races the drop of its role is either dropped with it or refused.
func TestGrants_RaceWithTheDropOfTheirRole(t *testing.T) {
	s := newStaff(t)
	ctx := t.Context()
	w := s.warehouse("lake")
	for range 20 {
		role := s.role(w.ID, uuid.NewString())
		var wait sync.WaitGroup
		wait.Go(func() {
			if err := s.DropRole(ctx, role, adminFact("drop-role")); err != nil {
				t.Error(err)
			}
		})
		wait.Go(func() {
			err := s.AddGrant(ctx, role, catalog.RoleGrant{Privilege: authz.TableList, Kind: authz.Catalog, ID: w.ID}, adminFact("add-grant"))
			if err != nil {
				wantKind(t, err, fault.NotFound)
			}
		})
		wait.Wait()
		grants, err := s.ListGrants(ctx, role, catalog.GrantKey{}, 0)
		s.must(err)
		if len(grants) > 0 {
			t.Fatal("a grant of a role that is gone")
		}
	}
}

// Servers that start on an empty database at once keep one key; retired ones stay as long as their tokens may live.
func TestKeys_OneActiveKey(t *testing.T) {
	s := newStaff(t)
	ctx := t.Context()
	var wait sync.WaitGroup
	kids := make([]string, 6)
	for i := range kids {
		wait.Go(func() {
			keys, err := s.AddSigningKey(ctx, auth.StoredKey{
				KID: uuid.NewString(), Algorithm: "EdDSA", PublicKey: []byte{1}, PrivateKey: []byte{2}, CreatedAt: time.Now(),
			})
			if err != nil || len(keys) != 1 {
				t.Errorf("%d keys, %v", len(keys), err)
				return
			}
			kids[i] = keys[0].KID
		})
	}
	wait.Wait()
	if len(slices.Compact(slices.Clone(kids))) != 1 {
		t.Fatalf("servers use different keys: %v", kids)
	}
	retire := func(ago time.Duration) {
		s.must(s.InTx(ctx, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "UPDATE signing_keys SET retired_at = $1", time.Now().Add(-ago))
			return err
		}))
	}
	retire(time.Hour)
	keys, err := s.SigningKeys(ctx)
	s.must(err)
	if len(keys) != 1 || keys[0].RetiredAt.IsZero() || string(keys[0].PrivateKey) != "\x02" {
		t.Errorf("%d keys an hour after", len(keys))
	}
	retire(auth.TokenLifeMax + time.Minute)
	if keys, err = s.SigningKeys(ctx); err != nil || len(keys) != 0 {
		t.Errorf("%d keys a day after, %v", len(keys), err)
	}
	if keys, err = s.AddSigningKey(context.WithoutCancel(ctx), auth.StoredKey{
		KID: "next", Algorithm: "EdDSA", PublicKey: []byte{1}, PrivateKey: []byte{2}, CreatedAt: time.Now(),
	}); err != nil || len(keys) != 1 || keys[0].KID != "next" {
		t.Errorf("the next key: %d keys, %v", len(keys), err)
	}
}

// A refusal says which name is taken.
func TestAdmin_TakenNamesAreNamed(t *testing.T) {
	s := newStaff(t)
	ctx := t.Context()
	w := s.warehouse("lake")
	s.principal("ann")
	s.role(uuid.Nil, "writers")
	s.role(w.ID, "readers")
	for name, err := range map[string]error{
		"ann": s.CreatePrincipal(ctx, catalog.PrincipalRecord{ID: uuid.New(), Name: "ann", ClientID: "another", Kind: auth.Service},
			auth.StoredSecret{Algorithm: "a", Form: []byte("x")}, adminFact("x")),
		"writers": s.CreateRole(ctx, catalog.RoleRecord{ID: uuid.New(), Name: "writers"}, adminFact("x")),
		"readers": s.CreateRole(ctx, catalog.RoleRecord{ID: uuid.New(), WarehouseID: w.ID, Name: "readers"}, adminFact("x")),
	} {
		wantKind(t, err, fault.AlreadyExists)
		if !strings.Contains(fault.Message(err), name) {
			t.Errorf("%s is taken: refused with %q", name, fault.Message(err))
		}
	}
}
