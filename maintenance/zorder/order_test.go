package zorder

import (
	"bytes"
	"cmp"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// same tells whether byte strings compare as the values do.
func same(t *rapid.T, a, b []byte, want int, what string) {
	if got := bytes.Compare(a, b); got != want {
		t.Fatalf("%s: bytes %x and %x compare as %d, values as %d", what, a, b, got, want)
	}
}

func TestOrder_Integers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Int64().Draw(t, "a"), rapid.Int64().Draw(t, "b")
		same(t, AppendLong(nil, a), AppendLong(nil, b), cmp.Compare(a, b), "long")
		c, d := int32(a), int32(b)
		same(t, AppendInt(nil, c), AppendInt(nil, d), cmp.Compare(c, d), "int")
		if got := cmp.Compare(OrderLong(a), OrderLong(b)); got != cmp.Compare(a, b) {
			t.Fatalf("words of %d and %d", a, b)
		}
		// int -> long: the words are those of the long, so boundaries stay good.
		if cmp.Compare(OrderLong(int64(c)), OrderLong(int64(d))) != cmp.Compare(c, d) {
			t.Fatalf("promoted words of %d and %d", c, d)
		}
	})
}

func floats() *rapid.Generator[float64] {
	return rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1),
		math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, -math.SmallestNonzeroFloat64,
		math.Float64frombits(0xfff8000000000001), math.Float64frombits(0x7ff0000000000001)}))
}

// compareFloats is the format's total order: -0 before +0, all NaNs equal and last.
func compareFloats(a, b float64) int {
	switch {
	case a != a && b != b:
		return 0
	case a != a:
		return 1
	case b != b:
		return -1
	case a == 0 && b == 0:
		return cmp.Compare(boolToInt(!math.Signbit(a)), boolToInt(!math.Signbit(b)))
	}
	return cmp.Compare(a, b)
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestOrder_Floats(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := floats().Draw(t, "a"), floats().Draw(t, "b")
		same(t, AppendDouble(nil, a), AppendDouble(nil, b), compareFloats(a, b), "double")
		c, d := float32(a), float32(b)
		same(t, AppendFloat(nil, c), AppendFloat(nil, d), compareFloats(float64(c), float64(d)), "float")
		if got := cmp.Compare(OrderDouble(float64(c)), OrderDouble(float64(d))); got != compareFloats(float64(c), float64(d)) {
			t.Fatalf("promoted words of %v and %v", c, d)
		}
	})
}

func TestOrder_Decimals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		precision := rapid.IntRange(1, 38).Draw(t, "precision")
		limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(precision)), nil)
		draw := func(name string) *big.Int {
			v := new(big.Int).SetBytes(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, name))
			v.Mod(v, limit)
			if rapid.Bool().Draw(t, name+" negative") {
				v.Neg(v)
			}
			return v
		}
		a, b := draw("a"), draw("b")
		for _, p := range []int{precision, min(precision+5, 38)} { // and after the column was widened
			same(t, decimalBytes(a, p), decimalBytes(b, p), a.Cmp(b), "decimal")
		}
	})
}

func decimalBytes(v *big.Int, precision int) []byte {
	two := new(big.Int).And(v, new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 128), big.NewInt(1)))
	low := new(big.Int).And(two, new(big.Int).SetUint64(math.MaxUint64)).Uint64()
	high := new(big.Int).Rsh(two, 64).Uint64()
	return AppendDecimal(nil, int64(high), low, precision)
}

func TestOrder_DecimalWidths(t *testing.T) {
	for _, c := range []struct{ precision, bytes int }{{1, 4}, {9, 4}, {10, 8}, {18, 8}, {19, 16}, {38, 16}} {
		if got := len(decimalBytes(big.NewInt(-1), c.precision)); got != c.bytes {
			t.Errorf("decimal(%d): %d bytes, want %d", c.precision, got, c.bytes)
		}
	}
}

func TestOrder_BytesAndBooleans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.String().Draw(t, "a"), rapid.String().Draw(t, "b")
		ra, rb := []rune(a), []rune(b) // code points, one by one
		want := cmp.Compare(len(ra), len(rb))
		for i := range min(len(ra), len(rb)) {
			if ra[i] != rb[i] {
				want = cmp.Compare(ra[i], rb[i])
				break
			}
		}
		same(t, AppendBytes(nil, []byte(a)), AppendBytes(nil, []byte(b)), want, "string")
	})
	// A uuid is unsigned: Java's own order would put ff before 00.
	if bytes.Compare(AppendBytes(nil, bytes.Repeat([]byte{0xff}, 16)), AppendBytes(nil, make([]byte, 16))) <= 0 {
		t.Error("uuid order")
	}
	if bytes.Compare(AppendBool(nil, false), AppendBool(nil, true)) >= 0 {
		t.Error("boolean order")
	}
}

func TestOrder_Nulls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := AppendBytes(AppendPresent(nil), rapid.SliceOf(rapid.Byte()).Draw(t, "value"))
		if bytes.Compare(AppendNull(nil, NullsFirst), v) >= 0 || bytes.Compare(AppendNull(nil, NullsLast), v) <= 0 {
			t.Fatalf("null beside %x", v)
		}
	})
}

// date -> timestamp: days become micros before they are ranked, and keep their order.
func TestOrder_DateToTimestamp(t *testing.T) {
	const micros = 86_400_000_000
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Int32Range(-1e6, 1e6).Draw(t, "a"), rapid.Int32Range(-1e6, 1e6).Draw(t, "b")
		same(t, AppendLong(nil, int64(a)*micros), AppendLong(nil, int64(b)*micros), bytes.Compare(AppendInt(nil, a), AppendInt(nil, b)), "date")
	})
}

func TestParseType(t *testing.T) {
	for _, text := range []string{"boolean", "int", "long", "float", "double", "date", "time", "timestamp", "timestamptz", "timestamp_ns",
		"timestamptz_ns", "string", "uuid", "binary", "fixed[16]", "decimal(9, 2)"} {
		parsed, ok := ParseType(text)
		if !ok || parsed.String() != text {
			t.Errorf("%s: %v %v", text, parsed, ok)
		}
	}
	if d, ok := ParseType("decimal(38,10)"); !ok || d.Precision != 38 || d.Scale != 10 {
		t.Errorf("decimal without a space: %v %v", d, ok)
	}
	for _, text := range []string{"variant", "unknown", "geometry", "geography(srid:4326)", "list<int>", "map<string, int>", "struct<1: a: int>",
		"decimal", "fixed", "decimal(9)", "decimal(39, 0)", "decimal(0, 0)", "fixed[-1]", "", "Int"} {
		_, err := TypeOf("a.b", text)
		want := "cannot cluster by \"a.b\": type " + text + " has no total order"
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestType_SameOrder(t *testing.T) {
	for _, c := range []struct {
		from, to string
		want     bool
	}{{"int", "long", true}, {"float", "double", true}, {"decimal(9, 2)", "decimal(18, 2)", true}, {"decimal(18, 2)", "decimal(19, 2)", false},
		{"decimal(9, 2)", "decimal(9, 3)", false}, {"date", "timestamp", false}, {"string", "binary", false}, {"long", "int", false}, {"uuid", "uuid", true}} {
		from, _ := ParseType(c.from)
		to, _ := ParseType(c.to)
		if got := from.SameOrder(to); got != c.want {
			t.Errorf("%s to %s: %v", c.from, c.to, got)
		}
	}
}
