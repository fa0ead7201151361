package layout

import (
	"fmt"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/arrow-go/v18/parquet/schema"

	"catalogd/internal/fault"
)

// mapping says where a file has the plan's columns. Columns are found by field id alone; names and order may have changed
// since the file was written.
type mapping struct {
	p            *plan
	path         string
	top          []int // by plan column: index of the file's top-level field; -1: missing
	firstLeaf    []int // by top-level field of the file: its first leaf column
	leafCount    []int
	fields       []arrow.Field
	dictionaries []bool // by plan column: the column can be read as dictionary codes
	convert      []conversion
}

// conversion turns a file's values into the current schema's; see conversionOf.
type conversion uint8

const (
	convertNone conversion = iota
	convertIntToLong
	convertFloatToDouble
	convertDateToTimestamp
	convertDateToTimestampNs
	convertMillisToMicros
	convertNested
)

// mapFile finds the plan's columns in a file's schema. What can't be mapped exactly is refused: wrong data is worse than
// files that stay as they are.
func mapFile(p *plan, sc *schema.Schema, path string) (*mapping, error) {
	m := &mapping{p: p, path: path, top: make([]int, len(p.columns)), dictionaries: make([]bool, len(p.columns)),
		convert: make([]conversion, len(p.columns))}
	manifest, err := pqarrow.NewSchemaManifest(sc, nil, &pqarrow.ArrowReadProperties{})
	if err != nil {
		return nil, fault.Wrap(fault.Unsupported, err, "data file %s has a Parquet schema that can't be read", path)
	}
	byID := map[int]int{}
	leaf := 0
	root := sc.Root()
	for i := range root.NumFields() {
		count := countLeaves(root.Field(i))
		m.firstLeaf, m.leafCount = append(m.firstLeaf, leaf), append(m.leafCount, count)
		m.fields = append(m.fields, *manifest.Fields[i].Field)
		leaf += count
		if id := int(root.Field(i).FieldID()); id >= 0 {
			byID[id] = i
		}
	}
	if len(byID) == 0 && root.NumFields() > 0 {
		return nil, fault.New(fault.Unsupported, "data file %s has no field ids (it was imported); rewriting it needs a name mapping, which is not supported yet", path)
	}
	for c := range p.columns {
		column := &p.columns[c]
		at, found := byID[column.id]
		if !found {
			if m.top[c] = -1; column.itype != nil {
				if err := refuseMissing(column, path); err != nil {
					return nil, err
				}
			}
			continue
		}
		m.top[c] = at
		if m.convert[c], err = m.conversionOf(column, sc, at); err != nil {
			return nil, err
		}
		m.dictionaries[c] = column.class == classBytes && m.convert[c] == convertNone
	}
	return m, nil
}

func countLeaves(node schema.Node) int {
	group, ok := node.(*schema.GroupNode)
	if !ok {
		return 1
	}
	n := 0
	for i := range group.NumFields() {
		n += countLeaves(group.Field(i))
	}
	return n
}

func refuseMissing(c *column, path string) error {
	if c.initialDefault {
		return refuseColumn(path, c, "the file was written before the column, which has an initial default; rewriting such files is not supported yet")
	}
	if c.inPartition {
		return refuseColumn(path, c, "the file leaves it out, and the partition has its value; rewriting such files is not supported yet")
	}
	if c.required {
		return refuseColumn(path, c, "it is required and has no initial default, but the file doesn't have it")
	}
	return nil
}

func refuseColumn(path string, c *column, why string, args ...any) error {
	return fault.New(fault.Unsupported, "data file %s, column %q: %s", path, c.name, fmt.Sprintf(why, args...))
}

// conversionOf decides how a file's column becomes the current schema's: as it is, or by one of the promotions that
// the table format allows.
func (m *mapping) conversionOf(c *column, sc *schema.Schema, at int) (conversion, error) {
	have := m.fields[at]
	if c.class == classNested {
		if !sameShape(have, c.field) {
			return 0, refuseColumn(m.path, c, "its nested fields differ from the current schema's; rewriting over a nested schema change is not supported yet")
		}
		return convertNested, nil
	}
	node := sc.Column(m.firstLeaf[at])
	if m.leafCount[at] != 1 || node.MaxRepetitionLevel() > 0 {
		return 0, refuseColumn(m.path, c, "the file has a nested type where the schema has %s", typeText(c))
	}
	if node.PhysicalType() == parquet.Types.Int96 {
		return 0, refuseColumn(m.path, c, "INT96 timestamps are not supported")
	}
	if how, ok := promotion(have.Type, c); ok {
		return how, nil
	}
	return 0, refuseColumn(m.path, c, "the file's type %s can't become %s", have.Type, typeText(c))
}

