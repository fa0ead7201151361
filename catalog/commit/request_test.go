package commit

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"catalogd/internal/fault"
)

// everyUpdate holds each of the 23 actions once, in an order that the V2 fixture can take.
const everyUpdate = `{"action":"assign-uuid","uuid":"9C12D441-03FE-4693-9A96-A0705DDF69C1"},` +
	`{"action":"upgrade-format-version","format-version":2},` +
	`{"action":"add-schema","last-column-id":4,"schema":{"type":"struct","schema-id":9,"identifier-field-ids":[],"fields":[{"id":1,"name":"x","required":true,"type":"long"},{"id":2,"name":"y","required":false,"type":"long","doc":"c"},{"id":3,"name":"z","required":false,"type":"long"},{"id":4,"name":"w","required":false,"type":"string"}]}},` +
	`{"action":"set-current-schema","schema-id":-1},` +
	`{"action":"add-spec","spec":{"spec-id":7,"fields":[{"name":"x","transform":"identity","source-id":1,"field-id":1000},{"name":"w_bucket","transform":"bucket[16]","source-id":4,"field-id":1001}]}},` +
	`{"action":"set-default-spec","spec-id":-1},` +
	`{"action":"add-sort-order","sort-order":{"order-id":9,"fields":[{"transform":"identity","source-id":4,"direction":"desc","null-order":"nulls-last"}]}},` +
	`{"action":"set-default-sort-order","sort-order-id":-1},` +
	`{"action":"remove-partition-specs","spec-ids":[0]},` +
	`{"action":"remove-schemas","schema-ids":[0]},` +
	`{"action":"set-location","location":"s3://bucket/elsewhere/"},` +
	`{"action":"set-properties","updates":{"a":"1","b":"2"}},` +
	`{"action":"remove-properties","removals":["a"]},` +
	`{"action":"add-snapshot","snapshot":{"snapshot-id":7,"parent-snapshot-id":3055729675574597004,"sequence-number":35,"timestamp-ms":1700000000000,"manifest-list":"s3://bucket/test/location/metadata/7.avro","summary":{"operation":"append"}}},` +
	`{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":7},` +
	`{"action":"set-snapshot-ref","ref-name":"t","type":"tag","snapshot-id":7},` +
	`{"action":"remove-snapshot-ref","ref-name":"t"},` +
	`{"action":"set-statistics","snapshot-id":7,"statistics":{"snapshot-id":7,"statistics-path":"s3://bucket/test/location/metadata/7.puffin","file-size-in-bytes":5,"file-footer-size-in-bytes":2,"blob-metadata":[]}},` +
	`{"action":"set-partition-statistics","partition-statistics":{"snapshot-id":7,"statistics-path":"s3://bucket/test/location/metadata/7.parquet","file-size-in-bytes":5}},` +
	`{"action":"remove-statistics","snapshot-id":1},` +
	`{"action":"remove-partition-statistics","snapshot-id":1},` +
	`{"action":"add-encryption-key","encryption-key":{"key-id":"k","encrypted-key-metadata":"AAEC"}},` +
	`{"action":"remove-encryption-key","key-id":"other"},` +
	`{"action":"remove-snapshots","snapshot-ids":[3051729675574597004]}`

func TestDecodeRequest_KnowsEveryAction(t *testing.T) {
	r := request(t, everyUpdate)
	seen := map[string]bool{}
	for _, action := range r.Actions() {
		seen[action] = true
	}
	if len(updates) != 23 {
		t.Errorf("%d actions are known, want the specification's 23", len(updates))
	}
	for action := range updates {
		if !seen[action] {
			t.Errorf("no update %s in the test", action)
		}
	}
	d := commitOn(t, v2Table(t), everyUpdate)
	if d.Location() != "s3://bucket/elsewhere" || d.SnapshotCount() != 2 || d.LastSequenceNumber() != 35 {
		t.Errorf("location %s, %d snapshots, sequence %d", d.Location(), d.SnapshotCount(), d.LastSequenceNumber())
	}
}

