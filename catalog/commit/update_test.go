package commit

import (
	"fmt"
	"strings"
	"testing"

	"catalogd/internal/fault"
)

func TestApply_TouchesOnlyWhatChanges(t *testing.T) {
	base := v2Table(t)
	next := commitOn(t, base, `{"action":"set-properties","updates":{"a":"b"}}`)
	for i, m := range base.members {
		name := string(m.name)
		switch name {
		case keyProperties, keyLastUpdated, keyMetadataLog:
			continue
		}
		if string(next.members[i].name) != name || string(next.members[i].value) != string(m.value) {
			t.Errorf("%s changed to %s", name, next.members[i].value)
		}
	}
	wantTop(t, next, keyLastUpdated, "1800000000000")
	wantTop(t, next, keyProperties, `{"a":"b"}`)
	wantTop(t, next, keyMetadataLog, fmt.Sprintf(`[{"timestamp-ms":1602638573590,"metadata-file":%q}]`, oldFile))
}

func TestApply_UUID(t *testing.T) {
	unchanged(t, v2Table(t), `{"action":"assign-uuid","uuid":"9C12D441-03FE-4693-9A96-A0705DDF69C1"}`)
	refused(t, v2Table(t), fault.IllegalArgument, "Cannot reassign", `{"action":"assign-uuid","uuid":"00000000-0000-4000-8000-000000000000"}`)
	bare := with(t, v1Table(t), topEdit{name: keyUUID})
	d := commitOn(t, bare, `{"action":"assign-uuid","uuid":"`+tableUUID+`"}`)
	wantTop(t, d, keyUUID, `"`+tableUUID+`"`)
	refused(t, bare, fault.Validation, "UUID is required in format v2", `{"action":"upgrade-format-version","format-version":2}`)
}

func TestApply_Schemas(t *testing.T) {
	base := v2Table(t)
	t.Run("a new one gets the highest id plus one and moves last-column-id", func(t *testing.T) {
		d := commitOn(t, base, schemaOf(append(fixtureXYZ, field(9, "s", `{"type":"struct","fields":[`+field(12, "in", "int")+`]}`))...), useLastSchema)
		wantTop(t, d, keyCurrentSchema, "2")
		wantTop(t, d, keyLastColumn, "12")
		if s, ok := d.SchemaJSON(2); !ok || !strings.Contains(string(s), `"schema-id":2`) {
			t.Errorf("schema 2 is %s", s)
		}
	})
	t.Run("added without being chosen", func(t *testing.T) {
		d := commitOn(t, base, schemaOf(fixtureXYZ...))
		wantTop(t, d, keyCurrentSchema, "1")
	})
	t.Run("an equal one is reused", func(t *testing.T) {
		equal := `{"action":"add-schema","schema":{"schema-id":44,"type":"struct","identifier-field-ids":[2,1],"fields":[` +
			`{"required":true,"id":1,"name":"x","type":"long","doc":null},{"id":2,"name":"y","required":true,"type":"long","doc":"comment"},{"id":3,"name":"z","required":true,"type":"long"}]}}`
		unchanged(t, base, equal)
		unchanged(t, base, equal, useLastSchema)
		d := commitOn(t, base, `{"action":"set-current-schema","schema-id":0}`, equal, useLastSchema, `{"action":"set-properties","updates":{"a":"b"}}`)
		wantTop(t, d, keyCurrentSchema, "1")
	})
	t.Run("what only the new one has is not lost", func(t *testing.T) {
		d := commitOn(t, base, `{"action":"add-schema","schema":{"type":"struct","x-new":1,"fields":[{"id":1,"name":"x","required":true,"type":"long"}]}}`)
		if s, ok := d.SchemaJSON(2); !ok || !strings.Contains(string(s), `"x-new":1`) {
			t.Errorf("schema 2 is %s", s)
		}
	})
	t.Run("types are compared by meaning", func(t *testing.T) {
		d := commitOn(t, base, schemaOf(append(fixtureXYZ, field(4, "d", "decimal(9,2)"))...))
		unchanged(t, d, schemaOf(append(fixtureXYZ, field(4, "d", "decimal( 9, 2 )"))...))
	})
	t.Run("nulls are dropped", func(t *testing.T) {
		d := commitOn(t, base, `{"action":"add-schema","schema":{"type":"struct","schema-id":null,"identifier-field-ids":null,"x":null,"fields":[`+
			`{"id":1,"name":"x","required":false,"type":"long","doc":null,"initial-default":null,"write-default":null}]}}`)
		s, _ := d.SchemaJSON(2)
		if string(s) != `{"type":"struct","x":null,"fields":[{"id":1,"name":"x","required":false,"type":"long"}],"schema-id":2}` {
			t.Errorf("schema is %s", s)
		}
	})
	refused(t, base, fault.Validation, "Cannot set last added schema: no schema has been added", useLastSchema)
	refused(t, base, fault.IllegalArgument, "Cannot set current schema to unknown schema: 7", `{"action":"set-current-schema","schema-id":7}`)
	unchanged(t, base, `{"action":"set-current-schema","schema-id":1}`)
	refused(t, base, fault.IllegalArgument, "Cannot remove the current schema", `{"action":"remove-schemas","schema-ids":[0,1]}`)
	unchanged(t, base, `{"action":"remove-schemas","schema-ids":[7]}`)
	refused(t, base, fault.Validation, "Cannot find source column for sort field: identity(2)", `{"action":"set-current-schema","schema-id":0}`)
	unsort := `{"action":"add-sort-order","sort-order":{"fields":[]}}`
	wantTop(t, commitOn(t, base, `{"action":"set-current-schema","schema-id":0}`, unsort, useLastOrder), keyCurrentSchema, "0")
	if d := commitOn(t, base, `{"action":"remove-schemas","schema-ids":[0,7]}`); len(d.schemas) != 1 {
		t.Errorf("%d schemas left", len(d.schemas))
	}
}

