package layout

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"golang.org/x/sync/errgroup"

	"catalogd/internal/fault"
)

// Limits of reading.
const (
	batchRowsMax    = 65_536
	batchRowsMin    = 1
	batchBytesMax   = 8 << 20
	footersAtOnce   = 8
	footersKept     = 256      // footers of more inputs are read twice rather than held
	chunkBytesWhole = 32 << 20 // a row group up to this size is read a column chunk at a time
	streamBytesMin  = 64 << 10
	streamBytesMax  = 4 << 20
	footerBytesMax  = 64 << 20 // a footer has some hundred bytes for each column of each row group
	pagePackedMax   = 64 << 20
	pageBytesMax    = 256 << 20 // of a page or a dictionary: one megabyte mostly, but some writers count rows alone
)

// source is one input with what its footer said.
type source struct {
	Input
	footer    *metadata.FileMetaData // nil when there are too many inputs to hold them
	rowGroups []rowGroupFacts
	boxes     []Box // of the row groups
	rows      int64
}

type rowGroupFacts struct {
	rows         int64
	firstRow     int64 // position of the row group's first row in the file
	compressed   int64
	uncompressed int64
}

// openSources reads the footers of all inputs, in the order of their paths, and refuses what can't be mapped.
func openSources(ctx context.Context, p *plan, inputs []Input) ([]*source, error) {
	inputs = slices.Clone(inputs)
	slices.SortFunc(inputs, func(a, b Input) int { return strings.Compare(a.Path, b.Path) })
	sources := make([]*source, len(inputs))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(footersAtOnce)
	for i, input := range inputs {
		if i > 0 && inputs[i-1].Path == input.Path {
			return nil, errors.Join(fault.New(fault.Validation, "data file %s is listed twice", input.Path), group.Wait())
		}
		s := &source{Input: input}
		sources[i] = s
		group.Go(guarded(func() error {
			return s.with(ctx, func(r *file.Reader) error {
				return s.guard(func() error { return s.learn(p, r.MetaData(), len(inputs) <= footersKept) })
			})
		}))
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return sources, nil
}

// learn keeps what the footer says: the row groups, their boxes, and the footer itself when asked to.
func (s *source) learn(p *plan, footer *metadata.FileMetaData, keep bool) error {
	if _, err := mapFile(p, footer.Schema, s.Path); err != nil {
		return err
	}
	leaves := fileLeaves(footer)
	for i := range footer.NumRowGroups() {
		rg := footer.RowGroup(i)
		facts := rowGroupFacts{rows: rg.NumRows(), firstRow: s.rows, uncompressed: rg.TotalByteSize()}
		for c := range rg.NumColumns() {
			chunk, err := rg.ColumnChunk(c)
			if err != nil {
				continue
			}
			// The reader takes memory for what the footer says.
			if size := chunk.TotalCompressedSize(); size < 0 || size > s.Size {
				return fault.New(fault.Validation, "data file %s has %d bytes, and a column chunk of %d in its footer", s.Path, s.Size, size)
			}
			facts.compressed += chunk.TotalCompressedSize()
		}
		if facts.rows < 0 || facts.uncompressed < 0 || facts.rows > fileRowsMax-s.rows {
			return fault.New(fault.Validation, "data file %s has a row group of %d rows in %d bytes in its footer", s.Path, facts.rows, facts.uncompressed)
		}
		s.rowGroups = append(s.rowGroups, facts)
		s.rows += facts.rows
		box, err := boxOf(p, rg, leaves)
		if err != nil {
			return err
		}
		s.boxes = append(s.boxes, box)
	}
	if keep {
		s.footer = footer
	}
	return nil
}

// guard runs what handles an input's bytes. Broken bytes can make a decoder stumble, or give an index without a value; that
// is an error of the input and must not end the process.
func (s *source) guard(handle func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fault.Wrap(fault.Internal, fmt.Errorf("%v\n%s", cause, debug.Stack()), "data file %s can't be decoded", s.Path)
		}
	}()
	return handle()
}

// with opens the input, hands its reader to f and closes it.
func (s *source) with(ctx context.Context, f func(r *file.Reader) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	opened, err := s.Open(ctx)
	if err != nil {
		return fmt.Errorf("open %s: %w", s.Path, err)
	}
	defer opened.Close()
	if err := s.checkFooterSize(opened); err != nil {
		return err
	}
	properties := parquet.NewReaderProperties(memory.DefaultAllocator)
	properties.MaxCompressedPageSize, properties.MaxUncompressedPageSize = pagePackedMax, pageBytesMax
	if buffer := s.streamBuffer(); buffer > 0 {
		properties.BufferedStreamEnabled, properties.BufferSize = true, buffer
	}
	options := []file.ReadOption{file.WithReadProps(properties)}
	if s.footer != nil {
		options = append(options, file.WithMetadata(s.footer))
	}
	var reader *file.Reader
	err = s.guard(func() error {
		var err error
		reader, err = file.NewParquetReader(io.NewSectionReader(opened, 0, s.Size), options...)
		return err
	})
	if err != nil {
		return fmt.Errorf("data file %s: %w", s.Path, err)
	}
	if err := f(reader); err != nil {
		var meant *fault.Error
		if errors.As(err, &meant) { // it names the file itself
			return err
		}
		return fmt.Errorf("data file %s: %w", s.Path, err)
	}
	return nil
}

// What footers may claim: rows of nulls take no room in a file, but time, and room in the spill.
const (
	fileRowsMax = 1 << 32
	jobRowsMax  = 1 << 33
)

// checkRows refuses a job of more rows than are rewritten at once.
func checkRows(rows int64) error {
	if rows > jobRowsMax {
		return fault.New(fault.Validation, "the data files have %d rows in their footers; at most %d are rewritten at once", rows, jobRowsMax)
	}
	return nil
}

