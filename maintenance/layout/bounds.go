package layout

import (
	"bytes"
	"encoding/binary"
	"math"
	"unicode/utf8"

	"github.com/apache/iceberg-go"

	"catalogd/maintenance/zorder"
)

func compareBounds(itype iceberg.PrimitiveType, a, b []byte) int {
	t, ok := zorder.ParseType(itype.String())
	if !ok {
		return 0
	}
	return bytes.Compare(orderedBound(t, a), orderedBound(t, b))
}

// orderedBound gives the ordered bytes (without marker) of a footer's plain-encoded bound.
func orderedBound(t zorder.Type, plain []byte) []byte {
	switch t.Kind {
	case zorder.Boolean:
		return zorder.AppendBool(nil, len(plain) > 0 && plain[0] != 0)
	case zorder.Int, zorder.Date:
		return zorder.AppendInt(nil, int32(binary.LittleEndian.Uint32(plain)))
	case zorder.Float:
		return zorder.AppendFloat(nil, math.Float32frombits(binary.LittleEndian.Uint32(plain)))
	case zorder.Double:
		return zorder.AppendDouble(nil, math.Float64frombits(binary.LittleEndian.Uint64(plain)))
	case zorder.Decimal:
		high, low := decimalBound(t, plain)
		return zorder.AppendDecimal(nil, high, low, t.Precision)
	case zorder.String, zorder.UUID, zorder.Fixed, zorder.Binary:
		return zorder.AppendBytes(nil, plain)
	}
	return zorder.AppendLong(nil, int64(binary.LittleEndian.Uint64(plain)))
}

// promotedBound widens a bound from a file that was written before its column was promoted; false when its width fits
// no type that can become t.
func promotedBound(t zorder.Type, plain []byte) ([]byte, bool) {
	width := 8
	switch t.Kind {
	case zorder.String, zorder.Binary, zorder.Fixed, zorder.UUID:
		return plain, true
	case zorder.Decimal:
		return plain, len(plain) > 0 && len(plain) <= 16
	case zorder.Boolean:
		return plain, len(plain) == 1
	case zorder.Int, zorder.Date, zorder.Float:
		width = 4
	}
	if len(plain) == width {
		return plain, true
	}
	if len(plain) != 4 {
		return nil, false
	}
	narrow := binary.LittleEndian.Uint32(plain)
	switch t.Kind {
	case zorder.Long:
		return binary.LittleEndian.AppendUint64(nil, uint64(int64(int32(narrow)))), true
	case zorder.Double:
		return binary.LittleEndian.AppendUint64(nil, math.Float64bits(float64(math.Float32frombits(narrow)))), true
	case zorder.Timestamp, zorder.TimestampTz:
		return binary.LittleEndian.AppendUint64(nil, uint64(int64(int32(narrow))*microsPerDay)), true
	case zorder.TimestampNs, zorder.TimestampTzNs:
		return binary.LittleEndian.AppendUint64(nil, uint64(int64(int32(narrow))*microsPerDay*1000)), true
	}
	return nil, false
}

// decimalBound reads a decimal bound: little-endian when stored as an integer, big-endian bytes otherwise.
func decimalBound(t zorder.Type, plain []byte) (high int64, low uint64) {
	switch {
	case t.Precision <= 9 && len(plain) == 4:
		v := int64(int32(binary.LittleEndian.Uint32(plain)))
		return v >> 63, uint64(v)
	case t.Precision <= 18 && len(plain) == 8:
		v := int64(binary.LittleEndian.Uint64(plain))
		return v >> 63, uint64(v)
	}
	if len(plain) > 0 && plain[0]&0x80 != 0 {
		high, low = -1, ^uint64(0)
	}
	for _, b := range plain {
		high = high<<8 | int64(low>>56)
		low = low<<8 | uint64(b)
	}
	return high, low
}

// singleValue turns a footer's bound into the table format's single-value serialisation.
func singleValue(itype iceberg.PrimitiveType, plain []byte) []byte {
	d, ok := itype.(iceberg.DecimalType)
	if !ok {
		if _, boolean := itype.(iceberg.BooleanType); boolean && len(plain) > 0 && plain[0] != 0 {
			return []byte{1}
		}
		return append([]byte{}, plain...) // an empty string is a bound; nil is none
	}
	high, low := decimalBound(zorder.Type{Kind: zorder.Decimal, Precision: d.Precision()}, plain)
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(high))
	binary.BigEndian.PutUint64(b[8:], low)
	start := 0 // the fewest bytes that keep the sign
	for start < 15 && (b[start] == 0 && b[start+1]&0x80 == 0 || b[start] == 0xff && b[start+1]&0x80 != 0) {
		start++
	}
	return append([]byte(nil), b[start:]...)
}

// commonPrefix counts the characters (bytes for binary) that two bounds share at their start.
func commonPrefix(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func truncateLower(itype iceberg.PrimitiveType, bound []byte, limit int) []byte {
	if limit == 0 {
		return bound
	}
	switch itype.(type) {
	case iceberg.StringType:
		return bound[:characters(bound, limit)]
	case iceberg.BinaryType:
		return bound[:min(limit, len(bound))]
	}
	return bound
}

// truncateUpper shortens an upper bound and raises its last part, so that it stays above the value. ok is false when
// nothing can be raised: then there is no upper bound.
func truncateUpper(itype iceberg.PrimitiveType, bound []byte, limit int) (shortened []byte, ok bool) {
	if limit == 0 {
		return bound, true
	}
	switch itype.(type) {
	case iceberg.StringType:
		n := characters(bound, limit)
		if n == len(bound) {
			return bound, true
		}
		return raiseString(bound[:n])
	case iceberg.BinaryType:
		if len(bound) <= limit {
			return bound, true
		}
		return raiseBytes(bound[:limit])
	}
	return bound, true
}

// characters gives the bytes that the first n characters take.
func characters(b []byte, n int) int {
	at := 0
	for ; n > 0 && at < len(b); n-- {
		_, size := utf8.DecodeRune(b[at:])
		at += size
	}
	return at
}

func raiseString(b []byte) ([]byte, bool) {
	for len(b) > 0 {
		r, size := utf8.DecodeLastRune(b)
		head := b[:len(b)-size]
		if r != utf8.RuneError || size > 1 {
			for next := r + 1; next <= utf8.MaxRune; next++ {
				if utf8.ValidRune(next) {
					return utf8.AppendRune(append([]byte(nil), head...), next), true
				}
			}
		}
		b = head
	}
	return nil, false
}

func raiseBytes(b []byte) ([]byte, bool) {
	raised := append([]byte(nil), b...)
	for i := len(raised) - 1; i >= 0; i-- {
		if raised[i] < 0xff {
			raised[i]++
			return raised[:i+1], true
		}
	}
	return nil, false
}
