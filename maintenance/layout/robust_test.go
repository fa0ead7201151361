package layout

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/iceberg-go"
	"go.uber.org/goleak"

	"catalogd/internal/fault"
	"catalogd/maintenance/zorder"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// readings is a schema with few and many values, enough for most tests.
var readings = iceberg.NewSchema(0,
	iceberg.NestedField{ID: 1, Name: "sensor", Type: iceberg.PrimitiveTypes.String},
	iceberg.NestedField{ID: 2, Name: "at", Type: iceberg.PrimitiveTypes.Timestamp, Required: true},
	iceberg.NestedField{ID: 3, Name: "value", Type: iceberg.PrimitiveTypes.Float64},
	iceberg.NestedField{ID: 4, Name: "note", Type: iceberg.PrimitiveTypes.String})

// put100 writes files of readings: a hundred sensors in turn, time going on from file to file.
func putReadings(t *testing.T, s *store, files, rows int, note func(n int) string) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 1))
	n := 0
	for f := range files {
		s.put(t, fmt.Sprintf("in-%02d", f), arrowRecord(rows, recordOf(t, readings, 0, 1).Schema().Fields(), func(b *array.RecordBuilder) {
			b.Field(0).(*array.StringBuilder).Append(fmt.Sprintf("sensor-%03d", n%100))
			b.Field(1).(*array.TimestampBuilder).Append(arrow.Timestamp(n / 100 * 60_000_000))
			b.Field(2).(*array.Float64Builder).Append(float64(random.IntN(400)) / 10)
			b.Field(3).(*array.StringBuilder).Append(note(n))
			n++
		}))
	}
}

func constant(s string) func(int) string { return func(int) string { return s } }

// unique notes have too many values for a dictionary.
func unique(n int) string { return fmt.Sprintf("note %d of many, %x", n, n*7919) }

func TestCluster_ResultDoesNotDependOnInputOrder(t *testing.T) {
	in := newStore()
	putReadings(t, in, 5, 4000, constant("same"))
	var first *store
	for range 3 {
		out := newStore()
		j := job(t, readings, in, out, 1, 2)
		j.Writer.RowGroupRows = 1000
		rand.Shuffle(len(j.Inputs), func(a, b int) { j.Inputs[a], j.Inputs[b] = j.Inputs[b], j.Inputs[a] })
		if _, err := Cluster(context.Background(), j); err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = out
			continue
		}
		for path, want := range first.files {
			if !bytes.Equal(out.files[path], want) {
				t.Errorf("%s differs with another order of inputs", path)
			}
		}
	}
}

func TestCluster_RefusesAFileListedTwice(t *testing.T) {
	in, out := newStore(), newStore()
	putReadings(t, in, 1, 10, constant(""))
	j := job(t, readings, in, out, 1)
	j.Inputs = append(j.Inputs, j.Inputs[0])
	if _, err := Cluster(context.Background(), j); fault.KindOf(err) != fault.Validation {
		t.Errorf("%v", err)
	}
}

// At whatever point a job is cancelled, it ends with the cancellation and leaves nothing.
func TestCluster_CancelledLeavesNothing(t *testing.T) {
	in := newStore()
	putReadings(t, in, 4, 5000, unique)
	for _, phase := range []Phase{PhaseSample, PhaseRoute, PhaseWrite} {
		out := newStore()
		j := job(t, readings, in, out, 1, 2)
		j.MemoryBytes, j.Writer.RowGroupRows, j.Writer.FileBytes = memoryBytesMin, 500, 1<<16
		ctx, cancel := context.WithCancel(context.Background())
		j.Progress = func(p Phase, fraction float64) {
			if p == phase && fraction > 0.3 {
				cancel()
			}
		}
		_, err := Cluster(ctx, j)
		cancel()
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", phase, err)
		}
		if len(out.files) != 0 || out.open != 0 {
			t.Errorf("%s: %d files and %d open outputs are left", phase, len(out.files), out.open)
		}
		emptyFolder(t, j.SpillDir)
	}
}

// A write that fails, whichever, ends the job without a trace; then the job succeeds untouched.
func TestCluster_FailedWritesLeaveNothing(t *testing.T) {
	in := newStore()
	putReadings(t, in, 2, 3000, unique)
	for fail := 1; ; fail += 1 + fail/3 {
		out := newStore()
		out.failWrite = fail
		j := job(t, readings, in, out, 1, 2)
		j.Writer.RowGroupRows, j.Writer.FileBytes = 500, 1<<16
		_, err := Cluster(context.Background(), j)
		if err == nil {
			if out.writes >= fail {
				t.Fatalf("write %d failed and nobody noticed", fail)
			}
			if fail < 10 {
				t.Fatalf("only %d writes: the test shows little", out.writes)
			}
			return
		}
		if !errors.Is(err, errDisk) || len(out.files) != 0 || out.open != 0 {
			t.Fatalf("write %d: %v; %d files and %d open outputs are left", fail, err, len(out.files), out.open)
		}
		emptyFolder(t, j.SpillDir)
	}
}

