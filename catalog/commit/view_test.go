package commit

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"catalogd/internal/fault"
)

const oneSQL = `{"type":"sql","dialect":"trino","sql":"SELECT 1"}`

func TestField_C058_OneLogEntryForEachChangeOfTheCurrentVersion(t *testing.T) {
	v := commitOnView(t, plainView(t), addVersion(3, 0, "spark-sql", "a"), addVersion(4, 0, "spark-sql", "b"), useVersion(3))
	wantIDs(t, "versions", versionIDs(v), 1, 2, 3, 4)
	wantIDs(t, "log", logIDs(v), 1, 2, 3)
	v = commitOnView(t, v, `{"action":"set-properties","updates":{"version.history.num-entries":"10"}}`)
	for i := 5; i < 20; i++ {
		v = commitOnView(t, v, replaceBy(i, "spark-sql", fmt.Sprint(i))...)
	}
	wantIDs(t, "versions", versionIDs(v), 10, 11, 12, 13, 14, 15, 16, 17, 18, 19)
	wantIDs(t, "log", logIDs(v), 10, 11, 12, 13, 14, 15, 16, 17, 18, 19)

	v = commitOnView(t, v, useVersion(10))
	v = commitOnView(t, v, addVersion(20, 0, "spark-sql", "20")) // not made current: the oldest but the current one goes
	wantIDs(t, "versions", versionIDs(v), 10, 12, 13, 14, 15, 16, 17, 18, 19, 20)
	wantIDs(t, "log", logIDs(v), 12, 13, 14, 15, 16, 17, 18, 19, 10)
	viewUnchanged(t, v, useVersion(15), useVersion(20), useVersion(10)) // back where it was
}

func TestField_C064_DefaultCatalogAndNamespaceSurvive(t *testing.T) {
	version := `{"version-id":9,"timestamp-ms":77,"schema-id":-1,"summary":{"engine-name":"trino","engine-version":"483"},"default-catalog":"lake","default-namespace":["sales","eu.west"],` +
		`"representations":[{"type":"sql","dialect":"trino","sql":"SELECT * FROM orders"}]}`
	v, err := createView(t, viewBody(version))
	if err != nil {
		t.Fatal(err)
	}
	wantViewMember(t, v, keyVersions, `[{"version-id":1,"timestamp-ms":77,"schema-id":0,"summary":{"engine-name":"trino","engine-version":"483"},"default-catalog":"lake","default-namespace":["sales","eu.west"],`+
		`"representations":[{"type":"sql","dialect":"trino","sql":"SELECT * FROM orders"}]}]`)
	v = commitOnView(t, v, `{"action":"add-view-version","view-version":{"version-id":2,"timestamp-ms":78,"schema-id":0,"summary":{},"default-namespace":[],"default-catalog":null,"representations":[`+oneSQL+`]}}`, useVersion(-1))
	if have := string(v.version(2).text); have != `{"version-id":2,"timestamp-ms":78,"schema-id":0,"summary":{},"default-namespace":[],"representations":[`+oneSQL+`]}` {
		t.Errorf("version 2 is %s", have)
	}
}

