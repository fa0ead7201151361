package maintenance

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"
	"pgregory.net/rapid"
)

// Whatever a table looks like, planning what a plan leaves behind chooses nothing, on demand and by itself.
func TestPlan_IsAFixedPoint(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := &scenario{t: t}
		words := []string{"table"}
		if rapid.Bool().Draw(rt, "partitioned") {
			words = append(words, "spec=factory_id")
		}
		if rapid.Bool().Draw(rt, "clustered") {
			words = append(words, "order=sensor_id,measured_at")
		}
		s.do(words)
		s.stored[KeyTargetBytes] = fmt.Sprint(rapid.Int64Range(16<<20, 1<<30).Draw(rt, "target"))
		for range rapid.IntRange(1, 6).Draw(rt, "rounds") {
			for range rapid.IntRange(0, 4).Draw(rt, "batches") {
				s.do([]string{"files", fmt.Sprint(rapid.IntRange(1, 8).Draw(rt, "files")),
					"part=" + rapid.SampledFrom([]string{"A", "B"}).Draw(rt, "part"), "rows=1000",
					fmt.Sprintf("mb=%d", rapid.IntRange(0, 200).Draw(rt, "mb"))})
			}
			trigger := rapid.SampledFrom([]string{"on-demand", "automatic"}).Draw(rt, "trigger")
			s.do([]string{"plan", trigger})
			if s.plan.Verdict != VerdictRun {
				continue
			}
			s.apply()
			for _, again := range []string{trigger, "automatic"} {
				if answer := s.do([]string{"plan", again}); s.plan.Verdict != VerdictNothing {
					rt.Fatalf("a %s plan after the run: %s", again, answer)
				}
			}
		}
	})
}

// Bounds in byte order are in the order of the values.
func TestOrderedBound_KeepsTheOrder(t *testing.T) {
	le8 := func(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }
	le4 := func(v uint32) []byte { return binary.LittleEndian.AppendUint32(nil, v) }
	double := func(v float64) []byte { return le8(math.Float64bits(v)) }
	dec := func(v int64) []byte {
		n := big.NewInt(v)
		if v >= 0 {
			return append([]byte{0}, n.Bytes()...)
		}
		size := len(n.Bytes()) + 1
		return new(big.Int).Add(n, new(big.Int).Lsh(big.NewInt(1), uint(8*size))).Bytes()
	}
	for name, c := range map[string]struct {
		t      iceberg.PrimitiveType
		values [][]byte
	}{
		"long":    {iceberg.PrimitiveTypes.Int64, [][]byte{le8(1 << 63), le4(1 << 31), le8(math.MaxUint64), le4(0), le8(1), le4(math.MaxInt32), le8(math.MaxInt64)}},
		"date":    {iceberg.PrimitiveTypes.Date, [][]byte{le4(uint32(0xffffff00)), le4(0), le4(7)}},
		"double":  {iceberg.PrimitiveTypes.Float64, [][]byte{double(math.Inf(-1)), double(-2), double(math.Copysign(0, -1)), double(0), le4(math.Float32bits(1.5)), double(math.Inf(1))}},
		"decimal": {iceberg.DecimalTypeOf(38, 2), [][]byte{dec(math.MinInt64), dec(-70000), dec(-1), dec(0), dec(255), dec(math.MaxInt64)}},
		"string":  {iceberg.PrimitiveTypes.String, [][]byte{{}, []byte("a"), []byte("a\x00"), []byte("ab"), []byte("\xff")}},
	} {
		var got []string
		for _, v := range c.values {
			b, ok := orderedBound(c.t, v)
			if !ok {
				t.Errorf("%s: % x is no bound", name, v)
			}
			got = append(got, b)
		}
		if !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
			t.Errorf("%s: not in strict order: %q", name, got)
		}
	}
	for name, c := range map[string]struct {
		t iceberg.PrimitiveType
		v []byte
	}{
		"no bytes": {iceberg.PrimitiveTypes.Int64, nil}, "five bytes": {iceberg.PrimitiveTypes.Int64, make([]byte, 5)},
		"NaN": {iceberg.PrimitiveTypes.Float64, double(math.NaN())}, "wide decimal": {iceberg.DecimalTypeOf(9, 2), make([]byte, 17)},
		"missing string": {iceberg.PrimitiveTypes.String, nil},
	} {
		if b, ok := orderedBound(c.t, c.v); ok {
			t.Errorf("%s is taken for the bound %q", name, b)
		}
	}
}

func TestOverlap_OneIsPerfect(t *testing.T) {
	grid := func(side int) (boxes []Box) {
		for x := range side {
			for y := range side {
				boxes = append(boxes, Box{Rows: 1, Lower: []string{fmt.Sprintf("%02d0", x), fmt.Sprintf("%02d0", y)}, Upper: []string{fmt.Sprintf("%02d9", x), fmt.Sprintf("%02d9", y)}})
			}
		}
		return boxes
	}
	if got := overlap(grid(8)); got != 1 {
		t.Errorf("a grid: %v", got)
	}
	// Arrival order: every file holds all of the first column and a slice of the second.
	var slices []Box
	for y := range 64 {
		slices = append(slices, Box{Rows: 1, Lower: []string{"000", fmt.Sprintf("%02d0", y)}, Upper: []string{"999", fmt.Sprintf("%02d9", y)}})
	}
	if got := overlap(slices); got < 4 || got > 4.2 { // (64/8 + 1/8) / 2
		t.Errorf("arrival order: %v", got)
	}
	if got := overlap(nil); got != 0 {
		t.Errorf("nothing: %v", got)
	}
	if got := overlap([]Box{{Rows: 5, Lower: []string{"a"}, Upper: []string{"a"}}}); got != 1 {
		t.Errorf("one value: %v", got)
	}
}

