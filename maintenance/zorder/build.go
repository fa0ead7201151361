package zorder

import (
	"bytes"
	"slices"
)

// The number of bins of a column. More bins place rows more exactly; a sample needs some rows for each.
const (
	BinsDefault = 4096
	BinsMax     = 65536
	// SampleRowsPerBin and SampleRowsMin say how many sampled rows boundaries need to be trusted.
	SampleRowsPerBin = 64
	SampleRowsMin    = 100_000
)

// BuildWords makes the boundaries of a column whose type is ranked by words from a sample of its present values and the
// number of nulls met beside them. It sorts the sample in place.
func BuildWords(fieldID int, t Type, bins int, sample []uint64, nulls int) *Column {
	slices.Sort(sample)
	c := &Column{FieldID: fieldID, Type: t}
	build(c, bins, nulls, len(sample),
		func(i, j int) bool { return sample[i] == sample[j] },
		func(i int) { c.lowerWords = append(c.lowerWords, sample[i]) })
	c.index()
	return c
}

// BuildValues is BuildWords for types that are ranked by bytes. It keeps some of the sample's slices.
func BuildValues(fieldID int, t Type, bins int, sample [][]byte, nulls int) *Column {
	slices.SortFunc(sample, bytes.Compare)
	c := &Column{FieldID: fieldID, Type: t}
	build(c, bins, nulls, len(sample),
		func(i, j int) bool { return bytes.Equal(sample[i], sample[j]) },
		func(i int) { c.lowerValues = append(c.lowerValues, bytes.Clone(sample[i])) })
	return c
}

// build walks a sorted sample and closes a bin when it holds its share of the rows. A value that alone holds a share
// owns a bin, so that it owns its part of the rank axis and doesn't drag rare neighbours along. With fewer distinct
// values than bins, each value owns a bin.
func build(c *Column, bins, nulls, n int, equal func(i, j int) bool, lower func(i int)) {
	bins = min(max(bins, 2), BinsMax)
	total := n + nulls
	if total == 0 {
		return
	}
	c.nullRank = midRank(0, nulls, total)
	runs := runStarts(n, equal)
	share := max(n/bins, 1)
	if len(runs)-1 <= bins {
		share = 1
	}
	binStart := 0 // row of the sample where the open bin begins
	closeBin := func(end int) {
		if end > binStart {
			lower(binStart)
			c.ranks = append(c.ranks, midRank(nulls+binStart, end-binStart, total))
			binStart = end
		}
	}
	for r := 0; r+1 < len(runs); r++ {
		start, end := runs[r], runs[r+1]
		if end-start >= share {
			closeBin(start)
			closeBin(end)
		} else if end-binStart >= share {
			closeBin(end)
		}
	}
	closeBin(n)
}

// runStarts gives where runs of equal values begin, and n at the end.
func runStarts(n int, equal func(i, j int) bool) []int {
	starts := make([]int, 0, min(n, BinsMax)+1)
	for i := 0; i < n; i++ {
		if i == 0 || !equal(i-1, i) {
			starts = append(starts, i)
		}
	}
	return append(starts, n)
}

// midRank gives the rank of the middle of count rows that have `before` rows below them.
func midRank(before, count, total int) uint32 {
	middle := (uint64(2*before+count) << (rankBits - 1)) / uint64(total)
	return uint32(min(middle, 1<<rankBits-1))
}
