package commit

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"catalogd/internal/fault"
)

// nestedCreate is the compatibility kit's nested table, with foreign ids and members that we do not know.
const nestedCreate = `{"name":"t","x-request":1,"schema":{"type":"struct","schema-id":7,"x-schema":{"a":null},"identifier-field-ids":[10],"fields":[` +
	`{"id":10,"name":"id","required":true,"type":"long","x-field":[1,2]},` +
	`{"id":11,"name":"data","required":false,"type":"string","doc":null},` +
	`{"id":12,"name":"list","required":false,"type":{"type":"list","element-id":20,"element":"int","element-required":false}},` +
	`{"id":13,"name":"map","required":false,"type":{"type":"map","key-id":21,"key":"string","value-id":22,"value":"long","value-required":true,"x-map":true}},` +
	`{"id":14,"name":"struct","required":false,"type":{"type":"struct","fields":[{"id":30,"name":"nested","required":true,"type":"int"}]}}]},` +
	`"partition-spec":{"spec-id":9,"fields":[{"name":"id_bucket","transform":"bucket[4]","source-id":10,"field-id":77},{"name":"data","transform":"identity","source-id":11}]},` +
	`"write-order":{"order-id":3,"fields":[{"transform":"identity","source-id":11,"direction":"asc","null-order":"nulls-first"}]},` +
	`"location":"s3://b/t/","properties":{"owner":"me"}}`

var stamp = CreateStamp{Now: now, UUID: tableUUID, Location: "s3://warehouse/" + tableUUID}

func create(t testing.TB, body string) (*Document, error) {
	t.Helper()
	r, err := DecodeCreate([]byte(body))
	if err != nil {
		return nil, err
	}
	d, err := Create(r, stamp)
	if err == nil {
		checkIndex(t, d)
	}
	return d, err
}

func created(t testing.TB, body string) *Document {
	t.Helper()
	d, err := create(t, body)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// simple is a create with one column and the given properties.
func simple(properties string, further ...string) string {
	return `{"name":"t","schema":{"type":"struct","fields":[{"id":5,"name":"a","required":false,"type":"long"}]},"properties":{` +
		properties + `}` + strings.Join(further, "") + `}`
}

func TestCreate_GivesIdsBreadthFirst(t *testing.T) {
	d := created(t, nestedCreate)
	wantTop(t, d, keySchemas, `[{"type":"struct","schema-id":0,"x-schema":{"a":null},"identifier-field-ids":[1],"fields":[
		{"id":1,"name":"id","required":true,"type":"long","x-field":[1,2]},
		{"id":2,"name":"data","required":false,"type":"string"},
		{"id":3,"name":"list","required":false,"type":{"type":"list","element-id":6,"element":"int","element-required":false}},
		{"id":4,"name":"map","required":false,"type":{"type":"map","key-id":7,"key":"string","value-id":8,"value":"long","value-required":true,"x-map":true}},
		{"id":5,"name":"struct","required":false,"type":{"type":"struct","fields":[{"id":9,"name":"nested","required":true,"type":"int"}]}}]}]`)
	wantTop(t, d, keySpecs, `[{"spec-id":0,"fields":[{"name":"id_bucket","transform":"bucket[4]","source-id":1,"field-id":1000},{"name":"data","transform":"identity","source-id":2,"field-id":1001}]}]`)
	wantTop(t, d, keyOrders, `[{"order-id":1,"fields":[{"transform":"identity","source-id":2,"direction":"asc","null-order":"nulls-first"}]}]`)
	for name, want := range map[string]string{
		keyFormatVersion: "2", keyUUID: `"` + tableUUID + `"`, keyLocation: `"s3://b/t"`, keyLastSequence: "0",
		keyLastUpdated: "1800000000000", keyLastColumn: "9", keyCurrentSchema: "0", keyDefaultSpec: "0",
		keyLastPartition: "1001", keyDefaultOrder: "1", keyCurrentSnapshot: "-1", keyRefs: "{}", keySnapshots: "[]",
		keyStatistics: "[]", keyPartitionStats: "[]", keySnapshotLog: "[]", keyMetadataLog: "[]", keyNextRow: "",
		keySchema: "", keyPartitionSpec: "",
		keyProperties: `{"owner":"me","write.parquet.compression-codec":"zstd"}`,
	} {
		wantTop(t, d, name, want)
	}
}

func TestCreate_ChildrenOfAStructComeAfterItsFields(t *testing.T) {
	d := created(t, `{"name":"t","schema":{"type":"struct","fields":[`+
		field(1, "a", `{"type":"struct","fields":[`+field(2, "x", `{"type":"struct","fields":[`+field(3, "y", "int")+`]}`)+`,`+field(4, "z", "int")+`]}`)+
		`,`+field(5, "b", "int")+`]}}`)
	s, err := parseSchema(d.CurrentSchemaJSON())
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]int{}
	for i := range s.columns {
		have[s.fullName(i)] = s.columns[i].id
	}
	if want := map[string]int{"a": 1, "b": 2, "a.x": 3, "a.z": 4, "a.x.y": 5}; !reflect.DeepEqual(have, want) {
		t.Errorf("ids are %v, want %v", have, want)
	}
}

