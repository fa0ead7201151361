package commit

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"catalogd/internal/fault"
)

// now is the server's clock in the tests: after everything in the fixtures.
var now = time.UnixMilli(1_800_000_000_000)

const (
	tableUUID   = "9c12d441-03fe-4693-9a96-a0705ddf69c1"
	oldFile     = "s3://bucket/test/location/metadata/00004-old.metadata.json"
	snapshotOne = 3051729675574597004
	snapshotTwo = 3055729675574597004 // current in TableMetadataV2Valid.json
)

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "metadata", name))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func parse(t testingT, raw []byte) *Document {
	t.Helper()
	d, err := Parse(raw)
	if err != nil {
		t.Fatalf("parse: %v\n%s", err, raw)
	}
	return d
}

func v1Table(t testing.TB) *Document { return parse(t, fixture(t, "TableMetadataV1Valid.json")) }
func v2Table(t testing.TB) *Document { return parse(t, fixture(t, "TableMetadataV2Valid.json")) }
func v3Table(t testing.TB) *Document { return parse(t, fixture(t, "TableMetadataV3ValidMinimal.json")) }

// with gives a document with members of its top level replaced; a nil value removes one.
func with(t testing.TB, d *Document, edits ...topEdit) *Document {
	t.Helper()
	return parse(t, d.rewritten(edits))
}

func memberOf(name, value string) topEdit { return topEdit{name: name, value: []byte(value)} }

// request decodes a commit without requirements.
func request(t testingT, updates ...string) Request {
	t.Helper()
	r, err := DecodeRequest([]byte(`{"requirements":[],"updates":[` + strings.Join(updates, ",") + `]}`))
	if err != nil {
		t.Fatalf("decode: %v", err)
	}
	return r
}

// commitOn applies updates, which must change the table, and holds the result against a fresh reading of its text.
func commitOn(t testing.TB, base *Document, updates ...string) *Document {
	t.Helper()
	before := string(base.JSON())
	next, changed, err := Apply(base, request(t, updates...), Stamp{Now: now, MetadataLocation: oldFile})
	if err != nil {
		t.Fatalf("apply: %v", err)
	}
	if !changed {
		t.Fatal("nothing changed")
	}
	if string(base.JSON()) != before {
		t.Fatal("the base changed")
	}
	checkIndex(t, next)
	return next
}

// checkIndex holds a document that was written against a fresh reading of its text, and the text against the rules
// for nulls.
func checkIndex(t testingT, d *Document) {
	t.Helper()
	if !json.Valid(d.JSON()) {
		t.Fatalf("not JSON: %s", d.JSON())
	}
	again := parse(t, d.JSON())
	if !reflect.DeepEqual(again, d) {
		t.Fatalf("the index of the written document differs from that of its text\n%s", d.JSON())
	}
}

func unchanged(t testing.TB, base *Document, updates ...string) {
	t.Helper()
	next, changed, err := Apply(base, request(t, updates...), Stamp{Now: now, MetadataLocation: oldFile})
	if err != nil || changed || next != base {
		t.Errorf("changed %v, error %v; want a no-op", changed, err)
	}
}

func refused(t testing.TB, base *Document, kind fault.Kind, text string, updates ...string) {
	t.Helper()
	r, err := DecodeRequest([]byte(`{"requirements":[],"updates":[` + strings.Join(updates, ",") + `]}`))
	if err == nil {
		_, _, err = Apply(base, r, Stamp{Now: now, MetadataLocation: oldFile})
	}
	wantError(t, err, kind, text)
}

func wantError(t testing.TB, err error, kind fault.Kind, text string) {
	t.Helper()
	if !fault.Is(err, kind) || !strings.Contains(fault.Message(err), text) {
		t.Errorf("error %v of kind %q, want %q with %q", err, fault.KindOf(err), kind, text)
	}
}

// top gives a member of the document's top level, decoded.
func top(t testing.TB, d *Document, name string) any {
	t.Helper()
	text := d.members.raw(name)
	if text == nil {
		return nil
	}
	return decoded(t, text)
}

func decoded(t testing.TB, text []byte) any {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(string(text)))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

// wantTop compares a member of the top level with JSON; "" means that it must be absent.
func wantTop(t testing.TB, d *Document, name, want string) {
	t.Helper()
	have := d.members.raw(name)
	if want == "" {
		if have != nil {
			t.Errorf("%s = %s, want it absent", name, have)
		}
		return
	}
	if have == nil {
		t.Errorf("%s is absent, want %s", name, want)
		return
	}
	if !reflect.DeepEqual(decoded(t, have), decoded(t, []byte(want))) {
		t.Errorf("%s = %s, want %s", name, have, want)
	}
}

// addSnap is an add-snapshot of v1 or v2; parent 0 means none.
func addSnap(id, parent, sequence int64, further ...string) string {
	text := fmt.Sprintf(`{"snapshot-id":%d,"sequence-number":%d,"timestamp-ms":%d,"manifest-list":"s3://bucket/test/location/metadata/%d.avro","summary":{"operation":"append"}`,
		id, sequence, now.UnixMilli()-1000, id)
	if parent != 0 {
		text += fmt.Sprintf(`,"parent-snapshot-id":%d`, parent)
	}
	for _, f := range further {
		text += "," + f
	}
	return `{"action":"add-snapshot","snapshot":` + text + `}}`
}

// addRows is an add-snapshot of v3.
func addRows(id, parent, sequence, firstRow, rows int64) string {
	return addSnap(id, parent, sequence, fmt.Sprintf(`"first-row-id":%d,"added-rows":%d`, firstRow, rows))
}

func branch(name string, id int64) string {
	return fmt.Sprintf(`{"action":"set-snapshot-ref","ref-name":%q,"type":"branch","snapshot-id":%d}`, name, id)
}

func tag(name string, id int64) string {
	return fmt.Sprintf(`{"action":"set-snapshot-ref","ref-name":%q,"type":"tag","snapshot-id":%d}`, name, id)
}

func appendTo(ref string, id, parent, sequence int64) []string {
	return []string{addSnap(id, parent, sequence), branch(ref, id)}
}

func schemaOf(fields ...string) string {
	return `{"action":"add-schema","schema":{"type":"struct","schema-id":9,"fields":[` + strings.Join(fields, ",") + `]}}`
}

func field(id int, name, typ string) string {
	if !strings.HasPrefix(typ, "{") {
		typ = `"` + typ + `"`
	}
	return fmt.Sprintf(`{"id":%d,"name":%q,"required":false,"type":%s}`, id, name, typ)
}

const (
	useLastSchema = `{"action":"set-current-schema","schema-id":-1}`
	useLastSpec   = `{"action":"set-default-spec","spec-id":-1}`
	useLastOrder  = `{"action":"set-default-sort-order","sort-order-id":-1}`
)

// fixtureXYZ are the columns of the V2 fixture's current schema, as optional ones.
var fixtureXYZ = []string{field(1, "x", "long"), field(2, "y", "long"), field(3, "z", "long")}

// testingT is what rapid's and testing's tests have in common.
type testingT interface {
	Helper()
	Fatalf(format string, args ...any)
}