func TestDecodeRequest_Reads(t *testing.T) {
	r, err := DecodeRequest([]byte(` {"identifier":{"namespace":["a","b.c"],"name":"t"},"x-new":1,"requirements":[` +
		`{"type":"ASSERT-TABLE-UUID","uuid":"9c12d441-03fe-4693-9a96-a0705ddf69c1"}],"updates":[` + everyUpdate +
		`,{"action":"SET-PROPERTIES","updated":{"c":"3"},"x-new":{}},{"action":"remove-properties","removed":["b"]}]} `))
	if err != nil {
		t.Fatal(err)
	}
	if r.Identifier == nil || !reflect.DeepEqual(*r.Identifier, Identifier{Namespace: []string{"a", "b.c"}, Name: "t"}) {
		t.Errorf("identifier %v", r.Identifier)
	}
	if r.Requirements[0].Type != "assert-table-uuid" || r.Creates() {
		t.Errorf("requirement %s, creates %v", r.Requirements[0].Type, r.Creates())
	}
	if actions := r.Actions(); actions[len(actions)-2] != "set-properties" {
		t.Errorf("actions %v are not in lower case", actions)
	}
	if uuid := r.AssignedUUID(); !strings.EqualFold(uuid, tableUUID) {
		t.Errorf("assigned uuid %q", uuid)
	}
	if location, set := r.NewLocation(); !set || location != "s3://bucket/elsewhere" {
		t.Errorf("new location %q, %v", location, set)
	}
	if p := r.NewProperties(); !reflect.DeepEqual(p, map[string]string{"a": "1", "b": "2", "c": "3"}) {
		t.Errorf("new properties %v", p)
	}
	want := []string{"7.avro", "7.puffin", "7.parquet"}
	for i, path := range r.ReferencedPaths() {
		if path != "s3://bucket/test/location/metadata/"+want[i] {
			t.Errorf("path %d is %s", i, path)
		}
	}
	if len(r.ReferencedPaths()) != len(want) {
		t.Errorf("paths %v", r.ReferencedPaths())
	}
	empty := request(t)
	if _, set := empty.NewLocation(); set || empty.AssignedUUID() != "" || empty.Creates() || empty.Identifier != nil {
		t.Error("an empty request has something in it")
	}
}

func TestDecodeRequest_ReferencedPathsOfV1Manifests(t *testing.T) {
	r := request(t, `{"action":"add-snapshot","snapshot":{"snapshot-id":1,"timestamp-ms":1,"manifests":["s3://x/a.avro","s3://y/b.avro"]}}`)
	if p := r.ReferencedPaths(); !reflect.DeepEqual(p, []string{"s3://x/a.avro", "s3://y/b.avro"}) {
		t.Errorf("paths %v", p)
	}
}

