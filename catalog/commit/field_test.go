package commit

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"catalogd/internal/fault"
)

// The tests of this file are field cases: what went wrong for people who ran catalogs, by the numbers of the
// project's collection.

func TestField_C087_TwoBranchesWithOneSequenceNumber(t *testing.T) {
	base := commitOn(t, v2Table(t), branch("audit", snapshotTwo))
	toAudit := `{"identifier":{"namespace":["a"],"name":"t"},"requirements":[{"type":"assert-ref-snapshot-id","ref":"audit","snapshot-id":3055729675574597004}],"updates":[` +
		strings.Join(appendTo("audit", 8, snapshotTwo, 35), ",") + `]}`
	moved := commitOn(t, base, appendTo("main", 7, snapshotTwo, 35)...)
	requests, err := DecodeTransaction([]byte(`{"table-changes":[` + toAudit + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	single, err := DecodeRequest([]byte(toAudit))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range append(requests, single) {
		if err := Check(moved, r); err != nil {
			t.Fatalf("the requirement on the branch still holds, got %v", err)
		}
		_, _, err := Apply(moved, r, Stamp{Now: now, MetadataLocation: oldFile})
		wantError(t, err, fault.CommitConflict, "Validation failed, please retry: Cannot add snapshot with sequence number 35 older than last sequence number 35")
	}
	commitOn(t, moved, appendTo("audit", 8, snapshotTwo, 36)...) // what B does next
}

func TestField_C094_ReplaceKeepsWhatOthersCommitted(t *testing.T) {
	base := v2Table(t)
	replace := request(t, schemaOf(field(4, "n", "string")), useLastSchema,
		`{"action":"add-spec","spec":{"fields":[]}}`, useLastSpec, `{"action":"add-sort-order","sort-order":{"fields":[]}}`, useLastOrder,
		`{"action":"remove-snapshot-ref","ref-name":"main"}`, addSnap(9, 0, 35), branch("main", 9))
	others := commitOn(t, base, append(appendTo("main", 7, snapshotTwo, 35), schemaOf(append(fixtureXYZ, field(5, "added", "int"))...), useLastSchema)...)
	d, _, err := Apply(others, replace, Stamp{Now: now, MetadataLocation: oldFile})
	if err != nil {
		t.Fatal(err)
	}
	checkIndex(t, d)
	if _, ok := d.SnapshotJSON(7); !ok || d.SnapshotCount() != 4 {
		t.Error("the other's snapshot is gone")
	}
	wantTop(t, d, keyLastColumn, "5")
	wantTop(t, d, keyCurrentSchema, "3")
	wantTop(t, d, keyLastSequence, "35")
	if !strings.Contains(string(d.CurrentSchemaJSON()), `"name":"n"`) {
		t.Errorf("current schema is %s", d.CurrentSchemaJSON())
	}
	if log := string(d.snapshotLog); !strings.Contains(log, `"snapshot-id":7`) || !strings.HasSuffix(log, `"snapshot-id":9}`+"\n  ]") {
		t.Errorf("log is %s", log)
	}
}

func TestField_C095_StagedSpecKeepsItsId(t *testing.T) {
	d, err := ApplyCreate(stagedCommit(t, `{"action":"assign-uuid","uuid":"`+tableUUID+`"}`, `{"action":"add-schema","schema":{"type":"struct","schema-id":0,"fields":[`+field(1, "a", "int")+`]}}`, useLastSchema,
		`{"action":"add-spec","spec":{"spec-id":0,"fields":[{"name":"a","transform":"identity","source-id":1,"field-id":1000}]}}`, useLastSpec,
		`{"action":"add-sort-order","sort-order":{"order-id":1,"fields":[{"transform":"identity","source-id":1,"direction":"asc","null-order":"nulls-first"}]}}`, useLastOrder,
		addSnap(7, 0, 1, `"schema-id":0`), branch("main", 7)), stamp)
	if err != nil {
		t.Fatal(err)
	}
	checkIndex(t, d)
	wantTop(t, d, keySpecs, `[{"spec-id":0,"fields":[{"name":"a","transform":"identity","source-id":1,"field-id":1000}]}]`)
	for _, name := range []string{keyDefaultSpec, keyCurrentSchema} {
		wantTop(t, d, name, "0")
	}
	wantTop(t, d, keyDefaultOrder, "1")
	wantTop(t, d, keyLastPartition, "1000")
}

func TestField_C100_IdsAreNeverReused(t *testing.T) {
	d := commitOn(t, v2Table(t), schemaOf(append(fixtureXYZ, field(4, "a", "int"))...), useLastSchema)
	d = commitOn(t, d, schemaOf(fixtureXYZ...), useLastSchema)
	wantTop(t, d, keyLastColumn, "4")
	d = commitOn(t, d, schemaOf(append(fixtureXYZ, field(5, "b", "int"))...), useLastSchema)
	wantTop(t, d, keyLastColumn, "5")
	spec := func(name, transform string) string {
		return `{"action":"add-spec","spec":{"fields":[{"name":"` + name + `","transform":"` + transform + `","source-id":2}]}}`
	}
	d = commitOn(t, d, spec("y", "identity"), useLastSpec)
	d = commitOn(t, d, `{"action":"set-default-spec","spec-id":0}`, `{"action":"remove-partition-specs","spec-ids":[1]}`)
	wantTop(t, d, keyLastPartition, "1001")
	d = commitOn(t, d, spec("y_b", "bucket[2]"), useLastSpec)
	wantTop(t, d, keyLastPartition, "1002")
	for _, requirement := range []string{
		`{"type":"assert-last-assigned-field-id","last-assigned-field-id":4}`,
		`{"type":"assert-last-assigned-partition-id","last-assigned-partition-id":1001}`,
	} {
		r, err := DecodeRequest([]byte(`{"requirements":[` + requirement + `],"updates":[]}`))
		if err != nil {
			t.Fatal(err)
		}
		wantError(t, Check(d, r), fault.CommitConflict, "last assigned")
	}
}

func TestField_C101_RedeclaringChangesNothing(t *testing.T) {
	d := v2Table(t)
	redeclare := []string{
		`{"action":"add-schema","schema":` + string(d.CurrentSchemaJSON()) + `}`, useLastSchema,
		`{"action":"add-spec","spec":` + string(d.DefaultSpecJSON()) + `}`, useLastSpec,
		`{"action":"add-sort-order","sort-order":` + string(d.DefaultSortOrderJSON()) + `}`, useLastOrder,
	}
	unchanged(t, d, redeclare...)
	for i := range 100 {
		d = commitOn(t, d, append(redeclare, fmt.Sprintf(`{"action":"set-properties","updates":{"n":"%d"}}`, i))...)
	}
	if len(d.schemas) != 2 || len(d.specs) != 1 || len(d.orders) != 1 {
		t.Errorf("%d schemas, %d specs, %d orders", len(d.schemas), len(d.specs), len(d.orders))
	}
	wantTop(t, d, keyCurrentSchema, "1")
}

// fullTable is a v3 document with every optional field of the specification and one that nobody knows.
const fullTable = `{"format-version":3,"table-uuid":"` + tableUUID + `","location":"s3://b/t","last-sequence-number":1,"last-updated-ms":1700000000000,` +
	`"last-column-id":2,"next-row-id":5,"current-schema-id":0,"schemas":[{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"a","required":false,"type":"variant"},{"id":2,"name":"b","required":false,"type":"geography(OGC:CRS84, karney)"}]}],` +
	`"default-spec-id":0,"partition-specs":[{"spec-id":0,"fields":[{"name":"m","transform":"zip","source-ids":[1,2],"field-id":1000}]}],"last-partition-id":1000,` +
	`"default-sort-order-id":0,"sort-orders":[{"order-id":0,"fields":[]}],"properties":{},"current-snapshot-id":7,` +
	`"refs":{"main":{"snapshot-id":7,"type":"branch","max-ref-age-ms":9223372036854775807}},` +
	`"snapshots":[{"snapshot-id":7,"sequence-number":1,"timestamp-ms":1700000000000,"manifest-list":"s3://m","first-row-id":0,"added-rows":5,"key-id":"k1","summary":{"operation":"append"}}],` +
	`"statistics":[{"snapshot-id":7,"statistics-path":"s","file-size-in-bytes":1,"file-footer-size-in-bytes":1,"key-metadata":"AA==","blob-metadata":[]}],` +
	`"partition-statistics":[{"snapshot-id":7,"statistics-path":"p","file-size-in-bytes":1}],"encryption-keys":[{"key-id":"k1","encrypted-key-metadata":"AAEC","encrypted-by-id":"k0","properties":{"a":"b"}}],` +
	`"snapshot-log":[{"timestamp-ms":1700000000000,"snapshot-id":7}],"metadata-log":[],"x-future":{"rows":12345678901234567890,"z":1.0}}`

func TestField_C104_NothingIsLostInAPropertyChange(t *testing.T) {
	base := parse(t, []byte(fullTable))
	d := commitOn(t, base, `{"action":"set-properties","updates":{"a":"b"}}`)
	wantOnlyChanged(t, base.members, d.members, nil, keyProperties, keyLastUpdated, keyMetadataLog)
}

func TestField_C106_ColumnsOfOldSpecsMayGo(t *testing.T) {
	d := commitOn(t, v2Table(t), `{"action":"add-spec","spec":{"fields":[{"name":"y_bucket","transform":"bucket[4]","source-id":2}]}}`, useLastSpec)
	d = commitOn(t, d, schemaOf(fixtureXYZ[1:]...), useLastSchema)
	d = commitOn(t, parse(t, d.JSON()), appendTo("main", 7, snapshotTwo, 35)...)
	if len(d.specs) != 2 {
		t.Errorf("%d specs", len(d.specs))
	}
}

func TestField_C107_ColumnsOfOldSortOrdersMayGo(t *testing.T) {
	d := commitOn(t, v2Table(t), `{"action":"add-sort-order","sort-order":{"fields":[{"transform":"identity","source-id":1,"direction":"asc","null-order":"nulls-first"}]}}`, useLastOrder)
	d = commitOn(t, d, schemaOf(fixtureXYZ[0], fixtureXYZ[2]), useLastSchema)
	d = commitOn(t, parse(t, d.JSON()), `{"action":"add-sort-order","sort-order":{"fields":[{"transform":"identity","source-id":3,"direction":"asc","null-order":"nulls-first"}]}}`, useLastOrder)
	wantTop(t, d, keyDefaultOrder, "5")
}

func TestField_C110_SeveralSnapshotsInOneCommit(t *testing.T) {
	d := commitOn(t, v2Table(t), append(appendTo("main", 7, snapshotTwo, 35), appendTo("main", 8, 7, 36)...)...)
	if d.SnapshotCount() != 4 || d.snapshots[2].id != 7 || d.snapshots[3].id != 8 || d.snapshots[3].parent != 7 {
		t.Errorf("snapshots %+v", d.snapshots)
	}
	wantTop(t, d, keyLastSequence, "36")
	wantTop(t, d, keyCurrentSnapshot, "8")
	log := top(t, d, keySnapshotLog).([]any)
	if len(log) != 3 || fmt.Sprint(log[2].(map[string]any)["snapshot-id"]) != "8" {
		t.Errorf("log %v", log)
	}
}

func TestField_C114_WriterOfADroppedTable(t *testing.T) {
	base := with(t, v2Table(t), memberOf(keyUUID, `"00000000-0000-4000-8000-000000000002"`), topEdit{name: keyCurrentSnapshot}, memberOf(keySnapshots, `[]`),
		memberOf(keySnapshotLog, `[]`), memberOf(keyLastSequence, `0`))
	careful, err := DecodeRequest([]byte(`{"requirements":[{"type":"assert-table-uuid","uuid":"` + tableUUID + `"}],"updates":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, Check(base, careful), fault.CommitConflict, "Requirement failed: UUID does not match")
	refused(t, base, fault.CommitConflict, "its parent 3055729675574597004 is not in the table", appendTo("main", 7, snapshotTwo, 35)...)
}

func TestField_C115_BranchesAndTags(t *testing.T) {
	base := v2Table(t)
	refused(t, base, fault.Validation, "unknown snapshot: 5", tag("t", 5))
	d := commitOn(t, base, tag("t", snapshotOne))
	d = commitOn(t, d, tag("t", snapshotTwo))
	d = commitOn(t, d, branch("t", snapshotTwo))
	if r := d.Refs()["t"]; r.Type != "branch" || r.SnapshotID != snapshotTwo {
		t.Errorf("ref %+v", r)
	}
	refused(t, base, fault.IllegalArgument, "Cannot set main to a tag", tag("main", snapshotTwo))
	refused(t, base, fault.BadRequest, "max-ref-age-ms must be greater than 0", `{"action":"set-snapshot-ref","ref-name":"t","type":"tag","snapshot-id":3051729675574597004,"max-ref-age-ms":0}`)
	refused(t, base, fault.BadRequest, "max-ref-age-ms must be greater than 0", `{"action":"set-snapshot-ref","ref-name":"t","type":"tag","snapshot-id":3051729675574597004,"max-ref-age-ms":-5}`)
	d = commitOn(t, base, `{"action":"remove-snapshot-ref","ref-name":"feature/x-😀"}`, tag("feature/x-😀", snapshotOne), tag(`q"\`, snapshotOne))
	if refs := d.Refs(); len(refs) != 3 || refs["feature/x-😀"].SnapshotID != snapshotOne || refs[`q"\`].SnapshotID != snapshotOne {
		t.Errorf("refs %v", refs)
	}
	for _, base := range []*Document{base, commitOn(t, v3Table(t), addRows(7, 0, 35, 0, 1), branch("main", 7))} {
		empty := commitOn(t, base, `{"action":"remove-snapshot-ref","ref-name":"main"}`)
		if _, set := empty.CurrentSnapshotID(); set {
			t.Error("a current snapshot without main")
		}
		if again := commitOn(t, empty, addRows(8, 0, 40, 50, 1), branch("main", 8)); again.Refs()["main"].SnapshotID != 8 {
			t.Error("main cannot be made again")
		}
	}
}

func TestField_C116_OlderFilesHaveNoRefs(t *testing.T) {
	d := v2Table(t) // has a current snapshot and no refs
	if r, ok := d.Refs()["main"]; !ok || r.SnapshotID != snapshotTwo || r.Type != "branch" {
		t.Errorf("main is %+v", r)
	}
	r, err := DecodeRequest([]byte(`{"requirements":[{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":3055729675574597004}],"updates":[]}`))
	if err != nil || Check(d, r) != nil {
		t.Errorf("%v, %v", err, Check(d, r))
	}
	wantTop(t, parse(t, d.Answer()), keyRefs, `{"main":{"snapshot-id":3055729675574597004,"type":"branch"}}`)
	wantTop(t, commitOn(t, d, `{"action":"set-properties","updates":{"a":"b"}}`), keyRefs, `{"main":{"snapshot-id":3055729675574597004,"type":"branch"}}`)
	modern := commitOn(t, d, tag("t", snapshotOne))
	if !bytes.Equal(modern.Answer(), modern.JSON()) {
		t.Error("a file with refs is answered as it is")
	}
	partial := with(t, d, memberOf(keyRefs, `{"t":{"snapshot-id":3051729675574597004,"type":"tag"}}`))
	wantTop(t, parse(t, partial.Answer()), keyRefs, `{"t":{"snapshot-id":3051729675574597004,"type":"tag"},"main":{"snapshot-id":3055729675574597004,"type":"branch"}}`)
}

func TestField_C120_ExpireMostOfAVeryLongHistory(t *testing.T) {
	const all, kept = 100_000, 1_000
	base := parse(t, sparkTable(all))
	oneUpdate := make([]string, all-kept)
	manyUpdates := make([]string, all-kept)
	for i := range oneUpdate {
		oneUpdate[i] = fmt.Sprint(snapshotID(i + 1))
		manyUpdates[i] = `{"action":"remove-snapshots","snapshot-ids":[` + oneUpdate[i] + `]}`
	}
	for name, updates := range map[string][]string{
		"one update":     {`{"action":"remove-snapshots","snapshot-ids":[` + strings.Join(oneUpdate, ",") + `]}`},
		"an update each": manyUpdates, // newer Java clients
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			next, changed, err := Apply(base, request(t, updates...), Stamp{Now: now, MetadataLocation: benchFile})
			if err != nil || !changed || next.SnapshotCount() != kept {
				t.Fatalf("%v, %v", changed, err)
			}
			if took := time.Since(start); took > 15*time.Second {
				t.Errorf("took %v", took)
			}
			if log := top(t, next, keySnapshotLog).([]any); len(log) != kept {
				t.Errorf("%d log entries", len(log))
			}
			again := parse(t, next.JSON())
			if !reflect.DeepEqual(again.snapshots, next.snapshots) {
				t.Error("the index differs from the text")
			}
		})
	}
	next, _, err := Apply(base, request(t, sparkAppendUpdates(all)...), Stamp{Now: now, MetadataLocation: benchFile})
	if err != nil || next.SnapshotCount() != all+1 {
		t.Errorf("append: %v", err)
	}
}

func TestField_C130_ReservedProperties(t *testing.T) {
	d := created(t, simple(`"format-version":"2","uuid":"x","current-snapshot-id":"5","metadata.foo":"1"`))
	wantTop(t, d, keyProperties, `{"metadata.foo":"1","write.parquet.compression-codec":"zstd"}`)
	wantTop(t, d, keyUUID, `"`+tableUUID+`"`)
	if _, set := d.CurrentSnapshotID(); set {
		t.Error("a property was obeyed")
	}
	refused(t, d, fault.IllegalArgument, "Cannot set the reserved property format-version", `{"action":"set-properties","updates":{"format-version":"3"}}`)
	refused(t, d, fault.IllegalArgument, "Cannot set the reserved property current-snapshot-id", `{"action":"set-properties","updates":{"current-snapshot-id":"3"}}`)
}

func TestField_C131_TheNewestSnapshotIsNotTheCurrentOne(t *testing.T) {
	base := commitOn(t, v2Table(t), appendTo("main", 7, snapshotTwo, 35)...)
	later := now.Add(time.Minute)
	d, _, err := Apply(base, request(t, appendTo("audit", 8, 7, 36)...), Stamp{Now: later, MetadataLocation: oldFile})
	if err != nil {
		t.Fatal(err)
	}
	wantTop(t, d, keyCurrentSnapshot, "7")
	if !bytes.Equal(d.snapshotLog, base.snapshotLog) {
		t.Errorf("log is %s", d.snapshotLog)
	}
	if !d.LastUpdated().Equal(later) {
		t.Errorf("last updated %v", d.LastUpdated())
	}
}

func TestField_C132_MetadataChangesOnAnOldBase(t *testing.T) {
	moved := commitOn(t, v2Table(t), appendTo("main", 7, snapshotTwo, 35)...)
	a, err := DecodeRequest([]byte(`{"requirements":[{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":3055729675574597004}],"updates":[{"action":"set-properties","updates":{"a":"1"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, Check(moved, a), fault.CommitConflict, "Requirement failed: branch main has changed")
	d := commitOn(t, moved, `{"action":"set-properties","updates":{"b":"1"}}`)
	wantTop(t, d, keyCurrentSnapshot, "7")
}

func TestField_C176_StaleFirstRowId(t *testing.T) {
	base := commitOn(t, with(t, v3Table(t), memberOf(keyNextRow, "1000")), addRows(7, 0, 35, 1000, 225), branch("main", 7))
	wantTop(t, base, keyNextRow, "1225")
	refused(t, base, fault.CommitConflict, "first-row-id is behind table next-row-id: 1000 < 1225", addRows(8, 7, 36, 1000, 5))
	refused(t, base, fault.Validation, "first-row-id is null", addSnap(8, 7, 36))
	refused(t, base, fault.Validation, "first-row-id is null", addSnap(8, 7, 36, `"first-row-id":null,"added-rows":5`))
	refused(t, base, fault.Validation, "added-rows is null", addSnap(8, 7, 36, `"first-row-id":1225`))
	refused(t, base, fault.Validation, "added-rows is negative", addSnap(8, 7, 36, `"first-row-id":1225,"added-rows":-1`))
}

func TestField_C177_UpgradeLeavesOldSnapshotsAlone(t *testing.T) {
	base := commitOn(t, v2Table(t), appendTo("main", 7, snapshotTwo, 35)...)
	d := commitOn(t, base, `{"action":"upgrade-format-version","format-version":3}`)
	wantTop(t, d, keyNextRow, "0")
	for _, id := range []int64{snapshotOne, snapshotTwo, 7} {
		before, _ := base.SnapshotJSON(id)
		after, _ := d.SnapshotJSON(id)
		if !bytes.Equal(before, after) {
			t.Errorf("snapshot %d became %s", id, after)
		}
	}
	wantTop(t, commitOn(t, d, addRows(8, 7, 36, 0, 3), branch("main", 8)), keyNextRow, "3")
}

func TestField_C178_UpgradesStepByStep(t *testing.T) {
	upgradeTo := func(version int) string {
		return fmt.Sprintf(`{"action":"upgrade-format-version","format-version":%d}`, version)
	}
	v1 := commitOn(t, v1Table(t), `{"action":"add-snapshot","snapshot":{"snapshot-id":7,"timestamp-ms":5,"manifest-list":"m"}}`, branch("main", 7))
	v2 := commitOn(t, v1, upgradeTo(2))
	for name, want := range map[string]string{
		keySchema: "", keyPartitionSpec: "", keyLastSequence: "0", keyCurrentSchema: "0", keyDefaultSpec: "0", keyLastPartition: "1000", keyDefaultOrder: "0",
		keyOrders: `[{"order-id":0,"fields":[]}]`, keyFormatVersion: "2", keyNextRow: "",
		keySpecs: `[{"spec-id":0,"fields":[{"name":"x","transform":"identity","source-id":1,"field-id":1000}]}]`,
	} {
		wantTop(t, v2, name, want)
	}
	if !strings.Contains(string(v2.CurrentSchemaJSON()), `"schema-id":0`) {
		t.Errorf("schema is %s", v2.CurrentSchemaJSON())
	}
	v3 := commitOn(t, v2, upgradeTo(3))
	wantTop(t, v3, keyNextRow, "0")
	unchanged(t, v3, upgradeTo(3))
	refused(t, v3, fault.IllegalArgument, "Cannot downgrade v3 table to v2", upgradeTo(2))
	refused(t, v3, fault.IllegalArgument, "Cannot upgrade table to unsupported format version: v4 (supported: v3)", upgradeTo(4))
	refused(t, v3, fault.IllegalArgument, "Cannot downgrade v3 table to v0", upgradeTo(0))
	wantTop(t, commitOn(t, v1Table(t), upgradeTo(3)), keyCurrentSnapshot, "") // -1 is v1's and v2's word for none
}

// columnWith is an add-schema of the fixture's columns and one with defaults.
func columnWith(typ, defaults string) string {
	return schemaOf(append(fixtureXYZ, fmt.Sprintf(`{"id":4,"name":"d","required":false,"type":%q,%s}`, typ, defaults))...)
}

func TestField_C183_DefaultsInTheSchema(t *testing.T) {
	refused(t, v2Table(t), fault.IllegalArgument, "non-null default (1) is not supported until v3", columnWith("int", `"initial-default":1`))
	commitOn(t, v2Table(t), columnWith("int", `"write-default":1`)) // only initial-default needs v3
	_, err := create(t, `{"name":"t","schema":{"type":"struct","fields":[{"id":1,"name":"a","required":false,"type":"int","initial-default":1}]}}`)
	wantError(t, err, fault.IllegalArgument, "non-null default (1) is not supported until v3")
	d := commitOn(t, v3Table(t), columnWith("int", `"initial-default":null,"write-default":null`), useLastSchema)
	if s := string(d.CurrentSchemaJSON()); strings.Contains(s, "default") {
		t.Errorf("null is no default: %s", s)
	}
	refused(t, v3Table(t), fault.IllegalArgument, "must be null", schemaOf(append(fixtureXYZ, `{"id":4,"name":"s","required":false,"type":{"type":"struct","fields":[]},"initial-default":{}}`)...))
	for typ, value := range map[string]string{
		"binary": `"00FFa0"`, "fixed[3]": `"00ffa0"`, "date": `"2024-02-29"`, "decimal(9, 2)": `"12.30"`, "uuid": `"f79c3e09-677c-4bbd-a479-3f349cb785e7"`,
		"boolean": `false`, "time": `"22:31:08.123456"`, "timestamp": `"2017-11-16T22:31:08.123456"`, "timestamptz": `"2017-11-16T22:31:08.123456+00:00"`,
		"timestamp_ns": `"2017-11-16T22:31:08.123456789"`, "timestamptz_ns": `"2017-11-16T22:31:08.123456789Z"`, "float": `-0.5e1`, "long": `-9223372036854775808`, "string": `""`,
	} {
		d := commitOn(t, v3Table(t), columnWith(typ, `"initial-default":`+value), useLastSchema)
		if !strings.Contains(string(d.CurrentSchemaJSON()), `"initial-default":`+value) {
			t.Errorf("%s default %s is not kept: %s", typ, value, d.CurrentSchemaJSON())
		}
	}
}

// TestField_C182_ALaterWriteDefaultLeavesTheInitialOne keeps what old rows read by: without it a rewrite makes nulls.
func TestField_C182_ALaterWriteDefaultLeavesTheInitialOne(t *testing.T) {
	d := commitOn(t, v3Table(t), columnWith("string", `"initial-default":"EU","write-default":null`), useLastSchema)
	if s := string(d.CurrentSchemaJSON()); !strings.Contains(s, `"initial-default":"EU"`) || strings.Contains(s, "write-default") {
		t.Errorf("schema is %s", s)
	}
	d = commitOn(t, d, columnWith("string", `"initial-default":"EU","write-default":"US"`), useLastSchema)
	if s := string(d.CurrentSchemaJSON()); !strings.Contains(s, `"initial-default":"EU","write-default":"US"`) {
		t.Errorf("schema is %s", s)
	}
}

// TestField_Z08_EverythingSurvives sends what each client sends to a document with everything in it: only what the
// commit speaks of may differ.
func TestField_Z08_EverythingSurvives(t *testing.T) {
	touched := []string{keyLastUpdated, keyMetadataLog}
	for name, c := range map[string]struct {
		updates []string
		members []string
	}{
		"properties": {[]string{setKept}, []string{keyProperties}},
		"append": {[]string{addRows(9, 7, 2, 5, 3), `{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":9,"max-ref-age-ms":9223372036854775807}`},
			[]string{keySnapshots, keyRefs, keySnapshotLog, keyCurrentSnapshot, keyLastSequence, keyNextRow}},
		"branch":  {[]string{branch("audit", 7)}, []string{keyRefs}},
		"columns": {[]string{schemaOf(field(1, "a", "variant"), field(2, "b", "geography(OGC:CRS84, karney)"), field(3, "c", "int"))}, []string{keySchemas, keyLastColumn}},
		"statistics": {[]string{`{"action":"set-statistics","statistics":{"snapshot-id":8,"statistics-path":"s8","file-size-in-bytes":1,"file-footer-size-in-bytes":1,"blob-metadata":[]}}`},
			[]string{keyStatistics}},
		"encryption key": {[]string{`{"action":"add-encryption-key","encryption-key":{"key-id":"k2","encrypted-key-metadata":"AAEC"}}`}, []string{keyEncryptionKeys}},
	} {
		t.Run(name, func(t *testing.T) {
			base := parse(t, []byte(fullTable))
			next := commitOn(t, base, c.updates...)
			wantOnlyChanged(t, base.members, next.members, nil, append(c.members, touched...)...)
			for _, kept := range []string{`"key-id":"k1","summary"`, `"max-ref-age-ms":9223372036854775807`, `"key-metadata":"AA=="`, `"encrypted-by-id":"k0","properties":{"a":"b"}`, `"source-ids":[1,2]`} {
				if !strings.Contains(string(next.JSON()), kept) {
					t.Errorf("%s is gone", kept)
				}
			}
		})
	}
}
