package commit

import (
	"strings"

	"catalogd/internal/fault"
)

// propertySet is the properties of a table or a view while updates are applied.
type propertySet struct {
	base  object            // as the base has them; nil while it is created
	now   map[string]string // as they are at this point of the request; nil until first asked for
	added []string          // names that the base does not have, in order
	moved bool
}

func (p *propertySet) get(name string) (string, bool) {
	if p.now == nil {
		p.now = p.base.stringValues()
	}
	value, set := p.now[name]
	return value, set
}

// set tells whether anything changed.
func (p *propertySet) set(name, value string) bool {
	old, set := p.get(name)
	if set && old == value {
		return false
	}
	if !set {
		p.added = append(p.added, name)
	}
	p.now[name] = value
	p.moved = true
	return true
}

// remove tells whether anything changed.
func (p *propertySet) remove(name string) bool {
	if _, set := p.get(name); !set {
		return false
	}
	delete(p.now, name)
	p.moved = true
	return true
}

// text writes the properties: those that stay keep their text and place, new ones come last.
func (p *propertySet) text() []byte {
	dst := []byte{'{'}
	written := make(map[string]struct{}, len(p.added))
	for _, m := range p.base {
		value, set := p.get(string(m.name))
		if !set {
			continue
		}
		text := m.value
		if was, _ := unquote(m.value); string(was) != value {
			text = quoted(value)
		}
		dst = appendMember(dst, string(m.name), text)
		written[string(m.name)] = struct{}{}
	}
	for _, name := range p.added {
		_, twice := written[name]
		if value, set := p.now[name]; set && !twice {
			dst = appendMember(dst, name, quoted(value))
			written[name] = struct{}{}
		}
	}
	return append(dst, '}')
}

// parsePropertyMembers reads a document's properties; nil when it has none.
func parsePropertyMembers(document object) (object, error) {
	text := document.get(keyProperties)
	if text == nil {
		return nil, nil
	}
	properties, err := parseObject(text, keyProperties, nil)
	if err != nil {
		return nil, err
	}
	for _, m := range properties {
		if m.value[0] != '"' {
			return nil, shapef("property %q must be a string, not %s", m.name, kindOf(m.value))
		}
	}
	return properties, nil
}

// stringValue gives one member of an object of strings, and whether it is there.
func (o object) stringValue(name string) (string, bool) {
	if text := o.raw(name); text != nil {
		value, _ := unquote(text) // checked when the document was read
		return string(value), true
	}
	return "", false
}

// stringValues gives all members of an object of strings.
func (o object) stringValues() map[string]string {
	values := make(map[string]string, len(o))
	for _, m := range o {
		value, _ := unquote(m.value) // checked when the document was read
		values[string(m.name)] = string(value)
	}
	return values
}

// reserved are the names that Iceberg keeps for facts of the table itself; they are never stored.
var reserved = []string{
	"format-version", "uuid", "snapshot-count", "current-snapshot-id", "current-snapshot-summary",
	"current-snapshot-timestamp-ms", "current-schema", "default-partition-spec", "default-sort-order",
}

func isReserved(property string) bool { return contains(reserved, []byte(property)) }

// retryPrefix begins the properties that every Java client reads as numbers; it dies on anything else.
const retryPrefix = "commit.retry."

// checkProperty refuses a value that clients could not read: Java's dies over it, so nobody could repair it.
func checkProperty(name, value string) error {
	if name == metadataCodecProperty && !strings.EqualFold(value, codecGzip) && !strings.EqualFold(value, codecNone) {
		return fault.New(fault.IllegalArgument, "Property %s must be %s or %s, not %q", name, codecGzip, codecNone, excerpt([]byte(value)))
	}
	if !strings.HasPrefix(name, retryPrefix) {
		return nil
	}
	switch strings.TrimPrefix(name, retryPrefix) {
	case "num-retries", "min-wait-ms", "max-wait-ms", "total-timeout-ms":
	default:
		return nil
	}
	if n, err := longOf([]byte(value), name); err != nil || n < 0 || n > 1<<31-1 {
		return fault.New(fault.Validation, "Property %s must be an integer of at least 0, not %q", name, excerpt([]byte(value)))
	}
	return nil
}
