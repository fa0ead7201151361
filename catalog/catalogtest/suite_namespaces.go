package catalogtest

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"catalogd/authz"
	"catalogd/catalog"
	"catalogd/internal/fault"
)

var namespacePromises = []promise{
	{"CreatedIsFound", func(b *bench) {
		made := b.namespace("a")
		got := b.resolve(catalog.Lookup{Namespace: made.Levels}).Namespace
		if got == nil || got.ID != made.ID || got.Version != 1 || !maps.Equal(got.Properties, made.Properties) {
			b.Fatalf("found %+v, made %+v", got, made)
		}
		if e := b.events("create-namespace"); len(e) != 1 || e[0].Subject != "a" || e[0].Warehouse != b.warehouse.ID {
			b.Errorf("events %+v", e)
		}
	}},
	{"NameIsTakenOnce", func(b *bench) {
		b.namespace("a")
		b.namespace("a", "b")
		b.leavesNoTrace(func() {
			b.refused(b.createNamespace("a", "b"), fault.AlreadyExists, "Namespace already exists: a.b")
		})
	}},
	{"ParentMustBeThere", func(b *bench) {
		b.namespace("a")
		b.leavesNoTrace(func() {
			b.refused(b.createNamespace("x", "y"), fault.NoSuchNamespace, "Namespace does not exist: x")
			b.refused(b.createNamespace("a", "b", "c"), fault.NoSuchNamespace, "Namespace does not exist: a.b")
		})
	}},
	{"WarehouseMustBeThere", func(b *bench) {
		record := catalog.NamespaceRecord{ID: uuid.New(), Levels: catalog.Namespace{"a"}}
		err := b.store.CreateNamespace(b.Context(), catalog.NamespaceCreate{
			Record: record, WarehouseID: uuid.New(), Fact: b.fact("create-namespace", "a"),
		})
		b.refused(err, fault.NoSuchWarehouse, "")
	}},
	{"WarehousesHaveTheirOwn", func(b *bench) {
		b.namespace("a")
		b.warehouse = b.addWarehouse("other", "s3://other/base")
		b.namespace("a")
		if got := b.resolve(catalog.Lookup{Namespace: catalog.Namespace{"a"}}).Warehouse.Name; got != "other" {
			b.Errorf("resolved in %s", got)
		}
	}},
	{"UpdateMergesAndGivesWhatWas", updateMerges},
	{"UpdateOfAMissingOne", func(b *bench) {
		b.leavesNoTrace(func() {
			_, err := b.store.UpdateNamespace(b.Context(), catalog.NamespaceUpdate{
				ID: uuid.New(), WarehouseID: b.warehouse.ID, Set: map[string]string{"k": "v"}, Fact: b.fact("update-namespace", "a.b"),
			})
			b.refused(err, fault.NoSuchNamespace, "Namespace does not exist: a.b")
		})
	}},
	{"DropWantsItEmpty", func(b *bench) {
		a := b.namespace("a")
		drop := func(n catalog.NamespaceRecord) error {
			return b.store.DropNamespace(b.Context(), n.ID, b.fact("drop-namespace", n.Levels.String()))
		}
		child := b.namespace("a", "b")
		b.leavesNoTrace(func() { b.refused(drop(a), fault.NamespaceNotEmpty, "Namespace a is not empty.") })
		b.must(drop(child))
		t := b.table(a, "t")
		b.leavesNoTrace(func() { b.refused(drop(a), fault.NamespaceNotEmpty, "Namespace a is not empty.") })
		b.drop(t)
		b.must(drop(a))
	}},
	{"DropTakesItAway", func(b *bench) {
		a := b.namespace("a")
		b.must(b.store.DropNamespace(b.Context(), a.ID, b.fact("drop-namespace", "a")))
		if b.resolve(catalog.Lookup{Namespace: a.Levels}).Namespace != nil {
			b.Error("it is still there")
		}
		b.leavesNoTrace(func() {
			err := b.store.DropNamespace(b.Context(), a.ID, b.fact("drop-namespace", "a"))
			b.refused(err, fault.NoSuchNamespace, "Namespace does not exist: a")
		})
		b.namespace("a")
	}},
	{"ListGivesDirectChildrenByName", func(b *bench) {
		for _, levels := range [][]string{{"b"}, {"a"}, {"a", "z"}, {"a", "y"}, {"a", "y", "deep"}, {"ä"}} {
			b.namespace(levels...)
		}
		b.wantChildren(uuid.Nil, catalog.Page{}, "a", "b", "ä")
		a := b.resolve(catalog.Lookup{Namespace: catalog.Namespace{"a"}}).Namespace
		b.wantChildren(a.ID, catalog.Page{}, "y", "z")
		b.wantChildren(uuid.New(), catalog.Page{})
	}},
	{"ListPages", func(b *bench) {
		parent := b.namespace("p")
		var names []string
		for i := range 25 {
			names = append(names, "n"+strconv.Itoa(100+i))
			b.namespace("p", names[i])
		}
		var got []string
		for after := ""; ; {
			page := b.children(parent.ID, catalog.Page{After: after, Limit: 10})
			if len(page) > 10 {
				b.Fatalf("a page of %d", len(page))
			}
			for _, name := range page {
				after = name
				got = append(got, after)
			}
			if len(page) < 10 {
				break
			}
		}
		if !slices.Equal(got, names) {
			b.Errorf("got %v", got)
		}
		b.wantChildren(parent.ID, catalog.Page{After: "n123x", Limit: 10}, "n124")
	}},
	{"ResolveNamesIsResolveAndAList", resolveNames},
}

