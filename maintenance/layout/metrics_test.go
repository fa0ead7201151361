package layout

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"pgregory.net/rapid"

	"catalogd/maintenance/zorder"
)

// Counts and bounds must hold for every value that is in the file, by a count over the file's own rows.
func TestCluster_MetricsHoldForEveryValue(t *testing.T) {
	schema := allTypes()
	in := newStore()
	for i := range 2 {
		in.put(t, fmt.Sprintf("in-%d", i), recordOf(t, schema, 500, uint64(i)))
	}
	out := newStore()
	j := job(t, schema, in, out, 5, 12)
	j.Writer.RowGroupRows = 100
	result, err := Cluster(context.Background(), j)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range result.Files {
		checkFile(t, schema, out, f)
	}
}

func checkFile(t *testing.T, schema *iceberg.Schema, s *store, f OutputFile) {
	t.Helper()
	if int64(len(s.files[f.Path])) != f.SizeBytes {
		t.Errorf("%s: size %d, told %d", f.Path, len(s.files[f.Path]), f.SizeBytes)
	}
	footer := s.footer(t, f.Path)
	if len(f.SplitOffsets) != footer.NumRowGroups() || len(f.Boxes) != footer.NumRowGroups() || f.SplitOffsets[0] != 4 {
		t.Errorf("%s: %d row groups, split offsets %v, %d boxes", f.Path, footer.NumRowGroups(), f.SplitOffsets, len(f.Boxes))
	}
	table := s.table(t, f.Path)
	if table.NumRows() != f.RecordCount {
		t.Errorf("%s: %d rows, told %d", f.Path, table.NumRows(), f.RecordCount)
	}
	for i, field := range schema.Fields() {
		if _, primitive := field.Type.(iceberg.PrimitiveType); !primitive {
			continue
		}
		var values, nulls, nans int64
		for _, chunk := range table.Column(i).Data().Chunks() {
			values += int64(chunk.Len())
			nulls += int64(chunk.NullN())
			for row := range chunk.Len() {
				if chunk.IsValid(row) && isNaN(chunk, row) {
					nans++
				} else if chunk.IsValid(row) {
					checkBounds(t, field, f, chunk, row)
				}
			}
		}
		if f.ValueCounts[field.ID] != values || f.NullValueCounts[field.ID] != nulls {
			t.Errorf("%s: %d values, %d nulls; told %d, %d", field.Name, values, nulls, f.ValueCounts[field.ID], f.NullValueCounts[field.ID])
		}
		if told, floating := f.NaNValueCounts[field.ID]; told != nans || floating != strings.Contains(field.Name, "float") && floating != strings.Contains(field.Name, "double") {
			t.Errorf("%s: %d NaNs, told %d (%v)", field.Name, nans, told, floating)
		}
		if f.ColumnSizes[field.ID] <= 0 {
			t.Errorf("%s: column size %d", field.Name, f.ColumnSizes[field.ID])
		}
	}
}

func isNaN(a arrow.Array, row int) bool {
	switch a := a.(type) {
	case *array.Float32:
		return a.Value(row) != a.Value(row)
	case *array.Float64:
		return math.IsNaN(a.Value(row))
	}
	return false
}

func checkBounds(t *testing.T, field iceberg.NestedField, f OutputFile, a arrow.Array, row int) {
	t.Helper()
	c := column{field: arrow.Field{Type: primitiveArrowType(field.Type)}}
	class, width := classOf(c.field.Type)
	v, err := fromArrow(class, width, a)
	if err != nil {
		t.Fatal(err)
	}
	zt, _ := zorder.ParseType(field.Type.String())
	value := orderedValue(zt, v, row)
	lower, upper := f.LowerBounds[field.ID], f.UpperBounds[field.ID]
	if lower == nil || bytes.Compare(orderedSingle(zt, lower), value) > 0 {
		t.Fatalf("%s: value %s is below the lower bound %x", field.Name, a.ValueStr(row), lower)
	}
	// A string of the highest characters can't be raised: it has no upper bound.
	if upper != nil && bytes.Compare(orderedSingle(zt, upper), value) < 0 {
		t.Fatalf("%s: value %s is above the upper bound %x", field.Name, a.ValueStr(row), upper)
	}
}

// orderedValue gives the ordered bytes of a value, by another way than the code under test takes.
func orderedValue(zt zorder.Type, v *vec, row int) []byte {
	switch v.class {
	case class8:
		if zt.Kind == zorder.Double {
			return zorder.AppendDouble(nil, math.Float64frombits(v.w8[row]))
		}
		return zorder.AppendLong(nil, int64(v.w8[row]))
	case class4:
		if zt.Kind == zorder.Float {
			return zorder.AppendFloat(nil, math.Float32frombits(v.w4[row]))
		}
		return zorder.AppendInt(nil, int32(v.w4[row]))
	case classBit:
		return zorder.AppendBool(nil, v.bitAt(row))
	case classFixed:
		if zt.Kind == zorder.Decimal {
			b := v.fixedAt(row)
			words := view[uint64](append([]byte(nil), b...))
			return zorder.AppendDecimal(nil, int64(words[1]), words[0], zt.Precision)
		}
		return v.fixedAt(row)
	}
	return v.bytesAt(row)
}

