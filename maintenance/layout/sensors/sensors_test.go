package sensors

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"catalogd/maintenance/layout"
	"catalogd/maintenance/zorder"
)

// fileStore is a store of files for tests.
type fileStore map[string]*bytes.Buffer

type reader struct{ *bytes.Reader }

func (reader) Close() error { return nil }

type output struct {
	*bytes.Buffer
	path string
}

func (o output) Path() string { return o.path }
func (o output) Close() error { return nil }
func (o output) Abort()       {}

var year = Slice{From: time.Date(2023, 1, 1, 0, 0, 0, 0, time.UTC), To: time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)}

// sparse is the story with a reading every other hour.
var sparse = Data{Sensors: 100, Interval: 2 * time.Hour, Seed: 1}

func inputs(t *testing.T) (list []layout.Input, rows int64) {
	t.Helper()
	for n := range Chunks {
		var b bytes.Buffer
		written, err := sparse.Write(&b, n, year)
		if err != nil {
			t.Fatal(err)
		}
		rows += written
		list = append(list, layout.Input{Path: fmt.Sprintf("in-%02d", n), Size: int64(b.Len()),
			Open: func(context.Context) (layout.File, error) { return reader{bytes.NewReader(b.Bytes())}, nil }})
	}
	return list, rows
}

func TestData_FullHasTheStorysRows(t *testing.T) {
	rows := 0
	for n := range Chunks {
		from, to := Full.Chunk(n)
		rows += Full.Sensors * (int(to.Sub(from)/Full.Interval) + 1)
	}
	if rows != 52_561_300 {
		t.Errorf("%d rows", rows)
	}
	if first, _ := Full.Chunk(0); first.Format(time.RFC3339) != "2022-12-31T05:00:30Z" {
		t.Errorf("the first reading is at %s", first)
	}
}

// The bars of the story at 256 row groups: what a plain curve over raw bits misses by far.
func TestCluster_PrunesTheStorysQuestions(t *testing.T) {
	list, rows := inputs(t)
	for _, curve := range []zorder.Curve{zorder.Hilbert, zorder.ZOrder} {
		files := fileStore{}
		job := layout.Job{Schema: Schema(), Columns: Columns(), Curve: curve, Inputs: list, SpillDir: t.TempDir(), Workers: 2,
			Writer: layout.WriterSettings{RowGroupRows: (rows + 255) / 256},
			Create: func(_ context.Context, n int) (layout.Output, error) {
				path := fmt.Sprintf("out-%d", n)
				files[path] = &bytes.Buffer{}
				return output{files[path], path}, nil
			}}
		result, err := layout.Cluster(context.Background(), job)
		if err != nil {
			t.Fatal(err)
		}
		var boxes []layout.Box
		for _, f := range result.Files {
			boxes = append(boxes, f.Boxes...)
		}
		p1, p2, p3 := sparse.Ask(200, 1, year.From, End).Shares(boxes)
		t.Logf("%s: %d row groups, P1 %.2f %%, P2 %.2f %%, P3 %.2f %%, depth %.2f to %.2f, %d to %d bytes", curve, len(boxes), 100*p1, 100*p2, 100*p3,
			result.DepthBefore, result.DepthAfter, result.BytesIn, result.BytesOut)
		if len(boxes) > 256 || p1 > 0.012 || p2 > 0.09 || p3 > 0.13 {
			t.Errorf("%s: %d row groups, P1 %.4f, P2 %.4f, P3 %.4f", curve, len(boxes), p1, p2, p3)
		}
		if result.RowsOut != rows || result.ChecksumIn != result.ChecksumOut {
			t.Errorf("%d rows of %d, checksums %s and %s", result.RowsOut, rows, result.ChecksumIn, result.ChecksumOut)
		}
		if curve == zorder.Hilbert && result.DepthAfter > 1.3 {
			t.Errorf("depth %.2f", result.DepthAfter)
		}
	}
}
