package layout

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"sync"
	"sync/atomic"

	"catalogd/internal/fault"
	"catalogd/maintenance/zorder"
)

// Cluster rewrites the job's inputs into clustered outputs. Without clustering columns it packs rows as they come. On error
// nothing is left: outputs are aborted, or removed when they were closed already, and the spill folder is gone. Refusals
// are of kind fault.Unsupported (an input can't be mapped exactly) or fault.Validation (a column can't be clustered by).
func Cluster(ctx context.Context, job Job) (Result, error) {
	if len(job.Columns) == 0 {
		return Copy(ctx, job)
	}
	r, err := newRun(ctx, job)
	if err != nil {
		return Result{}, err
	}
	return r.finish(ctx, r.cluster(ctx))
}

// run is a job under way.
type run struct {
	job     Job
	p       *plan
	sources []*source
	tasks   []task
	rows    int64
	workers int
	memory  int64
	curve   zorder.Curve

	probe   probe
	sample  *sample // until the first pass is done
	orders  [][]int // of rows inside row groups, to choose from
	bounds  *zorder.Boundaries
	dicts   []*dictionary
	routed  routed
	spill   *spill
	buckets []unit
	outputs *outputs
	result  Result
	telling sync.Mutex // one call of Progress at a time
}

func newRun(ctx context.Context, job Job) (*run, error) {
	r := &run{job: job, curve: job.Curve, workers: job.Workers, memory: job.MemoryBytes}
	if r.curve == "" {
		r.curve = zorder.Hilbert
	}
	if r.workers <= 0 {
		r.workers = min(runtime.GOMAXPROCS(0), WorkersMax)
	}
	r.workers = min(r.workers, WorkersMax)
	if r.memory <= 0 {
		r.memory = MemoryBytesDefault
	}
	r.memory = max(r.memory, memoryBytesMin)
	var err error
	if r.p, err = newPlan(job.Schema, job.Columns, job.RowLineage); err != nil {
		return nil, err
	}
	r.p.markInPartition(job.InPartition)
	if r.sources, err = openSources(ctx, r.p, job.Inputs); err != nil {
		return nil, err
	}
	r.tasks, r.rows = tasksOf(r.sources)
	if err := checkRows(r.rows); err != nil {
		return nil, err
	}
	for _, s := range r.sources {
		r.result.BytesIn += s.Size
		r.result.RowGroupsIn += len(s.rowGroups)
	}
	r.outputs = &outputs{job: job}
	return r, nil
}

func (r *run) progress(phase Phase, fraction float64) {
	if r.job.Progress != nil {
		r.telling.Lock()
		defer r.telling.Unlock()
		r.job.Progress(phase, math.Min(fraction, 1))
	}
}

