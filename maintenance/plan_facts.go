package maintenance

import (
	"math"
	"slices"

	"github.com/google/uuid"
)

// Facts are all that planning knows of a table: one snapshot of its main branch, read from manifests alone.
type Facts struct {
	Shape
	FormatVersion int
	Location      string // no trailing slash
	Properties    map[string]string
	SnapshotID    int64 // 0: no snapshot
	Sequence      int64 // of that snapshot
	// Encrypted tells that the table names an encryption key.
	Encrypted bool
	// DeleteFiles counts live delete files and deletion vectors.
	DeleteFiles int64
	// PendingBranch names another branch that starts at or after main's head, or a staged write: both stop fitting
	// when main moves. "" when there is none.
	PendingBranch string
	Files         []FileFacts
}

// FileFacts are one live data file, in the manifests' own words. Bounds are in byte order (see orderedBound), only
// for columns to cluster by; a column without bounds is absent.
type FileFacts struct {
	Path      string
	SpecID    int
	Partition string // key of the tuple: equal keys are equal tuples
	Rows      int64
	Bytes     int64
	RowGroups int64
	Parquet   bool
	Encrypted bool
	HasRowIDs bool // format version 3: the file's first row id is known
	Lower     map[int]string
	Upper     map[int]string
}

// LayoutRecord remembers which of our runs wrote which layout, so that a plan can tell done from to do. Files carry
// their run in their name.
type LayoutRecord struct {
	Layout     string            `json:"layout,omitempty"` // the last one's fingerprint
	SnapshotID int64             `json:"snapshot_id,omitempty"`
	Columns    []string          `json:"columns,omitempty"`
	Curve      Curve             `json:"curve,omitempty"`
	Runs       map[string]string `json:"runs,omitempty"` // job id -> layout
}

// With adds a run and forgets the runs of which no file is left.
func (r LayoutRecord) With(run uuid.UUID, t Target, snapshotID int64, livePaths func(yield func(string) bool)) LayoutRecord {
	out := LayoutRecord{Layout: t.Fingerprint(), SnapshotID: snapshotID, Curve: t.Curve, Runs: map[string]string{}}
	for _, c := range t.Columns {
		out.Columns = append(out.Columns, c.Path)
	}
	for path := range livePaths {
		if id := RunOf(path); id != "" && r.Runs[id] != "" {
			out.Runs[id] = r.Runs[id]
		}
	}
	out.Runs[run.String()] = t.Fingerprint()
	return out
}

// overlap measures how far boxes are from a perfect layout. For each column: how many boxes cover a value, on
// average, divided by what n boxes of d columns can reach at best, n^(1-1/d). The mean over the columns; 1 is perfect
// (never less), 0 when there is nothing to measure. Boxes are weighted by rows.
func overlap(boxes []Box) float64 {
	if len(boxes) == 0 || len(boxes[0].Lower) == 0 {
		return 0
	}
	columns := len(boxes[0].Lower)
	best := math.Pow(float64(len(boxes)), 1-1/float64(columns))
	sum := 0.0
	for c := range columns {
		sum += depth(boxes, c) / best
	}
	return max(1, sum/float64(columns))
}

// Box is the range of the clustering columns in a file or a row group, bounds in byte order and inclusive.
type Box struct {
	Lower []string
	Upper []string
	Rows  int64
}

// depth is the mean number of boxes that cover a value of the column, over both ends of every box, weighted by rows.
func depth(boxes []Box, column int) float64 {
	lows, highs := make([]string, len(boxes)), make([]string, len(boxes))
	for i, b := range boxes {
		lows[i], highs[i] = b.Lower[column], b.Upper[column]
	}
	slices.Sort(lows)
	slices.Sort(highs)
	covering := func(v string) float64 {
		begun, _ := slices.BinarySearch(lows, v+"\x00") // lows <= v
		ended, _ := slices.BinarySearch(highs, v)       // highs < v
		return float64(begun - ended)
	}
	sum, weight := 0.0, 0.0
	for _, b := range boxes {
		rows := float64(max(b.Rows, 1))
		sum += rows * (covering(b.Lower[column]) + covering(b.Upper[column])) / 2
		weight += rows
	}
	return sum / weight
}

// mean is a mean weighted by rows.
type mean struct{ sum, weight float64 }

func (m *mean) add(rows int64, v float64) {
	w := float64(max(rows, 1))
	m.sum, m.weight = m.sum+w*v, m.weight+w
}

func (m *mean) value() float64 {
	if m.weight == 0 {
		return 0
	}
	return m.sum / m.weight
}
