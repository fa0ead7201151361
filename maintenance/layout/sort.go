package layout

import (
	"bytes"
	"math/bits"
	"slices"
)

const (
	radixBits = 11
	radixSize = 1 << radixBits
)

// sorter holds the scratch of a worker's sorts.
type sorter struct {
	words, wordsOut []uint64
	permOut         []uint32
	rows            []uint32 // all rows of a unit, group by group
	groups          []uint16 // of each row
}

// byWords sorts perm stably by words, which are given by row: words[perm[i]] ascends afterwards. It looks first: rows often
// come in order.
func (s *sorter) byWords(perm []uint32, words []uint64) {
	if len(perm) == 0 {
		return
	}
	low, high, sorted := words[perm[0]], words[perm[0]], true
	last := low
	for _, i := range perm[1:] {
		w := words[i]
		low, high = min(low, w), max(high, w)
		sorted = sorted && last <= w
		last = w
	}
	if sorted {
		return
	}
	s.words = grow(s.words[:0], len(perm))
	for j, i := range perm {
		s.words[j] = words[i] - low
	}
	s.wordsOut = grow(s.wordsOut[:0], len(perm))
	s.permOut = grow(s.permOut[:0], len(perm))
	from, to := s.words, s.wordsOut
	permFrom, permTo := perm, s.permOut
	for shift := 0; shift < bits.Len64(high-low); shift += radixBits {
		radixPass(to, from, permTo, permFrom, shift)
		from, to = to, from
		permFrom, permTo = permTo, permFrom
	}
	if &permFrom[0] != &perm[0] {
		copy(perm, permFrom)
	}
}

func radixPass(to, from []uint64, permTo, permFrom []uint32, shift int) {
	var starts [radixSize]uint32
	digitStarts(&starts, from, shift)
	to, permTo = to[:len(from)], permTo[:len(from)]
	for i, w := range from {
		digit := w >> shift & (radixSize - 1)
		at := starts[digit]
		starts[digit] = at + 1
		to[at] = w
		permTo[at] = permFrom[i]
	}
}

// digitStarts gives the place at which the words with each digit begin; starts is empty before.
func digitStarts(starts *[radixSize]uint32, words []uint64, shift int) {
	for _, w := range words {
		starts[w>>shift&(radixSize-1)]++
	}
	sum := uint32(0)
	for i, n := range starts {
		starts[i] = sum
		sum += n
	}
}

// sortedKeys gives the keys in order, in scratch memory.
func (s *sorter) sortedKeys(keys []uint64) []uint64 {
	s.words = append(s.words[:0], keys...)
	if slices.IsSorted(s.words) {
		return s.words
	}
	low, high := slices.Min(s.words), slices.Max(s.words)
	s.wordsOut = grow(s.wordsOut[:0], len(keys))
	from, to := s.words, s.wordsOut
	for i := range from {
		from[i] -= low
	}
	for shift := 0; shift < bits.Len64(high-low); shift += radixBits {
		var starts [radixSize]uint32
		digitStarts(&starts, from, shift)
		for _, w := range from {
			digit := w >> shift & (radixSize - 1)
			to[starts[digit]] = w
			starts[digit]++
		}
		from, to = to, from
	}
	for i := range from {
		from[i] += low
	}
	return from
}

// ordinals gives each row of a column a word whose order is the order of the values, null first.
func (p *plan) ordinals(dst []uint64, c *clusterColumn, v *vec, d *sealed) []uint64 {
	switch {
	case v.class == class2:
		dst = grow(dst[:0], v.n)
		for i, code := range v.w2 {
			if v.nulls == 0 || !v.isNull(i) { // a column of nulls alone has no code at all
				dst[i] = uint64(d.order[code]) + 1
			}
		}
	case c.t.Words():
		dst = c.words(dst, v)
		if v.nulls > 0 { // make room for null below all values: the largest two words may tie, which costs nothing
			for i, w := range dst {
				dst[i] = max(w, w+1)
			}
		}
	default:
		dst = valueOrdinals(grow(dst[:0], v.n), c, v)
	}
	if v.nulls > 0 {
		for i := range dst {
			if v.isNull(i) {
				dst[i] = 0
			}
		}
	}
	return dst
}

// valueOrdinals sorts byte strings, the slow way, and numbers them from 1.
func valueOrdinals(dst []uint64, c *clusterColumn, v *vec) []uint64 {
	order := make([]uint32, 0, v.n)
	for i := range v.n {
		if !v.isNull(i) {
			order = append(order, uint32(i))
		}
	}
	var a, b []byte
	compare := func(i, j uint32) int {
		if v.class == classBytes {
			return bytes.Compare(v.bytesAt(int(i)), v.bytesAt(int(j)))
		}
		a = append(a[:0], c.valueAt(v, int(i), a)...)
		b = append(b[:0], c.valueAt(v, int(j), b)...)
		return bytes.Compare(a, b)
	}
	slices.SortStableFunc(order, compare)
	ordinal := uint64(1)
	for j, i := range order {
		if j > 0 && compare(order[j-1], i) != 0 {
			ordinal++
		}
		dst[i] = ordinal
	}
	return dst
}
