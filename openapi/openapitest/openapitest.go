// Package openapitest checks answers against the OpenAPI documents. It knows as much of JSON Schema as the documents
// use: references, types, required members, lists, enumerations, constants, allOf, oneOf and anyOf.
package openapitest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"catalogd/openapi"
)

// Document is a parsed OpenAPI document.
type Document struct{ root map[string]any }

// Load reads one of the embedded documents.
func Load(file string) (*Document, error) {
	text, err := openapi.Files.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var root any
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	d := &Document{}
	d.root, _ = textKeys(root).(map[string]any)
	return d, nil
}

// textKeys turns the keys of all maps into text: YAML reads a status as a number.
func textKeys(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, member := range v {
			v[key] = textKeys(member)
		}
	case []any:
		for i, element := range v {
			v[i] = textKeys(element)
		}
	case map[any]any:
		out := make(map[string]any, len(v))
		for key, member := range v {
			out[fmt.Sprint(key)] = textKeys(member)
		}
		return out
	}
	return v
}

// ErrUndescribed tells that the document has no such path, or no such method of it.
var ErrUndescribed = errors.New("the document does not describe this operation")

// MissingError tells that an answer lacks a member that the document requires.
type MissingError struct {
	// At is the member's place, such as "$.metadata.snapshots[0].summary".
	At string
}

// Error names the place.
func (e *MissingError) Error() string { return e.At + " is required and missing" }

// CheckAnswer compares an answer with what the document says of the operation. The path is a request's, escaped and
// without a base ("/v1/lake/namespaces/a"). An answer without a body matches statuses that describe none.
func (d *Document) CheckAnswer(method, path string, status int, body []byte) error {
	operation, err := d.operation(method, path)
	if err != nil {
		return err
	}
	response := d.response(operation, status)
	if response == nil {
		return fmt.Errorf("%s %s: status %d is not described", method, path, status)
	}
	schema := lookup(response, "content", "application/json", "schema")
	if schema == nil || strings.EqualFold(method, "head") {
		if len(body) > 0 {
			return fmt.Errorf("%s %s: %d has a body and the document describes none", method, path, status)
		}
		return nil
	}
	var value any
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return fmt.Errorf("%s %s: %d: %w", method, path, status, err)
	}
	if err := d.check(schema, value, "$"); err != nil {
		return fmt.Errorf("%s %s: %d: %w", method, path, status, err)
	}
	return nil
}

// operation finds the operation whose template fits; templates without parameters win.
func (d *Document) operation(method, path string) (map[string]any, error) {
	template, err := d.Template(method, path)
	if err != nil {
		return nil, err
	}
	operation, _ := lookup(d.root, "paths", template, strings.ToLower(method)).(map[string]any)
	return operation, nil
}

// Template gives the path of the document, with its parameters, that a request's method and path belong to; the path
// is as CheckAnswer takes it. ErrUndescribed when there is none.
func (d *Document) Template(method, path string) (string, error) {
	paths, _ := d.root["paths"].(map[string]any)
	found, parameters := "", len(path)
	for template, item := range paths {
		if n := strings.Count(template, "{"); fits(template, path) && n < parameters {
			if _, ok := lookup(item, strings.ToLower(method)).(map[string]any); ok {
				found, parameters = template, n
			}
		}
	}
	if found == "" {
		return "", fmt.Errorf("%s %s: %w", method, path, ErrUndescribed)
	}
	return found, nil
}

// Operations lists all operations of the document in order, each as "METHOD template".
func (d *Document) Operations() []string {
	var out []string
	paths, _ := d.root["paths"].(map[string]any)
	for template, item := range paths {
		for _, method := range []string{"get", "head", "post", "put", "patch", "delete"} {
			if lookup(item, method) != nil {
				out = append(out, strings.ToUpper(method)+" "+template)
			}
		}
	}
	slices.Sort(out)
	return out
}

func fits(template, path string) bool {
	a, b := strings.Split(template, "/"), strings.Split(path, "/")
	if len(a) != len(b) {
		return false
	}
	for i, part := range a {
		if part != b[i] && (!strings.HasPrefix(part, "{") || b[i] == "") {
			return false
		}
	}
	return true
}

// response gives the described response of a status, by number or by class.
func (d *Document) response(operation map[string]any, status int) any {
	responses, _ := operation["responses"].(map[string]any)
	class := strconv.Itoa(status/100) + "XX"
	for _, key := range []string{strconv.Itoa(status), class, "default"} {
		if response, ok := responses[key]; ok {
			return d.resolve(response)
		}
	}
	return nil
}

