package layout

import (
	"context"
	"slices"
)

// trialRowsMax bounds the rows of a trial row group.
const trialRowsMax = 262_144

// discard is an output that keeps nothing.
type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) Path() string                { return "trial" }
func (discard) Close() error                { return nil }
func (discard) Abort()                      {}

// try encodes one row group in several ways, to nowhere, and keeps the smallest way for all: the order of rows inside row
// groups, and which columns do without a dictionary. It hands back the unit that it has loaded for this.
func (w *unitWriter) try(ctx context.Context, u unit) (*loaded, error) {
	fw := &fileWorker{unitWriter: w}
	l, err := fw.loadUnit(u)
	if err != nil {
		return nil, err
	}
	orders := w.orders()
	w.order = orders[0]
	if err := l.sortFor(&fw.sorter, w.curve, u.groups, w.order); err != nil {
		return nil, err
	}
	group := slices.Clone(l.groups[len(l.groups)/2])
	group = group[:min(len(group), trialRowsMax)]
	var best OutputFile
	for i, order := range orders {
		if i > 0 {
			l.sortRows(&fw.sorter, group, order)
		}
		file, err := fw.trial(ctx, l, group)
		if err != nil {
			return nil, err
		}
		if i == 0 || sizeOf(file) < sizeOf(best) {
			best, w.order = file, order
		}
	}
	if err := w.tryPlain(ctx, fw, l, group, best); err != nil {
		return nil, err
	}
	w.rowBytes = float64(sizeOf(best)) / float64(len(group))
	if !slices.Equal(w.order, orders[0]) {
		for _, rows := range l.groups {
			l.sortRows(&fw.sorter, rows, w.order)
		}
	}
	return l, nil
}

// tryPlain encodes columns of bare values once more without dictionaries.
func (w *unitWriter) tryPlain(ctx context.Context, fw *fileWorker, l *loaded, group []uint32, best OutputFile) error {
	candidates := false
	for c := range w.p.columns {
		column := &w.p.columns[c]
		if w.dicts[c] == nil && column.class != classNested && column.class != classBit {
			w.encoder.plainColumns[c] = true
			candidates = true
		}
	}
	if !candidates {
		return nil
	}
	l.sortRows(&fw.sorter, group, w.order)
	without, err := fw.trial(ctx, l, group)
	if err != nil {
		return err
	}
	for c := range w.p.columns {
		id := w.p.columns[c].id
		if w.encoder.plainColumns[c] && without.ColumnSizes[id] > best.ColumnSizes[id] {
			w.encoder.plainColumns[c] = false
		}
	}
	return nil
}

func sizeOf(f OutputFile) int64 {
	var size int64
	for _, n := range f.ColumnSizes {
		size += n
	}
	return size
}

func (w *fileWorker) trial(ctx context.Context, l *loaded, group []uint32) (OutputFile, error) {
	if err := ctx.Err(); err != nil {
		return OutputFile{}, err
	}
	f, err := w.encoder.open(discard{})
	if err != nil {
		return OutputFile{}, err
	}
	if err := w.writeGroup(f, l, group, false); err != nil {
		return OutputFile{}, err
	}
	return f.close()
}

// orders gives the orders of clustering columns inside a row group to choose from: few values first, which brings long
// runs to those columns, or the column with most values (time, as a rule) first, which brings it into order.
func (w *unitWriter) orders() [][]int {
	distinct := w.sample.distinct()
	few := make([]int, len(distinct))
	for i := range few {
		few[i] = i
	}
	slices.SortStableFunc(few, func(a, b int) int { return distinct[a] - distinct[b] })
	if len(few) < 2 || w.curve == "linear" {
		return [][]int{few}
	}
	last := len(few) - 1
	return [][]int{few, append([]int{few[last]}, few[:last]...)}
}
