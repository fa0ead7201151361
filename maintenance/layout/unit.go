package layout

import (
	"fmt"

	"catalogd/maintenance/zorder"
)

// unit is a contiguous range of keys that is loaded, sorted and cut at once: one bucket, or neighbours too small to fill
// a row group.
type unit struct {
	lists  []int // of the spill, in the order of keys
	rows   int64
	bytes  int64
	groups int // row groups to cut it into
}

// planUnits gives each bucket its number of row groups, so that all together come to `groups`, and joins buckets that
// would get none to their successor.
func planUnits(buckets []unit, groups int) []unit {
	var total int64
	for _, b := range buckets {
		total += b.rows
	}
	var out []unit
	var open unit
	done, given := int64(0), 0
	for i, b := range buckets {
		if b.rows == 0 {
			continue
		}
		done += b.rows
		open.lists = append(open.lists, b.lists...)
		open.rows += b.rows
		open.bytes += b.bytes
		upTo := int((done*int64(groups)*2 + total) / (2 * total)) // rounded
		if done == total {
			upTo = groups
		}
		_ = i
		if upTo > given {
			open.groups = upTo - given
			given = upTo
			out = append(out, open)
			open = unit{}
		}
	}
	if open.rows > 0 { // the last row group was given away already by rounding
		if len(out) == 0 {
			open.groups = 1
			return append(out, open)
		}
		last := &out[len(out)-1]
		last.lists = append(last.lists, open.lists...)
		last.rows += open.rows
		last.bytes += open.bytes
	}
	return out
}

// loaded is a unit in memory, cut and sorted. It is filled again and again, so that its memory serves all units.
type loaded struct {
	p       *plan
	dicts   []*sealed // by column; nil: the column is carried as bare values
	former  []*sealed // the same, and dictionaries of columns that had too many values in the end
	vecs    []*vec    // the key, then the columns
	columns []*vec
	groups  [][]uint32 // rows of each row group, in the order in which they are written
	ords    [][]uint64 // by clustering column
}

// load reads a unit back and joins its segments, column by column.
func (l *loaded) load(s *spill, u unit, scratch *[]byte) error {
	n := int(u.rows)
	if l.vecs == nil {
		l.vecs = []*vec{newVec(class8, 0)}
		for c := range l.p.columns {
			column := &l.p.columns[c]
			v := newVec(column.class, column.width)
			if l.dicts[c] != nil {
				v = newVec(class2, 0)
			}
			l.vecs = append(l.vecs, v)
		}
		l.columns = l.vecs[1:]
	}
	for _, v := range l.vecs {
		v.reset()
		v.reserve(n)
	}
	former := append([]*sealed{nil}, l.former...)
	for _, list := range u.lists {
		for _, seg := range s.segments[list] {
			if err := s.loadInto(l.vecs, seg, former, scratch); err != nil {
				return err
			}
		}
	}
	if l.vecs[0].n != n {
		return fmt.Errorf("spill gave back %d rows of %d", l.vecs[0].n, n)
	}
	return joinNested(l.columns)
}

func (l *loaded) keys() []uint64 { return l.vecs[0].w8 }

// arrange cuts the unit into row groups and sorts each of them by the clustering columns in the given order.
func (l *loaded) arrange(s *sorter, groups int, order []int) error {
	l.groups = s.partition(l.keys(), cutKeys(s.sortedKeys(l.keys()), groups))
	if err := l.number(); err != nil {
		return err
	}
	for _, rows := range l.groups {
		l.sortRows(s, rows, order)
	}
	return nil
}

// number gives each row its place in the order of each clustering column.
func (l *loaded) number() error {
	if l.ords == nil {
		l.ords = make([][]uint64, len(l.p.cluster))
	}
	for i := range l.p.cluster {
		c := &l.p.cluster[i]
		v, err := l.p.clusterVec(c, l.columns)
		if err != nil {
			return err
		}
		l.ords[i] = l.p.ordinals(l.ords[i], c, v, l.dicts[c.top])
	}
	return nil
}

// sortRows sorts the rows of one row group. Sorting inside a row group leaves its box as it is and gives columns their
// runs back.
func (l *loaded) sortRows(s *sorter, rows []uint32, order []int) {
	if l.inOrder(rows, order) {
		return
	}
	for i := len(order) - 1; i >= 0; i-- {
		s.byWords(rows, l.ords[order[i]])
	}
}

func (l *loaded) inOrder(rows []uint32, order []int) bool {
	for j := 1; j < len(rows); j++ {
		for _, c := range order {
			a, b := l.ords[c][rows[j-1]], l.ords[c][rows[j]]
			if a > b {
				return false
			}
			if a < b {
				break
			}
		}
	}
	return true
}

// linearSort sorts all rows exactly by the clustering columns in declared order and then cuts: for the linear curve, whose
// keys say nothing about order inside a bin.
func (l *loaded) linearSort(s *sorter, groups int) error {
	order := make([]int, len(l.p.cluster))
	for i := range order {
		order[i] = i
	}
	s.rows = grow(s.rows[:0], l.vecs[0].n)
	rows := s.rows
	for i := range rows {
		rows[i] = uint32(i)
	}
	if err := l.number(); err != nil {
		return err
	}
	l.sortRows(s, rows, order)
	first := grow(s.wordsOut[:0], len(rows))
	for j, row := range rows {
		first[j] = l.ords[0][row]
	}
	l.groups = nil
	start := 0
	for _, at := range cutPositions(first, groups) {
		l.groups = append(l.groups, rows[start:at])
		start = at
	}
	l.groups = append(l.groups, rows[start:])
	return nil
}

func (l *loaded) sortFor(s *sorter, curve zorder.Curve, groups int, order []int) error {
	if curve == zorder.Linear {
		return l.linearSort(s, groups)
	}
	return l.arrange(s, groups, order)
}

// reserve makes room for n values of an empty vec.
func (v *vec) reserve(n int) {
	switch v.class {
	case class8:
		v.w8 = room(v.w8, n)
	case class4:
		v.w4 = room(v.w4, n)
	case class2:
		v.w2 = room(v.w2, n)
	case classFixed:
		v.raw = room(v.raw, n*v.width)
	case classBytes:
		v.offs = append(room(v.offs, n+1), 0)
	}
}

func room[T any](s []T, n int) []T {
	if cap(s) >= n {
		return s[:0]
	}
	return make([]T, 0, n)
}