func TestCreate_Unpartitioned(t *testing.T) {
	d := created(t, simple(``))
	wantTop(t, d, keyLastPartition, "999")
	wantTop(t, d, keySpecs, `[{"spec-id":0,"fields":[]}]`)
	wantTop(t, d, keyOrders, `[{"order-id":0,"fields":[]}]`)
	wantTop(t, d, keyDefaultOrder, "0")
	wantTop(t, d, keyLocation, `"s3://warehouse/`+tableUUID+`"`)
}

func TestCreate_FormatVersions(t *testing.T) {
	v1 := created(t, simple(`"format-version":"1"`))
	wantTop(t, v1, keyPartitionSpec, "[]")
	wantTop(t, v1, keySchema, `{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"a","required":false,"type":"long"}]}`)
	wantTop(t, v1, keyLastSequence, "")
	v3 := created(t, simple(`"format-version":"3"`))
	wantTop(t, v3, keyNextRow, "0")
	wantTop(t, v3, keyCurrentSnapshot, "")
	wantTop(t, v3, keyProperties, `{"write.parquet.compression-codec":"zstd"}`)
	for _, version := range []string{"0", "4", "-1", "two", "99999999999999999999"} {
		_, err := create(t, simple(`"format-version":"`+version+`"`))
		wantError(t, err, fault.IllegalArgument, "Unsupported format version")
	}
}

