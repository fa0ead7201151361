package layout

import (
	"math/bits"
	"sort"
)

// A cut may move from its even place by this share of a row group to where the keys' highest bit changes: there the curve
// leaves a large cell, and both sides get smaller boxes.
const cutSlack = 0.15

// A run of equal keys longer than this share of a row group is split; a shorter one stays together even if a row group
// grows by it.
const runSlack = 0.5

// cut is a border between two row groups: rows with smaller keys are before it, and so are the first skip rows of equal
// keys.
type cut struct {
	key  uint64
	skip int
}

// cutKeys cuts sorted keys into so many groups of about equal size.
func cutKeys(keys []uint64, groups int) []cut {
	positions := cutPositions(keys, groups)
	cuts := make([]cut, 0, len(positions))
	for _, at := range positions {
		first := sort.Search(at, func(i int) bool { return keys[i] >= keys[at] })
		cuts = append(cuts, cut{key: keys[at], skip: at - first})
	}
	return cuts
}

// cutPositions gives the rows of sorted keys before which to cut.
func cutPositions(keys []uint64, groups int) []int {
	positions := make([]int, 0, max(groups-1, 0))
	start := 0
	for g := groups; g > 1; g-- {
		at := bestCut(keys, start, float64(len(keys)-start)/float64(g))
		if at <= start || at >= len(keys) {
			break
		}
		positions = append(positions, at)
		start = at
	}
	return positions
}

// bestCut gives the row before which to cut, for a group that begins at start and should have so many rows.
func bestCut(keys []uint64, start int, size float64) int {
	ideal := start + int(size+0.5)
	low, high := ideal-int(size*cutSlack), ideal+int(size*cutSlack)
	low, high = max(low, start+1), min(high, len(keys)-1)
	best, bestBit, bestGap := -1, 0, 0
	for at := low; at <= high; {
		if keys[at] != keys[at-1] {
			bit := bits.Len64(keys[at] ^ keys[at-1])
			gap := abs(at - ideal)
			if bit > bestBit || bit == bestBit && gap < bestGap {
				best, bestBit, bestGap = at, bit, gap
			}
		}
		at++
	}
	if best > 0 {
		return best
	}
	return runCut(keys, start, ideal, size)
}

// runCut handles a window inside one run of equal keys: at the run's nearer end when that isn't far, else inside.
func runCut(keys []uint64, start, ideal int, size float64) int {
	if ideal >= len(keys) {
		return -1
	}
	key := keys[ideal]
	first := sort.Search(len(keys), func(i int) bool { return keys[i] >= key })
	after := sort.Search(len(keys), func(i int) bool { return keys[i] > key })
	slack := int(size * runSlack)
	before, behind := ideal-first, after-ideal
	switch {
	case first > start && before <= behind && before <= slack:
		return first
	case after < len(keys) && behind <= slack:
		return after
	case first > start && before <= slack:
		return first
	}
	return ideal
}

func abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
}

// partition gives the rows of each group between cuts, each in the order in which the rows came, in memory of the sorter.
func (s *sorter) partition(keys []uint64, cuts []cut) [][]uint32 {
	equal := make([]int, len(cuts)) // rows met with the key of a cut, by the first cut with that key
	counts := make([]int, len(cuts)+1)
	s.groups = grow(s.groups[:0], len(keys))
	for i, key := range keys {
		g := 0
		for g < len(cuts) && key > cuts[g].key {
			g++
		}
		if g < len(cuts) && key == cuts[g].key {
			before := equal[g]
			equal[g]++
			for same := g; g < len(cuts) && cuts[g].key == cuts[same].key && before >= cuts[g].skip; {
				g++
			}
		}
		s.groups[i] = uint16(g)
		counts[g]++
	}
	s.rows = grow(s.rows[:0], len(keys))
	out := make([][]uint32, len(counts))
	at := 0
	for g, n := range counts {
		out[g] = s.rows[at : at : at+n]
		at += n
	}
	for i, g := range s.groups {
		out[g] = append(out[g], uint32(i))
	}
	return out
}
