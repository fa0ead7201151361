package zorder

import (
	"encoding/binary"
	"math"
)

// Two order-preserving forms of one value exist. Words (unsigned 64-bit) are what ranks are computed with; they don't
// change when an int column becomes long or a float column becomes double. Ordered bytes (Append...) compare by memcmp
// and are what boxes of row groups and tests use. Neither is ever stored beside data: a wider type changes the bytes.

const (
	signBit32 = uint32(1) << 31
	signBit64 = uint64(1) << 63

	// nanWord is the one place of all NaNs: above positive infinity.
	nanWord   = math.MaxUint64
	nanWord32 = math.MaxUint32
)

// NullOrder says on which side of all values null stands.
type NullOrder uint8

// The two orders. In ranks and boxes null is always first.
const (
	NullsFirst NullOrder = iota
	NullsLast
)

// The leading byte of an ordered value. Null is below or above every present value.
const (
	markerNullFirst = 0x00
	markerPresent   = 0x01
	markerNullLast  = 0x02
)

// AppendNull appends null.
func AppendNull(dst []byte, order NullOrder) []byte {
	if order == NullsLast {
		return append(dst, markerNullLast)
	}
	return append(dst, markerNullFirst)
}

// AppendPresent appends the byte that stands before a value; the value's own bytes follow.
func AppendPresent(dst []byte) []byte { return append(dst, markerPresent) }

// OrderBool gives the word of a boolean: false before true.
func OrderBool(v bool) uint64 {
	if v {
		return 1
	}
	return 0
}

// OrderLong gives the word of an int, long, date, time, timestamp of any unit, or an unscaled decimal up to 18 digits.
func OrderLong(v int64) uint64 { return uint64(v) ^ signBit64 }

// OrderDouble gives the word of a double, or of a float widened to double: -inf, ..., -0.0, +0.0, ..., +inf, NaN.
func OrderDouble(v float64) uint64 {
	if v != v {
		return nanWord
	}
	b := math.Float64bits(v)
	if b&signBit64 != 0 {
		return ^b
	}
	return b ^ signBit64
}

// AppendBool appends a boolean: one byte.
func AppendBool(dst []byte, v bool) []byte { return append(dst, byte(OrderBool(v))) }

// AppendInt appends an int or a date: four bytes.
func AppendInt(dst []byte, v int32) []byte {
	return binary.BigEndian.AppendUint32(dst, uint32(v)^signBit32)
}

// AppendLong appends a long, time or timestamp: eight bytes.
func AppendLong(dst []byte, v int64) []byte {
	return binary.BigEndian.AppendUint64(dst, OrderLong(v))
}

// AppendFloat appends a float: four bytes, NaN last.
func AppendFloat(dst []byte, v float32) []byte {
	b := math.Float32bits(v)
	switch {
	case v != v:
		b = nanWord32
	case b&signBit32 != 0:
		b = ^b
	default:
		b ^= signBit32
	}
	return binary.BigEndian.AppendUint32(dst, b)
}

// AppendDouble appends a double: eight bytes, NaN last.
func AppendDouble(dst []byte, v float64) []byte {
	return binary.BigEndian.AppendUint64(dst, OrderDouble(v))
}

// AppendDecimal appends an unscaled decimal given as the two halves of its 128-bit two's complement. The precision of
// the column's current type decides the width: four, eight or sixteen bytes.
func AppendDecimal(dst []byte, high int64, low uint64, precision int) []byte {
	switch {
	case precision <= 9:
		return AppendInt(dst, int32(low))
	case precision <= decimalLongPrecisionMax:
		return AppendLong(dst, int64(low))
	}
	dst = binary.BigEndian.AppendUint64(dst, uint64(high)^signBit64)
	return binary.BigEndian.AppendUint64(dst, low)
}

// AppendBytes appends a string, uuid, fixed or binary: its bytes as they are. For strings this is the order of code
// points; for uuids it is unsigned. It must be the last part of a key, since the bytes carry no end mark.
func AppendBytes(dst, v []byte) []byte { return append(dst, v...) }
