package commit

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"catalogd/internal/fault"
)

// The tests of this file pin what is right where iceberg-go v0.7.0, the oracle of TestOracle, does otherwise. The
// numbers M1 to M21 are those by which the decision records speak of the deviations.

func TestM01_UnknownFieldsSurviveAtEveryLevel(t *testing.T) {
	base := parse(t, []byte(strings.NewReplacer(
		`"properties": {}`, `"properties": {}, "x-top": {"a": [1, null, 9007199254740993]}`,
		`"operation": "append"`, `"operation": "append", "x-summary": "1"`,
		`"manifest-list": "s3://a/b/1.avro"`, `"manifest-list": "s3://a/b/1.avro", "x-snapshot": null`,
		`"doc": "comment"`, `"doc": "comment", "x-field": 1.50`,
		`"transform": "identity",`, `"transform": "identity", "x-term": "t",`,
		`"metadata-log": []`, `"metadata-log": [{"metadata-file":"m","timestamp-ms":1602638573590,"x-log":1}]`,
	).Replace(string(fixture(t, "TableMetadataV2Valid.json")))))
	d := commitOn(t, base, everyUpdate)
	for _, unknown := range []string{
		`"x-top": {"a": [1, null, 9007199254740993]}`, `"x-summary": "1"`, `"x-field": 1.50`, `"x-term": "t"`, `"x-log":1`,
	} {
		if strings.Count(string(d.JSON()), unknown) == 0 {
			t.Errorf("%s is gone", unknown)
		}
	}
	d = commitOn(t, base, `{"action":"set-properties","updates":{"a":"b"}}`)
	if !strings.Contains(string(d.JSON()), `"x-snapshot": null`) {
		t.Error("a snapshot's unknown null is gone")
	}
}

func TestM02_KeyIDOfSnapshotsSurvives(t *testing.T) {
	base := commitOn(t, v3Table(t), addSnap(7, 0, 35, `"first-row-id":0,"added-rows":1,"key-id":"k1"`), branch("main", 7))
	d := commitOn(t, base, addSnap(8, 7, 36, `"first-row-id":1,"added-rows":1,"key-id":"k2"`), branch("main", 8))
	for id, key := range map[int64]string{7: "k1", 8: "k2"} {
		if s, _ := d.SnapshotJSON(id); !strings.Contains(string(s), `"key-id":"`+key+`"`) {
			t.Errorf("snapshot %d is %s", id, s)
		}
	}
}

func TestM03_DefaultsKeepTheirDigits(t *testing.T) {
	d := commitOn(t, v3Table(t), schemaOf(append(fixtureXYZ,
		`{"id":4,"name":"a","required":false,"type":"long","initial-default":9007199254740993,"write-default":-9223372036854775808}`,
		`{"id":5,"name":"b","required":false,"type":"double","initial-default":1.0e10,"write-default":0.10}`)...), useLastSchema)
	for _, number := range []string{`9007199254740993`, `-9223372036854775808`, `1.0e10`, `0.10`} {
		if !strings.Contains(string(d.CurrentSchemaJSON()), ":"+number) {
			t.Errorf("%s was rewritten: %s", number, d.CurrentSchemaJSON())
		}
	}
}

func TestM04_BlobsNeverHaveNullProperties(t *testing.T) {
	blob := func(properties string) string {
		return `{"action":"set-statistics","statistics":{"snapshot-id":5,"statistics-path":"p","file-size-in-bytes":1,"file-footer-size-in-bytes":1,"key-metadata":null,` +
			`"blob-metadata":[{"type":"ndv","snapshot-id":5,"sequence-number":0,"fields":[1]` + properties + `}]}}`
	}
	for _, properties := range []string{``, `,"properties":null`} {
		d := commitOn(t, v2Table(t), blob(properties))
		wantTop(t, d, keyStatistics, `[{"snapshot-id":5,"statistics-path":"p","file-size-in-bytes":1,"file-footer-size-in-bytes":1,
			"blob-metadata":[{"type":"ndv","snapshot-id":5,"sequence-number":0,"fields":[1]}]}]`)
	}
	refused(t, v2Table(t), fault.BadRequest, `"properties.a" must be a string, not null`, blob(`,"properties":{"a":null}`))
}

func TestM05_LastSequenceNumberNeverGoesBack(t *testing.T) {
	d := commitOn(t, v2Table(t), appendTo("main", 7, 0, 3)...)
	wantTop(t, d, keyLastSequence, "34")
	d = commitOn(t, d, appendTo("main", 8, 7, 35)...)
	wantTop(t, d, keyLastSequence, "35")
}

