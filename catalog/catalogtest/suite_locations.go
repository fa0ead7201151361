package catalogtest

import (
	"strings"
	"time"

	"github.com/google/uuid"

	"catalogd/auth"
	"catalogd/catalog"
	"catalogd/internal/fault"
)

var locationPromises = []promise{
	{"TablesNeverOverlap", func(b *bench) {
		a := b.namespace("a")
		b.must(b.commit(b.newTable(a, "t", "s3://bucket/x/t")))
		b.leavesNoTrace(func() {
			for _, location := range []string{
				"s3://bucket/x/t", "s3://bucket/x/t/deep/er", "s3://bucket/x", "s3a://bucket/x/t", "s3n://bucket/x/t/y", "s3://bucket/X/T",
			} {
				b.refusedOverlap(b.commit(b.newTable(a, "u", location)), location)
				b.refusedOverlap(b.ask(b.newTable(a, "u", location)), "asked about "+location)
			}
		})
		for i, location := range []string{"s3://bucket/x/t1", "s3://bucket/x/s", "s3://bucket2/x/t", "s3://bucket/x/t-", "s3://bucket/x/t0/y"} {
			if err := b.commit(b.newTable(a, "v"+string(rune('a'+i)), location)); err != nil {
				b.Errorf("%s: %v", location, err)
			}
		}
	}},
	{"AskingAboutPlacesTakesNone", func(b *bench) {
		a := b.namespace("a")
		made := b.newTable(a, "t", "s3://bucket/x/t")
		b.must(b.commit(made))
		b.leavesNoTrace(func() {
			b.must(b.ask(b.newTable(a, "u", "s3://bucket/y"), b.swap(made.Record)))
			b.must(b.ask(b.newTable(a, "v", "s3://bucket/y/below")))
			b.refusedOverlap(b.ask(b.newTable(a, "u", "s3://bucket/y"), b.newTable(a, "v", "s3://bucket/y/below")), "two of one transaction")
			move := b.swap(made.Record)
			move.OldLocation, move.Record.Location = made.Record.Location, "s3://bucket/z"
			b.must(b.ask(move))
		})
		staged, err := b.stage(catalog.Identifier{Namespace: a.Levels, Name: "w"}, "s3://bucket/staged")
		b.must(err)
		b.refusedOverlap(b.ask(b.newTable(a, "u", "s3://bucket/staged")), "somebody's staged create")
		coming := b.newTable(a, "w", "s3://bucket/staged")
		coming.StagedUUID = staged.UUID
		b.must(b.ask(coming))
		b.must(b.commit(coming))
		b.must(b.commit(b.newTable(a, "u", "s3://bucket/y/below")))
	}},
	{"TablesMayLieBelowANamespace", func(b *bench) {
		n, err := b.tryNamespace("s3://bucket/ns/n", "n")
		b.must(err)
		other := b.namespace("other")
		b.must(b.commit(b.newTable(n, "t", "s3://bucket/ns/n/t")))
		b.must(b.commit(b.newTable(other, "u", "s3://bucket/ns/n/u")))
		for _, location := range []string{"s3://bucket/ns/n", "s3://bucket/ns", "s3://bucket/ns/n/t/inner"} {
			b.refusedOverlap(b.commit(b.newTable(n, "v", location)), location)
		}
	}},
	{"NamespacesMayNestButNotMeet", func(b *bench) {
		_, err := b.tryNamespace("s3://bucket/ns/n", "n")
		b.must(err)
		_, err = b.tryNamespace("s3://bucket/ns/n/m", "n", "m")
		b.must(err)
		_, err = b.tryNamespace("s3://bucket/ns", "outer")
		b.must(err)
		_, err = b.tryNamespace("s3a://bucket/ns/n", "twin")
		b.refusedOverlap(err, "twin")
		b.must(b.commit(b.newTable(b.namespace("o"), "t", "s3://bucket/tables/t")))
		_, err = b.tryNamespace("s3://bucket/tables/t/below", "below")
		b.refusedOverlap(err, "below a table")
		_, err = b.tryNamespace("s3://bucket/tables/t", "at")
		b.refusedOverlap(err, "at a table")
		_, err = b.tryNamespace("s3://bucket/tables", "above")
		b.must(err)
	}},
	{"WarehousesNeverShare", warehousesNeverShare},
	{"ADroppedTablesPlaceWaitsForItsName", func(b *bench) {
		a := b.namespace("a")
		made := b.newTable(a, "t", "s3://bucket/x/t")
		b.must(b.commit(made))
		b.drop(made.Record)
		for _, refused := range []catalog.PointerChange{
			b.newTable(a, "u", "s3://bucket/x/t"), b.newTable(a, "t", "s3://bucket/x/t/deeper"), b.newTable(a, "t", "s3://bucket/x"),
			b.newTable(b.namespace("other"), "t", "s3://bucket/x/t"),
		} {
			b.refusedOverlap(b.commit(refused), refused.Record.Ident.String()+" at "+refused.Record.Location)
		}
		again := b.newTable(a, "t", "s3://bucket/x/t")
		b.must(b.commit(again))
		b.refusedOverlap(b.commit(b.newTable(a, "u", "s3://bucket/x/t")), "taken again")
		b.drop(again.Record)
		b.must(b.commit(b.newTable(a, "t", "s3://bucket/x/t")))
	}},
	{"Field_C081_ManyDroppedTablesAreInNobodysWay", func(b *bench) {
		a := b.namespace("a")
		for range 300 {
			b.drop(b.table(a, "t"))
		}
		b.table(a, "t")
		b.must(b.commit(b.newTable(a, "u", "s3://bucket/chosen")))
	}},
	{"TablesOfOneUUIDAreTheirOwn", tablesOfOneUUID},
	{"AMovedTableOwnsBothPlaces", func(b *bench) {
		a := b.namespace("a")
		made := b.newTable(a, "t", "s3://bucket/x/t")
		b.must(b.commit(made))
		b.must(b.commit(b.newTable(a, "u", "s3://bucket/x/u")))
		move := b.swap(made.Record)
		move.OldLocation = made.Record.Location
		move.Record.Location = "s3://bucket/x/u/inner"
		b.leavesNoTrace(func() { b.refusedOverlap(b.commit(move), "into another table") })
		move.Record.Location = "s3://bucket/y"
		b.must(b.commit(move))
		b.refusedOverlap(b.commit(b.newTable(a, "v", "s3://bucket/y/v")), "into the new place")
		b.refusedOverlap(b.commit(b.newTable(a, "v", "s3://bucket/x/t/v")), "into the old place")
		back := b.swap(move.Record)
		back.OldLocation, back.Record.Location = "s3://bucket/y", "s3://bucket/x/t/deeper"
		b.must(b.commit(back))
	}},
	{"ANamespaceHoldsOnePlace", func(b *bench) {
		n, err := b.tryNamespace("s3://bucket/one", "n")
		b.must(err)
		set := func(location string) error {
			_, err := b.store.UpdateNamespace(b.Context(), catalog.NamespaceUpdate{
				ID: n.ID, WarehouseID: b.warehouse.ID, Set: map[string]string{"location": location}, Fact: b.fact("update-namespace", "n"),
			})
			return err
		}
		b.must(set("s3://bucket/one"))
		b.must(set("s3://bucket/two"))
		_, err = b.tryNamespace("s3://bucket/one", "m")
		b.must(err)
		b.leavesNoTrace(func() { b.refusedOverlap(set("s3://bucket/one"), "taken meanwhile") })
		_, err = b.store.UpdateNamespace(b.Context(), catalog.NamespaceUpdate{
			ID: n.ID, WarehouseID: b.warehouse.ID, Remove: []string{"location"}, Fact: b.fact("update-namespace", "n"),
		})
		b.must(err)
		two, err := b.tryNamespace("s3://bucket/two", "o")
		b.must(err)
		b.must(b.store.DropNamespace(b.Context(), two.ID, b.fact("drop-namespace", "o")))
		_, err = b.tryNamespace("s3://bucket/two", "p")
		b.must(err)
	}},
	{"ARefusalNamesNobody", func(b *bench) {
		b.must(b.commit(b.newTable(b.namespace("secret"), "treasure", "s3://bucket/hidden/treasure")))
		err := b.commit(b.newTable(b.namespace("a"), "t", "s3://bucket/hidden"))
		b.refused(err, fault.BadRequest, "")
		for _, word := range []string{"secret", "treasure"} {
			if strings.Contains(fault.Message(err), word) {
				b.Errorf("the message %q tells whose it is", fault.Message(err))
			}
		}
	}},
}

