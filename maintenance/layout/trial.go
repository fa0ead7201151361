package layout

import (
	"context"
	"slices"

	"catalogd/maintenance/zorder"
)

// Limits of trials. A dictionary must win clearly: how well its indices compress hangs on how many bits they happen to
// have in a row group, while bare values compress alike everywhere.
const (
	trialRowsMax         = 262_144 // of a trial row group
	trialGroups          = 2
	dictionaryTrialShare = 0.85
)

// discard is an output that keeps nothing.
type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) Path() string                { return "trial" }
func (discard) Close() error                { return nil }
func (discard) Abort()                      {}

// trialSizes are the bytes of each top-level column over all trial row groups.
type trialSizes []int64

func (s trialSizes) total() int64 {
	var sum int64
	for _, n := range s {
		sum += n
	}
	return sum
}

// try encodes a few row groups in several ways, to nowhere, and keeps the smallest way for all: the order of rows inside
// row groups, and which columns do without a dictionary. The unit that it loads for this stays loaded.
func (w *fileWorker) try(ctx context.Context, u unit) error {
	orders := w.orders
	if err := w.prepare(&w.seats[0], u, orders[0]); err != nil {
		return err
	}
	l := w.seats[0].loaded
	groups := trialRowsOf(l.groups)
	var best trialSizes
	for i, order := range orders {
		sizes, plain, err := w.tryOrder(ctx, l, groups, order)
		if err != nil {
			return err
		}
		if i == 0 || sizes.total() < best.total() {
			best, w.unitWriter.order = sizes, order
			copy(w.encoder.plainColumns, plain)
		}
	}
	rows := 0
	for _, group := range groups {
		rows += len(group)
	}
	w.rowBytes = float64(best.total()) / float64(max(rows, 1))
	if !slices.Equal(w.order, orders[0]) {
		for _, rows := range l.groups {
			l.sortRows(&w.seats[0].sorter, rows, w.order)
		}
	}
	return nil
}

// trialRowsOf picks row groups from both ends of a unit.
func trialRowsOf(groups [][]uint32) [][]uint32 {
	var picked [][]uint32
	for i := range min(trialGroups, len(groups)) {
		group := groups[i*(len(groups)-1)/max(trialGroups-1, 1)]
		picked = append(picked, slices.Clone(group[:min(len(group), trialRowsMax)]))
	}
	return picked
}

// tryOrder gives the sizes of columns with rows in an order, each column in its smaller form, and which are the smaller
// ones without a dictionary.
func (w *fileWorker) tryOrder(ctx context.Context, l *loaded, groups [][]uint32, order []int) (trialSizes, []bool, error) {
	all := &encoder{p: w.p, s: w.encoder.s, codec: w.encoder.codec, plainColumns: make([]bool, len(w.p.columns))}
	bare := *all
	bare.p = &plan{json: w.p.json}
	var candidates []int
	for c, column := range w.p.columns {
		if w.dicts[c] == nil && column.class != classNested && column.class != classBit {
			candidates = append(candidates, c)
			bare.p.columns = append(bare.p.columns, column)
		}
	}
	bare.p.schema = bare.p.arrowSchema()
	bare.plainColumns = slices.Repeat([]bool{true}, len(candidates))
	sizes, plain := make(trialSizes, len(w.p.columns)), make([]bool, len(w.p.columns))
	without := make(trialSizes, len(w.p.columns))
	for _, rows := range groups {
		l.sortRows(&w.seats[0].sorter, rows, order)
		if err := w.trial(ctx, all, l, rows, sizes, nil); err != nil {
			return nil, nil, err
		}
		if len(candidates) > 0 {
			if err := w.trial(ctx, &bare, l, rows, without, candidates); err != nil {
				return nil, nil, err
			}
		}
	}
	for _, c := range candidates {
		if float64(sizes[c]) > dictionaryTrialShare*float64(without[c]) {
			sizes[c], plain[c] = without[c], true
		}
	}
	return sizes, plain, nil
}

// trial encodes one row group and adds the columns' sizes. columns are the plan's columns that the encoder's own are; nil:
// all.
func (w *fileWorker) trial(ctx context.Context, e *encoder, l *loaded, rows []uint32, sizes trialSizes, columns []int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	f, err := e.open(discard{})
	if err != nil {
		return err
	}
	of := func(c int) int {
		if columns == nil {
			return c
		}
		return columns[c]
	}
	dicts := make([]*sealed, len(e.p.columns))
	for c := range dicts {
		dicts[c] = w.dicts[of(c)]
	}
	if err := f.writeRowGroup(len(rows), dicts, func(c int) (*vec, error) { return w.gather(l.columns[of(c)], rows) }); err != nil {
		return err
	}
	file, err := f.close()
	if err != nil {
		return err
	}
	for c := range e.p.columns {
		for _, leaf := range e.p.columns[c].leaves {
			sizes[of(c)] += file.ColumnSizes[leaf.id]
		}
	}
	return nil
}

// orders gives the orders of clustering columns inside a row group to choose from: few values first, which brings long
// runs to those columns, or the column with most values (time, as a rule) first, which brings it into order.
func (s *sample) orders(curve zorder.Curve) [][]int {
	distinct := s.distinct()
	few := make([]int, len(distinct))
	for i := range few {
		few[i] = i
	}
	if curve == zorder.Linear {
		return [][]int{few}
	}
	slices.SortStableFunc(few, func(a, b int) int { return distinct[a] - distinct[b] })
	if len(few) < 2 {
		return [][]int{few}
	}
	last := len(few) - 1
	return [][]int{few, append([]int{few[last]}, few[:last]...)}
}
