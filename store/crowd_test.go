package store

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"catalogd/auth"
	"catalogd/authz"
	"catalogd/catalog"
	"catalogd/internal/pgserver/pgtest"
	"catalogd/store/crowd"
	"catalogd/vending"
)

// crowdOfTests is so large that nobody should read whole tables of it.
var crowdOfTests = crowd.Size{Warehouses: 4, Namespaces: 200, Tables: 10, Roles: 250, Grants: 99, Principals: 20_000}

// crowdBench is somebody with 1,000 grants in a crowd that has more than a hundred times as many.
type crowdBench struct {
	store      *Store // with one connection
	connection *pgx.Conn
	principal  auth.Principal
	home       uuid.UUID // the warehouse
	namespaces map[string]uuid.UUID
}

func newCrowdBench(t *testing.T) *crowdBench {
	t.Helper()
	database := pgtest.Database(t)
	b := &crowdBench{
		store: openAt(t, Config{URL: database, MaxConns: 1}), connection: connect(t, database), home: uuid.New(), namespaces: map[string]uuid.UUID{},
		principal: auth.Principal{ID: uuid.New(), Name: "somebody", Kind: auth.Service, Roles: auth.RoleScope{All: true}},
	}
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	fact := func() catalog.Fact { return catalog.Fact{ID: uuid.New(), At: time.Now(), Operation: "set-up"} }
	must(b.store.CreateWarehouse(t.Context(), catalog.Warehouse{ID: b.home, Name: "w", Location: "s3://bucket/w", Storage: vending.Profile{StorageType: "S3"}}, fact()))
	who := crowd.Somebody{Principal: b.principal.Name, Warehouse: "w", Listed: "listed", Picked: "picked", Holding: "holding", Table: "table_000001"}
	for _, name := range []string{who.Listed, who.Picked, who.Holding} {
		b.namespaces[name] = uuid.New()
		record := catalog.NamespaceRecord{ID: b.namespaces[name], Levels: catalog.Namespace{name}}
		must(b.store.CreateNamespace(t.Context(), catalog.NamespaceCreate{Record: record, WarehouseID: b.home, Fact: fact()}))
	}
	_, err := b.connection.Exec(t.Context(), `
INSERT INTO tables (id, warehouse_id, namespace_id, name, table_uuid, location, metadata_location, format_version, created_at, updated_at)
SELECT gen_random_uuid(), warehouse_id, namespaces.id, 'table_' || lpad(n::text, 6, '0'), gen_random_uuid(), '', '', 2, now(), now()
FROM namespaces CROSS JOIN generate_series(1, 1000) AS n`)
	must(err)
	record := catalog.PrincipalRecord{ID: b.principal.ID, Name: b.principal.Name, ClientID: b.principal.Name, Kind: auth.Service}
	must(b.store.CreatePrincipal(t.Context(), record, auth.StoredSecret{Algorithm: auth.AlgorithmHMAC, Form: []byte("x")}, fact()))
	filling := connect(t, database)
	must(crowd.Fill(t.Context(), filling, crowdOfTests))
	must(crowd.Introduce(t.Context(), filling, who))
	must(crowd.Join(t.Context(), filling, who, 4, 6))
	_, err = filling.Exec(t.Context(), `VACUUM ANALYZE`)
	must(err)
	all, held, err := crowd.Count(t.Context(), filling, who)
	must(err)
	if held != 1_000 || all < 100*held {
		t.Fatalf("%d grants, and somebody has %d of them", all, held)
	}
	return b
}

var (
	wholeTables   = regexp.MustCompile(`Seq Scan on (\w+)[^\n]*`)
	buffersOfPlan = regexp.MustCompile(`(?m)^  Buffers: shared(?: hit=(\d+))?(?: read=(\d+))?`)
)

