package maintenance_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	icebergio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"

	"catalogd/catalog"
	"catalogd/catalog/commit"
	"catalogd/maintenance"
)

// testTable is a table under test, written and read by iceberg-go.
type testTable struct {
	*bench
	ident catalog.Identifier
	next  int64
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
