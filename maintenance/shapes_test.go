package maintenance_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"catalogd/maintenance"
)

// wideSchema has a column of each type that partitions can be made of.
func wideSchema() *iceberg.Schema {
	types := []iceberg.Type{
		iceberg.PrimitiveTypes.Int64, iceberg.PrimitiveTypes.Bool, iceberg.PrimitiveTypes.Int32, iceberg.PrimitiveTypes.Float32,
		iceberg.PrimitiveTypes.Float64, iceberg.PrimitiveTypes.Date, iceberg.PrimitiveTypes.Time, iceberg.PrimitiveTypes.Timestamp,
		iceberg.PrimitiveTypes.TimestampTz, iceberg.PrimitiveTypes.String, iceberg.PrimitiveTypes.UUID, iceberg.PrimitiveTypes.Binary,
		iceberg.FixedTypeOf(5), iceberg.DecimalTypeOf(9, 2), iceberg.DecimalTypeOf(30, 4),
	}
	var fields []iceberg.NestedField
	for i, t := range types {
		fields = append(fields, iceberg.NestedField{ID: i + 1, Name: fmt.Sprintf("c%d", i+1), Type: t})
	}
	fields = append(fields, iceberg.NestedField{ID: 20, Name: "nested", Type: &iceberg.StructType{FieldList: []iceberg.NestedField{
		{ID: 21, Name: "deep", Type: iceberg.PrimitiveTypes.Int64},
		{ID: 22, Name: "list", Type: &iceberg.ListType{ElementID: 23, Element: iceberg.PrimitiveTypes.String}},
		{ID: 24, Name: "map", Type: &iceberg.MapType{KeyID: 25, KeyType: iceberg.PrimitiveTypes.String, ValueID: 26, ValueType: iceberg.PrimitiveTypes.Int32}},
	}}})
	return iceberg.NewSchema(0, fields...)
}

// wideRow spells a row as JSON for Arrow's builders; seed -1 is a row of nulls. Dates and times lie before 1970 too.
func wideRow(id, seed int) string {
	if seed < 0 {
		return fmt.Sprintf(`{"c1": %d}`, id)
	}
	return fmt.Sprintf(`{"c1": %d, "c2": %v, "c3": %d, "c4": %d.5, "c5": -%d.25, "c6": "19%02d-03-%02d", "c7": "0%d:10:00.5",
		"c8": "19%02d-12-31T2%d:59:59.123456", "c9": "19%02d-12-31T2%d:59:59.123456Z", "c10": "tex/t %d=%%", "c11": "0000000%d-0000-4000-8000-000000000000",
		"c12": "%s", "c13": "AQIDBA%s", "c14": "%d.25", "c15": "-%d.1234",
		"nested": {"deep": %d, "list": ["a", null, "b%d"], "map": [{"key": "k%d", "value": %d}]}}`,
		id, seed%2 == 0, seed-1, seed, seed, 68+seed, 1+seed, seed, 68+seed, seed, 68+seed, seed, seed, seed,
		[]string{"AA==", "AAE=", "/w=="}[seed%3], []string{"U=", "Y=", "c="}[seed%3], seed, seed, seed, seed, seed, seed)
}

func (tt *testTable) appendJSON(rows []string) {
	tt.t.Helper()
	tt.retry("append", func() error {
		now := tt.load()
		schema, err := table.SchemaToArrowSchema(now.Schema(), nil, true, false)
		if err != nil {
			return err
		}
		b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		defer b.Release()
		for _, r := range rows {
			if err := b.UnmarshalJSON([]byte(r)); err != nil {
				return fmt.Errorf("%s: %w", r, err)
			}
		}
		return appendBatch(tt.t.Context(), now, b.NewRecordBatch())
	})
}

// readJSON gives all rows as JSON texts in order.
func (tt *testTable) readJSON() []string {
	tt.t.Helper()
	result, err := tt.load().Scan().ToArrowTable(tt.t.Context())
	if err != nil {
		tt.t.Fatal(err)
	}
	defer result.Release()
	reader := array.NewTableReader(result, 0)
	defer reader.Release()
	var rows []string
	for reader.Next() {
		body, err := reader.RecordBatch().MarshalJSON()
		if err != nil {
			tt.t.Fatal(err)
		}
		text := strings.Trim(strings.TrimSpace(string(body)), "[]")
		for _, r := range strings.Split(text, "\n") {
			if r = strings.Trim(strings.TrimSpace(r), ","); r != "" {
				rows = append(rows, r)
			}
		}
	}
	slices.Sort(rows)
	return rows
}

