package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"catalogd/authz"
	"catalogd/catalog"
	"catalogd/catalog/catalogtest"
	"catalogd/internal/fault"
	"catalogd/vending"
)

// change is one table's part of a transaction.
func (b *bench) change(name, text string) catalog.TableChange {
	b.Helper()
	return catalog.TableChange{Ident: id(name), Change: b.decode(text)}
}

func (b *bench) transact(changes ...catalog.TableChange) error {
	return b.CommitTransaction(ctx, system, "w", changes)
}

// snapshotOn adds a snapshot to a ref that must be where before says.
func (b *bench) snapshotOn(ref string, before any, snapshot, number int) string {
	return fmt.Sprintf(`{"requirements":[{"type":"assert-ref-snapshot-id","ref":%q,"snapshot-id":%v}],
		"updates":[{"action":"add-snapshot","snapshot":{"snapshot-id":%d,"parent-snapshot-id":1,"sequence-number":%d,"timestamp-ms":%d,
		"manifest-list":"%s/metadata/%d.avro","schema-id":0,"summary":{"operation":"append"}}},
		{"action":"set-snapshot-ref","ref-name":%q,"type":"branch","snapshot-id":%d}]}`,
		ref, before, snapshot, number, time.Now().UnixMilli(), b.load("t").Document.Location(), snapshot, ref, snapshot)
}

// Two writers on two branches with one sequence number: the second is told to try again, by this route too, and nothing
// of its transaction is there.
func TestField_C087_InATransaction(t *testing.T) {
	b := newBench(t)
	table, other := b.mustCreate("t"), b.mustCreate("other")
	if err := b.commitAs(system, "t", b.appendTo(table, 1)); err != nil {
		t.Fatal(err)
	}
	audit := b.decode(`{"requirements":[],"updates":[{"action":"set-snapshot-ref","ref-name":"audit","type":"branch","snapshot-id":1}]}`)
	if err := b.commitAs(system, "t", audit); err != nil {
		t.Fatal(err)
	}
	if err := b.transact(b.change("t", b.snapshotOn("main", 1, 2, 2))); err != nil {
		t.Fatal(err)
	}
	err := b.transact(catalog.TableChange{Ident: id("other"), Change: b.appendTo(other, 9)}, b.change("t", b.snapshotOn("audit", 1, 3, 2)))
	wantKind(t, err, fault.CommitConflict)
	if n := b.load("other").Document.SnapshotCount(); n != 0 {
		t.Errorf("the other table has %d snapshots of a refused transaction", n)
	}
}

// A writer of a table that was dropped and made anew does not write into the new one; nor does a sloppy one whose
// snapshot's parent the new table never had.
func TestField_C114_InATransaction(t *testing.T) {
	b := newBench(t)
	old := b.mustCreate("t")
	if err := b.DropTable(ctx, system, catalog.DropTableRequest{Warehouse: "w", Ident: id("t")}); err != nil {
		t.Fatal(err)
	}
	b.mustCreate("t")
	careful := fmt.Sprintf(`{"requirements":[{"type":"assert-table-uuid","uuid":%q}],"updates":[{"action":"set-properties","updates":{"k":"v"}}]}`, old.Document.UUID())
	wantKind(t, b.transact(b.change("t", careful)), fault.CommitConflict)
	sloppy := b.snapshotOn("main", "null", 2, 2)
	if err := b.transact(b.change("t", sloppy)); err == nil {
		t.Error("a snapshot whose parent the table never had was taken")
	}
	if d := b.load("t").Document; d.SnapshotCount() != 0 {
		t.Errorf("%d snapshots", d.SnapshotCount())
	}
}

// A requirement that main has not moved is held against where main is now, though nothing but properties change.
func TestField_C132_InATransaction(t *testing.T) {
	b := newBench(t)
	table := b.mustCreate("t")
	if err := b.commitAs(system, "t", b.appendTo(table, 1)); err != nil {
		t.Fatal(err)
	}
	stale := `{"requirements":[{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":7}],"updates":[{"action":"set-properties","updates":{"a":"1"}}]}`
	wantKind(t, b.transact(b.change("t", stale)), fault.CommitConflict)
	if err := b.transact(b.change("t", `{"requirements":[],"updates":[{"action":"set-properties","updates":{"b":"1"}}]}`)); err != nil {
		t.Error(err)
	}
	if head, _ := b.load("t").Document.CurrentSnapshotID(); head != 1 {
		t.Errorf("main is at %d", head)
	}
}

