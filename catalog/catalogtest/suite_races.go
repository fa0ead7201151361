package catalogtest

import (
	"fmt"
	"strconv"
	"sync/atomic"

	"catalogd/catalog"
	"catalogd/internal/fault"
)

// racersMax is how many do the same thing at once; roundsMax is how often what only sometimes goes wrong is tried.
const (
	racersMax = 50
	roundsMax = 8
)

var racePromises = []promise{
	{"Field_C088_OneSwapWinsEachRound", func(b *bench) {
		made := b.table(b.namespace("a"), "t")
		for range 3 {
			changes := make([]catalog.PointerChange, racersMax)
			for i := range changes {
				changes[i] = b.swap(made)
			}
			winner := b.one(b.race(racersMax, func(i int) error { return b.commit(changes[i]) }), fault.CommitRace)
			made = changes[winner].Record
			b.wantTable(b.load(made.Ident), made)
		}
		if n := len(b.events("commit-table")); n != 3 {
			b.Errorf("%d events of 3 commits", n)
		}
	}},
	{"OneCreatesAName", func(b *bench) {
		a := b.namespace("a")
		changes := make([]catalog.PointerChange, 20)
		for i := range changes {
			changes[i] = b.newTable(a, "t", "")
		}
		winner := b.one(b.race(20, func(i int) error { return b.commit(changes[i]) }), fault.AlreadyExists)
		b.wantTable(b.load(changes[winner].Record.Ident), changes[winner].Record)
	}},
	{"OneCreatesANamespace", func(b *bench) {
		b.one(b.race(20, func(int) error { return b.createNamespace("a") }), fault.AlreadyExists)
	}},
	{"OneRenamesToAName", func(b *bench) {
		a := b.namespace("a")
		var made []catalog.TableRecord
		for i := range 10 {
			made = append(made, b.table(a, "t"+strconv.Itoa(i)))
		}
		b.one(b.race(10, func(i int) error { return b.rename(made[i], a, "target") }), fault.AlreadyExists)
		if n := len(b.tables(a)); n != 10 {
			b.Errorf("%d tables", n)
		}
	}},
	{"OneGetsALocation", func(b *bench) {
		a := b.namespace("a")
		for round := range roundsMax {
			// Each overlaps each other one: all lie on one line from the root down.
			location := "s3://bucket/line" + strconv.Itoa(round)
			changes := make([]catalog.PointerChange, 12)
			for i := range changes {
				location += "/" + strconv.Itoa(i)
				changes[i] = b.newTable(a, fmt.Sprintf("t%d-%d", round, i), location)
			}
			b.one(b.race(len(changes), func(i int) error { return b.commit(changes[i]) }), fault.BadRequest)
		}
	}},
	{"OneStagesALocation", func(b *bench) {
		a := b.namespace("a")
		for round := range roundsMax {
			location := "s3://bucket/one" + strconv.Itoa(round)
			b.one(b.race(12, func(i int) error {
				_, err := b.stage(catalog.Identifier{Namespace: a.Levels, Name: "t" + strconv.Itoa(i)}, location)
				return err
			}), fault.BadRequest)
		}
	}},
	{"OneGetsAUUIDsOwnPlace", func(b *bench) {
		a := b.namespace("a")
		for round := range roundsMax {
			first := b.newTable(a, "t", "")
			changes := make([]catalog.PointerChange, 12)
			for i := range changes {
				changes[i] = b.newTable(a, fmt.Sprintf("t%d-%d", round, i), first.Record.Location)
				changes[i].Record.UUID = first.Record.UUID
			}
			b.one(b.race(len(changes), func(i int) error { return b.commit(changes[i]) }), fault.BadRequest)
		}
	}},
	{"OneWarehouseGetsABase", func(b *bench) {
		b.one(b.race(8, func(i int) error {
			return b.createWarehouse("w"+strconv.Itoa(i), "s3://race/x"+[]string{"", "/y", "/y/z"}[i%3])
		}), fault.BadRequest)
	}},
	{"DropNamespaceAgainstCreateTable", func(b *bench) {
		for i := range 20 {
			n := b.namespace("n" + strconv.Itoa(i))
			change := b.newTable(n, "t", "")
			b.dropAgainst(n, func() error { return b.commit(change) })
		}
	}},
	{"DropNamespaceAgainstCreateChild", func(b *bench) {
		for i := range 20 {
			n := b.namespace("n" + strconv.Itoa(i))
			b.dropAgainst(n, func() error { return b.createNamespace(n.Levels[0], "child") })
		}
	}},
	{"DropNamespaceAgainstRename", func(b *bench) {
		a := b.namespace("a")
		for i := range 20 {
			n := b.namespace("n" + strconv.Itoa(i))
			made := b.table(a, "t"+strconv.Itoa(i))
			b.dropAgainst(n, func() error { return b.rename(made, n, "t") })
		}
	}},
	{"DropTableAgainstCommit", func(b *bench) {
		a := b.namespace("a")
		for range 20 {
			made := b.table(a, "t")
			change := b.swap(made)
			answers := b.race(2, func(i int) error {
				if i == 0 {
					return b.tryDrop(made)
				}
				return b.commit(change)
			})
			b.must(answers[0])
			if answers[1] != nil && !fault.Is(answers[1], fault.NoSuchTable) {
				b.Errorf("commit: %v", answers[1])
			}
			if b.load(made.Ident) != nil {
				b.Error("the dropped table is there")
			}
		}
	}},
	{"RenameAgainstRenameBack", func(b *bench) {
		a := b.namespace("a")
		one, two := b.table(a, "one"), b.table(a, "two")
		for range 10 {
			b.race(2, func(i int) error {
				if i == 0 {
					return b.rename(one, a, "two")
				}
				return b.rename(two, a, "one")
			})
			if n := len(b.tables(a)); n != 2 {
				b.Fatalf("%d tables", n)
			}
		}
	}},
	{"Field_C121_TransactionsOverTheSameTables", transactionsOverTheSameTables},
	{"PropertiesAreMergedOneAfterAnother", func(b *bench) {
		a := b.namespace("a")
		for _, err := range b.race(10, func(i int) error {
			_, err := b.store.UpdateNamespace(b.Context(), catalog.NamespaceUpdate{
				ID: a.ID, WarehouseID: b.warehouse.ID, Set: map[string]string{"k" + strconv.Itoa(i): "v"}, Fact: b.fact("update-namespace", "a"),
			})
			return err
		}) {
			b.must(err)
		}
		if got := b.resolve(catalog.Lookup{Namespace: a.Levels}).Namespace; len(got.Properties) != 11 || got.Version != 11 {
			b.Errorf("found %+v", got)
		}
	}},
	{"LandedIsAskedWhileItLands", func(b *bench) {
		made := b.table(b.namespace("a"), "t")
		for range 20 {
			change := b.swap(made)
			var said atomic.Bool
			answers := b.race(2, func(i int) error {
				if i == 0 {
					return b.commit(change)
				}
				landed, err := b.store.CommitLanded(b.Context(), change.Fact.ID)
				said.Store(landed)
				return err
			})
			b.must(answers[1])
			if said.Load() != (answers[0] == nil) {
				b.Fatalf("the commit said %v; whether it landed, %t", answers[0], said.Load())
			}
			if answers[0] == nil {
				made = change.Record
			}
			b.wantTable(b.load(made.Ident), made)
		}
	}},
}

