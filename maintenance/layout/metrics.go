package layout

import (
	"bytes"
	"fmt"

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
	if bytes.Compare(lo, hi) > 0 { // no writer means this; say nothing rather than something wrong
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

// boxesOf gives the row groups' boxes over the clustering columns, as the footers have them.
func boxesOf(sources []*source) []Box {
	var boxes []Box
	for _, s := range sources {
		boxes = append(boxes, s.boxes...)
	}
	return boxes
}