func TestCreate_Staged(t *testing.T) {
	d := created(t, simple(`"write.parquet.compression-codec":"snappy"`, `,"stage-create":true`))
	wantTop(t, d, keyProperties, `{"write.parquet.compression-codec":"snappy","created-at":"2027-01-15T08:00:00Z"}`)
	r, err := DecodeCreate([]byte(simple(``, `,"stage-create":true`)))
	if err != nil || !r.Stage || r.Name != "t" || r.Location != "" {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestCreate_Refuses(t *testing.T) {
	for _, c := range []struct {
		name, body, want string
		kind             fault.Kind
	}{
		{"not JSON", `{`, "ends too early", fault.BadRequest},
		{"no name", `{"schema":{"type":"struct","fields":[]}}`, `missing field "name"`, fault.BadRequest},
		{"no schema", `{"name":"t"}`, `missing field "schema"`, fault.BadRequest},
		{"stage", simple(``, `,"stage-create":"yes"`), `"stage-create" must be true or false`, fault.BadRequest},
		{"location", simple(``, `,"location":5`), `"location" must be a string`, fault.BadRequest},
		{"property", simple(`"a":1`), `"properties.a" must be a string`, fault.BadRequest},
		{"properties", strings.Replace(simple(``), `"properties":{}`, `"properties":[]`, 1), "properties must be an object", fault.BadRequest},
		{"spec", simple(``, `,"partition-spec":[]`), "partition spec must be an object", fault.BadRequest},
		{"order", simple(``, `,"write-order":{"order-id":1}`), `missing field "fields"`, fault.BadRequest},
		{"spec's source", simple(``, `,"partition-spec":{"fields":[{"name":"b","transform":"identity","source-id":1}]}`), "Cannot find source column 1", fault.IllegalArgument},
		{"order's source", simple(``, `,"write-order":{"order-id":1,"fields":[{"transform":"identity","source-id":1,"direction":"asc","null-order":"nulls-first"}]}`), "Cannot find source column 1", fault.IllegalArgument},
		{"ids twice", `{"name":"t","schema":{"type":"struct","fields":[` + field(1, "a", "int") + `,` + field(1, "b", "int") + `]}}`, "multiple fields have the id 1", fault.IllegalArgument},
		{"identifier", `{"name":"t","schema":{"type":"struct","identifier-field-ids":[9],"fields":[` + field(1, "a", "int") + `]}}`, "field 9 as an identifier field", fault.IllegalArgument},
		{"retries", simple(`"commit.retry.max-wait-ms":"soon"`), "commit.retry.max-wait-ms must be an integer", fault.Validation},
		{"encryption", simple(`"encryption.key-id":"k"`), "encryption.key-id is not supported until v3", fault.IllegalArgument},
		{"metrics", simple(`"write.metadata.metrics.column.b":"full"`), "could not find column b", fault.Validation},
		{"v3 type", `{"name":"t","schema":{"type":"struct","fields":[` + field(1, "a", "timestamp_ns") + `]}}`, "timestamp_ns is not supported until v3", fault.IllegalArgument},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := create(t, c.body)
			wantError(t, err, c.kind, c.want)
		})
	}
	created(t, simple(`"write.metadata.metrics.column.a":"full","commit.retry.num-retries":"0","commit.retry.other":"x"`))
	created(t, simple(`"format-version":"3","encryption.key-id":"k"`))
}

func TestCreate_MetricsOfNestedColumns(t *testing.T) {
	schema := `{"type":"struct","fields":[` + field(1, "l", `{"type":"list","element-id":2,"element-required":true,"element":{"type":"struct","fields":[`+field(3, "x", "int")+`]}}`) + `]}`
	for _, name := range []string{"l", "l.element", "l.element.x", "l.x"} {
		created(t, `{"name":"t","schema":`+schema+`,"properties":{"write.metadata.metrics.column.`+name+`":"none"}}`)
	}
}