// Creations, changes and what stands already go together, and in any order; the repeat changes nothing.
func TestField_C121_CreatesAndChangesTogether(t *testing.T) {
	b := newBench(t)
	table := b.mustCreate("t")
	b.mustCreate("still")
	staged, err := b.create("staged", `,"stage-create":true`)
	if err != nil {
		t.Fatal(err)
	}
	withLocation := createCommit(staged.Document.UUID(), fmt.Sprintf(`,{"action":"set-location","location":%q}`, staged.Document.Location()))
	changes := []catalog.TableChange{
		b.change("staged", withLocation), {Ident: id("t"), Change: b.appendTo(table, 1)},
		b.change("new", createCommit(uuid.NewString(), "")), b.change("still", `{"requirements":[],"updates":[]}`),
	}
	for range 2 {
		if err := b.transact(changes...); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"staged", "new", "still", "t"} {
			b.load(name)
		}
		if n := len(b.files.Files()); n != 5 {
			t.Errorf("%d metadata files: two of tables, one of t's commit, two of what was made", n)
		}
	}
	if got := b.load("staged").Document; got.Location() != staged.Document.Location() {
		t.Errorf("the staged table is at %s", got.Location())
	}
}

// Whichever of many tables is refused, and whichever file cannot be written: nothing is changed, no file is left, and the
// refusal is that of the first table in the request that has one.
func TestField_C121_AnyOfManyTables(t *testing.T) {
	b := newBench(t)
	const tables = 20
	changes := make([]catalog.TableChange, tables)
	for i := range changes {
		name := fmt.Sprintf("t%d", i)
		b.mustCreate(name)
		changes[i] = catalog.TableChange{Ident: id(name), Change: b.properties(fmt.Sprintf(`"n":"%d"`, i))}
	}
	untouched := func(what string) {
		t.Helper()
		if n := len(b.files.Files()); n != tables {
			t.Errorf("%s: %d files", what, n)
		}
		for i := range changes {
			if _, ok := b.load(fmt.Sprintf("t%d", i)).Document.Property("n"); ok {
				t.Errorf("%s: table %d was changed", what, i)
			}
		}
	}
	for i := range changes {
		bad := append([]catalog.TableChange{}, changes...)
		bad[i].Ident = id("missing")
		for j := i + 1; j < tables; j++ {
			bad[j].Change = b.decode(fmt.Sprintf(`{"requirements":[{"type":"assert-table-uuid","uuid":%q}],"updates":[]}`, uuid.NewString()))
		}
		wantKind(t, b.transact(bad...), fault.NoSuchTable)
		untouched(fmt.Sprintf("table %d is missing", i))

		written := 0
		b.files.Inject(func(method string, _ int) (f catalogtest.Failure) {
			if method == "WriteMetadata" {
				if written++; written == i+1 {
					f.Err = errors.New("the disk is full")
				}
			}
			return f
		})
		wantKind(t, b.transact(changes...), fault.Internal)
		b.files.Inject(nil)
		untouched(fmt.Sprintf("file %d could not be written", i))
	}
	if err := b.transact(changes...); err != nil {
		t.Fatal(err)
	}
}

// The metadata that one transaction holds in memory is bounded.
func TestTransaction_MetadataIsBounded(t *testing.T) {
	b := newBench(t)
	one := b.mustCreate("one")
	b.mustCreate("two")
	set := func(name string) catalog.TableChange {
		return catalog.TableChange{Ident: id(name), Change: b.properties(`"k":"v"`)}
	}
	b.SetTransactionBytes(int64(len(one.Metadata)) * 3 / 2)
	wantKind(t, b.transact(set("one"), set("two")), fault.TooLarge)
	if err := b.transact(set("one")); err != nil {
		t.Error(err)
	}
	if n := len(b.files.Files()); n != 3 {
		t.Errorf("%d files", n)
	}
	if _, ok := b.load("two").Document.Property("k"); ok {
		t.Error("the refused transaction changed a table")
	}
}

// Transactions over the same tables in all orders, and single commits to them: nobody waits for ever, and all land.
func TestTransaction_TurnsHaveOneOrder(t *testing.T) {
	b := newBench(t)
	names := []string{"a", "b", "c", "d", "e"}
	for _, name := range names {
		b.mustCreate(name)
	}
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			var changes []catalog.TableChange
			for j := range names {
				name := names[(i+j*(1+i%4))%len(names)]
				changes = append(changes, catalog.TableChange{Ident: id(name), Change: b.properties(fmt.Sprintf(`"t%d":"v"`, i))})
			}
			if err := b.transact(changes...); err != nil {
				t.Error(err)
			}
			if err := b.commitAs(system, names[i%len(names)], b.properties(fmt.Sprintf(`"s%d":"v"`, i))); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, name := range names {
		if n := len(b.load(name).Document.Properties()); n < 20+4 {
			t.Errorf("%s has %d properties", name, n)
		}
	}
}

