package maintenance

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/apache/iceberg-go"

	"catalogd/catalog"
	"catalogd/internal/crash"
	"catalogd/internal/fault"
	"catalogd/maintenance/layout"
	"catalogd/maintenance/zorder"
	"catalogd/vending"
)

// Phases of a compaction, as its status shows them.
const (
	phaseRecovering = "recovering"
	phasePlanning   = "planning"
	phaseRewriting  = "rewriting"
	phaseCommitting = "committing"
)

// Reason codes of how jobs end, beside those of plans.
const (
	CodeDone        = "done"
	CodeTableGone   = "table-gone"
	CodeConflict    = "conflict"    // other commits kept taking the files
	CodeAttempts    = "attempts"    // the job ended its workers too often
	CodeError       = "error"       // see the message
	CodeUnsupported = "unsupported" // files hold what the engine does not rewrite
	CodeUnverified  = "unverified"  // the rewrite's rows did not add up; nothing was committed
)

// compaction is one claim of a compaction job at work.
type compaction struct {
	job      Job
	lease    Lease
	ref      TableRef
	settings Settings
	record   LayoutRecord
	env      environment
	log      *slog.Logger

	view    *tableView
	facts   Facts
	plan    Plan
	outcome Outcome

	replacements []*replacement
	replaced     map[string]string // path -> partition of every file of every group
	partitions   map[string]bool   // of the groups
	notes        map[string]note   // by manifest path
	draft        *draft            // nil before the first try
	last         *pending          // the last try
	skipped      string            // why the last group was skipped
	ledger       *ledger
	shown        atomic.Int64 // time of the last progress, in nanoseconds
}

// environment is what a compaction works with.
type environment struct {
	store    Store
	tables   Tables
	open     OpenFiles
	cluster  ClusterFunc
	memory   int64
	workers  int
	spillDir string
	now      func() time.Time

	deadlines Deadlines
}

// rowLineageVersion is the format version from which every row has an id that outlives its file.
const rowLineageVersion = 3

// ClusterFunc rewrites one partition's files; layout.Cluster in production.
type ClusterFunc func(ctx context.Context, j layout.Job) (layout.Result, error)

// replacement is one group's work: these files out, those in.
type replacement struct {
	group   Group
	old     []oldFile
	added   []iceberg.DataFile
	rows    int64
	dropped bool
	result  layout.Result
}

// run works until the job has an end. An error means that it has none yet.
func (c *compaction) run(ctx context.Context) (Finish, error) {
	end, err := c.runOnce(ctx)
	if _, missing := missingFile(err); missing && c.hasMoved(ctx) {
		return end, errAllDropped
	}
	return end, err
}

// hasMoved tells whether the table has another current snapshot than what this claim read: files that this claim does
// not find may have been removed for that reason.
func (c *compaction) hasMoved(ctx context.Context) bool {
	if c.view == nil {
		return false
	}
	now, err := c.reader().load(ctx, c.caller(), c.ref, vending.Read)
	return err == nil && now.head != nil && (c.view.head == nil || now.head.SnapshotID != c.view.head.SnapshotID)
}

func (c *compaction) runOnce(ctx context.Context) (Finish, error) {
	crash.Point("compact-claimed")
	if err := c.load(ctx); err != nil {
		return Finish{}, err
	}
	if end, done, err := c.recover(ctx); err != nil || done {
		return end, err
	}
	if end, done, err := c.makePlan(ctx); err != nil || done {
		return end, err
	}
	if err := c.rewrite(ctx); err != nil {
		return Finish{}, err
	}
	return c.commit(ctx)
}

// load reads the table and what is known of it.
func (c *compaction) load(ctx context.Context) error {
	view, err := c.reader().load(ctx, c.caller(), c.ref, vending.ReadWrite)
	if err != nil {
		return err
	}
	state, err := c.env.store.LoadTableState(ctx, c.ref.ID)
	if err != nil {
		return fmt.Errorf("read the maintenance state of %s: %w", c.ref.Ident, err)
	}
	c.view, c.record = view, state.Layout
	c.settings, _, err = ParseSettings(view.meta.Properties(), state.Settings)
	if err != nil {
		return refusal{Reason{CodeSettings, fault.Message(err)}}
	}
	return nil
}

func (c *compaction) caller() catalog.Caller { return systemCaller(c.job.ID.String()) }

func (c *compaction) reader() reader { return reader{tables: c.env.tables, open: c.env.open} }

// refusal is an error that ends the job as refused.
type refusal struct{ reason Reason }

func (r refusal) Error() string { return r.reason.Message }