func TestApply_SchemaRules(t *testing.T) {
	required := func(id int, name, typ string) string {
		return fmt.Sprintf(`{"id":%d,"name":%q,"required":true,"type":%q}`, id, name, typ)
	}
	identifiers := func(ids string, fields ...string) string {
		return `{"action":"add-schema","schema":{"type":"struct","identifier-field-ids":` + ids + `,"fields":[` + strings.Join(fields, ",") + `]}}`
	}
	withDefault := func(typ, value string) string {
		return schemaOf(fmt.Sprintf(`{"id":1,"name":"a","required":false,"type":%s,"write-default":%s}`, typ, value))
	}
	for _, c := range []struct{ name, update, want string }{
		{"ids twice", schemaOf(field(1, "a", "int"), field(1, "b", "int")), "multiple fields have the id 1"},
		{"names twice", schemaOf(field(1, "a", "int"), field(2, "a", "int")), "multiple fields for name a"},
		{"identifier unknown", identifiers("[5]", required(1, "a", "int")), "field 5 as an identifier field: field does not exist"},
		{"identifier optional", identifiers("[1]", field(1, "a", "int")), "not a required field"},
		{"identifier float", identifiers("[1]", required(1, "a", "double")), "must not be float or double"},
		{"identifier nested", identifiers("[2]", field(1, "a", `{"type":"list","element-id":2,"element":"int","element-required":true}`)), "must not be nested in a"},
		{"identifier struct", identifiers("[1]", field(1, "a", `{"type":"struct","fields":[]}`)), "not a primitive type field"},
		{"unknown required", schemaOf(required(1, "a", "unknown")), "Cannot create required field with unknown type: a"},
		{"default of a struct", withDefault(`{"type":"struct","fields":[]}`, `{}`), "must be null"},
		{"default of a variant", withDefault(`"variant"`, `1`), "must be null"},
		{"default int", withDefault(`"int"`, `2147483648`), "2147483648 does not fit int"},
		{"default int text", withDefault(`"int"`, `"1"`), "does not fit int"},
		{"default float", withDefault(`"float"`, `"NaN"`), "does not fit float"},
		{"default boolean", withDefault(`"boolean"`, `1`), "does not fit boolean"},
		{"default date", withDefault(`"date"`, `"2024-1-1"`), "does not fit date"},
		{"default time", withDefault(`"time"`, `"noon"`), "does not fit time"},
		{"default timestamp", withDefault(`"timestamp"`, `"2024-01-01T00:00:00+00:00"`), "does not fit timestamp"},
		{"default timestamptz", withDefault(`"timestamptz"`, `"2024-01-01T00:00:00"`), "does not fit timestamptz"},
		{"default uuid", withDefault(`"uuid"`, `"x"`), "does not fit uuid"},
		{"default decimal", withDefault(`"decimal(9, 2)"`, `1.5`), "does not fit decimal(9, 2)"},
		{"default fixed", withDefault(`"fixed[2]"`, `"00"`), "does not fit fixed[2]"},
		{"default binary", withDefault(`"binary"`, `"xyz"`), "does not fit binary"},
	} {
		t.Run(c.name, func(t *testing.T) { refused(t, v3Table(t), fault.IllegalArgument, c.want, c.update) })
	}
	for _, typ := range []string{"timestamp_ns", "timestamptz_ns", "variant", "unknown", "geometry", "geometry(EPSG:3857)", "geography(OGC:CRS84, karney)"} {
		refused(t, v2Table(t), fault.IllegalArgument, "is not supported until v3", schemaOf(field(1, "a", typ)))
		commitOn(t, v3Table(t), schemaOf(field(1, "a", typ)))
	}
	refused(t, v2Table(t), fault.IllegalArgument, "variant is not supported until v3", schemaOf(field(1, "l", `{"type":"list","element-id":2,"element":"variant","element-required":false}`)))
}

