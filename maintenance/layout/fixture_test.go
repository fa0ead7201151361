package layout

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"
)

// store holds data files in memory.
type store struct {
	mu        sync.Mutex
	files     map[string][]byte
	failWrite int // fail the n-th write of any output; 0: never
	writes    int
	open      int
}

func newStore() *store { return &store{files: map[string][]byte{}} }

type memoryFile struct{ *bytes.Reader }

func (memoryFile) Close() error { return nil }

func (s *store) input(path string) Input {
	b := s.files[path]
	return Input{Path: path, Size: int64(len(b)), Open: func(context.Context) (File, error) { return memoryFile{bytes.NewReader(b)}, nil }}
}

func (s *store) inputs() []Input {
	var inputs []Input
	for path := range s.files {
		inputs = append(inputs, s.input(path))
	}
	slices.SortFunc(inputs, func(a, b Input) int { return bytes.Compare([]byte(a.Path), []byte(b.Path)) })
	return inputs
}

var errDisk = errors.New("the disk is full")

type memoryOutput struct {
	s    *store
	path string
	b    bytes.Buffer
}

func (o *memoryOutput) Path() string { return o.path }
func (o *memoryOutput) Write(b []byte) (int, error) {
	o.s.mu.Lock()
	defer o.s.mu.Unlock()
	if o.s.writes++; o.s.writes == o.s.failWrite {
		return 0, errDisk
	}
	return o.b.Write(b)
}

func (o *memoryOutput) Close() error {
	o.s.mu.Lock()
	defer o.s.mu.Unlock()
	o.s.open--
	o.s.files[o.path] = o.b.Bytes()
	return nil
}

func (o *memoryOutput) Abort() {
	o.s.mu.Lock()
	defer o.s.mu.Unlock()
	o.s.open--
}

func (s *store) create(_ context.Context, n int) (Output, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open++
	return &memoryOutput{s: s, path: fmt.Sprintf("out-%d", n)}, nil
}

func (s *store) remove(_ context.Context, path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.files, path)
}

// job makes a job over all files of in, with outputs in out.
func job(t *testing.T, schema *iceberg.Schema, in, out *store, columns ...int) Job {
	t.Helper()
	return Job{Schema: schema, Columns: columns, Inputs: in.inputs(), Create: out.create, Remove: out.remove, SpillDir: t.TempDir(), Workers: 2}
}

// put writes rows as a data file, the way another writer would.
func (s *store) put(t *testing.T, path string, record arrow.RecordBatch, options ...parquet.WriterProperty) {
	t.Helper()
	var b bytes.Buffer
	options = append([]parquet.WriterProperty{parquet.WithCompression(compress.Codecs.Zstd), parquet.WithMaxRowGroupLength(350),
		parquet.WithStoreDecimalAsInteger(true)}, options...)
	w, err := pqarrow.NewFileWriter(record.Schema(), struct{ io.Writer }{&b}, parquet.NewWriterProperties(options...), pqarrow.DefaultWriterProps())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.WriteBuffered(record); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	s.files[path] = b.Bytes()
}

// rows reads all files and gives each row as text, sorted.
func (s *store) rows(t *testing.T) []string {
	t.Helper()
	var rows []string
	for _, input := range s.inputs() {
		rows = append(rows, s.rowsOf(t, input.Path)...)
	}
	slices.Sort(rows)
	return rows
}

