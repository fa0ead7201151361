package commit

import (
	"strings"

	"catalogd/internal/fault"
)

// sortField is a field of a sort order.
type sortField struct {
	sources   []int
	transform transform
	direction string
	nulls     string
	o         object
}

type sortOrder struct {
	id     int
	fields []sortField
	o      object
}

func parseOrder(text []byte) (s sortOrder, err error) {
	if s.o, err = parseObject(text, "sort order", nil); err != nil {
		return s, err
	}
	if s.id, _, err = s.o.integerOr("order-id", 0); err != nil {
		return s, err
	}
	fields, err := s.o.list("fields")
	if err != nil {
		return s, shapef("sort order: %v", err)
	}
	for _, text := range fields {
		var f sortField
		if f.o, err = parseObject(text, "sort field", nil); err != nil {
			return s, err
		}
		if f.transform, f.sources, err = termOf(f.o); err == nil {
			f.direction, err = wordOf(f.o, "direction", "asc", "desc")
		}
		if err == nil {
			f.nulls, err = wordOf(f.o, "null-order", "nulls-first", "nulls-last")
		}
		if err != nil {
			return s, shapef("sort field: %v", err)
		}
		s.fields = append(s.fields, f)
	}
	return s, nil
}

func wordOf(o object, name, one, other string) (string, error) {
	word, err := o.str(name)
	if err != nil {
		return "", err
	}
	if word = strings.ToLower(word); word != one && word != other {
		return "", shapef("field %q must be %s or %s, not %q", name, one, other, word)
	}
	return word, nil
}

func (s sortOrder) same(other sortOrder) bool {
	if len(s.fields) != len(other.fields) {
		return false
	}
	for i, f := range s.fields {
		o := other.fields[i]
		if f.transform != o.transform || !sameInts(f.sources, o.sources) || f.direction != o.direction || f.nulls != o.nulls {
			return false
		}
	}
	return true
}

func (s sortOrder) checkFits(in *schema) error {
	for _, f := range s.fields {
		for _, source := range f.sources {
			at := in.find(source)
			if at < 0 {
				return fault.New(fault.Validation, "Cannot find source column for sort field: %s(%d)", f.transform, source)
			}
			c := &in.columns[at]
			if c.kind != kindPrimitive || c.primitive == typeVariant {
				return fault.New(fault.Validation, "Cannot sort by non-primitive source field: %s", in.fullName(at))
			}
			if !f.transform.accepts(c.primitive) {
				return fault.New(fault.Validation, "Invalid source type %s for transform: %s", c.primitive, f.transform)
			}
		}
	}
	return nil
}

// text writes the order anew under an id.
func (s sortOrder) text(id int) []byte {
	fields := make([][]byte, len(s.fields))
	for i, f := range s.fields {
		fields[i] = rewrite(f.o, termEdits(f.o, f.sources)...)
	}
	return rewrite(s.o, edit{"order-id", number(int64(id))}, edit{"fields", joinArray(fields)})
}
