package maintenance_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"catalogd/maintenance"
)

var seeds = flag.Int("seeds", 4, "random histories to run")

// history drives one table by chance and keeps what it must hold.
type history struct {
	*testTable
	chance *rand.Rand
	model  map[int64]row
	evolve int // columns added so far
}

// TestHistory_RowsAreNeverLostOrDoubled lets writers append, delete (copying whole files), overwrite partitions and
// evolve the schema between any two steps of the worker, and lets the worker die now and then. After every run the
// table holds exactly what its writers committed.
func TestHistory_RowsAreNeverLostOrDoubled(t *testing.T) {
	for seed := range *seeds {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			h := &history{
				testTable: b.createTable("history", tableOptions{properties: map[string]string{"format-version": fmt.Sprint(2 + seed%2)}}),
				chance:    rand.New(rand.NewPCG(uint64(seed), 7)), model: map[int64]row{},
			}
			h.writer()
			ended := map[maintenance.State]int{}
			for round := range 8 {
				for range h.chance.IntN(4) {
					h.writer()
				}
				h.enqueue()
				h.work()
				h.expect(h.model)
				if t.Failed() {
					t.Fatalf("seed %d, round %d", seed, round)
				}
			}
			b.expireLeases()
			b.drain(b.worker(nil))
			h.expect(h.model)
			h.expectNoGarbage()
			jobs, err := b.store.ListJobs(t.Context(), h.tableID(), 100)
			if err != nil {
				t.Fatal(err)
			}
			for _, j := range jobs {
				ended[j.State]++
				if !j.State.Final() {
					t.Errorf("job %s is still %s: %s", j.ID, j.State, j.Reason.Message)
				}
			}
			if ended[maintenance.Succeeded] == 0 {
				t.Errorf("no job succeeded: %v", ended)
			}
		})
	}
}

func (tt *testTable) tableID() (id [16]byte) {
	tt.t.Helper()
	_, record, err := tt.service.AuthorizeTable(tt.t.Context(), caller(), "w", tt.ident, "TABLE_READ_PROPERTIES")
	if err != nil {
		tt.t.Fatal(err)
	}
	return record.ID
}

// work lets a worker try, with writers in its way; sometimes it dies and another one takes over.
func (h *history) work() {
	h.t.Helper()
	meddle := func() {
		for range h.chance.IntN(3) {
			h.writer()
		}
	}
	switch h.chance.IntN(4) {
	case 0:
		h.drain(h.afterRewrite(meddle))
	case 1:
		h.drain(h.beforeCommit(func(try int) {
			if try < 4 {
				meddle()
			}
		}))
	case 2:
		w, _ := h.mortalWorker(1+h.chance.IntN(20), h.chance.IntN(2) == 0, nil)
		if _, err := w.RunOnce(h.t.Context()); err != nil {
			h.t.Fatal(err)
		}
		meddle()
		h.expireLeases()
		h.drain(h.worker(nil))
	default:
		h.drain(h.worker(nil))
	}
}

// writer does what some engine might do.
func (h *history) writer() {
	h.t.Helper()
	parts := []string{"A", "B", "C"}
	part := parts[h.chance.IntN(len(parts))]
	switch n := h.chance.IntN(10); {
	case n < 6 || len(h.model) == 0:
		rows := h.rows(part, 1+h.chance.IntN(30))
		h.append(rows)
		maps.Copy(h.model, byID(rows))
	case n < 8:
		ids := slices.Sorted(maps.Keys(h.model))
		id := ids[h.chance.IntN(len(ids))]
		h.transact("delete", func(tx *table.Transaction) error {
			return tx.Delete(h.t.Context(), iceberg.EqualTo(iceberg.Reference("id"), id), nil)
		})
		delete(h.model, id)
	case n < 9:
		h.transact("delete partition", func(tx *table.Transaction) error {
			return tx.Delete(h.t.Context(), iceberg.EqualTo(iceberg.Reference("part"), part), nil)
		})
		maps.DeleteFunc(h.model, func(_ int64, r row) bool { return r.Part == part })
	default:
		h.evolve++
		name := fmt.Sprintf("extra%d", h.evolve)
		h.transact("add column", func(tx *table.Transaction) error {
			return tx.UpdateSchema(true, false).AddColumn([]string{name}, iceberg.PrimitiveTypes.String, "", false, nil).Commit()
		})
	}
}
