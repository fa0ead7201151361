package layout

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"golang.org/x/sync/errgroup"
)

// pathList remembers closed outputs.
type pathList struct {
	mu    sync.Mutex
	paths []string
}

func (o *outputs) create(ctx context.Context) (Output, error) {
	n := int(o.number.Add(1) - 1)
	out, err := o.job.Create(ctx, n)
	if err != nil {
		return nil, fmt.Errorf("create data file %d: %w", n, err)
	}
	return out, nil
}

func (o *outputs) closedFile(path string) {
	o.paths.mu.Lock()
	o.paths.paths = append(o.paths.paths, path)
	o.paths.mu.Unlock()
}

func (o *outputs) removeAll(ctx context.Context) {
	if o.job.Remove == nil {
		return
	}
	for _, path := range o.paths.paths {
		o.job.Remove(ctx, path)
	}
}

// write is the second pass.
func (r *run) write(ctx context.Context) error {
	r.progress(PhaseWrite, 0)
	if r.rows == 0 {
		return nil
	}
	w := &unitWriter{run: r, dicts: make([]*sealed, len(r.p.columns)), former: make([]*sealed, len(r.p.columns))}
	for c, d := range r.dicts {
		if d == nil {
			continue
		}
		w.former[c] = d.seal(r.p.columns[c].field.Type)
		if !d.full.Load() {
			w.dicts[c] = w.former[c]
		}
	}
	units := planUnits(r.buckets, r.rowGroups())
	var err error
	if w.encoder, err = newEncoder(r.p, r.job.Writer); err != nil {
		return err
	}
	first := &fileWorker{unitWriter: w}
	if err := first.try(ctx, units[0]); err != nil {
		return err
	}
	plans := w.planFiles(units)
	plans[0].loaded = true
	return w.writeFiles(ctx, plans, first)
}

// rowGroups gives the number of row groups of the whole job.
func (r *run) rowGroups() int {
	s := r.job.Writer
	rows := s.RowGroupRows
	if rows <= 0 {
		rows = min(max((r.rows+rowGroupsWanted-1)/rowGroupsWanted, rowGroupRowsMin), rowGroupRowsMax)
	}
	if encoded := float64(r.result.BytesIn) / float64(r.rows); encoded > 0 {
		rows = min(rows, int64(float64(orDefault(s.RowGroupBytes, rowGroupBytesDefault))/encoded))
	}
	rows = min(rows, int64(float64(r.memory)/float64(unitShare*r.workers)/r.unitRowBytes())) // a row group is sorted in memory
	rows = max(rows, 1)
	return int((r.rows + rows - 1) / rows)
}

// unitWriter writes units to files.
type unitWriter struct {
	*run
	dicts, former []*sealed
	encoder       *encoder
	order         []int   // of the clustering columns inside a row group
	rowBytes      float64 // of an encoded row, by the trial
	written       atomic.Int64
}

// filePlan is the units of one output.
type filePlan struct {
	units  []unit
	loaded bool // the first worker holds units[0] already
}

// planFiles deals units out to files of about equal size.
func (w *unitWriter) planFiles(units []unit) []filePlan {
	files := filesWanted(w.job.Writer, w.rowBytes*float64(w.rows))
	groups := 0
	for _, u := range units {
		groups += u.groups
	}
	var plans []filePlan
	done := 0
	for _, u := range units {
		if len(plans) == 0 || done*files >= groups*len(plans) {
			plans = append(plans, filePlan{})
		}
		last := &plans[len(plans)-1]
		last.units = append(last.units, u)
		done += u.groups
	}
	return plans
}

// filesWanted gives the number of output files for so many bytes: several, so that files prune, but none so small that
// opening it costs more than skipping it gains.
func filesWanted(s WriterSettings, expected float64) int {
	target := orDefault(s.FileBytes, fileBytesDefault)
	if expected >= 2*fileBytesMin {
		target = min(max(int64(expected)/filesPlanned, fileBytesMin), target)
	}
	return int(max((int64(expected)+target-1)/target, 1))
}

func (w *unitWriter) writeFiles(ctx context.Context, plans []filePlan, first *fileWorker) error {
	files := make([]OutputFile, len(plans))
	sums := make([]Checksum, len(plans))
	group, ctx := errgroup.WithContext(ctx)
	first.ahead = len(plans) < w.workers
	var next atomic.Int64
	for i := range min(w.workers, len(plans)) {
		fw, n := first, 0
		if i > 0 {
			fw, n = &fileWorker{unitWriter: w}, int(next.Add(1))
		}
		group.Go(guarded(func() error {
			for ; n < len(plans); n = int(next.Add(1)) {
				file, err := fw.writeFile(ctx, plans[n])
				if err != nil {
					return err
				}
				files[n], sums[n] = file, fw.checksum
			}
			return nil
		}))
	}
	if err := group.Wait(); err != nil {
		return err
	}
	w.result.Files = files
	for i, f := range files {
		w.result.RowsOut += f.RecordCount
		w.result.ChecksumOut.add(sums[i])
	}
	return nil
}

