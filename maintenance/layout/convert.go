package layout

import (
	"fmt"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// view reads words where they lie, without a copy. Arrow's buffers are aligned, and all machines that this runs on are
// little-endian.
func view[T uint64 | uint32 | uint16 | int32 | int64](b []byte) []T {
	var t T
	n := len(b) / int(unsafe.Sizeof(t))
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

// bytesOf is the inverse of view.
func bytesOf[T uint64 | uint32 | uint16 | int32](s []T) []byte {
	if len(s) == 0 {
		return []byte{}
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(s[0])))
}

// fromArrow gives the values of an Arrow array in the form of a class. The result may look into the array's memory, so the
// array must outlive it and the result must not be appended to.
func fromArrow(c class, width int, a arrow.Array) (*vec, error) {
	if e, ok := a.(array.ExtensionArray); ok {
		a = e.Storage()
	}
	v := &vec{class: c, width: width, n: a.Len()}
	if c == classNested {
		a.Retain()
		v.arrs = []arrow.Array{a}
		return v, nil
	}
	data := a.Data()
	if a.NullN() > 0 {
		v.valid = appendBits(nil, 0, shiftBits(a.NullBitmapBytes(), data.Offset(), a.Len()), a.Len())
		v.nulls = countNulls(v.valid, v.n)
	}
	off, n := data.Offset(), a.Len()
	var values []byte
	if b := data.Buffers()[1]; b != nil {
		values = b.Bytes()
	}
	switch c {
	case class8:
		v.w8 = view[uint64](values)[off : off+n]
	case class4:
		v.w4 = view[uint32](values)[off : off+n]
	case class2:
		v.w2 = view[uint16](values)[off : off+n]
	case classBit:
		v.bits = shiftBits(values, off, n)
	case classFixed:
		v.raw = values[off*width : (off+n)*width]
	case classBytes:
		var heap []byte
		if b := data.Buffers()[2]; b != nil {
			heap = b.Bytes()
		}
		v.raw = heap
		if n == 0 {
			v.offs = []int32{0}
		} else {
			v.offs = view[int32](values)[off : off+n+1]
		}
	}
	if v.nulls > 0 {
		v.zeroNulls()
	}
	return v, nil
}

// shiftBits gives n bits from bit off on; off may be 0, then nothing is copied.
func shiftBits(b []byte, off, n int) []byte {
	if off == 0 {
		return b
	}
	out := make([]byte, (n+7)/8)
	for i := range n {
		out[i>>3] |= b[(off+i)>>3] >> ((off + i) & 7) & 1 << (i & 7)
	}
	return out
}

// zeroNulls copies v's values and clears those of nulls: what a decoder leaves there is anything.
func (v *vec) zeroNulls() {
	switch v.class {
	case class8:
		v.w8 = zeroed(v, v.w8)
	case class4:
		v.w4 = zeroed(v, v.w4)
	case class2:
		v.w2 = zeroed(v, v.w2)
	case classBit:
		v.bits = append([]byte(nil), v.bits[:(v.n+7)/8]...)
		for i := range v.bits {
			v.bits[i] &= v.valid[i]
		}
	case classFixed:
		v.raw = append([]byte(nil), v.raw...)
		for i := range v.n {
			if v.isNull(i) {
				clear(v.fixedAt(i))
			}
		}
	case classBytes:
		var raw []byte
		offs := make([]int32, 1, v.n+1)
		for i := range v.n {
			if !v.isNull(i) {
				raw = append(raw, v.bytesAt(i)...)
			}
			offs = append(offs, int32(len(raw)))
		}
		v.raw, v.offs = raw, offs
	}
}

func zeroed[T uint64 | uint32 | uint16](v *vec, words []T) []T {
	out := append([]T(nil), words...)
	for i := range out {
		if v.isNull(i) {
			out[i] = 0
		}
	}
	return out
}

// toArrow gives v's values as an array of the type, without a copy. v must outlive it.
func (v *vec) toArrow(t arrow.DataType) (arrow.Array, error) {
	if v.class == classNested {
		return v.nestedArray(t)
	}
	storage := t
	if e, ok := t.(arrow.ExtensionType); ok {
		storage = e.StorageType()
	}
	var valid *memory.Buffer
	if v.nulls > 0 {
		valid = memory.NewBufferBytes(v.valid)
	}
	buffers := []*memory.Buffer{valid, nil}
	switch v.class {
	case class8:
		buffers[1] = memory.NewBufferBytes(bytesOf(v.w8))
	case class4:
		buffers[1] = memory.NewBufferBytes(bytesOf(v.w4))
	case class2:
		buffers[1] = memory.NewBufferBytes(bytesOf(v.w2))
	case classBit:
		buffers[1] = memory.NewBufferBytes(v.bits)
	case classFixed:
		buffers[1] = memory.NewBufferBytes(v.raw)
	case classBytes:
		buffers[1] = memory.NewBufferBytes(bytesOf(v.offs))
		buffers = append(buffers, memory.NewBufferBytes(v.raw))
	default:
		return nil, fmt.Errorf("column of class %d has no Arrow form", v.class)
	}
	data := array.NewData(storage, v.n, buffers, nil, v.nulls, 0)
	defer data.Release()
	a := array.MakeFromData(data)
	if e, ok := t.(arrow.ExtensionType); ok {
		defer a.Release()
		return array.NewExtensionArrayWithStorage(e, a), nil
	}
	return a, nil
}