// makePlan plans and ends the job when there is nothing to do.
func (c *compaction) makePlan(ctx context.Context) (Finish, bool, error) {
	if err := c.show(ctx, phasePlanning, 0); err != nil {
		return Finish{}, false, err
	}
	now := c.env.now()
	planning, cancel := context.WithTimeoutCause(ctx, c.env.deadlines.Plan, errPlanTooLong)
	defer cancel()
	facts, err := c.view.facts(planning, c.settings, now)
	if err != nil {
		return Finish{}, false, err
	}
	// What was worth looking at when the job was queued is now done as if asked for: waiting is the look's business.
	wish := Wish{Trigger: c.job.Trigger, Now: now}
	facts.PendingBranch = ""
	c.facts, c.plan = facts, PlanCompaction(facts, c.settings, c.record, wish)
	c.outcome = outcomeOf(facts, c.plan)
	switch c.plan.Verdict {
	case VerdictRun:
		return Finish{}, false, nil
	case VerdictRefuse:
		return Finish{State: Refused, Reason: c.plan.Reason, Outcome: c.outcome}, true, nil
	default:
		return Finish{State: NothingToDo, Reason: c.plan.Reason, Outcome: c.outcome}, true, nil
	}
}

// outcomeOf gives the figures of a table as planned: before and after are equal until something is replaced.
func outcomeOf(f Facts, p Plan) Outcome {
	o := Outcome{FilesSkipped: p.Skipped, OverlapBefore: p.Overlap, OverlapAfter: p.Overlap}
	for _, file := range f.Files {
		o.FilesBefore++
		o.RowsBefore += file.Rows
		o.BytesBefore += file.Bytes
		o.RowGroupsBefore += file.RowGroups
	}
	o.FilesAfter, o.RowsAfter, o.BytesAfter, o.RowGroupsAfter = o.FilesBefore, o.RowsBefore, o.BytesBefore, o.RowGroupsBefore
	return o
}

// rewrite writes the new files of every group. Nothing of it is visible yet.
func (c *compaction) rewrite(ctx context.Context) error {
	writer, err := layout.SettingsFromProperties(c.view.meta.Properties())
	if err != nil {
		return refusal{Reason{CodeSettings, fault.Message(err)}}
	}
	writer.FileBytes, writer.RowGroupRows = c.plan.Target.TargetBytes, c.plan.Target.RowGroupRows
	writer.CreatedBy = "catalogd"
	files, err := c.findFiles(ctx)
	if err != nil {
		return err
	}
	total, done := int64(0), int64(0)
	for _, g := range c.plan.Groups {
		total += max(g.Bytes, 1)
	}
	for _, g := range c.plan.Groups {
		r := &replacement{group: g, rows: g.Rows}
		for _, p := range g.Files {
			r.old = append(r.old, files[p])
		}
		share := func(part float64) float64 { return (float64(done) + part*float64(max(g.Bytes, 1))) / float64(total) }
		err := c.rewriteGroup(ctx, r, writer, share)
		switch {
		case fault.Is(err, fault.Unsupported) || fault.Is(err, fault.Validation):
			c.skip(r, err)
		case err != nil:
			return fmt.Errorf("rewrite %d files of %s: %w", len(g.Files), c.ref.Ident, err)
		default:
			c.replacements = append(c.replacements, r)
		}
		done += max(g.Bytes, 1)
	}
	if len(c.replacements) == 0 {
		return refusal{Reason{CodeUnsupported, c.skipped}}
	}
	crash.Point("compact-data-written")
	return nil
}

// skip leaves a group as it is because its files hold something that the engine does not rewrite; the other groups
// need not suffer for it.
func (c *compaction) skip(r *replacement, err error) {
	c.skipped = fault.Message(err)
	c.plan.Skipped[CodeUnsupported] += int64(len(r.old))
}

