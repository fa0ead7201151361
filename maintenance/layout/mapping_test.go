package layout

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go"

	"catalogd/internal/fault"
)

// arrowRecord makes a record of bare Arrow fields with field ids, as any writer might.
func arrowRecord(n int, fields []arrow.Field, fill func(b *array.RecordBuilder)) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
	for range n {
		fill(b)
	}
	return b.NewRecordBatch()
}

func field(id int, name string, t arrow.DataType) arrow.Field {
	return arrow.Field{Name: name, Type: t, Nullable: true, Metadata: fieldID(id)}
}

// A file from before promotions, renames and reorders is read by field id, with its values widened.
func TestCluster_ReadsPromotedAndRenamedColumns(t *testing.T) {
	in, out := newStore(), newStore()
	decimals := &arrow.Decimal128Type{Precision: 5, Scale: 2}
	millis := &arrow.TimestampType{Unit: arrow.Millisecond}
	in.put(t, "old", arrowRecord(10, []arrow.Field{field(5, "was e", arrow.FixedWidthTypes.Date32), field(1, "was a", arrow.PrimitiveTypes.Int32),
		field(2, "b", arrow.PrimitiveTypes.Float32), field(3, "c", decimals), field(9, "dropped", arrow.BinaryTypes.String),
		field(6, "f", millis), field(7, "g", arrow.BinaryTypes.Binary)}, func(b *array.RecordBuilder) {
		b.Field(0).(*array.Date32Builder).Append(-1)
		b.Field(1).(*array.Int32Builder).Append(-7)
		b.Field(2).(*array.Float32Builder).Append(0.1)
		b.Field(3).(*array.Decimal128Builder).Append(decimal128.FromI64(-12345))
		b.Field(4).(*array.StringBuilder).Append("gone")
		b.Field(5).(*array.TimestampBuilder).Append(-1)
		b.Field(6).(*array.BinaryBuilder).Append([]byte("text"))
	}))
	p := iceberg.PrimitiveTypes
	schema := iceberg.NewSchema(3,
		iceberg.NestedField{ID: 1, Name: "a", Type: p.Int64, Required: true}, iceberg.NestedField{ID: 2, Name: "b", Type: p.Float64},
		iceberg.NestedField{ID: 3, Name: "c", Type: iceberg.DecimalTypeOf(20, 2)}, iceberg.NestedField{ID: 4, Name: "added", Type: p.String},
		iceberg.NestedField{ID: 5, Name: "e", Type: p.Timestamp}, iceberg.NestedField{ID: 6, Name: "f", Type: p.TimestampTz},
		iceberg.NestedField{ID: 7, Name: "g", Type: p.String})
	result, err := Cluster(context.Background(), job(t, schema, in, out, 1, 5))
	if err != nil {
		t.Fatal(err)
	}
	want := "-7|3fb99999a0000000|-123.45|(null)|-86400000000|-1000|text|"
	if rows := out.rows(t); len(rows) != 10 || rows[0] != want {
		t.Errorf("%d rows, first %s, want %s", len(rows), rows[0], want)
	}
	if result.DepthBefore != 1 || result.DepthAfter != 1 {
		t.Errorf("depth %v, %v", result.DepthBefore, result.DepthAfter)
	}
}