func TestDecodeRequest_RefusesWhatIsMalformed(t *testing.T) {
	update := func(u string) string { return `{"requirements":[],"updates":[` + u + `]}` }
	requirement := func(q string) string { return `{"requirements":[` + q + `],"updates":[]}` }
	for _, c := range []struct{ name, body, want string }{
		{"nothing", ``, "ends too early"},
		{"not JSON", `{"requirements"`, "ends too early"},
		{"two values", `{"requirements":[],"updates":[]}{}`, "after the value"},
		{"bad UTF-8", "{\"requirements\":[],\"updates\":[],\"x\":\"\xff\"}", "not valid UTF-8"},
		{"an array", `[]`, "the request must be an object, not an array"},
		{"no updates", `{"requirements":[]}`, `missing field "updates"`},
		{"no requirements", `{"updates":[]}`, `missing field "requirements"`},
		{"null updates", `{"requirements":[],"updates":null}`, `missing field "updates"`},
		{"updates", `{"requirements":[],"updates":{}}`, "updates must be an array, not an object"},
		{"a field twice", `{"requirements":[],"updates":[],"updates":[]}`, `"updates" twice`},
		{"identifier", `{"identifier":"a.b","requirements":[],"updates":[]}`, "identifier must be an object"},
		{"identifier's name", `{"identifier":{"namespace":["a"]},"requirements":[],"updates":[]}`, `missing field "name"`},
		{"identifier's level", `{"identifier":{"namespace":[1],"name":"t"},"requirements":[],"updates":[]}`, `"namespace" must be a string`},
		{"an update", update(`5`), "an update must be an object, not a number"},
		{"no action", update(`{}`), `missing field "action"`},
		{"action", update(`{"action":5}`), `"action" must be a string`},
		{"unknown action", update(`{"action":"drop-everything"}`), `unknown update action "drop-everything"`},
		{"a view's action", update(`{"action":"add-view-version"}`), `add-view-version cannot be applied to a table`},
		{"a view's action", update(`{"action":"set-current-view-version"}`), `set-current-view-version cannot be applied to a table`},
		{"uuid", update(`{"action":"assign-uuid","uuid":"x"}`), `"uuid" is not a UUID`},
		{"version", update(`{"action":"upgrade-format-version","format-version":"3"}`), `"format-version" must be a 32-bit integer`},
		{"no schema", update(`{"action":"add-schema"}`), `missing field "schema"`},
		{"schema", update(`{"action":"add-schema","schema":{"fields":[]}}`), `"type" must be "struct"`},
		{"schema's field", update(schemaOf(`{"id":1,"name":"a","required":"no","type":"int"}`)), `"required" must be true or false`},
		{"type", update(schemaOf(field(1, "a", "decimal(50,2)"))), "precision must be 1 to 38"},
		{"type", update(schemaOf(field(1, "a", "string[5]"))), "unknown type"},
		{"list", update(schemaOf(field(1, "a", `{"type":"list","element":"int","element-required":true}`))), `missing field "element-id"`},
		{"map", update(schemaOf(field(1, "a", `{"type":"map","key-id":2,"key":"int","value-id":3,"value":"int"}`))), `missing field "value-required"`},
		{"nested kind", update(schemaOf(field(1, "a", `{"type":"set"}`))), `unknown type "set"`},
		{"deep schema", update(schemaOf(field(1, "a", strings.Repeat(`{"type":"list","element-id":2,"element-required":true,"element":`, 120)+`"int"`+strings.Repeat(`}`, 120)))), "nest more than 100 deep"},
		{"schema id", update(`{"action":"set-current-schema","schema-id":1.5}`), `"schema-id" must be a 32-bit integer`},
		{"spec", update(`{"action":"add-spec","spec":{"fields":[{"name":"a","transform":"identity"}]}}`), `missing field "source-id"`},
		{"transform", update(`{"action":"add-spec","spec":{"fields":[{"name":"a","transform":"bucket[0]","source-id":1}]}}`), "positive number in brackets"},
		{"field id", update(`{"action":"add-spec","spec":{"fields":[{"name":"a","transform":"void","source-id":1,"field-id":0}]}}`), `"field-id" must be positive`},
		{"sources", update(`{"action":"add-spec","spec":{"fields":[{"name":"a","transform":"void","source-ids":[]}]}}`), `"source-ids" must not be empty`},
		{"direction", update(`{"action":"add-sort-order","sort-order":{"fields":[{"transform":"identity","source-id":1,"direction":"up","null-order":"nulls-last"}]}}`), `must be asc or desc, not "up"`},
		{"snapshot id", update(`{"action":"add-snapshot","snapshot":{"timestamp-ms":1,"manifest-list":"x"}}`), `missing field "snapshot-id"`},
		{"a float id", update(`{"action":"add-snapshot","snapshot":{"snapshot-id":1e3,"timestamp-ms":1,"manifest-list":"x"}}`), `"snapshot-id" must be a 64-bit integer, not 1e3`},
		{"manifest list", update(`{"action":"add-snapshot","snapshot":{"snapshot-id":1,"timestamp-ms":1}}`), `missing field "manifest-list"`},
		{"summary", update(`{"action":"add-snapshot","snapshot":{"snapshot-id":1,"timestamp-ms":1,"manifest-list":"x","summary":{"operation":"append","rows":5}}}`), `"summary.rows" must be a string`},
		{"ref type", update(`{"action":"set-snapshot-ref","ref-name":"a","type":"twig","snapshot-id":1}`), `not "twig"`},
		{"ref age", update(`{"action":"set-snapshot-ref","ref-name":"a","type":"tag","snapshot-id":1,"max-ref-age-ms":0}`), "max-ref-age-ms must be greater than 0"},
		{"ids", update(`{"action":"remove-snapshots","snapshot-ids":[1,"2"]}`), `"snapshot-ids" must be a 64-bit integer`},
		{"ids", update(`{"action":"remove-schemas","schema-ids":5}`), "schema-ids must be an array"},
		{"location", update(`{"action":"set-location","location":null}`), `missing field "location"`},
		{"location", update(`{"action":"set-location","location":""}`), `"location" must not be empty`},
		{"null property", update(`{"action":"set-properties","updates":{"a":null}}`), `"updates.a" must be a string, not null`},
		{"number property", update(`{"action":"set-properties","updates":{"a":1}}`), `"updates.a" must be a string, not a number`},
		{"no properties", update(`{"action":"set-properties"}`), `missing field "updates"`},
		{"removals", update(`{"action":"remove-properties","removals":{"a":"b"}}`), "removals must be an array"},
		{"statistics", update(`{"action":"set-statistics","statistics":{"snapshot-id":1,"statistics-path":"x","file-size-in-bytes":1,"blob-metadata":[]}}`), `missing field "file-footer-size-in-bytes"`},
		{"blob", update(`{"action":"set-statistics","statistics":{"snapshot-id":1,"statistics-path":"x","file-size-in-bytes":1,"file-footer-size-in-bytes":1,"blob-metadata":[{"type":"a","snapshot-id":1,"sequence-number":1}]}}`), `blob-metadata: missing field "fields"`},
		{"partition statistics", update(`{"action":"set-partition-statistics","partition-statistics":{"snapshot-id":1,"file-size-in-bytes":1}}`), `missing field "statistics-path"`},
		{"key", update(`{"action":"add-encryption-key","encryption-key":{"key-id":"k"}}`), `missing field "encrypted-key-metadata"`},
		{"a requirement", requirement(`"assert-create"`), "a requirement must be an object"},
		{"no type", requirement(`{}`), `missing field "type"`},
		{"unknown type", requirement(`{"type":"assert-luck"}`), `unknown requirement type "assert-luck"`},
		{"a view's requirement", requirement(`{"type":"assert-view-uuid","uuid":"x"}`), "cannot be checked against a table"},
		{"requirement's field", requirement(`{"type":"assert-current-schema-id"}`), `missing field "current-schema-id"`},
		{"requirement's ref", requirement(`{"type":"assert-ref-snapshot-id","snapshot-id":1}`), `missing field "ref"`},
		{"requirement's id", requirement(`{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":"1"}`), `"snapshot-id" must be a 64-bit integer`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := DecodeRequest([]byte(c.body))
			wantError(t, err, fault.BadRequest, c.want)
		})
	}
}