func TestApply_Specs(t *testing.T) {
	base := v2Table(t)
	spec := func(fields ...string) string {
		return `{"action":"add-spec","spec":{"spec-id":7,"fields":[` + strings.Join(fields, ",") + `]}}`
	}
	t.Run("a new one", func(t *testing.T) {
		d := commitOn(t, base, spec(`{"name":"y_b","transform":"bucket[4]","source-id":2,"field-id":1007,"x":1}`), useLastSpec)
		wantTop(t, d, keyDefaultSpec, "1")
		wantTop(t, d, keyLastPartition, "1007")
		if s := string(d.DefaultSpecJSON()); s != `{"spec-id":1,"fields":[{"name":"y_b","transform":"bucket[4]","source-id":2,"field-id":1007,"x":1}]}` {
			t.Errorf("spec is %s", s)
		}
	})
	t.Run("an equal one is reused, ids ignored", func(t *testing.T) {
		unchanged(t, base, spec(`{"name":"x","transform":"Identity","source-id":1,"field-id":4711}`), useLastSpec)
	})
	t.Run("unknown transforms are kept", func(t *testing.T) {
		d := commitOn(t, base, spec(`{"name":"y_q","transform":"Quadkey[7]","source-id":2}`), useLastSpec)
		if s := string(d.DefaultSpecJSON()); !strings.Contains(s, `"Quadkey[7]"`) || !strings.Contains(s, `"field-id":1001`) {
			t.Errorf("spec is %s", s)
		}
	})
	t.Run("unpartitioned", func(t *testing.T) {
		d := commitOn(t, base, spec(), useLastSpec)
		wantTop(t, d, keyDefaultSpec, "1")
		wantTop(t, d, keyLastPartition, "1000")
	})
	nested := schemaOf(append(fixtureXYZ, field(4, "s", `{"type":"struct","fields":[`+field(5, "in", "string")+`]}`),
		field(6, "l", `{"type":"list","element-id":7,"element":"int","element-required":false}`), field(8, "f", "float"))...)
	t.Run("a nested source", func(t *testing.T) {
		commitOn(t, base, nested, useLastSchema, spec(`{"name":"in","transform":"truncate[3]","source-id":5}`), useLastSpec)
	})
	for _, c := range []struct {
		field, want string
		kind        fault.Kind
	}{
		{`{"name":"a","transform":"identity","source-id":99}`, "Cannot find source column for partition field: 0: a: identity(99)", fault.Validation},
		{`{"name":"a","transform":"identity","source-id":4}`, "Cannot partition by non-primitive source field: s", fault.Validation},
		{`{"name":"a","transform":"identity","source-id":7}`, "Invalid partition field parent: l is not a struct", fault.Validation},
		{`{"name":"a","transform":"bucket[4]","source-id":8}`, "Invalid source type float for transform: bucket[4]", fault.Validation},
		{`{"name":"a","transform":"day","source-id":2}`, "Invalid source type long for transform: day", fault.Validation},
		{`{"name":"","transform":"identity","source-id":2}`, "empty partition name", fault.IllegalArgument},
		{`{"name":"a","transform":"identity","source-id":2},{"name":"a","transform":"bucket[4]","source-id":3}`, "more than once: a", fault.IllegalArgument},
		{`{"name":"x","transform":"identity","source-id":2}`, "name that exists in schema: x", fault.IllegalArgument},
		{`{"name":"a","transform":"identity","source-id":2,"field-id":1001},{"name":"b","transform":"identity","source-id":3}`, "give all of them or none", fault.IllegalArgument},
		{`{"name":"a","transform":"identity","source-id":2,"field-id":1001},{"name":"b","transform":"identity","source-id":3,"field-id":1001}`, "id more than once: 1001", fault.IllegalArgument},
	} {
		refused(t, base, c.kind, c.want, nested, useLastSchema, spec(c.field))
	}
	refused(t, base, fault.Validation, "Cannot set last added spec: no spec has been added", useLastSpec)
	refused(t, base, fault.IllegalArgument, "Cannot set default partition spec to unknown spec: 5", `{"action":"set-default-spec","spec-id":5}`)
	refused(t, base, fault.IllegalArgument, "Cannot remove the default partition spec", `{"action":"remove-partition-specs","spec-ids":[0]}`)
	unchanged(t, base, `{"action":"remove-partition-specs","spec-ids":[5]}`)
}

