package layout

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// fileWriter writes one Parquet file, a row group at a time and a column at a time.
type fileWriter struct {
	e     *encoder
	out   Output
	w     *file.Writer
	count countingWriter

	rows   int64
	nans   map[int]int64
	arrow  context.Context // the library keeps its settings and scratch in a context
	codes  []uint32        // scratch
	levels []int16         // ones
}

type countingWriter struct {
	to    Output
	bytes int64
}

func (c *countingWriter) Write(b []byte) (int, error) {
	n, err := c.to.Write(b)
	c.bytes += int64(n)
	return n, err
}

// encoder is what all files of a job have in common.
type encoder struct {
	p     *plan
	s     WriterSettings
	codec compress.Compression
	// plainColumns are columns for which a dictionary in the file gains nothing.
	plainColumns []bool
}

func newEncoder(p *plan, s WriterSettings) (*encoder, error) {
	codec, err := s.codec()
	return &encoder{p: p, s: s, codec: codec, plainColumns: make([]bool, len(p.columns))}, err
}

func (e *encoder) properties() *parquet.WriterProperties {
	options := []parquet.WriterProperty{
		parquet.WithVersion(parquet.V2_LATEST),
		parquet.WithDataPageVersion(parquet.DataPageV1),
		parquet.WithDataPageSize(orDefault(e.s.PageBytes, pageBytesDefault)),
		parquet.WithDictionaryPageSizeLimit(orDefault(e.s.DictionaryBytes, dictionaryBytesDefault)),
		parquet.WithDictionaryDefault(true),
		parquet.WithMaxRowGroupLength(1 << 40), // row groups are cut by hand
		parquet.WithCompression(e.codec),
		parquet.WithStoreDecimalAsInteger(true),
		parquet.WithPageIndexEnabled(true),
		parquet.WithCreatedBy(e.createdBy()),
		parquet.WithRootName("table"),
	}
	if level := e.level(); level != 0 {
		options = append(options, parquet.WithCompressionLevel(level))
	}
	for c, column := range e.p.columns {
		if e.plainColumns[c] {
			options = append(options, parquet.WithDictionaryFor(column.name, false))
		}
	}
	return parquet.NewWriterProperties(options...)
}

func (e *encoder) createdBy() string {
	if e.s.CreatedBy != "" {
		return e.s.CreatedBy
	}
	return createdByDefault
}

func (e *encoder) level() int {
	if e.s.CompressionLevel == 0 && e.codec == compress.Codecs.Zstd {
		return zstdLevelDefault
	}
	return e.s.CompressionLevel
}

func (e *encoder) open(out Output) (*fileWriter, error) {
	writing := pqarrow.DefaultWriterProps()
	f := &fileWriter{e: e, out: out, nans: map[int]int64{}, arrow: pqarrow.NewArrowWriteContext(context.Background(), &writing)}
	f.count.to = out
	properties := e.properties()
	sc, err := pqarrow.ToParquet(e.p.schema, properties, pqarrow.DefaultWriterProps())
	if err != nil {
		return nil, fmt.Errorf("make Parquet schema: %w", err)
	}
	metadata := metadata.KeyValueMetadata{}
	if err := metadata.Append("iceberg.schema", e.p.json); err != nil {
		return nil, err
	}
	f.w, err = file.NewParquetWriterWithError(&f.count, sc.Root(), file.WithWriterProps(properties), file.WithWriteMetadata(metadata))
	if err != nil {
		return nil, fmt.Errorf("start data file: %w", err)
	}
	return f, nil
}

// writeRowGroup writes one row group. column gives the values of a plan column, in memory that the next call may use.
// dicts are the job's dictionaries of coded columns.
func (f *fileWriter) writeRowGroup(rows int, dicts []*sealed, column func(c int) (*vec, error)) error {
	rg, err := f.w.AppendRowGroupChecked()
	if err != nil {
		return fmt.Errorf("start row group: %w", err)
	}
	for c := range f.e.p.columns {
		v, err := column(c)
		if err != nil {
			return err
		}
		if v.n != rows {
			return fmt.Errorf("column %q has %d values for a row group of %d rows", f.e.p.columns[c].name, v.n, rows)
		}
		f.countNaNs(c, v, dicts[c])
		if err := f.writeColumn(rg, c, v, dicts[c]); err != nil {
			return fmt.Errorf("write column %q: %w", f.e.p.columns[c].name, err)
		}
	}
	f.rows += int64(rows)
	if err := rg.Close(); err != nil {
		return fmt.Errorf("finish row group: %w", err)
	}
	return nil
}