func TestCluster_RefusesWhatItCannotMapExactly(t *testing.T) {
	p := iceberg.PrimitiveTypes
	list := func(id int, t iceberg.Type) *iceberg.ListType { return &iceberg.ListType{ElementID: id, Element: t} }
	for _, c := range []struct {
		name   string
		file   []arrow.Field
		schema []iceberg.NestedField
		want   string
	}{
		{"no ids", []arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, []iceberg.NestedField{{ID: 1, Name: "a", Type: p.Int64}}, "no field ids"},
		{"initial default", []arrow.Field{field(1, "a", arrow.PrimitiveTypes.Int64)},
			[]iceberg.NestedField{{ID: 1, Name: "a", Type: p.Int64}, {ID: 2, Name: "region", Type: p.String, InitialDefault: "EU"}}, `column "region": the file was written before the column`},
		{"required but missing", []arrow.Field{field(1, "a", arrow.PrimitiveTypes.Int64)},
			[]iceberg.NestedField{{ID: 1, Name: "a", Type: p.Int64}, {ID: 2, Name: "b", Type: p.String, Required: true}}, `column "b": it is required`},
		{"narrowing", []arrow.Field{field(1, "a", arrow.PrimitiveTypes.Int64)}, []iceberg.NestedField{{ID: 1, Name: "a", Type: p.Int32}}, "int64 can't become int"},
		{"unsigned", []arrow.Field{field(1, "a", arrow.PrimitiveTypes.Uint32)}, []iceberg.NestedField{{ID: 1, Name: "a", Type: p.Int64}}, "uint32 can't become long"},
		{"other scale", []arrow.Field{field(1, "a", &arrow.Decimal128Type{Precision: 9, Scale: 2})}, []iceberg.NestedField{{ID: 1, Name: "a", Type: iceberg.DecimalTypeOf(9, 3)}}, "can't become decimal"},
		{"nanos to micros", []arrow.Field{field(1, "a", arrow.FixedWidthTypes.Timestamp_ns)}, []iceberg.NestedField{{ID: 1, Name: "a", Type: p.TimestampTz}}, "can't become timestamptz"},
		{"nested change", []arrow.Field{field(1, "a", arrow.ListOfField(field(2, "element", arrow.PrimitiveTypes.Int32)))},
			[]iceberg.NestedField{{ID: 1, Name: "a", Type: list(2, p.Int64)}}, "nested fields differ"},
		{"nested where flat", []arrow.Field{field(1, "a", arrow.ListOfField(field(2, "element", arrow.PrimitiveTypes.Int32)))},
			[]iceberg.NestedField{{ID: 1, Name: "a", Type: p.Int32}}, "nested type where the schema has int"},
		{"variant", []arrow.Field{field(1, "a", arrow.PrimitiveTypes.Int64)}, []iceberg.NestedField{{ID: 1, Name: "v", Type: iceberg.VariantType{}}}, `column "v": rewriting values of type variant`},
	} {
		in, out := newStore(), newStore()
		in.put(t, "in", arrowRecord(0, c.file, nil))
		columns := []int{1}
		if _, nested := c.schema[0].Type.(*iceberg.ListType); nested {
			columns = nil
		}
		_, err := Cluster(context.Background(), job(t, iceberg.NewSchema(0, c.schema...), in, out, columns...))
		if fault.KindOf(err) != fault.Unsupported || !strings.Contains(fault.Message(err), c.want) {
			t.Errorf("%s: %v, want Unsupported with %q", c.name, err, c.want)
		}
		if len(out.files) != 0 || out.open != 0 {
			t.Errorf("%s: outputs are left", c.name)
		}
	}
}

// Files that came from Hive leave out what the partition says: that is no null.
func TestCluster_RefusesColumnsThatThePartitionHas(t *testing.T) {
	p := iceberg.PrimitiveTypes
	schema := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "a", Type: p.Int64}, iceberg.NestedField{ID: 2, Name: "region", Type: p.String},
		iceberg.NestedField{ID: 3, Name: "s", Type: &iceberg.StructType{FieldList: []iceberg.NestedField{{ID: 4, Name: "inner", Type: p.Int32}}}})
	for _, c := range []struct {
		inPartition []int
		want        string
	}{{[]int{2}, `column "region": the file leaves it out`}, {[]int{4}, `column "s": the file leaves it out`}, {[]int{1}, ""}} {
		in, out := newStore(), newStore()
		in.put(t, "in", arrowRecord(0, []arrow.Field{field(1, "a", arrow.PrimitiveTypes.Int64)}, nil))
		j := job(t, schema, in, out, 1)
		j.InPartition = c.inPartition
		_, err := Cluster(context.Background(), j)
		if c.want == "" && err != nil || c.want != "" && (fault.KindOf(err) != fault.Unsupported || !strings.Contains(fault.Message(err), c.want)) {
			t.Errorf("%v: %v, want Unsupported with %q", c.inPartition, err, c.want)
		}
	}
}

