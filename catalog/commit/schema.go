package commit

import (
	"bytes"
	"slices"
	"strings"
)

// typeNestingMax bounds how deeply structs, lists and maps nest in a schema.
const typeNestingMax = 100

// schema is a schema's columns, flat and in order: a struct, list or map is followed by what it holds.
type schema struct {
	id          int
	columns     []column
	identifiers []int
	extra       object // members that we do not know
}

type role byte

const (
	roleField role = iota
	roleElement
	roleKey
	roleValue
)

type kind byte

const (
	kindPrimitive kind = iota
	kindStruct
	kindList
	kindMap
)

// column is a field of a struct, a list's element, a map's key or value. Texts are parts of the schema's text.
type column struct {
	id        int
	parent    int // index of the column that holds it; -1 at the top
	role      role
	kind      kind
	required  bool
	primitive string // the type in one spelling, when it is primitive
	name      []byte
	doc       []byte
	initial   []byte // initial-default; nil when absent or null
	write     []byte
	extra     object
}

var (
	schemaFields = []string{"type", "schema-id", "fields", "identifier-field-ids"}
	columnFields = []string{"id", "name", "required", "type", "doc", "initial-default", "write-default"}
	structFields = []string{"type", "fields"}
	listFields   = []string{"type", "element-id", "element", "element-required"}
	mapFields    = []string{"type", "key-id", "key", "value-id", "value", "value-required"}
)

// parseSchema reads a schema's text.
func parseSchema(text []byte) (s schema, err error) {
	o, err := parseObject(text, "schema", nil)
	if err != nil {
		return s, err
	}
	if typ, err := o.str("type"); err != nil || typ != "struct" {
		return s, shapef(`schema: field "type" must be "struct"`)
	}
	if s.id, _, err = o.integerOr("schema-id", 0); err != nil {
		return s, err
	}
	if o.get("identifier-field-ids") != nil {
		if s.identifiers, err = o.integers("identifier-field-ids"); err != nil {
			return s, err
		}
	}
	s.extra = o.others(schemaFields)
	return s, s.addFields(o, -1, 0)
}

// others gives the members that are not among the known names; nil when there are none.
func (o object) others(known []string) (rest object) {
	for _, m := range o {
		if !contains(known, m.name) {
			rest = append(rest, m)
		}
	}
	return rest
}

// addFields adds the fields of a struct.
func (s *schema) addFields(o object, parent, depth int) error {
	if depth > typeNestingMax {
		return shapef("schema: types nest more than %d deep", typeNestingMax)
	}
	fields, err := o.need("fields")
	if err != nil {
		return shapef("schema: %v", err)
	}
	return eachElement(fields, "fields", func(text []byte) error { return s.addField(text, parent, depth) })
}

func (s *schema) addField(text []byte, parent, depth int) error {
	var buf [8]member
	o, err := parseObject(text, "a field of the schema", buf[:0])
	if err != nil {
		return err
	}
	c := column{parent: parent, role: roleField, initial: o.get("initial-default"), write: o.get("write-default")}
	if c.id, err = o.integer("id"); err != nil {
		return shapef("schema: %v", err)
	}
	name, err := o.need("name")
	if err == nil {
		c.name, err = stringText(name, "name")
	}
	if err == nil {
		c.required, err = o.boolean("required")
	}
	if err == nil && o.get("doc") != nil {
		c.doc, err = stringText(o.get("doc"), "doc")
	}
	if err != nil {
		return shapef("schema: field %d: %v", c.id, err)
	}
	c.extra = o.others(columnFields)
	typ, err := o.need("type")
	if err != nil {
		return shapef("schema: field %d: %v", c.id, err)
	}
	return s.add(c, typ, depth)
}

func stringText(value []byte, name string) ([]byte, error) {
	if value[0] != '"' {
		return nil, shapef("field %q must be a string, not %s", name, kindOf(value))
	}
	return unquote(value)
}