// resolveNames lists again and again what is found under one name, while that changes: what is listed is never what was
// found before.
func resolveNames(b *bench) {
	role := b.addPrincipalRole("r")
	b.addPrincipal(role)
	lists := func(l catalog.Lookup, want ...string) {
		b.Helper()
		l.Principal, l.Warehouse = b.principal, b.warehouse.Name
		for range 3 {
			var last catalog.Resolution
			var names []string
			res, err := b.store.ResolveNames(b.Context(), l, func(res catalog.Resolution) (catalog.NamesWanted, bool) {
				if last, names = res, nil; res.Namespace == nil {
					return catalog.NamesWanted{}, false
				}
				return inNamespace(res.Namespace.ID, catalog.KindTable, catalog.Page{Limit: 3}), len(res.Grants) > 0
			}, func(piece []string) bool {
				names = append(names, piece...)
				return true
			})
			b.must(err)
			plain, err := b.store.Resolve(b.Context(), l)
			b.must(err)
			for _, r := range []*catalog.Resolution{&res, &plain, &last} {
				slices.SortFunc(r.Grants, func(x, y authz.Grant) int { return strings.Compare(fmt.Sprint(x), fmt.Sprint(y)) })
			}
			if !reflect.DeepEqual(res, plain) || !reflect.DeepEqual(last, plain) {
				b.Errorf("resolved\n%+v, asked about\n%+v, want\n%+v", res, last, plain)
			}
			if !slices.Equal(names, want) {
				b.Errorf("listed %q, want %q", names, want)
			}
		}
	}
	inA := catalog.Lookup{Namespace: catalog.Namespace{"a"}}
	lists(inA)
	a := b.namespace("a")
	lists(inA)
	made := b.table(a, "t1")
	b.grant(role, authz.CatalogManageContent, authz.Root, authz.RootID)
	lists(inA, "t1")
	for _, name := range []string{"t4", "t0", "t3"} {
		b.table(a, name)
	}
	lists(inA, "t0", "t1", "t3")
	b.must(b.rename(made, a, "t9"))
	lists(inA, "t0", "t3", "t4")
	for _, name := range []string{"t0", "t3", "t4", "t9"} {
		b.drop(*b.load(catalog.Identifier{Namespace: a.Levels, Name: name}))
	}
	b.must(b.store.DropNamespace(b.Context(), a.ID, b.fact("drop-namespace", "a")))
	lists(inA)
	b.table(b.namespace("a"), "other")
	lists(inA, "other")
	b.must(b.admin.RevokePrincipalRole(b.Context(), b.principal.ID, role.ID, b.fact("revoke", "r")))
	lists(inA)
}

func updateMerges(b *bench) {
	a := b.namespace("a")
	update := func(set map[string]string, remove ...string) map[string]string {
		before, err := b.store.UpdateNamespace(b.Context(), catalog.NamespaceUpdate{
			ID: a.ID, WarehouseID: b.warehouse.ID, Set: set, Remove: remove, Fact: b.fact("update-namespace", "a"),
		})
		b.must(err)
		return before
	}
	if before := update(map[string]string{"k": "1", "l": "2"}, "owner", "absent"); !maps.Equal(before, map[string]string{"owner": "alice"}) {
		b.Errorf("before: %v", before)
	}
	if before := update(map[string]string{"k": "3"}); !maps.Equal(before, map[string]string{"k": "1", "l": "2"}) {
		b.Errorf("before the second: %v", before)
	}
	got := b.resolve(catalog.Lookup{Namespace: a.Levels}).Namespace
	if !maps.Equal(got.Properties, map[string]string{"k": "3", "l": "2"}) || got.Version != 3 {
		b.Errorf("found %+v", got)
	}
	if n := len(b.events("update-namespace")); n != 2 {
		b.Errorf("%d events", n)
	}
}

func (b *bench) wantChildren(parent uuid.UUID, p catalog.Page, want ...string) {
	b.Helper()
	if got := b.children(parent, p); !slices.Equal(got, want) {
		b.Errorf("children %q, want %q", got, want)
	}
}

func (b *bench) children(parent uuid.UUID, p catalog.Page) []string {
	b.Helper()
	return b.names(catalog.NamesWanted{WarehouseID: b.warehouse.ID, In: parent, Kind: catalog.KindNamespace, Page: p})
}
