package manage

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page's form
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"catalogd/api"
	"catalogd/openapi"
)

// The reference is made from openapi/management.yaml, the only place where the API is described, when it is first asked
// for. It stands on nothing but itself: no script, and one style that is in the page and named by its digest.

//go:embed reference.html
var referenceForm string

//go:embed reference.css
var referenceStyle string

// ReferenceEndpoints answers the API's description to everybody: what it says is no secret, and a browser has no token.
func ReferenceEndpoints() []api.Endpoint {
	page := sync.OnceValues(referencePage)
	row := func(route, operation string, handler api.HandlerFunc) api.Endpoint {
		return api.Endpoint{Method: http.MethodGet, Pattern: api.ManagementBase + route, Operation: operation, Access: api.Public, Handler: handler}
	}
	return []api.Endpoint{
		row("/docs", "show-reference", func(w http.ResponseWriter, _ *http.Request) error {
			html, err := page()
			if err != nil {
				return err
			}
			digest := sha256.Sum256([]byte(referenceStyle))
			w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'sha256-"+base64.StdEncoding.EncodeToString(digest[:])+
				"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
			w.Header().Set("Referrer-Policy", "no-referrer")
			writeText(w, "text/html; charset=utf-8", html)
			return nil
		}),
		row("/openapi.yaml", "show-description", func(w http.ResponseWriter, _ *http.Request) error {
			text, err := openapi.Files.ReadFile(openapi.ManagementFile)
			if err != nil {
				return err
			}
			writeText(w, "application/yaml", text)
			return nil
		}),
	}
}

func writeText(w http.ResponseWriter, contentType string, text []byte) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(text) // fails only as the connection does
}

// object is a mapping of the document with its members in their order.
type object struct{ node *yaml.Node }

// at walks down the members of those names; the object is empty where there is none.
func (o object) at(keys ...string) object {
	for _, key := range keys {
		next := (*yaml.Node)(nil)
		for _, m := range o.members() {
			if m.Name == key {
				next = m.Value.node
			}
		}
		o = object{next}
	}
	return o
}

// member is a name and what it has.
type member struct {
	Name  string
	Value object
}

func (o object) members() []member {
	if o.node == nil || o.node.Kind != yaml.MappingNode {
		return nil
	}
	var all []member
	for i := 0; i+1 < len(o.node.Content); i += 2 {
		all = append(all, member{o.node.Content[i].Value, object{o.node.Content[i+1]}})
	}
	return all
}

func (o object) items() []object {
	if o.node == nil || o.node.Kind != yaml.SequenceNode {
		return nil
	}
	var all []object
	for _, n := range o.node.Content {
		all = append(all, object{n})
	}
	return all
}

// text is a scalar, or a list of scalars with commas between; "" for what is not there.
func (o object) text() string {
	if o.node == nil {
		return ""
	}
	if items := o.items(); items != nil {
		texts := make([]string, len(items))
		for i, item := range items {
			texts[i] = item.text()
		}
		return strings.Join(texts, ", ")
	}
	return strings.TrimSpace(o.node.Value)
}

// referenceField is a parameter, a property, or an answer.
type referenceField struct {
	Name, In, Text string
	Required       bool
	Type           *referenceType
}

// referenceType is what a schema comes to: a word, the name of a schema that is described by itself, or fields.
type referenceType struct {
	Word, Name, Text string
	Fields           []referenceField
	Of               *referenceType // of a list's or a map's elements
	All              []*referenceType
}

// referenceOperation is one call.
type referenceOperation struct {
	ID, Method, Path, Summary, Text string
	Parameters                      []referenceField
	Body                            *referenceType
	Answers                         []referenceField
}

type referenceGroup struct {
	Name, Text string
	Operations []referenceOperation
}

type referenceDocument struct {
	Title, Text string
	Style       template.CSS
	Groups      []referenceGroup
	Schemas     []referenceField
}

// reader reads the document.
type reader struct{ root object }