func TestApply_SpecsOfV1AreSequential(t *testing.T) {
	base := v1Table(t)
	spec := func(fields string) string { return `{"action":"add-spec","spec":{"fields":[` + fields + `]}}` }
	refused(t, base, fault.Validation, "sequential IDs", spec(`{"name":"y","transform":"identity","source-id":2,"field-id":1001}`))
	d := commitOn(t, base, spec(`{"name":"x","transform":"void","source-id":1},{"name":"y","transform":"identity","source-id":2}`), useLastSpec)
	wantTop(t, d, keyPartitionSpec, `[{"name":"x","transform":"void","source-id":1,"field-id":1000},{"name":"y","transform":"identity","source-id":2,"field-id":1001}]`)
	wantTop(t, d, keyDefaultSpec, "1")
	wantTop(t, d, keySpecs, `[{"spec-id":0,"fields":[{"name":"x","transform":"identity","source-id":1,"field-id":1000}]},
		{"spec-id":1,"fields":[{"name":"x","transform":"void","source-id":1,"field-id":1000},{"name":"y","transform":"identity","source-id":2,"field-id":1001}]}]`)
}

func TestApply_SortOrders(t *testing.T) {
	base := v2Table(t)
	order := func(fields string) string {
		return `{"action":"add-sort-order","sort-order":{"order-id":7,"fields":[` + fields + `]}}`
	}
	y := `{"transform":"identity","source-id":2,"direction":"asc","null-order":"nulls-first"}`
	d := commitOn(t, base, order(y), useLastOrder)
	wantTop(t, d, keyDefaultOrder, "4")
	d = commitOn(t, base, order(``), useLastOrder) // the fixture has no order 0
	wantTop(t, d, keyDefaultOrder, "0")
	if string(d.DefaultSortOrderJSON()) != string(unsorted) {
		t.Errorf("unsorted is %s", d.DefaultSortOrderJSON())
	}
	unchanged(t, d, order(``), useLastOrder)
	unchanged(t, base, order(y+`,{"transform":"Bucket[4]","source-id":3,"direction":"DESC","null-order":"nulls-last"}`), useLastOrder)
	refused(t, base, fault.Validation, "Cannot find source column for sort field: identity(9)", order(strings.Replace(y, `"source-id":2`, `"source-id":9`, 1)))
	refused(t, base, fault.Validation, "Invalid source type long for transform: hour", order(strings.Replace(y, `identity`, `hour`, 1)))
	refused(t, base, fault.Validation, "Cannot set last added sort order: no sort order has been added", useLastOrder)
	refused(t, base, fault.IllegalArgument, "Cannot set default sort order to unknown sort order: 5", `{"action":"set-default-sort-order","sort-order-id":5}`)
	unchanged(t, base, `{"action":"set-default-sort-order","sort-order-id":3}`)
}

