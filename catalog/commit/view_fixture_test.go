package commit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"catalogd/internal/fault"
)

const viewUUID = "fa6506c3-7681-40c8-86dc-e36561f83385"

func parseTheView(t testingT, raw []byte) *View {
	t.Helper()
	v, err := ParseView(raw)
	if err != nil {
		t.Fatalf("parse: %v\n%s", err, raw)
	}
	return v
}

// plainView is Iceberg's fixture: versions 1 and 2 of dialect spark-sql, 2 is current, schema 0.
func plainView(t testing.TB) *View { return parseTheView(t, fixture(t, "ValidViewMetadata.json")) }

func viewRequest(t testingT, updates ...string) ViewRequest {
	t.Helper()
	r, err := DecodeViewRequest([]byte(`{"updates":[` + strings.Join(updates, ",") + `]}`))
	if err != nil {
		t.Fatalf("decode: %v", err)
	}
	return r
}

// commitOnView applies updates, which must change the view.
func commitOnView(t testingT, base *View, updates ...string) *View {
	t.Helper()
	before := string(base.JSON())
	next, changed, err := ApplyView(base, viewRequest(t, updates...), Stamp{Now: now})
	if err != nil {
		t.Fatalf("apply: %v", err)
	}
	if !changed {
		t.Fatalf("nothing changed by %s", updates)
	}
	if string(base.JSON()) != before || !reflect.DeepEqual(base, parseTheView(t, base.JSON())) {
		t.Fatalf("the base changed")
	}
	checkView(t, next)
	return next
}

// checkView holds a view that was written against the rules that every written one keeps.
func checkView(t testingT, v *View) {
	t.Helper()
	if !json.Valid(v.JSON()) {
		t.Fatalf("not JSON: %s", v.JSON())
	}
	if !reflect.DeepEqual(parseTheView(t, v.JSON()), v) {
		t.Fatalf("the index of the written view differs from that of its text\n%s", v.JSON())
	}
	if properties := v.members.raw(keyProperties); properties != nil && isNull(properties) {
		t.Fatalf("null properties in %s", v.JSON())
	}
}

func viewUnchanged(t testing.TB, base *View, updates ...string) {
	t.Helper()
	next, changed, err := ApplyView(base, viewRequest(t, updates...), Stamp{Now: now})
	if err != nil || changed || next != base {
		t.Errorf("changed %v, error %v; want a no-op", changed, err)
	}
}

// viewRefused wants the request refused, by its decoding or on the base.
func viewRefused(t testing.TB, base *View, kind fault.Kind, text string, updates ...string) {
	t.Helper()
	r, err := DecodeViewRequest([]byte(`{"updates":[` + strings.Join(updates, ",") + `]}`))
	if err == nil {
		_, _, err = ApplyView(base, r, Stamp{Now: now})
	}
	wantError(t, err, kind, text)
}

func wantViewMember(t testing.TB, v *View, name, want string) {
	t.Helper()
	have := v.members.raw(name)
	if want == "" {
		if have != nil {
			t.Errorf("%s = %s, want it absent", name, have)
		}
		return
	}
	if have == nil || !reflect.DeepEqual(decoded(t, have), decoded(t, []byte(want))) {
		t.Errorf("%s = %s, want %s", name, have, want)
	}
}

// viewVersionOf is a view-version; representations are pairs of dialect and query.
func viewVersionOf(id, schema int, pairs ...string) string {
	var texts []string
	for i := 0; i < len(pairs); i += 2 {
		texts = append(texts, fmt.Sprintf(`{"type":"sql","dialect":%q,"sql":%q}`, pairs[i], pairs[i+1]))
	}
	return fmt.Sprintf(`{"version-id":%d,"timestamp-ms":%d,"schema-id":%d,"summary":{"user":"some-user"},"representations":[%s],"default-namespace":["ns"]}`,
		id, 6000+id, schema, strings.Join(texts, ","))
}

func addVersion(id, schema int, pairs ...string) string {
	return `{"action":"add-view-version","view-version":` + viewVersionOf(id, schema, pairs...) + `}`
}

func useVersion(id int) string {
	return fmt.Sprintf(`{"action":"set-current-view-version","view-version-id":%d}`, id)
}

// replaceBy is what a client sends for a replace: it thinks that the new version has that id.
func replaceBy(id int, pairs ...string) []string {
	return []string{addVersion(id, 0, pairs...), useVersion(-1)}
}

func versionIDs(v *View) (ids []int) {
	for _, version := range v.versions {
		ids = append(ids, version.id)
	}
	return ids
}

func logIDs(v *View) (ids []int) {
	for _, e := range v.log {
		ids = append(ids, e.version)
	}
	return ids
}

func wantIDs(t testing.TB, what string, have []int, want ...int) {
	t.Helper()
	if !reflect.DeepEqual(have, want) {
		t.Errorf("%s %v, want %v", what, have, want)
	}
}

// viewBody is a createView request; rest is more of its members.
func viewBody(version string, rest ...string) []byte {
	return []byte(`{"name":"v","schema":{"type":"struct","schema-id":7,"fields":[` + field(5, "x", "long") + `]},"view-version":` + version + `,"properties":{}` +
		strings.Join(append([]string{""}, rest...), ",") + `}`)
}

func createView(t testing.TB, body []byte) (*View, error) {
	t.Helper()
	r, err := DecodeCreateView(body)
	if err != nil {
		return nil, err
	}
	v, err := CreateView(r, CreateStamp{Now: now, UUID: viewUUID, Location: "s3://b/v0/"})
	if err == nil {
		checkView(t, v)
		if !bytes.Contains(v.JSON(), []byte(viewUUID)) {
			t.Error("the uuid is not the given one")
		}
	}
	return v, err
}