func (r *run) cluster(ctx context.Context) error {
	var err error
	if r.probe, err = probeRows(ctx, r.p, r.tasks); err != nil {
		return err
	}
	if err := r.takeSample(ctx); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(r.job.SpillDir, "cluster-")
	if err != nil {
		return fmt.Errorf("create spill folder: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := r.route(ctx, dir); err != nil {
		return err
	}
	defer r.spill.close()
	return r.write(ctx)
}

// takeSample reads the clustering columns and settles the boundaries: given ones when they fit, new ones otherwise.
func (r *run) takeSample(ctx context.Context) error {
	r.progress(PhaseSample, 0)
	bins := r.job.Bins
	if bins <= 0 {
		bins = zorder.BinsDefault
	}
	wanted := int64(max(2*zorder.SampleRowsMin, 2*zorder.SampleRowsPerBin*bins))
	read := int64(0)
	var err error
	r.sample, err = sampleRows(ctx, r.p, r.tasks, r.workers, gapFor(r.rows, wanted), func(rows int64) {
		read += rows
		r.progress(PhaseSample, float64(read)/float64(max(r.rows, 1)))
	})
	if err != nil {
		return err
	}
	if given := r.job.Boundaries; given != nil {
		ids, types := make([]int, 0), make([]zorder.Type, 0)
		for _, c := range r.p.cluster {
			ids, types = append(ids, c.id), append(types, c.t)
		}
		if !given.Fits(r.curve, ids, types) {
			return fault.New(fault.Validation, "the layout version was made for other clustering columns, types or curve")
		}
		r.bounds = given
		r.result.EdgeShare = r.sample.edgeShare(r.p, given)
	} else {
		r.bounds = r.sample.boundaries(r.p, r.curve, bins)
	}
	r.result.Boundaries = r.bounds
	return nil
}

// route is the first pass.
func (r *run) route(ctx context.Context, dir string) error {
	r.makeDictionaries()
	keys := r.sample.keys(r.p, r.bounds)
	r.orders, r.sample = r.sample.orders(r.curve), nil
	borders := chooseBorders(keys, r.bucketsWanted())
	router := &router{p: r.p, bounds: r.bounds, dicts: r.dicts, borders: borders, workers: r.workers,
		index:   newBucketIndex(borders, r.bounds.KeyBits()),
		spill:   newSpill(dir, (len(borders)+1)*r.workers, r.memory/heldShare),
		flushAt: max(r.memory/buffersShare/int64((len(borders)+1)*r.workers), flushBytesMin),
		progress: func(rows int64) {
			r.progress(PhaseRoute, float64(rows)/float64(max(r.rows, 1)))
		}}
	r.spill = router.spill
	routed, err := router.run(ctx, r.tasks)
	if err != nil {
		return errors.Join(err, r.closeSpill())
	}
	r.routed = routed
	r.result.RowsIn, r.result.ChecksumIn = routed.rows, routed.checksum
	if routed.rows != r.rows {
		return errors.Join(fmt.Errorf("inputs gave %d rows, their footers say %d", routed.rows, r.rows), r.closeSpill())
	}
	for b := range len(borders) + 1 {
		var lists []int
		for w := range r.workers {
			lists = append(lists, b*r.workers+w)
		}
		r.buckets = append(r.buckets, r.spill.unitOf(lists...))
	}
	if err := r.splitLarge(ctx); err != nil {
		return errors.Join(err, r.closeSpill())
	}
	r.result.SpilledBytes = r.spill.written.Load()
	return nil
}

func (r *run) makeDictionaries() {
	r.dicts = make([]*dictionary, len(r.p.columns))
	for c, coded := range r.probe.coded {
		if coded {
			r.dicts[c] = newDictionary(r.p.columns[c].class)
		}
	}
}

func (r *run) closeSpill() error {
	r.spill.close()
	return nil
}

// What a job's memory is for: rows held without a file, buffers of buckets, and units under way.
const (
	heldShare     = 4 // a fourth
	buffersShare  = 6
	unitShare     = 3 // of a worker's part
	flushBytesMin = 32 << 10
	// sortBytesRow is the scratch of a sort for each row: two words, two row numbers and a group.
	sortBytesRow = 8 + 8 + 4 + 4 + 2
)

// unitRowBytes gives the memory that a row of a unit takes: its values, key and places, and its part of the scratch.
func (r *run) unitRowBytes() float64 {
	return r.probe.rowBytes + float64(8*(1+len(r.p.cluster))) + sortBytesRow
}

// bucketsWanted gives the number of buckets: few enough to have buffers for all, many enough for one to fit a worker's
// memory, and such that each makes a whole number of row groups.
func (r *run) bucketsWanted() int {
	target := float64(r.memory) / float64(unitShare*r.workers)
	needed := int(max(math.Ceil(r.unitRowBytes()*float64(r.rows)/target), 1))
	groups := r.rowGroups()
	each := max(groups/needed, 1)
	most := int(r.memory / buffersShare / int64(r.workers) / flushBytesMin)
	return min((groups+each-1)/each, most, bucketsMax)
}

// finish checks the result, or removes what a failed job has written.
func (r *run) finish(ctx context.Context, err error) (Result, error) {
	res := &r.result
	if err == nil && res.RowsOut != res.RowsIn {
		err = fmt.Errorf("%d rows were read and %d written", res.RowsIn, res.RowsOut)
	}
	if err == nil && res.ChecksumOut != res.ChecksumIn {
		err = fmt.Errorf("the rows' checksum was %s on the way in and is %s on the way out", res.ChecksumIn, res.ChecksumOut)
	}
	if err != nil {
		r.outputs.removeAll(context.WithoutCancel(ctx))
		return Result{}, err
	}
	var after []Box
	for _, f := range res.Files {
		after = append(after, f.Boxes...)
		res.BytesOut += f.SizeBytes
	}
	res.RowGroupsOut = len(after)
	if len(r.p.cluster) > 0 {
		res.DepthBefore, res.DepthAfter = Depth(boxesOf(r.sources)), Depth(after)
	}
	return *res, nil
}

// outputs counts and remembers what was created.
type outputs struct {
	job    Job
	number atomic.Int64
	paths  pathList
}
