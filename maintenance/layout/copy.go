package layout

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/parquet/file"
	"golang.org/x/sync/errgroup"
)

// Copy decodes the inputs and encodes them with the same writer settings in the order of the inputs. It is what Cluster's
// speed and size are compared with, and how files are packed when no columns are to be clustered by.
func Copy(ctx context.Context, job Job) (Result, error) {
	r, err := newRun(ctx, job)
	if err != nil {
		return Result{}, err
	}
	return r.finish(ctx, r.copy(ctx))
}

func (r *run) copy(ctx context.Context) error {
	if r.rows == 0 {
		return nil
	}
	var err error
	if r.probe, err = probeRows(ctx, r.p, r.tasks); err != nil {
		return err
	}
	r.makeDictionaries()
	encoder, err := newEncoder(r.p, r.job.Writer)
	if err != nil {
		return err
	}
	copy(encoder.plainColumns, r.probe.unique)
	rowBytes := float64(r.result.BytesIn) / float64(r.rows)
	parts := splitTasks(r.tasks, filesWanted(r.job.Writer, rowBytes*float64(r.rows)))
	groupRows := (r.rows + int64(r.rowGroups()) - 1) / int64(r.rowGroups())

	files := make([]OutputFile, len(parts))
	workers := make([]*copyWorker, len(parts))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(r.workers)
	var done atomic.Int64
	for i, part := range parts {
		group.Go(guarded(func() error {
			w := &copyWorker{run: r, encoder: encoder, groupRows: int(groupRows), done: &done}
			workers[i] = w
			var err error
			files[i], err = w.copyFile(ctx, part)
			return err
		}))
	}
	if err := group.Wait(); err != nil {
		return err
	}
	r.result.Files = files
	for i, w := range workers {
		r.result.RowsIn += w.rows
		r.result.RowsOut += files[i].RecordCount
		r.result.ChecksumIn.add(w.in)
		r.result.ChecksumOut.add(w.out)
	}
	return nil
}

// copyWorker writes one file out of a contiguous part of the inputs.
type copyWorker struct {
	*run
	encoder   *encoder
	groupRows int
	done      *atomic.Int64

	f       *fileWriter
	coders  []*coder
	codes   []*vec
	dicts   []*sealed
	pending []*vec // rows of the open row group
	sel     []uint32

	hasher  rowHasher
	rows    int64
	in, out Checksum
}

func (w *copyWorker) copyFile(ctx context.Context, tasks []task) (OutputFile, error) {
	out, err := w.outputs.create(ctx)
	if err != nil {
		return OutputFile{}, err
	}
	file, err := w.fill(ctx, out, tasks)
	if err != nil {
		out.Abort()
		return OutputFile{}, fmt.Errorf("data file %s: %w", out.Path(), err)
	}
	w.outputs.closedFile(file.Path)
	return file, nil
}

func (w *copyWorker) fill(ctx context.Context, out Output, tasks []task) (OutputFile, error) {
	var err error
	if w.f, err = w.encoder.open(out); err != nil {
		return OutputFile{}, err
	}
	n := len(w.p.columns)
	w.coders, w.codes, w.dicts = make([]*coder, n), make([]*vec, n), make([]*sealed, n)
	for c, d := range w.run.dicts {
		if d != nil {
			w.coders[c], w.codes[c] = newCoder(d), newVec(class2, 0)
		}
	}
	for _, t := range tasks {
		err := t.source.with(ctx, func(r *file.Reader) error {
			request := readRequest{rowGroup: t.rowGroup, codes: wantCodes(w.run.dicts)}
			return t.source.read(ctx, r, w.p, request, w.take)
		})
		if err != nil {
			return OutputFile{}, err
		}
	}
	if err := w.writeGroup(); err != nil {
		return OutputFile{}, err
	}
	return w.f.close()
}

// take adds a batch to the open row group, and writes that whenever it is full.
func (w *copyWorker) take(b *batch) error {
	w.hasher.start(b.rows)
	for c, v := range b.columns {
		w.hasher.column(w.p.columns[c].id, v)
	}
	w.hasher.finish(&w.in)
	w.rows += int64(b.rows)
	for c := range b.columns {
		codeColumn(b, c, w.coders[c], w.codes[c])
	}
	w.sel = grow(w.sel[:0], b.rows)
	for i := range w.sel {
		w.sel[i] = uint32(i)
	}
	for start := 0; start < b.rows; {
		if w.pending != nil && (w.pending[0].n >= w.groupRows || !sameClasses(w.pending, b.columns)) {
			if err := w.writeGroup(); err != nil {
				return err
			}
			if !sameClasses(w.pending, b.columns) {
				w.pending = nil
			}
		}
		if w.pending == nil {
			for _, v := range b.columns {
				w.pending = append(w.pending, newVec(v.class, v.width))
			}
		}
		end := min(b.rows, start+w.groupRows-w.pending[0].n)
		for c, v := range b.columns {
			if err := appendRows(w.pending[c], v, w.sel[start:end]); err != nil {
				return err
			}
		}
		start = end
	}
	w.progress(PhaseWrite, float64(w.done.Add(int64(b.rows)))/float64(w.run.rows))
	return nil
}

// appendRows adds selected rows of a batch's column, of whatever class.
func appendRows(into, v *vec, sel []uint32) error {
	if v.class != classNested {
		into.appendTake(v, sel)
		return nil
	}
	taken, err := takeNested(v.arrs[0], sel)
	if err != nil {
		return err
	}
	into.arrs = append(into.arrs, taken)
	into.n += len(sel)
	return nil
}

func sameClasses(a, b []*vec) bool {
	for c := range a {
		if a[c].class != b[c].class {
			return false
		}
	}
	return true
}

func (w *copyWorker) writeGroup() error {
	if w.pending == nil || w.pending[0].n == 0 {
		return nil
	}
	if err := joinNested(w.pending); err != nil {
		return err
	}
	rows := w.pending[0].n
	w.hasher.start(rows)
	for c, d := range w.run.dicts {
		if w.pending[c].class == class2 && (w.dicts[c] == nil || len(w.dicts[c].order) < d.size()) {
			w.dicts[c] = d.seal(w.p.columns[c].field.Type)
		}
	}
	err := w.f.writeRowGroup(rows, w.dicts, func(c int) (*vec, error) {
		v := w.pending[c]
		w.hasher.plainOrCodes(w.p.columns[c].id, v, w.dicts[c])
		return v, nil
	})
	w.hasher.finish(&w.out)
	for _, v := range w.pending {
		v.reset()
	}
	return err
}
