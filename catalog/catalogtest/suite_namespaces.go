package catalogtest

import (
	"maps"
	"slices"
	"strconv"

	"github.com/google/uuid"

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
			page, err := b.store.ListNamespaces(b.Context(), b.warehouse.ID, parent.ID, catalog.Page{After: after, Limit: 10})
			b.must(err)
			if len(page) > 10 {
				b.Fatalf("a page of %d", len(page))
			}
			for _, n := range page {
				after = n.Levels[1]
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
	found, err := b.store.ListNamespaces(b.Context(), b.warehouse.ID, parent, p)
	b.must(err)
	var got []string
	for _, n := range found {
		got = append(got, n.Levels[len(n.Levels)-1])
	}
	if !slices.Equal(got, want) {
		b.Errorf("children %q, want %q", got, want)
	}
}
