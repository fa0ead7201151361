package store

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// gatedFetch is a database that answers when the test lets it.
type gatedFetch struct {
	mu      sync.Mutex
	sent    []int // members of each statement
	gate    chan error
	stopped int
}

func (g *gatedFetch) fetch(ctx context.Context, wanted []tableWanted) ([]tableFound, error) {
	g.mu.Lock()
	g.sent = append(g.sent, len(wanted))
	g.mu.Unlock()
	select {
	case err := <-g.gate:
		found := make([]tableFound, len(wanted))
		for i, w := range wanted {
			found[i].epoch = int64(len(w.name))
		}
		return found, err
	case <-ctx.Done():
		g.mu.Lock()
		defer g.mu.Unlock()
		g.stopped++
		return nil, ctx.Err()
	}
}

// statements gives the members of each statement so far.
func (g *gatedFetch) statements() []int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.sent)
}

func newGated() (*gatedFetch, *lookups) {
	g := &gatedFetch{gate: make(chan error)}
	return g, newLookups(g.fetch)
}

func TestLookups_ManyShareFewStatements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, l := newGated()
		defer l.close()
		var all sync.WaitGroup
		for i := range 64 {
			name := "t" + strconv.Itoa(i)
			all.Go(func() {
				found, err := l.find(t.Context(), tableWanted{name: name})
				if err != nil || found.epoch != int64(len(name)) {
					t.Errorf("%s: somebody else's answer %+v, %v", name, found, err)
				}
			})
			synctest.Wait() // each comes while the first one's statement is under way
		}
		for range 2 {
			g.gate <- nil
			synctest.Wait()
		}
		all.Wait()
		if len(g.sent) != 2 || g.sent[0] != 1 || g.sent[1] != 63 {
			t.Errorf("statements of %v members", g.sent)
		}
	})
}

// A statement that began before somebody came may not see what he knows to be committed.
func TestLookups_NobodyJoinsAStatementUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, l := newGated()
		defer l.close()
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() { _, _ = l.find(t.Context(), tableWanted{name: "t"}) })
			synctest.Wait()
		}
		if len(g.sent) != 1 {
			t.Fatalf("statements of %v members", g.sent)
		}
		g.gate <- nil
		synctest.Wait()
		if len(g.sent) != 2 || g.sent[1] != 1 {
			t.Fatalf("statements of %v members", g.sent)
		}
		g.gate <- nil
		all.Wait()
	})
}

// Whoever came before a statement was slow, or after, does not wait for it; with more slow ones than are allowed he does.
// Once they have ended there is one at a time again.
func TestLookups_NobodyWaitsForASlowStatement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, l := newGated()
		defer l.close()
		var all sync.WaitGroup
		ask := func() {
			all.Go(func() { _, _ = l.find(t.Context(), tableWanted{name: "t"}) })
			synctest.Wait()
		}
		patience := func() {
			<-time.NewTimer(lookupPatience).C
			synctest.Wait()
		}
		ask()
		ask() // waits
		if sent := g.statements(); len(sent) != 1 {
			t.Fatalf("statements of %v members", sent)
		}
		for begun := 2; begun <= lookupBatchesMax; begun++ {
			patience()
			if sent := g.statements(); len(sent) != begun {
				t.Fatalf("%d slow statements, and %v were sent", begun-1, sent)
			}
			ask() // waits for the patience with that one to end
		}
		patience()
		ask()
		if sent := g.statements(); len(sent) != lookupBatchesMax {
			t.Fatalf("statements of %v members", sent)
		}
		for range lookupBatchesMax {
			g.gate <- nil
		}
		synctest.Wait()
		if sent := g.statements(); len(sent) != lookupBatchesMax+1 || sent[lookupBatchesMax] != 2 {
			t.Errorf("statements of %v members", sent)
		}
		g.gate <- nil
		all.Wait()
		synctest.Wait()
		if l.batches != 0 || l.slow != 0 {
			t.Errorf("%d are under way at the end, %d slow", l.batches, l.slow)
		}
	})
}

func TestLookups_AStatementHasABound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, l := newGated()
		defer l.close()
		var all sync.WaitGroup
		for range 1 + 2*lookupMembersMax + 1 {
			all.Go(func() { _, _ = l.find(t.Context(), tableWanted{name: "t"}) })
			synctest.Wait()
		}
		for range 1 + 3 {
			g.gate <- nil
			synctest.Wait()
		}
		all.Wait()
		for i, n := range g.sent {
			if n > lookupMembersMax {
				t.Errorf("statement %d has %d members", i, n)
			}
		}
	})
}

func TestLookups_WhoLeavesIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, l := newGated()
		defer l.close()
		underWay, endUnderWay := context.WithCancel(t.Context())
		waiting, endWaiting := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for i := range 10 { // one is under way alone, nine wait
			ctx := waiting
			if i < 1 {
				ctx = underWay
			}
			all.Go(func() {
				if _, err := l.find(ctx, tableWanted{name: "t"}); !errors.Is(err, context.Canceled) {
					t.Errorf("got %v", err)
				}
			})
			synctest.Wait()
		}
		endWaiting()
		synctest.Wait()
		endUnderWay()
		all.Wait()
		synctest.Wait()
		if g.stopped != 1 || len(g.sent) != 1 || len(l.waiting) != 0 || l.batches != 0 {
			t.Errorf("%d statements were ended, %v sent, %d wait, %d are under way", g.stopped, g.sent, len(l.waiting), l.batches)
		}
	})
}

func TestLookups_AFailureIsToldToAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, l := newGated()
		broken := errors.New("broken")
		var all sync.WaitGroup
		for range 6 {
			all.Go(func() {
				if _, err := l.find(t.Context(), tableWanted{name: "t"}); !errors.Is(err, broken) {
					t.Errorf("got %v", err)
				}
			})
			synctest.Wait()
		}
		for range 2 {
			g.gate <- broken
			synctest.Wait()
		}
		all.Wait()
		l.close()
		if _, err := l.find(t.Context(), tableWanted{name: "t"}); err == nil {
			t.Error("an answer after the end")
		}
	})
}

// A panic in a statement that several share is an error for each of them, and the next ones are asked.
func TestLookups_APanicIsToldToAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		l := newLookups(func(context.Context, []tableWanted) ([]tableFound, error) {
			<-gate
			panic("a defect")
		})
		defer l.close()
		var all sync.WaitGroup
		for range 6 {
			all.Go(func() {
				if _, err := l.find(t.Context(), tableWanted{name: "t"}); err == nil || !strings.Contains(err.Error(), "a defect") {
					t.Errorf("got %v", err)
				}
			})
			synctest.Wait()
		}
		close(gate)
		all.Wait()
		synctest.Wait()
		if l.batches != 0 || len(l.waiting) != 0 {
			t.Errorf("%d statements are under way, %d wait", l.batches, len(l.waiting))
		}
	})
}

// TestResolve_AsksAloneWhenTheSharedStatementFails breaks each shared statement: the answers must not show it.
func TestResolve_AsksAloneWhenTheSharedStatementFails(t *testing.T) {
	s := openStore(t)
	made := newCalls(t, s)
	s.lookups.fetch = func(context.Context, []tableWanted) ([]tableFound, error) { return nil, errors.New("broken") }
	before := s.RoundTrips()
	for range 3 {
		if _, err := made.load("t"); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.RoundTrips() - before; got != 3 {
		t.Errorf("%d round trips", got)
	}
}