// fileWorker writes one file at a time, with scratch of its own.
type fileWorker struct {
	*unitWriter
	seats    [2]seat // one unit is written while the next is made ready, if ahead
	ahead    bool
	gathered map[class]*vec
	hasher   rowHasher
	checksum Checksum
}

func (w *fileWorker) writeFile(ctx context.Context, plan filePlan) (OutputFile, error) {
	w.checksum = Checksum{}
	out, err := w.outputs.create(ctx)
	if err != nil {
		return OutputFile{}, err
	}
	file, err := w.fill(ctx, out, plan)
	if err != nil {
		out.Abort()
		return OutputFile{}, fmt.Errorf("data file %s: %w", out.Path(), err)
	}
	w.outputs.closedFile(file.Path)
	return file, nil
}

func (w *fileWorker) fill(ctx context.Context, out Output, plan filePlan) (OutputFile, error) {
	f, err := w.encoder.open(out)
	if err != nil {
		return OutputFile{}, err
	}
	ready := plan.loaded
	for i, u := range plan.units {
		at := w.seatOf(i)
		if !ready {
			if err := w.prepare(at, u, w.order); err != nil {
				return OutputFile{}, err
			}
		}
		var next chan error
		if w.ahead && i+1 < len(plan.units) {
			next = make(chan error, 1)
			ahead := guarded(func() error { return w.prepare(w.seatOf(i+1), plan.units[i+1], w.order) })
			go func() { next <- ahead() }()
		}
		err := w.writeGroups(ctx, f, at.loaded)
		if ready = next != nil; ready {
			err = errors.Join(err, <-next)
		}
		if err != nil {
			return OutputFile{}, err
		}
	}
	return f.close()
}

// seat is memory for one unit and its sort.
type seat struct {
	loaded  *loaded
	sorter  sorter
	scratch []byte
}

func (w *fileWorker) seatOf(unit int) *seat {
	if w.ahead {
		return &w.seats[unit%2]
	}
	return &w.seats[0]
}

// prepare loads a unit, cuts it and sorts its row groups.
func (w *fileWorker) prepare(at *seat, u unit, order []int) error {
	if at.loaded == nil {
		at.loaded = &loaded{p: w.p, dicts: w.dicts, former: w.former}
	}
	if err := at.loaded.load(w.spill, u, &at.scratch); err != nil {
		return err
	}
	return at.loaded.sortFor(&at.sorter, w.curve, u.groups, order)
}

func (w *fileWorker) writeGroups(ctx context.Context, f *fileWriter, l *loaded) error {
	for _, rows := range l.groups {
		if err := ctx.Err(); err != nil {
			return err
		}
		if len(rows) == 0 {
			continue
		}
		if err := w.writeGroup(f, l, rows); err != nil {
			return err
		}
		w.progress(PhaseWrite, float64(w.written.Add(int64(len(rows))))/float64(w.rows))
	}
	return nil
}

// writeGroup gathers and writes the rows of one row group, a column at a time, hashing what goes out.
func (w *fileWorker) writeGroup(f *fileWriter, l *loaded, rows []uint32) error {
	w.hasher.start(len(rows))
	err := f.writeRowGroup(len(rows), w.dicts, func(c int) (*vec, error) {
		v, err := w.gather(l.columns[c], rows)
		if err != nil {
			return nil, err
		}
		w.hasher.plainOrCodes(w.p.columns[c].id, v, w.dicts[c])
		return v, nil
	})
	w.hasher.finish(&w.checksum)
	return err
}

// gather gives rows of a column, in memory that serves the next column of the class too.
func (w *fileWorker) gather(v *vec, rows []uint32) (*vec, error) {
	if w.gathered == nil {
		w.gathered = map[class]*vec{}
	}
	out := w.gathered[v.class]
	if out == nil {
		out = newVec(v.class, v.width)
		w.gathered[v.class] = out
	}
	out.width = v.width
	out.reset()
	out.reserve(len(rows))
	if v.class != classNested {
		out.appendTake(v, rows)
		return out, nil
	}
	taken, err := takeNested(v.arrs[0], rows)
	if err != nil {
		return nil, err
	}
	out.arrs, out.n = []arrow.Array{taken}, len(rows)
	return out, nil
}
