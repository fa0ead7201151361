package layout

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/apache/arrow-go/v18/arrow"

	"catalogd/maintenance/zorder"
)

// orderedWord gives the order-preserving form of a raw word of a column: what zorder ranks.
func orderedWord(t zorder.Type, w uint64) uint64 {
	switch t.Kind {
	case zorder.Boolean:
		return w
	case zorder.Int, zorder.Date:
		return zorder.OrderLong(int64(int32(w)))
	case zorder.Float:
		return zorder.OrderDouble(float64(math.Float32frombits(uint32(w))))
	case zorder.Double:
		return zorder.OrderDouble(math.Float64frombits(w))
	}
	return zorder.OrderLong(int64(w))
}

// words fills dst with the ordered forms of a column that is ranked by words. Nulls get anything.
func (c *clusterColumn) words(dst []uint64, v *vec) []uint64 {
	dst = grow(dst[:0], v.n)
	switch v.class {
	case class8:
		if c.t.Kind == zorder.Double {
			for i, w := range v.w8 {
				dst[i] = orderedWord(c.t, w)
			}
			break
		}
		for i, w := range v.w8 {
			dst[i] = zorder.OrderLong(int64(w))
		}
	case class4:
		for i, w := range v.w4 {
			dst[i] = orderedWord(c.t, uint64(w))
		}
	case classBit:
		for i := range dst {
			dst[i] = zorder.OrderBool(v.bitAt(i))
		}
	case classFixed: // a decimal of up to 18 digits: its low half is all of it
		for i := range dst {
			dst[i] = zorder.OrderLong(int64(binary.LittleEndian.Uint64(v.fixedAt(i))))
		}
	}
	return dst
}

// valueAt gives the ordered bytes of a present value of a column that is ranked by bytes. The result may be scratch.
func (c *clusterColumn) valueAt(v *vec, i int, scratch []byte) []byte {
	if v.class == classBytes {
		return v.bytesAt(i)
	}
	b := v.fixedAt(i)
	if c.t.Kind == zorder.Decimal {
		return zorder.AppendDecimal(scratch[:0], int64(binary.LittleEndian.Uint64(b[8:])), binary.LittleEndian.Uint64(b), c.t.Precision)
	}
	return b
}

// clusterVec gives the values of a clustering column out of a batch's columns: a top-level column itself, or a field of
// structs.
func (p *plan) clusterVec(c *clusterColumn, columns []*vec) (*vec, error) {
	v := columns[c.top]
	if len(c.path) == 0 {
		return v, nil
	}
	a, err := v.nestedArray(p.columns[c.top].field.Type)
	if err != nil {
		return nil, err
	}
	defer a.Release()
	class, width := classOf(p.leafType(c))
	return structField(a, c.path, class, width)
}

func (p *plan) leafType(c *clusterColumn) arrow.DataType {
	t := p.columns[c.top].field.Type
	for _, step := range c.path {
		t = t.(*arrow.StructType).Field(step).Type
	}
	return t
}

// ranker is one worker's way from values of a clustering column to ranks.
type ranker struct {
	c        *clusterColumn
	bounds   *zorder.Column
	d        *dictionary // nil: the column is never coded
	byCode   []uint32
	words    []uint64
	lastText []byte
	scratch  []byte
	edges    [2]int64 // rows that fell into the lowest and the highest bin
}

func (r *ranker) rank(dst []uint32, v *vec) []uint32 {
	dst = grow(dst[:0], v.n)
	switch {
	case v.class == class2:
		r.learnCodes()
		for i, code := range v.w2 {
			dst[i] = r.byCode[code]
		}
	case r.c.t.Words():
		r.words = r.c.words(r.words, v)
		r.bounds.RankWords(dst, r.words)
	default:
		r.rankValues(dst, v)
	}
	if v.nulls > 0 {
		for i := range dst {
			if v.isNull(i) {
				dst[i] = r.bounds.NullRank()
			}
		}
	}
	return dst
}

func (r *ranker) rankValues(dst []uint32, v *vec) {
	var last uint32
	known := false
	for i := range dst {
		if v.nulls > 0 && v.isNull(i) {
			continue
		}
		value := r.c.valueAt(v, i, r.scratch)
		if !known || !bytes.Equal(value, r.lastText) {
			last, known = r.bounds.RankValue(value), true
			r.lastText = append(r.lastText[:0], value...)
		}
		dst[i] = last
	}
}

// learnCodes ranks the codes that were given since the last time. Code 0 also stands for nulls and always has a rank.
func (r *ranker) learnCodes() {
	r.d.mu.Lock()
	words, values := r.d.words, r.d.values
	r.d.mu.Unlock()
	for code := len(r.byCode); code < len(words)+len(values); code++ {
		var rank uint32
		switch {
		case r.c.t.Words():
			rank = r.bounds.RankWord(orderedWord(r.c.t, words[code]))
		default:
			rank = r.bounds.RankValue(values[code])
		}
		r.byCode = append(r.byCode, rank)
	}
	if len(r.byCode) == 0 {
		r.byCode = append(r.byCode[:0], r.bounds.NullRank())
	}
}
