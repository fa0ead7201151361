package zorder

// Curve names the way through the grid of ranks.
type Curve string

// The curves. Hilbert is the default: a step along it never jumps, so a run of neighbouring keys has a small box.
// Linear sorts by the first column, then the second, and so on; it wins when one column's filter dominates.
const (
	Hilbert Curve = "hilbert"
	ZOrder  Curve = "zorder"
	Linear  Curve = "linear"
)

// Limits of a key. Each further column halves what the others gain.
const (
	ColumnsMax   = 8
	keyBits      = 64
	coordBitsMax = 16
)

// CoordBits gives how many bits of each rank the key of d columns holds. Sixteen are as many as BinsMax can tell apart;
// d times the result never passes 64.
func CoordBits(d int) int { return min(coordBitsMax, keyBits/d) }

// KeyBits gives the number of low bits of a key that can be set.
func KeyBits(curve Curve, d int) int {
	if curve == Linear {
		return rankBits
	}
	return d * CoordBits(d)
}

// Keys computes the key of each row from the ranks of its columns: dst[i] of ranks[0][i], ranks[1][i], ... The slices of
// ranks are scratch afterwards. The key of Linear is the rank of the first column alone: ranks say nothing about the
// order inside one bin, so a second column's rank behind it would break the order by the first. Whoever sorts must
// compare the values themselves among equal keys.
func Keys(dst []uint64, curve Curve, ranks [][]uint32) {
	d := len(ranks)
	switch {
	case curve == Linear || d == 1:
		shift := rankBits - KeyBits(curve, d)
		for i, rank := range ranks[0][:len(dst)] {
			dst[i] = uint64(rank >> shift)
		}
	case d == 2:
		keys2(dst, curve, ranks[0], ranks[1])
	default:
		keysN(dst, curve, ranks)
	}
}

func keysN(dst []uint64, curve Curve, ranks [][]uint32) {
	d := len(ranks)
	b := CoordBits(d)
	coords := make([]uint32, d)
	for i := range dst {
		for j := range coords {
			coords[j] = ranks[j][i] >> (rankBits - b)
		}
		if curve == Hilbert {
			hilbertTranspose(coords, b)
		}
		dst[i] = interleave(coords, b)
	}
}

// interleave takes the highest bit of each coordinate in turn, then the next.
func interleave(coords []uint32, b int) uint64 {
	var key uint64
	for bit := b - 1; bit >= 0; bit-- {
		for _, coord := range coords {
			key = key<<1 | uint64(coord>>bit&1)
		}
	}
	return key
}

// hilbertTranspose turns coordinates of b bits into the bits of their index along the Hilbert curve, spread over the
// same words ready to be interleaved (J. Skilling, "Programming the Hilbert curve", AIP Conf. Proc. 707, 2004).
func hilbertTranspose(x []uint32, b int) {
	n := len(x)
	top := uint32(1) << (b - 1)
	for q := top; q > 1; q >>= 1 {
		p := q - 1
		for i := range x {
			if x[i]&q != 0 {
				x[0] ^= p
			} else {
				t := (x[0] ^ x[i]) & p
				x[0] ^= t
				x[i] ^= t
			}
		}
	}
	for i := 1; i < n; i++ {
		x[i] ^= x[i-1]
	}
	var t uint32
	for q := top; q > 1; q >>= 1 {
		if x[n-1]&q != 0 {
			t ^= q - 1
		}
	}
	for i := range x {
		x[i] ^= t
	}
}

// keys2 is the path of two columns, the usual case: sixteen bits each, four at a time by table.
func keys2(dst []uint64, curve Curve, first, second []uint32) {
	first, second = first[:len(dst)], second[:len(dst)]
	table := &hilbert2
	if curve == ZOrder {
		table = &zorder2
	}
	for i := range dst {
		x, y := first[i]>>16, second[i]>>16
		step := table[x>>12<<4|y>>12]
		key := uint64(step.key)
		step = table[uint32(step.state)<<8|x>>8&15<<4|y>>8&15]
		key = key<<8 | uint64(step.key)
		step = table[uint32(step.state)<<8|x>>4&15<<4|y>>4&15]
		key = key<<8 | uint64(step.key)
		step = table[uint32(step.state)<<8|x&15<<4|y&15]
		dst[i] = key<<8 | uint64(step.key)
	}
}

// step2 is what four bits of each coordinate give from one orientation: eight bits of key and the next orientation.
type step2 struct{ key, state uint8 }

// Indexed by orientation (4), four bits of x, four bits of y.
var (
	hilbert2 = buildHilbert2()
	zorder2  = buildZOrder2()
)

// buildHilbert2 chains single-bit steps. An orientation is two flags: whether x and y are swapped, and whether both are
// inverted, of the coordinates still to come.
func buildHilbert2() (table [4 << 8]step2) {
	for state := range uint32(4) {
		for x := range uint32(16) {
			for y := range uint32(16) {
				table[state<<8|x<<4|y] = hilbertSteps(state, x, y)
			}
		}
	}
	return table
}

func hilbertSteps(state, x, y uint32) step2 {
	var key uint32
	for bit := 3; bit >= 0; bit-- {
		a, b := x>>bit&1, y>>bit&1
		if state&2 != 0 { // inverted
			a, b = a^1, b^1
		}
		if state&1 != 0 { // swapped
			a, b = b, a
		}
		key = key<<2 | a<<1 | a ^ b
		// The first quadrant is entered swapped, the last one swapped and inverted.
		switch {
		case b == 0 && a == 0:
			state ^= 1
		case b == 0 && a == 1:
			state ^= 3
		}
	}
	return step2{key: uint8(key), state: uint8(state)}
}

func buildZOrder2() (table [4 << 8]step2) {
	for x := range uint32(16) {
		for y := range uint32(16) {
			table[x<<4|y].key = uint8(interleave([]uint32{x, y}, 4))
		}
	}
	return table
}
