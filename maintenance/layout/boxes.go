package layout

import (
	"bytes"
	"math/rand/v2"
	"slices"
)

// Box is what a row group's statistics say about the clustering columns: bounds in ordered bytes (zorder.Append...),
// null marker included, nulls first. A column without statistics has a nil Lo and Hi and covers everything.
type Box struct {
	Rows   int64
	Bytes  int64
	Lo, Hi [][]byte
}

// Range limits one column of a predicate: inclusive bounds in ordered bytes; nil is no bound.
type Range struct{ Lo, Hi []byte }

// Predicate limits each clustering column; a column beyond its length is free.
type Predicate []Range

// Touches tells whether a row group with the box may hold a row that the predicate wants.
func (b Box) Touches(p Predicate) bool {
	for i, r := range p {
		if b.Lo[i] == nil {
			continue
		}
		if r.Hi != nil && bytes.Compare(b.Lo[i], r.Hi) > 0 || r.Lo != nil && bytes.Compare(b.Hi[i], r.Lo) < 0 {
			return false
		}
	}
	return true
}

// Share gives the mean share of boxes that instances of a predicate touch, 0 to 1.
func Share(boxes []Box, instances []Predicate) float64 {
	if len(boxes) == 0 || len(instances) == 0 {
		return 0
	}
	touched := 0
	for _, p := range instances {
		for _, b := range boxes {
			if b.Touches(p) {
				touched++
			}
		}
	}
	return float64(touched) / float64(len(boxes)) / float64(len(instances))
}

// Points that Depth takes. More cost more; the mean is steady from a thousand on.
const depthPoints = 2000

// Depth gives the mean number of boxes that cover a point's box: for points drawn from the boxes by their rows, how
// many boxes must be read to find all rows at the point. 1 is perfect. It needs bounds alone, no rows: along each column
// a point is drawn evenly over the gaps that the bounds of all boxes leave inside its own box.
func Depth(boxes []Box) float64 {
	if len(boxes) < 2 || len(boxes[0].Lo) == 0 {
		return float64(min(len(boxes), 1))
	}
	grid := newGrid(boxes)
	total := int64(0)
	cumulated := make([]int64, len(boxes))
	for i, b := range boxes {
		total += max(b.Rows, 1)
		cumulated[i] = total
	}
	random := rand.New(rand.NewPCG(1, 2)) // the same points each time: before and after are compared
	covered := 0
	point := make([]int, len(grid.lo))
	for range depthPoints {
		at, _ := slices.BinarySearch(cumulated, random.Int64N(total)+1)
		for c := range point {
			point[c] = grid.lo[c][at]
			if gaps := (grid.hi[c][at] - grid.lo[c][at]) / 2; gaps > 0 {
				point[c] += 1 + 2*random.IntN(gaps)
			}
		}
		covered += grid.cover(point)
	}
	return float64(covered) / depthPoints
}

// grid holds boxes as integers: along each column, bounds are numbered in order, and the gap between two bounds has a
// number of its own.
type grid struct{ lo, hi [][]int } // by column, by box

func newGrid(boxes []Box) grid {
	d := len(boxes[0].Lo)
	g := grid{lo: make([][]int, d), hi: make([][]int, d)}
	for c := range d {
		bounds := make([][]byte, 0, 2*len(boxes))
		for _, b := range boxes {
			if b.Lo[c] != nil {
				bounds = append(bounds, b.Lo[c], b.Hi[c])
			}
		}
		slices.SortFunc(bounds, bytes.Compare)
		bounds = slices.CompactFunc(bounds, bytes.Equal)
		last := max(2*len(bounds)-2, 0)
		g.lo[c], g.hi[c] = make([]int, len(boxes)), make([]int, len(boxes))
		for i, b := range boxes {
			if b.Lo[c] == nil {
				g.hi[c][i] = last
				continue
			}
			lo, _ := slices.BinarySearchFunc(bounds, b.Lo[c], bytes.Compare)
			hi, _ := slices.BinarySearchFunc(bounds, b.Hi[c], bytes.Compare)
			g.lo[c][i], g.hi[c][i] = 2*lo, 2*hi
		}
	}
	return g
}

func (g grid) cover(point []int) int {
	n := 0
boxes:
	for i := range g.lo[0] {
		for c, at := range point {
			if at < g.lo[c][i] || at > g.hi[c][i] {
				continue boxes
			}
		}
		n++
	}
	return n
}
