package catalogtest

import (
	"slices"
	"strings"

	"github.com/google/uuid"

	"catalogd/catalog"
	"catalogd/internal/fault"
)

// oddNames are names that a query, a pattern, a path or a shell might take for something else.
var oddNames = []string{
	"'", "\"", "a'b\"c", "%", "_", "a%b", "\\", "a\\'b", "/", "a/b", "a.b", ".a", "a b", " a", "a ", "{a,b}", "NULL", "null",
	"@name", "$1", "--", "/*", ";", "ä", "a\u0308", "日本語", "🦆", "é", "e\u0301", "select", "\u200b", "İ", "ß", "SS",
}

// namesPromises are about names in general, and about what case means for them.
func namesPromises(folds bool) []promise {
	if folds {
		return append(namePromises, foldedPromises...)
	}
	return append(namePromises, exactPromises...)
}

var exactPromises = []promise{
	{"CaseTellsNamesApart", func(b *bench) {
		lower, upper := b.namespace("case"), b.namespace("CASE")
		one, two := b.table(lower, "t"), b.table(lower, "T")
		three := b.table(upper, "t")
		for _, made := range []catalog.TableRecord{one, two, three} {
			b.wantTable(b.load(made.Ident), made)
		}
	}},
	{"ListsAreInTheOrderOfBytes", func(b *bench) {
		for _, level := range []string{"b", "B", "a", "ä"} {
			b.namespace(level)
		}
		b.wantChildren(uuid.Nil, catalog.Page{}, "B", "a", "b", "ä")
	}},
}

var namePromises = []promise{
	{"OddNamesAreKeptAsTheyAre", func(b *bench) {
		var want []string
		a := b.namespace("a")
		for _, name := range oddNames {
			if b.folds && name == "null" {
				continue // one name with another of the list
			}
			n := b.namespace(name)
			made := b.table(n, name)
			b.wantTable(b.load(made.Ident), made)
			b.table(a, name)
			b.must(b.rename(made, n, name+"x"))
			b.drop(*b.load(catalog.Identifier{Namespace: n.Levels, Name: name + "x"}))
			want = append(want, name)
		}
		slices.Sort(want)
		if got := b.tables(a); !slices.Equal(got, want) {
			b.Errorf("tables %q\nwant   %q", got, want)
		}
		b.wantChildren(uuid.Nil, catalog.Page{}, slices.Sorted(slices.Values(append(want, "a")))...)
	}},
	{"DotsAreNoLevels", func(b *bench) {
		b.namespace("a")
		one, two := b.namespace("a.b"), b.namespace("a", "b")
		b.table(one, "t")
		if b.load(catalog.Identifier{Namespace: two.Levels, Name: "t"}) != nil {
			b.Error("a.b and a, b are one")
		}
	}},
	{"Field_C031_WhatCannotBeStoredIsAMissOrRefused", unstorableNames},
	{"Field_C032_LongNamesAreRefused", func(b *bench) {
		a := b.namespace("a")
		long := strings.Repeat("x7q!", 400) + uuid.NewString()
		for _, err := range []error{
			b.createNamespace(long + strings.Repeat(uuid.NewString(), 200)),
			b.commit(b.newTable(a, long+incompressible(9000), "")),
		} {
			if err != nil && !fault.Is(err, fault.BadRequest) {
				b.Errorf("got %v (%s), want a refusal or success", err, fault.KindOf(err))
			}
		}
		if b.load(catalog.Identifier{Namespace: catalog.Namespace{incompressible(9000)}, Name: "t"}) != nil {
			b.Error("found a table")
		}
	}},
}

// incompressible gives a text that no index row can hold by packing it.
func incompressible(bytes int) string {
	var text strings.Builder
	for text.Len() < bytes {
		text.WriteString(uuid.NewString())
	}
	return text.String()[:bytes]
}

func unstorableNames(b *bench) {
	a := b.namespace("a")
	b.table(a, "t")
	for _, name := range []string{"\x00", "t\x00", "\xff", "a\xc3", "\xed\xa0\x80"} {
		b.leavesNoTrace(func() {
			b.refused(b.createNamespace(name), fault.BadRequest, "")
			b.refused(b.commit(b.newTable(a, name, "")), fault.BadRequest, "")
		})
		res := b.resolve(catalog.Lookup{Warehouse: name, Namespace: catalog.Namespace{"a"}})
		if res.Warehouse != nil {
			b.Errorf("%q leads to a warehouse", name)
		}
		res = b.resolve(catalog.Lookup{Namespace: catalog.Namespace{"a", name}, Table: "t"})
		if res.Namespace != nil || res.Table != nil || len(res.Ancestors) != 1 {
			b.Errorf("%q: resolved %+v", name, res)
		}
		if b.load(catalog.Identifier{Namespace: a.Levels, Name: name}) != nil {
			b.Errorf("%q leads to a table", name)
		}
		_, err := b.store.FindWarehouse(b.Context(), name)
		b.refused(err, fault.NoSuchWarehouse, "")
		b.wantStaged(catalog.Identifier{Namespace: a.Levels, Name: name})
	}
	if names := b.names(inNamespace(a.ID, catalog.KindTable, catalog.Page{After: "s\x00z", Limit: 5})); !slices.Equal(names, []string{"t"}) {
		b.Errorf("after a name with U+0000: %q", names)
	}
	_, err := b.store.UpdateNamespace(b.Context(), catalog.NamespaceUpdate{
		ID: a.ID, WarehouseID: b.warehouse.ID, Set: map[string]string{"k": "a\x00b"}, Fact: b.fact("update-namespace", "a"),
	})
	b.refused(err, fault.BadRequest, "")
}
