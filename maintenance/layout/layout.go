package layout

import (
	"context"
	"io"

	"github.com/apache/iceberg-go"

	"catalogd/maintenance/zorder"
)

// File is an opened input.
type File interface {
	io.ReaderAt
	io.Closer
}

// Input is one data file to read. Path is its identity: inputs are read in the order of their paths, so that the result
// doesn't depend on the order in which they are listed; errors name it.
type Input struct {
	Path string
	Size int64 // bytes of the file
	Open func(ctx context.Context) (File, error)

	// FirstRowID and DataSequenceNumber are the file's manifest values; used only with Job.RowLineage.
	FirstRowID         *int64
	DataSequenceNumber int64
}

// Output is one data file to write. Exactly one of Close and Abort is called. After Close the file exists whole; after
// Abort nothing is left.
type Output interface {
	io.Writer
	Path() string
	Close() error
	Abort()
}

// Job is one partition's rows to rewrite.
type Job struct {
	// Schema is the table's current schema. Inputs are mapped to it by field id.
	Schema *iceberg.Schema
	// Columns are the field ids to cluster by, in declared order; see ResolveColumns. None: rows keep the inputs' order
	// (bin-packing).
	Columns []int
	Curve   zorder.Curve // "" means Hilbert
	// InPartition are the ids of fields of which the partition has the one value that all rows have. A file may leave
	// such a column out, as those do that came from Hive, and its readers take the value from the partition.
	InPartition []int

	Inputs []Input
	// Create makes output n (from 0). Two outputs may be open at a time. Its errors end the job.
	Create func(ctx context.Context, n int) (Output, error)
	// Remove deletes an output that was closed before the job failed. Its errors are not reported: whoever recorded the
	// path before creating it removes it later.
	Remove func(ctx context.Context, path string)

	Writer WriterSettings

	// MemoryBytes is what the job may hold at a time, apart from the decoders' own pages; 0 means MemoryBytesDefault.
	MemoryBytes int64
	// SpillDir is an existing folder. The job makes one folder of its own in it and removes that whatever happens.
	SpillDir string
	// Workers is how many goroutines read and write; 0 means GOMAXPROCS, at most WorkersMax.
	Workers int

	// Boundaries of an earlier run, to be used again; nil: sample.
	Boundaries *zorder.Boundaries
	Bins       int // of new boundaries; 0 means zorder.BinsDefault

	// RowLineage writes _row_id and _last_updated_sequence_number as columns (format version 3).
	RowLineage bool

	// Progress is told the phase and how much of it is done; nil: nobody is. One call at a time, from any goroutine.
	Progress func(phase Phase, fraction float64)
}

// Phase is a step of a job, for progress.
type Phase string

// The phases of Cluster and Copy, in order.
const (
	PhaseSample Phase = "sample"
	PhaseRoute  Phase = "route"
	PhaseWrite  Phase = "write"
)

// Limits and defaults of a job.
const (
	MemoryBytesDefault = 192 << 20
	memoryBytesMin     = 16 << 20
	WorkersMax         = 4
	bucketsMax         = 1024
)

// Result is what a job did. RowsIn equals RowsOut and ChecksumIn equals ChecksumOut; otherwise the job failed.
type Result struct {
	Files []OutputFile // in the order of the curve

	RowsIn, RowsOut         int64
	ChecksumIn, ChecksumOut Checksum
	BytesIn, BytesOut       int64
	RowGroupsIn             int
	RowGroupsOut            int
	// DepthBefore and DepthAfter are the mean numbers of row-group boxes that cover a point's box; 1 is perfect. 0 when
	// the job has no clustering columns.
	DepthBefore, DepthAfter float64

	// Boundaries that were used; keep them as the table's layout version.
	Boundaries *zorder.Boundaries
	// EdgeShare is the largest share of rows, over the columns, that fell into the lowest or the highest bin of given
	// boundaries. Far above 2/bins it says that the boundaries have grown stale.
	EdgeShare float64

	SpilledBytes int64
}

// OutputFile describes a written file the way a manifest entry needs it. Maps are keyed by the field id of leaf columns.
type OutputFile struct {
	Path         string
	RecordCount  int64
	SizeBytes    int64
	SplitOffsets []int64

	ColumnSizes     map[int]int64
	ValueCounts     map[int]int64
	NullValueCounts map[int]int64
	NaNValueCounts  map[int]int64
	// Bounds in the table format's single-value serialisation. NaN is never a bound.
	LowerBounds map[int][]byte
	UpperBounds map[int][]byte

	// Boxes of the file's row groups over the clustering columns.
	Boxes []Box
}
