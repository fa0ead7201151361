package layout

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/iceberg-go"

	"catalogd/maintenance/zorder"
)

// chunkFacts is what the footer says about one leaf of one row group.
type chunkFacts struct {
	values, nulls int64
	lo, hi        []byte // as stored in the footer: plain encoding
	hasBounds     bool
}

func factsOf(chunk *metadata.ColumnChunkMetaData) (chunkFacts, error) {
	facts := chunkFacts{values: chunk.NumValues()}
	set, err := chunk.StatsSet()
	if err != nil || !set {
		return facts, err
	}
	stats, err := chunk.Statistics()
	if err != nil || stats == nil {
		return facts, err
	}
	if stats.HasNullCount() {
		facts.nulls = stats.NullCount()
	}
	if stats.HasMinMax() {
		facts.lo, facts.hi, facts.hasBounds = stats.EncodeMin(), stats.EncodeMax(), true
	}
	return facts, nil
}

// describe turns the footer into what a manifest entry needs.
func (f *fileWriter) describe(footer *metadata.FileMetaData) (OutputFile, error) {
	out := OutputFile{Path: f.out.Path(), RecordCount: f.rows, SizeBytes: f.count.bytes,
		ColumnSizes: map[int]int64{}, ValueCounts: map[int]int64{}, NullValueCounts: map[int]int64{},
		NaNValueCounts: map[int]int64{}, LowerBounds: map[int][]byte{}, UpperBounds: map[int][]byte{}}
	if footer.NumRows != f.rows {
		return out, fmt.Errorf("data file %s: footer has %d rows, %d were written", out.Path, footer.NumRows, f.rows)
	}
	leaves := f.e.p.leaves()
	totals := make([]chunkFacts, len(leaves))
	for i := range footer.NumRowGroups() {
		rg := footer.RowGroup(i)
		for l := range leaves {
			chunk, err := rg.ColumnChunk(l)
			if err != nil {
				return out, err
			}
			if l == 0 {
				out.SplitOffsets = append(out.SplitOffsets, chunkStart(chunk))
			}
			facts, err := factsOf(chunk)
			if err != nil {
				return out, err
			}
			totals[l].merge(facts, leaves[l].itype)
			out.ColumnSizes[leaves[l].id] += chunk.TotalCompressedSize()
		}
		box, err := boxOf(f.e.p, rg, leaves)
		if err != nil {
			return out, err
		}
		out.Boxes = append(out.Boxes, box)
	}
	for ordinal, l := range leaves {
		f.describeLeaf(&out, ordinal, l, totals[ordinal])
	}
	return out, nil
}

func chunkStart(chunk *metadata.ColumnChunkMetaData) int64 {
	start := chunk.DataPageOffset()
	if chunk.HasDictionaryPage() && chunk.DictionaryPageOffset() > 0 {
		start = min(start, chunk.DictionaryPageOffset())
	}
	return start
}

// merge widens by another row group's facts.
func (t *chunkFacts) merge(o chunkFacts, itype iceberg.PrimitiveType) {
	t.values += o.values
	t.nulls += o.nulls
	if !o.hasBounds {
		return
	}
	if !t.hasBounds {
		t.lo, t.hi, t.hasBounds = o.lo, o.hi, true
		return
	}
	if compareBounds(itype, o.lo, t.lo) < 0 {
		t.lo = o.lo
	}
	if compareBounds(itype, o.hi, t.hi) > 0 {
		t.hi = o.hi
	}
}

func compareBounds(itype iceberg.PrimitiveType, a, b []byte) int {
	t, ok := zorder.ParseType(itype.String())
	if !ok {
		return 0
	}
	return compareBytes(orderedBound(t, a), orderedBound(t, b))
}

func compareBytes(a, b []byte) int {
	switch {
	case string(a) < string(b):
		return -1
	case string(a) > string(b):
		return 1
	}
	return 0
}

