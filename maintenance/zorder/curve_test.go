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