func TestCreateView(t *testing.T) {
	v, err := createView(t, viewBody(viewVersionOf(88, 5, "trino", "SELECT 1", "spark", "select 1"), `"location":"s3://b/here//"`))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		keyFormatVersion: `1`, keyViewUUID: `"` + viewUUID + `"`, keyLocation: `"s3://b/here"`, keyProperties: `{}`, keyCurrentVersion: `1`,
		keyVersionLog: `[{"timestamp-ms":6088,"version-id":1}]`,
		keySchemas:    `[{"type":"struct","schema-id":0,"fields":[{"id":5,"name":"x","required":false,"type":"long"}]}]`,
	} {
		wantViewMember(t, v, name, want)
	}
	if v.CurrentVersionID() != 1 || v.UUID() != viewUUID || v.Location() != "s3://b/here" || v.version(1).schema != 0 {
		t.Errorf("current %d, uuid %s, location %s", v.CurrentVersionID(), v.UUID(), v.Location())
	}
	r, err := DecodeCreateView([]byte(`{"name":"n","location":null,"schema":{"type":"struct","fields":[]},"view-version":` + viewVersionOf(1, 0, "d", "s") + `,"properties":{"comment":"c","format-version":"9"}}`))
	if err != nil || r.Name != "n" || r.Location != "" || !reflect.DeepEqual(r.Properties, map[string]string{"comment": "c", "format-version": "9"}) {
		t.Fatalf("%+v, %v", r, err)
	}
	for range 2 { // a request can be tried again
		v, err = CreateView(r, CreateStamp{Now: now, UUID: viewUUID, Location: "s3://b/v0/"})
		if err != nil || v.Location() != "s3://b/v0" || !reflect.DeepEqual(v.Properties(), r.Properties) {
			t.Fatalf("%v, %v", v, err)
		}
	}
	_, err = CreateView(r, CreateStamp{Now: now, UUID: viewUUID})
	wantError(t, err, fault.IllegalArgument, "without a location")
	_, err = CreateView(r, CreateStamp{Now: now, UUID: "x", Location: "s3://b/v"})
	wantError(t, err, fault.Validation, `"view-uuid" is not a UUID`)
}

func TestCreateView_Refusals(t *testing.T) {
	good := string(viewBody(viewVersionOf(1, 0, "trino", "SELECT 1")))
	for _, c := range []struct {
		old, replacement, text string
		kind                   fault.Kind
	}{
		{`"name":"v",`, ``, `missing field "name"`, fault.BadRequest},
		{`"schema":`, `"x":`, `missing field "schema"`, fault.BadRequest},
		{`"view-version":`, `"x":`, `missing field "view-version"`, fault.BadRequest},
		{`"version-id":1,`, ``, `missing field "version-id"`, fault.BadRequest},
		{`"timestamp-ms":6001,`, ``, `missing field "timestamp-ms"`, fault.BadRequest},
		{`"schema-id":0,"summary"`, `"summary"`, `missing field "schema-id"`, fault.BadRequest},
		{`"summary":{"user":"some-user"},`, ``, `missing field "summary"`, fault.BadRequest},
		{`"some-user"`, `5`, `field "summary.user" must be a string`, fault.BadRequest},
		{`,"default-namespace":["ns"]`, ``, `missing field "default-namespace"`, fault.BadRequest},
		{`["ns"]`, `["n\u0000s"]`, `field "default-namespace" must not hold a NUL`, fault.BadRequest},
		{`["ns"]`, `"ns"`, `default-namespace must be an array`, fault.BadRequest},
		{`["ns"]`, `["ns"],"default-catalog":1`, `field "default-catalog" must be a string`, fault.BadRequest},
		{`"type":"sql",`, ``, `missing field "type"`, fault.BadRequest},
		{`"dialect":"trino",`, ``, `missing field "dialect"`, fault.BadRequest},
		{`"dialect":"trino"`, `"dialect":" "`, `field "dialect" must not be blank`, fault.BadRequest},
		{`"sql":"SELECT 1"`, `"sql":""`, `field "sql" must not be blank`, fault.BadRequest},
		{`[{"type":"sql","dialect":"trino","sql":"SELECT 1"}]`, `[]`, `field "representations" must not be empty`, fault.BadRequest},
		{`"properties":{}`, `"properties":{"a":null}`, `field "properties.a" must be a string`, fault.BadRequest},
		{`"properties":{}`, `"properties":{"version.history.num-entries":"0"}`, `version.history.num-entries must be a positive integer`, fault.IllegalArgument},
		{`"properties":{}`, `"properties":{"commit.retry.num-retries":"x"}`, `commit.retry.num-retries must be an integer`, fault.Validation},
		{`"properties":{}`, `"properties":{"write.metadata.compression-codec":"zstd"}`, `write.metadata.compression-codec must be gzip or none`, fault.IllegalArgument},
		{`"type":"long"`, `"type":"longer"`, `unknown type "longer"`, fault.BadRequest},
		{`"fields":[`, `"identifier-field-ids":[77],"fields":[`, `Cannot add field 77 as an identifier field`, fault.IllegalArgument},
		{`{"type":"sql","dialect":"trino","sql":"SELECT 1"}`, strings.Repeat(oneSQL+",", viewRepresentationsMax) + oneSQL, `"representations" has more than 100`, fault.TooLarge},
	} {
		body := strings.Replace(good, c.old, c.replacement, 1)
		if body == good {
			t.Fatalf("%q is not in the body", c.old)
		}
		_, err := createView(t, []byte(body))
		wantError(t, err, c.kind, c.text)
	}
	for _, body := range []string{``, `[]`, `{`, good + `x`, "{\"name\":\"\xff\"}"} {
		if _, err := DecodeCreateView([]byte(body)); !fault.Is(err, fault.BadRequest) {
			t.Errorf("%q: %v", body, err)
		}
	}
}