func TestDecodeRequest_CreateStandsAlone(t *testing.T) {
	for _, c := range []struct {
		requirements string
		ok           bool
	}{
		{`{"type":"assert-create"}`, true},
		{`{"type":"Assert-Create"},{"type":"assert-create"}`, true},
		{`{"type":"assert-create"},{"type":"assert-table-uuid","uuid":"x"}`, false},
	} {
		r, err := DecodeRequest([]byte(`{"requirements":[` + c.requirements + `],"updates":[]}`))
		if !c.ok {
			wantError(t, err, fault.IllegalArgument, "Invalid create requirements")
		} else if err != nil || !r.Creates() {
			t.Errorf("%s: creates %v, %v", c.requirements, r.Creates(), err)
		}
	}
}

func TestDecodeTransaction(t *testing.T) {
	change := func(name string) string {
		return `{"identifier":{"namespace":["a"],"name":"` + name + `"},"requirements":[],"updates":[{"action":"set-properties","updates":{"k":"v"}}]}`
	}
	requests, err := DecodeTransaction([]byte(`{"table-changes":[` + change("t") + `,` + change("u") + `]}`))
	if err != nil || len(requests) != 2 || requests[1].Identifier.Name != "u" || requests[0].NewProperties()["k"] != "v" {
		t.Fatalf("%v, %v", requests, err)
	}
	for _, c := range []struct{ name, body, want string }{
		{"not JSON", `{`, "ends too early"},
		{"no changes", `{}`, `missing field "table-changes"`},
		{"empty", `{"table-changes":[]}`, "Invalid table changes: empty"},
		{"without identifier", `{"table-changes":[{"requirements":[],"updates":[]}]}`, `missing field "identifier"`},
		{"twice", `{"table-changes":[` + change("t") + `,` + change("u") + `,` + change("t") + `]}`, "the table a.t is named twice"},
		{"malformed", `{"table-changes":[5]}`, "the request must be an object"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := DecodeTransaction([]byte(c.body))
			wantError(t, err, fault.BadRequest, c.want)
		})
	}
}