// writeColumn writes a top-level column's chunk, or chunks when it is nested.
func (f *fileWriter) writeColumn(rg file.SerialRowGroupWriter, c int, v *vec, d *sealed) error {
	column := &f.e.p.columns[c]
	if v.class == classNested {
		return f.writeNested(rg, column, v)
	}
	cw, err := rg.NextColumn()
	if err != nil {
		return err
	}
	levels := f.flatLevels(column, v)
	var codes []uint32
	var values *vec
	switch {
	case v.class == class2:
		codes, values = f.compactCodes(d, v)
		if codes == nil { // nothing but nulls
			v, values = nullVec(column.class, column.width, v.n), nil
		}
	case (v.class == class8 || v.class == class4) && !f.e.plainColumns[c]:
		if codes, values = f.buildDictionary(v); codes == nil {
			cw.FallbackToPlain() // or the library would build one itself, to give it up later
		}
	}
	if codes != nil {
		return f.writeCodes(cw, column, v, codes, values, levels)
	}
	a, err := v.toArrow(column.field.Type)
	if err != nil {
		return err
	}
	defer a.Release()
	return pqarrow.WriteArrowToColumn(f.arrow, cw, a, levels, nil, !column.required)
}

// flatLevels gives the definition levels of an optional column: 1 for a value, 0 for null.
func (f *fileWriter) flatLevels(column *column, v *vec) []int16 {
	if column.required {
		return nil
	}
	for len(f.levels) < v.n {
		f.levels = append(f.levels, 1)
	}
	if v.nulls == 0 {
		return f.levels[:v.n]
	}
	levels := slices.Clone(f.levels[:v.n])
	for i := range levels {
		if v.isNull(i) {
			levels[i] = 0
		}
	}
	return levels
}

// dictionaryWriter is what the library's dictionary encoders have in common.
type dictionaryWriter interface {
	PutDictionary(arrow.Array) error
	NumEntries() int
}

// writeCodes writes indices and their dictionary as they are. Going through the library's own path for dictionary arrays
// would hash every index again to find out which values occur, and would leave the empty string out of the bounds.
func (f *fileWriter) writeCodes(cw file.ColumnChunkWriter, column *column, v *vec, codes []uint32, values *vec, levels []int16) error {
	encoder, ok := cw.CurrentEncoder().(dictionaryWriter)
	pages, canFlush := cw.(interface{ FlushCurrentPage() error })
	if !ok || !canFlush {
		return fmt.Errorf("the Parquet writer has no dictionary for this column")
	}
	dictionary, err := values.toArrow(physicalType(column.field.Type))
	if err != nil {
		return err
	}
	defer dictionary.Release()
	if err := encoder.PutDictionary(dictionary); err != nil {
		return err
	}
	if encoder.NumEntries() != values.n {
		return fmt.Errorf("the dictionary of %d values came out with %d", values.n, encoder.NumEntries())
	}
	stats := cw.PageStatistics()
	perPage := f.e.rowsPerPage(values.n)
	for start := 0; start < v.n; start += perPage {
		end := min(start+perPage, v.n)
		var valid *memory.Buffer
		nulls := 0
		if v.nulls > 0 {
			part := appendBits(nil, 0, shiftBits(v.valid, start, end-start), end-start)
			valid, nulls = memory.NewBufferBytes(part), countNulls(part, end-start)
		}
		data := array.NewData(arrow.PrimitiveTypes.Uint32, end-start,
			[]*memory.Buffer{valid, memory.NewBufferBytes(bytesOf(codes[start:end]))}, nil, nulls, 0)
		indices := array.NewUint32Data(data)
		var pageLevels []int16
		if levels != nil {
			pageLevels = levels[start:end]
		}
		if stats != nil {
			stats.IncNulls(int64(nulls))
			stats.IncNumValues(int64(end - start - nulls))
			setBounds(stats, values)
		}
		if err := cw.WriteDictIndices(indices, pageLevels, nil); err != nil {
			return err
		}
		if end < v.n {
			if err := pages.FlushCurrentPage(); err != nil {
				return err
			}
		}
		indices.Release()
		data.Release()
	}
	return nil
}

// rowsPerPage gives how many indices fill a page.
func (e *encoder) rowsPerPage(entries int) int {
	width := max(bits.Len(uint(max(entries-1, 1))), 1)
	return max(int(orDefault(e.s.PageBytes, pageBytesDefault))*8/width, 1024)
}

// setBounds gives a page the bounds of the whole dictionary: as good as exact when there is one page, and never wrong.
func setBounds(stats metadata.TypedStatistics, values *vec) {
	switch stats := stats.(type) {
	case *metadata.ByteArrayStatistics:
		low, high := values.bytesAt(0), values.bytesAt(0)
		for i := range values.n {
			if b := values.bytesAt(i); bytes.Compare(b, low) < 0 {
				low = b
			} else if bytes.Compare(b, high) > 0 {
				high = b
			}
		}
		stats.SetMinMax(low, high)
	case *metadata.Int64Statistics:
		words := view[int64](bytesOf(values.w8))
		stats.SetMinMax(slices.Min(words), slices.Max(words))
	case *metadata.Int32Statistics:
		words := view[int32](bytesOf(values.w4))
		stats.SetMinMax(slices.Min(words), slices.Max(words))
	case *metadata.Float64Statistics:
		low, high := math.Inf(1), math.Inf(-1)
		for _, w := range values.w8 {
			if f := math.Float64frombits(w); f == f {
				low, high = min(low, f), max(high, f)
			}
		}
		if low <= high {
			stats.SetMinMax(low, high)
		}
	case *metadata.Float32Statistics:
		low, high := float32(math.Inf(1)), float32(math.Inf(-1))
		for _, w := range values.w4 {
			if f := math.Float32frombits(w); f == f {
				low, high = min(low, f), max(high, f)
			}
		}
		if low <= high {
			stats.SetMinMax(low, high)
		}
	}
}

