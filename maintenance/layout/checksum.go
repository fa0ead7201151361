package layout

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// Checksum is an order-independent sum over rows: each row's content is hashed, the hash is spread to 128 bits, and these
// are added. Two tables with equal rows, however ordered and encoded, have equal checksums. It guards against mistakes,
// not against adversaries.
type Checksum struct{ High, Low uint64 }

// String gives 32 hexadecimal digits.
func (c Checksum) String() string { return fmt.Sprintf("%016x%016x", c.High, c.Low) }

func (c *Checksum) add(o Checksum) {
	var carry uint64
	c.Low, carry = bits.Add64(c.Low, o.Low, 0)
	c.High += o.High + carry
}

// Odd constants with well spread bits.
const (
	mixA = 0x9e3779b97f4a7c15
	mixB = 0xd1b54a32d192ed03
	mixC = 0x8cb92ba72f3d8dd7
	mixD = 0xaef17502108ef2d9

	hashNull = 0x6e756c6c6e756c6d
)

// rowHasher accumulates one hash a row over the columns of a batch.
type rowHasher struct{ rows []uint64 }

func (h *rowHasher) start(n int) {
	h.rows = grow(h.rows[:0], n)
	for i := range h.rows {
		h.rows[i] = mixD
	}
}

func mixWord(row, w uint64) uint64 { return bits.RotateLeft64((row^w)*mixA, 29) }

// finish adds the rows to the checksum.
func (h *rowHasher) finish(c *Checksum) {
	var high, low, carry uint64
	for _, row := range h.rows {
		a, b := bits.Mul64(row^mixB, row*mixC|1)
		low, carry = bits.Add64(low, b^row, 0)
		high += a + carry
	}
	c.add(Checksum{High: high, Low: low})
}

// column mixes in one column. id makes equal values of different columns differ.
func (h *rowHasher) column(id int, v *vec) {
	seed := uint64(id) * mixB
	switch {
	case v.class == classNested:
		h.nested(seed, v)
	case v.class == classDictionary:
		h.dictionary(seed, v.dictionary)
	case v.nulls > 0:
		for i := range h.rows {
			w := uint64(hashNull)
			if !v.isNull(i) {
				w = v.hashAt(i)
			}
			h.rows[i] = mixWord(h.rows[i], w+seed)
		}
	case v.class == class8:
		for i, w := range v.w8 {
			h.rows[i] = mixWord(h.rows[i], w+seed)
		}
	case v.class == class4:
		for i, w := range v.w4 {
			h.rows[i] = mixWord(h.rows[i], uint64(w)+seed)
		}
	default:
		for i := range h.rows {
			h.rows[i] = mixWord(h.rows[i], v.hashAt(i)+seed)
		}
	}
}

// plainOrCodes mixes in a column in the form in which it is about to be written.
func (h *rowHasher) plainOrCodes(id int, v *vec, d *sealed) {
	if v.class == class2 {
		h.codes(id, v, d.hashes)
		return
	}
	h.column(id, v)
}

// codes mixes in a column by code; hashes are those of the values, by code.
func (h *rowHasher) codes(id int, v *vec, hashes []uint64) {
	seed := uint64(id) * mixB
	for i, code := range v.w2 {
		w := uint64(hashNull)
		if !(v.nulls > 0 && v.isNull(i)) {
			w = hashes[code]
		}
		h.rows[i] = mixWord(h.rows[i], w+seed)
	}
}

func (h *rowHasher) dictionary(seed uint64, a *array.Dictionary) {
	values := a.Dictionary()
	hashes := make([]uint64, values.Len())
	for i := range hashes {
		hashes[i] = hashBytes(binaryAt(values, i))
	}
	nulls := a.NullN() > 0
	for i, index := range dictionaryIndices(a) {
		w := uint64(hashNull)
		if !nulls || a.IsValid(i) {
			w = hashes[index]
		}
		h.rows[i] = mixWord(h.rows[i], w+seed)
	}
}

// hashAt gives the hash of a present value: words are their own hash.
func (v *vec) hashAt(i int) uint64 {
	switch v.class {
	case class8:
		return v.w8[i]
	case class4:
		return uint64(v.w4[i])
	case classBit:
		return uint64(v.bits[i>>3] >> (i & 7) & 1)
	case classFixed:
		return hashBytes(v.fixedAt(i))
	}
	return hashBytes(v.bytesAt(i))
}

func hashBytes(b []byte) uint64 {
	h := uint64(len(b))*mixC + mixA
	for len(b) >= 8 {
		high, low := bits.Mul64(binary.LittleEndian.Uint64(b)^mixB, h^mixA)
		h = high ^ low + mixC
		b = b[8:]
	}
	if len(b) > 0 {
		var rest [8]byte
		copy(rest[:], b)
		high, low := bits.Mul64(binary.LittleEndian.Uint64(rest[:])^mixD, h^mixA)
		h = high ^ low + mixC
	}
	high, low := bits.Mul64(h^mixA, mixB)
	return high ^ low
}

func (h *rowHasher) nested(seed uint64, v *vec) {
	row := 0
	for _, a := range v.arrs {
		for i := range a.Len() {
			h.rows[row] = mixWord(h.rows[row], hashNested(a, i)+seed)
			row++
		}
	}
}

// hashNested hashes one value of an Arrow array, whatever its type, down to its leaves.
func hashNested(a arrow.Array, i int) uint64 {
	if a.IsNull(i) {
		return hashNull
	}
	switch a := a.(type) {
	case array.ExtensionArray:
		return hashNested(a.Storage(), i)
	case *array.Struct:
		h := uint64(mixC)
		for f := range a.NumField() {
			h = mixWord(h, hashNested(a.Field(f), i))
		}
		return h
	case *array.Map:
		start, end := a.ValueOffsets(i)
		h := uint64(end-start) * mixB
		for j := start; j < end; j++ {
			h = mixWord(h, hashNested(a.Keys(), int(j)))
			h = mixWord(h, hashNested(a.Items(), int(j)))
		}
		return h
	case *array.List:
		start, end := a.ValueOffsets(i)
		h := uint64(end-start) * mixD
		for j := start; j < end; j++ {
			h = mixWord(h, hashNested(a.ListValues(), int(j)))
		}
		return h
	case *array.Boolean:
		if a.Value(i) {
			return 1
		}
		return 0
	case *array.String:
		return hashBytes([]byte(a.Value(i)))
	case *array.Binary:
		return hashBytes(a.Value(i))
	}
	width := a.DataType().(arrow.FixedWidthDataType).Bytes()
	at := (a.Data().Offset() + i) * width
	return hashBytes(a.Data().Buffers()[1].Bytes()[at : at+width])
}