// checkFooterSize refuses a footer that is larger than any that describes a file of use, before it is read.
func (s *source) checkFooterSize(f io.ReaderAt) error {
	var end [8]byte
	if s.footer != nil || s.Size < int64(len(end)) {
		return nil
	}
	if _, err := f.ReadAt(end[:], s.Size-int64(len(end))); err != nil {
		return fmt.Errorf("data file %s: read its end: %w", s.Path, err)
	}
	if size := binary.LittleEndian.Uint32(end[:]); size > footerBytesMax && int64(size) < s.Size {
		return fault.New(fault.Validation, "data file %s has a footer of %d bytes; at most %d are read", s.Path, size, footerBytesMax)
	}
	return nil
}

// streamBuffer gives the read-ahead for column chunks, or 0 when whole chunks are small enough to be read at once.
func (s *source) streamBuffer() int64 {
	if len(s.rowGroups) == 0 {
		return 0
	}
	largest := int64(0)
	for _, rg := range s.rowGroups {
		largest = max(largest, rg.compressed)
	}
	if largest <= chunkBytesWhole {
		return 0
	}
	columns := int64(1)
	if s.footer != nil {
		columns = int64(s.footer.Schema.NumColumns())
	}
	return min(max(chunkBytesWhole/columns, streamBytesMin), streamBytesMax)
}

// batchRows gives how many rows to decode at once, so that a batch of wide rows stays small.
func (s *source) batchRows() int64 {
	var rows, bytes int64
	for _, rg := range s.rowGroups {
		rows, bytes = rows+rg.rows, bytes+rg.uncompressed
	}
	if rows == 0 || bytes == 0 {
		return batchRowsMax
	}
	return min(max(batchBytesMax*rows/bytes, batchRowsMin), batchRowsMax)
}

// batch is some consecutive rows, one vec a column of the plan.
type batch struct {
	rows     int
	firstRow int64 // position in the file
	columns  []*vec
}

// readRequest says what of an input to read.
type readRequest struct {
	rowGroup int
	columns  []int  // indexes into the plan's columns; nil: all
	codes    []bool // by plan column: hand out strings as dictionary codes where the file has them
}

// read decodes one row group and hands its batches to f in order. A batch is valid during the call only.
func (s *source) read(ctx context.Context, r *file.Reader, p *plan, request readRequest, f func(b *batch) error) error {
	mapped, err := mapFile(p, r.MetaData().Schema, s.Path)
	if err != nil {
		return err
	}
	wanted := request.columns
	if wanted == nil {
		wanted = make([]int, len(p.columns))
		for i := range wanted {
			wanted[i] = i
		}
	}
	rg := s.rowGroups[request.rowGroup]
	leaves, position := mapped.leavesOf(wanted)
	if len(leaves) == 0 { // every wanted column is missing from the file
		return s.readNulls(ctx, p, wanted, rg, f)
	}
	properties := pqarrow.ArrowReadProperties{BatchSize: s.batchRows()}
	for _, c := range wanted {
		if at := mapped.top[c]; at >= 0 && request.codes != nil && request.codes[c] && mapped.dictionaries[c] {
			properties.SetReadDict(mapped.firstLeaf[at], true)
		}
	}
	var records pqarrow.RecordReader
	if err := s.guard(func() error { records, err = openRecords(ctx, r, properties, leaves, request.rowGroup); return err }); err != nil {
		return err
	}
	defer records.Release()
	firstRow := rg.firstRow
	done := false
	next := func() error {
		if !records.Next() {
			done = true
			return records.Err()
		}
		record := records.RecordBatch()
		b := &batch{rows: int(record.NumRows()), firstRow: firstRow, columns: make([]*vec, len(p.columns))}
		for _, c := range wanted {
			if b.columns[c], err = mapped.column(s, c, record, position, b); err != nil {
				return err
			}
		}
		firstRow += record.NumRows()
		return f(b)
	}
	for !done {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.guard(next); err != nil {
			return err
		}
	}
	if got := firstRow - rg.firstRow; got != rg.rows {
		return fmt.Errorf("row group %d has %d rows, its footer says %d", request.rowGroup, got, rg.rows)
	}
	return nil
}

func openRecords(ctx context.Context, r *file.Reader, properties pqarrow.ArrowReadProperties, leaves []int, rowGroup int) (pqarrow.RecordReader, error) {
	reader, err := pqarrow.NewFileReader(r, properties, memory.DefaultAllocator)
	if err != nil {
		return nil, err
	}
	// The types follow from the Parquet schema alone; an Arrow schema that the writer left in the footer would bring in
	// types that no one here asked for.
	if reader.Manifest, err = pqarrow.NewSchemaManifest(r.MetaData().Schema, nil, &properties); err != nil {
		return nil, err
	}
	return reader.GetRecordReader(ctx, leaves, []int{rowGroup})
}

// readNulls stands for reading columns that the file doesn't have.
func (s *source) readNulls(ctx context.Context, p *plan, wanted []int, rg rowGroupFacts, f func(b *batch) error) error {
	for row := int64(0); row < rg.rows; row += batchRowsMax {
		if err := ctx.Err(); err != nil {
			return err
		}
		b := &batch{rows: int(min(batchRowsMax, rg.rows-row)), firstRow: rg.firstRow + row, columns: make([]*vec, len(p.columns))}
		for _, c := range wanted {
			v, err := missing(s, &p.columns[c], b)
			if err != nil {
				return err
			}
			b.columns[c] = v
		}
		if err := f(b); err != nil {
			return err
		}
	}
	return nil
}
