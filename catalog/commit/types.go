package commit

import (
	"encoding/hex"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"catalogd/internal/fault"
)

// Names of the types that rules speak of.
const (
	typeUnknown = "unknown"
	typeVariant = "variant"
	typeFloat   = "float"
	typeDouble  = "double"
)

var (
	decimalType   = regexp.MustCompile(`^decimal\(\s*([0-9]{1,2})\s*,\s*([0-9]{1,2})\s*\)$`)
	fixedType     = regexp.MustCompile(`^fixed\[\s*([0-9]{1,9})\s*\]$`)
	geometryType  = regexp.MustCompile(`(?i)^geometry\s*(?:\(\s*([^,)]*?)\s*\))?$`)
	geographyType = regexp.MustCompile(`(?i)^geography\s*(?:\(\s*([^,)]*?)\s*(?:,\s*(\w*)\s*)?\))?$`)
)

// What geometry and geography mean without parameters.
const (
	crsDefault       = "OGC:CRS84"
	algorithmDefault = "spherical"
	precisionMax     = 38
)

// primitiveType gives a primitive type in one spelling, so that types can be compared.
func primitiveType(name []byte) (string, error) {
	for _, plain := range [...]string{
		"boolean", "int", "long", typeFloat, typeDouble, "date", "time", "timestamp", "timestamptz", "timestamp_ns",
		"timestamptz_ns", "string", "uuid", "binary", typeUnknown, typeVariant,
	} {
		if string(name) == plain {
			return plain, nil
		}
	}
	text := string(name)
	if m := decimalType.FindStringSubmatch(text); m != nil {
		precision, _ := strconv.Atoi(m[1])
		scale, _ := strconv.Atoi(m[2])
		if precision < 1 || precision > precisionMax || scale > precision {
			return "", shapef("invalid type %q: precision must be 1 to %d, scale at most precision", text, precisionMax)
		}
		return fmt.Sprintf("decimal(%d, %d)", precision, scale), nil
	}
	if m := fixedType.FindStringSubmatch(text); m != nil {
		length, _ := strconv.Atoi(m[1])
		return fmt.Sprintf("fixed[%d]", length), nil
	}
	if m := geometryType.FindStringSubmatch(text); m != nil {
		return "geometry(" + orDefault(m[1], crsDefault) + ")", nil
	}
	if m := geographyType.FindStringSubmatch(text); m != nil {
		return "geography(" + orDefault(m[1], crsDefault) + ", " + strings.ToLower(orDefault(m[2], algorithmDefault)) + ")", nil
	}
	return "", shapef("unknown type %q", excerpt(name))
}

func orDefault(text, absent string) string {
	if text == "" {
		return absent
	}
	return text
}

// typeName gives a primitive type without its parameters.
func typeName(primitive string) string {
	if end := strings.IndexAny(primitive, "(["); end > 0 {
		return primitive[:end]
	}
	return primitive
}

func needsV3(primitive string) bool {
	switch typeName(primitive) {
	case "timestamp_ns", "timestamptz_ns", typeUnknown, typeVariant, "geometry", "geography":
		return true
	}
	return false
}

func defaultsToNull(primitive string) bool {
	switch typeName(primitive) {
	case typeUnknown, typeVariant, "geometry", "geography":
		return true
	}
	return false
}

// check refuses a new schema that the format version or the specification does not allow.
func (s *schema) check(version int) error {
	if err := s.checkIDsAndNames(); err != nil {
		return err
	}
	for i := range s.columns {
		c := &s.columns[i]
		if version < formatVersionRows && needsV3(c.primitive) {
			return fault.New(fault.IllegalArgument, "Invalid schema for v%d: invalid type for %s: %s is not supported until v%d",
				version, s.fullName(i), c.primitive, formatVersionRows)
		}
		if version < formatVersionRows && c.initial != nil {
			return fault.New(fault.IllegalArgument,
				"Invalid schema for v%d: invalid initial default for %s: non-null default (%s) is not supported until v%d",
				version, s.fullName(i), excerpt(c.initial), formatVersionRows)
		}
		if c.primitive == typeUnknown && c.required {
			return fault.New(fault.IllegalArgument, "Cannot create required field with unknown type: %s", s.fullName(i))
		}
		for _, value := range [][]byte{c.initial, c.write} {
			if value == nil {
				continue
			}
			if err := checkDefault(c, value); err != nil {
				return fault.New(fault.IllegalArgument, "Invalid default value for %s: %v", s.fullName(i), err)
			}
		}
	}
	return s.checkIdentifiers()
}

