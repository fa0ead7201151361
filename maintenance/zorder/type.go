package zorder

import (
	"fmt"
	"strconv"
	"strings"

	"catalogd/internal/fault"
)

// Kind names a primitive type that has a total order.
type Kind uint8

// The kinds that can be clustered by: every primitive type of the table format up to version 3 but variant, unknown
// and the two spatial types, which have no total order.
const (
	Boolean Kind = iota + 1
	Int
	Long
	Float
	Double
	Date
	Time
	Timestamp
	TimestampTz
	TimestampNs
	TimestampTzNs
	Decimal
	String
	UUID
	Fixed
	Binary
)

var kindNames = map[Kind]string{
	Boolean: "boolean", Int: "int", Long: "long", Float: "float", Double: "double", Date: "date", Time: "time",
	Timestamp: "timestamp", TimestampTz: "timestamptz", TimestampNs: "timestamp_ns", TimestampTzNs: "timestamptz_ns",
	Decimal: "decimal", String: "string", UUID: "uuid", Fixed: "fixed", Binary: "binary",
}

var kindsByName = func() map[string]Kind {
	byName := make(map[string]Kind, len(kindNames))
	for kind, name := range kindNames {
		byName[name] = kind
	}
	return byName
}()

// Decimals up to this precision fit a 64-bit unscaled value.
const decimalLongPrecisionMax = 18

// Type is a primitive type with its parameters. Precision and Scale belong to Decimal, Length to Fixed.
type Type struct {
	Kind             Kind
	Precision, Scale int
	Length           int
}

// ParseType reads a type in the spelling of table metadata: "long", "decimal(9, 2)", "fixed[16]". ok is false for a type
// that has no total order (or that is unknown).
func ParseType(text string) (t Type, ok bool) {
	text = strings.TrimSpace(text)
	if kind, known := kindsByName[text]; known && kind != Decimal && kind != Fixed {
		return Type{Kind: kind}, true
	}
	if arguments, found := parameters(text, "decimal(", ")"); found && len(arguments) == 2 {
		t = Type{Kind: Decimal, Precision: arguments[0], Scale: arguments[1]}
		return t, t.Precision >= 1 && t.Precision <= 38
	}
	if arguments, found := parameters(text, "fixed[", "]"); found && len(arguments) == 1 {
		return Type{Kind: Fixed, Length: arguments[0]}, true
	}
	return Type{}, false
}

func parameters(text, prefix, suffix string) ([]int, bool) {
	if !strings.HasPrefix(text, prefix) || !strings.HasSuffix(text, suffix) {
		return nil, false
	}
	var numbers []int
	for _, part := range strings.Split(text[len(prefix):len(text)-len(suffix)], ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 0 {
			return nil, false
		}
		numbers = append(numbers, n)
	}
	return numbers, true
}

// TypeOf is ParseType with the refusal that a caller is shown: it names the column and the type. Raised when a policy is
// set, so that nobody learns of it from a failed job.
func TypeOf(column, typeText string) (Type, error) {
	t, ok := ParseType(typeText)
	if !ok {
		return Type{}, fault.New(fault.Validation, "cannot cluster by %q: type %s has no total order", column, typeText)
	}
	return t, nil
}

// String gives the type in the spelling of table metadata.
func (t Type) String() string {
	switch t.Kind {
	case Decimal:
		return fmt.Sprintf("decimal(%d, %d)", t.Precision, t.Scale)
	case Fixed:
		return fmt.Sprintf("fixed[%d]", t.Length)
	}
	return kindNames[t.Kind]
}

// Words tells whether values of the type are ranked as unsigned 64-bit words (Order... in order.go); otherwise they are
// ranked as byte strings.
func (t Type) Words() bool {
	switch t.Kind {
	case String, UUID, Fixed, Binary:
		return false
	case Decimal:
		return t.Precision <= decimalLongPrecisionMax
	}
	return true
}

// SameOrder tells whether boundaries built for t can rank values of type u: the same type, or one that t was promoted to
// without a change of the ordered form.
func (t Type) SameOrder(u Type) bool {
	if t == u {
		return true
	}
	switch {
	case t.Kind == Int && u.Kind == Long, t.Kind == Float && u.Kind == Double:
		return true
	case t.Kind == Decimal && u.Kind == Decimal:
		return t.Scale == u.Scale && t.Words() == u.Words()
	}
	return false
}
