package catalog_test

import (
	"slices"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"catalogd/auth"
	"catalogd/authz"
	"catalogd/catalog"
)

// crowd is a service with people, roles and grants that are drawn.
type crowd struct {
	*bench
	auditor catalog.Caller // may list all grants
	people  []catalog.Caller
	on      []catalog.SecurableName
}

func newCrowd(b *bench, t *rapid.T) *crowd {
	c := &crowd{bench: b}
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	found, err := b.store.FindWarehouse(ctx, "w")
	must(err)
	hire := func(name string) catalog.Caller {
		p := catalog.PrincipalRecord{ID: uuid.New(), Name: name + uuid.NewString(), ClientID: uuid.NewString(), Kind: auth.Service}
		must(b.store.CreatePrincipal(ctx, p, auth.StoredSecret{}, fact()))
		return catalog.Caller{Principal: auth.Principal{ID: p.ID, Name: p.Name, Kind: auth.Service, Roles: auth.RoleScope{All: true}}}
	}
	role := func(warehouse uuid.UUID) catalog.RoleRecord {
		r := catalog.RoleRecord{ID: uuid.New(), WarehouseID: warehouse, Name: uuid.NewString()}
		must(b.store.CreateRole(ctx, r, fact()))
		return r
	}
	var holders, roles []catalog.RoleRecord
	for range 3 {
		holders, roles = append(holders, role(uuid.Nil)), append(roles, role(found.ID))
		c.people = append(c.people, hire("x"))
	}
	c.auditor = hire("auditor")
	auditors, seer := role(uuid.Nil), role(found.ID)
	must(b.store.AssignPrincipalRole(ctx, c.auditor.Principal.ID, auditors.ID, fact()))
	must(b.store.AssignCatalogRole(ctx, auditors.ID, seer.ID, fact()))
	must(b.store.AddGrant(ctx, seer, catalog.RoleGrant{Privilege: authz.CatalogManageAccess, Kind: authz.Catalog, ID: found.ID}, fact()))
	must(b.store.AddGrant(ctx, auditors, catalog.RoleGrant{Privilege: authz.ServiceManageAccess, Kind: authz.Root, ID: authz.RootID}, fact()))

	for range rapid.IntRange(1, 5).Draw(t, "members") {
		p, h := rapid.SampledFrom(c.people).Draw(t, "who"), rapid.SampledFrom(holders).Draw(t, "role")
		must(b.store.AssignPrincipalRole(ctx, p.Principal.ID, h.ID, fact()))
	}
	for range rapid.IntRange(1, 5).Draw(t, "roles") {
		h, r := rapid.SampledFrom(holders).Draw(t, "holder"), rapid.SampledFrom(roles).Draw(t, "catalog role")
		must(b.store.AssignCatalogRole(ctx, h.ID, r.ID, fact()))
	}
	res, err := b.store.Resolve(ctx, catalog.Lookup{Warehouse: "w", Namespace: catalog.Namespace{"a"}, Table: "t"})
	must(err)
	path := res.Path()
	for range rapid.IntRange(0, 5).Draw(t, "grants") {
		on := rapid.SampledFrom(path[1:]).Draw(t, "on")
		must(b.store.AddGrant(ctx, rapid.SampledFrom(roles).Draw(t, "to"), catalog.RoleGrant{
			Privilege: rapid.SampledFrom(authz.Rows()).Draw(t, "privilege").Name, Kind: on.Kind, ID: on.ID,
		}, fact()))
	}
	c.on = []catalog.SecurableName{
		{}, {Warehouse: "w"}, {Warehouse: "w", Namespace: catalog.Namespace{"a"}}, {Warehouse: "w", Namespace: catalog.Namespace{"a"}, Table: "t"},
	}
	return c
}

func fact() catalog.Fact { return catalog.Fact{ID: uuid.New()} }

// Whoever may by "can I" is listed by "who can", nobody else is, and what a caller is told of himself is what the
// operations decide.
func TestAccess_AllAnswersAgree(t *testing.T) {
	b := newBench(t)
	b.mustCreate("t")
	rapid.Check(t, func(t *rapid.T) {
		c := newCrowd(b, t)
		q := catalog.Question{On: rapid.SampledFrom(c.on).Draw(t, "about")}
		if rapid.Bool().Draw(t, "operation") {
			q.Operation = rapid.SampledFrom(catalog.OperationsExplained()).Draw(t, "name")
		} else {
			q.Privilege = rapid.SampledFrom(authz.Rows()).Draw(t, "asked").Name
		}
		who, err := b.WhoCan(ctx, c.auditor, q, catalog.Page{})
		var may []string
		for _, p := range c.people {
			answers, errAnswer := b.CanI(ctx, c.auditor, p.Principal.Name, []catalog.Question{q})
			own, errOwn := b.CanI(ctx, p, "", []catalog.Question{q})
			if (err == nil) != (errAnswer == nil) || (err == nil) != (errOwn == nil) {
				t.Fatalf("%+v: who can %v, can he %v, can I %v", q, err, errAnswer, errOwn)
			}
			if err != nil {
				return // a question that means nothing
			}
			if answers[0].Allowed != own[0].Allowed {
				t.Fatalf("%+v: %+v to another, %+v to himself", q, answers[0], own[0])
			}
			if answers[0].Allowed {
				may = append(may, p.Principal.Name)
			}
			if answers[0].Allowed == (len(answers[0].Missing) > 0) || answers[0].Reason == "" {
				t.Fatalf("an answer without its why: %+v", answers[0])
			}
		}
		var listed []string
		for _, a := range who.Who {
			if slices.ContainsFunc(c.people, func(p catalog.Caller) bool { return p.Principal.Name == a.Principal }) {
				listed = append(listed, a.Principal)
			}
		}
		slices.Sort(may)
		if !slices.Equal(may, listed) {
			t.Fatalf("%+v: may %v, listed %v", q, may, listed)
		}
	})
}