func TestApply_Snapshots(t *testing.T) {
	base := v2Table(t)
	t.Run("appended to main", func(t *testing.T) {
		d := commitOn(t, base, appendTo("main", 7, snapshotTwo, 35)...)
		wantTop(t, d, keyLastSequence, "35")
		wantTop(t, d, keyCurrentSnapshot, "7")
		wantTop(t, d, keyRefs, `{"main":{"snapshot-id":7,"type":"branch"}}`)
		if !strings.HasSuffix(string(d.snapshotLog), fmt.Sprintf(`,{"timestamp-ms":%d,"snapshot-id":7}`+"\n  ]", now.UnixMilli()-1000)) {
			t.Errorf("log is %s", d.snapshotLog)
		}
	})
	t.Run("added alone", func(t *testing.T) {
		d := commitOn(t, base, addSnap(7, snapshotTwo, 35))
		wantTop(t, d, keyCurrentSnapshot, fmt.Sprint(snapshotTwo))
		if string(d.snapshotLog) != string(base.snapshotLog) {
			t.Errorf("log is %s", d.snapshotLog)
		}
	})
	t.Run("its text is kept, nulls apart", func(t *testing.T) {
		d := commitOn(t, base, `{"action":"add-snapshot","snapshot":{ "snapshot-id":7 , "parent-snapshot-id":null,"schema-id":null,"x":{"y":null},`+
			`"sequence-number":35,"timestamp-ms":1,"key-id":"k","manifest-list":"s3://m","summary":{"operation":"append","n":"null"}}}`)
		s, _ := d.SnapshotJSON(7)
		if string(s) != `{"snapshot-id":7,"x":{"y":null},"sequence-number":35,"timestamp-ms":1,"key-id":"k","manifest-list":"s3://m","summary":{"operation":"append","n":"null"}}` {
			t.Errorf("snapshot is %s", s)
		}
	})
	t.Run("a parent of -1 is none, as ClickHouse writes it", func(t *testing.T) {
		d := commitOn(t, base, `{"action":"add-snapshot","snapshot":{"snapshot-id":7,"parent-snapshot-id":-1,"sequence-number":35,"timestamp-ms":1,`+
			`"manifest-list":"s3://m","summary":{"operation":"append"}}}`)
		s, _ := d.SnapshotJSON(7)
		if string(s) != `{"snapshot-id":7,"sequence-number":35,"timestamp-ms":1,"manifest-list":"s3://m","summary":{"operation":"append"}}` {
			t.Errorf("snapshot is %s", s)
		}
	})
	refused(t, base, fault.Validation, "Snapshot already exists for id: 3055729675574597004", addSnap(snapshotTwo, 0, 35))
	refused(t, base, fault.Validation, "Snapshot already exists for id: 7", addSnap(7, 0, 35), addSnap(7, 0, 36))
	refused(t, base, fault.CommitConflict, "Validation failed, please retry: Cannot add snapshot with sequence number 34 older than last sequence number 34", addSnap(7, snapshotTwo, 34))
	refused(t, base, fault.Validation, `missing field "operation"`, `{"action":"add-snapshot","snapshot":{"snapshot-id":7,"sequence-number":35,"timestamp-ms":1,"manifest-list":"m"}}`)
	refused(t, base, fault.Validation, `missing field "manifest-list"`, `{"action":"add-snapshot","snapshot":{"snapshot-id":7,"sequence-number":35,"timestamp-ms":1,"manifests":["m"],"summary":{"operation":"append"}}}`)
	refused(t, base, fault.Validation, "negative", addSnap(-1, 0, 35))
	refused(t, v1Table(t), fault.Validation, "Sequence number must be 0 in v1: 1", addSnap(7, 0, 1))
	refused(t, base, fault.Validation, "more than a minute before the last snapshot log entry",
		`{"action":"add-snapshot","snapshot":{"snapshot-id":7,"sequence-number":35,"timestamp-ms":1555100895769,"manifest-list":"m","summary":{"operation":"append"}}}`, branch("main", 7))
	commitOn(t, base, // a minute's difference between clocks is nobody's fault
		`{"action":"add-snapshot","snapshot":{"snapshot-id":7,"sequence-number":35,"timestamp-ms":1555100895770,"manifest-list":"m","summary":{"operation":"append"}}}`, branch("main", 7))
}