// dropAgainst drops a namespace while something comes into it: one of both happens, and the other says why not.
func (b *bench) dropAgainst(n catalog.NamespaceRecord, come func() error) {
	b.Helper()
	answers := b.race(2, func(i int) error {
		if i == 0 {
			return b.store.DropNamespace(b.Context(), n.ID, b.fact("drop-namespace", n.Levels.String()))
		}
		return come()
	})
	if answers[0] != nil {
		b.refused(answers[0], fault.NamespaceNotEmpty, "")
		b.must(answers[1])
		return
	}
	b.refused(answers[1], fault.NoSuchNamespace, "Namespace does not exist: "+n.Levels.String())
	if b.resolve(catalog.Lookup{Namespace: n.Levels}).Namespace != nil {
		b.Errorf("namespace %s was dropped and is there", n.Levels)
	}
}

// transactionsOverTheSameTables has many transactions over overlapping sets of tables, named in different orders.
func transactionsOverTheSameTables(b *bench) {
	a := b.namespace("a")
	var made []catalog.TableRecord
	for i := range 4 {
		made = append(made, b.table(a, "t"+strconv.Itoa(i)))
	}
	for range 5 {
		transactions := make([][]catalog.PointerChange, 12)
		for i := range transactions {
			first, second := i%4, (i+1+i%3)%4
			transactions[i] = []catalog.PointerChange{b.swap(made[first]), b.swap(made[second])}
		}
		answers := b.race(len(transactions), func(i int) error { return b.commit(transactions[i]...) })
		moved := map[string]catalog.TableRecord{}
		for i, err := range answers {
			if err != nil {
				if !fault.Is(err, fault.CommitRace) {
					b.Errorf("transaction %d: %v", i, err)
				}
				continue
			}
			for _, change := range transactions[i] {
				if _, twice := moved[change.Record.Ident.Name]; twice {
					b.Fatalf("table %s was moved by two transactions from one pointer", change.Record.Ident)
				}
				moved[change.Record.Ident.Name] = change.Record
			}
		}
		if len(moved) == 0 {
			b.Error("nobody won")
		}
		for i := range made {
			if next, ok := moved[made[i].Ident.Name]; ok {
				made[i] = next
			}
			b.wantTable(b.load(made[i].Ident), made[i])
		}
	}
}
