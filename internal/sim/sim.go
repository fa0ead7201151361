// Package sim runs seeded histories of operations against catalog.Service on a store and a file system in memory
// that fail where the seed says, and holds the outcome against a model: no acknowledged commit is lost, no snapshot is
// there twice, no pointer names a missing file, a history is linear, and each landed commit left one event. A failing
// seed is printed; keep it as a test.
package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"catalogd/auth"
	"catalogd/catalog"
	"catalogd/catalog/catalogtest"
	"catalogd/catalog/commit"
	"catalogd/internal/fault"
	"catalogd/vending"
)

// faultShare is how many of the calls fail, of each hundred.
const faultShare = 6

// table is what the model knows of one table.
type table struct {
	ident catalog.Identifier
	uuid  string
	// acknowledged are snapshots whose commit was answered 200, in order.
	acknowledged []int64
	// doubtful are snapshots whose commit was answered "unknown": there or not.
	doubtful map[int64]bool
	last     commit.Request // the last acknowledged append, for repeats
}

// history is one run.
type history struct {
	rnd      *rand.Rand
	store    *catalogtest.Store
	files    *catalogtest.Metadata
	service  *catalog.Service
	now      time.Time
	tables   []*table
	snapshot int64
	names    int
	trace    []string
	calm     bool // no failures are injected
}

var caller = catalog.Caller{Principal: auth.MaintenancePrincipal(), RequestID: "sim"}

const warehouse = "w"

// Run plays steps operations of the seed's history and gives the first broken promise, with the trace that led to it.
func Run(seed uint64, steps int) error {
	h, err := newHistory(seed)
	if err != nil {
		return err
	}
	for i := range steps {
		h.now = h.now.Add(time.Duration(h.rnd.IntN(5000)) * time.Millisecond)
		if err := h.step(); err != nil {
			return h.broken(seed, i, err)
		}
		if err := h.check(); err != nil {
			return h.broken(seed, i, err)
		}
	}
	return nil
}

func (h *history) broken(seed uint64, step int, err error) error {
	return fmt.Errorf("seed %d, step %d: %w\n%s", seed, step, err, strings.Join(h.trace, "\n"))
}