// add adds a column and what its type holds.
func (s *schema) add(c column, typ []byte, depth int) error {
	if typ[0] == '"' {
		name, err := unquote(typ)
		if err != nil {
			return err
		}
		if c.primitive, err = primitiveType(name); err != nil {
			return shapef("schema: field %d: %v", c.id, err)
		}
		s.columns = append(s.columns, c)
		return nil
	}
	o, err := parseObject(typ, "type", nil)
	if err != nil {
		return shapef("schema: field %d: %v", c.id, err)
	}
	name, err := o.str("type")
	if err != nil {
		return shapef("schema: field %d: %v", c.id, err)
	}
	at := len(s.columns)
	switch name {
	case "struct":
		c.kind = kindStruct
		c.extra = append(c.extra, o.others(structFields)...)
		s.columns = append(s.columns, c)
		return s.addFields(o, at, depth+1)
	case "list":
		c.kind = kindList
		c.extra = append(c.extra, o.others(listFields)...)
		s.columns = append(s.columns, c)
		return s.addInner(o, inner{"element", roleElement, "element-required"}, at, depth+1)
	case "map":
		c.kind = kindMap
		c.extra = append(c.extra, o.others(mapFields)...)
		s.columns = append(s.columns, c)
		if err := s.addInner(o, inner{"key", roleKey, ""}, at, depth+1); err != nil {
			return err
		}
		return s.addInner(o, inner{"value", roleValue, "value-required"}, at, depth+1)
	}
	return shapef("schema: field %d: unknown type %q", c.id, name)
}

// inner is what a list or a map holds. Map keys are always required.
type inner struct {
	name     string
	role     role
	required string
}

func (s *schema) addInner(o object, in inner, parent, depth int) (err error) {
	if depth > typeNestingMax {
		return shapef("schema: types nest more than %d deep", typeNestingMax)
	}
	c := column{parent: parent, role: in.role, required: true, name: []byte(in.name)}
	if c.id, err = o.integer(in.name + "-id"); err == nil && in.required != "" {
		c.required, err = o.boolean(in.required)
	}
	var typ []byte
	if err == nil {
		typ, err = o.need(in.name)
	}
	if err != nil {
		return shapef("schema: field %d: %v", s.columns[parent].id, err)
	}
	return s.add(c, typ, depth)
}

// find gives the index of the column with an id; -1 when there is none.
func (s *schema) find(id int) int {
	for i := range s.columns {
		if s.columns[i].id == id {
			return i
		}
	}
	return -1
}

func (s *schema) highestID() int {
	highest := 0
	for i := range s.columns {
		highest = max(highest, s.columns[i].id)
	}
	return highest
}

// fullName joins the names from the top with dots.
func (s *schema) fullName(i int) string {
	if s.columns[i].parent < 0 {
		return string(s.columns[i].name)
	}
	return s.fullName(s.columns[i].parent) + "." + string(s.columns[i].name)
}

// same tells whether a schema of the table can stand for a new one: equal but for the schema's id, and nothing that
// only the new one has would be lost.
func (s *schema) same(added *schema) bool {
	if len(s.columns) != len(added.columns) || !sameSet(s.identifiers, added.identifiers) || !s.extra.covers(added.extra) {
		return false
	}
	for i := range s.columns {
		if !s.columns[i].same(&added.columns[i]) {
			return false
		}
	}
	return true
}

func (c *column) same(added *column) bool {
	return c.id == added.id && c.parent == added.parent && c.role == added.role && c.kind == added.kind &&
		c.required == added.required && c.primitive == added.primitive && bytes.Equal(c.name, added.name) &&
		bytes.Equal(c.doc, added.doc) && bytes.Equal(c.initial, added.initial) && bytes.Equal(c.write, added.write) &&
		c.extra.covers(added.extra)
}

// covers tells whether every member of the other object is in this one too.
func (o object) covers(other object) bool {
	for _, m := range other {
		if !bytes.Equal(o.raw(string(m.name)), m.value) {
			return false
		}
	}
	return true
}

func sameSet(a, b []int) bool {
	for _, pair := range [2][2][]int{{a, b}, {b, a}} {
		for _, id := range pair[0] {
			if !slices.Contains(pair[1], id) {
				return false
			}
		}
	}
	return true
}

// columnNames gives every name by which a property may speak of a column: the full path, and the path without the
// "element" and "value" steps above structs, as Java's short names.
func (s *schema) columnNames() map[string]struct{} {
	names := make(map[string]struct{}, len(s.columns))
	for i := range s.columns {
		names[s.fullName(i)] = struct{}{}
		names[s.shortName(i)] = struct{}{}
	}
	return names
}

func (s *schema) shortName(i int) string {
	var steps []string
	for at := i; at >= 0; at = s.columns[at].parent {
		c := &s.columns[at]
		if at != i && c.kind == kindStruct && (c.role == roleElement || c.role == roleValue) {
			continue
		}
		steps = append([]string{string(c.name)}, steps...)
	}
	return strings.Join(steps, ".")
}
