package layout

import (
	"bytes"
	"context"
	"encoding/binary"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/iceberg-go"

	"catalogd/internal/fault"
)

// A panic in any goroutine of a rewrite is the rewrite's error, and leaves nothing.
func TestHostile_PanicsAreErrors(t *testing.T) {
	in := newStore()
	putReadings(t, in, 3, 2000, unique)
	panics := func(phase Phase) func(*Job) {
		return func(j *Job) {
			j.Progress = func(p Phase, fraction float64) {
				if p == phase && fraction > 0 {
					panic("a defect")
				}
			}
		}
	}
	for name, change := range map[string]func(*Job){
		"sample": panics(PhaseSample), "route": panics(PhaseRoute), "write": panics(PhaseWrite),
		"open": func(j *Job) {
			for i := range j.Inputs {
				j.Inputs[i].Open = func(context.Context) (File, error) { panic("a defect") }
			}
		},
		"create": func(j *Job) { j.Create = func(context.Context, int) (Output, error) { panic("a defect") } },
	} {
		for _, engine := range []func(context.Context, Job) (Result, error){Cluster, Copy} {
			out := newStore()
			j := job(t, readings, in, out, 1, 2)
			j.Workers = 2
			change(&j)
			_, err := engine(context.Background(), j)
			if err == nil && strings.HasPrefix(name, "sample") || err == nil && name == "route" {
				continue // copying has no such phase
			}
			if err == nil || !strings.Contains(err.Error(), "defect") {
				t.Errorf("%s: %v", name, err)
			}
			emptyFolder(t, j.SpillDir)
		}
	}
}

// A footer that claims to be larger than any, and sizes that no file has.
func TestHostile_FooterSizes(t *testing.T) {
	in := newStore()
	putReadings(t, in, 1, 10, unique)
	body := in.files["in-00"]
	huge := make([]byte, footerBytesMax+1024)
	copy(huge, body)
	binary.LittleEndian.PutUint32(huge[len(huge)-8:], footerBytesMax+1)
	copy(huge[len(huge)-4:], "PAR1")
	in.files["in-00"] = huge
	_, err := Cluster(context.Background(), job(t, readings, in, newStore(), 1, 2))
	if !fault.Is(err, fault.Validation) {
		t.Errorf("got %v", err)
	}
	s := source{Input: Input{Path: "p", Size: 1 << 62}}
	if err := s.checkFooterSize(memoryFile{bytes.NewReader([]byte("short"))}); err == nil {
		t.Error("a size from the manifest that the file does not have is taken for good")
	}
}

// More rows than a job takes, though each file may have its.
func TestHostile_Rows(t *testing.T) {
	group := rowGroupFacts{rows: fileRowsMax}
	one := &source{rowGroups: []rowGroupFacts{group}, rows: fileRowsMax}
	for files, fits := range map[int]bool{2: true, 3: false} {
		_, rows := tasksOf([]*source{one, one, one}[:files])
		if err := checkRows(rows); (err == nil) != fits || err != nil && !fault.Is(err, fault.Validation) {
			t.Errorf("%d files: %v", files, err)
		}
	}
}

// One value of a megabyte that a dictionary gives to each of many rows, or that packs to nothing: the file is small, its
// rows are not.
func TestHostile_OneLargeValueInEachRow(t *testing.T) {
	t.Run("dictionary", func(t *testing.T) { largeValues(t, 4000, true) })
	t.Run("plain", func(t *testing.T) { largeValues(t, 300, false) })
}

func largeValues(t *testing.T, rows int, dictionary bool) {
	schema := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64},
		iceberg.NestedField{ID: 2, Name: "text", Type: iceberg.PrimitiveTypes.String})
	const valueBytes = 1 << 20
	in := newStore()
	arrowSchema := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true, Metadata: arrow.NewMetadata([]string{"PARQUET:field_id"}, []string{"1"})},
		{Name: "text", Type: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}, Nullable: true,
			Metadata: arrow.NewMetadata([]string{"PARQUET:field_id"}, []string{"2"})},
	}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrowSchema)
	defer b.Release()
	value := strings.Repeat("v", valueBytes)
	for i := range rows {
		b.Field(0).(*array.Int64Builder).Append(int64(i * 7919 % rows))
		if err := b.Field(1).(*array.BinaryDictionaryBuilder).AppendString(value); err != nil {
			t.Fatal(err)
		}
	}
	record := b.NewRecordBatch()
	defer record.Release()
	in.put(t, "in-00", record, parquet.WithCompression(compress.Codecs.Zstd), parquet.WithStats(false),
		parquet.WithDictionaryDefault(dictionary), parquet.WithBatchSize(8))
	t.Logf("%d bytes for %d MiB of rows", len(in.files["in-00"]), rows*valueBytes>>20)
	runtime.GC() // writing the input took more than reading it may
	var peak atomic.Uint64
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				peak.Store(max(peak.Load(), m.HeapInuse))
			}
		}
	}()
	j := job(t, schema, in, newStore(), 1)
	j.MemoryBytes, j.Workers = 64<<20, 1
	result, err := Cluster(context.Background(), j)
	close(done)
	<-ended
	t.Logf("%d rows, %v, %d MiB at most", result.RowsOut, err, peak.Load()>>20)
	if err == nil && result.RowsOut != int64(rows) {
		t.Errorf("%d rows of %d", result.RowsOut, rows)
	}
	if peak.Load() > 4*64<<20 {
		t.Errorf("%d MiB were in use", peak.Load()>>20)
	}
}
