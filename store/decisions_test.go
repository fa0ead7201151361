package store

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"catalogd/auth"
	"catalogd/catalog"
	"catalogd/internal/fault"
)

func TestTurn_OneAsksAndTheOthersLookAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDecisions()
		done, err := d.turn(t.Context(), "k")
		if err != nil || done == nil {
			t.Fatal("the first does not ask", err)
		}
		if other, err := d.turn(t.Context(), "other"); err != nil || other == nil {
			t.Error("who asks something else waits", err)
		}
		left, leave := context.WithCancel(t.Context())
		var waited atomic.Int64
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if again, err := d.turn(t.Context(), "k"); err != nil || again != nil {
					t.Error("asks beside the first", err)
				}
				waited.Add(1)
			})
			synctest.Wait()
		}
		all.Go(func() {
			if _, err := d.turn(left, "k"); !fault.Is(err, fault.Busy) {
				t.Errorf("who leaves gets %v", err)
			}
		})
		synctest.Wait()
		leave()
		synctest.Wait()
		if waited.Load() != 0 {
			t.Errorf("%d did not wait", waited.Load())
		}
		done()
		all.Wait()
		if done, err = d.turn(t.Context(), "k"); err != nil || done == nil {
			t.Error("nobody asks any more", err)
		}
		began := time.Now()
		if again, err := d.turn(t.Context(), "k"); err != nil || again != nil || time.Since(began) != turnSecondsMax {
			t.Errorf("waited %s for who never ends: %v", time.Since(began), err)
		}
	})
}

// TestResolve_ManyMissesAskOnce: many find nothing while somebody asks the same, and all of them are answered from what
// he keeps, which is marked here, if it is of the epoch that they read.
func TestResolve_ManyMissesAskOnce(t *testing.T) {
	b := newOutcomeBench(t)
	lookup := catalog.Lookup{Principal: auth.Principal{ID: uuid.New(), Kind: auth.Service}, Warehouse: "w", Namespace: catalog.Namespace{"a"}, Table: "t"}
	key := decisionKey(lookup)
	for _, c := range []struct {
		older int64
		name  string
	}{{0, "marked"}, {1, "w"}} {
		if _, err := b.near.pool.Exec(t.Context(), `UPDATE access_epoch SET value = value + 1`); err != nil {
			t.Fatal(err)
		}
		if _, err := b.far.Resolve(t.Context(), lookup); err != nil {
			t.Fatal(err)
		}
		marked, _ := b.far.decisions.find(key)
		marked.res = marked.copied()
		marked.res.Warehouse.Name = "marked"
		marked.epoch -= c.older
		done, err := b.near.decisions.turn(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		var all, came sync.WaitGroup
		for i := range 40 {
			came.Add(1)
			all.Go(func() {
				came.Done()
				res, err := b.near.resolveEither(t.Context(), lookup, i%2 == 0)
				if err != nil || res.Warehouse == nil || res.Warehouse.Name != c.name {
					t.Errorf("request %d: %+v, %v, want the warehouse %s", i, res.Warehouse, err, c.name)
				}
			})
		}
		came.Wait()
		b.near.decisions.keep(key, marked, 0)
		done()
		all.Wait()
	}
}

// resolveEither resolves alone or together with a list.
func (s *Store) resolveEither(ctx context.Context, l catalog.Lookup, alone bool) (catalog.Resolution, error) {
	if alone {
		return s.Resolve(ctx, l)
	}
	return s.ResolveNames(ctx, l, func(res catalog.Resolution) (catalog.NamesWanted, bool) {
		return catalog.NamesWanted{In: res.Namespace.ID, Kind: catalog.KindTable}, true
	}, func([]string) bool { return true })
}