// A transaction that comes while single commits queue for its table is served when its turn comes: the commits that came
// later do not overtake it.
func TestTransaction_IsNotOvertaken(t *testing.T) { synctest.Test(t, transactionIsNotOvertaken) }

func transactionIsNotOvertaken(t *testing.T) {
	b := newBench(t)
	b.mustCreate("t")
	b.mustCreate("u")
	files := held{b.files, make(chan struct{}), &turns{}}
	b.Metadata = files
	var all sync.WaitGroup
	begin := func(who string, run func(context.Context) error) {
		all.Go(func() {
			if err := run(context.WithValue(ctx, writerKey{}, who)); err != nil {
				t.Errorf("%s: %v", who, err)
			}
		})
		synctest.Wait() // until it waits for its turn, or for the gate
	}
	single := func(ctx context.Context) error {
		change := b.properties(`"s":"` + uuid.NewString() + `"`)
		_, err := b.CommitTable(ctx, system, catalog.CommitTableRequest{Warehouse: "w", Ident: id("t"), Change: change})
		return err
	}
	begin("first", single)
	begin("transaction", func(ctx context.Context) error {
		return b.CommitTransaction(ctx, system, "w", []catalog.TableChange{
			{Ident: id("u"), Change: b.properties(`"t":"1"`)}, {Ident: id("t"), Change: b.properties(`"t":"1"`)},
		})
	})
	begin("second", single)
	begin("third", single)
	close(files.gate)
	all.Wait()
	// Each writes while it has its turn, so the order of writes is that of turns; who comes back first is chance.
	if got := files.turns.order(); !strings.HasPrefix(got, "first transaction ") {
		t.Errorf("served in the order %s", got)
	}
}

// held is a file system whose writes wait for a gate.
type held struct {
	catalog.MetadataIO
	gate  chan struct{}
	turns *turns // nil: nobody asks who wrote when
}

func (h held) WriteMetadata(ctx context.Context, at vending.FilePlace, body []byte) error {
	if who, ok := ctx.Value(writerKey{}).(string); ok && h.turns != nil {
		h.turns.note(who)
	}
	<-h.gate
	return h.MetadataIO.WriteMetadata(ctx, at, body)
}

type writerKey struct{}

// turns are the writers in the order in which they began to write, each once.
type turns struct {
	mu      sync.Mutex
	writers []string
}

func (o *turns) note(who string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !slices.Contains(o.writers, who) {
		o.writers = append(o.writers, who)
	}
}

func (o *turns) order() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(o.writers, " ")
}

// A request that ends while it waits for its turn takes none with it.
func TestTransaction_EndedWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.mustCreate("t")
		b.mustCreate("u")
		gate := make(chan struct{})
		b.Metadata = held{b.files, gate, nil}
		first := make(chan error, 1)
		go func() { first <- b.commitAs(system, "u", b.properties(`"k":"v"`)) }()
		synctest.Wait()
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		changes := []catalog.TableChange{{Ident: id("t"), Change: b.properties(`"k":"v"`)}, {Ident: id("u"), Change: b.properties(`"k":"w"`)}}
		wantKind(t, b.CommitTransaction(short, system, "w", changes), fault.CommitConflict)
		close(gate)
		if err := <-first; err != nil {
			t.Error(err)
		}
		if err := b.transact(changes...); err != nil {
			t.Errorf("a turn was lost: %v", err)
		}
	})
}

// An object store that does not answer is no fault of the server's: nothing has changed, and the client may try again.
func TestCommit_ObjectStoreDoesNotAnswer(t *testing.T) {
	b := newBench(t)
	b.mustCreate("t")
	b.files.Inject(catalogtest.FailMethod("WriteMetadata", fault.New(fault.Busy, "the store does not answer; try again")))
	change := catalog.TableChange{Ident: id("t"), Change: b.properties(`"n":"1"`)}
	err := b.transact(change)
	wantKind(t, err, fault.Busy)
	if m := fault.Message(err); !strings.Contains(m, "nothing changed") || !strings.Contains(m, "warehouse w ") {
		t.Error(m)
	}
	b.files.Inject(nil)
	if _, ok := b.load("t").Document.Property("n"); ok || len(b.files.Files()) != 1 {
		t.Errorf("changed: %v, %d files", ok, len(b.files.Files()))
	}
	if err := b.transact(change); err != nil {
		t.Error(err)
	}
}