// Every type that a partition can be of comes through manifests unchanged, nulls and years before 1970 included.
func TestShapes_PartitionTypes(t *testing.T) {
	for name, field := range map[string]struct {
		source    int
		transform string
	}{
		"bool": {2, "identity"}, "int": {3, "identity"}, "float": {4, "identity"}, "double": {5, "identity"}, "date": {6, "identity"},
		"time": {7, "identity"}, "timestamp": {8, "identity"}, "timestamptz": {9, "identity"}, "string": {10, "identity"},
		"uuid": {11, "identity"}, "binary": {12, "identity"}, "fixed": {13, "identity"}, "decimal9": {14, "identity"}, "decimal30": {15, "identity"},
		"year": {8, "year"}, "month": {6, "month"}, "day": {9, "day"}, "hour": {8, "hour"}, "bucket": {10, "bucket[3]"}, "truncate": {10, "truncate[4]"},
		"bucket of uuid": {11, "bucket[3]"}, "truncate decimal": {14, "truncate[10]"}, "void": {10, "void"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			tt := b.createTable("wide", tableOptions{schema: wideSchema(), order: []int{1, 10}, fields: []any{
				map[string]any{"source-id": field.source, "field-id": 1000, "name": "p", "transform": field.transform},
			}})
			for file := range 3 {
				rows := []string{wideRow(100*file, -1)}
				for seed := range 4 {
					rows = append(rows, wideRow(100*file+seed+1, seed))
				}
				tt.appendJSON(rows)
			}
			before, tuples := tt.readJSON(), tt.tuples()
			job := tt.run(b.worker(nil))
			expectState(t, job, maintenance.Succeeded, maintenance.CodeDone)
			if after := tt.readJSON(); !slices.Equal(before, after) {
				t.Errorf("rows before and after:\n%s\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
			}
			if after := tt.tuples(); !maps.Equal(tuples, after) {
				t.Errorf("rows by partition before and after:\n%v\n%v", tuples, after)
			}
			if job.Outcome.FilesAfter != int64(len(tuples)) {
				t.Errorf("%d files in %d partitions", job.Outcome.FilesAfter, len(tuples))
			}
			tt.expectNoGarbage()
			expectState(t, tt.run(b.worker(nil)), maintenance.NothingToDo, "")
		})
	}
}

// tuples counts rows by partition tuple and checks that each manifest's summaries hold its files' tuples.
func (tt *testTable) tuples() map[string]int64 {
	tt.t.Helper()
	manifests, err := tt.load().CurrentSnapshot().Manifests(rawFS{})
	if err != nil {
		tt.t.Fatal(err)
	}
	out := map[string]int64{}
	for _, m := range manifests {
		for e, err := range m.Entries(rawFS{}, true) {
			if err != nil {
				tt.t.Fatal(err)
			}
			out[fmt.Sprint(e.DataFile().Partition())] += e.DataFile().Count()
			for i, value := range e.DataFile().Partition() {
				summary := m.Partitions()[i-1000]
				if value == nil && !summary.ContainsNull {
					tt.t.Errorf("manifest %s holds a null partition and does not say so", m.FilePath())
				}
				if value != nil && (summary.LowerBound == nil || summary.UpperBound == nil) {
					tt.t.Errorf("manifest %s holds partition %v and has no bounds", m.FilePath(), value)
				}
			}
		}
	}
	return out
}

// A table of format version 1 has no sequence numbers and other manifests.
func TestShapes_FormatVersion1(t *testing.T) {
	b := newBench(t)
	tt, want := twoPartitions(b, tableOptions{properties: map[string]string{"format-version": "1"}})
	expectState(t, tt.run(b.worker(nil)), maintenance.Succeeded, maintenance.CodeDone)
	tt.expect(want)
	tt.expectNoGarbage()
	rows := tt.rows("A", 5)
	maps.Copy(want, byID(rows))
	tt.append(rows)
	tt.transact("upgrade", func(tx *table.Transaction) error { return tx.UpgradeFormatVersion(2) })
	for range 3 {
		rows := tt.rows("A", 50)
		maps.Copy(want, byID(rows))
		tt.append(rows)
	}
	expectState(t, tt.run(b.worker(nil)), maintenance.Succeeded, maintenance.CodeDone)
	tt.expect(want)
	tt.expectNoGarbage()
}

