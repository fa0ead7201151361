package catalogtest

import (
	"context"
	"fmt"
	"strconv"

	"github.com/google/uuid"

	"catalogd/catalog"
	"catalogd/internal/fault"
)

var commitPromises = []promise{
	{"CreateMakesTheRow", func(b *bench) {
		change := b.newTable(b.namespace("a"), "t", "")
		b.must(b.commit(change))
		b.wantTable(b.load(change.Record.Ident), change.Record)
		if e := b.events("create-table"); len(e) != 1 || e[0].ID != change.Fact.ID {
			b.Errorf("events %+v", e)
		}
	}},
	{"CreateWithATakenName", func(b *bench) {
		a := b.namespace("a")
		b.table(a, "t")
		b.view(a, "v")
		b.leavesNoTrace(func() {
			b.refused(b.commit(b.newTable(a, "t", "")), fault.AlreadyExists, "Table already exists: a.t")
			b.refused(b.commit(b.newTable(a, "v", "")), fault.AlreadyExists, "View with same name already exists: a.v")
		})
	}},
	{"CreateInAMissingNamespace", func(b *bench) {
		gone := catalog.NamespaceRecord{ID: uuid.New(), Levels: []string{"x", "y"}}
		b.leavesNoTrace(func() {
			b.refused(b.commit(b.newTable(gone, "t", "")), fault.NoSuchNamespace, "Namespace does not exist: x.y")
		})
	}},
	{"SwapMovesThePointer", func(b *bench) {
		made := b.table(b.namespace("a"), "t")
		change := b.swap(made)
		change.Record.FormatVersion = 3
		b.must(b.commit(change))
		b.wantTable(b.load(made.Ident), change.Record)
	}},
	{"Field_C092_SwapFromAnOldPointerIsALostRace", func(b *bench) {
		made := b.table(b.namespace("a"), "t")
		first, second := b.swap(made), b.swap(made)
		b.must(b.commit(first))
		b.leavesNoTrace(func() { b.refused(b.commit(second), fault.CommitRace, "") })
		b.wantTable(b.load(made.Ident), first.Record)
	}},
	{"SwapOfADroppedTable", func(b *bench) {
		made := b.table(b.namespace("a"), "t")
		b.drop(made)
		b.leavesNoTrace(func() { b.refused(b.commit(b.swap(made)), fault.NoSuchTable, "Table does not exist: a.t") })
	}},
	{"SwapFollowsARename", func(b *bench) {
		a := b.namespace("a")
		made := b.table(a, "t")
		b.must(b.rename(made, a, "u"))
		change := b.swap(made)
		b.must(b.commit(change))
		got := b.load(catalog.Identifier{Namespace: a.Levels, Name: "u"})
		if got == nil || got.MetadataLocation != change.Record.MetadataLocation {
			b.Errorf("found %+v", got)
		}
	}},
	{"SwapOfWhatWasRenamedMeanwhile", func(b *bench) {
		a, other := b.namespace("a"), b.namespace("other")
		for i, to := range []catalog.NamespaceRecord{a, other} {
			made := b.table(a, fmt.Sprintf("t%d", i))
			change := b.swap(made)
			change.From = catalog.Place{NamespaceID: a.ID, Name: made.Ident.Name}
			b.must(b.rename(made, to, fmt.Sprintf("u%d", i)))
			b.leavesNoTrace(func() { b.refused(b.commit(change), fault.CommitRace, "") })
			change.Fact, change.From = b.fact("commit-table", "again"), catalog.Place{NamespaceID: to.ID, Name: fmt.Sprintf("u%d", i)}
			b.must(b.commit(change))
		}
	}},
	{"Field_C121_AllOrNone", allOrNone},
	{"SwapAndCreateInOne", func(b *bench) {
		a := b.namespace("a")
		made := b.table(a, "t")
		created, swapped := b.newTable(a, "u", ""), b.swap(made)
		b.must(b.commit(created, swapped))
		b.wantTable(b.load(created.Record.Ident), created.Record)
		b.wantTable(b.load(made.Ident), swapped.Record)
		for _, id := range []uuid.UUID{created.Fact.ID, swapped.Fact.ID} {
			b.wantLanded(id, true)
		}
	}},
	{"FactsAreWrittenOncePerChange", func(b *bench) {
		a := b.namespace("a")
		one, two := b.table(a, "t"), b.table(a, "u")
		before := len(b.back.AuditRows(b))
		b.must(b.commit(b.swap(one), b.swap(two)))
		if n := len(b.events("commit-table")); n != 2 {
			b.Errorf("%d events", n)
		}
		rows := b.back.AuditRows(b)
		if len(rows) != before+2 {
			b.Fatalf("%d audit rows", len(rows)-before)
		}
		last := rows[len(rows)-1]
		if !last.Allowed || last.Principal != "alice" || last.Operation != "commit-table" || last.Event == uuid.Nil {
			b.Errorf("audit row %+v", last)
		}
	}},
	{"MaintenanceIsTold", func(b *bench) {
		change := b.newTable(b.namespace("a"), "t", "")
		b.must(b.commit(change))
		b.wantMaintenance(change.Record.ID, false)
		on, off := true, false
		for _, state := range []*bool{&on, &off, &on, nil} {
			change = b.swap(change.Record)
			change.Maintenance = state
			b.must(b.commit(change))
			b.wantMaintenance(change.Record.ID, state != nil && *state)
		}
	}},
	{"FenceLetsTheHolderThrough", fenceHolds},
	{"WhatLandedIsSaidToHaveLanded", func(b *bench) {
		change := b.newTable(b.namespace("a"), "t", "")
		b.must(b.commit(change))
		b.wantLanded(change.Fact.ID, true)
		b.wantLanded(change.Fact.ID, true)
	}},
	{"WhatDidNotLandNeverWill", func(b *bench) {
		made := b.table(b.namespace("a"), "t")
		change := b.swap(made)
		b.wantLanded(change.Fact.ID, false)
		b.refused(b.commit(change), fault.CommitRace, "")
		b.wantTable(b.load(made.Ident), made)
		b.wantLanded(change.Fact.ID, false)
	}},
	{"RefusedIsSaidNotToHaveLanded", func(b *bench) {
		a := b.namespace("a")
		b.table(a, "t")
		change := b.newTable(a, "t", "")
		b.refused(b.commit(change), fault.AlreadyExists, "")
		b.wantLanded(change.Fact.ID, false)
	}},
	{"AnEndedRequestChangesNothing", func(b *bench) {
		made := b.table(b.namespace("a"), "t")
		ctx, cancel := context.WithCancel(b.Context())
		cancel()
		b.leavesNoTrace(func() {
			err := b.store.CommitPointers(ctx, []catalog.PointerChange{b.swap(made)}, catalog.Fence{})
			b.refused(err, fault.Busy, "")
		})
		b.wantTable(b.load(made.Ident), made)
	}},
}

