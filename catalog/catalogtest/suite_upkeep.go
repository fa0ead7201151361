package catalogtest

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"catalogd/catalog"
	"catalogd/internal/fault"
)

var upkeepPromises = []promise{
	{"ADroppedTableComesBackInItsNamespace", func(b *bench) {
		a := b.namespace("a")
		made := b.newTable(a, "t", "s3://bucket/x/t")
		b.must(b.commit(made))
		b.drop(made.Record)
		b.refusedOverlap(b.commit(b.again(made, b.namespace("other"), "t")), "another namespace")
		stranger := b.again(made, a, "u")
		stranger.Record.UUID = uuid.New()
		b.refusedOverlap(b.commit(stranger), "another table")
		plain := b.again(made, a, "u")
		plain.Registered = false
		b.refusedOverlap(b.commit(plain), "a create with the uuid")
		b.must(b.commit(b.again(made, a, "u")))
		b.refusedOverlap(b.commit(b.again(made, a, "v")), "registered twice")
	}},
	{"ADroppedTableComesBackToTheServersOwnPlace", func(b *bench) {
		a := b.namespace("a")
		made := b.newTable(a, "t", "")
		b.must(b.commit(made))
		b.drop(made.Record)
		b.must(b.commit(b.again(made, a, "u")))
		b.refusedOverlap(b.commit(b.again(made, a, "v")), "registered twice")
	}},
	{"ATableThatHadMovedComesBackWithBothPlaces", func(b *bench) {
		a := b.namespace("a")
		move := b.moved(b.newTable(a, "t", "s3://bucket/x/t"), "s3://bucket/y/t")
		b.drop(move.Record)
		back := b.again(move, a, "t")
		b.must(b.commit(back))
		b.refusedOverlap(b.commit(b.newTable(a, "u", "s3://bucket/x/t")), "the former place")
	}},
	{"WhatIsBeingPurgedDoesNotComeBack", func(b *bench) {
		a := b.namespace("a")
		for _, location := range []string{"s3://bucket/x/t", ""} {
			made := b.newTable(a, "t", location)
			b.must(b.commit(made))
			b.dropWith(made.Record, catalog.TableDrop{PurgeRequested: true, Purge: catalog.PurgeJob{ID: uuid.New()}})
			b.back.MarkPurging(b, made.Record.ID)
			for _, name := range []string{"t", "u"} {
				if err := b.commit(b.again(made, a, name)); !fault.Is(err, fault.BadRequest) {
					b.Errorf("%s is back: %v", name, err)
				}
			}
		}
		fresh := b.newTable(a, "t", "s3://bucket/x/t")
		b.must(b.commit(fresh)) // an engine that drops and creates means the same place
	}},
	{"APurgedTablesPlaceWaitsForItsName", func(b *bench) {
		a := b.namespace("a")
		made := b.purged(a, "t", "s3://bucket/x/t")
		for _, refused := range []catalog.PointerChange{
			b.newTable(a, "u", "s3://bucket/x/t"), b.newTable(a, "u", "s3://bucket/x/t/deeper"), b.newTable(a, "u", "s3://bucket/x"),
			b.newTable(b.namespace("other"), "t", "s3://bucket/x/t"), b.again(made, a, "t"),
		} {
			b.refusedOverlap(b.commit(refused), refused.Record.Ident.String()+" at "+refused.Record.Location)
		}
		_, err := b.store.FindDropped(b.Context(), made.Record.ID)
		b.refused(err, fault.NotFound, "")
		if list, err := b.store.ListDropped(b.Context(), b.warehouse.ID, 2); err != nil || len(list) != 0 {
			b.Errorf("listed as having files: %v %v", list, err)
		}
		b.must(b.commit(b.newTable(a, "t", "s3://bucket/x/t")))
	}},
	{"APurgedTablesPlaceIsFreeInTheEnd", func(b *bench) {
		a := b.namespace("a")
		for name, registered := range map[string]bool{"created": false, "registered": true} {
			made := b.purged(a, "t", "s3://bucket/x/"+name)
			b.back.LapseDropped(b, made.Record.ID)
			next := b.newTable(a, name, made.Record.Location)
			next.Registered = registered
			b.must(b.commit(next))
		}
	}},
	{"AFormerPlacePassesToNoOtherName", func(b *bench) {
		a := b.namespace("a")
		for i, drop := range []catalog.TableDrop{
			{}, {PurgeRequested: true, Purge: catalog.PurgeJob{ID: uuid.New()}}, {Unregistered: true},
		} {
			former, last := fmt.Sprintf("s3://bucket/x%d/t", i), fmt.Sprintf("s3://bucket/y%d/t", i)
			move := b.moved(b.newTable(a, "t", former), last)
			b.dropWith(move.Record, drop)
			if drop.PurgeRequested {
				b.back.FinishPurge(b, move.Record.ID)
			}
			b.back.LapseDropped(b, move.Record.ID)
			if drop.PurgeRequested || drop.Unregistered {
				b.must(b.commit(b.newTable(a, fmt.Sprintf("last%d", i), last)))
			}
			name := fmt.Sprintf("u%d", i)
			registered := b.newTable(a, name, former)
			registered.Registered = true
			for _, refused := range []catalog.PointerChange{b.newTable(a, name, former), b.newTable(a, name, former+"/deeper"), registered} {
				b.refusedOverlap(b.commit(refused), refused.Record.Location)
			}
		}
	}},
	{"WhatATableLeftBehindStaysWhenItsNameComesAgain", func(b *bench) {
		a := b.namespace("a")
		move := b.moved(b.newTable(a, "t", "s3://bucket/x/t"), "s3://bucket/y/t")
		b.drop(move.Record)
		b.must(b.commit(b.newTable(a, "t", "s3://bucket/y/t")))
		b.refusedOverlap(b.commit(b.newTable(a, "u", "s3://bucket/x/t")), "the former place")
	}},
	{"WhatHasLapsedIsSwept", func(b *bench) {
		a := b.namespace("a")
		dropped, fresh := b.table(a, "dropped"), b.table(a, "fresh")
		b.dropAt(dropped, time.Minute, catalog.TableDrop{})
		b.back.LapseDropped(b, dropped.ID)
		b.dropAt(fresh, 2*time.Minute, catalog.TableDrop{Unregistered: true})
		sweeps := map[string]func(){
			"stage": func() { b.staged(catalog.Identifier{Namespace: a.Levels, Name: "s"}, "") },
			"drop":  func() { b.purged(a, "p", "") },
		}
		for name, sweep := range sweeps {
			move := b.moved(b.newTable(a, "t", "s3://bucket/x/"+name), "s3://bucket/y/"+name)
			b.dropAt(move.Record, 3*time.Minute, catalog.TableDrop{Unregistered: true})
			b.back.LapseDropped(b, move.Record.ID)
			sweep()
			list, err := b.store.ListDropped(b.Context(), b.warehouse.ID, 9)
			b.must(err)
			if len(list) != 2 || list[0].Record.ID != fresh.ID || list[1].Record.ID != dropped.ID {
				b.Errorf("%s left %d rows, want the fresh one and the dropped one", name, len(list))
			}
			b.must(b.commit(b.newTable(a, "above-"+name, "s3://bucket/y/"+name+"/deeper")))
			b.refusedOverlap(b.commit(b.newTable(a, "former-"+name, "s3://bucket/x/"+name)), "the former place")
		}
	}},
	{"ADroppedTableDoesNotPassToANewNamespaceOfTheName", aNewNamespaceInheritsNothing},
	{"WhoManagesTheContentMakesAgainWhatWentWithItsNamespace", func(b *bench) {
		old := b.namespace("a")
		made := b.newTable(old, "t", "s3://bucket/x/t")
		b.must(b.commit(made))
		b.drop(made.Record)
		b.must(b.store.DropNamespace(b.Context(), old.ID, b.fact("drop-namespace", "a")))
		a := b.namespace("a")
		again, other := b.newTable(a, "t", "s3://bucket/x/t"), b.newTable(a, "u", "s3://bucket/x/t")
		b.refusedOverlap(b.commit(again), "without the right")
		other.Restores, again.Restores = true, true
		b.refusedOverlap(b.commit(other), "under another name")
		b.must(b.commit(again))
	}},
	{"AnUnregisteredTableComesBackAnywhere", func(b *bench) {
		a := b.namespace("a")
		made := b.newTable(a, "t", "s3://bucket/x/t")
		b.must(b.commit(made))
		b.dropWith(made.Record, catalog.TableDrop{Unregistered: true})
		b.refusedOverlap(b.commit(b.newTable(a, "u", "s3://bucket/x/t")), "another table, while old credentials live")
		first := b.warehouse
		b.warehouse = b.addWarehouse("elsewhere", "s3://other/base")
		made.WarehouseID = b.warehouse.ID
		there := b.again(made, b.namespace("o"), "t")
		b.must(b.commit(there))
		b.warehouse = first
	}},
	{"AnUnregisteredTablesPlaceIsFreeInTheEnd", func(b *bench) {
		a := b.namespace("a")
		made := b.newTable(a, "t", "s3://bucket/x/t")
		b.must(b.commit(made))
		b.dropWith(made.Record, catalog.TableDrop{Unregistered: true})
		b.back.LapseDropped(b, made.Record.ID)
		b.must(b.commit(b.newTable(a, "u", "s3://bucket/x/t")))
	}},
	{"ADropMayWantAPointer", func(b *bench) {
		a := b.namespace("a")
		record := b.table(a, "t")
		b.must(b.commit(b.swap(record)))
		b.leavesNoTrace(func() {
			b.refused(b.tryDropWith(record, catalog.TableDrop{At: record.MetadataLocation}), fault.CommitRace, "")
		})
		now := b.load(record.Ident)
		b.must(b.tryDropWith(*now, catalog.TableDrop{At: now.MetadataLocation}))
		b.refused(b.tryDropWith(*now, catalog.TableDrop{At: now.MetadataLocation}), fault.NoSuchTable, "")
	}},
	{"ADropWithPurgeLeavesItsJob", func(b *bench) {
		a := b.namespace("a")
		kept, purged := b.table(a, "kept"), b.table(a, "purged")
		b.drop(kept)
		if _, found := b.back.PurgeOf(b, kept.ID); found {
			b.Error("a drop without purge left a purge")
		}
		want := catalog.PurgeJob{ID: uuid.New(), Delay: 90 * time.Second}
		b.dropWith(purged, catalog.TableDrop{PurgeRequested: true, Purge: want})
		if got, found := b.back.PurgeOf(b, purged.ID); !found || got != want {
			b.Errorf("the job is %v, want %v", got, want)
		}
		dropped, err := b.store.FindDropped(b.Context(), purged.ID)
		b.must(err)
		want2 := purged
		want2.NamespaceID, want2.FormatVersion, want2.Version = uuid.Nil, 0, 0
		if got := dropped.Record; got.Ident.String() != want2.Ident.String() || got.UUID != want2.UUID ||
			got.Location != want2.Location || got.MetadataLocation != want2.MetadataLocation || got.ID != want2.ID {
			b.Errorf("dropped %+v, want %+v", got, want2)
		}
		if dropped.Warehouse.ID != b.warehouse.ID || dropped.Warehouse.Storage.Region == "" {
			b.Errorf("of warehouse %+v", dropped.Warehouse)
		}
		_, err = b.store.FindDropped(b.Context(), uuid.New())
		b.refused(err, fault.NotFound, "")
	}},
	{"WhatWasDroppedIsListed", func(b *bench) {
		b.namespace("a")
		a := b.namespace("a", "b.c")
		first, second, third := b.table(a, "first"), b.table(a, "second"), b.table(a, "third")
		job := catalog.PurgeJob{ID: uuid.New()}
		b.dropAt(first, time.Minute, catalog.TableDrop{})
		b.dropAt(second, 2*time.Minute, catalog.TableDrop{PurgeRequested: true, Purge: job})
		b.dropAt(third, 3*time.Minute, catalog.TableDrop{Unregistered: true})
		list, err := b.store.ListDropped(b.Context(), b.warehouse.ID, 2)
		b.must(err)
		if len(list) != 2 || list[0].Record.ID != third.ID || !list[0].Unregistered || list[1].Record.ID != second.ID ||
			!list[1].PurgeRequested || list[1].PurgeJob != job.ID || !list[1].DroppedAt.Equal(at.Add(2*time.Minute)) {
			b.Fatalf("listed %+v", list)
		}
		if r := list[1].Record; r.Ident.String() != second.Ident.String() || r.UUID != second.UUID || r.Kind != catalog.KindTable ||
			r.MetadataLocation != second.MetadataLocation || r.Location != second.Location {
			b.Errorf("listed %+v, want %+v", r, second)
		}
		if list, err = b.store.ListDropped(b.Context(), uuid.New(), 2); err != nil || len(list) != 0 {
			b.Errorf("another warehouse lists %v %v", list, err)
		}
	}},
	{"OutdatedFilesAreClaimedOnce", func(b *bench) {
		a := b.namespace("a")
		record := b.table(a, "t")
		change := b.swap(record)
		change.Outdated = []string{record.Location + "/metadata/x.metadata.json", record.Location + "/metadata/y.metadata.json"}
		b.must(b.commit(change))
		b.wantOutdated(10)
		b.back.LapseOutdated(b)
		b.wantOutdated(1, change.Outdated[0])
		b.wantOutdated(10, change.Outdated[1])
		b.wantOutdated(10)
		b.must(b.store.ForgetOutdated(b.Context(), change.Outdated[:1]))
		b.back.LapseOutdated(b)
		b.wantOutdated(10, change.Outdated[1])
	}},
	{"ALostSwapOutdatesNothing", func(b *bench) {
		record := b.table(b.namespace("a"), "t")
		b.must(b.commit(b.swap(record)))
		late := b.swap(record)
		late.Outdated = []string{record.MetadataLocation}
		b.refused(b.commit(late), fault.CommitRace, "")
		b.back.LapseOutdated(b)
		b.wantOutdated(10)
	}},
	{"WhatIsRegisteredIsNotOutdated", func(b *bench) {
		a := b.namespace("a")
		made := b.newTable(a, "t", "s3://bucket/x/t")
		b.must(b.commit(made))
		change := b.swap(made.Record)
		old := made.Record.MetadataLocation
		change.Outdated = []string{old}
		b.must(b.commit(change))
		b.back.LapseOutdated(b)
		b.wantOutdated(10, old)
		b.drop(change.Record)
		b.refused(b.commit(b.again(made, a, "t")), fault.Busy, "")
		b.back.LapseOutdated(b)
		b.must(b.commit(b.again(made, a, "t")))
		b.wantOutdated(10)
	}},
	{"WhatIsRegisteredInAnotherSpellingIsNotOutdated", func(b *bench) {
		a := b.namespace("a")
		made := b.newTable(a, "t", "s3://bucket/x/t")
		b.must(b.commit(made))
		change := b.swap(made.Record)
		change.Outdated = []string{made.Record.MetadataLocation}
		b.must(b.commit(change))
		b.drop(change.Record)
		again := b.again(made, a, "t")
		again.Record.MetadataLocation = strings.Replace(made.Record.MetadataLocation, "s3://", "s3a://", 1)
		b.back.LapseOutdated(b)
		b.wantOutdated(10, made.Record.MetadataLocation)
		b.refused(b.commit(again), fault.Busy, "")
		b.back.LapseOutdated(b)
		b.must(b.commit(again))
		b.back.LapseOutdated(b)
		b.wantOutdated(10)
	}},
}

