package layout

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/apache/iceberg-go"

	"catalogd/maintenance/zorder"
)

// allTypes has every primitive type, optional and required, and nested columns.
func allTypes() *iceberg.Schema {
	fields := []iceberg.NestedField{}
	id := 0
	next := func() int { id++; return id }
	for _, t := range primitives() {
		fields = append(fields, iceberg.NestedField{ID: next(), Name: fmt.Sprintf("o %s", t), Type: t})
	}
	for _, t := range primitives() {
		fields = append(fields, iceberg.NestedField{ID: next(), Name: fmt.Sprintf("r %s", t), Type: t, Required: true})
	}
	inner := &iceberg.StructType{FieldList: []iceberg.NestedField{
		{ID: next(), Name: "x", Type: iceberg.PrimitiveTypes.Int64},
		{ID: next(), Name: "y", Type: iceberg.PrimitiveTypes.Float64, Required: true},
		{ID: next(), Name: "z", Type: iceberg.PrimitiveTypes.UUID},
	}}
	fields = append(fields,
		iceberg.NestedField{ID: next(), Name: "s", Type: &iceberg.StructType{FieldList: []iceberg.NestedField{
			{ID: next(), Name: "a", Type: iceberg.PrimitiveTypes.String},
			{ID: next(), Name: "in", Type: inner},
		}}},
		iceberg.NestedField{ID: next(), Name: "l", Type: &iceberg.ListType{ElementID: next(), Element: iceberg.PrimitiveTypes.Float64}},
		iceberg.NestedField{ID: next(), Name: "ll", Type: &iceberg.ListType{ElementID: next(), Element: &iceberg.ListType{
			ElementID: next(), Element: iceberg.PrimitiveTypes.String, ElementRequired: true}}},
		iceberg.NestedField{ID: next(), Name: "m", Required: true, Type: &iceberg.MapType{KeyID: next(), KeyType: iceberg.PrimitiveTypes.String,
			ValueID: next(), ValueType: &iceberg.StructType{FieldList: []iceberg.NestedField{
				{ID: next(), Name: "d", Type: iceberg.DecimalTypeOf(9, 2)},
				{ID: next(), Name: "l", Type: &iceberg.ListType{ElementID: next(), Element: iceberg.PrimitiveTypes.Date}},
			}}}},
		iceberg.NestedField{ID: next(), Name: "ls", Type: &iceberg.ListType{ElementID: next(), ElementRequired: true, Element: &iceberg.StructType{
			FieldList: []iceberg.NestedField{{ID: next(), Name: "b", Type: iceberg.PrimitiveTypes.Bool, Required: true}}}}},
	)
	return iceberg.NewSchema(1, fields...)
}

func primitives() []iceberg.Type {
	p := iceberg.PrimitiveTypes
	return []iceberg.Type{p.Bool, p.Int32, p.Int64, p.Float32, p.Float64, p.Date, p.Time, p.Timestamp, p.TimestampTz, p.TimestampNs, p.TimestampTzNs,
		p.String, p.UUID, p.Binary, iceberg.FixedTypeOf(5), iceberg.DecimalTypeOf(7, 2), iceberg.DecimalTypeOf(15, 3), iceberg.DecimalTypeOf(30, 4)}
}

func TestCluster_EveryTypeKeepsItsRows(t *testing.T) {
	schema := allTypes()
	in := newStore()
	for i := range 3 {
		in.put(t, fmt.Sprintf("in-%d", i), recordOf(t, schema, 300, uint64(i)))
	}
	want := in.rows(t)
	for _, workers := range []int{1, 2} {
		for c := range primitives() {
			columns := []int{c + 1, c + 1 + len(primitives()), 7}
			out := newStore()
			j := job(t, schema, in, out, columns[:2+c%2]...)
			j.Workers = workers
			j.Writer.RowGroupRows = 100
			result, err := Cluster(context.Background(), j)
			if err != nil {
				t.Fatalf("columns %v: %v", columns, err)
			}
			if got := out.rows(t); !slices.Equal(got, want) {
				t.Fatalf("columns %v: rows differ: %d in, %d out, first difference %s", columns, len(want), len(got), firstDifference(want, got))
			}
			if result.RowsOut != 900 || result.ChecksumIn != result.ChecksumOut || result.RowGroupsOut != 9 {
				t.Errorf("columns %v: %+v", columns, result)
			}
			emptyFolder(t, j.SpillDir)
			if workers == 2 {
				break
			}
		}
	}
}

func firstDifference(a, b []string) string {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return a[i] + " <> " + b[i]
		}
	}
	return "in length"
}

func TestCopy_EveryTypeKeepsItsRowsInOrder(t *testing.T) {
	schema := allTypes()
	in, out := newStore(), newStore()
	in.put(t, "in", recordOf(t, schema, 1500, 1))
	j := job(t, schema, in, out)
	j.Writer.RowGroupRows = 400
	if _, err := Copy(context.Background(), j); err != nil {
		t.Fatal(err)
	}
	if got, want := out.rowsOf(t, "out-0"), in.rowsOf(t, "in"); !slices.Equal(got, want) {
		t.Fatal(firstDifference(want, got))
	}
}

func TestCluster_SpillsAndKeepsItsRows(t *testing.T) {
	schema := allTypes()
	in, out := newStore(), newStore()
	for i := range 4 {
		in.put(t, fmt.Sprintf("in-%d", i), recordOf(t, schema, 2500, uint64(i)))
	}
	j := job(t, schema, in, out, 3, 12)
	j.MemoryBytes = memoryBytesMin
	want := in.rows(t)
	for _, curve := range []zorder.Curve{zorder.Hilbert, zorder.ZOrder, zorder.Linear} {
		j.Curve = curve
		result, err := Cluster(context.Background(), j)
		if err != nil {
			t.Fatal(err)
		}
		if result.SpilledBytes == 0 {
			t.Error("nothing was spilled: the test shows nothing")
		}
		if got := out.rows(t); !slices.Equal(got, want) {
			t.Fatal(firstDifference(want, got))
		}
		emptyFolder(t, j.SpillDir)
	}
}