// allOrNone has a transaction whose last change fails, in each way and at each place.
func allOrNone(b *bench) {
	a, other := b.namespace("a"), b.namespace("b")
	var made []catalog.TableRecord
	for i := range 4 {
		made = append(made, b.table(a, "t"+strconv.Itoa(i)))
	}
	stale := made[0]
	moved := b.swap(made[0])
	b.must(b.commit(moved))
	made[0] = moved.Record
	dropped := b.table(other, "dropped")
	b.drop(dropped)
	b.table(other, "taken")
	for name, bad := range map[string]struct {
		change catalog.PointerChange
		kind   fault.Kind
	}{
		"stale pointer": {b.swap(stale), fault.CommitRace},
		"dropped table": {b.swap(dropped), fault.NoSuchTable},
		"taken name":    {b.newTable(other, "taken", ""), fault.AlreadyExists},
		"no namespace":  {b.newTable(catalog.NamespaceRecord{ID: uuid.New()}, "t", ""), fault.NoSuchNamespace},
		"overlap":       {b.newTable(other, "inside", made[1].Location+"/x"), fault.BadRequest},
	} {
		for place := range 4 {
			changes := []catalog.PointerChange{b.swap(made[1]), b.swap(made[2]), b.swap(made[3])}
			changes = append(changes[:min(place, 3):min(place, 3)], append([]catalog.PointerChange{bad.change}, changes[min(place, 3):]...)...)
			b.leavesNoTrace(func() {
				if err := b.commit(changes...); !fault.Is(err, bad.kind) {
					b.Errorf("%s at %d: got %v, want %s", name, place, err, bad.kind)
				}
			})
		}
	}
	for _, r := range made {
		b.wantTable(b.load(r.Ident), r)
	}
}

func fenceHolds(b *bench) {
	made := b.table(b.namespace("a"), "t")
	fence := catalog.Fence{JobID: uuid.New(), Epoch: 7}
	try := func(f catalog.Fence) error {
		change := b.swap(made)
		err := b.store.CommitPointers(b.Context(), []catalog.PointerChange{change}, f)
		if err == nil {
			made = change.Record
		}
		return err
	}
	b.leavesNoTrace(func() { b.refused(try(fence), fault.VersionConflict, "") })
	b.back.SetLease(b, fence, true)
	b.must(try(fence))
	b.leavesNoTrace(func() {
		b.refused(try(catalog.Fence{JobID: fence.JobID, Epoch: 6}), fault.VersionConflict, "")
		b.refused(try(catalog.Fence{JobID: fence.JobID, Epoch: 8}), fault.VersionConflict, "")
		b.refused(try(catalog.Fence{JobID: uuid.New(), Epoch: 7}), fault.VersionConflict, "")
	})
	b.back.SetLease(b, fence, false)
	b.leavesNoTrace(func() { b.refused(try(fence), fault.VersionConflict, "") })
	b.must(try(catalog.Fence{}))
	b.wantTable(b.load(made.Ident), made)
}

func (b *bench) wantLanded(id uuid.UUID, want bool) {
	b.Helper()
	landed, err := b.store.CommitLanded(b.Context(), id)
	b.must(err)
	if landed != want {
		b.Fatalf("landed %t, want %t", landed, want)
	}
}

func (b *bench) wantMaintenance(table uuid.UUID, enabled bool) {
	b.Helper()
	if on, dirty := b.back.MaintenanceOf(b, table); on != enabled || !dirty {
		b.Errorf("maintenance enabled %t, dirty %t; want %t, true", on, dirty, enabled)
	}
}