// again is the registration of a table that was there before.
func (b *bench) again(before catalog.PointerChange, n catalog.NamespaceRecord, name string) catalog.PointerChange {
	c := b.newTable(n, name, before.Record.Location)
	c.Record.UUID, c.Record.MetadataLocation = before.Record.UUID, before.Record.MetadataLocation
	c.Registered = true
	return c
}

func aNewNamespaceInheritsNothing(b *bench) {
	old := b.namespace("a")
	chosen, made, gone := b.newTable(old, "t", "s3://bucket/x/t"), b.newTable(old, "u", ""), b.newTable(old, "v", "s3://bucket/x/v")
	b.must(b.commit(chosen))
	b.must(b.commit(made))
	b.must(b.commit(gone))
	b.drop(chosen.Record)
	b.drop(made.Record)
	b.dropWith(gone.Record, catalog.TableDrop{Unregistered: true})
	purged := b.purged(old, "w", "s3://bucket/x/w")
	begun := b.newTable(old, "y", "s3://bucket/x/y")
	b.must(b.commit(begun))
	b.dropWith(begun.Record, catalog.TableDrop{PurgeRequested: true, Purge: catalog.PurgeJob{ID: uuid.New()}})
	b.back.MarkPurging(b, begun.Record.ID)
	b.must(b.store.DropNamespace(b.Context(), old.ID, b.fact("drop-namespace", "a")))

	a := b.namespace("a")
	wrong := b.again(chosen, a, "t")
	wrong.Record.UUID, wrong.Restores = uuid.New(), true
	purging := b.again(begun, a, "y")
	purging.Restores = true
	for _, refused := range []catalog.PointerChange{
		b.newTable(a, "t", "s3://bucket/x/t"), b.newTable(a, "v", "s3://bucket/x/v"), b.newTable(a, "w", purged.Record.Location),
		b.newTable(a, "y", "s3://bucket/x/y"), b.again(chosen, a, "t"), b.again(made, a, "u"), wrong, purging,
	} {
		b.refusedOverlap(b.commit(refused), refused.Record.Ident.String()+" at "+refused.Record.Location)
	}
	_, err := b.stage(catalog.Identifier{Namespace: a.Levels, Name: "t"}, "s3://bucket/x/t")
	b.refusedOverlap(err, "staged")
	for _, restored := range []catalog.PointerChange{b.again(chosen, a, "t"), b.again(made, b.namespace("o"), "u")} {
		restored.Restores = true
		b.must(b.commit(restored))
	}
	b.must(b.commit(b.again(gone, a, "v")))
	again := b.again(chosen, a, "t2")
	again.Restores = true
	b.refusedOverlap(b.commit(again), "registered twice")
}