// orderedSingle gives the ordered bytes of a single-value serialisation.
func orderedSingle(zt zorder.Type, b []byte) []byte {
	if zt.Kind != zorder.Decimal {
		return orderedBound(zt, b)
	}
	high, low := int64(0), uint64(0)
	if b[0]&0x80 != 0 {
		high, low = -1, math.MaxUint64
	}
	for _, x := range b {
		high = high<<8 | int64(low>>56)
		low = low<<8 | uint64(x)
	}
	return zorder.AppendDecimal(nil, high, low, zt.Precision)
}

// The table format's own library must read the bounds as values.
func TestCluster_BoundsAreSingleValues(t *testing.T) {
	schema := allTypes()
	in, out := newStore(), newStore()
	in.put(t, "in", recordOf(t, schema, 300, 5))
	result, err := Cluster(context.Background(), job(t, schema, in, out, 3))
	if err != nil {
		t.Fatal(err)
	}
	for id, bound := range result.Files[0].LowerBounds {
		field, _ := schema.FindFieldByID(id)
		if _, err := iceberg.LiteralFromBytes(field.Type, bound); err != nil {
			t.Errorf("lower bound of %s: %v", field.Name, err)
		}
	}
}

func TestTruncateUpper_StaysAbove(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "value")
		limit := rapid.IntRange(1, 20).Draw(t, "limit")
		upper, ok := truncateUpper(iceberg.PrimitiveTypes.String, []byte(s), limit)
		if ok && bytes.Compare(upper, []byte(s)) < 0 {
			t.Fatalf("upper bound %q of %q", upper, s)
		}
		if lower := truncateLower(iceberg.PrimitiveTypes.String, []byte(s), limit); bytes.Compare(lower, []byte(s)) > 0 {
			t.Fatalf("lower bound %q of %q", lower, s)
		}
		b := rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")
		upper, ok = truncateUpper(iceberg.PrimitiveTypes.Binary, b, limit)
		if ok && bytes.Compare(upper, b) < 0 {
			t.Fatalf("upper bound %x of %x", upper, b)
		}
	})
}

func TestTruncateUpper_Table(t *testing.T) {
	for _, c := range []struct {
		in, want string
		ok       bool
	}{
		{"abc", "abc", true}, {"abcd", "abd", true}, {"ab\U0010ffffd", "ac", true}, {"\U0010ffff\U0010ffff\U0010ffffx", "", false},
		{"ab\ud7ffx", "ab\ue000", true}, {"ab\u007fx", "ab\u0080", true}, {"", "", true},
	} {
		got, ok := truncateUpper(iceberg.PrimitiveTypes.String, []byte(c.in), 3)
		if string(got) != c.want || ok != c.ok {
			t.Errorf("upper bound of %q in 3 characters: %q %v, want %q %v", c.in, got, ok, c.want, c.ok)
		}
	}
}

// Bounds of clustered strings must tell values apart behind their common prefix.
func TestCluster_ClusteredStringsKeepUsefulBounds(t *testing.T) {
	schema := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "k", Type: iceberg.PrimitiveTypes.String},
		iceberg.NestedField{ID: 2, Name: "p", Type: iceberg.PrimitiveTypes.String})
	b := array.NewRecordBuilder(memory.DefaultAllocator, recordOf(t, schema, 0, 1).Schema())
	for i := range 100 {
		b.Field(0).(*array.StringBuilder).Append(fmt.Sprintf("a prefix of more than sixteen characters/%03d", i))
		b.Field(1).(*array.StringBuilder).Append(fmt.Sprintf("a prefix of more than sixteen characters/%03d", i))
	}
	in, out := newStore(), newStore()
	in.put(t, "in", b.NewRecordBatch())
	result, err := Cluster(context.Background(), job(t, schema, in, out, 1))
	if err != nil {
		t.Fatal(err)
	}
	f := result.Files[0]
	if got := string(f.LowerBounds[1]); got != "a prefix of more than sixteen characters/000" {
		t.Errorf("lower bound of the clustering column: %q", got)
	}
	if got := string(f.LowerBounds[2]); got != "a prefix of more" {
		t.Errorf("lower bound of another column: %q", got)
	}
	if got := string(f.UpperBounds[2]); got != "a prefix of morf" {
		t.Errorf("upper bound of another column: %q", got)
	}
}
