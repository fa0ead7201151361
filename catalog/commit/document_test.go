package commit

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"catalogd/internal/fault"
)

func TestParse_GoodFixturesKeepTheirText(t *testing.T) {
	for _, name := range []string{
		"TableMetadataPartitionStatisticsFiles.json", "TableMetadataStatisticsFiles.json", "TableMetadataV1Valid.json",
		"TableMetadataV2Valid.json", "TableMetadataV2ValidMinimal.json", "TableMetadataV3ValidMinimal.json",
	} {
		t.Run(name, func(t *testing.T) {
			raw := fixture(t, name)
			d, err := Parse(raw)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(d.JSON(), raw) {
				t.Error("the text changed")
			}
			r, err := DecodeRequest([]byte(`{"requirements":[],"updates":[]}`))
			if err != nil {
				t.Fatal(err)
			}
			next, changed, err := Apply(d, r, Stamp{})
			if err != nil || changed || next != d {
				t.Errorf("Apply of nothing: changed %v, error %v", changed, err)
			}
		})
	}
}

func TestParse_BrokenFixturesNameTheField(t *testing.T) {
	for name, field := range map[string]string{
		"TableMetadataUnsupportedVersion.json":       "format-version",
		"TableMetadataV1MissingSchemaType.json":      `"type"`,
		"TableMetadataV2CurrentSchemaNotFound.json":  "current-schema-id",
		"TableMetadataV2MissingLastPartitionId.json": "last-partition-id",
		"TableMetadataV2MissingPartitionSpecs.json":  "partition-specs",
		"TableMetadataV2MissingSchemas.json":         `"schemas"`,
		"TableMetadataV2MissingSortOrder.json":       "sort-orders",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(fixture(t, name))
			if !fault.Is(err, fault.Validation) || !strings.Contains(err.Error(), field) {
				t.Errorf("error %v of kind %q, want Validation naming %s", err, fault.KindOf(err), field)
			}
		})
	}
}

func TestParse_NamesWhatIsWrong(t *testing.T) {
	v2, v3 := v2Table(t), v3Table(t)
	for _, c := range []struct {
		name string
		base *Document
		edit topEdit
		want string
	}{
		{"location is a number", v2, memberOf("location", `5`), `"location" must be a string, not a number`},
		{"location is null", v2, memberOf("location", `null`), `missing field "location"`},
		{"uuid", v2, memberOf("table-uuid", `"x"`), `"table-uuid" is not a UUID`},
		{"version 4", v2, memberOf("format-version", `4`), "unsupported format-version 4"},
		{"version 0", v2, memberOf("format-version", `0`), "unsupported format-version 0"},
		{"version text", v2, memberOf("format-version", `"2"`), `"format-version" must be a 32-bit integer`},
		{"a float for an id", v2, memberOf("last-column-id", `3.0`), `"last-column-id" must be a 32-bit integer`},
		{"a large id", v2, memberOf("last-column-id", `3000000000`), `"last-column-id" must be a 32-bit integer`},
		{"a huge number", v2, memberOf("last-updated-ms", `99999999999999999999`), `"last-updated-ms" must be a 64-bit integer`},
		{"no sequence number", v2, topEdit{name: "last-sequence-number"}, `missing field "last-sequence-number"`},
		{"no next row", v3, topEdit{name: "next-row-id"}, `missing field "next-row-id"`},
		{"schemas", v2, memberOf("schemas", `{}`), "schemas must be an array, not an object"},
		{"schema twice", v3, memberOf("schemas", `[{"type":"struct","schema-id":0,"fields":[]},{"type":"struct","schema-id":0,"fields":[]}]`), "schema-id 0 twice"},
		{"type", v3, memberOf("schemas", `[{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"x","required":true,"type":"lang"}]}]`), `unknown type "lang"`},
		{"field", v3, memberOf("schemas", `[{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"x","type":"long"}]}]`), `missing field "required"`},
		{"default spec", v2, memberOf("default-spec-id", `7`), "default-spec-id 7 is not in partition-specs"},
		{"spec without id", v2, memberOf("partition-specs", `[{"fields":[]}]`), `missing field "spec-id"`},
		{"default order", v2, memberOf("default-sort-order-id", `7`), "default-sort-order-id 7 is not in sort-orders"},
		{"property", v2, memberOf("properties", `{"a":1}`), `property "a" must be a string, not a number`},
		{"property twice", v2, memberOf("properties", `{"a":"1","a":"2"}`), `properties has the field "a" twice`},
		{"current snapshot", v2, memberOf("current-snapshot-id", `5`), "current-snapshot-id 5 is not in snapshots"},
		{"snapshots", v2, memberOf("snapshots", `{}`), `"snapshots" must be an array`},
		{"snapshot id", v2, memberOf("snapshots", `[{"timestamp-ms":1,"manifest-list":"x"}]`), `missing field "snapshot-id"`},
		{"snapshot id text", v2, memberOf("snapshots", `[{"snapshot-id":"1"}]`), `"snapshot-id" must be a 64-bit integer`},
		{"snapshot id twice", v2, memberOf("snapshots", `[{"snapshot-id":1,"snapshot-id":2}]`), `"snapshot-id" twice`},
		{"manifest list", v2, memberOf("snapshots", `[{"snapshot-id":1,"timestamp-ms":1}]`), `missing field "manifest-list"`},
		{"sequence", v2, memberOf("last-sequence-number", `0`), "sequence-number 1, greater than last-sequence-number 0"},
		{"ref", v2, memberOf("refs", `{"main":{"snapshot-id":5,"type":"branch"}}`), `"main" points at snapshot 5`},
		{"ref type", v2, memberOf("refs", `{"a":{"snapshot-id":5,"type":"twig"}}`), `not "twig"`},
		{"main differs", v2, memberOf("refs", `{"main":{"snapshot-id":3051729675574597004,"type":"branch"}}`), "current-snapshot-id does not agree"},
		{"log", v2, memberOf("snapshot-log", `5`), `"snapshot-log" must be an array`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse(c.base.rewritten([]topEdit{c.edit}))
			wantError(t, err, fault.Validation, c.want)
		})
	}
}