// How much a request may ask for is bounded while it is read: lists cost memory by their length.
func TestDecodeRequest_ListsAreBounded(t *testing.T) {
	list := func(n int, element string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(element+",", n), ",") + "]"
	}
	const update, condition = `{"action":"remove-snapshots","snapshot-ids":[1]}`, `{"type":"assert-create"}`
	body := func(requirements, updates string) string {
		return `{"identifier":{"namespace":["a"],"name":"t"},"requirements":` + requirements + `,"updates":` + updates + `}`
	}
	for name, c := range map[string]struct{ body, message string }{
		"updates that fit":      {body("[]", list(updatesMax, update)), ""},
		"updates":               {body("[]", list(updatesMax+1, update)), `"updates"`},
		"requirements that fit": {body(list(requirementsMax, condition), "[]"), ""},
		"requirements":          {body(list(requirementsMax+1, condition), "[]"), `"requirements"`},
		"properties":            {body("[]", `[{"action":"set-properties","updates":{`+numbered(updatesMax+1)+`}}]`), "200001 properties"},
	} {
		t.Run(name, func(t *testing.T) {
			check := func(err error) {
				t.Helper()
				if c.message == "" && err != nil {
					t.Error(err)
				}
				if c.message != "" && (!fault.Is(err, fault.TooLarge) || !strings.Contains(fault.Message(err), c.message)) {
					t.Errorf("got %v, want a refusal of %s as too large", err, c.message)
				}
			}
			_, err := DecodeRequest([]byte(c.body))
			check(err)
			_, err = DecodeTransaction([]byte(`{"table-changes":[` + c.body + `]}`))
			check(err)
		})
	}
	changes := func(n int, updates string) error {
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, `,{"identifier":{"namespace":["a"],"name":"t%d"},"requirements":[],"updates":%s}`, i, updates)
		}
		_, err := DecodeTransaction([]byte(`{"table-changes":[` + text.String()[1:] + `]}`))
		return err
	}
	if err := changes(changesMax, "[]"); err != nil {
		t.Error(err)
	}
	if err := changes(changesMax+1, "[]"); !fault.Is(err, fault.TooLarge) {
		t.Errorf("too many tables: %v", err)
	}
	if err := changes(3, list(updatesMax/2, update)); !fault.Is(err, fault.TooLarge) {
		t.Errorf("too many updates of all tables together: %v", err)
	}
}

// numbered gives so many properties.
func numbered(n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, `,"%d":""`, i)
	}
	return text.String()[1:]
}

