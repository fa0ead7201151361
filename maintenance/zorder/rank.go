package zorder

import (
	"bytes"
	"math/bits"
	"sort"
)

// Ranks are fractions of the rows, as a 32-bit fixed-point number: 0 is below all rows, 1<<32 above.
const rankBits = 32

// Column holds the boundaries of one clustering column: bins of values, each with the rank of its middle row. A bin ends
// where the next one begins; the first one also takes all smaller values. Null has its own interval below all values.
type Column struct {
	FieldID int
	Type    Type

	// Exactly one of the two is in use, by Type.Words(): the smallest sampled value of each bin, ascending.
	lowerWords  []uint64
	lowerValues [][]byte

	ranks    []uint32 // of each bin, ascending
	nullRank uint32

	// Jump table over lowerWords: starts[(w-origin)>>shift] is the first bin to look at. Built by index.
	starts []uint32
	origin uint64
	shift  uint
}

// Bins gives the number of bins.
func (c *Column) Bins() int { return len(c.ranks) }

// NullRank gives the rank of null.
func (c *Column) NullRank() uint32 { return c.nullRank }

// RankWord gives the rank of a value of a type that is ranked by words.
func (c *Column) RankWord(word uint64) uint32 {
	if len(c.ranks) == 0 {
		return 0
	}
	return c.ranks[c.binOfWord(word)]
}

// RankValue gives the rank of a value of a type that is ranked by bytes.
func (c *Column) RankValue(value []byte) uint32 {
	if len(c.ranks) == 0 {
		return 0
	}
	after := sort.Search(len(c.lowerValues), func(i int) bool { return bytes.Compare(c.lowerValues[i], value) > 0 })
	return c.ranks[max(after-1, 0)]
}

// RankWords gives the ranks of many words. Neighbouring words are often in one bin (rows come in time order), so the
// last bin is tried first.
func (c *Column) RankWords(dst []uint32, words []uint64) {
	if len(c.ranks) == 0 {
		clear(dst[:len(words)])
		return
	}
	low, high, rank := uint64(1), uint64(0), uint32(0) // an empty interval: the first word always searches
	for i, word := range words {
		if word < low || word > high {
			bin := c.binOfWord(word)
			low, high, rank = c.span(bin)
		}
		dst[i] = rank
	}
}

// span gives the inclusive interval of words that a bin takes, and its rank.
func (c *Column) span(bin int) (low, high uint64, rank uint32) {
	high = ^uint64(0)
	if bin > 0 {
		low = c.lowerWords[bin]
	}
	if bin+1 < len(c.lowerWords) {
		high = c.lowerWords[bin+1] - 1
	}
	return low, high, c.ranks[bin]
}

func (c *Column) binOfWord(word uint64) int {
	if word < c.origin {
		return 0
	}
	slot := (word - c.origin) >> c.shift
	if slot >= uint64(len(c.starts)-1) {
		return len(c.lowerWords) - 1
	}
	// Invariant: lowerWords[from-1] <= start of the slot, and lowerWords[to] is beyond its end.
	from, to := int(c.starts[slot]), int(c.starts[slot+1])
	for from < to {
		middle := int(uint(from+to) >> 1)
		if c.lowerWords[middle] <= word {
			from = middle + 1
		} else {
			to = middle
		}
	}
	return max(from-1, 0)
}

// index builds the jump table. It is needed before the first RankWord.
func (c *Column) index() {
	n := len(c.lowerWords)
	if n == 0 {
		c.starts = []uint32{0, 0}
		return
	}
	c.origin = c.lowerWords[0]
	width := bits.Len64(c.lowerWords[n-1] - c.origin)
	slotBits := min(bits.Len(uint(n))+2, width)
	c.shift = uint(width - slotBits)
	slots := int((c.lowerWords[n-1]-c.origin)>>c.shift) + 1
	// starts[s] = number of bins whose lower bound lies in a slot before s.
	c.starts = make([]uint32, slots+1)
	for _, lower := range c.lowerWords {
		c.starts[(lower-c.origin)>>c.shift+1]++
	}
	for s := 1; s < len(c.starts); s++ {
		c.starts[s] += c.starts[s-1]
	}
}

// Edges gives the ranks of the lowest and the highest bin.
func (c *Column) Edges() (lowest, highest uint32) {
	if len(c.ranks) == 0 {
		return 0, 0
	}
	return c.ranks[0], c.ranks[len(c.ranks)-1]
}
