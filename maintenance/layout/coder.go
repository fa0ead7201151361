package layout

import (
	"bytes"
	"cmp"
	"math"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"catalogd/maintenance/zorder"
)

// Limits of a column's dictionary. A column that passes one is carried as bare values from then on.
const (
	dictionaryEntriesMax = 1 << 16
	dictionaryValueBytes = 8 << 20
)

// dictionary is the job's dictionary of one column: value by code, codes given in the order in which values are met.
// Workers translate through tables of their own and come here with new values only.
type dictionary struct {
	class class // class8, class4 or classBytes

	mu     sync.Mutex
	words  []uint64          // by code; class4 in the low half
	values [][]byte          // by code
	byWord map[uint64]uint32 // code
	byText map[string]uint32
	bytes  int

	// full tells that the dictionary passed a limit: no further value gets a code.
	full atomic.Bool
}

func newDictionary(c class) *dictionary {
	return &dictionary{class: c, byWord: map[uint64]uint32{}, byText: map[string]uint32{}}
}

// word gives the code of a word, or false when the dictionary is full.
func (d *dictionary) word(w uint64) (uint32, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if code, known := d.byWord[w]; known {
		return code, true
	}
	if len(d.words) == dictionaryEntriesMax {
		d.full.Store(true)
		return 0, false
	}
	code := uint32(len(d.words))
	d.words = append(d.words, w)
	d.byWord[w] = code
	return code, true
}

// text gives the code of a byte string, or false when the dictionary is full.
func (d *dictionary) text(b []byte) (uint32, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if code, known := d.byText[string(b)]; known {
		return code, true
	}
	if len(d.values) == dictionaryEntriesMax || d.bytes+len(b) > dictionaryValueBytes {
		d.full.Store(true)
		return 0, false
	}
	code := uint32(len(d.values))
	own := bytes.Clone(b)
	d.values = append(d.values, own)
	d.byText[string(own)] = code
	d.bytes += len(b)
	return code, true
}

func (d *dictionary) size() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.words) + len(d.values)
}

// sealed is a dictionary at one moment, with its values in order. Writers use it; it doesn't change.
type sealed struct {
	class  class
	words  []uint64
	values [][]byte
	order  []uint32 // by code: its place among the values in order
	inv    []uint32 // by place: the code
	hashes []uint64 // by code, for checksums
}

func (d *dictionary) seal(t arrow.DataType) *sealed {
	d.mu.Lock()
	s := &sealed{class: d.class, words: d.words[:len(d.words):len(d.words)], values: d.values[:len(d.values):len(d.values)]}
	d.mu.Unlock()
	n := len(s.words) + len(s.values)
	s.inv, s.order, s.hashes = make([]uint32, n), make([]uint32, n), s.words
	for i := range s.inv {
		s.inv[i] = uint32(i)
	}
	if s.class == classBytes {
		slices.SortFunc(s.inv, func(a, b uint32) int { return bytes.Compare(s.values[a], s.values[b]) })
		s.hashes = make([]uint64, n)
		for i, value := range s.values {
			s.hashes[i] = hashBytes(value)
		}
	} else {
		ordered := make([]uint64, n)
		for i, w := range s.words {
			ordered[i] = orderedBits(t, w)
		}
		slices.SortFunc(s.inv, func(a, b uint32) int {
			return cmp.Or(cmp.Compare(ordered[a], ordered[b]), cmp.Compare(s.words[a], s.words[b]))
		})
	}
	for place, code := range s.inv {
		s.order[code] = uint32(place)
	}
	return s
}

// orderedBits gives the order-preserving form of a raw word of an Arrow type.
func orderedBits(t arrow.DataType, w uint64) uint64 {
	switch t.ID() {
	case arrow.FLOAT64:
		return zorder.OrderDouble(math.Float64frombits(w))
	case arrow.FLOAT32:
		return zorder.OrderDouble(float64(math.Float32frombits(uint32(w))))
	case arrow.INT32, arrow.DATE32:
		return zorder.OrderLong(int64(int32(w)))
	}
	return zorder.OrderLong(int64(w))
}

// decode appends the values of codes to v, which has the dictionary's class.
func (d *sealed) decode(v, codes *vec) {
	v.appendValidityAll(codes)
	switch d.class {
	case class8:
		for i, code := range codes.w2 {
			if codes.isNull(i) {
				v.w8 = append(v.w8, 0)
				continue
			}
			v.w8 = append(v.w8, d.words[code])
		}
	case class4:
		for i, code := range codes.w2 {
			if codes.isNull(i) {
				v.w4 = append(v.w4, 0)
				continue
			}
			v.w4 = append(v.w4, uint32(d.words[code]))
		}
	case classBytes:
		for i, code := range codes.w2 {
			if !codes.isNull(i) {
				v.raw = append(v.raw, d.values[code]...)
			}
			v.offs = append(v.offs, int32(len(v.raw)))
		}
	}
	v.n += codes.n
}

