package maintenance

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	icebergio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"

	"catalogd/internal/fault"
)

// heldFiles are files in memory.
type heldFiles map[string][]byte

type heldFile struct{ *bytes.Reader }

func (heldFile) Close() error               { return nil }
func (heldFile) Stat() (fs.FileInfo, error) { return nil, fs.ErrInvalid }

func (h heldFiles) Open(name string) (icebergio.File, error) {
	body, ok := h[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return heldFile{bytes.NewReader(body)}, nil
}
func (heldFiles) Remove(string) error                         { return fs.ErrInvalid }
func (heldFiles) Create(string) (icebergio.FileWriter, error) { return nil, fs.ErrInvalid }
func (heldFiles) WriteFile(string, []byte) error              { return fs.ErrInvalid }
func (heldFiles) WalkDir(string, fs.WalkDirFunc) error        { return fs.ErrInvalid }

// bigTable is a table of so many data files with bounds of eight columns, four of which the table is sorted by. The
// bounds of the first are as long as said. The snapshot lists its manifests so many times over: reading does not mind, and
// writing them takes longer than what is tested.
func bigTable(t testing.TB, files, perManifest, boundBytes, times int) *tableView {
	t.Helper()
	var fields, order []string
	for i := range 8 {
		fields = append(fields, fmt.Sprintf(`{"id": %d, "name": "c%d", "required": false, "type": %q}`, i+1, i, []string{"string", "long"}[min(i, 1)]))
	}
	for i := range 4 {
		order = append(order, fmt.Sprintf(`{"source-id": %d, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}`, i+1))
	}
	meta, err := table.ParseMetadataBytes([]byte(fmt.Sprintf(`{"format-version": 2, "table-uuid": "01a22bf3-afcc-7049-b895-e26ab58c0d80", "location": "file:///t",
		"last-sequence-number": 1, "last-updated-ms": 1800000000000, "last-column-id": 8, "current-schema-id": 0,
		"schemas": [{"type": "struct", "schema-id": 0, "fields": [%s]}], "default-spec-id": 0, "partition-specs": [{"spec-id": 0, "fields": []}],
		"last-partition-id": 999, "default-sort-order-id": 1, "sort-orders": [{"order-id": 1, "fields": [%s]}],
		"current-snapshot-id": 1, "refs": {"main": {"snapshot-id": 1, "type": "branch"}}, "snapshots": [{"snapshot-id": 1, "sequence-number": 1,
		"timestamp-ms": 1800000000000, "manifest-list": "file:///t/list", "schema-id": 0, "summary": {"operation": "append"}}], "snapshot-log": [], "metadata-log": []}`,
		strings.Join(fields, ","), strings.Join(order, ","))))
	if err != nil {
		t.Fatal(err)
	}
	counts, sizes := map[int]int64{}, map[int]int64{}
	for c := range 8 {
		counts[c+1], sizes[c+1] = 1000, 12345
	}
	long := bytes.Repeat([]byte("b"), boundBytes)
	held := heldFiles{}
	var listed []iceberg.ManifestFile
	snapshot, sequence := int64(1), int64(1)
	for first := 0; first < files; first += perManifest {
		var body bytes.Buffer
		w, err := iceberg.NewManifestWriter(2, &body, meta.PartitionSpec(), meta.CurrentSchema(), 1)
		if err != nil {
			t.Fatal(err)
		}
		for n := first; n < min(first+perManifest, files); n++ {
			path := fmt.Sprintf("file:///t/data/year=2026/month=11/00000-%d-8b1f3c2e-5e0c-4c5b-9d2f-0a1b2c3d4e5f-00001.parquet", n)
			b, err := iceberg.NewDataFileBuilder(meta.PartitionSpec(), iceberg.EntryContentData, path, iceberg.ParquetFile, nil, nil, nil, 1000, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			bounds := map[int][]byte{}
			for c := range 8 {
				bounds[c+1] = binary.LittleEndian.AppendUint64(nil, uint64(n))
			}
			bounds[1] = long
			b.ColumnSizes(sizes).ValueCounts(counts).NullValueCounts(counts).LowerBoundValues(bounds).UpperBoundValues(bounds)
			if err := w.Add(iceberg.NewManifestEntry(iceberg.EntryStatusADDED, &snapshot, &sequence, nil, b.Build())); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("file:///t/m%d", first)
		m, err := w.ToManifestFile(name, int64(body.Len()))
		if err != nil {
			t.Fatal(err)
		}
		held[name], listed = body.Bytes(), append(listed, m)
	}
	var list bytes.Buffer
	if err := iceberg.WriteManifestList(2, &list, 1, nil, &sequence, 0, slices.Repeat(listed, times)); err != nil {
		t.Fatal(err)
	}
	held["file:///t/list"] = list.Bytes()
	return &tableView{meta: meta, head: meta.CurrentSnapshot(), files: held}
}

// A hundred thousand data files are planned within the limits, in the memory that the limits promise.
func TestPlan_AHundredThousandFiles(t *testing.T) {
	v := bigTable(t, 100_000, 20_000, 16, 1)
	before := heldNow()
	begun := time.Now()
	settings, _, err := ParseSettings(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	facts, err := v.facts(t.Context(), settings, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	held, estimate := int64(heldNow()-before), int64(0)
	for _, f := range facts.Files {
		estimate += f.heldBytes()
	}
	t.Logf("%d files: %s, %d MiB held, %d MiB estimated", len(facts.Files), time.Since(begun), held>>20, estimate>>20)
	if len(facts.Files) != 100_000 || len(facts.Files[0].Lower) != 4 {
		t.Fatalf("%d files with bounds of %d columns", len(facts.Files), len(facts.Files[0].Lower))
	}
	if held > estimate*3/2 || held < estimate/2 {
		t.Errorf("%d bytes are held, %d were counted", held, estimate)
	}
	plan := PlanCompaction(facts, settings, LayoutRecord{}, Wish{Trigger: OnDemand, Now: time.Now()})
	if plan.Verdict != VerdictRun {
		t.Errorf("plan: %+v", plan.Reason)
	}
}

func heldNow() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Bounds of a megabyte each do not fill the memory.
func TestPlan_HugeBounds(t *testing.T) {
	v := bigTable(t, 13, 13, 1<<20, 10)
	settings, _, err := ParseSettings(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = v.facts(t.Context(), settings, time.Now())
	if !fault.Is(err, fault.TooLarge) {
		t.Errorf("got %v", err)
	}
}
