package catalogtest

import (
	"fmt"
	"reflect"

	"github.com/google/uuid"

	"catalogd/catalog"
	"catalogd/internal/fault"
)

// keyed makes a fact one of a request with a key of its own, and with an outcome.
func (b *bench) keyed(f catalog.Fact, o catalog.Outcome) catalog.Fact {
	f.Caller.Key = catalog.RequestKey{ID: uuid.New(), Operation: f.Operation, Hash: [32]byte{1, 2, 3}}
	f.Outcome = &o
	return f
}

// outcome gives what is kept under a fact's key; nil when there is nothing.
func (b *bench) outcome(f catalog.Fact) *catalog.KeptOutcome {
	b.Helper()
	k, err := b.store.FindOutcome(b.Context(), f.Caller.Principal.ID, f.Caller.Key.ID)
	b.must(err)
	return k
}

// wantOutcome wants exactly the outcome under a fact's key.
func (b *bench) wantOutcome(f catalog.Fact, o catalog.Outcome) {
	b.Helper()
	want := &catalog.KeptOutcome{Principal: f.Caller.Principal.ID, Key: f.Caller.Key, Outcome: o}
	if got := b.outcome(f); !reflect.DeepEqual(got, want) {
		b.Errorf("kept %+v, want %+v", got, want)
	}
}

// namesIn gives the names of a namespace's tables, for comparison.
func (b *bench) namesIn(ns string) string {
	b.Helper()
	return fmt.Sprint(b.tables(*b.resolve(catalog.Lookup{Namespace: catalog.Namespace{ns}}).Namespace))
}

var landedOnce = catalog.Outcome{Table: &catalog.TableOutcome{
	ID: uuid.UUID{1}, UUID: uuid.UUID{2}, Location: "s3://bucket/l", MetadataLocation: "s3://bucket/l/metadata/m",
}}

// changesWithAKey are all changes that keep an outcome: what each does, and does again under the same key.
func (b *bench) changesWithAKey() map[string]func(f catalog.Fact) error {
	a := b.namespace("a")
	swapped, renamed, dropped, own := b.table(a, "swapped"), b.table(a, "renamed"), b.table(a, "dropped"), b.table(a, "own")
	empty, lone := b.namespace("empty"), b.table(a, "lone")
	return map[string]func(f catalog.Fact) error{
		"commit": func(f catalog.Fact) error {
			now := b.load(swapped.Ident)
			first, second := b.swap(*now), b.newTable(a, "new-"+f.ID.String(), "")
			first.Fact = f
			return b.commit(second, first)
		},
		"commit of one table": func(f catalog.Fact) error {
			change := b.swap(*b.load(lone.Ident))
			change.Fact = f
			return b.commit(change)
		},
		"create": func(f catalog.Fact) error {
			change := b.newTable(a, "made-"+f.ID.String(), "")
			change.Fact = f
			return b.commit(change)
		},
		"create namespace": func(f catalog.Fact) error {
			n := catalog.NamespaceRecord{ID: uuid.New(), Levels: catalog.Namespace{"n-" + f.ID.String()}}
			return b.store.CreateNamespace(b.Context(), catalog.NamespaceCreate{Record: n, WarehouseID: b.warehouse.ID, Fact: f})
		},
		"drop table": func(f catalog.Fact) error {
			return b.store.DropTable(b.Context(), catalog.TableDrop{ID: dropped.ID, Kind: catalog.KindTable, Ident: dropped.Ident, Fact: f})
		},
		"rename": func(f catalog.Fact) error {
			to := catalog.Identifier{Namespace: a.Levels, Name: "r-" + f.ID.String()}
			return b.store.RenameTable(b.Context(), catalog.TableRename{
				ID: renamed.ID, Kind: catalog.KindTable, TargetNamespaceID: a.ID, Source: renamed.Ident, Target: to, Fact: f,
			})
		},
		"rename to its own name": func(f catalog.Fact) error {
			return b.store.RenameTable(b.Context(), catalog.TableRename{
				ID: own.ID, Kind: catalog.KindTable, TargetNamespaceID: a.ID, Source: own.Ident, Target: own.Ident, Fact: f,
			})
		},
		"drop namespace": func(f catalog.Fact) error { return b.store.DropNamespace(b.Context(), empty.ID, f) },
	}
}