// rewriteGroup runs the layout engine on one group and checks what it did.
func (c *compaction) rewriteGroup(ctx context.Context, r *replacement, w layout.WriterSettings, share func(float64) float64) error {
	job := layout.Job{
		Schema: c.view.meta.CurrentSchema(), Curve: zorder.Curve(c.plan.Target.Curve), Writer: w,
		MemoryBytes: c.env.memory, Workers: c.env.workers, SpillDir: c.env.spillDir,
		RowLineage: c.view.meta.Version() >= rowLineageVersion,
		Create:     func(ctx context.Context, _ int) (layout.Output, error) { return c.createFile(ctx, r) },
		Remove:     func(_ context.Context, p string) { _ = c.view.files.Remove(p) },
		Progress: func(p layout.Phase, fraction float64) {
			c.showSometimes(ctx, share(phaseShare(p, fraction)))
		},
	}
	for _, col := range c.plan.Target.Columns {
		job.Columns = append(job.Columns, col.FieldID)
	}
	job.InPartition = valuesOf(r.old[0].partition, c.facts.Spec)
	for _, d := range r.old {
		job.Inputs = append(job.Inputs, layout.Input{
			Path: d.path, Size: d.size, FirstRowID: d.firstRowID, DataSequenceNumber: d.sequence,
			Open: func(context.Context) (layout.File, error) { return c.view.files.Open(d.path) },
		})
	}
	result, err := c.env.cluster(ctx, job)
	if err != nil {
		return err
	}
	r.result = result
	if err := verify(r); err != nil {
		return err
	}
	tuple := r.old[0].partition
	for _, f := range result.Files {
		d, err := dataFileOf(f, c.facts.Spec, tuple, len(c.plan.Target.Columns) > 0)
		if err != nil {
			return fmt.Errorf("describe %s: %w", f.Path, err)
		}
		r.added = append(r.added, d)
	}
	return nil
}

// valuesOf gives the ids of the fields whose values a partition's tuple has as they are, nulls left out.
func valuesOf(values map[int]any, spec iceberg.PartitionSpec) []int {
	var ids []int
	for _, f := range spec.Fields() {
		if _, plain := f.Transform.(iceberg.IdentityTransform); plain && values[f.FieldID] != nil {
			ids = append(ids, f.SourceIDs...)
		}
	}
	return ids
}

// verify holds a rewrite's books: rows by the manifest, read, written and recorded are one number, and the checksums
// of what was read and what was written are equal.
func verify(r *replacement) error {
	recorded := int64(0)
	for _, f := range r.result.Files {
		recorded += f.RecordCount
	}
	rows := r.result
	if rows.RowsIn != r.rows || rows.RowsOut != r.rows || recorded != r.rows {
		return refusal{Reason{CodeUnverified, fmt.Sprintf(
			"the manifests say %d rows, %d were read, %d written and %d recorded: nothing was committed", r.rows, rows.RowsIn, rows.RowsOut, recorded)}}
	}
	if rows.ChecksumIn != rows.ChecksumOut {
		return refusal{Reason{CodeUnverified, "the rows written have another checksum than the rows read: nothing was committed"}}
	}
	return nil
}

// dataFileOf describes a written file for a manifest.
func dataFileOf(f layout.OutputFile, spec iceberg.PartitionSpec, tuple map[int]any, clustered bool) (iceberg.DataFile, error) {
	b, err := iceberg.NewDataFileBuilder(spec, iceberg.EntryContentData, f.Path, iceberg.ParquetFile, tuple, nil, nil,
		f.RecordCount, f.SizeBytes)
	if err != nil {
		return nil, err
	}
	b.ColumnSizes(f.ColumnSizes).ValueCounts(f.ValueCounts).NullValueCounts(f.NullValueCounts).NaNValueCounts(f.NaNValueCounts).
		LowerBoundValues(f.LowerBounds).UpperBoundValues(f.UpperBounds).SplitOffsets(f.SplitOffsets)
	if clustered {
		b.SortOrderID(0) // a curve is no order that a reader may rely on
	}
	return b.Build(), nil
}

// phaseShare weighs the engine's phases by the time they take.
func phaseShare(p layout.Phase, fraction float64) float64 {
	switch p {
	case layout.PhaseSample:
		return 0.05 * fraction
	case layout.PhaseRoute:
		return 0.05 + 0.35*fraction
	default:
		return 0.4 + 0.6*fraction
	}
}

// show keeps phase, progress and figures.
func (c *compaction) show(ctx context.Context, phase string, fraction float64) error {
	err := c.env.store.SaveProgress(ctx, c.lease, Progress{Phase: phase, Fraction: fraction, Outcome: c.outcome})
	if err != nil {
		return fmt.Errorf("save progress: %w", err)
	}
	return nil
}

// progressEvery spaces the progress that goes to the database.
const progressEvery = time.Second

// showSometimes is show for callers that come often, from any goroutine. Its errors are nobody's: a lost lease shows
// at the next step that must not be done without it.
func (c *compaction) showSometimes(ctx context.Context, fraction float64) {
	now := c.env.now().UnixNano()
	last := c.shown.Load()
	if now-last < int64(progressEvery) || !c.shown.CompareAndSwap(last, now) {
		return
	}
	_ = c.show(ctx, phaseRewriting, fraction)
}