func TestView_RepeatedDialects(t *testing.T) {
	const text = "Invalid view version: Cannot add multiple queries for dialect trino"
	for _, second := range []string{"trino", "TRINO", " trino"} {
		_, err := createView(t, viewBody(viewVersionOf(1, 0, "trino", "select 1", second, "select 2")))
		wantError(t, err, fault.IllegalArgument, text)
	}
	viewRefused(t, plainView(t), fault.IllegalArgument, text, addVersion(3, 0, "spark-sql", "a", "Trino", "select 1", "trino", "select 2"))

	// One that was written by somebody else can be repaired, and can be made current again: it is there already.
	v := parseTheView(t, fixture(t, "ViewMetadataMultipleSQLsForDialect.json"))
	v = commitOnView(t, v, replaceBy(2, "spark-sql", "select 'foo' foo")...)
	wantIDs(t, "log", logIDs(v), 1, 2)
	commitOnView(t, v, useVersion(1))
}

func TestView_DroppedDialects(t *testing.T) {
	v := commitOnView(t, plainView(t), replaceBy(3, "Spark-SQL", "a", "trino", "b")...)
	viewRefused(t, v, fault.Validation, "loss of view dialects (replace.drop-dialect.allowed=false): it has spark-sql, trino, the new version has trino", replaceBy(4, "trino", "c")...)
	viewRefused(t, v, fault.Validation, "loss of view dialects", useVersion(1))
	commitOnView(t, v, addVersion(4, 0, "trino", "c")) // readers do not see it
	commitOnView(t, v, replaceBy(4, "TRINO", "c", "spark-sql", "d", "duckdb", "e")...)
	const allow = `{"action":"set-properties","updates":{"replace.drop-dialect.allowed":"TRUE"}}`
	v = commitOnView(t, v, append(replaceBy(4, "trino", "c"), allow)...) // in one request, as a whole
	viewRefused(t, v, fault.Validation, "loss of view dialects", append(replaceBy(5, "duckdb", "c"), `{"action":"remove-properties","removals":["replace.drop-dialect.allowed"]}`)...)
	commitOnView(t, v, replaceBy(5, "duckdb", "c")...)
}