// The repeat of a transaction that landed fails on what the transaction itself did: a table's schema is not the one any more
// that it was changed from. The other tables' snapshots are live, so a clean refusal would make the client delete their files.
func TestTransaction_RepeatOfALandedOne(t *testing.T) {
	b := newBench(t)
	table := b.mustCreate("t")
	b.mustCreate("evolves")
	evolve := b.change("evolves", `{"requirements":[{"type":"assert-current-schema-id","current-schema-id":0},
		{"type":"assert-last-assigned-field-id","last-assigned-field-id":1}],"updates":[
		{"action":"add-schema","schema":{"type":"struct","schema-id":1,"fields":[{"id":1,"name":"id","type":"long","required":false},
			{"id":2,"name":"more","type":"string","required":false}]}},{"action":"set-current-schema","schema-id":-1}]}`)
	changes := []catalog.TableChange{evolve, {Ident: id("t"), Change: b.appendTo(table, 1)}}
	for range 2 {
		if err := b.transact(changes...); err != nil {
			t.Fatal(err)
		}
	}
	if n := b.load("t").Document.SnapshotCount(); n != 1 {
		t.Fatalf("%d snapshots", n)
	}
	later := b.decode(`{"requirements":[],"updates":[{"action":"set-current-schema","schema-id":0}]}`)
	if err := b.commitAs(system, "evolves", later); err != nil {
		t.Fatal(err)
	}
	wantKind(t, b.transact(changes...), fault.CommitUnknown)
	if err := b.DropTable(ctx, system, catalog.DropTableRequest{Warehouse: "w", Ident: id("evolves")}); err != nil {
		t.Fatal(err)
	}
	wantKind(t, b.transact(changes...), fault.CommitUnknown)
	fresh := catalog.TableChange{Ident: id("t"), Change: b.appendTo(table, 2)}
	wantKind(t, b.transact(evolve, fresh), fault.NoSuchTable) // nothing of it ever landed
}

// Nor is what somebody else has set since overwritten by the repeat.
func TestTransaction_RepeatAfterAnotherChange(t *testing.T) {
	b := newBench(t)
	table := b.mustCreate("t")
	b.mustCreate("p")
	changes := []catalog.TableChange{{Ident: id("p"), Change: b.properties(`"k":"mine"`)}, {Ident: id("t"), Change: b.appendTo(table, 1)}}
	for range 2 {
		if err := b.transact(changes...); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.commitAs(system, "p", b.properties(`"k":"theirs"`)); err != nil {
		t.Fatal(err)
	}
	wantKind(t, b.transact(changes...), fault.CommitUnknown)
	if k, _ := b.load("p").Document.Property("k"); k != "theirs" {
		t.Errorf("k is %s", k)
	}
}

func TestField_C121_TransactionIsAllOrNothing(t *testing.T) {
	b := newBench(t)
	one, two := b.mustCreate("one"), b.mustCreate("two")
	if err := b.commitAs(system, "two", b.appendTo(two, 7)); err != nil {
		t.Fatal(err)
	}
	changes := func(second string) []catalog.TableChange {
		return []catalog.TableChange{{Ident: id("one"), Change: b.appendTo(one, 1)}, {Ident: id(second), Change: b.appendTo(two, 2)}}
	}
	wantKind(t, b.CommitTransaction(ctx, system, "w", changes("two")), fault.CommitConflict)
	wantKind(t, b.CommitTransaction(ctx, system, "w", changes("missing")), fault.NoSuchTable)
	wantKind(t, b.CommitTransaction(ctx, system, "w", changes("one")), fault.BadRequest)
	if n := b.load("one").Document.SnapshotCount(); n != 0 {
		t.Errorf("the first table has %d snapshots after refused transactions", n)
	}
}

func TestField_C123_EveryTableOfATransactionIsAuthorised(t *testing.T) {
	b := newBench(t)
	one, two := b.mustCreate("one"), b.mustCreate("two")
	writer := b.principal("writer", authz.TableWriteData, "one")
	err := b.CommitTransaction(ctx, writer, "w", []catalog.TableChange{
		{Ident: id("one"), Change: b.appendTo(one, 1)}, {Ident: id("two"), Change: b.appendTo(two, 2)}})
	wantKind(t, err, fault.Forbidden)
	if n := b.load("one").Document.SnapshotCount(); n != 0 {
		t.Errorf("the table that the caller may write has %d snapshots", n)
	}
	if err := b.commitAs(writer, "one", b.appendTo(one, 1)); err != nil {
		t.Error(err)
	}
	audits := b.store.Audits()
	if !slices.ContainsFunc(audits, func(a catalogtest.Audit) bool { return !a.Allowed && a.Principal == "writer" }) {
		t.Error("the refusal left no audit row")
	}
}