// Bytes that are flipped or missing give an error or the right rows, never a crash or other rows.
func TestCluster_CorruptInputs(t *testing.T) {
	whole := newStore()
	putReadings(t, whole, 1, 2000, unique)
	want := whole.rows(t)
	good := whole.files["in-00"]
	random := rand.New(rand.NewPCG(3, 3))
	for range 300 {
		in, out := newStore(), newStore()
		bad := bytes.Clone(good)
		switch random.IntN(3) {
		case 0:
			bad = bad[:random.IntN(len(bad))]
		case 1:
			bad[random.IntN(len(bad))] ^= byte(1 << random.IntN(8))
		default:
			at := random.IntN(len(bad) - 16)
			for i := range 16 {
				bad[at+i] = byte(random.Uint32())
			}
		}
		in.files["in-00"] = bad
		j := job(t, readings, in, out, 1, 2)
		_, err := Cluster(context.Background(), j)
		if err != nil && (len(out.files) != 0 || out.open != 0) {
			t.Fatalf("%v: outputs are left", err)
		}
		if err != nil && !strings.Contains(err.Error(), "in-00") {
			t.Errorf("%v: doesn't name the file", err)
		}
		if err == nil && len(out.rows(t)) != len(want) {
			t.Fatalf("a broken file gave %d rows of %d", len(out.rows(t)), len(want))
		}
		emptyFolder(t, j.SpillDir)
	}
}

func TestCluster_FailingOpen(t *testing.T) {
	in, out := newStore(), newStore()
	putReadings(t, in, 3, 1000, constant("x"))
	var opened atomic.Int64
	for fail := int64(1); fail < 30; fail++ {
		j := job(t, readings, in, out, 1, 2)
		opened.Store(0)
		for i := range j.Inputs {
			open := j.Inputs[i].Open
			j.Inputs[i].Open = func(ctx context.Context) (File, error) {
				if opened.Add(1) == fail {
					return nil, errDisk
				}
				return open(ctx)
			}
		}
		_, err := Cluster(context.Background(), j)
		if opened.Load() < fail {
			if err != nil || fail < 5 {
				t.Fatalf("open %d: %v", fail, err)
			}
			return
		}
		if !errors.Is(err, errDisk) || len(out.files) != 0 || out.open != 0 {
			t.Fatalf("open %d: %v, %d files left", fail, err, len(out.files))
		}
		emptyFolder(t, j.SpillDir)
	}
	t.Fatal("it never ran to the end")
}

// A column that turns out to have too many values for its dictionary on the way is carried as values from then on.
func TestCluster_DictionaryRunsFull(t *testing.T) {
	in := newStore()
	putReadings(t, in, 4, 20_000, func(n int) string {
		if n%20_000 < 2000 { // what the probe sees
			return "few"
		}
		return unique(n) + strings.Repeat(".", 60)
	})
	for _, memory := range []int64{memoryBytesMin, 256 << 20} {
		out := newStore()
		j := job(t, readings, in, out, 1, 2)
		j.MemoryBytes = memory
		result, err := Cluster(context.Background(), j)
		if err != nil {
			t.Fatal(err)
		}
		if want, got := in.rows(t), out.rows(t); !slices.Equal(want, got) {
			t.Fatal(firstDifference(want, got))
		}
		if (result.SpilledBytes > 0) != (memory == memoryBytesMin) {
			t.Errorf("%d bytes of memory: %d spilled", memory, result.SpilledBytes)
		}
	}
}

// More rows with one key than fit memory: they are still cut, and all are there.
func TestCluster_OneKeyLargerThanMemory(t *testing.T) {
	in, out := newStore(), newStore()
	for i := range 6 {
		n := i * 2_000
		in.put(t, fmt.Sprintf("in-%02d", i), arrowRecord(2_000, recordOf(t, readings, 0, 1).Schema().Fields(), func(b *array.RecordBuilder) {
			b.Field(0).AppendNull()
			b.Field(1).(*array.TimestampBuilder).Append(1)
			b.Field(2).(*array.Float64Builder).Append(1)
			b.Field(3).(*array.StringBuilder).Append(strings.Repeat(unique(n), 80))
			n++
		}))
	}
	j := job(t, readings, in, out, 1, 2)
	j.MemoryBytes = memoryBytesMin
	result, err := Cluster(context.Background(), j)
	if err != nil {
		t.Fatal(err)
	}
	if result.RowsOut != 12_000 || result.RowGroupsOut < 5 {
		t.Errorf("%d rows in %d row groups", result.RowsOut, result.RowGroupsOut)
	}
	if want, got := in.rows(t), out.rows(t); !slices.Equal(want, got) {
		t.Fatal(firstDifference(want, got))
	}
}