func warehousesNeverShare(b *bench) {
	a := b.namespace("a")
	b.must(b.commit(b.newTable(a, "t", "s3://bucket/shared/t")))
	n, err := b.tryNamespace("s3://bucket/shared/n", "n")
	b.must(err)
	b.must(b.commit(b.newTable(n, "u", "s3://bucket/shared/n/u")))
	first := b.warehouse
	b.warehouse = b.addWarehouse("other", "s3://other/base")
	foreign := b.namespace("a")
	for _, location := range []string{
		"s3://bucket/shared/t", "s3://bucket/shared/t/x", "s3://bucket/shared/n/x", "s3://bucket/shared",
		first.Location + "/x", first.Location, "s3://bucket",
	} {
		b.refusedOverlap(b.commit(b.newTable(foreign, "v", location)), location)
	}
	_, err = b.tryNamespace("s3://bucket/shared/n/m", "m")
	b.refusedOverlap(err, "namespace below a foreign one")
	_, err = b.tryNamespace(first.Location+"/ns", "m")
	b.refusedOverlap(err, "namespace in a foreign base")
}

// ask asks about places without taking them.
func (b *bench) ask(changes ...catalog.PointerChange) error {
	return b.store.CheckPlaces(b.Context(), changes)
}

func (b *bench) refusedOverlap(err error, what string) {
	b.Helper()
	if !fault.Is(err, fault.BadRequest) || !strings.Contains(fault.Message(err), "overlaps") {
		b.Errorf("%s: got %v, want a refused overlap", what, err)
	}
}

