package commit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"catalogd/internal/fault"
)

// shapeError says that text does not have the expected shape. The entry points (Parse, DecodeRequest, ...) give it
// its fault kind: the same slip is the table's fault in a document and the caller's in a request.
type shapeError struct{ text string }

func (e *shapeError) Error() string { return e.text }

func shapef(format string, args ...any) error { return &shapeError{fmt.Sprintf(format, args...)} }

// member is one name with the text of its value. Both are parts of the parsed text, not copies.
type member struct{ name, value []byte }

// object is an object's members in their order. Names are unescaped and unique.
type object []member

// duplicatesScanMax is the size up to which duplicate names are found by comparing all pairs.
const duplicatesScanMax = 24

// parseObject splits an object into its members, appending to buf, which saves an allocation when it has room.
func parseObject(text []byte, what string, buf object) (object, error) {
	s := scanner{text: text}
	if s.peek() != '{' {
		return nil, shapef("%s must be an object, not %s", what, kindOf(text))
	}
	more, err := s.open('{', '}')
	for more && err == nil {
		var m member
		if m.name, err = s.key(); err != nil {
			break
		}
		if m.value, err = s.value(); err != nil {
			break
		}
		buf = append(buf, m)
		more, err = s.next('}')
	}
	if err != nil {
		return nil, err
	}
	return buf, buf.checkUnique(what)
}

func (o object) checkUnique(what string) error {
	if len(o) <= duplicatesScanMax {
		for i := range o {
			for j := range i {
				if bytes.Equal(o[i].name, o[j].name) {
					return shapef("%s has the field %q twice", what, o[i].name)
				}
			}
		}
		return nil
	}
	seen := make(map[string]struct{}, len(o))
	for _, m := range o {
		if _, twice := seen[string(m.name)]; twice {
			return shapef("%s has the field %q twice", what, m.name)
		}
		seen[string(m.name)] = struct{}{}
	}
	return nil
}

// get gives the text of a member's value; nil when it is absent or null.
func (o object) get(name string) []byte {
	if v := o.raw(name); v != nil && !isNull(v) {
		return v
	}
	return nil
}

// raw gives the text of a member's value, null included; nil when it is absent.
func (o object) raw(name string) []byte {
	for i := range o {
		if string(o[i].name) == name {
			return o[i].value
		}
	}
	return nil
}

func (o object) need(name string) ([]byte, error) {
	if v := o.get(name); v != nil {
		return v, nil
	}
	return nil, shapef("missing field %q", name)
}

// str reads a string that must be there.
func (o object) str(name string) (string, error) {
	v, err := o.need(name)
	if err != nil {
		return "", err
	}
	return stringOf(v, name)
}

// strOr reads a string that may be absent.
func (o object) strOr(name, absent string) (string, error) {
	v := o.get(name)
	if v == nil {
		return absent, nil
	}
	return stringOf(v, name)
}

// long reads a 64-bit integer that must be there.
func (o object) long(name string) (int64, error) {
	v, err := o.need(name)
	if err != nil {
		return 0, err
	}
	return longOf(v, name)
}

// size reads a 64-bit integer that must be there and must not be negative.
func (o object) size(name string) error {
	n, err := o.long(name)
	if err == nil && n < 0 {
		err = shapef("field %q must not be negative, but is %d", name, n)
	}
	return err
}

// longOr reads a 64-bit integer that may be absent; ok tells whether it is there.
func (o object) longOr(name string, absent int64) (n int64, ok bool, err error) {
	v := o.get(name)
	if v == nil {
		return absent, false, nil
	}
	n, err = longOf(v, name)
	return n, true, err
}

// integer reads a 32-bit integer that must be there: ids are Java ints.
func (o object) integer(name string) (int, error) {
	v, err := o.need(name)
	if err != nil {
		return 0, err
	}
	return integerOf(v, name)
}

// integerOr reads a 32-bit integer that may be absent.
func (o object) integerOr(name string, absent int) (n int, ok bool, err error) {
	v := o.get(name)
	if v == nil {
		return absent, false, nil
	}
	n, err = integerOf(v, name)
	return n, true, err
}

// boolean reads true or false, which must be there.
func (o object) boolean(name string) (bool, error) {
	v, err := o.need(name)
	if err != nil {
		return false, err
	}
	switch string(v) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, shapef("field %q must be true or false, not %s", name, kindOf(v))
}

// list reads the elements of an array that must be there.
func (o object) list(name string) ([][]byte, error) {
	v, err := o.need(name)
	if err != nil {
		return nil, err
	}
	return parseArray(v, name)
}

// listUpTo is list for arrays whose length is the caller's choice: a longer one is a fault.TooLarge, found before
// anything is kept of the rest.
func (o object) listUpTo(name string, lengthMax int) ([][]byte, error) {
	v, err := o.need(name)
	if err != nil {
		return nil, err
	}
	var elements [][]byte
	err = eachElement(v, name, func(e []byte) error {
		if len(elements) == lengthMax {
			return fault.New(fault.TooLarge, "list %q has more than %d elements, all that this request may still hold: split the request", name, lengthMax)
		}
		elements = append(elements, e)
		return nil
	})
	return elements, err
}