func TestApply_Refs(t *testing.T) {
	base := v2Table(t)
	d := commitOn(t, base, `{"action":"set-snapshot-ref","ref-name":"b","type":"BRANCH","snapshot-id":3051729675574597004,"min-snapshots-to-keep":2,"max-snapshot-age-ms":3,"max-ref-age-ms":4,"x":5}`, tag("t", snapshotTwo))
	wantTop(t, d, keyRefs, `{"main":{"snapshot-id":3055729675574597004,"type":"branch"},
		"b":{"snapshot-id":3051729675574597004,"type":"branch","min-snapshots-to-keep":2,"max-snapshot-age-ms":3,"max-ref-age-ms":4,"x":5},
		"t":{"snapshot-id":3055729675574597004,"type":"tag"}}`)
	unchanged(t, d, tag("t", snapshotTwo))
	refused(t, base, fault.Validation, "Cannot set b to unknown snapshot: 5", branch("b", 5))
	refused(t, base, fault.IllegalArgument, "Tags do not support", `{"action":"set-snapshot-ref","ref-name":"t","type":"tag","snapshot-id":3051729675574597004,"min-snapshots-to-keep":2}`)
	refused(t, base, fault.IllegalArgument, "empty name", tag("", snapshotOne))
	unchanged(t, base, `{"action":"remove-snapshot-ref","ref-name":"absent"}`)
	back := commitOn(t, base, branch("main", snapshotOne)) // rollback: logged now
	if !strings.Contains(string(back.snapshotLog), fmt.Sprintf(`{"timestamp-ms":%d,"snapshot-id":%d}`, now.UnixMilli(), int64(snapshotOne))) {
		t.Errorf("log is %s", back.snapshotLog)
	}
	gone := commitOn(t, base, `{"action":"remove-snapshot-ref","ref-name":"main"}`)
	wantTop(t, gone, keyCurrentSnapshot, "-1")
	wantTop(t, gone, keyRefs, "{}")
	if string(gone.snapshotLog) != string(base.snapshotLog) {
		t.Errorf("log is %s", gone.snapshotLog)
	}
}

func TestApply_RemoveSnapshots(t *testing.T) {
	base := with(t, v2Table(t),
		memberOf(keyStatistics, `[{"snapshot-id":3051729675574597004,"statistics-path":"a"},{"snapshot-id":3055729675574597004,"statistics-path":"b"},{"snapshot-id":5,"statistics-path":"c"}]`),
		memberOf(keyPartitionStats, `[{"snapshot-id":3051729675574597004,"statistics-path":"d","file-size-in-bytes":1}]`))
	base = commitOn(t, base, tag("t", snapshotOne))
	d := commitOn(t, base, `{"action":"remove-snapshots","snapshot-ids":[3051729675574597004,17]}`)
	wantTop(t, d, keyStatistics, `[{"snapshot-id":3055729675574597004,"statistics-path":"b"},{"snapshot-id":5,"statistics-path":"c"}]`)
	wantTop(t, d, keyPartitionStats, `[]`)
	wantTop(t, d, keyRefs, `{"main":{"snapshot-id":3055729675574597004,"type":"branch"}}`)
	wantTop(t, d, keySnapshotLog, `[{"snapshot-id":3055729675574597004,"timestamp-ms":1555100955770}]`)
	unchanged(t, base, `{"action":"remove-snapshots","snapshot-ids":[17]}`)
	t.Run("the entries before a gap go", func(t *testing.T) {
		d := commitOn(t, v2Table(t), appendTo("main", 7, snapshotTwo, 35)...)
		d = commitOn(t, d, fmt.Sprintf(`{"action":"remove-snapshots","snapshot-ids":[%d]}`, int64(snapshotTwo)))
		wantTop(t, d, keySnapshotLog, fmt.Sprintf(`[{"snapshot-id":7,"timestamp-ms":%d}]`, now.UnixMilli()-1000))
	})
	t.Run("the current one: main goes", func(t *testing.T) {
		d := commitOn(t, base, fmt.Sprintf(`{"action":"remove-snapshots","snapshot-ids":[%d]}`, int64(snapshotTwo)))
		wantTop(t, d, keyCurrentSnapshot, "-1")
		wantTop(t, d, keyRefs, `{"t":{"snapshot-id":3051729675574597004,"type":"tag"}}`)
		wantTop(t, d, keySnapshotLog, `[]`)
	})
	t.Run("one that the request added", func(t *testing.T) {
		updates := append(appendTo("main", 7, snapshotTwo, 35), `{"action":"remove-snapshots","snapshot-ids":[7]}`)
		d := commitOn(t, base, updates...)
		if d.SnapshotCount() != 2 || d.LastSequenceNumber() != 35 {
			t.Errorf("%d snapshots, sequence %d", d.SnapshotCount(), d.LastSequenceNumber())
		}
		refused(t, base, fault.Validation, "unknown snapshot: 7", append(updates, tag("u", 7))...)
	})
	t.Run("set-ref to one that the request removed", func(t *testing.T) {
		refused(t, base, fault.Validation, "unknown snapshot", `{"action":"remove-snapshots","snapshot-ids":[3051729675574597004]}`, tag("u", snapshotOne))
	})
}