func typeText(c *column) string {
	if c.itype == nil {
		return "long"
	}
	return c.itype.String()
}

// promotion compares the Arrow form of a file's column with what the current schema wants.
func promotion(have arrow.DataType, c *column) (conversion, bool) {
	if e, ok := have.(arrow.ExtensionType); ok {
		have = e.StorageType()
	}
	want := c.field.Type
	if e, ok := want.(arrow.ExtensionType); ok {
		want = e.StorageType()
	}
	switch want := want.(type) {
	case *arrow.Int64Type:
		if have.ID() == arrow.INT32 {
			return convertIntToLong, true
		}
	case *arrow.Float64Type:
		if have.ID() == arrow.FLOAT32 {
			return convertFloatToDouble, true
		}
	case *arrow.Decimal128Type:
		d, ok := have.(*arrow.Decimal128Type)
		return convertNone, ok && d.Scale == want.Scale && d.Precision <= want.Precision
	case *arrow.TimestampType:
		return timestampPromotion(have, want)
	case *arrow.StringType, *arrow.BinaryType:
		// A string without its annotation is stored as plain binary by some writers; the bytes are the same.
		return convertNone, have.ID() == arrow.STRING || have.ID() == arrow.BINARY
	}
	return convertNone, arrow.TypeEqual(have, want)
}

// timestampPromotion ignores the zone flag: the stored number is the same, and readers go by the table's schema.
func timestampPromotion(have arrow.DataType, want *arrow.TimestampType) (conversion, bool) {
	if have.ID() == arrow.DATE32 {
		if want.Unit == arrow.Nanosecond {
			return convertDateToTimestampNs, true
		}
		return convertDateToTimestamp, true
	}
	t, ok := have.(*arrow.TimestampType)
	if !ok {
		return 0, false
	}
	if t.Unit == arrow.Millisecond && want.Unit == arrow.Microsecond {
		return convertMillisToMicros, true
	}
	return convertNone, t.Unit == want.Unit
}

// sameShape tells whether two nested fields have the same ids and physical types all the way down. Names may differ.
func sameShape(have, want arrow.Field) bool {
	if !slices.Equal(idOf(have), idOf(want)) {
		return false
	}
	switch want := want.Type.(type) {
	case *arrow.StructType:
		have, ok := have.Type.(*arrow.StructType)
		if !ok || have.NumFields() != want.NumFields() {
			return false
		}
		for i := range want.NumFields() {
			if !sameShape(have.Field(i), want.Field(i)) {
				return false
			}
		}
		return true
	case *arrow.MapType:
		have, ok := have.Type.(*arrow.MapType)
		return ok && sameShape(have.KeyField(), want.KeyField()) && sameShape(have.ItemField(), want.ItemField())
	case *arrow.ListType:
		have, ok := have.Type.(*arrow.ListType)
		return ok && sameShape(have.ElemField(), want.ElemField())
	case *arrow.TimestampType:
		have, ok := have.Type.(*arrow.TimestampType)
		return ok && have.Unit == want.Unit
	}
	return arrow.TypeEqual(have.Type, want.Type)
}

func idOf(f arrow.Field) []string {
	if id, ok := f.Metadata.GetValue("PARQUET:field_id"); ok {
		return []string{id}
	}
	return nil
}

// leavesOf gives the file's leaf columns for the wanted plan columns, ascending, and where each top-level field of the
// file then stands in a record.
func (m *mapping) leavesOf(wanted []int) (leaves []int, position map[int]int) {
	var tops []int
	for _, c := range wanted {
		if m.top[c] >= 0 {
			tops = append(tops, m.top[c])
		}
	}
	slices.Sort(tops)
	position = make(map[int]int, len(tops))
	for i, top := range tops {
		position[top] = i
		for j := range m.leafCount[top] {
			leaves = append(leaves, m.firstLeaf[top]+j)
		}
	}
	return leaves, position
}

// column gives a plan column's values out of a record.
func (m *mapping) column(s *source, c int, record arrow.RecordBatch, position map[int]int, b *batch) (*vec, error) {
	column := &m.p.columns[c]
	if m.top[c] < 0 {
		return missing(s, column, b)
	}
	a := record.Column(position[m.top[c]])
	v, err := m.values(column, m.convert[c], a)
	if err != nil {
		return nil, err
	}
	if column.itype == nil {
		return fillLineage(s, column, v, b)
	}
	if column.required && v.nulls > 0 {
		return nil, refuseColumn(m.path, column, "it is required, but the file has nulls")
	}
	return v, nil
}