func newHistory(seed uint64) (*history, error) {
	h := &history{
		rnd: rand.New(rand.NewPCG(seed, 42)), store: catalogtest.NewStore(), files: catalogtest.NewMetadata(),
		now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	h.service = catalog.New(catalog.Config{
		Store: h.store, Metadata: h.files, Now: func() time.Time { return h.now },
		Providers: map[string]vending.Provider{"S3": provider{}}, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		ParallelTables:     1,        // so that a seed is one history
		MetadataCacheBytes: 64 << 10, // small, so that reads of files are part of the history
	})
	ctx := context.Background()
	w := catalog.Warehouse{ID: uuid.New(), Name: warehouse, Location: "s3://bucket/w", Storage: vending.Profile{StorageType: "S3"}}
	if err := h.store.CreateWarehouse(ctx, w, catalog.Fact{ID: uuid.New()}); err != nil {
		return nil, err
	}
	for _, ns := range []string{"a", "b"} {
		if _, err := h.service.CreateNamespace(ctx, caller, warehouse, catalog.Namespace{ns}, nil); err != nil {
			return nil, err
		}
	}
	h.store.Inject(h.storeFailure)
	h.files.Inject(h.fileFailure)
	return h, nil
}

// storeFailure loses answers of commits, sometimes after they were applied, and lets other calls fail cleanly.
func (h *history) storeFailure(method string, _ int) catalogtest.Failure {
	if h.calm || h.rnd.IntN(100) >= faultShare {
		return catalogtest.Failure{}
	}
	switch method {
	case "CommitPointers":
		h.trace = append(h.trace, "    the commit's answer is lost")
		return catalogtest.Failure{Err: catalogtest.Unknown(), Applied: h.rnd.IntN(2) == 0}
	case "CommitLanded":
		return catalogtest.Failure{Err: fault.New(fault.Busy, "the database is away")}
	}
	return catalogtest.Failure{Err: fault.New(fault.Busy, "the database is away")}
}

func (h *history) fileFailure(method string, _ int) catalogtest.Failure {
	if h.calm || h.rnd.IntN(100) >= faultShare {
		return catalogtest.Failure{}
	}
	h.trace = append(h.trace, "    "+method+" fails")
	return catalogtest.Failure{Err: fault.New(fault.Busy, "the object store is away"), Applied: h.rnd.IntN(2) == 0}
}

func (h *history) step() error {
	if len(h.tables) == 0 {
		return h.create()
	}
	switch n := h.rnd.IntN(100); {
	case n < 10:
		return h.create()
	case n < 50:
		return h.append(h.pick(), false)
	case n < 58:
		return h.append(h.pick(), true)
	case n < 68:
		return h.repeat(h.pick())
	case n < 80:
		return h.properties(h.pick())
	case n < 88:
		return h.transaction()
	case n < 94:
		return h.rename(h.pick())
	default:
		return h.drop(h.rnd.IntN(len(h.tables)))
	}
}

func (h *history) pick() *table { return h.tables[h.rnd.IntN(len(h.tables))] }

func (h *history) note(format string, args ...any) {
	h.trace = append(h.trace, fmt.Sprintf(format, args...))
}

func (h *history) freshName() catalog.Identifier {
	h.names++
	return catalog.Identifier{Namespace: catalog.Namespace{string("ab"[h.rnd.IntN(2)])}, Name: fmt.Sprintf("t%d", h.names)}
}

// retryable tells that an operation failed without a promise: the history goes on.
func retryable(err error) bool {
	switch fault.KindOf(err) {
	case fault.Busy, fault.CommitUnknown, fault.Internal, fault.CommitConflict:
		return true
	}
	return false
}

// check loads every table of the model in calm and holds it against what was acknowledged.
func (h *history) check() error {
	h.calm = true
	defer func() { h.calm = false }()
	for _, t := range h.tables {
		loaded, err := h.service.LoadTable(context.Background(), caller, catalog.LoadTableRequest{Warehouse: warehouse, Ident: t.ident})
		if err != nil {
			return fmt.Errorf("load %s: %w", t.ident, err)
		}
		if !slices.Contains(h.files.Files(), loaded.MetadataLocation) {
			return fmt.Errorf("the pointer of %s names the missing file %s", t.ident, loaded.MetadataLocation)
		}
		if err := t.matches(loaded.Metadata); err != nil {
			return fmt.Errorf("%s: %w", t.ident, err)
		}
	}
	return nil
}

// matches holds a table's snapshots against the model.
func (t *table) matches(metadata []byte) error {
	var m struct {
		UUID      string `json:"table-uuid"`
		Current   int64  `json:"current-snapshot-id"`
		Snapshots []struct {
			ID     int64  `json:"snapshot-id"`
			Parent *int64 `json:"parent-snapshot-id"`
			Number int64  `json:"sequence-number"`
		} `json:"snapshots"`
	}
	if err := json.Unmarshal(metadata, &m); err != nil {
		return err
	}
	if m.UUID != t.uuid {
		return fmt.Errorf("uuid %s, wanted %s", m.UUID, t.uuid)
	}
	seen, before, number := map[int64]bool{}, int64(-1), int64(0)
	for _, s := range m.Snapshots {
		if seen[s.ID] {
			return fmt.Errorf("snapshot %d is there twice", s.ID)
		}
		seen[s.ID] = true
		if before >= 0 && (s.Parent == nil || *s.Parent != before) || before < 0 && s.Parent != nil {
			return fmt.Errorf("snapshot %d does not follow %d", s.ID, before)
		}
		if s.Number <= number {
			return fmt.Errorf("snapshot %d has sequence number %d after %d", s.ID, s.Number, number)
		}
		before, number = s.ID, s.Number
		if !slices.Contains(t.acknowledged, s.ID) && !t.doubtful[s.ID] {
			return fmt.Errorf("snapshot %d is there but was refused", s.ID)
		}
	}
	for _, id := range t.acknowledged {
		if !seen[id] {
			return fmt.Errorf("the acknowledged snapshot %d is lost", id)
		}
	}
	return nil
}

// provider vends nothing; histories are about pointers.
type provider struct{}

func (provider) Validate(vending.Profile) error { return nil }
func (provider) CanVend(vending.Profile) bool   { return false }
func (provider) Vend(context.Context, vending.Profile, vending.Scope) (vending.Credentials, error) {
	return vending.Credentials{}, fault.New(fault.Internal, "nothing is vended here")
}
func (provider) ClientConfig(vending.Profile) map[string]string { return nil }