// What is told of loading and listing a table is what loading and listing do.
func TestCanI_IsWhatTheOperationsDo(t *testing.T) {
	b := newBench(t)
	b.mustCreate("t")
	id := catalog.Identifier{Namespace: catalog.Namespace{"a"}, Name: "t"}
	rapid.Check(t, func(t *rapid.T) {
		c := newCrowd(b, t)
		p := rapid.SampledFrom(c.people).Draw(t, "asker")
		for operation, err := range map[string]error{
			"table-exists": b.TableExists(ctx, p, "w", id), "namespace-exists": b.NamespaceExists(ctx, p, "w", id.Namespace),
		} {
			answers, errAnswer := b.CanI(ctx, p, "", []catalog.Question{{Operation: operation, On: c.on[3]}})
			if errAnswer != nil || answers[0].Allowed != (err == nil) {
				t.Fatalf("%s ends in %v, and the answer is %+v, %v", operation, err, answers, errAnswer)
			}
		}
	})
}

func TestRemedies(t *testing.T) {
	lack := func(p authz.Privilege, on catalog.SecurableName) []catalog.Lack {
		return []catalog.Lack{{Privilege: p, On: on}}
	}
	table := catalog.SecurableName{Warehouse: "lake", Namespace: catalog.Namespace{"a", "b"}, Table: "t"}
	dotted := catalog.SecurableName{Warehouse: "the lake", Namespace: catalog.Namespace{"a.b"}, View: "it's"}
	for _, c := range []struct {
		lacks []catalog.Lack
		roles []catalog.HeldRole
		want  []string
	}{
		{lack(authz.TableDrop, table), []catalog.HeldRole{{PrincipalRole: "r"}, {PrincipalRole: "r", CatalogRole: "c"}}, []string{"catalogd grant create TABLE_DROP -w lake --role c --table a.b.t"}},
		{lack(authz.TableDrop, table), []catalog.HeldRole{{PrincipalRole: "r"}, {PrincipalRole: "r", CatalogRole: "catalog_admin"}}, []string{
			"catalogd role create ROLE -w lake", "catalogd role assign ROLE -w lake --principal-role r", "catalogd grant create TABLE_DROP -w lake --role ROLE --table a.b.t",
		}},
		{lack(authz.TableDrop, table), []catalog.HeldRole{{PrincipalRole: "service_admin"}, {PrincipalRole: "service_admin", CatalogRole: "catalog_admin"}}, []string{
			"catalogd role create PRINCIPAL_ROLE", "catalogd role assign PRINCIPAL_ROLE --principal ann",
			"catalogd role create ROLE -w lake", "catalogd role assign ROLE -w lake --principal-role PRINCIPAL_ROLE", "catalogd grant create TABLE_DROP -w lake --role ROLE --table a.b.t",
		}},
		{lack(authz.CatalogCreate, catalog.SecurableName{}), nil, []string{"catalogd role assign service_admin --principal ann"}},
		{lack(authz.PrincipalImpersonate, catalog.SecurableName{}), nil, []string{
			"catalogd role create PRINCIPAL_ROLE", "catalogd role assign PRINCIPAL_ROLE --principal ann", "catalogd grant create PRINCIPAL_IMPERSONATE --principal-role PRINCIPAL_ROLE",
		}},
		{lack(authz.PrincipalImpersonate, catalog.SecurableName{}), []catalog.HeldRole{{PrincipalRole: "r"}}, []string{"catalogd grant create PRINCIPAL_IMPERSONATE --principal-role r"}},
		{lack(authz.CatalogDrop, catalog.SecurableName{Warehouse: "lake"}), nil, []string{"catalogd role assign service_admin --principal ann"}},
		{lack(authz.NamespaceList, catalog.SecurableName{Warehouse: "lake"}), []catalog.HeldRole{{PrincipalRole: "r", CatalogRole: "c"}}, []string{"catalogd grant create NAMESPACE_LIST -w lake --role c"}},
		{lack(authz.ViewDrop, dotted), []catalog.HeldRole{{PrincipalRole: "r", CatalogRole: "c"}}, []string{`catalogd grant create VIEW_DROP -w 'the lake' --role c --namespace '["a.b"]' --view 'it'\''s'`}},
		{append(lack(authz.TableDrop, table), catalog.Lack{Privilege: authz.TableCreate, On: catalog.SecurableName{Warehouse: "lake", Namespace: table.Namespace}}), []catalog.HeldRole{{PrincipalRole: "r"}}, []string{
			"catalogd role create ROLE -w lake", "catalogd role assign ROLE -w lake --principal-role r",
			"catalogd grant create TABLE_DROP -w lake --role ROLE --table a.b.t", "catalogd grant create TABLE_CREATE -w lake --role ROLE --namespace a.b",
		}},
	} {
		if got := catalog.Remedies("ann", c.lacks, c.roles); !slices.Equal(got, c.want) {
			t.Errorf("%+v with %v:\n%q\nwant\n%q", c.lacks, c.roles, got, c.want)
		}
	}
}