func (s *schema) checkIDsAndNames() error {
	ids := make(map[int]struct{}, len(s.columns))
	names := make(map[string]struct{}, len(s.columns))
	for i := range s.columns {
		if _, twice := ids[s.columns[i].id]; twice {
			return fault.New(fault.IllegalArgument, "Invalid schema: multiple fields have the id %d", s.columns[i].id)
		}
		ids[s.columns[i].id] = struct{}{}
		name := s.fullName(i)
		if _, twice := names[name]; twice {
			return fault.New(fault.IllegalArgument, "Invalid schema: multiple fields for name %s", name)
		}
		names[name] = struct{}{}
	}
	return nil
}

func (s *schema) checkIdentifiers() error {
	for _, id := range s.identifiers {
		refuse := func(why string) error {
			return fault.New(fault.IllegalArgument, "Cannot add field %d as an identifier field: %s", id, why)
		}
		at := s.find(id)
		if at < 0 {
			return refuse("field does not exist")
		}
		c := &s.columns[at]
		switch {
		case c.kind != kindPrimitive:
			return refuse("not a primitive type field")
		case !c.required:
			return refuse("not a required field")
		case c.primitive == typeFloat || c.primitive == typeDouble:
			return refuse("must not be float or double field")
		}
		for up := c.parent; up >= 0; up = s.columns[up].parent {
			if s.columns[up].kind != kindStruct || !s.columns[up].required {
				return refuse("must not be nested in " + s.fullName(up))
			}
		}
	}
	return nil
}

// checkDefault refuses a default that readers could not turn into a value of the column's type. The value itself is
// kept exactly as it was sent.
func checkDefault(c *column, value []byte) error {
	if c.kind != kindPrimitive || defaultsToNull(c.primitive) {
		return shapef("must be null")
	}
	wrong := shapef("%s does not fit %s", excerpt(value), c.primitive)
	switch name := typeName(c.primitive); name {
	case "boolean":
		if value[0] != 't' && value[0] != 'f' {
			return wrong
		}
	case "int", "long":
		n, err := longOf(value, "default")
		if err != nil || name == "int" && (n < math.MinInt32 || n > math.MaxInt32) {
			return wrong
		}
	case typeFloat, typeDouble:
		if value[0] != '-' && (value[0] < '0' || value[0] > '9') {
			return wrong
		}
	default:
		text, err := stringOf(value, "default")
		if err != nil || !fitsText(c.primitive, text) {
			return wrong
		}
	}
	return nil
}

var (
	datePattern = regexp.MustCompile(`^[+-]?[0-9]{4,}-[0-9]{2}-[0-9]{2}$`)
	timePattern = regexp.MustCompile(`^[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?$`)
	zonePattern = regexp.MustCompile(`(Z|[+-][0-9]{2}:[0-9]{2})$`)
	decPattern  = regexp.MustCompile(`^[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)
)

// fitsText checks the defaults that JSON holds as strings.
func fitsText(primitive, text string) bool {
	switch typeName(primitive) {
	case "date":
		return datePattern.MatchString(text)
	case "time":
		return timePattern.MatchString(text)
	case "timestamp", "timestamp_ns":
		return fitsTimestamp(text)
	case "timestamptz", "timestamptz_ns":
		zone := zonePattern.FindString(text)
		return zone != "" && fitsTimestamp(strings.TrimSuffix(text, zone))
	case "uuid":
		return isUUID(text)
	case "decimal":
		return decPattern.MatchString(text)
	case "binary", "fixed":
		raw, err := hex.DecodeString(text)
		return err == nil && (primitive == "binary" || primitive == fmt.Sprintf("fixed[%d]", len(raw)))
	}
	return true
}

func fitsTimestamp(text string) bool {
	date, clock, found := strings.Cut(text, "T")
	return found && datePattern.MatchString(date) && timePattern.MatchString(clock)
}
