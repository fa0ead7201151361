package maintenance_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	icebergio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"

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

// testTable is a table under test, written and read by iceberg-go.
type testTable struct {
	*bench
	ident catalog.Identifier
	next  int64
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

// LoadTable and CommitTable make the service what iceberg-go's tables want.
func (tt *testTable) LoadTable(ctx context.Context, _ table.Identifier) (*table.Table, error) {
	loaded, err := tt.service.LoadTable(ctx, caller(), catalog.LoadTableRequest{Warehouse: "w", Ident: tt.ident, Snapshots: catalog.SnapshotsAll})
	if err != nil {
		return nil, err
	}
	meta, err := table.ParseMetadataBytes(loaded.Metadata)
	if err != nil {
		return nil, err
	}
	open := func(context.Context) (icebergio.IO, error) { return rawFS{}, nil }
	return table.New(table.Identifier{"db", tt.ident.Name}, meta, loaded.MetadataLocation, open, tt), nil
}

func (tt *testTable) CommitTable(ctx context.Context, _ table.Identifier, requirements []table.Requirement, updates []table.Update) (table.Metadata, string, error) {
	body, err := json.Marshal(map[string]any{"requirements": requirements, "updates": updates})
	if err != nil {
		return nil, "", err
	}
	change, err := commit.DecodeRequest(body)
	if err != nil {
		return nil, "", err
	}
	done, err := tt.service.CommitTable(ctx, caller(), catalog.CommitTableRequest{Warehouse: "w", Ident: tt.ident, Change: change})
	if err != nil {
		return nil, "", err
	}
	meta, err := table.ParseMetadataBytes(done.Metadata)
	return meta, done.MetadataLocation, err
}

// rawFS takes file URIs literally, as Java and PyIceberg do: iceberg-go alone would decode a %3A in a partition's path.
type rawFS struct{ local icebergio.LocalFS }

func bare(uri string) string { return strings.TrimPrefix(uri, "file://") }

func (f rawFS) Open(name string) (icebergio.File, error)         { return f.local.Open(bare(name)) }
func (f rawFS) Remove(name string) error                         { return f.local.Remove(bare(name)) }
func (f rawFS) Create(name string) (icebergio.FileWriter, error) { return f.local.Create(bare(name)) }
func (f rawFS) WriteFile(name string, p []byte) error            { return f.local.WriteFile(bare(name), p) }

func (tt *testTable) load() *table.Table {
	tt.t.Helper()
	loaded, err := tt.LoadTable(tt.t.Context(), nil)
	if err != nil {
		tt.t.Fatal(err)
	}
	return loaded
}

// rows makes n rows in order of time, for all sensors in turn.
func (tt *testTable) rows(part string, n int) []row {
	out := make([]row, n)
	for i := range out {
		tt.next++
		out[i] = row{ID: tt.next, Part: part, Sensor: fmt.Sprintf("SNS-%05d", tt.next*7919%23), At: tt.next * 60_000_000, Value: float64(tt.next%100) / 4}
	}
	return out
}

// record puts rows into Arrow in the spelling of the table's present schema; columns it does not know stay null.
func record(t *testing.T, schema *iceberg.Schema, rows []row) arrow.RecordBatch {
	t.Helper()
	arrowSchema, err := table.SchemaToArrowSchema(schema, nil, true, false)
	if err != nil {
		t.Fatal(err)
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrowSchema)
	defer b.Release()
	for i, f := range schema.Fields() {
		for _, r := range rows {
			switch f.ID {
			case 1:
				b.Field(i).(*array.Int64Builder).Append(r.ID)
			case 2:
				b.Field(i).(*array.StringBuilder).Append(r.Part)
			case 3:
				b.Field(i).(*array.StringBuilder).Append(r.Sensor)
			case 4:
				b.Field(i).(*array.TimestampBuilder).Append(arrow.Timestamp(r.At))
			case 5:
				b.Field(i).(*array.Float64Builder).Append(r.Value)
			default:
				b.Field(i).AppendNull()
			}
		}
	}
	return b.NewRecordBatch()
}

// append commits rows as one snapshot, trying again after lost races as every writer does.
func (tt *testTable) append(rows []row) {
	tt.t.Helper()
	tt.retry("append", func() error {
		now := tt.load()
		return appendBatch(tt.t.Context(), now, record(tt.t, now.Schema(), rows))
	})
}

// appendBatch commits a batch as one snapshot, and lets it go.
func appendBatch(ctx context.Context, now *table.Table, batch arrow.RecordBatch) error {
	defer batch.Release()
	reader, err := array.NewRecordReader(batch.Schema(), []arrow.RecordBatch{batch})
	if err != nil {
		return err
	}
	defer reader.Release()
	_, err = now.Append(ctx, reader, nil)
	return err
}

func (tt *testTable) retry(what string, fn func() error) {
	tt.t.Helper()
	var err error
	for range 20 {
		if err = fn(); err == nil {
			return
		}
	}
	tt.t.Fatalf("%s: %v", what, err)
}

// transact commits a transaction.
func (tt *testTable) transact(what string, fn func(*table.Transaction) error) {
	tt.t.Helper()
	tt.retry(what, func() error {
		tx := tt.load().NewTransaction()
		if err := fn(tx); err != nil {
			return err
		}
		_, err := tx.Commit(tt.t.Context())
		return err
	})
}

// read gives all rows by id, through iceberg-go's scanner; a row that is there twice fails the test.
func (tt *testTable) read() map[int64]row {
	tt.t.Helper()
	result, err := tt.load().Scan().ToArrowTable(tt.t.Context())
	if err != nil {
		tt.t.Fatalf("read: %v", err)
	}
	defer result.Release()
	out := map[int64]row{}
	reader := array.NewTableReader(result, 0)
	defer reader.Release()
	for reader.Next() {
		batch := reader.RecordBatch()
		column := func(name string) arrow.Array {
			i := batch.Schema().FieldIndices(name)
			if len(i) == 0 {
				return nil
			}
			return batch.Column(i[0])
		}
		for i := range int(batch.NumRows()) {
			r := row{
				ID: column("id").(*array.Int64).Value(i), Part: text(column("part"), i), Sensor: text(column("sensor"), i),
				At: int64(column("at").(*array.Timestamp).Value(i)),
			}
			if v, ok := column("value").(*array.Float64); ok {
				r.Value = v.Value(i)
			}
			if _, twice := out[r.ID]; twice {
				tt.t.Errorf("row %d is there twice", r.ID)
			}
			out[r.ID] = r
		}
	}
	return out
}

func text(column arrow.Array, i int) string {
	switch c := column.(type) {
	case *array.String:
		return c.Value(i)
	case *array.LargeString:
		return c.Value(i)
	}
	return column.ValueStr(i)
}

// expect compares what the table holds with the model.
func (tt *testTable) expect(want map[int64]row) {
	tt.t.Helper()
	got := tt.read()
	if len(got) != len(want) {
		tt.t.Errorf("%d rows, want %d", len(got), len(want))
	}
	for id, r := range want {
		if g, ok := got[id]; !ok || g != r {
			tt.t.Errorf("row %d: %+v (there: %v), want %+v", id, g, ok, r)
			return
		}
	}
}

func byID(rows ...[]row) map[int64]row {
	out := map[int64]row{}
	for _, list := range rows {
		for _, r := range list {
			out[r.ID] = r
		}
	}
	return out
}

// run enqueues an on-demand job and works until the queue is empty; it gives the job as it ended.
func (tt *testTable) run(w *maintenance.Worker) maintenance.Job {
	tt.t.Helper()
	job := tt.enqueue()
	tt.drain(w)
	return tt.job(job.ID)
}

func (tt *testTable) name() maintenance.TableName {
	return maintenance.TableName{Warehouse: "w", Ident: tt.ident}
}

func (tt *testTable) enqueue() maintenance.Job {
	tt.t.Helper()
	job, err := tt.operations().Run(tt.t.Context(), caller(), tt.name(), maintenance.RunRequest{Kind: maintenance.Compaction})
	if err != nil {
		tt.t.Fatal(err)
	}
	return job
}

func (tt *testTable) job(id uuid.UUID) maintenance.Job {
	tt.t.Helper()
	job, err := tt.store.FindJob(tt.t.Context(), id)
	if err != nil {
		tt.t.Fatal(err)
	}
	return job
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

// dataFiles gives the paths of the table's live data files.
func (tt *testTable) dataFiles() []string {
	tt.t.Helper()
	tasks, err := tt.load().Scan().PlanFiles(tt.t.Context())
	if err != nil {
		tt.t.Fatal(err)
	}
	paths := map[string]bool{}
	for _, task := range tasks {
		paths[task.File.FilePath()] = true
	}
	return slices.Sorted(maps.Keys(paths))
}

// expectNoGarbage fails when the table's folder holds a file with a job's name that no snapshot reaches.
func (tt *testTable) expectNoGarbage() {
	tt.t.Helper()
	now := tt.load()
	known := map[string]bool{}
	for _, s := range now.Metadata().Snapshots() {
		known[s.ManifestList] = true
		manifests, err := s.Manifests(rawFS{})
		if err != nil {
			tt.t.Fatal(err)
		}
		for _, m := range manifests {
			known[m.FilePath()] = true
			for e, err := range m.Entries(rawFS{}, false) {
				if err != nil {
					tt.t.Fatal(err)
				}
				known[e.DataFile().FilePath()] = true
			}
		}
	}
	root := bare(now.Location())
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, ".metadata.json") || strings.HasSuffix(path, ".crc") {
			return err
		}
		if !known["file://"+path] && !known[path] {
			tt.t.Errorf("garbage: %s", path)
		}
		return nil
	})
	if err != nil {
		tt.t.Fatal(err)
	}
}

// expectState fails unless the job ended so.
func expectState(t *testing.T, j maintenance.Job, state maintenance.State, code string) {
	t.Helper()
	if j.State != state || (code != "" && j.Reason.Code != code) {
		t.Fatalf("job ended %s (%s: %s), want %s (%s)", j.State, j.Reason.Code, j.Reason.Message, state, code)
	}
}