// orderedBound gives the ordered bytes (without marker) of a footer's plain-encoded bound.
func orderedBound(t zorder.Type, plain []byte) []byte {
	switch t.Kind {
	case zorder.Boolean:
		return zorder.AppendBool(nil, len(plain) > 0 && plain[0] != 0)
	case zorder.Int, zorder.Date:
		return zorder.AppendInt(nil, int32(binary.LittleEndian.Uint32(plain)))
	case zorder.Float:
		return zorder.AppendFloat(nil, math.Float32frombits(binary.LittleEndian.Uint32(plain)))
	case zorder.Double:
		return zorder.AppendDouble(nil, math.Float64frombits(binary.LittleEndian.Uint64(plain)))
	case zorder.Decimal:
		high, low := decimalBound(t, plain)
		return zorder.AppendDecimal(nil, high, low, t.Precision)
	case zorder.String, zorder.UUID, zorder.Fixed, zorder.Binary:
		return zorder.AppendBytes(nil, plain)
	}
	return zorder.AppendLong(nil, int64(binary.LittleEndian.Uint64(plain)))
}

// promotedBound widens a bound from a file that was written before its column was promoted; false when its width fits
// no type that can become t.
func promotedBound(t zorder.Type, plain []byte) ([]byte, bool) {
	width := 8
	switch t.Kind {
	case zorder.String, zorder.Binary, zorder.Fixed, zorder.UUID:
		return plain, true
	case zorder.Decimal:
		return plain, len(plain) > 0 && len(plain) <= 16
	case zorder.Boolean:
		return plain, len(plain) == 1
	case zorder.Int, zorder.Date, zorder.Float:
		width = 4
	}
	if len(plain) == width {
		return plain, true
	}
	if len(plain) != 4 {
		return nil, false
	}
	narrow := binary.LittleEndian.Uint32(plain)
	switch t.Kind {
	case zorder.Long:
		return binary.LittleEndian.AppendUint64(nil, uint64(int64(int32(narrow)))), true
	case zorder.Double:
		return binary.LittleEndian.AppendUint64(nil, math.Float64bits(float64(math.Float32frombits(narrow)))), true
	case zorder.Timestamp, zorder.TimestampTz:
		return binary.LittleEndian.AppendUint64(nil, uint64(int64(int32(narrow))*microsPerDay)), true
	case zorder.TimestampNs, zorder.TimestampTzNs:
		return binary.LittleEndian.AppendUint64(nil, uint64(int64(int32(narrow))*microsPerDay*1000)), true
	}
	return nil, false
}

// decimalBound reads a decimal bound: little-endian when stored as an integer, big-endian bytes otherwise.
func decimalBound(t zorder.Type, plain []byte) (high int64, low uint64) {
	switch {
	case t.Precision <= 9 && len(plain) == 4:
		v := int64(int32(binary.LittleEndian.Uint32(plain)))
		return v >> 63, uint64(v)
	case t.Precision <= 18 && len(plain) == 8:
		v := int64(binary.LittleEndian.Uint64(plain))
		return v >> 63, uint64(v)
	}
	if len(plain) > 0 && plain[0]&0x80 != 0 {
		high, low = -1, ^uint64(0)
	}
	for _, b := range plain {
		high = high<<8 | int64(low>>56)
		low = low<<8 | uint64(b)
	}
	return high, low
}

// boxOf reads a row group's box over the clustering columns.
func boxOf(p *plan, rg *metadata.RowGroupMetaData, leaves []leaf) (Box, error) {
	box := Box{Rows: rg.NumRows(), Bytes: rg.TotalByteSize(), Lo: make([][]byte, len(p.cluster)), Hi: make([][]byte, len(p.cluster))}
	for i, c := range p.cluster {
		for l, leaf := range leaves {
			if leaf.id != c.id {
				continue
			}
			chunk, err := rg.ColumnChunk(l)
			if err != nil {
				return box, err
			}
			facts, err := factsOf(chunk)
			if err != nil {
				return box, err
			}
			box.Lo[i], box.Hi[i] = boxSide(c.t, facts)
		}
	}
	return box, nil
}

// boxSide gives the bounds of one column of a box in ordered bytes, null first. Footers leave NaN out of their bounds, so
// a box says nothing about NaN.
func boxSide(t zorder.Type, facts chunkFacts) (lo, hi []byte) {
	null := zorder.AppendNull(nil, zorder.NullsFirst)
	if facts.nulls == facts.values && facts.values > 0 {
		return null, null
	}
	if !facts.hasBounds {
		return nil, nil
	}
	low, lowFits := promotedBound(t, facts.lo)
	high, highFits := promotedBound(t, facts.hi)
	if !lowFits || !highFits {
		return nil, nil
	}
	lo = append(zorder.AppendPresent(nil), orderedBound(t, low)...)
	hi = append(zorder.AppendPresent(nil), orderedBound(t, high)...)
	if compareBytes(lo, hi) > 0 { // no writer means this; say nothing rather than something wrong
		return nil, nil
	}
	if facts.nulls > 0 {
		lo = null
	}
	return lo, hi
}

