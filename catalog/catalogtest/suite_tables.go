package catalogtest

import (
	"fmt"
	"slices"

	"github.com/google/uuid"

	"catalogd/catalog"
	"catalogd/internal/fault"
)

var tablePromises = []promise{
	{"FoundByTheirFiles", func(b *bench) {
		a, other := b.namespace("a"), b.namespace("other")
		move := b.moved(b.newTable(a, "t", "s3://bucket/x/t"), "s3://bucket/y/t")
		lone := b.table(a, "lone")
		find := func(file, want string) {
			b.Helper()
			found, err := b.store.FindTableByFile(b.Context(), b.warehouse.ID, file)
			b.must(err)
			got := ""
			if found != nil {
				got = found.Ident.String() + " " + found.MetadataLocation
			}
			if got != want {
				b.Errorf("at %s: %q, want %q", file, got, want)
			}
		}
		now := " " + move.Record.MetadataLocation
		b.must(b.rename(move.Record, other, "u"))
		for _, file := range []string{"s3://bucket/x/t/metadata/1.avro", "s3a://bucket/y/t/1.avro", "s3://bucket/Y/t/deep/er/1.avro"} {
			find(file, "other.u"+now)
		}
		for _, file := range []string{"", "/", "s3://bucket/x/t", "s3://bucket/x/t1/1.avro", "s3://bucket/x/1.avro", "s3://bucket/x/\x00/\xff/1"} {
			find(file, "")
		}
		find(lone.Location+"/metadata/1.avro", "a.lone "+lone.MetadataLocation)
		moved := move.Record
		moved.Ident = catalog.Identifier{Namespace: other.Levels, Name: "u"}
		b.drop(moved)
		find("s3://bucket/y/t/1.avro", "other.u"+now)
		b.warehouse = b.addWarehouse("another", "s3://bucket/another")
		find("s3://bucket/y/t/1.avro", "")
	}},
	{"ListGivesTablesAndNoViewsByName", func(b *bench) {
		a, other := b.namespace("a"), b.namespace("other")
		for _, name := range []string{"t2", "T0", "t10", "t1"} {
			b.table(a, name)
		}
		b.table(other, "elsewhere")
		b.view(a, "t11")
		if got := b.tables(a); !slices.Equal(got, []string{"T0", "t1", "t10", "t2"}) {
			b.Errorf("tables %q", got)
		}
		if got := b.tables(catalog.NamespaceRecord{ID: uuid.New()}); len(got) != 0 {
			b.Errorf("tables of nothing: %q", got)
		}
	}},
	{"ListPages", func(b *bench) {
		a := b.namespace("a")
		var want, got []string
		for i := range 12 {
			want = append(want, fmt.Sprintf("t%03d", i))
			b.table(a, want[i])
		}
		for page := (catalog.Page{Limit: 5}); ; {
			names := b.names(inNamespace(a.ID, catalog.KindTable, page))
			got = append(got, names...)
			if len(names) < 5 {
				break
			}
			page.After = names[4]
			b.drop(*b.load(catalog.Identifier{Namespace: a.Levels, Name: page.After})) // what a page began after may go
		}
		if !slices.Equal(got, want) {
			b.Errorf("got %q", got)
		}
	}},
	{"RenameKeepsEverythingButTheName", func(b *bench) {
		a, c := b.namespace("a"), b.namespace("a", "c")
		made := b.table(a, "t")
		b.must(b.rename(made, c, "u"))
		got := b.load(catalog.Identifier{Namespace: c.Levels, Name: "u"})
		want := made
		want.NamespaceID, want.Ident, want.Version = c.ID, catalog.Identifier{Namespace: c.Levels, Name: "u"}, 2
		b.wantTable(got, want)
		if b.load(made.Ident) != nil {
			b.Error("the old name still leads to a table")
		}
		b.table(a, "t")
		if e := b.events("rename-table"); len(e) != 1 || e[0].Securable != made.ID {
			b.Errorf("events %+v", e)
		}
	}},
	{"RenameToATakenName", func(b *bench) {
		a := b.namespace("a")
		made := b.table(a, "t")
		b.table(a, "u")
		b.view(a, "v")
		b.leavesNoTrace(func() {
			b.refused(b.rename(made, a, "u"), fault.AlreadyExists, "Cannot rename a.t to a.u. Table already exists")
			b.refused(b.rename(made, a, "v"), fault.AlreadyExists, "Cannot rename a.t to a.v. View already exists")
			b.must(b.rename(made, a, "t")) // its own name is no change
		})
		b.wantTable(b.load(made.Ident), made)
	}},
	{"RenameOfAMissingOne", func(b *bench) {
		a := b.namespace("a")
		made := b.table(a, "t")
		b.leavesNoTrace(func() {
			b.refused(b.rename(made, catalog.NamespaceRecord{ID: uuid.New(), Levels: []string{"x"}}, "t"),
				fault.NoSuchNamespace, "Namespace does not exist: x")
		})
		b.drop(made)
		b.leavesNoTrace(func() {
			b.refused(b.rename(made, a, "u"), fault.NoSuchTable, "Table does not exist: a.t")
		})
	}},
	{"WhatWasRenamedIsNotTheOneThatWasMeant", func(b *bench) {
		a, other := b.namespace("a"), b.namespace("b")
		made := b.table(a, "t")
		found := catalog.Place{NamespaceID: a.ID, Name: "t"}
		rename := func(to catalog.NamespaceRecord, name string, from catalog.Place) error {
			r := b.renaming(made, to, name)
			r.From = from
			return b.store.RenameTable(b.Context(), r)
		}
		b.must(rename(a, "u", found))
		b.leavesNoTrace(func() {
			for _, name := range []string{"u", "v", "t"} {
				b.refused(rename(a, name, found), fault.CommitRace, "")
			}
			b.refused(b.tryDropWith(made, catalog.TableDrop{From: found}), fault.CommitRace, "")
		})
		b.must(rename(other, "u", catalog.Place{NamespaceID: a.ID, Name: "u"}))
		b.refused(b.tryDropWith(made, catalog.TableDrop{From: catalog.Place{NamespaceID: a.ID, Name: "u"}}), fault.CommitRace, "")
		b.must(b.tryDropWith(made, catalog.TableDrop{From: catalog.Place{NamespaceID: other.ID, Name: "u"}}))
		b.refused(b.tryDropWith(made, catalog.TableDrop{From: catalog.Place{NamespaceID: other.ID, Name: "u"}}), fault.NoSuchTable, "")
	}},
	{"RenameStaysInItsWarehouse", func(b *bench) {
		made := b.table(b.namespace("a"), "t")
		b.warehouse = b.addWarehouse("other", "s3://other/base")
		foreign := b.namespace("f")
		b.refused(b.rename(made, foreign, "t"), fault.NoSuchNamespace, "Namespace does not exist: f")
	}},
	{"DropTakesTheName", func(b *bench) {
		a := b.namespace("a")
		made := b.table(a, "t")
		b.drop(made)
		if b.load(made.Ident) != nil || len(b.tables(a)) != 0 {
			b.Error("it is still there")
		}
		if _, dirty := b.back.MaintenanceOf(b, made.ID); dirty {
			b.Error("the worker would still look at it")
		}
		b.leavesNoTrace(func() {
			b.refused(b.tryDrop(made), fault.NoSuchTable, "Table does not exist: a.t")
		})
		again := b.table(a, "t")
		if again.ID == made.ID {
			b.Error("the new table is the old one")
		}
	}},
}

func (b *bench) rename(r catalog.TableRecord, to catalog.NamespaceRecord, name string) error {
	return b.store.RenameTable(b.Context(), b.renaming(r, to, name))
}

func (b *bench) renaming(r catalog.TableRecord, to catalog.NamespaceRecord, name string) catalog.TableRename {
	f := b.fact("rename-table", r.Ident.String())
	f.Securable = r.ID
	return catalog.TableRename{
		ID: r.ID, Kind: r.Kind, TargetNamespaceID: to.ID, Source: r.Ident,
		Target: catalog.Identifier{Namespace: to.Levels, Name: name}, Fact: f,
	}
}

func (b *bench) wantTable(got *catalog.TableRecord, want catalog.TableRecord) {
	b.Helper()
	if got == nil {
		b.Fatalf("no table, want %+v", want)
	}
	if got.Ident.String() != want.Ident.String() {
		b.Errorf("identifier %s, want %s", got.Ident, want.Ident)
	}
	g, w := *got, want
	g.Ident, w.Ident = catalog.Identifier{}, catalog.Identifier{}
	if fmt.Sprint(g) != fmt.Sprint(w) {
		b.Errorf("table %+v\nwant  %+v", g, w)
	}
}