func TestView_VersionsAreReused(t *testing.T) {
	base := commitOnView(t, plainView(t), replaceBy(3, "spark-sql", "a", "trino", "b")...)
	v := commitOnView(t, base, append(replaceBy(9, "spark-sql", "a2", "trino", "b"), useVersion(9))...)
	wantIDs(t, "versions", versionIDs(v), 1, 2, 3, 9)
	v = commitOnView(t, v, replaceBy(10, "spark-sql", "a", "trino", "b")...) // version 3 again
	wantIDs(t, "versions", versionIDs(v), 1, 2, 3, 9)
	wantIDs(t, "log", logIDs(v), 1, 2, 3, 9, 3)
	if have := string(v.log[4].text); have != fmt.Sprintf(`{"timestamp-ms":%d,"version-id":3}`, now.UnixMilli()) {
		t.Errorf("a version that was there before is logged now, not %s", have)
	}
	if have := string(v.log[3].text); have != `{"timestamp-ms":6009,"version-id":9}` {
		t.Errorf("a new version is logged with its own time, not %s", have)
	}
	viewUnchanged(t, v, replaceBy(10, "spark-sql", "a", "trino", "b")...)
	viewUnchanged(t, v, addVersion(77, 0, "spark-sql", "a2", "trino", "b"))

	twice := commitOnView(t, base, addVersion(4, 0, "spark-sql", "c", "trino", "d"), addVersion(4, 0, "spark-sql", "c", "trino", "d"), useVersion(-1))
	wantIDs(t, "versions named twice in one request", versionIDs(twice), 1, 2, 3, 4)

	same := `{"version-id":9,"timestamp-ms":1,"schema-id":0,"summary":{"a":"1","b":"2"},"representations":[` + oneSQL + `],"default-namespace":["ns"],"default-catalog":"c"}`
	v = commitOnView(t, base, `{"action":"add-view-version","view-version":`+same+`}`)
	for old, replacement := range map[string]string{
		`"a":"1","b":"2"`: `"b":"2","a":"1"`, `"timestamp-ms":1`: `"timestamp-ms":2`, `"version-id":9`: `"version-id":1`, oneSQL: strings.ReplaceAll(oneSQL, ":", " : "), `"sql"`: `"SQL"`,
	} {
		viewUnchanged(t, v, `{"action":"add-view-version","view-version":`+strings.Replace(same, old, replacement, 1)+`}`)
	}
	for old, replacement := range map[string]string{
		`"a":"1"`: `"a":"2"`, `["ns"]`: `["ns","b"]`, `["ns"],`: `[],`, `,"default-catalog":"c"`: ``, `"c"`: `""`, `"SELECT 1"`: `"SELECT 2"`, `"trino"`: `"Trino"`,
		oneSQL: oneSQL + `,{"type":"substrait","plan":"x"}`, `"summary"`: `"x-new":1,"summary"`, `"SELECT 1"}`: `"SELECT 1","x-new":1}`,
	} {
		if next := commitOnView(t, v, `{"action":"add-view-version","view-version":`+strings.Replace(same, old, replacement, 1)+`}`); len(next.versions) != len(v.versions)+1 {
			t.Errorf("%s is not a version of its own", replacement)
		}
	}
}

func TestView_ConcurrentReplacesGetIdsInTurn(t *testing.T) {
	v, err := createView(t, viewBody(viewVersionOf(1, 0, "trino", "SELECT 1")))
	if err != nil {
		t.Fatal(err)
	}
	// Both clients saw version 1, so both ask for 2.
	v = commitOnView(t, v, replaceBy(2, "trino", "SELECT 2")...)
	v = commitOnView(t, v, replaceBy(2, "trino", "SELECT 3")...)
	wantIDs(t, "versions", versionIDs(v), 1, 2, 3)
	wantIDs(t, "log", logIDs(v), 1, 2, 3)
	if v.CurrentVersionID() != 3 {
		t.Errorf("current is %d", v.CurrentVersionID())
	}
}