func TestDecodeRequest_StatisticsAndKeysAreChecked(t *testing.T) {
	statistics := func(member string) string {
		return `{"action":"set-statistics","statistics":{"snapshot-id":1,"statistics-path":"p","file-size-in-bytes":1,"file-footer-size-in-bytes":1,"blob-metadata":[]` + member + `}}`
	}
	for update, message := range map[string]string{
		statistics(`,"key-metadata":5`):    `field "key-metadata" must be a string, not a number`,
		statistics(`,"key-metadata":null`): "",
		statistics(`,"key-metadata":"AA"`): "",
		`{"action":"set-statistics","statistics":{"snapshot-id":1,"statistics-path":"p","file-size-in-bytes":-1,"file-footer-size-in-bytes":1,"blob-metadata":[]}}`: `field "file-size-in-bytes" must not be negative`,
		`{"action":"set-statistics","statistics":{"snapshot-id":1,"statistics-path":"p","file-size-in-bytes":1,"file-footer-size-in-bytes":-2,"blob-metadata":[]}}`: `field "file-footer-size-in-bytes" must not be negative`,
		`{"action":"set-partition-statistics","partition-statistics":{"snapshot-id":1,"statistics-path":"p","file-size-in-bytes":-1}}`:                              `field "file-size-in-bytes" must not be negative`,
		`{"action":"add-encryption-key","encryption-key":{"key-id":"k","encrypted-key-metadata":"AA","encrypted-by-id":7}}`:                                         `field "encrypted-by-id" must be a string, not a number`,
		`{"action":"add-encryption-key","encryption-key":{"key-id":"k","encrypted-key-metadata":"AA","encrypted-by-id":"l"}}`:                                       "",
	} {
		_, err := DecodeRequest([]byte(`{"requirements":[],"updates":[` + update + `]}`))
		if message == "" && err != nil {
			t.Errorf("%s: %v", update, err)
		}
		if message != "" && (!fault.Is(err, fault.BadRequest) || !strings.Contains(fault.Message(err), message)) {
			t.Errorf("%s: %v, want %s", update, err, message)
		}
	}
	// Null members are not kept, known or not.
	d := commitOn(t, v3Table(t), `{"action":"set-statistics","statistics":{"snapshot-id":1,"statistics-path":"p","file-size-in-bytes":1,"file-footer-size-in-bytes":1,
		"x":null,"blob-metadata":[{"type":"t","snapshot-id":1,"sequence-number":1,"fields":[],"y":null}]}}`,
		`{"action":"set-partition-statistics","partition-statistics":{"snapshot-id":1,"statistics-path":"p","file-size-in-bytes":1,"x":null}}`,
		`{"action":"add-encryption-key","encryption-key":{"key-id":"k","encrypted-key-metadata":"AA","x":null}}`)
	wantTop(t, d, keyStatistics, `[{"snapshot-id":1,"statistics-path":"p","file-size-in-bytes":1,"file-footer-size-in-bytes":1,
		"blob-metadata":[{"type":"t","snapshot-id":1,"sequence-number":1,"fields":[]}]}]`)
	wantTop(t, d, keyPartitionStats, `[{"snapshot-id":1,"statistics-path":"p","file-size-in-bytes":1}]`)
	wantTop(t, d, keyEncryptionKeys, `[{"key-id":"k","encrypted-key-metadata":"AA"}]`)
}

// The cost of some updates grows faster than their number, so their number is bounded by kind.
func TestDecode_TooManyOfOneKind(t *testing.T) {
	schema := `{"action":"add-schema","schema":{"type":"struct","schema-id":0,"fields":[]}}`
	for _, c := range []struct {
		update string
		count  int
		kind   fault.Kind
	}{
		{schema, definitionsMax, ""},
		{schema, definitionsMax + 1, fault.TooLarge},
		{branch("b", 1), updatesKindMax, ""},
		{branch("b", 1), updatesKindMax + 1, fault.TooLarge},
		{`{"action":"remove-snapshots","snapshot-ids":[1]}`, updatesKindMax + 1, ""},
	} {
		body := `{"requirements":[],"updates":[` + strings.TrimSuffix(strings.Repeat(c.update+",", c.count), ",") + `]}`
		if _, err := DecodeRequest([]byte(body)); fault.KindOf(err) != c.kind {
			t.Errorf("%d of %.40s: %v", c.count, c.update, err)
		}
	}
}

// A definition that is removed may leave its id to another one of the same request.
func TestApply_AnIDGivenAnewIsNotTheOldDefinition(t *testing.T) {
	one := `{"action":"add-schema","schema":{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"one","type":"long","required":false}]}}`
	two := strings.Replace(one, `"one"`, `"two"`, 1)
	d := commitOn(t, v2Table(t), one, `{"action":"remove-schemas","schema-ids":[`+strconv.Itoa(nextSchemaID(v2Table(t)))+`]}`, two, one)
	names := map[string]bool{}
	for _, p := range d.schemas {
		names[string(p.text)] = true
	}
	if len(names) != len(d.schemas) || len(d.schemas) != len(v2Table(t).schemas)+2 {
		t.Errorf("the table has %d schemas, %d of them different", len(d.schemas), len(names))
	}
}

func nextSchemaID(d *Document) int {
	next := 0
	for _, p := range d.schemas {
		next = max(next, p.id+1)
	}
	return next
}