// Columns of numbers that turn out to have many values, beside nulls.
func TestCluster_NumbersRunFull(t *testing.T) {
	p := iceberg.PrimitiveTypes
	schema := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "k", Type: p.Int32}, iceberg.NestedField{ID: 2, Name: "a", Type: p.Int64},
		iceberg.NestedField{ID: 3, Name: "b", Type: p.Int32})
	in, out := newStore(), newStore()
	n := int64(0)
	in.put(t, "in", arrowRecord(150_000, recordOf(t, schema, 0, 1).Schema().Fields(), func(b *array.RecordBuilder) {
		v := n % 3
		if n > 70_000 {
			v = n
		}
		b.Field(0).(*array.Int32Builder).Append(int32(n % 50))
		b.Field(1).(*array.Int64Builder).Append(v)
		if n%7 == 0 {
			b.Field(2).AppendNull()
		} else {
			b.Field(2).(*array.Int32Builder).Append(-int32(v))
		}
		n++
	}), parquet.WithMaxRowGroupLength(1<<20))
	j := job(t, schema, in, out, 2, 1)
	if _, err := Cluster(context.Background(), j); err != nil {
		t.Fatal(err)
	}
	if want, got := in.rows(t), out.rows(t); !slices.Equal(want, got) {
		t.Fatal(firstDifference(want, got))
	}
}

// A file from before every wanted column was added has nulls to give.
func TestCopy_FileWithoutAnyColumn(t *testing.T) {
	in, out := newStore(), newStore()
	in.put(t, "in", arrowRecord(300, []arrow.Field{field(9, "gone", arrow.PrimitiveTypes.Int64)}, func(b *array.RecordBuilder) {
		b.Field(0).(*array.Int64Builder).Append(1)
	}))
	p := iceberg.PrimitiveTypes
	schema := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "a", Type: p.Int32}, iceberg.NestedField{ID: 2, Name: "b", Type: p.Bool},
		iceberg.NestedField{ID: 3, Name: "c", Type: p.UUID}, iceberg.NestedField{ID: 4, Name: "d", Type: p.String},
		iceberg.NestedField{ID: 5, Name: "e", Type: &iceberg.ListType{ElementID: 6, Element: p.Int32}})
	for _, columns := range [][]int{nil, {1, 3}} {
		if _, err := Cluster(context.Background(), job(t, schema, in, out, columns...)); err != nil {
			t.Fatal(err)
		}
		if rows := out.rows(t); len(rows) != 300 || rows[0] != "(null)|(null)|(null)|(null)|(null)|" {
			t.Errorf("%d rows, first %s", len(rows), rows[0])
		}
	}
}

// Rows that are wider than the first ones promised make buckets too large; they are dealt out again.
func TestCluster_BucketsAreSplitAgain(t *testing.T) {
	in, out := newStore(), newStore()
	putReadings(t, in, 3, 3_000, func(n int) string {
		if n%3_000 < 400 {
			return "short"
		}
		return strings.Repeat(unique(n), 150)
	})
	j := job(t, readings, in, out, 1, 2)
	j.MemoryBytes = memoryBytesMin
	result, err := Cluster(context.Background(), j)
	if err != nil {
		t.Fatal(err)
	}
	if want, got := in.rows(t), out.rows(t); !slices.Equal(want, got) {
		t.Fatal(firstDifference(want, got))
	}
	if result.SpilledBytes == 0 {
		t.Error("nothing was spilled")
	}
}

func TestCluster_EmptyInputs(t *testing.T) {
	in, out := newStore(), newStore()
	putReadings(t, in, 2, 0, constant(""))
	for _, columns := range [][]int{nil, {1, 2}} {
		result, err := Cluster(context.Background(), job(t, readings, in, out, columns...))
		if err != nil || result.RowsOut != 0 || len(result.Files) != 0 || len(out.files) != 0 {
			t.Errorf("%v: %+v %v", columns, result, err)
		}
	}
	result, err := Cluster(context.Background(), job(t, readings, newStore(), out, 1))
	if err != nil || len(result.Files) != 0 {
		t.Errorf("no inputs: %+v %v", result, err)
	}
}

