package maintenance

import (
	"encoding/binary"
	"math"

	"github.com/apache/iceberg-go"
)

// decimalBytes holds every decimal: 38 digits fit.
const decimalBytes = 16

// orderedBound turns a bound from a manifest (Iceberg's single-value serialization) into a text whose byte order is
// the order of values. Bounds written before a promotion (int to long, float to double) come out as the wider type.
// ok is false when the bytes are not a value of the type: then nothing is known.
func orderedBound(t iceberg.PrimitiveType, raw []byte) (string, bool) {
	switch t.(type) {
	case iceberg.BooleanType, iceberg.UUIDType, iceberg.FixedType, iceberg.StringType, iceberg.BinaryType:
		return string(raw), raw != nil
	case iceberg.Int32Type, iceberg.Int64Type, iceberg.DateType, iceberg.TimeType, iceberg.TimestampType,
		iceberg.TimestampTzType, iceberg.TimestampNsType, iceberg.TimestampTzNsType:
		return orderedInt(raw)
	case iceberg.Float32Type, iceberg.Float64Type:
		return orderedFloat(raw)
	case iceberg.DecimalType:
		return orderedDecimal(raw)
	}
	return "", false
}

func orderedInt(raw []byte) (string, bool) {
	var v int64
	switch len(raw) {
	case 4:
		v = int64(int32(binary.LittleEndian.Uint32(raw)))
	case 8:
		v = int64(binary.LittleEndian.Uint64(raw))
	default:
		return "", false
	}
	return string(binary.BigEndian.AppendUint64(nil, uint64(v)^(1<<63))), true
}

func orderedFloat(raw []byte) (string, bool) {
	var v float64
	switch len(raw) {
	case 4:
		v = float64(math.Float32frombits(binary.LittleEndian.Uint32(raw)))
	case 8:
		v = math.Float64frombits(binary.LittleEndian.Uint64(raw))
	default:
		return "", false
	}
	if math.IsNaN(v) {
		return "", false // bounds are never NaN
	}
	bits := math.Float64bits(v)
	if bits>>63 == 1 {
		bits = ^bits
	} else {
		bits ^= 1 << 63
	}
	return string(binary.BigEndian.AppendUint64(nil, bits)), true
}

// orderedDecimal widens the shortest two's complement that manifests hold.
func orderedDecimal(raw []byte) (string, bool) {
	if len(raw) == 0 || len(raw) > decimalBytes {
		return "", false
	}
	out := make([]byte, decimalBytes)
	if raw[0]&0x80 != 0 {
		for i := range out {
			out[i] = 0xff
		}
	}
	copy(out[decimalBytes-len(raw):], raw)
	out[0] ^= 0x80
	return string(out), true
}