// moved makes a table and moves it.
func (b *bench) moved(made catalog.PointerChange, location string) catalog.PointerChange {
	b.Helper()
	b.must(b.commit(made))
	move := b.swap(made.Record)
	move.OldLocation, move.Record.Location = made.Record.Location, location
	b.must(b.commit(move))
	return move
}

// purged makes a table, drops it and removes its files.
func (b *bench) purged(n catalog.NamespaceRecord, name, location string) catalog.PointerChange {
	b.Helper()
	made := b.newTable(n, name, location)
	b.must(b.commit(made))
	b.dropWith(made.Record, catalog.TableDrop{PurgeRequested: true, Purge: catalog.PurgeJob{ID: uuid.New()}})
	b.back.FinishPurge(b, made.Record.ID)
	return made
}

func (b *bench) tryDropWith(r catalog.TableRecord, d catalog.TableDrop) error {
	d.ID, d.Kind, d.Ident, d.Fact = r.ID, catalog.KindTable, r.Ident, b.fact("drop-table", r.Ident.String())
	return b.store.DropTable(b.Context(), d)
}

func (b *bench) dropAt(r catalog.TableRecord, after time.Duration, d catalog.TableDrop) {
	b.Helper()
	d.ID, d.Kind, d.Ident, d.Fact = r.ID, catalog.KindTable, r.Ident, b.fact("drop-table", r.Ident.String())
	d.Fact.At = at.Add(after)
	b.must(b.store.DropTable(b.Context(), d))
}

func (b *bench) dropWith(r catalog.TableRecord, d catalog.TableDrop) {
	b.Helper()
	b.must(b.tryDropWith(r, d))
}

func (b *bench) wantOutdated(limit int, want ...string) {
	b.Helper()
	claimed, err := b.store.ClaimOutdated(b.Context(), limit)
	b.must(err)
	if len(claimed) != len(want) {
		b.Fatalf("claimed %v, want %v", claimed, want)
	}
	for i, f := range claimed {
		if f.MetadataLocation != want[i] || f.WarehouseID != b.warehouse.ID || f.Location == "" {
			b.Errorf("claimed %+v, want %s", f, want[i])
		}
	}
}
