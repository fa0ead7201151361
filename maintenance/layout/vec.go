package layout

import (
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// class says how a column's values lie in memory.
type class uint8

const (
	class8          class = iota + 1 // words of 64 bits: long, double, time, timestamp, ...
	class4                           // words of 32 bits: int, float, date
	class2                           // codes into the job's dictionary of the column
	classBit                         // boolean
	classFixed                       // width bytes each: decimal (16), uuid, fixed
	classBytes                       // string, binary
	classNested                      // list, map, struct: carried as Arrow arrays, never looked into
	classDictionary                  // strings as the reader gave them: codes into a dictionary of the file
)

// vec is a run of values of one column. Only the fields of its class are in use. A null's value is zero (or empty), so
// that equal rows have equal bytes.
type vec struct {
	class class
	width int // of classFixed
	n     int
	nulls int
	valid []byte // bitmap, low bit first; nil: no nulls

	w8   []uint64
	w4   []uint32
	w2   []uint16
	bits []byte
	raw  []byte  // classFixed: n*width bytes; classBytes: the bytes of all values
	offs []int32 // classBytes: n+1
	arrs []arrow.Array

	dictionary *array.Dictionary
}

func newVec(c class, width int) *vec {
	v := &vec{class: c, width: width}
	v.reset()
	return v
}

// reset empties v and keeps its memory.
func (v *vec) reset() {
	v.n, v.nulls = 0, 0
	v.valid = v.valid[:0]
	if cap(v.valid) == 0 {
		v.valid = nil
	}
	v.w8, v.w4, v.w2, v.bits, v.raw = v.w8[:0], v.w4[:0], v.w2[:0], v.bits[:0], v.raw[:0]
	if v.class == classBytes {
		v.offs = append(v.offs[:0], 0)
	}
	for _, a := range v.arrs {
		a.Release()
	}
	v.arrs = v.arrs[:0]
}

func (v *vec) isNull(i int) bool { return v.nulls > 0 && v.valid[i>>3]>>(i&7)&1 == 0 }

func (v *vec) bytesAt(i int) []byte { return v.raw[v.offs[i]:v.offs[i+1]] }

func (v *vec) fixedAt(i int) []byte { return v.raw[i*v.width : (i+1)*v.width] }

func (v *vec) bitAt(i int) bool { return v.bits[i>>3]>>(i&7)&1 == 1 }

// memory gives the bytes that v's values take.
func (v *vec) memory() int64 {
	size := int64(len(v.w8)*8 + len(v.w4)*4 + len(v.w2)*2 + len(v.bits) + len(v.raw) + len(v.offs)*4 + len(v.valid))
	for _, a := range v.arrs {
		size += arrayBytes(a.Data())
	}
	return size
}

func arrayBytes(d arrow.ArrayData) int64 {
	var size int64
	for _, buffer := range d.Buffers() {
		if buffer != nil {
			size += int64(buffer.Len())
		}
	}
	for _, child := range d.Children() {
		size += arrayBytes(child)
	}
	return size
}

// growBits makes room for n bits.
func growBits(b []byte, n int) []byte {
	need := (n + 7) / 8
	for len(b) < need {
		b = append(b, 0)
	}
	return b
}

// appendValidity adds the validity of the selected rows of src.
func (v *vec) appendValidity(src *vec, sel []uint32) {
	if src.nulls == 0 && v.nulls == 0 {
		return
	}
	if v.nulls == 0 { // the first null: everything before it is present
		v.valid = allOnes(v.valid[:0], v.n)
	}
	v.valid = growBits(v.valid, v.n+len(sel))
	for j, i := range sel {
		at := v.n + j
		if src.isNull(int(i)) {
			v.nulls++
			v.valid[at>>3] &^= 1 << (at & 7)
		} else {
			v.valid[at>>3] |= 1 << (at & 7)
		}
	}
}

func allOnes(b []byte, n int) []byte {
	for range (n + 7) / 8 {
		b = append(b, 0xff)
	}
	if n&7 != 0 {
		b[len(b)-1] = 1<<(n&7) - 1
	}
	return b
}

// appendTake adds the selected rows of src, which has v's class. Nested columns are not taken here (nested.go).
func (v *vec) appendTake(src *vec, sel []uint32) {
	v.appendValidity(src, sel)
	switch v.class {
	case class8:
		v.w8 = appendTake(v.w8, src.w8, sel)
	case class4:
		v.w4 = appendTake(v.w4, src.w4, sel)
	case class2:
		v.w2 = appendTake(v.w2, src.w2, sel)
	case classBit:
		v.bits = growBits(v.bits, v.n+len(sel))
		for j, i := range sel {
			at := v.n + j
			v.bits[at>>3] &^= 1 << (at & 7)
			v.bits[at>>3] |= (src.bits[i>>3] >> (i & 7) & 1) << (at & 7)
		}
	case classFixed:
		for _, i := range sel {
			v.raw = append(v.raw, src.fixedAt(int(i))...)
		}
	case classBytes:
		for _, i := range sel {
			v.raw = append(v.raw, src.bytesAt(int(i))...)
			v.offs = append(v.offs, int32(len(v.raw)))
		}
	}
	v.n += len(sel)
}

func appendTake[T uint64 | uint32 | uint16](dst, src []T, sel []uint32) []T {
	n := len(dst)
	dst = grow(dst, len(sel))
	out := dst[n:]
	for j, i := range sel {
		out[j] = src[i]
	}
	return dst
}

// grow lengthens a slice by n. Small slices double, large ones grow by a quarter: their slack would be felt.
func grow[T any](s []T, n int) []T {
	if need := len(s) + n; need > cap(s) {
		const large = 1 << 16
		slack := cap(s)
		if cap(s) > large {
			slack = cap(s) / 4
		}
		bigger := make([]T, need, max(need, cap(s)+slack))
		copy(bigger, s)
		return bigger
	}
	return s[:len(s)+n]
}

// appendAll adds all rows of src.
func (v *vec) appendAll(src *vec) {
	v.appendValidityAll(src)
	switch v.class {
	case class8:
		v.w8 = append(v.w8, src.w8...)
	case class4:
		v.w4 = append(v.w4, src.w4...)
	case class2:
		v.w2 = append(v.w2, src.w2...)
	case classBit:
		v.bits = appendBits(v.bits, v.n, src.bits, src.n)
	case classFixed:
		v.raw = append(v.raw, src.raw...)
	case classBytes:
		base := int32(len(v.raw))
		first := src.offs[0]
		v.raw = append(v.raw, src.raw[first:src.offs[src.n]]...)
		for _, off := range src.offs[1 : src.n+1] {
			v.offs = append(v.offs, base+off-first)
		}
	case classNested:
		for _, a := range src.arrs {
			a.Retain()
			v.arrs = append(v.arrs, a)
		}
	}
	v.n += src.n
}

// appendBits adds n bits of src (nil: all ones) behind the first `at` bits of dst.
func appendBits(dst []byte, at int, src []byte, n int) []byte {
	dst = growBits(dst[:(at+7)/8], at+n)
	if at&7 != 0 {
		dst[at>>3] &= 1<<(at&7) - 1
	}
	for i := range n {
		bit := byte(1)
		if len(src) > 0 {
			bit = src[i>>3] >> (i & 7) & 1
		}
		dst[(at+i)>>3] |= bit << ((at + i) & 7)
	}
	return dst
}

// countNulls counts the zero bits among the first n.
func countNulls(valid []byte, n int) int {
	ones := 0
	for _, b := range valid[:n/8] {
		ones += bits.OnesCount8(b)
	}
	if n&7 != 0 {
		ones += bits.OnesCount8(valid[n/8] & (1<<(n&7) - 1))
	}
	return n - ones
}

// appendValidityAll adds the validity of all rows of src; the caller adds the values and the count.
func (v *vec) appendValidityAll(src *vec) {
	if src.nulls == 0 && v.nulls == 0 {
		return
	}
	if v.nulls == 0 {
		v.valid = allOnes(v.valid[:0], v.n)
	}
	valid := src.valid
	if src.nulls == 0 {
		valid = nil
	}
	v.valid = appendBits(v.valid, v.n, valid, src.n)
	v.nulls += src.nulls
}