// Boundaries of one run serve the next; others are refused.
func TestCluster_ReusesBoundaries(t *testing.T) {
	in, out := newStore(), newStore()
	putReadings(t, in, 3, 5000, constant("x"))
	j := job(t, readings, in, out, 1, 2)
	first, err := Cluster(context.Background(), j)
	if err != nil {
		t.Fatal(err)
	}
	j.Boundaries = first.Boundaries
	again, err := Cluster(context.Background(), j)
	if err != nil || again.Boundaries != first.Boundaries {
		t.Fatalf("%v", err)
	}
	if again.EdgeShare > 0.05 {
		t.Errorf("edge share %v of the rows that made the boundaries", again.EdgeShare)
	}
	j.Columns = []int{2, 1}
	if _, err := Cluster(context.Background(), j); fault.KindOf(err) != fault.Validation {
		t.Errorf("boundaries of other columns: %v", err)
	}
}

// The linear curve sorts exactly, over file borders too.
func TestCluster_LinearSortsExactly(t *testing.T) {
	in, out := newStore(), newStore()
	putReadings(t, in, 4, 10_000, unique)
	j := job(t, readings, in, out, 1, 2)
	j.Curve, j.MemoryBytes, j.Writer.RowGroupRows, j.Writer.FileBytes = zorder.Linear, memoryBytesMin, 2000, 1<<18
	result, err := Cluster(context.Background(), j)
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Files) < 2 {
		t.Errorf("%d files: the test shows little", len(result.Files))
	}
	last := ""
	for _, f := range result.Files {
		table := out.table(t, f.Path)
		reader := array.NewTableReader(table, 1000)
		for reader.Next() {
			record := reader.RecordBatch()
			for i := range int(record.NumRows()) {
				key := record.Column(0).ValueStr(i) + fmt.Sprintf("%020d", record.Column(1).(*array.Timestamp).Value(i))
				if key < last {
					t.Fatalf("%s after %s", key, last)
				}
				last = key
			}
		}
	}
}

func TestCopy_PacksSmallFiles(t *testing.T) {
	in, out := newStore(), newStore()
	putReadings(t, in, 20, 500, unique)
	result, err := Cluster(context.Background(), job(t, readings, in, out))
	if err != nil || len(result.Files) != 1 || result.RowGroupsOut != 1 || result.RowGroupsIn != 40 {
		t.Errorf("%+v %v", result, err)
	}
	if want, got := in.rows(t), out.rows(t); !slices.Equal(want, got) {
		t.Error(firstDifference(want, got))
	}
}

func TestCluster_SpillFolderMustExist(t *testing.T) {
	in, out := newStore(), newStore()
	putReadings(t, in, 1, 100, constant("x"))
	j := job(t, readings, in, out, 1)
	j.SpillDir += "/missing"
	if _, err := Cluster(context.Background(), j); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// What a job holds stays near its budget, whatever it reads. Inputs and outputs are files here, as they are outside.
func TestCluster_KeepsToItsMemory(t *testing.T) {
	in := newStore()
	putReadings(t, in, 8, 4_000, func(n int) string { return strings.Repeat(unique(n), 80) }) // 80 MB of values
	dir := t.TempDir()
	j := job(t, readings, newStore(), newStore(), 1, 2)
	for path, b := range in.files {
		name := filepath.Join(dir, path)
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
		input, err := FileInput(name)
		if err != nil {
			t.Fatal(err)
		}
		j.Inputs = append(j.Inputs, input)
	}
	in.files = nil
	j.Create = func(_ context.Context, n int) (Output, error) {
		return CreateFile(filepath.Join(dir, fmt.Sprintf("out-%d", n)))
	}
	j.MemoryBytes = memoryBytesMin
	before, most, calls := liveBytes(), int64(0), 0
	var mu sync.Mutex
	j.Progress = func(Phase, float64) {
		mu.Lock()
		defer mu.Unlock()
		if calls++; calls%10 == 0 {
			most = max(most, liveBytes()-before)
		}
	}
	result, err := Cluster(context.Background(), j)
	if err != nil || result.RowsOut != 32_000 {
		t.Fatalf("%+v %v", result, err)
	}
	// The budget, the decoders' pages and the compressors' windows (two of 8 MB a writer).
	if limit := int64(memoryBytesMin + 48<<20); most > limit || most == 0 {
		t.Errorf("%d bytes were live, want at most %d", most, limit)
	}
	t.Logf("%.1f MB live of a budget of %d MB; %d MB spilled", float64(most)/(1<<20), memoryBytesMin>>20, result.SpilledBytes>>20)
}

func liveBytes() int64 {
	runtime.GC()
	runtime.GC() // pools let go at the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