func (b *bench) stage(ident catalog.Identifier, location string) (catalog.StagedTable, error) {
	t := catalog.StagedTable{
		UUID: uuid.New(), WarehouseID: b.warehouse.ID, Ident: ident, Location: location, PrincipalID: b.principal.ID, TTL: time.Hour,
	}
	if location == "" {
		t.Location = b.warehouse.Location + "/" + t.UUID.String()
	}
	return t, b.store.StageTable(b.Context(), t)
}

func (b *bench) staged(ident catalog.Identifier, location string) catalog.StagedTable {
	b.Helper()
	t, err := b.stage(ident, location)
	b.must(err)
	return t
}

func (b *bench) wantStaged(ident catalog.Identifier, want ...catalog.StagedTable) {
	b.Helper()
	found, err := b.store.FindStagedTables(b.Context(), b.warehouse.ID, ident)
	b.must(err)
	if len(found) != len(want) {
		b.Fatalf("%d staged creates, want %d", len(found), len(want))
	}
	for i, f := range found {
		w := want[i]
		if f.UUID != w.UUID || f.Location != w.Location || f.PrincipalID != w.PrincipalID || f.Ident.String() != w.Ident.String() {
			b.Errorf("staged %+v, want %+v", f, w)
		}
		if f.TTL <= 0 || f.TTL > w.TTL {
			b.Errorf("%s are left of %s", f.TTL, w.TTL)
		}
	}
}

// becomes says that a staged create is committed.
func (b *bench) becomes(n catalog.NamespaceRecord, t catalog.StagedTable) catalog.PointerChange {
	change := b.newTable(n, t.Ident.Name, t.Location)
	change.Record.UUID, change.StagedUUID = t.UUID, t.UUID
	return change
}