func TestParse_RefusesBrokenText(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty":             {"", "ends too early"},
		"not JSON":          {"hello", "not JSON"},
		"an array":          {"[]", "where '{' should be"},
		"cut":               {`{"format-version":2,`, "ends too early"},
		"trailing":          {`{"format-version":2} x`, "after the value"},
		"bad UTF-8":         {"{\"a\":\"\xff\"}", "not valid UTF-8"},
		"key twice":         {`{"format-version":2,"format-version":2}`, `"format-version" twice`},
		"key twice, hidden": {`{"format-version":2,"format\u002dversion":2}`, `"format-version" twice`},
		"too deep":          {`{"a":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}`, "nest more than 500 deep"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(c.text))
			wantError(t, err, fault.Validation, c.want)
		})
	}
}

func TestDocument_Reads(t *testing.T) {
	d := with(t, v2Table(t), memberOf("properties", `{"a":"b","q":"\u00e9\n"}`), memberOf("location", `"s3://bucket/test/location//"`),
		memberOf("refs", `{"main":{"snapshot-id":3055729675574597004,"type":"branch","min-snapshots-to-keep":5},"t/ü😀":{"snapshot-id":3051729675574597004,"type":"TAG","max-ref-age-ms":10}}`))
	for _, c := range []struct {
		name       string
		have, want any
	}{
		{"uuid", d.UUID(), tableUUID},
		{"location", d.Location(), "s3://bucket/test/location"},
		{"version", d.FormatVersion(), 2},
		{"updated", d.LastUpdated().UnixMilli(), int64(1602638573590)},
		{"sequence", d.LastSequenceNumber(), int64(34)},
		{"next row", d.NextRowID(), int64(0)},
		{"properties", d.Properties(), map[string]string{"a": "b", "q": "é\n"}},
		{"snapshots", d.SnapshotCount(), 2},
		{"refs", d.Refs(), map[string]Ref{
			"main": {SnapshotID: snapshotTwo, Type: "branch", MinSnapshotsToKeep: 5},
			"t/ü😀": {SnapshotID: snapshotOne, Type: "tag", MaxRefAgeMs: 10},
		}},
	} {
		if !reflect.DeepEqual(c.have, c.want) {
			t.Errorf("%s = %v, want %v", c.name, c.have, c.want)
		}
	}
	if v, ok := d.Property("q"); !ok || v != "é\n" {
		t.Errorf("property q = %q, %v", v, ok)
	}
	if _, ok := d.Property("absent"); ok {
		t.Error("absent property found")
	}
	if id, ok := d.CurrentSnapshotID(); !ok || id != snapshotTwo {
		t.Errorf("current snapshot %d, %v", id, ok)
	}
	if text, ok := d.SnapshotJSON(snapshotOne); !ok || !strings.Contains(string(text), "s3://a/b/1.avro") {
		t.Errorf("snapshot %s, %v", text, ok)
	}
	if _, ok := d.SnapshotJSON(1); ok {
		t.Error("unknown snapshot found")
	}
	if text, ok := d.SchemaJSON(1); !ok || !bytes.Equal(text, d.CurrentSchemaJSON()) {
		t.Errorf("schema 1 = %s", text)
	}
	if !strings.Contains(string(d.DefaultSpecJSON()), `"field-id": 1000`) || !strings.Contains(string(d.DefaultSortOrderJSON()), `"bucket[4]"`) {
		t.Errorf("default spec %s, order %s", d.DefaultSpecJSON(), d.DefaultSortOrderJSON())
	}
}

func TestDocument_RefsOnlyKeepsHeadsAndTouchesNothingElse(t *testing.T) {
	d := v2Table(t)
	var all, some map[string]json.RawMessage
	if json.Unmarshal(d.JSON(), &all) != nil || json.Unmarshal(d.RefsOnly(), &some) != nil {
		t.Fatal("not JSON")
	}
	short := parse(t, d.RefsOnly())
	if _, ok := short.SnapshotJSON(snapshotTwo); !ok || short.SnapshotCount() != 1 {
		t.Errorf("%d snapshots left", short.SnapshotCount())
	}
	delete(all, "snapshots")
	delete(some, "snapshots")
	if !reflect.DeepEqual(all, some) {
		t.Error("another member changed")
	}
	tagged := commitOn(t, d, tag("old", snapshotOne))
	if !bytes.Equal(tagged.RefsOnly(), tagged.JSON()) {
		t.Error("a table whose snapshots are all heads was changed")
	}
}