func TestView_Schemas(t *testing.T) {
	base := plainView(t)
	version := func(schema int) string { return addVersion(3, schema, "spark-sql", fmt.Sprint(schema)) }
	v := commitOnView(t, base, schemaOf(field(1, "other", "variant")), version(-1), useVersion(-1))
	if len(v.schemas) != 2 || v.schemas[1].id != 1 || v.version(3).schema != 1 {
		t.Errorf("schemas %v, version %+v", v.schemas, v.version(3))
	}
	v = commitOnView(t, base, `{"action":"add-schema","schema":`+string(base.schemas[0].text)+`}`, version(-1))
	if len(v.schemas) != 1 || v.version(3).schema != 0 {
		t.Errorf("an equal schema is used again: %v", v.schemas)
	}
	viewRefused(t, base, fault.Validation, "Cannot set last added schema: no schema has been added", version(-1))
	viewRefused(t, base, fault.IllegalArgument, "Cannot add version with unknown schema: 1", version(1))
	v = commitOnView(t, base, schemaOf(field(1, "a", "int")), schemaOf(field(1, "b", "int")), version(1), version(-1))
	if v.version(3).schema != 1 || v.version(4).schema != 2 {
		t.Errorf("versions %+v", v.versions)
	}
}

func TestView_CurrentVersion(t *testing.T) {
	v := plainView(t)
	viewUnchanged(t, v, useVersion(2))
	viewRefused(t, v, fault.IllegalArgument, "Cannot set current version to unknown version: 3", useVersion(3))
	viewRefused(t, v, fault.Validation, "no view version has been added", useVersion(-1))
	v = commitOnView(t, v, useVersion(1))
	wantIDs(t, "log", logIDs(v), 1, 2, 1)
	viewRefused(t, v, fault.Validation, "used up all version ids", addVersion(2147483647, 0, "spark-sql", "a"), addVersion(3, 0, "spark-sql", "b"))
	viewRefused(t, v, fault.BadRequest, `"version-id" must be a 32-bit integer`, addVersion(2147483648, 0, "spark-sql", "a"))
}

func TestView_HistorySize(t *testing.T) {
	size := func(n string) string {
		return `{"action":"set-properties","updates":{"version.history.num-entries":"` + n + `"}}`
	}
	v := plainView(t)
	for _, bad := range []string{"0", "-1", "ten", "", "99999999999"} {
		viewRefused(t, v, fault.IllegalArgument, "version.history.num-entries must be a positive integer", size(bad))
	}
	v = commitOnView(t, v, size("1"))
	wantIDs(t, "versions", versionIDs(v), 2)
	wantIDs(t, "log", logIDs(v), 2)
	// What the request brings stays, whatever the size.
	v = commitOnView(t, v, addVersion(3, 0, "spark-sql", "a"), addVersion(4, 0, "spark-sql", "b"), addVersion(5, 0, "spark-sql", "c"), useVersion(4))
	wantIDs(t, "versions", versionIDs(v), 3, 4, 5)
	wantIDs(t, "log", logIDs(v), 4)
	// The highest stays beside the current one, so that its id is not given again.
	v = commitOnView(t, v, `{"action":"set-properties","updates":{"a":"b"}}`)
	wantIDs(t, "versions", versionIDs(v), 4, 5)
	v = commitOnView(t, v, addVersion(5, 0, "spark-sql", "d"))
	wantIDs(t, "versions", versionIDs(v), 4, 6)
}

func TestView_LogHasNoGaps(t *testing.T) {
	v := commitOnView(t, plainView(t), useVersion(1))
	v = commitOnView(t, v, useVersion(2))
	v = commitOnView(t, v, addVersion(3, 0, "spark-sql", "a"), `{"action":"set-properties","updates":{"version.history.num-entries":"2"}}`)
	wantIDs(t, "versions", versionIDs(v), 2, 3)
	wantIDs(t, "log", logIDs(v), 2)
}