func TestApply_PropertiesAndLocation(t *testing.T) {
	base := with(t, v2Table(t), memberOf(keyProperties, `{"a":"1","b":"\u00e9", "c":"3"}`))
	d := commitOn(t, base, `{"action":"set-properties","updates":{"z":"9","a":"2","y":"q\"\\\n\u0001"}}`, `{"action":"remove-properties","removals":["c","none"]}`)
	if text := string(d.members.raw(keyProperties)); text != `{"a":"2","b":"\u00e9","z":"9","y":"q\"\\\n\u0001"}` {
		t.Errorf("properties are %s", text)
	}
	d = commitOn(t, base, `{"action":"remove-properties","removals":["a"]}`, `{"action":"set-properties","updates":{"a":"1"}}`)
	wantTop(t, d, keyProperties, `{"a":"1","b":"é","c":"3"}`)
	unchanged(t, base, `{"action":"set-properties","updates":{"a":"1"}}`)
	unchanged(t, base, `{"action":"set-properties","updates":{}}`)
	unchanged(t, base, `{"action":"remove-properties","removals":["none"]}`)
	refused(t, base, fault.Validation, "commit.retry.num-retries must be an integer", `{"action":"set-properties","updates":{"commit.retry.num-retries":"-1"}}`)
	unchanged(t, base, `{"action":"set-location","location":"s3://bucket/test/location/"}`)
	wantTop(t, commitOn(t, base, `{"action":"set-location","location":"s3://bucket/other//"}`), keyLocation, `"s3://bucket/other"`)
}

func TestApply_Statistics(t *testing.T) {
	base := parse(t, fixture(t, "TableMetadataStatisticsFiles.json"))
	set := func(id int64, path string) string {
		return fmt.Sprintf(`{"action":"set-statistics","snapshot-id":1,"statistics":{"snapshot-id":%d,"statistics-path":%q,"file-size-in-bytes":1,"file-footer-size-in-bytes":1,"blob-metadata":[],"x":1}}`, id, path)
	}
	d := commitOn(t, base, set(snapshotTwo, "new"), set(5, "five"))
	wantTop(t, d, keyStatistics, `[{"snapshot-id":3055729675574597004,"statistics-path":"new","file-size-in-bytes":1,"file-footer-size-in-bytes":1,"blob-metadata":[],"x":1},
		{"snapshot-id":5,"statistics-path":"five","file-size-in-bytes":1,"file-footer-size-in-bytes":1,"blob-metadata":[],"x":1}]`)
	unchanged(t, d, set(5, "five"))
	unchanged(t, d, `{"action":"remove-statistics","snapshot-id":6}`)
	wantTop(t, commitOn(t, base, fmt.Sprintf(`{"action":"remove-statistics","snapshot-id":%d}`, int64(snapshotTwo))), keyStatistics, `[]`)
	p := parse(t, fixture(t, "TableMetadataPartitionStatisticsFiles.json"))
	wantTop(t, commitOn(t, p, fmt.Sprintf(`{"action":"remove-partition-statistics","snapshot-id":%d}`, int64(snapshotTwo))), keyPartitionStats, `[]`)
	d = commitOn(t, p, `{"action":"set-partition-statistics","partition-statistics":{"snapshot-id":5,"statistics-path":"p","file-size-in-bytes":1,"key-metadata":null}}`)
	if !strings.HasSuffix(string(d.partitionStats), `,{"snapshot-id":5,"statistics-path":"p","file-size-in-bytes":1}]`) {
		t.Errorf("partition statistics are %s", d.partitionStats)
	}
	refused(t, with(t, base, memberOf(keyStatistics, `[{"statistics-path":"x"}]`)), fault.Validation, `statistics: missing field "snapshot-id"`, set(5, "a"))
}