// shoutless is a data file whose format is spelled by a writer that does not shout.
type shoutless struct{ iceberg.DataFile }

func (shoutless) FileFormat() iceberg.FileFormat { return "parquet" }

func TestField_C227_FormatInLowerCase(t *testing.T) {
	b, err := iceberg.NewDataFileBuilder(*iceberg.UnpartitionedSpec, iceberg.EntryContentData, "s3://b/t/x", iceberg.ParquetFile, nil, nil, nil, 7, 8)
	if err != nil {
		t.Fatal(err)
	}
	if f := factsOf(shoutless{b.Build()}, Target{}); !f.Parquet || f.Rows != 7 || f.Bytes != 8 {
		t.Errorf("facts: %+v", f)
	}
}

func TestRunOf_KnowsOurFilesAlone(t *testing.T) {
	l := Lease{JobID: uuid.MustParse("01a22bf3-afcc-7049-b895-e26ab58c0d80"), Epoch: 3}
	name := DataFileName(l, 12)
	for path, want := range map[string]string{
		"s3://b/t/data/p=1/" + name:                l.JobID.String(),
		name:                                       l.JobID.String(),
		"s3://b/t/" + name + "/x.parquet":          "",
		"s3://b/t/data/00000-0-abc.parquet":        "",
		"s3://b/catalogd-x-1-1.parquet":            "",
		"s3://b/" + strings.TrimSuffix(name, "et"): "",
	} {
		if got := RunOf(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

// A branch that grew from main's head, or a staged write, would not fit main after a rewrite.
func TestPendingBranch(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	at := func(hoursAgo int) int64 { return now.Add(-time.Duration(hoursAgo) * time.Hour).UnixMilli() }
	snapshot := func(id, parent, seq int64, ms int64, summary string) string {
		p := ""
		if parent != 0 {
			p = fmt.Sprintf(`"parent-snapshot-id": %d,`, parent)
		}
		return fmt.Sprintf(`{"snapshot-id": %d, %s "sequence-number": %d, "timestamp-ms": %d, "manifest-list": "file:///m", "schema-id": 0, "summary": {"operation": "append"%s}}`, id, p, seq, ms, summary)
	}
	for name, c := range map[string]struct {
		snapshots []string
		refs      string
		want      string
	}{
		"main alone":         {[]string{snapshot(1, 0, 1, at(1), "")}, "", ""},
		"branch of the head": {[]string{snapshot(1, 0, 1, at(2), ""), snapshot(2, 1, 2, at(1), "")}, `, "audit": {"snapshot-id": 2, "type": "branch"}`, "branch audit"},
		"branch at the head": {[]string{snapshot(1, 0, 1, at(2), "")}, `, "audit": {"snapshot-id": 1, "type": "branch"}`, "branch audit"},
		"tag at the head":    {[]string{snapshot(1, 0, 1, at(2), "")}, `, "v1": {"snapshot-id": 1, "type": "tag"}`, ""},
		"old branch":         {[]string{snapshot(1, 0, 1, at(40), ""), snapshot(2, 1, 2, at(30), "")}, `, "audit": {"snapshot-id": 2, "type": "branch"}`, ""},
		"branch from before": {[]string{snapshot(9, 0, 1, at(4), ""), snapshot(1, 9, 2, at(3), ""), snapshot(2, 9, 3, at(1), "")}, `, "audit": {"snapshot-id": 2, "type": "branch"}`, ""},
		"staged":             {[]string{snapshot(1, 0, 1, at(2), ""), snapshot(2, 1, 2, at(1), `, "wap.id": "w7"`)}, "", "staged write w7"},
		"staged, published":  {[]string{snapshot(2, 0, 1, at(3), `, "wap.id": "w7"`), snapshot(1, 0, 2, at(2), `, "published-wap-id": "w7"`)}, "", ""},
	} {
		meta, err := table.ParseMetadataBytes([]byte(fmt.Sprintf(`{"format-version": 2, "table-uuid": "01a22bf3-afcc-7049-b895-e26ab58c0d80", "location": "file:///t",
			"last-sequence-number": 3, "last-updated-ms": %d, "last-column-id": 1, "current-schema-id": 0,
			"schemas": [{"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "a", "required": false, "type": "int"}]}],
			"default-spec-id": 0, "partition-specs": [{"spec-id": 0, "fields": []}], "last-partition-id": 999, "default-sort-order-id": 0, "sort-orders": [{"order-id": 0, "fields": []}],
			"current-snapshot-id": 1, "refs": {"main": {"snapshot-id": 1, "type": "branch"}%s}, "snapshots": [%s], "snapshot-log": [], "metadata-log": []}`,
			now.UnixMilli(), c.refs, strings.Join(c.snapshots, ","))))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		v := &tableView{meta: meta, head: meta.CurrentSnapshot()}
		if got := v.pendingBranch(now); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