func TestView_OtherUpdates(t *testing.T) {
	v := plainView(t)
	viewUnchanged(t, v, `{"action":"assign-uuid","uuid":"FA6506C3-7681-40C8-86DC-E36561F83385"}`, `{"action":"upgrade-format-version","format-version":1}`,
		`{"action":"set-location","location":"s3://bucket/test/location/"}`, `{"action":"remove-properties","removals":["absent"]}`, `{"action":"set-properties","updates":{"some-key":"some-value"}}`)
	viewRefused(t, v, fault.IllegalArgument, "Cannot reassign the view's uuid", `{"action":"assign-uuid","uuid":"`+tableUUID+`"}`)
	viewRefused(t, v, fault.IllegalArgument, "Cannot upgrade view to unsupported format version: v2", `{"action":"upgrade-format-version","format-version":2}`)
	viewRefused(t, v, fault.IllegalArgument, "Cannot downgrade v1 view to v0", `{"action":"upgrade-format-version","format-version":0}`)
	viewRefused(t, v, fault.BadRequest, `missing field "location"`, `{"action":"set-location","location":null}`)
	viewRefused(t, v, fault.BadRequest, `"location" must not be empty`, `{"action":"set-location","location":""}`)
	next := commitOnView(t, v, `{"action":"SET-Location","location":"s3://b/new/"}`, `{"action":"remove-properties","removals":["some-key"]}`, `{"action":"set-properties","updated":{"format-version":"7","x":"ü\"\n"}}`)
	wantViewMember(t, next, keyLocation, `"s3://b/new"`)
	wantViewMember(t, next, keyProperties, `{"comment":"some-comment","format-version":"7","x":"ü\"\n"}`)
	for _, member := range []string{keyVersions, keyVersionLog, keySchemas, "current-schema-id"} {
		if string(next.members.raw(member)) != string(v.members.raw(member)) {
			t.Errorf("%s changed", member)
		}
	}
}

func TestView_MetadataFiles(t *testing.T) {
	v := plainView(t)
	table := v2Table(t)
	if !Compressed(v) || Compressed(table) {
		t.Error("Java writes views with gzip and tables without")
	}
	for codec, want := range map[string]bool{"none": false, "NONE": false, "gzip": true, "GZIP": true} {
		set := `{"action":"set-properties","updates":{"write.metadata.compression-codec":"` + codec + `"}}`
		if Compressed(commitOnView(t, v, set)) != want || Compressed(commitOn(t, table, set)) != want {
			t.Errorf("codec %s: want gzip %v", codec, want)
		}
	}
	refused(t, table, fault.IllegalArgument, "must be gzip or none", `{"action":"set-properties","updates":{"write.metadata.compression-codec":"zstd"}}`)
	if have := MetadataFolder(v); have != "s3://bucket/test/location/metadata" {
		t.Error(have)
	}
	if have := MetadataFolder(commitOnView(t, v, `{"action":"set-properties","updates":{"write.metadata.path":"s3://b/m/"}}`)); have != "s3://b/m" {
		t.Error(have)
	}
}

// TestView_TimeIsTheStamps keeps the engine pure: a version that comes back is logged at the stamp's time.
func TestView_TimeIsTheStamps(t *testing.T) {
	for _, at := range []time.Time{now, now.Add(time.Hour)} {
		v, _, err := ApplyView(plainView(t), viewRequest(t, useVersion(1)), Stamp{Now: at})
		if err != nil || string(v.log[2].text) != fmt.Sprintf(`{"timestamp-ms":%d,"version-id":1}`, at.UnixMilli()) {
			t.Errorf("%v, %v", v, err)
		}
	}
}

// TestView_IndexIsCounted keeps the cache's account honest: what a view holds grows with its versions.
func TestView_IndexIsCounted(t *testing.T) {
	few := plainView(t)
	many := few
	for i := 3; i < 10; i++ {
		many = commitOnView(t, many, replaceBy(i, "spark-sql", fmt.Sprint(i))...)
	}
	perVersion := (many.IndexBytes() - few.IndexBytes()) / 7
	if few.IndexBytes() < 1000 || perVersion < 300 || perVersion > 3000 {
		t.Errorf("%d bytes, and %d for each further version", few.IndexBytes(), perVersion)
	}
}