// coder is one worker's way into a dictionary.
type coder struct {
	d     *dictionary
	table []slot // open addressing; only for words
	shift uint
	used  int
	texts map[string]uint32

	lastDictionary arrow.ArrayData // of the file, whose translation is in codes
	codes          []uint32
}

type slot struct {
	word uint64
	code uint32 // plus one; 0: empty
}

func newCoder(d *dictionary) *coder {
	c := &coder{d: d, texts: map[string]uint32{}}
	c.resize(1 << 10)
	return c
}

func (c *coder) resize(n int) {
	old := c.table
	c.table, c.shift = make([]slot, n), uint(64-bits.Len(uint(n-1)))
	for _, s := range old {
		if s.code != 0 {
			c.table[c.find(s.word)] = s
		}
	}
}

const hashMultiplier = 0x9e3779b97f4a7c15

// find gives the slot of a word, or the empty one where it belongs.
func (c *coder) find(w uint64) int {
	i := int((w ^ w>>32) * hashMultiplier >> c.shift)
	for c.table[i].code != 0 && c.table[i].word != w {
		i = (i + 1) & (len(c.table) - 1)
	}
	return i
}

func (c *coder) word(w uint64) (uint16, bool) {
	i := c.find(w)
	if c.table[i].code != 0 {
		return uint16(c.table[i].code - 1), true
	}
	code, ok := c.d.word(w)
	if !ok {
		return 0, false
	}
	c.table[i] = slot{word: w, code: code + 1}
	if c.used++; 2*c.used > len(c.table) {
		c.resize(2 * len(c.table))
	}
	return uint16(code), true
}

func (c *coder) text(b []byte) (uint16, bool) {
	if code, known := c.texts[string(b)]; known {
		return uint16(code), true
	}
	code, ok := c.d.text(b)
	if ok {
		c.texts[string(b)] = code
	}
	return uint16(code), ok
}

// encode fills dst with the codes of v's values, or gives false when the dictionary is full.
func (c *coder) encode(dst, v *vec) bool {
	dst.reset()
	dst.n, dst.nulls = v.n, v.nulls
	dst.w2 = grow(dst.w2[:0], v.n)
	if v.class == classDictionary {
		return c.translate(dst, v.dictionary)
	}
	if v.nulls > 0 {
		dst.valid = append(dst.valid[:0], v.valid...)
	}
	switch v.class {
	case class8:
		return encodeWords(c, dst, v, v.w8)
	case class4:
		return encodeWords(c, dst, v, v.w4)
	}
	for i := range v.n {
		if v.isNull(i) {
			dst.w2[i] = 0
			continue
		}
		code, ok := c.text(v.bytesAt(i))
		if !ok {
			return false
		}
		dst.w2[i] = code
	}
	return true
}

func encodeWords[T uint64 | uint32](c *coder, dst, v *vec, words []T) bool {
	for i, w := range words {
		if v.nulls > 0 && v.isNull(i) {
			dst.w2[i] = 0
			continue
		}
		code, ok := c.word(uint64(w))
		if !ok {
			return false
		}
		dst.w2[i] = code
	}
	return true
}

// translate turns a file's dictionary codes into the job's.
func (c *coder) translate(dst *vec, a *array.Dictionary) bool {
	values := a.Dictionary()
	if c.lastDictionary != values.Data() {
		c.codes = c.codes[:0]
		for i := range values.Len() {
			code, ok := c.text(binaryAt(values, i))
			if !ok {
				c.lastDictionary = nil
				return false
			}
			c.codes = append(c.codes, uint32(code))
		}
		c.lastDictionary = values.Data()
	}
	dst.nulls = a.NullN()
	if dst.nulls > 0 {
		dst.valid = appendBits(dst.valid[:0], 0, shiftBits(a.NullBitmapBytes(), a.Data().Offset(), a.Len()), a.Len())
	}
	for i, index := range dictionaryIndices(a) {
		if dst.nulls > 0 && dst.isNull(i) {
			dst.w2[i] = 0
			continue
		}
		dst.w2[i] = uint16(c.codes[index])
	}
	return true
}

func dictionaryIndices(a *array.Dictionary) []int32 {
	return a.Indices().(*array.Int32).Int32Values()
}

func binaryAt(a arrow.Array, i int) []byte {
	switch a := a.(type) {
	case *array.Binary:
		return a.Value(i)
	case *array.String:
		return []byte(a.Value(i))
	}
	return nil
}

// plain gives a file's dictionary codes as bare byte strings.
func plain(v *vec) *vec {
	a := v.dictionary
	out := newVec(classBytes, 0)
	out.nulls = a.NullN()
	if out.nulls > 0 {
		out.valid = appendBits(nil, 0, shiftBits(a.NullBitmapBytes(), a.Data().Offset(), a.Len()), a.Len())
	}
	values := a.Dictionary()
	for i, index := range dictionaryIndices(a) {
		if !(out.nulls > 0 && out.isNull(i)) {
			out.raw = append(out.raw, binaryAt(values, int(index))...)
		}
		out.offs = append(out.offs, int32(len(out.raw)))
	}
	out.n = a.Len()
	return out
}