// A file that the table lists twice gives its rows twice; it is left alone and told of.
func TestField_C211_FileListedTwice(t *testing.T) {
	b := newBench(t)
	tt := b.createTable("readings", tableOptions{fields: []any{}})
	tt.append(tt.rows("A", 10))
	twice := tt.dataFiles()
	tt.transact("add again", func(tx *table.Transaction) error { return tx.AddFiles(t.Context(), twice, nil, true) })
	for range 3 {
		tt.append(tt.rows("A", 10))
	}
	job := tt.run(b.worker(nil))
	expectState(t, job, maintenance.Succeeded, maintenance.CodeDone)
	if job.Outcome.FilesSkipped[maintenance.CodeListedTwice] != 2 || job.Outcome.FilesReplaced != 3 {
		t.Errorf("outcome: %+v", job.Outcome)
	}
	result, err := tt.load().Scan().ToArrowTable(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer result.Release()
	if result.NumRows() != 50 {
		t.Errorf("%d rows, want 50", result.NumRows())
	}
}

// Tables that give nothing to do end well and say why.
func TestField_C238_NothingToDo(t *testing.T) {
	b := newBench(t)
	tt := b.createTable("readings", tableOptions{})
	expectState(t, tt.run(b.worker(nil)), maintenance.NothingToDo, maintenance.CodeEmptyTable)
	tt.append(tt.rows("A", 10))
	tt.transact("delete", func(tx *table.Transaction) error {
		return tx.Delete(t.Context(), iceberg.GreaterThan(iceberg.Reference("id"), int64(0)), nil)
	})
	expectState(t, tt.run(b.worker(nil)), maintenance.NothingToDo, maintenance.CodeEmptyTable)
}

// lineage gives each row's id and the sequence number of its last change, by the column id.
func (tt *testTable) lineage() map[int64][2]int64 {
	tt.t.Helper()
	result, err := tt.load().Scan(table.WithRowLineage()).ToArrowTable(tt.t.Context())
	if err != nil {
		tt.t.Fatal(err)
	}
	defer result.Release()
	reader := array.NewTableReader(result, 0)
	defer reader.Release()
	out := map[int64][2]int64{}
	for reader.Next() {
		batch := reader.RecordBatch()
		column := func(name string) *array.Int64 {
			at := batch.Schema().FieldIndices(name)
			if len(at) != 1 {
				tt.t.Fatalf("no column %s in %s", name, batch.Schema())
			}
			return batch.Column(at[0]).(*array.Int64)
		}
		ids, rows, changed := column("id"), column("_row_id"), column("_last_updated_sequence_number")
		for i := range int(batch.NumRows()) {
			if rows.IsNull(i) || changed.IsNull(i) {
				tt.t.Errorf("row %d has no lineage", ids.Value(i))
			}
			out[ids.Value(i)] = [2]int64{rows.Value(i), changed.Value(i)}
		}
	}
	return out
}

// Rows of format version 3 keep their ids and the sequence number of their last change, run after run.
func TestField_C181_RowLineageSurvives(t *testing.T) {
	b := newBench(t)
	tt, want := twoPartitions(b, tableOptions{properties: map[string]string{"format-version": "3"}})
	lineage := tt.lineage()
	if len(lineage) != len(want) {
		t.Fatalf("%d rows have lineage, want %d", len(lineage), len(want))
	}
	for round := range 3 {
		expectState(t, tt.run(b.worker(nil)), maintenance.Succeeded, maintenance.CodeDone)
		if after := tt.lineage(); !maps.Equal(lineage, after) {
			t.Fatalf("round %d: lineage before and after:\n%v\n%v", round, lineage, after)
		}
		tt.expect(want)
		tt.expectNoGarbage()
		expectState(t, tt.run(b.worker(nil)), maintenance.NothingToDo, "")
		for range 2 {
			rows := tt.rows("A", 60)
			maps.Copy(want, byID(rows))
			tt.append(rows)
		}
		lineage = tt.lineage()
		seen := map[int64]bool{}
		for _, l := range lineage {
			if seen[l[0]] {
				t.Fatalf("round %d: row id %d was given twice", round, l[0])
			}
			seen[l[0]] = true
		}
	}
}

// A table that was upgraded to version 3 has rows without ids until somebody writes to it.
func TestField_C177_LineageBeginsAfterAnUpgrade(t *testing.T) {
	b := newBench(t)
	tt, want := twoPartitions(b, tableOptions{})
	tt.transact("upgrade", func(tx *table.Transaction) error { return tx.UpgradeFormatVersion(3) })
	expectState(t, tt.run(b.worker(nil)), maintenance.Refused, maintenance.CodeRowLineage)
	rows := tt.rows("A", 5)
	maps.Copy(want, byID(rows))
	tt.append(rows)
	lineage := tt.lineage()
	expectState(t, tt.run(b.worker(nil)), maintenance.Succeeded, maintenance.CodeDone)
	if after := tt.lineage(); !maps.Equal(lineage, after) {
		t.Fatalf("lineage before and after:\n%v\n%v", lineage, after)
	}
	tt.expect(want)
	tt.expectNoGarbage()
}