// physicalType gives the type that the Parquet writer stores. Handed a dictionary of it, the writer has nothing to convert.
func physicalType(t arrow.DataType) arrow.DataType {
	switch t.ID() {
	case arrow.TIMESTAMP, arrow.TIME64:
		return arrow.PrimitiveTypes.Int64
	case arrow.DATE32:
		return arrow.PrimitiveTypes.Int32
	}
	return t
}

// compactCodes renumbers the job's codes to those that occur, in the order of the values.
func (f *fileWriter) compactCodes(d *sealed, v *vec) ([]uint32, *vec) {
	used := make([]bool, len(d.order))
	for i, code := range v.w2 {
		if v.nulls == 0 || !v.isNull(i) {
			used[code] = true
		}
	}
	values := newVec(d.class, 0)
	number := make([]uint32, len(d.order))
	for _, code := range d.inv {
		if !used[code] {
			continue
		}
		number[code] = uint32(values.n)
		switch d.class {
		case class8:
			values.w8 = append(values.w8, d.words[code])
		case class4:
			values.w4 = append(values.w4, uint32(d.words[code]))
		case classBytes:
			values.raw = append(values.raw, d.values[code]...)
			values.offs = append(values.offs, int32(len(values.raw)))
		}
		values.n++
	}
	if values.n == 0 {
		return nil, nil
	}
	f.codes = grow(f.codes[:0], v.n)
	codes := f.codes
	for i, code := range v.w2 {
		codes[i] = number[code]
	}
	return codes, values
}

// Above this share of distinct values a dictionary of words is given up while it is built.
const dictionaryShareMax = 0.5

// buildDictionary numbers the words of a column in the order in which they come; nil when that isn't worth it.
func (f *fileWriter) buildDictionary(v *vec) ([]uint32, *vec) {
	entriesMax := min(int(float64(v.n)*dictionaryShareMax)+16, dictionaryEntriesMax)
	values := newVec(v.class, v.width)
	f.codes = grow(f.codes[:0], v.n)
	codes := f.codes
	ok := false
	if v.class == class8 {
		values.w8, ok = numberWords(codes, v, v.w8, entriesMax)
		values.n = len(values.w8)
	} else {
		values.w4, ok = numberWords(codes, v, v.w4, entriesMax)
		values.n = len(values.w4)
	}
	if !ok || values.n == 0 {
		return nil, nil
	}
	return codes, values
}

func numberWords[T uint64 | uint32](codes []uint32, v *vec, words []T, entriesMax int) ([]T, bool) {
	c := coder{}
	c.resize(1 << 10)
	var values []T
	last, lastCode := T(0), ^uint32(0)
	for i, w := range words {
		if v.nulls > 0 && v.isNull(i) {
			codes[i] = 0
			continue
		}
		if w == last && lastCode != ^uint32(0) {
			codes[i] = lastCode
			continue
		}
		at := c.find(uint64(w))
		if c.table[at].code == 0 {
			if len(values) == entriesMax {
				return nil, false
			}
			values = append(values, w)
			c.table[at] = slot{word: uint64(w), code: uint32(len(values))}
			if c.used++; 2*c.used > len(c.table) {
				c.resize(2 * len(c.table))
				at = c.find(uint64(w))
			}
		}
		last, lastCode = w, c.table[at].code-1
		codes[i] = lastCode
	}
	return values, true
}

// close finishes the file and gives its description.
func (f *fileWriter) close() (OutputFile, error) {
	if err := f.w.Close(); err != nil {
		return OutputFile{}, fmt.Errorf("finish data file: %w", err)
	}
	footer, err := f.w.FileMetadata()
	if err != nil {
		return OutputFile{}, err
	}
	out, err := f.describe(footer)
	if err != nil {
		return OutputFile{}, err
	}
	if err := f.out.Close(); err != nil {
		return OutputFile{}, fmt.Errorf("close data file %s: %w", f.out.Path(), err)
	}
	return out, nil
}

func (f *fileWriter) countNaNs(c int, v *vec, d *sealed) {
	column := &f.e.p.columns[c]
	switch column.field.Type.ID() {
	case arrow.FLOAT32, arrow.FLOAT64:
		f.nans[column.id] += int64(countNaN(d, column.field.Type.ID(), v))
	default:
		if column.class == classNested {
			for _, a := range v.arrs {
				countNestedNaNs(f.nans, column.leaves, a)
			}
		}
	}
}