// integers reads an array of 32-bit integers that must be there.
func (o object) integers(name string) ([]int, error) {
	elements, err := o.list(name)
	if err != nil {
		return nil, err
	}
	ids := make([]int, len(elements))
	for i, e := range elements {
		if ids[i], err = integerOf(e, name); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// longs reads an array of 64-bit integers that must be there.
func (o object) longs(name string) ([]int64, error) {
	v, err := o.need(name)
	if err != nil {
		return nil, err
	}
	var ids []int64
	err = eachElement(v, name, func(e []byte) error {
		id, err := longOf(e, name)
		ids = append(ids, id)
		return err
	})
	return ids, err
}

// parseArray splits an array into its elements.
func parseArray(text []byte, what string) ([][]byte, error) {
	var elements [][]byte
	err := eachElement(text, what, func(e []byte) error {
		elements = append(elements, e)
		return nil
	})
	return elements, err
}

// eachElement calls see with the text of every element.
func eachElement(text []byte, what string, see func([]byte) error) error {
	s := scanner{text: text}
	if s.peek() != '[' {
		return shapef("%s must be an array, not %s", what, kindOf(text))
	}
	more, err := s.open('[', ']')
	for more && err == nil {
		var e []byte
		if e, err = s.value(); err != nil {
			break
		}
		if err = see(e); err != nil {
			break
		}
		more, err = s.next(']')
	}
	return err
}

// stringMap reads an object whose values are all strings, as properties and summaries are.
func stringMap(text []byte, what string) (map[string]string, error) {
	o, err := parseObject(text, what, nil)
	if err != nil {
		return nil, err
	}
	values := make(map[string]string, len(o))
	for _, m := range o {
		v, err := stringOf(m.value, fmt.Sprintf("%s.%s", what, m.name))
		if err != nil {
			return nil, err
		}
		values[string(m.name)] = v
	}
	return values, nil
}

func isNull(value []byte) bool { return len(value) == 4 && value[0] == 'n' }

// kindOf names what a value is, for messages.
func kindOf(value []byte) string {
	if len(value) == 0 {
		return "nothing"
	}
	switch value[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

func stringOf(value []byte, name string) (string, error) {
	if len(value) == 0 || value[0] != '"' {
		return "", shapef("field %q must be a string, not %s", name, kindOf(value))
	}
	s, err := unquote(value)
	return string(s), err
}

// longOf reads an integer without going through a floating point number: snapshot ids have 19 digits.
func longOf(value []byte, name string) (int64, error) {
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil {
		return 0, shapef("field %q must be a 64-bit integer, not %s", name, excerpt(value))
	}
	return n, nil
}

func integerOf(value []byte, name string) (int, error) {
	n, err := longOf(value, name)
	if err != nil || n < math.MinInt32 || n > math.MaxInt32 {
		return 0, shapef("field %q must be a 32-bit integer, not %s", name, excerpt(value))
	}
	return int(n), nil
}

// excerptBytesMax bounds how much of a caller's text a message repeats.
const excerptBytesMax = 40

func excerpt(value []byte) string {
	if len(value) == 0 || value[0] == '{' || value[0] == '[' {
		return kindOf(value)
	}
	if len(value) > excerptBytesMax {
		return string(bytes.ToValidUTF8(value[:excerptBytesMax], nil)) + "..."
	}
	return string(value)
}

// unquote gives what a string's text stands for; a part of the text itself when nothing is escaped.
func unquote(quoted []byte) ([]byte, error) {
	inside := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inside, '\\') < 0 {
		return inside, nil
	}
	var s string
	if err := json.Unmarshal(quoted, &s); err != nil {
		return nil, shapef("not a JSON string: %s", excerpt(quoted))
	}
	return []byte(s), nil
}

const hexDigits = "0123456789abcdef"

// appendQuoted writes a string as JSON, escaping only what must be: paths and SQL stay readable.
func appendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf || !stringStops[c] {
			i++
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\t':
			dst = append(dst, '\\', 't')
		case '\r':
			dst = append(dst, '\\', 'r')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		start = i
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

func quoted(s string) []byte { return appendQuoted(make([]byte, 0, len(s)+2), s) }

func number(n int64) []byte { return strconv.AppendInt(nil, n, 10) }

// edit is a change of one member of a small object; value nil removes it.
type edit struct {
	name  string
	value []byte
}

// rewrite writes an object anew with some members replaced, removed or, at the end, added.
// Other members keep their text and order.
func rewrite(o object, edits ...edit) []byte {
	size := 2
	for _, m := range o {
		size += len(m.name) + len(m.value) + 4
	}
	for _, e := range edits {
		size += len(e.name) + len(e.value) + 4
	}
	dst := append(make([]byte, 0, size), '{')
	done := make([]bool, len(edits))
	for _, m := range o {
		value := m.value
		for i, e := range edits {
			if string(m.name) == e.name {
				value, done[i] = e.value, true
			}
		}
		dst = appendMember(dst, string(m.name), value)
	}
	for i, e := range edits {
		if !done[i] {
			dst = appendMember(dst, e.name, e.value)
		}
	}
	return append(dst, '}')
}

func appendMember(dst []byte, name string, value []byte) []byte {
	if value == nil {
		return dst
	}
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	dst = appendQuoted(dst, name)
	dst = append(dst, ':')
	return append(dst, value...)
}

// withoutNulls drops members that are null: for the fields of the specification null and absent mean the same,
// and Java's reader refuses the whole document over some of them.
func (o object) withoutNulls(names ...string) object {
	kept := make(object, 0, len(o))
	for _, m := range o {
		if isNull(m.value) && contains(names, m.name) {
			continue
		}
		kept = append(kept, m)
	}
	return kept
}

// withoutAnyNull is withoutNulls for objects where no member means anything by being null.
func (o object) withoutAnyNull() object {
	kept := make(object, 0, len(o))
	for _, m := range o {
		if !isNull(m.value) {
			kept = append(kept, m)
		}
	}
	return kept
}

func contains(names []string, name []byte) bool {
	for _, n := range names {
		if n == string(name) {
			return true
		}
	}
	return false
}