// stagedCommit is what a client sends after a staged create.
func stagedCommit(t testing.TB, updates ...string) Request {
	t.Helper()
	r, err := DecodeRequest([]byte(`{"requirements":[{"type":"assert-create"}],"updates":[` + strings.Join(updates, ",") + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestApplyCreate_StagedTable(t *testing.T) {
	r := stagedCommit(t, `{"action":"assign-uuid","uuid":"00000000-0000-4000-8000-000000000001"}`,
		`{"action":"upgrade-format-version","format-version":3}`, schemaOf(fixtureXYZ...), useLastSchema,
		`{"action":"add-spec","spec":{"spec-id":0,"fields":[{"name":"x","transform":"identity","source-id":1,"field-id":1000}]}}`, useLastSpec,
		`{"action":"add-sort-order","sort-order":{"order-id":0,"fields":[]}}`, useLastOrder,
		`{"action":"set-location","location":"s3://b/t/"}`, `{"action":"set-properties","updates":{"a":"b","format-version":"3","uuid":"x"}}`,
		addRows(7, 0, 1, 0, 10), branch("main", 7))
	d, err := ApplyCreate(r, stamp)
	if err != nil {
		t.Fatal(err)
	}
	checkIndex(t, d)
	for name, want := range map[string]string{
		keyUUID: `"00000000-0000-4000-8000-000000000001"`, keyFormatVersion: "3", keyLocation: `"s3://b/t"`,
		keyNextRow: "10", keyLastSequence: "1", keyMetadataLog: "[]", keyProperties: `{"a":"b"}`, keyCurrentSnapshot: "7",
		keySnapshotLog: fmt.Sprintf(`[{"timestamp-ms":%d,"snapshot-id":7}]`, now.UnixMilli()-1000),
	} {
		wantTop(t, d, name, want)
	}
}

func TestApplyCreate_FillsInWhatIsLeftOut(t *testing.T) {
	d, err := ApplyCreate(stagedCommit(t, schemaOf(fixtureXYZ...), `{"action":"set-properties","updates":{"format-version":"1"}}`), stamp)
	if err != nil {
		t.Fatal(err)
	}
	checkIndex(t, d)
	for name, want := range map[string]string{
		keyUUID: `"` + tableUUID + `"`, keyFormatVersion: "1", keyLocation: `"` + stamp.Location + `"`, keyCurrentSchema: "0",
		keySpecs: `[{"spec-id":0,"fields":[]}]`, keyDefaultSpec: "0", keyOrders: `[{"order-id":0,"fields":[]}]`, keyDefaultOrder: "0",
	} {
		wantTop(t, d, name, want)
	}
}

func TestApplyCreate_Refuses(t *testing.T) {
	for _, c := range []struct {
		updates []string
		want    string
		kind    fault.Kind
	}{
		{nil, "no current schema", fault.Validation},
		{[]string{addSnap(7, 0, 1)}, "before a schema is added", fault.Validation},
		{[]string{schemaOf(fixtureXYZ...), addSnap(7, 0, 1)}, "before a partition spec is added", fault.Validation},
		{[]string{`{"action":"upgrade-format-version","format-version":4}`}, "Unsupported format version: 4", fault.IllegalArgument},
		{[]string{schemaOf(fixtureXYZ...), branch("main", 5)}, "unknown snapshot: 5", fault.Validation},
	} {
		_, err := ApplyCreate(stagedCommit(t, c.updates...), stamp)
		wantError(t, err, c.kind, c.want)
	}
	_, err := ApplyCreate(stagedCommit(t, schemaOf(fixtureXYZ...)), CreateStamp{Now: now, UUID: tableUUID})
	wantError(t, err, fault.IllegalArgument, "without a location")
}

func TestFileName(t *testing.T) {
	long := "s3://b/t/metadata/" + strings.Repeat("x", 1000) + ".metadata.json"
	for _, c := range []struct {
		previous, want string
		gzip           bool
	}{
		{"", "00000-u.metadata.json", false},
		{"", "00000-u.gz.metadata.json", true},
		{"s3://b/t/metadata/00000-abc.metadata.json", "00001-u.metadata.json", false},
		{"s3://b/1-2/metadata/00012-5c-a.gz.metadata.json", "00013-u.metadata.json", false},
		{"file:///t/metadata/123456-x.metadata.json", "123457-u.metadata.json", false},
		{"v7.metadata.json", "00008-u.metadata.json", false},
		{"s3://b/current.json", "00001-u.metadata.json", false},
		{"s3://b/x%2000005-y.metadata.json", "00001-u.metadata.json", false},
		{"s3://b/20240101123456789-y.metadata.json", "00001-u.metadata.json", false},
		{"s3://b/-5-y.metadata.json", "00001-u.metadata.json", false},
		{"s3://b/2147483647-y.metadata.json", "00001-u.metadata.json", false},
		{long, "00001-u.metadata.json", false},
	} {
		if have := FileName(c.previous, "u", c.gzip); have != c.want {
			t.Errorf("after %.60s comes %s, want %s", c.previous, have, c.want)
		}
	}
}

func TestMetadataFolder(t *testing.T) {
	d := with(t, v2Table(t), memberOf(keyLocation, `"s3://b/t/"`))
	if have := MetadataFolder(d); have != "s3://b/t/metadata" {
		t.Error(have)
	}
	if have := MetadataFolder(commitOn(t, d, `{"action":"set-properties","updates":{"write.metadata.path":"s3://b/t/m//"}}`)); have != "s3://b/t/m" {
		t.Error(have)
	}
}

func TestLanded(t *testing.T) {
	base := v2Table(t)
	first := request(t, appendTo("main", 7, snapshotTwo, 35)...)
	after := commitOn(t, base, appendTo("main", 7, snapshotTwo, 35)...)
	later := commitOn(t, after, append(appendTo("main", 8, 7, 36), `{"action":"set-properties","updates":{"a":"b"}}`)...)
	rolledBack := commitOn(t, after, branch("main", snapshotOne))
	expired := commitOn(t, later, `{"action":"remove-snapshots","snapshot-ids":[7]}`)
	other := request(t, strings.Replace(addSnap(7, snapshotTwo, 35), "7.avro", "8.avro", 1), branch("main", 7))
	for _, c := range []struct {
		name string
		base *Document
		r    Request
		want bool
	}{
		{"before", base, first, false},
		{"right after", after, first, true},
		{"head is a descendant", later, first, true},
		{"head was moved back", rolledBack, first, false},
		{"the snapshot has been expired", expired, first, false},
		{"another manifest list", after, other, false},
		{"another ref", after, request(t, appendTo("b", 7, snapshotTwo, 35)...), false},
		{"no snapshot in it", after, request(t, branch("main", 7)), false},
		{"a snapshot without ref", after, request(t, addSnap(7, snapshotTwo, 35)), true},
		{"two, one of them missing", after, request(t, addSnap(7, snapshotTwo, 35), addSnap(9, snapshotTwo, 36)), false},
		{"with another retention", after, request(t, addSnap(7, snapshotTwo, 35),
			`{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":7,"min-snapshots-to-keep":7}`), false},
		{"as a tag", after, request(t, addSnap(7, snapshotTwo, 35), `{"action":"set-snapshot-ref","ref-name":"main","type":"tag","snapshot-id":7}`), false},
		{"and a rollback", after, request(t, addSnap(7, snapshotTwo, 35), branch("main", snapshotOne)), false},
		{"set twice, to the head at last", after, request(t, addSnap(7, snapshotTwo, 35), branch("main", snapshotOne), branch("main", 7)), true},
		{"with another parent", after, request(t, addSnap(7, snapshotOne, 35), branch("main", 7)), false},
		{"with another sequence number", after, request(t, addSnap(7, snapshotTwo, 36), branch("main", 7)), false},
		{"a tag that was moved on", commitOn(t, later, `{"action":"set-snapshot-ref","ref-name":"x","type":"tag","snapshot-id":8}`),
			request(t, addSnap(7, snapshotTwo, 35), `{"action":"set-snapshot-ref","ref-name":"x","type":"tag","snapshot-id":7}`), false},
	} {
		if have := Landed(c.base, c.r); have != c.want {
			t.Errorf("%s: %v, want %v", c.name, have, c.want)
		}
	}
}

func TestLanded_ParentsInARing(t *testing.T) {
	ring := with(t, v2Table(t), memberOf(keySnapshots, `[{"snapshot-id":3055729675574597004,"parent-snapshot-id":2,"timestamp-ms":1,"manifest-list":"m"},
		{"snapshot-id":2,"parent-snapshot-id":3055729675574597004,"timestamp-ms":1,"manifest-list":"m"},{"snapshot-id":7,"timestamp-ms":1,"manifest-list":"s3://bucket/test/location/metadata/7.avro"}]`),
		memberOf(keySnapshotLog, "[]"))
	if Landed(ring, request(t, appendTo("main", 7, 2, 35)...)) {
		t.Error("landed")
	}
}

func TestLanded_V1Manifests(t *testing.T) {
	add := func(manifest string) string {
		return `{"action":"add-snapshot","snapshot":{"snapshot-id":7,"timestamp-ms":5,"manifests":["` + manifest + `"]}}`
	}
	d := commitOn(t, v1Table(t), add("a"))
	if !Landed(d, request(t, add("a"))) || Landed(d, request(t, add("b"))) {
		t.Error("v1 snapshots are not compared by their manifests")
	}
}
