package store

import (
	"context"
	"runtime"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"catalogd/auth"
	"catalogd/catalog"
)

// manyNames is how many tables the namespace of these tests has, manyChildren how many namespaces.
const (
	manyNames    = 100_000
	manyChildren = 20_000
)

// fillNamespace puts tables and child namespaces below the bench's namespace, and as many top levels beside it.
func fillNamespace(t *testing.T, b *outcomeBench) {
	t.Helper()
	for i, statement := range []string{`
INSERT INTO tables (id, warehouse_id, namespace_id, name, table_uuid, location, metadata_location, format_version, created_at, updated_at)
SELECT gen_random_uuid(), $1, $2, 'table_with_a_name_of_some_length_' || lpad(i::text, 6, '0'), gen_random_uuid(), '', '', 2, now(), now()
FROM generate_series(0, $3::int - 1) AS i`, `
INSERT INTO namespaces (id, warehouse_id, parent_id, levels, created_at, updated_at)
SELECT gen_random_uuid(), $1, $2, ARRAY['a', 'n' || lpad(i::text, 6, '0')], now(), now() FROM generate_series(0, $3::int - 1) AS i`, `
INSERT INTO namespaces (id, warehouse_id, levels, created_at, updated_at)
SELECT gen_random_uuid(), $1, ARRAY['n' || lpad(i::text, 6, '0')], now(), now() FROM generate_series(0, $3::int - 1) AS i
WHERE $2::uuid IS NOT NULL`} {
		if _, err := b.near.pool.Exec(t.Context(), statement, b.home, b.record.NamespaceID, []int{manyNames, manyChildren, manyChildren}[i]); err != nil {
			t.Fatal(err)
		}
	}
	for _, table := range []string{"tables", "namespaces"} {
		if _, err := b.near.pool.Exec(t.Context(), "ANALYZE "+table); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLists_OfManyNames looks at what a page and a whole list of 100,000 cost: a page is read from an index, in its
// order; the whole takes the memory of the names and little more.
func TestLists_OfManyNames(t *testing.T) {
	b := newOutcomeBench(t)
	fillNamespace(t, b)
	roles := resolveArgs(catalog.Lookup{Principal: auth.Principal{ID: uuid.New(), Roles: auth.RoleScope{All: true}}})
	for name, c := range map[string]struct {
		statement, index string
		args             pgx.NamedArgs
	}{
		"tables": {sqlListTables, "tables_name_key", pgx.NamedArgs{"namespace": b.record.NamespaceID, "kind": "table", "after": "table_with_a_name_of_some_length_050000", "limit": 1001}},
		"tables of grants": {sqlListGranted, "tables_name_key", pgx.NamedArgs{
			"principal": roles["principal"], "all_roles": true, "roles": []string{}, "namespace": b.record.NamespaceID, "kind": "table",
			"privileges": []string{"TABLE_LIST"}, "after": "", "limit": 101,
		}},
		"children":   {sqlListNamespaces, "namespaces_children", pgx.NamedArgs{"warehouse": b.home, "parent": b.record.NamespaceID, "after": "n010000", "limit": 1001}},
		"top levels": {sqlListTopNamespaces, "namespaces_", pgx.NamedArgs{"warehouse": b.home, "after": "n010000", "limit": 1001}},
	} {
		plan := explain(t, b, c.statement, c.args)
		if name == "tables of grants" { // the planner may begin at the grants, of which there are few
			if strings.Contains(plan, "Seq Scan on tables") {
				t.Errorf("%s:\n%s", name, plan)
			}
			continue
		}
		if !strings.Contains(plan, c.index) || strings.Contains(plan, "Sort") || strings.Contains(plan, "Seq Scan") {
			t.Errorf("%s: wanted is a walk along %s:\n%s", name, c.index, plan)
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	names, err := b.near.ListTables(t.Context(), b.record.NamespaceID, catalog.KindTable, catalog.Page{})
	runtime.ReadMemStats(&after)
	if err != nil || len(names) != manyNames+1 {
		t.Fatalf("%d names, %v", len(names), err)
	}
	if taken := (after.TotalAlloc - before.TotalAlloc) / manyNames; taken > 200 {
		t.Errorf("%d bytes a name", taken)
	}
	page, err := b.near.ListNamespaces(t.Context(), b.home, b.record.NamespaceID, catalog.Page{After: "n019997", Limit: 100})
	if err != nil || len(page) != 2 || page[1].Levels.String() != "a.n019999" {
		t.Errorf("the last children: %v, %v", page, err)
	}
	page, err = b.near.ListNamespaces(t.Context(), b.home, uuid.Nil, catalog.Page{After: "n019998"})
	if err != nil || len(page) != 1 || page[0].Levels.String() != "n019999" {
		t.Errorf("the last top levels: %v, %v", page, err)
	}
}

func explain(t *testing.T, b *outcomeBench, statement string, args pgx.NamedArgs) string {
	t.Helper()
	rows, err := b.near.pool.Query(context.Background(), "EXPLAIN "+statement, args)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}