func TestM06_TransformsOfSeveralSourcesKeepThem(t *testing.T) {
	two := `{"action":"add-spec","spec":{"fields":[{"name":"xy","transform":"bucket[8]","source-ids":[1,2]}]}}`
	d := commitOn(t, v3Table(t), two, useLastSpec)
	wantTop(t, d, keySpecs, `[{"spec-id":0,"fields":[{"name":"x","transform":"identity","source-id":1,"field-id":1000}]},
		{"spec-id":1,"fields":[{"name":"xy","transform":"bucket[8]","source-ids":[1,2],"field-id":1001}]}]`)
	unchanged(t, d, two, useLastSpec)
	refused(t, v2Table(t), fault.IllegalArgument, "several sources, which is not supported until v3", two)
	refused(t, v3Table(t), fault.Validation, "Cannot find source column", strings.Replace(two, "[1,2]", "[1,9]", 1))
	one := commitOn(t, v3Table(t), strings.Replace(two, "[1,2]", "[1]", 1), useLastSpec)
	if s := string(one.DefaultSpecJSON()); !strings.Contains(s, `"source-id":1`) || strings.Contains(s, "source-ids") {
		t.Errorf("one source is written as %s", s)
	}
	made := created(t, `{"name":"t","properties":{"format-version":"3"},"schema":{"type":"struct","fields":[`+field(11, "a", "int")+`,`+field(12, "b", "int")+
		`]},"partition-spec":{"fields":[{"name":"ab","transform":"bucket[8]","source-ids":[11,12]}]}}`)
	wantTop(t, made, keySpecs, `[{"spec-id":0,"fields":[{"name":"ab","transform":"bucket[8]","source-ids":[1,2],"field-id":1000}]}]`)
}

func TestM07_AnEqualSpecIsReusedWhateverItsId(t *testing.T) {
	unchanged(t, v2Table(t), `{"action":"add-spec","spec":{"spec-id":12,"fields":[{"name":"x","transform":"identity","source-id":1,"field-id":1050}]}}`, useLastSpec)
}

func TestM08_MissingPartitionFieldIdsAreFresh(t *testing.T) {
	d := commitOn(t, v2Table(t), `{"action":"add-spec","spec":{"fields":[{"name":"y","transform":"identity","source-id":2},{"name":"x","transform":"identity","source-id":1},{"name":"z","transform":"identity","source-id":3}]}}`, useLastSpec)
	// y and z are new; x is the field 1000 of the spec before.
	wantTop(t, d, keySpecs, `[{"spec-id":0,"fields":[{"name":"x","transform":"identity","source-id":1,"field-id":1000}]},
		{"spec-id":1,"fields":[{"name":"y","transform":"identity","source-id":2,"field-id":1001},{"name":"x","transform":"identity","source-id":1,"field-id":1000},{"name":"z","transform":"identity","source-id":3,"field-id":1002}]}]`)
	wantTop(t, d, keyLastPartition, "1002")
}

func TestM09_TheDefaultSpecKeepsItsSources(t *testing.T) {
	refused(t, v2Table(t), fault.Validation, "Cannot find source column for partition field: 1000: x: identity(1)", schemaOf(fixtureXYZ[1:]...), useLastSchema)
}

func TestM10_MainIsABranch(t *testing.T) {
	refused(t, v2Table(t), fault.IllegalArgument, "Cannot set main to a tag", tag("main", snapshotOne))
	refused(t, v2Table(t), fault.IllegalArgument, "Cannot set main to a tag", tag("main", snapshotTwo))
}

func TestM11_RemovingWhatIsNotThereAndWhatIsCurrent(t *testing.T) {
	unchanged(t, v2Table(t), `{"action":"remove-snapshot-ref","ref-name":"absent"}`)
	d := commitOn(t, v2Table(t), fmt.Sprintf(`{"action":"remove-snapshots","snapshot-ids":[%d]}`, int64(snapshotTwo)))
	if _, set := d.CurrentSnapshotID(); set || d.SnapshotCount() != 1 {
		t.Errorf("current set: %v, %d snapshots", set, d.SnapshotCount())
	}
	wantTop(t, d, keyRefs, "{}")
}

func TestM12_UpdatesThatMatchNothingAreNoChange(t *testing.T) {
	unchanged(t, v2Table(t), `{"action":"remove-snapshots","snapshot-ids":[1,2]}`, `{"action":"remove-statistics","snapshot-id":1}`,
		`{"action":"remove-partition-statistics","snapshot-id":1}`, `{"action":"remove-properties","removals":["a"]}`,
		`{"action":"remove-schemas","schema-ids":[9]}`, `{"action":"remove-partition-specs","spec-ids":[9]}`,
		`{"action":"remove-encryption-key","key-id":"k"}`, `{"action":"set-properties","updates":{}}`, `{"action":"remove-snapshots","snapshot-ids":[]}`)
	unchanged(t, v2Table(t))
}

func TestM13_TheServersClockCounts(t *testing.T) {
	ahead := func(ms int64) []string {
		return []string{fmt.Sprintf(`{"action":"add-snapshot","snapshot":{"snapshot-id":7,"sequence-number":35,"timestamp-ms":%d,"manifest-list":"m","summary":{"operation":"append"}}}`,
			now.UnixMilli()+ms), branch("main", 7)}
	}
	refused(t, v2Table(t), fault.Validation, "more than a minute after the server's clock", ahead(600_000)...)
	d := commitOn(t, v2Table(t), ahead(59_000)...)
	wantTop(t, d, keyLastUpdated, fmt.Sprint(now.UnixMilli()))
	commitOn(t, d, `{"action":"set-properties","updates":{"a":"b"}}`) // nobody has to wait for a clock

	// A client two minutes behind may commit after a change that the server stamped.
	stamped := commitOn(t, v2Table(t), `{"action":"set-properties","updates":{"a":"b"}}`)
	commitOn(t, stamped, ahead(-120_000)...)
}