// plan runs a statement as the database would the first times, or as it does when it has one plan for all arguments.
func (b *crowdBench) plan(t *testing.T, mode, statement string, args ...any) string {
	t.Helper()
	if len(args) == 1 {
		if named, ok := args[0].(pgx.NamedArgs); ok {
			var err error
			if statement, args, err = named.RewriteQuery(t.Context(), b.connection, statement, args); err != nil {
				t.Fatal(err)
			}
		}
	}
	places := make([]string, len(args))
	for i := range args {
		places[i] = "$" + strconv.Itoa(i+1)
	}
	for _, step := range []string{"SET plan_cache_mode = " + mode, "PREPARE looked_at AS " + statement} {
		if _, err := b.connection.Exec(t.Context(), step); err != nil {
			t.Fatal(err)
		}
	}
	defer func() {
		if _, err := b.connection.Exec(t.Context(), "DEALLOCATE looked_at"); err != nil {
			t.Fatal(err)
		}
	}()
	execute := "EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF) EXECUTE looked_at"
	if len(places) > 0 {
		execute += "(" + strings.Join(places, ", ") + ")"
	}
	rows, err := b.connection.Query(t.Context(), execute, append([]any{pgx.QueryExecModeSimpleProtocol}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}

// TestPlans_OfManyGrants: what others were granted costs nothing. No statement that decides about access reads a whole
// table, but those that are small by their nature, and each looks at a bounded number of pages.
func TestPlans_OfManyGrants(t *testing.T) {
	b := newCrowdBench(t)
	lookup := func(namespace, table string) pgx.NamedArgs {
		l := catalog.Lookup{Principal: b.principal, Warehouse: "w", Table: table}
		if namespace != "" {
			l.Namespace = catalog.Namespace{namespace}
		}
		return resolveArgs(l)
	}
	root := lookup("", "")
	root["owner"] = ownerArg(b.principal)
	picked := catalog.NamesWanted{WarehouseID: b.home, In: b.namespaces["picked"], Kind: catalog.KindTable, GrantedTo: &catalog.GrantedTo{
		Principal: b.principal, Privileges: authz.Implying(authz.TableList),
	}}
	sqlPicked, pickedArgs := namesQuery(nameList{wanted: picked}, "", 1001)
	listed := picked
	listed.In, listed.GrantedTo = b.namespaces["listed"], nil
	sqlListed, listedArgs := namesQuery(nameList{wanted: listed}, "", 1001)
	whole, err := b.store.Resolve(t.Context(), catalog.Lookup{Principal: b.principal, Warehouse: "w", Namespace: catalog.Namespace{"holding"}, Table: "table_000001"})
	if err != nil || len(whole.Grants) == 0 {
		t.Fatal(whole, err)
	}
	kept, _ := b.store.decisions.find(decisionKey(catalog.Lookup{Principal: b.principal, Warehouse: "w", Namespace: catalog.Namespace{"holding"}}))
	roles := kept.tableRoleIDs
	sqlPickedTo, pickedToArgs := namesQuery(nameList{wanted: picked, acting: roles}, "", 1001)
	if len(kept.tableRoles) != 5 {
		t.Errorf("roles with grants on tables: %v", kept.tableRoles)
	}
	small := map[string]bool{"access_epoch": true, "warehouses": true, "network_policies": true, "principal_keys": true, "federated_identities": true,
		"personal_tokens": true, "revoked_tokens": true, "principal_secrets": true} // empty here, or a row for each warehouse
	for name, c := range map[string]struct {
		statement string
		args      []any
		pages     int
	}{
		"resolve a table":                 {sqlResolve, []any{lookup("holding", "table_000001")}, 300},
		"resolve a namespace":             {sqlResolve, []any{lookup("listed", "")}, 300},
		"resolve a warehouse":             {sqlResolve, []any{lookup("", "")}, 300},
		"look a table up with its grants": {sqlFindTablesGrants, []any{[]string{b.namespaces["holding"].String()}, []string{"table_000001"}, []string{roles}}, 40},
		"look a table up":                 {sqlFindTables, []any{[]string{b.namespaces["holding"].String()}, []string{"table_000001"}}, 100},
		"root grants":                     {sqlResolveRootGrants, []any{root}, 100},
		"warehouses of who names none":    {sqlResolveWarehouses, []any{root}, 300},
		"list by grants":                  {sqlPicked, pickedArgs, 150},
		"list by grants of kept roles":    {sqlPickedTo, pickedToArgs, 100},
		"list":                            {sqlListed, listedArgs, 100},
	} {
		for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
			plan := b.plan(t, mode, c.statement, c.args...)
			for _, m := range wholeTables.FindAllStringSubmatch(plan, -1) {
				if !small[m[1]] {
					t.Errorf("%s, %s: %s is read whole", name, mode, m[1])
				}
			}
			pages := 0
			if m := buffersOfPlan.FindStringSubmatch(plan); m != nil {
				for _, n := range m[1:] {
					count, _ := strconv.Atoi("0" + n)
					pages += count
				}
			}
			if pages == 0 || pages > c.pages {
				t.Errorf("%s, %s: %d pages, at most %d are expected", name, mode, pages, c.pages)
			}
			if t.Failed() {
				t.Fatalf("%s, %s: %d pages\n%s", name, mode, pages, plan)
			}
		}
	}
}

// TestHotStatements_AreNotPlannedAnewInACrowd: where there is much to choose from the database would rather plan for each
// caller, which costs more than what it asks.
func TestHotStatements_AreNotPlannedAnewInACrowd(t *testing.T) {
	b := newCrowdBench(t)
	for i := range 20 {
		p := b.principal
		p.Roles = auth.RoleScope{All: i%2 == 0, Names: []string{"somebody"}}
		askAboutAccess(t, b.store, catalog.Lookup{
			Principal: p, Warehouse: "w", Namespace: catalog.Namespace{[]string{"listed", "picked", "holding"}[i%3]}, Table: fmt.Sprintf("table_%06d", i%7),
		})
		if _, err := b.connection.Exec(t.Context(), "UPDATE access_epoch SET value = value + 1"); err != nil {
			t.Fatal(err)
		}
	}
	wantFewPlans(t, b.store)
}

// TestFindTables_GivesGrantsOfTheRolesAskedFor: each member of a statement gets those of its own roles, and who has too
// many to name them gets all. Either way a decision counts only what it holds.
func TestFindTables_GivesGrantsOfTheRolesAskedFor(t *testing.T) {
	b := newOutcomeBench(t)
	roles := make([]uuid.UUID, lookupRolesMax+2)
	ctx, own := t.Context(), auth.Principal{ID: uuid.New(), Name: "p", Kind: auth.Service, Roles: auth.RoleScope{All: true}}
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	fact := func() catalog.Fact { return catalog.Fact{ID: uuid.New(), At: time.Now(), Operation: "set-up"} }
	must(b.near.CreatePrincipal(ctx, catalog.PrincipalRecord{ID: own.ID, Name: "p", ClientID: "p", Kind: auth.Service}, auth.StoredSecret{Algorithm: auth.AlgorithmHMAC, Form: []byte("x")}, fact()))
	holder := catalog.RoleRecord{ID: uuid.New(), Name: "p"}
	must(b.near.CreateRole(ctx, holder, fact()))
	must(b.near.AssignPrincipalRole(ctx, own.ID, holder.ID, fact()))
	for i := range roles {
		roles[i] = uuid.New()
		r := catalog.RoleRecord{ID: roles[i], WarehouseID: b.home, Name: fmt.Sprintf("r%02d", i)}
		must(b.near.CreateRole(ctx, r, fact()))
		must(b.near.AddGrant(ctx, r, catalog.RoleGrant{Privilege: authz.TableReadData, Kind: authz.Table, ID: b.record.ID}, fact()))
	}
	want := func(roles string) tableWanted {
		return tableWanted{namespace: b.record.NamespaceID, name: "t", roles: roles}
	}
	found, err := b.near.findTables(ctx, []tableWanted{
		want(""), want(idArray(slices.Values(roles[:1]))), want(idArray(slices.Values(roles[1:4]))), want(everyRole),
	})
	must(err)
	for i, n := range []int{0, 1, 3, len(roles)} {
		if len(found[i].grants) != n || n == 1 && found[i].grants[0].RoleID != roles[0] {
			t.Errorf("member %d: %d grants, not %d", i, len(found[i].grants), n)
		}
	}
	// The last role is somebody else's.
	for held := 1; held < len(roles); held++ {
		must(b.near.AssignCatalogRole(ctx, holder.ID, roles[held-1], fact()))
		for range 2 {
			res, err := b.near.Resolve(ctx, catalog.Lookup{Principal: own, Warehouse: "w", Namespace: catalog.Namespace{"a"}, Table: "t"})
			must(err)
			if len(res.Grants) != held {
				t.Errorf("%d grants through %d roles", len(res.Grants), held)
			}
		}
	}
}
