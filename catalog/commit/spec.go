package commit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"catalogd/internal/fault"
)

// partitionIDBeforeFirst is last-partition-id of a table that was never partitioned: field ids start at 1000.
const partitionIDBeforeFirst = 999

// transform is what a partition or sort field does to its source. Unknown ones are kept as they are written.
type transform struct {
	name string // lower case when known
	arg  string // of bucket and truncate
}

func (t transform) String() string {
	if t.arg != "" {
		return t.name + "[" + t.arg + "]"
	}
	return t.name
}

func parseTransform(text string) (transform, error) {
	name, rest, hasArg := strings.Cut(strings.ToLower(text), "[")
	switch name {
	case "identity", "void", "year", "month", "day", "hour":
		if !hasArg {
			return transform{name: name}, nil
		}
	case "bucket", "truncate":
		arg, closed := strings.CutSuffix(rest, "]")
		n, err := strconv.ParseInt(strings.TrimSpace(arg), 10, 32)
		if !hasArg || !closed || err != nil || n <= 0 {
			return transform{}, shapef("invalid transform %q: %s needs a positive number in brackets", text, name)
		}
		return transform{name: name, arg: strconv.FormatInt(n, 10)}, nil
	}
	if text == "" {
		return transform{}, shapef("a transform must not be empty")
	}
	return transform{name: text}, nil
}

// accepts tells whether the transform takes a column of a primitive type. Unknown transforms are taken on trust.
func (t transform) accepts(primitive string) bool {
	name := typeName(primitive)
	is := func(names ...string) bool { return contains(names, []byte(name)) }
	timestamps := is("timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns")
	switch t.name {
	case "identity":
		return !is(typeVariant, "geometry", "geography")
	case "bucket":
		return timestamps || is("int", "long", "date", "time", "string", "binary", "fixed", "decimal", "uuid")
	case "truncate":
		return is("int", "long", "string", "binary", "decimal")
	case "year", "month", "day":
		return timestamps || name == "date"
	case "hour":
		return timestamps
	}
	return true
}

func (t transform) isVoid() bool { return t.name == "void" }

// specField is a partition field. A transform of several arguments has several sources.
type specField struct {
	name      string
	sources   []int
	transform transform
	id        int // 0 when the request left it to us
	o         object
}

func (f specField) String() string {
	return fmt.Sprintf("%d: %s: %s(%s)", f.id, f.name, f.transform, joinInts(f.sources))
}

func joinInts(ids []int) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = strconv.Itoa(id)
	}
	return strings.Join(texts, ", ")
}

// means tells whether two fields partition alike; names and ids do not matter.
func (f specField) means(other specField) bool {
	return f.transform == other.transform && sameInts(f.sources, other.sources)
}

