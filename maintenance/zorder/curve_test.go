package zorder

import (
	"testing"
)

// The table path must be the same curve as the method for any number of columns, up to mirror images: check that it is a
// Hilbert curve at all.
func TestKeys_TwoColumnsByTableAreSkillingsCurve(t *testing.T) {
	for _, curve := range []Curve{Hilbert, ZOrder} {
		const n = 1 << 12
		xs, ys := make([]uint32, n), make([]uint32, n)
		seed := uint32(1)
		for i := range xs {
			seed = seed*1664525 + 1013904223
			xs[i] = seed
			seed = seed*1664525 + 1013904223
			ys[i] = seed
		}
		fast, slow := make([]uint64, n), make([]uint64, n)
		keys2(fast, curve, xs, ys)
		keysN(slow, curve, [][]uint32{xs, ys})
		for i := range fast {
			if fast[i] != slow[i] {
				t.Fatalf("%s: key of (%08x, %08x): table %08x, Skilling %08x", curve, xs[i], ys[i], fast[i], slow[i])
			}
		}
	}
}

// Along a Hilbert curve each step goes to a neighbour: one coordinate changes by one. Whatever the number of columns.
func TestKeys_HilbertStepsToNeighbours(t *testing.T) {
	for d := 2; d <= 4; d++ {
		b := 12 / d
		points := make(map[uint64][]uint32)
		coords := make([]uint32, d)
		for n := range 1 << (d * b) {
			for i := range coords {
				coords[i] = uint32(n>>(i*b)) & (1<<b - 1)
			}
			x := append([]uint32(nil), coords...)
			hilbertTranspose(x, b)
			points[interleave(x, b)] = append([]uint32(nil), coords...)
		}
		if len(points) != 1<<(d*b) {
			t.Fatalf("%d columns: %d keys for %d points", d, len(points), 1<<(d*b))
		}
		for key := uint64(1); key < 1<<(d*b); key++ {
			steps := 0
			for i := range d {
				delta := int(points[key][i]) - int(points[key-1][i])
				steps += delta * delta
			}
			if steps != 1 {
				t.Fatalf("%d columns: step %d goes from %v to %v", d, key, points[key-1], points[key])
			}
		}
	}
}

func TestKeys_ZOrderInterleaves(t *testing.T) {
	if got := interleave([]uint32{0b101, 0b011}, 3); got != 0b10_01_11 {
		t.Errorf("%b", got)
	}
}

// Linear keys follow the first column alone.
func TestKeys_LinearFollowsFirstColumn(t *testing.T) {
	keys := make([]uint64, 2)
	Keys(keys, Linear, [][]uint32{{5, 6}, {9, 1}})
	if keys[0] >= keys[1] {
		t.Errorf("%v", keys)
	}
}

func TestCoordBits_FitOneWord(t *testing.T) {
	for d := 1; d <= ColumnsMax; d++ {
		for _, curve := range []Curve{Hilbert, ZOrder, Linear} {
			bits := KeyBits(curve, d)
			if bits > 64 || CoordBits(d) < 8 {
				t.Errorf("%s, %d columns: %d bits", curve, d, bits)
			}
			ranks := make([][]uint32, d)
			for i := range ranks {
				ranks[i] = []uint32{^uint32(0)}
			}
			key := make([]uint64, 1)
			Keys(key, curve, ranks)
			if bits < 64 && key[0]>>bits != 0 {
				t.Errorf("%s, %d columns: key %x has more than %d bits", curve, d, key[0], bits)
			}
		}
	}
}
