package maintenance_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/apache/iceberg-go"

	"catalogd/auth"
	"catalogd/catalog"
	"catalogd/catalog/commit"
	"catalogd/internal/iceio"
	"catalogd/internal/pgserver/pgtest"
	"catalogd/maintenance"
	"catalogd/store"
	"catalogd/vending"
	"catalogd/vending/local"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m, store.Migrate)) }

// bench is a whole catalog on Postgres with one warehouse on local files, and a worker that is driven by hand.
type bench struct {
	t       *testing.T
	store   *store.Store
	service *catalog.Service
	files   *iceio.Store
	folder  string
	config  maintenance.Config
}

func newBench(t *testing.T) *bench {
	t.Helper()
	return newBenchIn(t, t.TempDir())
}

// newBenchIn is newBench with a folder for the warehouse.
func newBenchIn(t *testing.T, folder string) *bench {
	t.Helper()
	db, err := store.Open(t.Context(), store.Config{URL: pgtest.Database(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	providers := map[string]vending.Provider{local.StorageType: local.Provider{}}
	files := iceio.New(iceio.Config{Providers: providers})
	t.Cleanup(files.Close)
	log := slog.New(slog.NewTextHandler(testLog{t}, &slog.HandlerOptions{Level: slog.LevelInfo}))
	b := &bench{t: t, store: db, files: files, folder: folder}
	b.service = catalog.New(catalog.Config{Store: db, Admin: db, Metadata: files, Providers: providers, Log: log})
	_, _, err = b.service.EnsureWarehouse(t.Context(), catalog.WarehouseDraft{
		Name: "w", Location: "file://" + b.folder, Storage: vending.Profile{StorageType: local.StorageType},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.service.CreateNamespace(t.Context(), caller(), "w", catalog.Namespace{"db"}, nil); err != nil {
		t.Fatal(err)
	}
	b.config = maintenance.Config{
		Store: db, Tables: b.service, OpenFiles: b.open, SpillDir: t.TempDir(), Log: log, MemoryBytes: 32 << 20, Threads: 1,
	}
	return b
}

// testLog sends log lines to the test.
type testLog struct{ t *testing.T }

func (l testLog) Write(p []byte) (int, error) {
	l.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

func caller() catalog.Caller {
	return catalog.Caller{Principal: auth.MaintenancePrincipal(), RequestID: "test"}
}

func (b *bench) open(ctx context.Context, p vending.Profile, s vending.Scope) (maintenance.Files, error) {
	return b.files.OpenTable(ctx, p, s)
}

func (b *bench) operations() *maintenance.Operations {
	return &maintenance.Operations{Store: b.store, Tables: b.service, OpenFiles: b.open, Now: time.Now}
}

// worker makes a worker; change may alter its settings first.
func (b *bench) worker(change func(*maintenance.Config)) *maintenance.Worker {
	c := b.config
	if change != nil {
		change(&c)
	}
	return maintenance.New(c)
}

// row is what the tests' tables hold.
type row struct {
	ID     int64
	Part   string
	Sensor string
	At     int64 // microseconds
	Value  float64
}

func rowSchema() *iceberg.Schema {
	return iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64},
		iceberg.NestedField{ID: 2, Name: "part", Type: iceberg.PrimitiveTypes.String},
		iceberg.NestedField{ID: 3, Name: "sensor", Type: iceberg.PrimitiveTypes.String},
		iceberg.NestedField{ID: 4, Name: "at", Type: iceberg.PrimitiveTypes.TimestampTz},
		iceberg.NestedField{ID: 5, Name: "value", Type: iceberg.PrimitiveTypes.Float64},
	)
}

// tableOptions says what a test's table is like.
type tableOptions struct {
	properties map[string]string
	// fields are the partition spec's fields as JSON; nil: identity(part).
	fields []any
	// order lists the ids of the sort order's columns; nil: sensor, at.
	order []int
	// schema is nil for rowSchema.
	schema *iceberg.Schema
	// below is the table's place in the warehouse's folder; "": the server's choice.
	below string
}

func (b *bench) createTable(name string, o tableOptions) *testTable {
	b.t.Helper()
	if o.fields == nil {
		o.fields = []any{map[string]any{"source-id": 2, "field-id": 1000, "name": "part", "transform": "identity"}}
	}
	if o.order == nil {
		o.order = []int{3, 4}
	}
	if o.schema == nil {
		o.schema = rowSchema()
	}
	order := []any{}
	for _, id := range o.order {
		order = append(order, map[string]any{"source-id": id, "transform": "identity", "direction": "asc", "null-order": "nulls-first"})
	}
	properties := map[string]string{"format-version": "2", "write.parquet.page-version": "1"}
	maps.Copy(properties, o.properties)
	wanted := map[string]any{
		"name": name, "schema": o.schema, "properties": properties,
		"partition-spec": map[string]any{"spec-id": 0, "fields": o.fields},
		"write-order":    map[string]any{"order-id": 1, "fields": order},
	}
	if o.below != "" {
		wanted["location"] = "file://" + b.folder + "/" + o.below
	}
	body := b.json(wanted)
	request, err := commit.DecodeCreate(body)
	if err != nil {
		b.t.Fatal(err)
	}
	ident := catalog.Identifier{Namespace: catalog.Namespace{"db"}, Name: name}
	_, err = b.service.CreateTable(b.t.Context(), caller(), catalog.CreateTableRequest{Warehouse: "w", Namespace: ident.Namespace, Body: request})
	if err != nil {
		b.t.Fatal(err)
	}
	return &testTable{bench: b, ident: ident}
}

func (b *bench) json(v any) []byte {
	b.t.Helper()
	body, err := json.Marshal(v)
	if err != nil {
		b.t.Fatal(err)
	}
	return body
}

// drain works until there is nothing to claim.
func (b *bench) drain(w *maintenance.Worker) {
	b.t.Helper()
	for range 20 {
		did, err := w.RunOnce(b.t.Context())
		if err != nil {
			b.t.Fatal(err)
		}
		if did.Job == nil {
			return
		}
	}
	b.t.Fatal("there is always another job")
}

// expectState fails unless the job ended so.
func expectState(t *testing.T, j maintenance.Job, state maintenance.State, code string) {
	t.Helper()
	if j.State != state || (code != "" && j.Reason.Code != code) {
		t.Fatalf("job ended %s (%s: %s), want %s (%s)", j.State, j.Reason.Code, j.Reason.Message, state, code)
	}
}