func sameInts(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

type partitionSpec struct {
	id     int
	fields []specField
	o      object
}

func parseSpec(text []byte) (p partitionSpec, err error) {
	if p.o, err = parseObject(text, "partition spec", nil); err != nil {
		return p, err
	}
	if p.id, _, err = p.o.integerOr("spec-id", 0); err != nil {
		return p, err
	}
	fields, err := p.o.list("fields")
	if err != nil {
		return p, shapef("partition spec: %v", err)
	}
	for _, text := range fields {
		f, err := parseSpecField(text)
		if err != nil {
			return p, err
		}
		p.fields = append(p.fields, f)
	}
	return p, nil
}

func parseSpecField(text []byte) (f specField, err error) {
	if f.o, err = parseObject(text, "partition field", nil); err != nil {
		return f, err
	}
	if f.name, err = f.o.str("name"); err != nil {
		return f, shapef("partition field: %v", err)
	}
	if f.transform, f.sources, err = termOf(f.o); err != nil {
		return f, shapef("partition field %q: %v", f.name, err)
	}
	var found bool
	if f.id, found, err = f.o.integerOr("field-id", 0); err == nil && found && f.id <= 0 {
		err = shapef(`field "field-id" must be positive`)
	}
	if err != nil {
		return f, shapef("partition field %q: %v", f.name, err)
	}
	return f, nil
}

// termOf reads the transform and the sources of a partition or sort field.
func termOf(o object) (t transform, sources []int, err error) {
	text, err := o.str("transform")
	if err != nil {
		return t, nil, err
	}
	if t, err = parseTransform(text); err != nil {
		return t, nil, err
	}
	if o.get("source-ids") != nil {
		if sources, err = o.integers("source-ids"); err == nil && len(sources) == 0 {
			err = shapef(`field "source-ids" must not be empty`)
		}
		return t, sources, err
	}
	source, err := o.integer("source-id")
	return t, []int{source}, err
}

// same tells whether a spec partitions as another one does: sources, transforms and names in the same order.
func (p partitionSpec) same(other partitionSpec) bool {
	if len(p.fields) != len(other.fields) {
		return false
	}
	for i, f := range p.fields {
		if f.name != other.fields[i].name || !f.means(other.fields[i]) {
			return false
		}
	}
	return true
}

// text writes the spec anew under an id, with the ids of its fields.
func (p partitionSpec) text(id int) []byte {
	fields := make([][]byte, len(p.fields))
	for i, f := range p.fields {
		edits := append(termEdits(f.o, f.sources), edit{"field-id", number(int64(f.id))})
		fields[i] = rewrite(f.o, edits...)
	}
	return rewrite(p.o, edit{"spec-id", number(int64(id))}, edit{"fields", joinArray(fields)})
}

// termEdits writes one source as source-id, which every reader knows, and several as source-ids.
func termEdits(o object, sources []int) []edit {
	if len(sources) == 1 {
		return []edit{{"source-id", number(int64(sources[0]))}, {"source-ids", nil}}
	}
	edits := []edit{{"source-ids", []byte("[" + strings.ReplaceAll(joinInts(sources), " ", "") + "]")}}
	if isNull(o.raw("source-id")) {
		edits = append(edits, edit{"source-id", nil})
	}
	return edits
}

// checkFits refuses a spec that the schema cannot serve.
func (p partitionSpec) checkFits(s *schema) error {
	for _, f := range p.fields {
		if f.transform.isVoid() {
			continue
		}
		for _, source := range f.sources {
			at := s.find(source)
			if at < 0 {
				return fault.New(fault.Validation, "Cannot find source column for partition field: %s", f)
			}
			c := &s.columns[at]
			if c.kind != kindPrimitive || c.primitive == typeVariant {
				return fault.New(fault.Validation, "Cannot partition by non-primitive source field: %s", s.fullName(at))
			}
			if !f.transform.accepts(c.primitive) {
				return fault.New(fault.Validation, "Invalid source type %s for transform: %s", c.primitive, f.transform)
			}
			for up := c.parent; up >= 0; up = s.columns[up].parent {
				if s.columns[up].kind != kindStruct {
					return fault.New(fault.Validation, "Invalid partition field parent: %s is not a struct", s.fullName(up))
				}
			}
		}
	}
	return nil
}

// checkNames refuses names that would clash in the spec or with the schema's columns.
func (p partitionSpec) checkNames(s *schema) error {
	ids := make(map[int]struct{}, len(p.fields))
	names := make(map[string]struct{}, len(p.fields))
	columns := make(map[string]int, len(s.columns))
	for i := range s.columns {
		columns[s.fullName(i)] = s.columns[i].id
	}
	for _, f := range p.fields {
		if f.name == "" {
			return fault.New(fault.IllegalArgument, "Cannot use empty partition name")
		}
		if _, twice := names[f.name]; twice {
			return fault.New(fault.IllegalArgument, "Cannot use partition name more than once: %s", f.name)
		}
		names[f.name] = struct{}{}
		if _, twice := ids[f.id]; twice && f.id != 0 {
			return fault.New(fault.IllegalArgument, "Cannot use partition field id more than once: %d", f.id)
		}
		ids[f.id] = struct{}{}
		if id, clash := columns[f.name]; clash && !slices.Contains(f.sources, id) {
			return fault.New(fault.IllegalArgument, "Cannot create partition from name that exists in schema: %s", f.name)
		}
	}
	return nil
}

// specOfFields makes a spec of v1's partition-spec, a list of fields whose ids may be missing.
func specOfFields(fields []byte) ([]byte, error) {
	text := append(append([]byte(`{"spec-id":0,"fields":`), fields...), '}')
	p, err := parseSpec(text)
	if err != nil {
		return nil, err
	}
	for i := range p.fields {
		if p.fields[i].id == 0 {
			p.fields[i].id = partitionIDBeforeFirst + 1 + i
		}
	}
	return p.text(0), nil
}

// fieldsOfSpec gives the text of a spec's field list.
func fieldsOfSpec(spec []byte) []byte {
	o, err := parseObject(spec, "partition spec", nil)
	if err != nil {
		return []byte("[]")
	}
	return o.get("fields")
}

func highestPartitionID(specs []part) (int, error) {
	highest := partitionIDBeforeFirst
	for _, p := range specs {
		spec, err := parseSpec(p.text)
		if err != nil {
			return 0, err
		}
		for _, f := range spec.fields {
			highest = max(highest, f.id)
		}
	}
	return highest, nil
}