func TestApply_EncryptionKeys(t *testing.T) {
	add := func(id, data string) string {
		return fmt.Sprintf(`{"action":"add-encryption-key","encryption-key":{"key-id":%q,"encrypted-key-metadata":%q,"encrypted-by-id":null,"x":1}}`, id, data)
	}
	d := commitOn(t, v3Table(t), add("k", "AAEC"), add("l", "AAED"))
	wantTop(t, d, keyEncryptionKeys, `[{"key-id":"k","encrypted-key-metadata":"AAEC","x":1},{"key-id":"l","encrypted-key-metadata":"AAED","x":1}]`)
	unchanged(t, d, `{"action":"remove-encryption-key","key-id":"m"}`)
	wantTop(t, commitOn(t, d, `{"action":"remove-encryption-key","key-id":"k"}`), keyEncryptionKeys, `[{"key-id":"l","encrypted-key-metadata":"AAED","x":1}]`)
}

func TestApply_MetadataLog(t *testing.T) {
	base := v2Table(t)
	d, at := base, now
	for i := range 5 {
		r := request(t, fmt.Sprintf(`{"action":"set-properties","updates":{"n":"%d"}}`, i))
		next, _, err := Apply(d, r, Stamp{Now: at, MetadataLocation: fmt.Sprintf("f%d", i)})
		if err != nil {
			t.Fatal(err)
		}
		d = next
	}
	wantFiles := func(d *Document, want ...string) {
		t.Helper()
		var have []string
		for _, e := range top(t, d, keyMetadataLog).([]any) {
			have = append(have, e.(map[string]any)["metadata-file"].(string))
		}
		if strings.Join(have, " ") != strings.Join(want, " ") {
			t.Errorf("log has %v, want %v", have, want)
		}
	}
	wantFiles(d, "f0", "f1", "f2", "f3", "f4")
	set := func(value string) *Document {
		return commitOn(t, d, `{"action":"set-properties","updates":{"write.metadata.previous-versions-max":"`+value+`"}}`)
	}
	wantFiles(set("3"), "f3", "f4", oldFile) // the new properties count
	wantFiles(set("1"), oldFile)
	wantFiles(set("0"), oldFile)
	wantFiles(set("many"), "f0", "f1", "f2", "f3", "f4", oldFile)
	next, _, err := Apply(d, request(t, `{"action":"set-properties","updates":{"n":"x"}}`), Stamp{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	wantFiles(next, "f0", "f1", "f2", "f3", "f4") // there was no file
}

func TestApply_ClockThatGoesBack(t *testing.T) {
	d := commitOn(t, v2Table(t), `{"action":"set-properties","updates":{"a":"b"}}`)
	next, _, err := Apply(d, request(t, `{"action":"set-properties","updates":{"a":"c"}}`), Stamp{Now: now.Add(-3600e9), MetadataLocation: oldFile})
	if err != nil {
		t.Fatal(err)
	}
	if !next.LastUpdated().Equal(d.LastUpdated()) {
		t.Errorf("last updated %v, before the log's last entry %v", next.LastUpdated(), d.LastUpdated())
	}
}

func TestApply_DropsNullMembersOfForeignFiles(t *testing.T) {
	base := with(t, v2Table(t), memberOf(keyStatistics, `null`), memberOf(keyRefs, `null`), memberOf("x-new", `null`), memberOf(keyEncryptionKeys, "null"))
	d := commitOn(t, base, `{"action":"set-properties","updates":{"a":"b"}}`)
	wantTop(t, d, keyStatistics, "")
	wantTop(t, d, keyEncryptionKeys, "")
	wantTop(t, d, keyRefs, `{"main":{"snapshot-id":3055729675574597004,"type":"branch"}}`)
	wantTop(t, d, "x-new", "null")
}
