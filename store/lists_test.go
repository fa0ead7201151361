package store

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"catalogd/auth"
	"catalogd/authz"
	"catalogd/catalog"
	"catalogd/catalog/catalogtest"
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
		if _, err := b.near.pool.Exec(t.Context(), "VACUUM ANALYZE "+table); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLists_OfManyNames looks at what a page and a whole list of 100,000 cost: a piece is read from an index, in its order
// and from nothing else; the whole takes the memory of its pieces, one at a time.
func TestLists_OfManyNames(t *testing.T) {
	b := newOutcomeBench(t)
	fillNamespace(t, b)
	tables := catalog.NamesWanted{WarehouseID: b.home, In: b.record.NamespaceID, Kind: catalog.KindTable}
	children := catalog.NamesWanted{WarehouseID: b.home, In: b.record.NamespaceID, Kind: catalog.KindNamespace}
	top := catalog.NamesWanted{WarehouseID: b.home, Kind: catalog.KindNamespace}
	granted := tables
	granted.GrantedTo = &catalog.GrantedTo{
		Principal: auth.Principal{ID: uuid.New(), Roles: auth.RoleScope{All: true}}, Privileges: []authz.Privilege{authz.TableList},
	}
	for name, c := range map[string]struct {
		wanted catalog.NamesWanted
		behind string
		want   string
	}{
		"tables":           {tables, "table_with_a_name_of_some_length_050000", "Index Only Scan using tables_name_key"},
		"tables of grants": {granted, "", ""}, // the planner may begin at the grants, of which there are few
		"children":         {children, "n010000", "Index Only Scan using namespaces_children"},
		"top levels":       {top, "n010000", "Index Only Scan using namespaces_top"},
	} {
		statement, args := namesQuery(nameList{wanted: c.wanted}, c.behind, 1001)
		plan := explain(t, b, statement, args...)
		if strings.Contains(plan, "Seq Scan on tables") || c.want != "" && (!strings.Contains(plan, c.want) || strings.Contains(plan, "Sort")) {
			t.Errorf("%s: wanted is a walk along an index:\n%s", name, plan)
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	count := 0
	err := b.near.ListNames(t.Context(), tables, func(names []string) bool {
		if count += len(names); len(names) > namesOfPieceMax {
			t.Errorf("%d names at a time", len(names))
		}
		return true
	})
	runtime.ReadMemStats(&after)
	if err != nil || count != manyNames+1 {
		t.Fatalf("%d names, %v", count, err)
	}
	if taken := (after.TotalAlloc - before.TotalAlloc) / manyNames; taken > 200 {
		t.Errorf("%d bytes a name", taken)
	}
	children.Page = catalog.Page{After: "n019997", Limit: 100}
	if page, err := catalogtest.Names(t.Context(), b.near, children); err != nil || !slices.Equal(page, []string{"n019998", "n019999"}) {
		t.Errorf("the last children: %v, %v", page, err)
	}
	top.Page = catalog.Page{After: "n019998"}
	if page, err := catalogtest.Names(t.Context(), b.near, top); err != nil || !slices.Equal(page, []string{"n019999"}) {
		t.Errorf("the last top levels: %v, %v", page, err)
	}
}

// Pages of every size around that of a piece hold what they must, whole lists too.
func TestLists_OfAnyLength(t *testing.T) {
	b := newOutcomeBench(t)
	fillNamespace(t, b)
	wanted := catalog.NamesWanted{WarehouseID: b.home, Kind: catalog.KindNamespace}
	whole, err := catalogtest.Names(t.Context(), b.near, wanted)
	if err != nil || len(whole) != manyChildren+1 || !slices.IsSorted(whole) {
		t.Fatalf("%d names, %v", len(whole), err)
	}
	for _, limit := range []int{1, namesOfPieceMax - 1, namesOfPieceMax, namesOfPieceMax + 1, 2 * namesOfPieceMax, 2*namesOfPieceMax + 7, manyChildren, manyChildren + 2} {
		wanted.Page.Limit = limit
		for _, first := range []int{0, 5, manyChildren - namesOfPieceMax, manyChildren - 1} {
			wanted.Page.After = whole[first]
			got, err := catalogtest.Names(t.Context(), b.near, wanted)
			if want := whole[first+1:]; err != nil || !slices.Equal(got, want[:min(len(want), limit)]) {
				t.Errorf("%d behind number %d: %d names, %v", limit, first, len(got), err)
			}
		}
	}
	wanted.Page = catalog.Page{}
	pieces := 0
	if err := b.near.ListNames(t.Context(), wanted, func([]string) bool { pieces++; return pieces < 2 }); err != nil || pieces != 2 {
		t.Errorf("%d pieces for who wants two, %v", pieces, err)
	}
}

// A list for a client that does not page is what was there at one moment, however long it is: what gets another name
// meanwhile is in it once.
func TestField_C053_WholeListsAreOfOneMoment(t *testing.T) {
	b := newOutcomeBench(t)
	fillNamespace(t, b)
	wanted := catalog.NamesWanted{WarehouseID: b.home, In: b.record.NamespaceID, Kind: catalog.KindTable}
	rename := func(from, to string) {
		tag, err := b.near.pool.Exec(t.Context(), `UPDATE tables SET name = $3 WHERE namespace_id = $1 AND name = $2`, wanted.In, from, to)
		if err != nil || tag.RowsAffected() != 1 {
			t.Fatal(from, to, tag, err)
		}
	}
	const early, late = "table_with_a_name_of_some_length_000005", "table_with_a_name_of_some_length_099995"
	for _, limit := range []int{0, manyNames - 1} {
		wanted.Page.Limit = limit
		var got []string
		err := b.near.ListNames(t.Context(), wanted, func(names []string) bool {
			if len(got) == 0 {
				rename(early, "~early")
				rename(late, "!late")
			}
			got = append(got, names...)
			return true
		})
		count := func(name string) (n int) {
			for _, g := range got {
				if g == name {
					n++
				}
			}
			return n
		}
		if err != nil || count(early) != 1 || count(late) != 1 || count("~early") != 0 || count("!late") != 0 {
			t.Errorf("%d names: %d, %d, %d, %d, %v", len(got), count(early), count(late), count("~early"), count("!late"), err)
		}
		rename("~early", early)
		rename("!late", late)
	}
}

func explain(t *testing.T, b *outcomeBench, statement string, args ...any) string {
	t.Helper()
	rows, err := b.near.pool.Query(context.Background(), "EXPLAIN "+statement, args...)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}