var stagedPromises = []promise{
	{"TakesNoName", func(b *bench) {
		a := b.namespace("a")
		ident := catalog.Identifier{Namespace: a.Levels, Name: "t"}
		first := b.staged(ident, "")
		second, err := b.stage(ident, "")
		b.must(err)
		if b.load(ident) != nil || len(b.tables(a)) != 0 {
			b.Error("a staged create is visible")
		}
		found, err := b.store.FindStagedTables(b.Context(), b.warehouse.ID, ident)
		b.must(err)
		if len(found) != 2 || found[0].UUID != second.UUID || found[1].UUID != first.UUID {
			b.Errorf("found %+v, want the second and then the first", found)
		}
		b.wantStaged(catalog.Identifier{Namespace: a.Levels, Name: "u"})
		b.must(b.store.DropNamespace(b.Context(), a.ID, b.fact("drop-namespace", "a")))
	}},
	{"HoldsItsPlace", func(b *bench) {
		a := b.namespace("a")
		ident := catalog.Identifier{Namespace: a.Levels, Name: "t"}
		b.staged(ident, "s3://bucket/x/t")
		b.refusedOverlap(b.commit(b.newTable(a, "u", "s3://bucket/x")), "above")
		b.refusedOverlap(b.commit(b.newTable(a, "u", "s3://bucket/x/t")), "at")
		_, err := b.stage(catalog.Identifier{Namespace: a.Levels, Name: "u"}, "s3://bucket/x/t/y")
		b.refusedOverlap(err, "below")
	}},
	{"PassesItsPlaceToItsTable", func(b *bench) {
		a := b.namespace("a")
		t := b.staged(catalog.Identifier{Namespace: a.Levels, Name: "t"}, "s3://bucket/x/t")
		change := b.becomes(a, t)
		b.must(b.commit(change))
		b.wantTable(b.load(t.Ident), change.Record)
		b.wantStaged(t.Ident)
		b.refusedOverlap(b.commit(b.newTable(a, "u", "s3://bucket/x/t/y")), "the table's place")
	}},
	{"KeepsItsPlaceWhenTheCommitIsRefused", func(b *bench) {
		a := b.namespace("a")
		t := b.staged(catalog.Identifier{Namespace: a.Levels, Name: "t"}, "")
		b.table(a, "t")
		b.refused(b.commit(b.becomes(a, t)), fault.AlreadyExists, "Table already exists: a.t")
		b.wantStaged(t.Ident, t)
	}},
	{"MayBecomeATableElsewhere", func(b *bench) {
		a := b.namespace("a")
		t := b.staged(catalog.Identifier{Namespace: a.Levels, Name: "t"}, "s3://bucket/x/t")
		change := b.becomes(a, t)
		change.Record.Location = "s3://bucket/y"
		b.must(b.commit(change))
		b.refusedOverlap(b.commit(b.newTable(a, "u", "s3://bucket/x/t")), "files may have been written there")
		b.refusedOverlap(b.commit(b.newTable(a, "u", "s3://bucket/y/z")), "the table is there")
	}},
	{"StagedAgainByTheSamePrincipal", func(b *bench) {
		a := b.namespace("a")
		ident := catalog.Identifier{Namespace: a.Levels, Name: "t"}
		b.staged(ident, "s3://bucket/x/t")
		again := b.staged(ident, "s3://bucket/x/t")
		b.wantStaged(ident, again)
		alice := b.principal
		b.principal = auth.Principal{ID: uuid.New(), Name: "bob", Kind: auth.Service}
		_, err := b.stage(ident, "s3://bucket/x/t")
		b.refusedOverlap(err, "another principal's")
		b.refusedOverlap(b.commit(b.newTable(a, "t", "s3://bucket/x/t")), "another principal's table")
		b.principal = alice
		b.must(b.commit(b.newTable(a, "t", "s3://bucket/x/t")))
	}},
	{"OfADroppedTable", func(b *bench) {
		a := b.namespace("a")
		made := b.newTable(a, "t", "s3://bucket/x/t")
		b.must(b.commit(made))
		b.drop(made.Record)
		t := b.staged(made.Record.Ident, "s3://bucket/x/t")
		b.must(b.commit(b.becomes(a, t)))
	}},
	{"WhatHasLapsedHoldsNothing", func(b *bench) {
		a := b.namespace("a")
		ident := catalog.Identifier{Namespace: a.Levels, Name: "t"}
		lapsed := b.staged(ident, "s3://bucket/x/t")
		b.back.LapseStaged(b, lapsed.UUID)
		b.wantStaged(ident)
		b.must(b.commit(b.newTable(a, "u", "s3://bucket/x/t")))
		below := b.staged(ident, "s3://bucket/y/t/deep")
		b.back.LapseStaged(b, below.UUID)
		b.must(b.commit(b.newTable(a, "v", "s3://bucket/y")))
	}},
	{"CommitAfterItsEnd", func(b *bench) {
		a := b.namespace("a")
		t := b.staged(catalog.Identifier{Namespace: a.Levels, Name: "t"}, "")
		b.back.LapseStaged(b, t.UUID)
		b.staged(catalog.Identifier{Namespace: a.Levels, Name: "sweeper"}, "")
		b.must(b.commit(b.becomes(a, t)))
	}},
	{"UUIDIsTakenOnce", func(b *bench) {
		a := b.namespace("a")
		t := b.staged(catalog.Identifier{Namespace: a.Levels, Name: "t"}, "")
		t.Location = "s3://bucket/elsewhere"
		b.refused(b.store.StageTable(b.Context(), t), fault.AlreadyExists, "")
	}},
	{"WarehouseMustBeThere", func(b *bench) {
		b.warehouse.ID = uuid.New()
		_, err := b.stage(catalog.Identifier{Namespace: catalog.Namespace{"a"}, Name: "t"}, "")
		b.refused(err, fault.NoSuchWarehouse, "")
	}},
}