// leaves gives the physical columns in the order of the Parquet schema.
func (p *plan) leaves() []leaf {
	var leaves []leaf
	for _, c := range p.columns {
		leaves = append(leaves, c.leaves...)
	}
	return leaves
}

func (f *fileWriter) describeLeaf(out *OutputFile, ordinal int, l leaf, t chunkFacts) {
	mode := f.e.s.Metrics.of(l.name, ordinal)
	clustered := false
	for _, c := range f.e.p.cluster {
		clustered = clustered || c.id == l.id
	}
	if clustered { // without bounds the files that were just clustered wouldn't be pruned
		mode.counts, mode.bounds = true, true
	}
	if !mode.counts {
		return
	}
	out.ValueCounts[l.id] = t.values
	out.NullValueCounts[l.id] = t.nulls
	if _, floating := l.itype.(iceberg.Float32Type); floating {
		out.NaNValueCounts[l.id] = f.nans[l.id]
	}
	if _, floating := l.itype.(iceberg.Float64Type); floating {
		out.NaNValueCounts[l.id] = f.nans[l.id]
	}
	if !mode.bounds || !t.hasBounds || l.depth > 0 { // bounds of repeated values are left out, as other writers do
		return
	}
	truncate := mode.truncate
	if clustered && truncate > 0 {
		truncate += commonPrefix(t.lo, t.hi)
	}
	lower, upper := singleValue(l.itype, t.lo), singleValue(l.itype, t.hi)
	lower = truncateLower(l.itype, lower, truncate)
	out.LowerBounds[l.id] = lower
	if upper, ok := truncateUpper(l.itype, upper, truncate); ok {
		out.UpperBounds[l.id] = upper
	}
}

// singleValue turns a footer's bound into the table format's single-value serialisation.
func singleValue(itype iceberg.PrimitiveType, plain []byte) []byte {
	d, ok := itype.(iceberg.DecimalType)
	if !ok {
		if _, boolean := itype.(iceberg.BooleanType); boolean && len(plain) > 0 && plain[0] != 0 {
			return []byte{1}
		}
		return append([]byte{}, plain...) // an empty string is a bound; nil is none
	}
	high, low := decimalBound(zorder.Type{Kind: zorder.Decimal, Precision: d.Precision()}, plain)
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(high))
	binary.BigEndian.PutUint64(b[8:], low)
	start := 0 // the fewest bytes that keep the sign
	for start < 15 && (b[start] == 0 && b[start+1]&0x80 == 0 || b[start] == 0xff && b[start+1]&0x80 != 0) {
		start++
	}
	return append([]byte(nil), b[start:]...)
}

