package manifest

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Limits of an Avro schema. Real ones have some fifty nodes and a few for each partition field.
const (
	schemaBytesMax  = 1 << 20
	schemaNodesMax  = 10_000
	schemaDepthMax  = 32
	decimalDigits   = 76 // more than any engine has; the decoder computes powers of ten from it
	decimalBytesMax = 64
)

// shape is the wire form of an Avro type.
type shape int

const (
	shapeNull shape = iota
	shapeBool
	shapeVarint // int and long
	shapeFloat
	shapeDouble
	shapeBytes // and string
	shapeFixed
	shapeEnum
	shapeArray
	shapeMap
	shapeUnion
	shapeRecord
)

var primitives = map[string]shape{
	"null": shapeNull, "boolean": shapeBool, "int": shapeVarint, "long": shapeVarint, "float": shapeFloat,
	"double": shapeDouble, "bytes": shapeBytes, "string": shapeBytes,
}

// node is a type of a schema. Records never refer to themselves or to each other by name: a tree is walked in as many
// steps as it has nodes.
type node struct {
	shape   shape
	text    bool // a string
	decimal bool
	size    int64    // of fixed: bytes; of enum: symbols
	names   []string // of a record's fields
	parts   []*node  // fields, branches, or the type of items
}

// field gives a record's field; nil when there is none.
func (n *node) field(name string) *node {
	if n == nil || n.shape != shapeRecord {
		return nil
	}
	for i, f := range n.names {
		if f == name {
			return n.parts[i]
		}
	}
	return nil
}

// parseSchema reads an Avro schema.
func parseSchema(text []byte) (*node, error) {
	if len(text) > schemaBytesMax {
		return nil, fmt.Errorf("its Avro schema has %d bytes, at most %d are read", len(text), schemaBytesMax)
	}
	var raw any
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, fmt.Errorf("its Avro schema is not JSON: %w", err)
	}
	p := &schemaParser{leaves: map[string]*node{}}
	return p.parse(raw, 0)
}

type schemaParser struct {
	nodes  int
	leaves map[string]*node // fixed and enum types by their last name
}

func (p *schemaParser) parse(raw any, depth int) (*node, error) {
	if p.nodes++; p.nodes > schemaNodesMax || depth > schemaDepthMax {
		return nil, fmt.Errorf("its Avro schema has more than %d types or is nested deeper than %d", schemaNodesMax, schemaDepthMax)
	}
	switch v := raw.(type) {
	case string:
		return p.named(v)
	case []any:
		n := &node{shape: shapeUnion}
		if len(v) == 0 {
			return nil, fmt.Errorf("its Avro schema has a union of nothing")
		}
		for _, b := range v {
			part, err := p.parse(b, depth+1)
			if err != nil {
				return nil, err
			}
			n.parts = append(n.parts, part)
		}
		return n, nil
	case map[string]any:
		return p.object(v, depth)
	}
	return nil, fmt.Errorf("its Avro schema has a type that is none: %.40v", raw)
}

func (p *schemaParser) named(name string) (*node, error) {
	if s, ok := primitives[name]; ok {
		return &node{shape: s, text: name == "string"}, nil
	}
	if n, ok := p.leaves[lastName(name)]; ok {
		return n, nil
	}
	return nil, fmt.Errorf("its Avro schema refers to type %.80q, which is not known there as a fixed or enum type", name)
}

func lastName(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

func (p *schemaParser) object(v map[string]any, depth int) (*node, error) {
	kind, isName := v["type"].(string)
	if !isName { // {"type": {"type": "array", ...}}
		if v["type"] == nil {
			return nil, fmt.Errorf("its Avro schema has a type without a name")
		}
		return p.parse(v["type"], depth+1)
	}
	switch kind {
	case "record":
		return p.record(v, depth)
	case "array":
		return p.items(shapeArray, v["items"], depth)
	case "map":
		return p.items(shapeMap, v["values"], depth)
	case "fixed":
		size, ok := v["size"].(float64)
		if !ok || size < 0 || size > blockBytesMax || size != float64(int64(size)) {
			return nil, fmt.Errorf("its Avro schema has a fixed type of size %.40v", v["size"])
		}
		n := &node{shape: shapeFixed, size: int64(size)}
		if err := decimalOf(v, n); err != nil {
			return nil, err
		}
		return n, p.define(v, n)
	case "enum":
		symbols, _ := v["symbols"].([]any)
		n := &node{shape: shapeEnum, size: int64(len(symbols))}
		return n, p.define(v, n)
	}
	n, err := p.named(kind)
	if err != nil {
		return nil, err
	}
	return n, decimalOf(v, n)
}

// decimalOf notes and checks a decimal.
func decimalOf(v map[string]any, n *node) error {
	if v["logicalType"] != "decimal" {
		return nil
	}
	scale, hasScale := v["scale"].(float64)
	precision, ok := v["precision"].(float64)
	if v["scale"] != nil && !hasScale || !ok || scale < 0 || scale > decimalDigits || precision < 0 || precision > decimalDigits ||
		n.shape == shapeFixed && n.size > decimalBytesMax {
		return fmt.Errorf("its Avro schema has a decimal of precision %.40v and scale %.40v", v["precision"], v["scale"])
	}
	n.decimal = true
	return nil
}

func (p *schemaParser) define(v map[string]any, n *node) error {
	name, _ := v["name"].(string)
	name = lastName(name)
	if old, twice := p.leaves[name]; twice && (old.size != n.size || old.shape != n.shape) {
		return fmt.Errorf("its Avro schema has two types %.80q", name)
	}
	p.leaves[name] = n
	return nil
}

func (p *schemaParser) items(s shape, raw any, depth int) (*node, error) {
	part, err := p.parse(raw, depth+1)
	if err != nil {
		return nil, err
	}
	return &node{shape: s, parts: []*node{part}}, nil
}

func (p *schemaParser) record(v map[string]any, depth int) (*node, error) {
	fields, ok := v["fields"].([]any)
	if !ok {
		return nil, fmt.Errorf("its Avro schema has a record without fields")
	}
	n := &node{shape: shapeRecord}
	for _, raw := range fields {
		f, _ := raw.(map[string]any)
		name, _ := f["name"].(string)
		part, err := p.parse(f["type"], depth+1)
		if err != nil {
			return nil, err
		}
		n.names, n.parts = append(n.names, name), append(n.parts, part)
	}
	return n, nil
}

// checkList holds a manifest list's schema against what its decoder relies on.
func checkList(root *node) error {
	if path := root.field("manifest_path"); path == nil || !path.text {
		return fmt.Errorf("its records are not those of a manifest list: there is no text manifest_path")
	}
	return nil
}

// checkEntries holds a manifest's schema against what its decoder relies on.
func checkEntries(root *node) error {
	for name, want := range map[string]shape{"status": shapeVarint, "data_file": shapeRecord} {
		if f := root.field(name); f == nil || f.shape != want {
			return fmt.Errorf("its records are not those of a manifest: %s is missing or of another type", name)
		}
	}
	file := root.field("data_file")
	for name, want := range map[string]shape{
		"file_path": shapeBytes, "file_format": shapeBytes, "partition": shapeRecord, "record_count": shapeVarint, "file_size_in_bytes": shapeVarint,
	} {
		if f := file.field(name); f == nil || f.shape != want {
			return fmt.Errorf("its records are not those of a manifest: data_file.%s is missing or of another type", name)
		}
	}
	return nil
}