func TestM14_ReservedPropertiesAndNulls(t *testing.T) {
	for _, name := range reserved {
		refused(t, v2Table(t), fault.IllegalArgument, "Cannot set the reserved property "+name, `{"action":"set-properties","updates":{"`+name+`":"3"}}`)
		unchanged(t, v2Table(t), `{"action":"remove-properties","removals":["`+name+`"]}`)
	}
	refused(t, v2Table(t), fault.BadRequest, "must be a string, not null", `{"action":"set-properties","updates":{"a":null}}`)
}

func TestM15_SchemaIdsAreTheTables(t *testing.T) {
	d := commitOn(t, v2Table(t), schemaOf(append(fixtureXYZ, field(4, "w", "int"))...), useLastSchema)
	wantTop(t, d, keyCurrentSchema, "2")
}

func TestM16_AKnownEncryptionKeyStays(t *testing.T) {
	add := func(data string) string {
		return `{"action":"add-encryption-key","encryption-key":{"key-id":"k","encrypted-key-metadata":"` + data + `"}}`
	}
	d := commitOn(t, v3Table(t), add("AAEC"))
	unchanged(t, d, add("ZZZZ"))
}

func TestM17_RowIdsAreHandedOutOnce(t *testing.T) {
	d := commitOn(t, v3Table(t), addRows(7, 0, 35, 100, 10), branch("main", 7))
	wantTop(t, d, keyNextRow, "110")
	d = commitOn(t, d, addRows(8, 7, 36, 110, 0), branch("main", 8))
	wantTop(t, d, keyNextRow, "110")
	refused(t, d, fault.Validation, "overflow", addRows(9, 8, 37, math.MaxInt64, 1))
}

func TestM18_RefRequirementWithoutSnapshotId(t *testing.T) {
	r, err := DecodeRequest([]byte(`{"requirements":[{"type":"assert-ref-snapshot-id","ref":"new"}],"updates":[]}`))
	if err != nil || Check(v2Table(t), r) != nil {
		t.Errorf("%v, %v", err, Check(v2Table(t), r))
	}
}

func TestM19_StaleSnapshotsAreConflicts(t *testing.T) {
	refused(t, v2Table(t), fault.CommitConflict, "Validation failed, please retry", addSnap(7, snapshotTwo, 34))
	base := commitOn(t, v3Table(t), addRows(7, 0, 35, 0, 10), branch("main", 7))
	refused(t, base, fault.CommitConflict, "Validation failed, please retry: Cannot add a snapshot, first-row-id is behind table next-row-id: 9 < 10", addRows(8, 7, 36, 9, 1))
}

func TestM20_ARequestCanBeAppliedAgain(t *testing.T) {
	r := request(t, everyUpdate)
	base := v2Table(t)
	other := commitOn(t, base, schemaOf(append(fixtureXYZ, field(9, "q", "int"))...), `{"action":"set-properties","updates":{"b":"0"}}`,
		`{"action":"add-spec","spec":{"fields":[{"name":"z","transform":"identity","source-id":3}]}}`)
	stamp := Stamp{Now: now, MetadataLocation: oldFile}
	first, _, err := Apply(base, r, stamp)
	if err != nil {
		t.Fatal(err)
	}
	moved, _, err := Apply(other, r, stamp)
	if err != nil {
		t.Fatal(err)
	}
	wantTop(t, moved, keyCurrentSchema, "3")
	wantTop(t, moved, keyDefaultSpec, "2")
	again, _, err := Apply(base, r, stamp)
	if err != nil || string(again.JSON()) != string(first.JSON()) {
		t.Errorf("the second try differs: %v\n%s\n%s", err, first.JSON(), again.JSON())
	}
}

func TestM21_TextIsKeptAsItIsWritten(t *testing.T) {
	base := with(t, v1Table(t), memberOf(keyLocation, `"s3://bucket/test/location/"`))
	d := commitOn(t, base, `{"action":"add-snapshot","snapshot":{"snapshot-id":7,"timestamp-ms":5,"manifest-list":"m"}}`)
	if s, _ := d.SnapshotJSON(7); strings.Contains(string(s), "sequence-number") {
		t.Errorf("v1 snapshot is %s", s)
	}
	wantTop(t, d, keyLocation, `"s3://bucket/test/location/"`)
	if d.Location() != "s3://bucket/test/location" {
		t.Errorf("location %s", d.Location())
	}
	d = commitOn(t, v2Table(t), schemaOf(append(fixtureXYZ, field(4, "d", "decimal(9,2)"))...), useLastSchema)
	if s := string(d.CurrentSchemaJSON()); !strings.Contains(s, `"decimal(9,2)"`) || strings.Contains(s, "identifier-field-ids") {
		t.Errorf("schema is %s", s)
	}
}