// lookup follows keys through maps.
func lookup(v any, keys ...string) any {
	for _, key := range keys {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[key]
	}
	return v
}

// resolve follows a reference inside the document.
func (d *Document) resolve(v any) any {
	for {
		reference, ok := lookup(v, "$ref").(string)
		if !ok {
			return v
		}
		v = lookup(d.root, strings.Split(strings.TrimPrefix(reference, "#/"), "/")...)
	}
}

// check validates a value against a schema; at is the value's place, for messages.
func (d *Document) check(schema, value any, at string) error {
	s, ok := d.resolve(schema).(map[string]any)
	if !ok {
		return nil
	}
	if value == nil && s["nullable"] == true {
		return nil
	}
	if err := d.checkCombinations(s, value, at); err != nil {
		return err
	}
	if err := checkType(s["type"], value, at); err != nil {
		return err
	}
	if err := checkValue(s, value, at); err != nil {
		return err
	}
	switch v := value.(type) {
	case map[string]any:
		return d.checkObject(s, v, at)
	case []any:
		for i, element := range v {
			if err := d.check(s["items"], element, fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *Document) checkCombinations(s map[string]any, value any, at string) error {
	all, _ := s["allOf"].([]any)
	for _, part := range all {
		if err := d.check(part, value, at); err != nil {
			return err
		}
	}
	for _, key := range []string{"oneOf", "anyOf"} {
		choices, ok := s[key].([]any)
		if !ok {
			continue
		}
		var errs []error
		for _, choice := range choices {
			errs = append(errs, d.check(choice, value, at))
		}
		if !slices.Contains(errs, nil) {
			return fmt.Errorf("%s fits none of %s: %w", at, key, errors.Join(errs...))
		}
	}
	return nil
}

func (d *Document) checkObject(s, value map[string]any, at string) error {
	required, _ := s["required"].([]any)
	for _, name := range required {
		if _, ok := value[name.(string)]; !ok {
			return &MissingError{At: at + "." + name.(string)}
		}
	}
	properties, _ := s["properties"].(map[string]any)
	for name, member := range value {
		schema, known := properties[name]
		if !known {
			schema = s["additionalProperties"]
		}
		if err := d.check(schema, member, at+"."+name); err != nil {
			return err
		}
	}
	return nil
}

// checkType compares with a type's name, or with a list of them as OpenAPI 3.1 has.
func checkType(want, value any, at string) error {
	var names []any
	switch w := want.(type) {
	case nil:
		return nil
	case string:
		names = []any{w}
	case []any:
		names = w
	}
	got := typeOf(value)
	if slices.Contains(names, any(got)) || got == "integer" && slices.Contains(names, any("number")) {
		return nil
	}
	return fmt.Errorf("%s is %s, not %v", at, got, names)
}

func typeOf(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case json.Number:
		if _, err := v.Int64(); err == nil {
			return "integer"
		}
		return "number"
	}
	return "object"
}

// checkValue looks at constants, enumerations, patterns and bounds.
func checkValue(s map[string]any, value any, at string) error {
	if want, ok := s["const"]; ok && !same(want, value) {
		return fmt.Errorf("%s is %v, not %v", at, value, want)
	}
	if choices, ok := s["enum"].([]any); ok && !slices.ContainsFunc(choices, func(c any) bool { return same(c, value) }) {
		return fmt.Errorf("%s is %v, none of %v", at, value, choices)
	}
	if text, ok := value.(string); ok {
		if pattern, ok := s["pattern"].(string); ok && !regexp.MustCompile(pattern).MatchString(text) {
			return fmt.Errorf("%s is %q, which %s does not match", at, text, pattern)
		}
	}
	if number, ok := value.(json.Number); ok {
		n, err := number.Float64()
		minimum, hasMin := s["minimum"].(int)
		maximum, hasMax := s["maximum"].(int)
		if err != nil || hasMin && n < float64(minimum) || hasMax && n > float64(maximum) {
			return fmt.Errorf("%s is %s, outside its bounds", at, number)
		}
	}
	return nil
}

func same(want, value any) bool {
	return reflect.DeepEqual(want, value) || typeOf(value) != "object" && fmt.Sprint(want) == fmt.Sprint(value)
}