func referencePage() ([]byte, error) {
	text, err := openapi.Files.ReadFile(openapi.ManagementFile)
	if err != nil {
		return nil, err
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("read %s: %w", openapi.ManagementFile, err)
	}
	form, err := template.New("reference").Parse(referenceForm)
	if err != nil {
		return nil, fmt.Errorf("read the reference's form: %w", err)
	}
	var page bytes.Buffer
	if err := form.Execute(&page, reader{object{document.Content[0]}}.document()); err != nil {
		return nil, fmt.Errorf("write the reference: %w", err)
	}
	return page.Bytes(), nil
}

func (r reader) document() referenceDocument {
	info := r.root.at("info")
	d := referenceDocument{Title: info.at("title").text(), Text: info.at("description").text(), Style: template.CSS(referenceStyle)} //nolint:gosec // ours
	for _, tag := range r.root.at("tags").items() {
		d.Groups = append(d.Groups, referenceGroup{Name: tag.at("name").text(), Text: tag.at("description").text()})
	}
	for _, path := range r.root.at("paths").members() {
		for _, m := range path.Value.members() {
			if m.Name == "parameters" || m.Name == "servers" {
				continue
			}
			tag := m.Value.at("tags").text()
			for i := range d.Groups {
				if d.Groups[i].Name == tag {
					d.Groups[i].Operations = append(d.Groups[i].Operations, r.operation(path, m))
				}
			}
		}
	}
	for _, m := range r.root.at("components", "schemas").members() {
		d.Schemas = append(d.Schemas, referenceField{Name: m.Name, Type: r.schema(m.Value)})
	}
	return d
}

func (r reader) operation(path, m member) referenceOperation {
	base := api.ManagementBase
	if strings.HasPrefix(path.Name, "/api/") {
		base = "" // the whole path is written
	}
	o := referenceOperation{
		ID: m.Value.at("operationId").text(), Method: strings.ToUpper(m.Name), Path: base + path.Name,
		Summary: m.Value.at("summary").text(), Text: m.Value.at("description").text(),
	}
	for _, p := range append(path.Value.at("parameters").items(), m.Value.at("parameters").items()...) {
		p = r.resolved(p)
		o.Parameters = append(o.Parameters, referenceField{
			Name: p.at("name").text(), In: p.at("in").text(), Text: p.at("description").text(),
			Required: p.at("required").text() == "true", Type: r.schema(p.at("schema")),
		})
	}
	if body := r.resolved(m.Value.at("requestBody")); body.node != nil {
		o.Body = r.schema(body.at("content", "application/json", "schema"))
	}
	for _, answer := range m.Value.at("responses").members() {
		is := r.resolved(answer.Value)
		f := referenceField{Name: answer.Name, Text: is.at("description").text()}
		if schema := is.at("content", "application/json", "schema"); schema.node != nil {
			f.Type = r.schema(schema)
		}
		o.Answers = append(o.Answers, f)
	}
	return o
}

// resolved follows a reference.
func (r reader) resolved(o object) object {
	reference := o.at("$ref").text()
	if reference == "" {
		return o
	}
	return r.root.at(strings.Split(strings.TrimPrefix(reference, "#/"), "/")...)
}

// schema describes a schema; one with a name is left to its own place.
func (r reader) schema(o object) *referenceType {
	if o.node == nil {
		return nil
	}
	if reference := o.at("$ref").text(); reference != "" {
		return &referenceType{Name: reference[strings.LastIndex(reference, "/")+1:]}
	}
	t := &referenceType{Word: o.at("type").text(), Text: o.at("description").text()}
	if enum := o.at("enum").text(); enum != "" {
		t.Word += " (" + enum + ")"
	}
	t.Of = r.schema(o.at("items"))
	if t.Of == nil {
		t.Of = r.schema(o.at("additionalProperties"))
	}
	for _, key := range []string{"allOf", "oneOf", "anyOf"} {
		for _, part := range o.at(key).items() {
			t.All = append(t.All, r.schema(part))
		}
	}
	required := ", " + o.at("required").text() + ","
	for _, m := range o.at("properties").members() {
		t.Fields = append(t.Fields, referenceField{
			Name: m.Name, Type: r.schema(m.Value), Required: strings.Contains(required, ", "+m.Name+","),
		})
	}
	return t
}
