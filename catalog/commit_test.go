package catalog_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"catalogd/catalog/catalogtest"
	"catalogd/catalog/commit"
	"catalogd/internal/fault"
)

func TestField_C088_RacingAppendsHaveOneWinner(t *testing.T) {
	b := newBench(t)
	table := b.mustCreate("t")
	const writers = 50
	errs := make([]error, writers)
	requests := make([]commit.Request, writers)
	for i := range requests {
		requests[i] = b.appendTo(table, i+1)
	}
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() { errs[i] = b.commitAs(system, "t", requests[i]) })
	}
	all.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
			continue
		}
		wantKind(t, err, fault.CommitConflict)
	}
	if won != 1 || b.load("t").Document.SnapshotCount() != 1 {
		t.Errorf("%d writers won; %d snapshots", won, b.load("t").Document.SnapshotCount())
	}
	if n := len(b.files.Files()); n != 2 {
		t.Errorf("%d metadata files are left, wanted the first and the winner's", n)
	}
}

func TestCommit_ConcurrentPropertiesAllLand(t *testing.T) {
	b := newBench(t)
	b.mustCreate("t")
	const writers = 32
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			if err := b.commitAs(system, "t", b.properties(fmt.Sprintf(`"k%d":"v"`, i))); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := len(b.load("t").Document.Properties()); n < writers {
		t.Errorf("%d properties, wanted %d", n, writers)
	}
}

// Z13: COMMIT was sent and the connection is gone.
func TestField_Z13_LostAnswerIsSettled(t *testing.T) {
	for _, applied := range []bool{true, false} {
		b := newBench(t)
		table := b.mustCreate("t")
		b.store.Inject(catalogtest.LoseAnswer("CommitPointers", 1, applied))
		if err := b.commitAs(system, "t", b.appendTo(table, 1)); err != nil {
			t.Errorf("applied %v: %v", applied, err)
		}
		b.store.Inject(nil)
		loaded := b.load("t")
		if loaded.Document.SnapshotCount() != 1 || !slices.Contains(b.files.Files(), loaded.MetadataLocation) {
			t.Errorf("applied %v: %d snapshots", applied, loaded.Document.SnapshotCount())
		}
	}
}

// The clock is the test's, so that the deadline passes while the outcome is asked for and at no other time.
func TestField_C259_UnknownForGoodDeletesNothing(t *testing.T) {
	for _, applied := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) { unknownForGood(t, applied) })
	}
}

func unknownForGood(t *testing.T, applied bool) {
	b := newBench(t)
	table := b.mustCreate("t")
	b.loseOutcome(applied)
	change := b.appendTo(table, 1)
	wantKind(t, b.commitAs(system, "t", change), fault.CommitUnknown)
	if n := len(b.files.Files()); n != 2 {
		t.Errorf("applied %v: %d files are left, wanted both", applied, n)
	}
	b.store.Inject(nil)
	if err := b.commitAs(system, "t", change); err != nil {
		t.Errorf("applied %v: the repeat: %v", applied, err)
	}
	if n := b.load("t").Document.SnapshotCount(); n != 1 {
		t.Errorf("applied %v: %d snapshots", applied, n)
	}
}

// A commit that is sent whole waits for its row's lock with an outcome that nobody knows, maybe until its time is over.
func TestCommit_WhoseTimeIsOverIsStillSettled(t *testing.T) {
	for _, applied := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			table := b.mustCreate("t")
			sent := 0
			b.store.Inject(func(method string, _ int) catalogtest.Failure {
				if method != "CommitPointers" || sent > 0 {
					return catalogtest.Failure{}
				}
				sent++
				<-time.After(2 * time.Minute) // by the clock of the test
				return catalogtest.Failure{Err: catalogtest.Unknown(), Applied: applied}
			})
			if err := b.commitAs(system, "t", b.appendTo(table, 1)); err != nil {
				t.Errorf("applied %v: %v", applied, err)
			}
			if n := b.load("t").Document.SnapshotCount(); n != 1 {
				t.Errorf("applied %v: %d snapshots", applied, n)
			}
		})
	}
}