// commonPrefix counts the characters (bytes for binary) that two bounds share at their start.
func commonPrefix(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func truncateLower(itype iceberg.PrimitiveType, bound []byte, limit int) []byte {
	if limit == 0 {
		return bound
	}
	switch itype.(type) {
	case iceberg.StringType:
		return bound[:characters(bound, limit)]
	case iceberg.BinaryType:
		return bound[:min(limit, len(bound))]
	}
	return bound
}

// truncateUpper shortens an upper bound and raises its last part, so that it stays above the value. ok is false when
// nothing can be raised: then there is no upper bound.
func truncateUpper(itype iceberg.PrimitiveType, bound []byte, limit int) (shortened []byte, ok bool) {
	if limit == 0 {
		return bound, true
	}
	switch itype.(type) {
	case iceberg.StringType:
		n := characters(bound, limit)
		if n == len(bound) {
			return bound, true
		}
		return raiseString(bound[:n])
	case iceberg.BinaryType:
		if len(bound) <= limit {
			return bound, true
		}
		return raiseBytes(bound[:limit])
	}
	return bound, true
}

// characters gives the bytes that the first n characters take.
func characters(b []byte, n int) int {
	at := 0
	for ; n > 0 && at < len(b); n-- {
		_, size := utf8.DecodeRune(b[at:])
		at += size
	}
	return at
}

func raiseString(b []byte) ([]byte, bool) {
	for len(b) > 0 {
		r, size := utf8.DecodeLastRune(b)
		head := b[:len(b)-size]
		if r != utf8.RuneError || size > 1 {
			for next := r + 1; next <= utf8.MaxRune; next++ {
				if utf8.ValidRune(next) {
					return utf8.AppendRune(append([]byte(nil), head...), next), true
				}
			}
		}
		b = head
	}
	return nil, false
}

func raiseBytes(b []byte) ([]byte, bool) {
	raised := append([]byte(nil), b...)
	for i := len(raised) - 1; i >= 0; i-- {
		if raised[i] < 0xff {
			raised[i]++
			return raised[:i+1], true
		}
	}
	return nil, false
}

// countNaN counts NaNs of a float or double column.
func countNaN(d *sealed, id arrow.Type, v *vec) int {
	n := 0
	switch v.class {
	case class8:
		for _, w := range v.w8 {
			if isNaN64(w) {
				n++
			}
		}
	case class4:
		for _, w := range v.w4 {
			if isNaN32(w) {
				n++
			}
		}
	case class2:
		nan := make([]bool, len(d.words))
		any := false
		for code, w := range d.words {
			nan[code] = id == arrow.FLOAT64 && isNaN64(w) || id == arrow.FLOAT32 && isNaN32(uint32(w))
			any = any || nan[code]
		}
		if !any {
			return 0
		}
		for i, code := range v.w2 {
			if nan[code] && !(v.nulls > 0 && v.isNull(i)) {
				n++
			}
		}
	}
	return n
}

// Shifted left by one, the sign is gone, and every NaN is above infinity.
func isNaN64(w uint64) bool { return w<<1 > 0x7ff<<53 }
func isNaN32(w uint32) bool { return w<<1 > 0xff<<24 }

// countNestedNaNs counts NaNs of the leaves of a nested column.
func countNestedNaNs(nans map[int]int64, leaves []leaf, a arrow.Array) {
	floating := false
	for _, l := range leaves {
		switch l.itype.(type) {
		case iceberg.Float32Type, iceberg.Float64Type:
			floating = true
		}
	}
	if floating {
		at := 0
		visitNaNs(nans, leaves, &at, a)
	}
}

// visitNaNs walks leaves in the order of the schema. Values under nulls are not reachable and are not counted by lists
// and maps; a struct's field under a null struct is checked one by one.
func visitNaNs(nans map[int]int64, leaves []leaf, at *int, a arrow.Array) {
	switch a := a.(type) {
	case *array.Struct:
		for f := range a.NumField() {
			visitNaNs(nans, leaves, at, a.Field(f))
		}
		return
	case *array.Map:
		start, end := offsetRange(a)
		for _, child := range []arrow.Array{a.Keys(), a.Items()} {
			slice := array.NewSlice(child, start, end)
			visitNaNs(nans, leaves, at, slice)
			slice.Release()
		}
		return
	case *array.List:
		start, end := offsetRange(a)
		slice := array.NewSlice(a.ListValues(), start, end)
		visitNaNs(nans, leaves, at, slice)
		slice.Release()
		return
	case *array.Float32:
		for i, v := range a.Float32Values() {
			if v != v && a.IsValid(i) {
				nans[leaves[*at].id]++
			}
		}
	case *array.Float64:
		for i, v := range a.Float64Values() {
			if v != v && a.IsValid(i) {
				nans[leaves[*at].id]++
			}
		}
	}
	*at++
}

func offsetRange(a array.ListLike) (start, end int64) {
	if a.Len() == 0 {
		return 0, 0
	}
	start, _ = a.ValueOffsets(0)
	_, end = a.ValueOffsets(a.Len() - 1)
	return start, end
}

// fileLeaves gives the field ids of a foreign file's leaf columns, in order.
func fileLeaves(footer *metadata.FileMetaData) []leaf {
	leaves := make([]leaf, footer.Schema.NumColumns())
	for i := range leaves {
		leaves[i].id = int(footer.Schema.Column(i).SchemaNode().FieldID())
	}
	return leaves
}

// Boxes reads the row groups' boxes of data files over the columns, from footers alone.
func Boxes(ctx context.Context, schema *iceberg.Schema, columns []int, inputs []Input) ([]Box, error) {
	p, err := newPlan(schema, columns, false)
	if err != nil {
		return nil, err
	}
	sources, err := openSources(ctx, p, inputs)
	if err != nil {
		return nil, err
	}
	return boxesOf(sources), nil
}

func boxesOf(sources []*source) []Box {
	var boxes []Box
	for _, s := range sources {
		boxes = append(boxes, s.boxes...)
	}
	return boxes
}