func (m *mapping) values(c *column, how conversion, a arrow.Array) (*vec, error) {
	switch how {
	case convertNested:
		if (c.required && a.NullN() > 0) || !nullsFit(a, c.field.Type) {
			return nil, refuseColumn(m.path, c, "the file has nulls where the schema requires a value")
		}
		relabelled := relabel(a, c.field.Type)
		return &vec{class: classNested, n: a.Len(), arrs: []arrow.Array{relabelled}}, nil
	case convertIntToLong:
		return widen(a, func(w uint32) uint64 { return uint64(int64(int32(w))) })
	case convertFloatToDouble:
		return widen(a, func(w uint32) uint64 { return math.Float64bits(float64(math.Float32frombits(w))) })
	case convertDateToTimestamp:
		return widen(a, func(w uint32) uint64 { return uint64(int64(int32(w)) * microsPerDay) })
	case convertDateToTimestampNs:
		return widen(a, func(w uint32) uint64 { return uint64(int64(int32(w)) * microsPerDay * 1000) })
	}
	if d, ok := a.(*array.Dictionary); ok {
		return fromDictionary(d)
	}
	v, err := fromArrow(c.class, c.width, a)
	if err == nil && how == convertMillisToMicros {
		words := make([]uint64, len(v.w8))
		for i, w := range v.w8 {
			words[i] = uint64(int64(w) * 1000)
		}
		v.w8 = words
	}
	return v, err
}

const microsPerDay = 86_400_000_000

func widen(a arrow.Array, f func(uint32) uint64) (*vec, error) {
	narrow, err := fromArrow(class4, 4, a)
	if err != nil {
		return nil, err
	}
	v := &vec{class: class8, width: 8, n: narrow.n, nulls: narrow.nulls, valid: narrow.valid, w8: make([]uint64, narrow.n)}
	for i, w := range narrow.w4 {
		v.w8[i] = f(w)
	}
	return v, nil
}

// fromDictionary gives a dictionary array as it is: codes into the chunk's own dictionary. The coder translates them.
func fromDictionary(d *array.Dictionary) (*vec, error) {
	v := &vec{class: classDictionary, n: d.Len(), dictionary: d}
	return v, nil
}

// missing gives the values of a column that the file doesn't have: null, or what lineage derives from the manifest.
func missing(s *source, c *column, b *batch) (*vec, error) {
	if c.itype == nil {
		return fillLineage(s, c, nullVec(class8, 8, b.rows), b)
	}
	if c.class == classNested {
		a := array.MakeArrayOfNull(memory.DefaultAllocator, c.field.Type, b.rows)
		return &vec{class: classNested, n: b.rows, arrs: []arrow.Array{a}}, nil
	}
	return nullVec(c.class, c.width, b.rows), nil
}

func nullVec(c class, width, n int) *vec {
	v := newVec(c, width)
	v.n, v.nulls = n, n
	v.valid = make([]byte, (n+7)/8)
	switch c {
	case class8:
		v.w8 = make([]uint64, n)
	case class4:
		v.w4 = make([]uint32, n)
	case classBit:
		v.bits = make([]byte, (n+7)/8)
	case classFixed:
		v.raw = make([]byte, n*width)
	case classBytes:
		v.offs = make([]int32, n+1)
	}
	return v
}

// fillLineage replaces nulls of a lineage column: a row's id is the file's first row id plus its position, and its last
// update is the file's data sequence number.
func fillLineage(s *source, c *column, v *vec, b *batch) (*vec, error) {
	if v.nulls == 0 {
		return v, nil
	}
	if c.id == fieldRowID && s.FirstRowID == nil {
		return nil, fault.New(fault.Unsupported, "data file %s has no first row id; its rows' ids would be lost", s.Path)
	}
	filled := &vec{class: class8, width: 8, n: v.n, w8: append([]uint64(nil), v.w8...)}
	for i := range filled.w8 {
		if !v.isNull(i) {
			continue
		}
		if c.id == fieldRowID {
			filled.w8[i] = uint64(*s.FirstRowID + b.firstRow + int64(i))
		} else {
			filled.w8[i] = uint64(s.DataSequenceNumber)
		}
	}
	return filled, nil
}