func TestCluster_RefusesInt96(t *testing.T) {
	schema := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "a", Type: iceberg.PrimitiveTypes.TimestampTzNs})
	in, out := newStore(), newStore()
	record := recordOf(t, schema, 10, 1)
	var b bytes.Buffer
	w, err := pqarrow.NewFileWriter(record.Schema(), &b, parquet.NewWriterProperties(), pqarrow.NewArrowWriterProperties(pqarrow.WithDeprecatedInt96Timestamps(true)))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Write(record), w.Close()); err != nil {
		t.Fatal(err)
	}
	in.files["in"] = b.Bytes()
	if _, err := Cluster(context.Background(), job(t, schema, in, out, 1)); fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "INT96") {
		t.Errorf("%v", err)
	}
}

func TestCluster_RefusesNullsInRequiredColumns(t *testing.T) {
	in, out := newStore(), newStore()
	in.put(t, "in", arrowRecord(10, []arrow.Field{field(1, "a", arrow.PrimitiveTypes.Int64)}, func(b *array.RecordBuilder) { b.Field(0).AppendNull() }))
	schema := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "a", Type: iceberg.PrimitiveTypes.Int64, Required: true})
	if _, err := Cluster(context.Background(), job(t, schema, in, out, 1)); fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), `column "a"`) {
		t.Errorf("%v", err)
	}
}

// TestField_C214: nested fields work by id; elements of lists and maps, and types without order, are refused by name.
func TestField_C214_ClusterColumns(t *testing.T) {
	schema := allTypes()
	find := func(name string) int {
		f, ok := schema.FindFieldByName(name)
		if !ok {
			t.Fatalf("no field %s", name)
		}
		return f.ID
	}
	in := newStore()
	in.put(t, "in", recordOf(t, schema, 1000, 3))
	out := newStore()
	j := job(t, schema, in, out, find("s.in.x"), find("s.a"))
	j.Writer.RowGroupRows = 100
	result, err := Cluster(context.Background(), j)
	if err != nil {
		t.Fatal(err)
	}
	if want, got := in.rows(t), out.rows(t); !slices.Equal(want, got) {
		t.Error(firstDifference(want, got))
	}
	if result.DepthAfter > 4 {
		t.Errorf("depth %v after clustering by struct fields", result.DepthAfter)
	}
	for name, want := range map[string]string{"l.element": `cannot cluster by "l.element": it is inside a list or a map`,
		"m.key": `cannot cluster by "m.key": it is inside a list or a map`, "s": `cannot cluster by "s": type struct`, "l": `cannot cluster by "l": type list`} {
		_, err := Cluster(context.Background(), job(t, schema, in, newStore(), find(name)))
		if fault.KindOf(err) != fault.Validation || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCluster_RowLineage(t *testing.T) {
	schema := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "a", Type: iceberg.PrimitiveTypes.Int64, Required: true})
	in, out := newStore(), newStore()
	for f := range 2 {
		n := int64(0)
		in.put(t, fmt.Sprintf("in-%d", f), arrowRecord(1000, []arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int64, Metadata: fieldID(1)}}, func(b *array.RecordBuilder) {
			b.Field(0).(*array.Int64Builder).Append((n * 7919) % 1000)
			n++
		}))
	}
	run := func(in, out *store, firsts ...int64) {
		j := job(t, schema, in, out, 1)
		j.RowLineage = true
		j.Writer.RowGroupRows = 100
		for i := range j.Inputs {
			j.Inputs[i].DataSequenceNumber = int64(i + 5)
			if i < len(firsts) {
				j.Inputs[i].FirstRowID = &firsts[i]
			}
		}
		if _, err := Cluster(context.Background(), j); err != nil {
			t.Fatal(err)
		}
	}
	run(in, out, 10_000, 20_000)
	var want []string
	for f := range int64(2) {
		for n := range int64(1000) {
			want = append(want, fmt.Sprintf("%d|%d|%d|", (n*7919)%1000, 10_000*(f+1)+n, f+5))
		}
	}
	slices.Sort(want)
	if got := out.rows(t); !slices.Equal(got, want) {
		t.Fatal(firstDifference(want, got))
	}
	again := newStore() // ids that a file carries win over its manifest entry's
	run(out, again, 99_000)
	if got := again.rows(t); !slices.Equal(got, want) {
		t.Fatal(firstDifference(want, got))
	}
	j := job(t, schema, in, newStore(), 1)
	j.RowLineage = true
	if _, err := Cluster(context.Background(), j); fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "first row id") {
		t.Errorf("without first row ids: %v", err)
	}
}
