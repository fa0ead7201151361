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

// loaded is a unit in memory, cut and sorted.
type loaded struct {
	p       *plan
	dicts   []*sealed // by column; nil: the column is carried as bare values
	former  []*sealed // dictionaries of columns that had too many values in the end
	columns []*vec
	keys    []uint64
	groups  [][]uint32 // rows of each row group, in the order in which they are written
	ords    [][]uint64 // by clustering column
}

// load reads a unit back and joins its segments, column by column.
func (l *loaded) load(s *spill, u unit, scratch *[]byte) error {
	n := int(u.rows)
	l.keys = make([]uint64, 0, n)
	l.columns = make([]*vec, len(l.p.columns))
	for c := range l.p.columns {
		column := &l.p.columns[c]
		l.columns[c] = newVec(column.class, column.width)
		if l.dicts[c] != nil {
			l.columns[c] = newVec(class2, 0)
		}
		l.columns[c].reserve(n)
	}
	for _, list := range u.lists {
		for _, seg := range s.segments[list] {
			vecs, err := s.load(seg, scratch)
			if err != nil {
				return err
			}
			l.join(vecs)
		}
	}
	if len(l.keys) != n {
		return fmt.Errorf("spill gave back %d rows of %d", len(l.keys), n)
	}
	return joinNested(l.columns)
}

func (l *loaded) join(vecs []*vec) {
	key := vecs[0]
	if key.class == class8 {
		l.keys = append(l.keys, key.w8...)
	} else {
		for _, k := range key.w4 {
			l.keys = append(l.keys, uint64(k))
		}
	}
	for c, v := range vecs[1:] {
		if into := l.columns[c]; v.class == class2 && into.class != class2 {
			l.former[c].decode(into, v)
		} else {
			into.appendAll(v)
		}
	}
	releaseVecs(vecs)
}

// arrange cuts the unit into row groups and sorts each of them by the clustering columns in the given order.
func (l *loaded) arrange(s *sorter, groups int, order []int) error {
	l.groups = partition(l.keys, cutKeys(s.sortedKeys(l.keys), groups))
	l.keys = nil
	for i := range l.p.cluster {
		c := &l.p.cluster[i]
		v, err := l.p.clusterVec(c, l.columns)
		if err != nil {
			return err
		}
		l.ords = append(l.ords, l.p.ordinals(nil, c, v, l.dicts[c.top]))
	}
	for _, rows := range l.groups {
		l.sortRows(s, rows, order)
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
	rows := make([]uint32, len(l.keys))
	for i := range rows {
		rows[i] = uint32(i)
	}
	for i := range l.p.cluster {
		c := &l.p.cluster[i]
		v, err := l.p.clusterVec(c, l.columns)
		if err != nil {
			return err
		}
		l.ords = append(l.ords, l.p.ordinals(nil, c, v, l.dicts[c.top]))
	}
	l.sortRows(s, rows, order)
	first := make([]uint64, len(rows))
	for j, row := range rows {
		first[j] = l.ords[0][row]
	}
	l.keys = nil
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

func (l *loaded) release() { releaseVecs(l.columns) }

func (v *vec) reserve(n int) {
	switch v.class {
	case class8:
		v.w8 = make([]uint64, 0, n)
	case class4:
		v.w4 = make([]uint32, 0, n)
	case class2:
		v.w2 = make([]uint16, 0, n)
	case classFixed:
		v.raw = make([]byte, 0, n*v.width)
	case classBytes:
		v.offs = append(make([]int32, 0, n+1), 0)
	}
}
