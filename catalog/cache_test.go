package catalog

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"catalogd/catalog/commit"
	"catalogd/internal/deflate"
	"catalogd/internal/fault"
)

// testEntry is a table with so many snapshots.
func testEntry(t testing.TB, location string, snapshots int) *metadataEntry {
	t.Helper()
	var list []string
	for i := range snapshots {
		list = append(list, fmt.Sprintf(`{"snapshot-id":%d,"sequence-number":%d,"timestamp-ms":%d,"manifest-list":"s3://b/t/metadata/%d.avro",`+
			`"summary":{"operation":"append","total-records":"%d"},"schema-id":0}`, i+1, i+1, 1700000000000+i, i, i*1000))
	}
	main := ""
	if snapshots > 0 {
		main = fmt.Sprintf(`"current-snapshot-id":%d,"refs":{"main":{"snapshot-id":%d,"type":"branch"}},`, snapshots, snapshots)
	}
	text := fmt.Sprintf(`{"format-version":2,"table-uuid":"9c12d441-03fe-4693-9a96-a0705ddf69c1","location":"s3://b/t",`+
		`"last-sequence-number":%d,"last-updated-ms":1800000000000,"last-column-id":1,"current-schema-id":0,%s`+
		`"schemas":[{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"x","required":true,"type":"long"}]}],`+
		`"default-spec-id":0,"partition-specs":[{"spec-id":0,"fields":[]}],"last-partition-id":999,"default-sort-order-id":0,`+
		`"sort-orders":[{"order-id":0,"fields":[]}],"properties":{"owner":"%s"},"snapshots":[%s]}`,
		snapshots, main, location, strings.Join(list, ","))
	d, err := commit.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return newMetadataEntry(location, d, deflate.Pack([]byte(text)))
}

func TestCache_CountsWhatItHolds(t *testing.T) {
	for name, snapshots := range map[string]int{"small tables": 0, "tables of 100 snapshots": 100} {
		const tables = 400
		c := newMetadataCache(1 << 30)
		before := heapBytes()
		for i := range tables {
			c.put(testEntry(t, fmt.Sprintf("s3://bucket/%d/metadata/00001.metadata.json", i), snapshots))
		}
		held := float64(heapBytes() - before)
		if counted := float64(c.kept.Bytes()); counted < 0.8*held || counted > 1.6*held {
			t.Errorf("%s: %.0f bytes are counted, %.0f are held", name, counted, held)
		}
		runtime.KeepAlive(c)
	}
}

func heapBytes() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestCache_StaysWithinItsBound(t *testing.T) {
	one := testEntry(t, "0", 30)
	bytesMax := 3*one.bytes() + one.bytes()/2
	c := newMetadataCache(bytesMax)
	for i := range 10 {
		c.put(testEntry(t, fmt.Sprint(i), 30))
		if c.kept.Bytes() > bytesMax || c.kept.Len() > 3 {
			t.Fatalf("%d bytes of %d in %d entries", c.kept.Bytes(), bytesMax, c.kept.Len())
		}
	}
	c.put(testEntry(t, "large", 300))
	if _, there := c.kept.Find("large"); there || c.kept.Len() != 3 {
		t.Error("what is larger than the cache was kept")
	}
	// An entry's other answers count as well, and push others out.
	last, err := c.find(t.Context(), "9", nil)
	if err != nil {
		t.Fatal(err)
	}
	c.answerOf(last, SnapshotsRefs, func() []byte { return make([]byte, 2*one.bytes()) })
	if c.kept.Bytes() > bytesMax || c.kept.Len() != 1 {
		t.Errorf("%d bytes of %d in %d entries", c.kept.Bytes(), bytesMax, c.kept.Len())
	}
}

func TestCache_AnswersAreMadeOnce(t *testing.T) {
	c, e := newMetadataCache(1<<20), testEntry(t, "x", 50)
	document := e.document.(*commit.Document)
	c.put(e)
	all := c.answerOf(e, SnapshotsAll, document.Answer)
	if &all.text[0] != &document.JSON()[0] || len(e.answers) != 0 || all.packed.Bytes != int64(len(all.text)) {
		t.Error("the file's own text was kept twice")
	}
	made := 0
	for range 3 {
		refs := c.answerOf(e, SnapshotsRefs, func() []byte { made++; return document.RefsOnly() })
		if string(refs.text) != string(document.RefsOnly()) {
			t.Error("another text")
		}
	}
	if made != 1 {
		t.Errorf("made %d times", made)
	}
}

// C120, C196: many clients of one cold table do not read it once each.
func TestField_C120_ManyReadersOfAColdTableReadItOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newMetadataCache(1 << 30)
		want, gate, reads := testEntry(t, "x", 5), make(chan struct{}), 0
		read := func(context.Context) (*metadataEntry, error) {
			reads++
			<-gate
			return want, nil
		}
		var all sync.WaitGroup
		for range 500 {
			all.Go(func() {
				if e, err := c.find(t.Context(), "x", read); e != want || err != nil {
					t.Errorf("got %v, %v", e, err)
				}
			})
		}
		synctest.Wait()
		close(gate)
		all.Wait()
		if reads != 1 || len(c.reads) != 0 {
			t.Errorf("%d reads, %d left", reads, len(c.reads))
		}
	})
}

func TestCache_WhoLeavesTakesNobodyAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newMetadataCache(1 << 30)
		want, gate := testEntry(t, "x", 5), make(chan struct{})
		read := func(ctx context.Context) (*metadataEntry, error) {
			<-gate
			return want, ctx.Err()
		}
		first, leaveFirst := context.WithCancel(t.Context())
		third, leaveThird := context.WithCancel(t.Context())
		var all sync.WaitGroup
		ask := func(ctx context.Context, kind fault.Kind) {
			all.Go(func() {
				if _, err := c.find(ctx, "x", read); err != nil && !fault.Is(err, kind) || err == nil && kind != "" {
					t.Errorf("got %v, want %q", err, kind)
				}
			})
			synctest.Wait()
		}
		ask(first, "") // whose read goes on for the others
		ask(t.Context(), "")
		ask(third, fault.Busy)
		leaveFirst()
		leaveThird()
		synctest.Wait()
		close(gate)
		all.Wait()
	})
}

func TestCache_FailuresAreNotKept(t *testing.T) {
	c := newMetadataCache(1 << 30)
	want := testEntry(t, "x", 0)
	broken := func(context.Context) (*metadataEntry, error) { return want, fault.New(fault.FileNotFound, "gone") }
	if _, err := c.find(t.Context(), "x", broken); !fault.Is(err, fault.FileNotFound) {
		t.Errorf("got %v", err)
	}
	func() {
		defer func() { _ = recover() }()
		_, _ = c.find(t.Context(), "x", func(context.Context) (*metadataEntry, error) { panic("broken") })
	}()
	if len(c.reads) != 0 || c.kept.Len() != 0 {
		t.Errorf("%d reads and %d entries are left", len(c.reads), c.kept.Len())
	}
	if e, err := c.find(t.Context(), "x", func(context.Context) (*metadataEntry, error) { return want, nil }); e != want || err != nil {
		t.Errorf("got %v, %v", e, err)
	}
}