var outcomePromises = []promise{
	{"KeptWithTheChange", func(b *bench) {
		for name, change := range b.changesWithAKey() {
			f := b.keyed(b.fact("keyed", name), landedOnce)
			if err := change(f); err != nil {
				b.Fatalf("%s: %v", name, err)
			}
			b.wantOutcome(f, landedOnce)
		}
	}},
	{"ATakenKeyRollsTheChangeBack", func(b *bench) {
		for name, change := range b.changesWithAKey() {
			f := b.keyed(b.fact("keyed", name), catalog.Outcome{Message: "the second"})
			first := catalog.Outcome{Refusal: fault.AlreadyExists, Message: "the first\x00"}
			b.must(b.store.KeepOutcome(b.Context(), catalog.KeptOutcome{Principal: b.principal.ID, Key: f.Caller.Key, Outcome: first}))
			before := b.namesIn("a")
			b.leavesNoTrace(func() { b.refused(change(f), fault.RepeatLanded, "") })
			if after := b.namesIn("a"); after != before {
				b.Errorf("%s: tables %s, before %s", name, after, before)
			}
			b.wantOutcome(f, first)
		}
	}},
	{"NotKeptWithoutTheChange", func(b *bench) {
		a := b.namespace("a")
		change := b.newTable(a, "t", "")
		b.must(b.commit(change))
		again := b.newTable(a, "t", "")
		again.Fact = b.keyed(again.Fact, landedOnce)
		b.refused(b.commit(again), fault.AlreadyExists, "")
		if k := b.outcome(again.Fact); k != nil {
			b.Errorf("kept %+v of what was refused", k)
		}
		lost := b.swap(change.Record)
		lost.Fact = b.keyed(lost.Fact, landedOnce)
		b.must(b.commit(b.swap(change.Record)))
		b.refused(b.commit(lost), fault.CommitRace, "")
		if k := b.outcome(lost.Fact); k != nil {
			b.Errorf("kept %+v of a race that was lost", k)
		}
	}},
	{"PropertiesAreKeptAsAnswered", func(b *bench) {
		a := b.namespace("a")
		f := b.keyed(b.fact("update-namespace", "a"), catalog.Outcome{})
		_, err := b.store.UpdateNamespace(b.Context(), catalog.NamespaceUpdate{
			ID: a.ID, WarehouseID: b.warehouse.ID, Set: map[string]string{"k": "v"}, Remove: []string{"owner", "none"}, Fact: f,
		})
		b.must(err)
		b.wantOutcome(f, catalog.Outcome{Properties: &catalog.PropertyChanges{
			Updated: []string{"k"}, Removed: []string{"owner"}, Missing: []string{"none"},
		}})
	}},
	{"KeysBelongToPrincipals", func(b *bench) {
		f := b.keyed(b.fact("x", "x"), landedOnce)
		k := catalog.KeptOutcome{Principal: b.principal.ID, Key: f.Caller.Key, Outcome: landedOnce}
		b.must(b.store.KeepOutcome(b.Context(), k))
		b.principal.ID = uuid.New()
		f.Caller.Principal = b.principal
		if got := b.outcome(f); got != nil {
			b.Errorf("somebody else's key gives %+v", got)
		}
		k.Principal = b.principal.ID
		b.must(b.store.KeepOutcome(b.Context(), k))
	}},
	{"ExpiredKeysAreFree", func(b *bench) {
		f := b.keyed(b.fact("x", "x"), landedOnce)
		k := catalog.KeptOutcome{Principal: b.principal.ID, Key: f.Caller.Key, Outcome: landedOnce}
		b.must(b.store.KeepOutcome(b.Context(), k))
		b.refused(b.store.KeepOutcome(b.Context(), k), fault.RepeatLanded, "")
		b.back.LapseOutcome(b, b.principal.ID, k.Key.ID)
		if got := b.outcome(f); got != nil {
			b.Errorf("an expired key gives %+v", got)
		}
		k.Outcome = catalog.Outcome{Refusal: fault.Validation, Message: "new"}
		b.must(b.store.KeepOutcome(b.Context(), k))
		b.wantOutcome(f, k.Outcome)
	}},
	{"OneOfAKeyLands", func(b *bench) {
		a := b.namespace("a")
		for range roundsMax {
			f := b.keyed(b.fact("create-table", "t"), landedOnce)
			changes := make([]catalog.PointerChange, 12)
			for i := range changes {
				changes[i] = b.newTable(a, "t-"+uuid.NewString(), "")
				changes[i].Fact = f
				changes[i].Fact.ID = uuid.New()
			}
			winner := b.one(b.race(len(changes), func(i int) error { return b.commit(changes[i]) }), fault.RepeatLanded)
			for i, change := range changes {
				if made := b.load(change.Record.Ident); (made != nil) != (i == winner) {
					b.Errorf("table %d is there: %t; %d won", i, made != nil, winner)
				}
			}
		}
	}},
}