// Creators choose uuids, and two may choose the same. Nothing is found, freed, passed on or purged by a uuid alone.
func tablesOfOneUUID(b *bench) {
	a, other := b.namespace("a"), b.namespace("other")
	one, two, three := b.newTable(a, "one", "s3://bucket/x/one"), b.newTable(other, "two", "s3://bucket/x/two"), b.newTable(a, "three", "")
	two.Record.UUID, three.Record.UUID = one.Record.UUID, one.Record.UUID // the server's own place has another uuid in its name
	for _, made := range []catalog.PointerChange{one, two, three} {
		b.must(b.commit(made))
	}
	b.refusedOverlap(b.commit(b.again(two, a, "again")), "the other's place, by the uuid")
	b.must(b.store.StageTable(b.Context(), catalog.StagedTable{
		UUID: one.Record.UUID, WarehouseID: b.warehouse.ID, Ident: catalog.Identifier{Namespace: a.Levels, Name: "later"},
		Location: "s3://bucket/x/later", PrincipalID: b.principal.ID, TTL: time.Hour,
	}))
	move := b.swap(one.Record)
	b.must(b.commit(move))
	b.wantTable(b.load(two.Record.Ident), two.Record)
	b.dropWith(move.Record, catalog.TableDrop{PurgeRequested: true, Purge: catalog.PurgeJob{ID: uuid.New()}})
	b.dropWith(three.Record, catalog.TableDrop{Unregistered: true})
	b.back.FinishPurge(b, one.Record.ID)
	b.back.LapseDropped(b, one.Record.ID)
	b.wantTable(b.load(two.Record.Ident), two.Record)
	for _, kept := range []string{"s3://bucket/x/two/in", "s3://bucket/x/later/in", three.Record.Location + "/in"} {
		b.refusedOverlap(b.commit(b.newTable(a, "u", kept)), kept)
	}
	back := b.again(three, other, "back") // unregistered: it may come back anywhere, to its own place alone
	b.must(b.commit(back))
	b.wantTable(b.load(back.Record.Ident), back.Record)
	b.must(b.commit(b.newTable(a, "free", "s3://bucket/x/one")))
}