func (s *store) table(t *testing.T, path string) arrow.Table {
	t.Helper()
	table, err := pqarrow.ReadTable(context.Background(), bytes.NewReader(s.files[path]), nil, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return table
}

func (s *store) rowsOf(t *testing.T, path string) []string {
	t.Helper()
	var rows []string
	reader := array.NewTableReader(s.table(t, path), 1000)
	for reader.Next() {
		record := reader.RecordBatch()
		for i := range int(record.NumRows()) {
			row := ""
			for _, column := range record.Columns() {
				row += cell(column, i) + "|"
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// cell tells values apart that print alike: -0 and 0, NaN and null.
func cell(a arrow.Array, i int) string {
	switch v := a.(type) {
	case *array.Float64:
		if v.IsValid(i) {
			return strconv.FormatUint(math.Float64bits(v.Value(i)), 16)
		}
	case *array.String:
		if v.IsValid(i) {
			return v.Value(i)
		}
	case *array.Timestamp:
		if v.IsValid(i) {
			return strconv.FormatInt(int64(v.Value(i)), 10)
		}
	case *array.Float32:
		if v.IsValid(i) {
			return fmt.Sprintf("%08x", math.Float32bits(v.Value(i)))
		}
	}
	return a.ValueStr(i)
}

func (s *store) footer(t *testing.T, path string) *file.Reader {
	t.Helper()
	r, err := file.NewParquetReader(bytes.NewReader(s.files[path]))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// recordOf makes random rows of a schema. Every value of few is drawn from a small set, so that columns repeat.
func recordOf(t *testing.T, schema *iceberg.Schema, n int, seed uint64) arrow.RecordBatch {
	t.Helper()
	p, err := newPlan(schema, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	sc := arrow.NewSchema(p.schema.Fields(), nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	random := rand.New(rand.NewPCG(seed, 1))
	for range n {
		for c, f := range sc.Fields() {
			appendRandom(b.Field(c), f, random)
		}
	}
	return b.NewRecordBatch()
}

var words = []string{"", "a", "ä", "zebra", "SNS-00001", "SNS-00002", "sensor-with-a-long-common-prefix-1", "sensor-with-a-long-common-prefix-2",
	"\U0010ffff\U0010ffff\U0010ffff\U0010ffff\U0010ffff\U0010ffff\U0010ffff\U0010ffff\U0010ffff\U0010ffff\U0010ffff\U0010ffff\U0010ffff\U0010ffff\U0010ffff\U0010ffff\U0010ffff"}

var doubles = []float64{0, math.Copysign(0, -1), 1, -1, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, math.SmallestNonzeroFloat64, 12.34}

func appendRandom(b array.Builder, f arrow.Field, r *rand.Rand) {
	if f.Nullable && r.IntN(8) == 0 {
		b.AppendNull()
		return
	}
	few := r.IntN(4)
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(few == 0)
	case *array.Int32Builder:
		b.Append([]int32{0, -1, math.MinInt32, int32(r.Uint32())}[few])
	case *array.Int64Builder:
		b.Append([]int64{0, -1, math.MaxInt64, int64(r.Uint64())}[few])
	case *array.Float32Builder:
		b.Append(float32(doubles[r.IntN(len(doubles))]))
	case *array.Float64Builder:
		b.Append(doubles[r.IntN(len(doubles))])
	case *array.Date32Builder:
		b.Append(arrow.Date32(r.IntN(1000) - 500))
	case *array.Time64Builder:
		b.Append(arrow.Time64(r.Int64N(86_400_000_000)))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(r.Int64N(1<<50) - 1<<49))
	case *array.StringBuilder:
		b.Append(words[r.IntN(len(words))])
	case *array.BinaryBuilder:
		b.Append([]byte(words[r.IntN(len(words))] + "\xff"))
	case *array.FixedSizeBinaryBuilder:
		v := make([]byte, b.Type().(*arrow.FixedSizeBinaryType).ByteWidth)
		for i := range v {
			v[i] = byte(r.Uint32())
		}
		b.Append(v)
	case *array.Decimal128Builder:
		limit := int64(math.Pow10(min(int(b.Type().(*arrow.Decimal128Type).Precision), 18)))
		b.Append(decimal128.FromI64(r.Int64N(2*limit-1) - limit + 1))
	case *array.StructBuilder:
		b.Append(true)
		for i, child := range b.Type().(*arrow.StructType).Fields() {
			appendRandom(b.FieldBuilder(i), child, r)
		}
	case *array.MapBuilder:
		b.Append(true)
		t := b.Type().(*arrow.MapType)
		for range r.IntN(3) {
			appendRandom(b.KeyBuilder(), arrow.Field{Type: t.KeyType()}, r)
			appendRandom(b.ItemBuilder(), t.ItemField(), r)
		}
	case *array.ListBuilder:
		b.Append(true)
		for range r.IntN(4) {
			appendRandom(b.ValueBuilder(), b.Type().(*arrow.ListType).ElemField(), r)
		}
	case *array.ExtensionBuilder:
		id := uuid.UUID{}
		for i := range id {
			id[i] = byte(r.Uint32())
		}
		b.StorageBuilder().(*array.FixedSizeBinaryBuilder).Append(id[:])
	default:
		if extension, ok := b.(interface{ StorageBuilder() array.Builder }); ok {
			var v [16]byte
			for i := range v {
				v[i] = byte(r.Uint32())
			}
			extension.StorageBuilder().(*array.FixedSizeBinaryBuilder).Append(v[:])
			return
		}
		panic(fmt.Sprintf("no random values for %T", b))
	}
}

func emptyFolder(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range left {
		t.Errorf("left in the spill folder: %s", filepath.Join(dir, entry.Name()))
	}
}
