package commit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/apache/iceberg-go/table"
	"pgregory.net/rapid"
)

// oracleClock is near the true time: iceberg-go reads the clock itself.
func oracleClock() time.Time { return time.Now().Truncate(time.Millisecond) }

// world draws updates that fit, or just miss, a table. It stays clear of what deviation_test.go pins: there
// iceberg-go is known to do otherwise.
type world struct {
	t    *rapid.T
	d    *Document
	at   int64 // timestamp of new snapshots
	next int64 // of new snapshot ids
}

// pick draws a number below n. rapid prefers small numbers, which would make most tables alike; the product spreads
// them.
func (w *world) pick(label string, n int) int {
	return int(rapid.Uint32().Draw(w.t, label) * 0x9E3779B1 >> 8 % uint32(n))
}

func (w *world) chance(label string, percent int) bool { return w.pick(label, 100) < percent }

var oracleTypes = []string{"long", "int", "string", "double", "boolean", "date", "timestamp", "timestamptz", "uuid", "binary", "decimal(9, 2)", "fixed[4]"}

// update draws one group of updates.
func (w *world) update() []string {
	switch w.pick("kind", 13) {
	case 0, 1, 2:
		return w.snapshot()
	case 3:
		return w.schema()
	case 4:
		return w.spec()
	case 5:
		return w.order()
	case 6:
		return w.properties()
	case 7:
		return w.refs()
	case 8:
		return w.removeSnapshots()
	case 9:
		return w.statistics()
	case 10:
		return []string{fmt.Sprintf(`{"action":"upgrade-format-version","format-version":%d}`, 1+w.pick("version", 4))}
	case 11:
		return []string{fmt.Sprintf(`{"action":"set-location","location":"s3://b/t%d"}`, w.pick("location", 3))}
	}
	return w.removals()
}

func (w *world) snapshot() []string {
	name := rapid.SampledFrom([]string{"main", "b"}).Draw(w.t, "branch")
	w.next++
	id := w.next
	parent := int64(0)
	if r := w.d.ref(name); r != nil && r.Type == refBranch {
		parent = r.SnapshotID
	} else if r != nil {
		return nil
	}
	if w.chance("duplicate", 5) && len(w.d.snapshots) > 0 {
		id = w.d.snapshots[0].id
	}
	sequence := w.d.lastSequence + 1
	if w.chance("stale", 10) && parent != 0 {
		sequence = w.d.lastSequence
	}
	if w.d.version == 1 {
		sequence = 0
	}
	further := []string{}
	if w.d.version >= formatVersionRows {
		first := w.d.nextRow
		if w.chance("behind", 10) && first > 0 {
			first--
		}
		further = append(further, fmt.Sprintf(`"first-row-id":%d,"added-rows":%d`, first, w.pick("rows", 50)))
	}
	add := addSnap(id, parent, sequence, append(further, fmt.Sprintf(`"schema-id":%d`, w.d.currentSchema))...)
	add = strings.Replace(add, fmt.Sprint(now.UnixMilli()-1000), fmt.Sprint(w.at), 1)
	if w.chance("unreferenced", 10) {
		return []string{add}
	}
	return []string{add, branch(name, id)}
}

// schema evolves the current one: it adds a column, renames one, drops one that the default spec and order do not
// use, or declares an old schema again.
func (w *world) schema() []string {
	current, err := parseSchema(w.d.CurrentSchemaJSON())
	if err != nil {
		w.t.Fatal(err)
	}
	if w.chance("again", 20) {
		p := w.d.schemas[w.pick("old", len(w.d.schemas))]
		if p.id == w.d.currentSchema || w.chance("unchosen", 50) {
			return []string{`{"action":"add-schema","schema":` + string(p.text) + `}`}
		}
	}
	used := w.sources()
	var fields []string
	for i := range current.columns {
		c := &current.columns[i]
		if c.parent >= 0 {
			continue
		}
		if w.chance("drop", 10) && !used[c.id] {
			continue
		}
		if c.kind == kindPrimitive {
			fields = append(fields, field(c.id, string(c.name), c.primitive))
			continue
		}
		fields = append(fields, field(c.id, string(c.name), `{"type":"struct","fields":[`+field(current.columns[i+1].id, "in", current.columns[i+1].primitive)+`]}`))
	}
	id := w.d.lastColumn + 1
	typ := rapid.SampledFrom(oracleTypes).Draw(w.t, "type")
	if w.chance("nested", 20) {
		typ = `{"type":"struct","fields":[` + field(id+1, "in", typ) + `]}`
	} else if w.chance("new type", 10) {
		typ = "timestamp_ns"
	}
	fields = append(fields, field(id, fmt.Sprintf("c%d", id), typ))
	highest := 0
	for _, p := range w.d.schemas {
		highest = max(highest, p.id)
	}
	add := strings.Replace(schemaOf(fields...), `"schema-id":9`, fmt.Sprintf(`"schema-id":%d`, highest+1), 1)
	if w.chance("choose", 80) {
		return []string{add, useLastSchema}
	}
	return []string{add}
}

// sources gives the columns that the default spec and sort order use.
func (w *world) sources() map[int]bool {
	used := map[int]bool{}
	spec, _ := parseSpec(w.d.DefaultSpecJSON())
	for _, f := range spec.fields {
		for _, id := range f.sources {
			used[id] = true
		}
	}
	order, _ := parseOrder(w.d.DefaultSortOrderJSON())
	for _, f := range order.fields {
		for _, id := range f.sources {
			used[id] = true
		}
	}
	s, _ := parseSchema(w.d.CurrentSchemaJSON())
	for i := range s.columns {
		if parent := s.columns[i].parent; used[s.columns[i].id] && parent >= 0 {
			used[s.columns[parent].id] = true
		}
	}
	return used
}

// source draws a column of the current schema, sometimes one that is not there.
func (w *world) source() int {
	s, _ := parseSchema(w.d.CurrentSchemaJSON())
	if len(s.columns) == 0 || w.chance("missing source", 5) {
		return 9999
	}
	return s.columns[w.pick("source", len(s.columns))].id
}

var oracleTransforms = []string{"identity", "bucket[16]", "truncate[3]", "day", "hour", "month", "year", "void"}

func (w *world) spec() []string {
	if w.chance("again", 20) {
		p := w.d.specs[w.pick("old", len(w.d.specs))]
		spec, _ := parseSpec(p.text)
		for _, f := range spec.fields {
			if s, _ := parseSchema(w.d.CurrentSchemaJSON()); s.find(f.sources[0]) < 0 {
				return nil // iceberg-go wants the source of an old spec to be there still
			}
		}
		return []string{`{"action":"add-spec","spec":` + string(p.text) + `}`}
	}
	if w.chance("select", 20) {
		return []string{fmt.Sprintf(`{"action":"set-default-spec","spec-id":%d}`, w.oldSpec())}
	}
	first := w.d.lastPartition + 1
	if w.d.version == 1 {
		first = partitionIDBeforeFirst + 1
	}
	source := w.source()
	transform := rapid.SampledFrom(oracleTransforms).Draw(w.t, "transform")
	if !w.fits(transform, source) {
		return nil // iceberg-go binds any transform to any type
	}
	spec := fmt.Sprintf(`{"action":"add-spec","spec":{"spec-id":0,"fields":[{"name":"p%d","transform":%q,"source-id":%d,"field-id":%d}]}}`, first, transform, source, first)
	if transform == "void" && source == 9999 || w.hasSpec(transform, source) {
		return nil // void of nothing is refused by iceberg-go; equal ones are M7's
	}
	return []string{spec, useLastSpec}
}

// oldSpec draws a spec whose sources the current schema has, so that M9 does not matter, or an unknown one.
func (w *world) oldSpec() int {
	s, _ := parseSchema(w.d.CurrentSchemaJSON())
	p := w.d.specs[w.pick("old", len(w.d.specs))]
	if spec, err := parseSpec(p.text); err != nil || spec.checkFits(&s) != nil {
		return w.d.defaultSpec
	}
	return p.id
}

func (w *world) fits(transform string, source int) bool {
	s, _ := parseSchema(w.d.CurrentSchemaJSON())
	at := s.find(source)
	if at < 0 {
		return true
	}
	parsed, _ := parseTransform(transform)
	return s.columns[at].kind == kindPrimitive && parsed.accepts(s.columns[at].primitive)
}

func (w *world) hasSpec(transform string, source int) bool {
	for _, p := range w.d.specs {
		spec, _ := parseSpec(p.text)
		if len(spec.fields) == 1 && spec.fields[0].transform.String() == transform && spec.fields[0].sources[0] == source {
			return true
		}
	}
	return false
}

func (w *world) order() []string {
	if w.chance("unsorted", 20) {
		return []string{`{"action":"add-sort-order","sort-order":{"order-id":0,"fields":[]}}`, useLastOrder}
	}
	if w.chance("unknown", 10) {
		return []string{`{"action":"set-default-sort-order","sort-order-id":77}`}
	}
	s, _ := parseSchema(w.d.CurrentSchemaJSON())
	at := s.find(w.source())
	if at < 0 || s.columns[at].kind != kindPrimitive {
		return nil
	}
	return []string{fmt.Sprintf(`{"action":"add-sort-order","sort-order":{"order-id":1,"fields":[{"transform":"identity","source-id":%d,"direction":%q,"null-order":"nulls-first"}]}}`,
		s.columns[at].id, rapid.SampledFrom([]string{"asc", "desc"}).Draw(w.t, "direction")), useLastOrder}
}

func (w *world) properties() []string {
	key := rapid.SampledFrom([]string{"a", "b", "write.metadata.previous-versions-max", "ü\"\n"}).Draw(w.t, "key")
	if w.chance("remove", 30) {
		if _, set := w.d.Property(key); set {
			name, _ := json.Marshal(key)
			return []string{`{"action":"remove-properties","removals":[` + string(name) + `]}`}
		}
	}
	pair, _ := json.Marshal(map[string]string{key: fmt.Sprint(w.pick("value", 4))})
	return []string{`{"action":"set-properties","updates":` + string(pair) + `}`}
}

func (w *world) refs() []string {
	if len(w.d.snapshots) == 0 || w.chance("unknown", 10) {
		return []string{tag("t", 4711)}
	}
	id := w.d.snapshots[w.pick("snapshot", len(w.d.snapshots))].id
	switch w.pick("ref", 4) {
	case 0:
		return []string{tag("t", id)}
	case 1:
		return []string{branch("main", id)}
	case 2:
		return []string{fmt.Sprintf(`{"action":"set-snapshot-ref","ref-name":"b2","type":"branch","snapshot-id":%d,"min-snapshots-to-keep":%d,"max-ref-age-ms":1000}`, id, 1+w.pick("keep", 2))}
	}
	name := rapid.SampledFrom([]string{"main", "b", "b2", "t"}).Draw(w.t, "name")
	if w.d.ref(name) == nil {
		return nil // M11
	}
	return []string{`{"action":"remove-snapshot-ref","ref-name":"` + name + `"}`}
}

func (w *world) removeSnapshots() []string {
	var ids []string
	for _, e := range w.d.snapshots {
		if e.id != w.d.current && w.chance("gone", 30) {
			ids = append(ids, fmt.Sprint(e.id))
		}
	}
	if len(ids) == 0 {
		return nil // M12
	}
	return []string{`{"action":"remove-snapshots","snapshot-ids":[` + strings.Join(ids, ",") + `]}`}
}

func (w *world) statistics() []string {
	if len(w.d.snapshots) == 0 {
		return nil
	}
	id := w.d.snapshots[w.pick("snapshot", len(w.d.snapshots))].id
	switch w.pick("statistics", 4) {
	case 0:
		return []string{fmt.Sprintf(`{"action":"set-statistics","snapshot-id":%d,"statistics":{"snapshot-id":%d,"statistics-path":"s%d","file-size-in-bytes":1,"file-footer-size-in-bytes":1,`+
			`"blob-metadata":[{"type":"ndv","snapshot-id":%d,"sequence-number":1,"fields":[1],"properties":{"a":"b"}}]}}`, id, id, w.pick("path", 3), id)}
	case 1:
		return []string{fmt.Sprintf(`{"action":"set-partition-statistics","partition-statistics":{"snapshot-id":%d,"statistics-path":"p%d","file-size-in-bytes":1}}`, id, w.pick("path", 3))}
	case 2:
		return []string{fmt.Sprintf(`{"action":"remove-statistics","snapshot-id":%d}`, id)}
	}
	return []string{fmt.Sprintf(`{"action":"remove-partition-statistics","snapshot-id":%d}`, id)}
}

func (w *world) removals() []string {
	parts, what, ids := w.d.schemas, "schemas", "schema-ids"
	if w.chance("specs", 50) {
		parts, what, ids = w.d.specs, "partition-specs", "spec-ids"
	}
	return []string{fmt.Sprintf(`{"action":"remove-%s","%s":[%d]}`, what, ids, parts[w.pick("part", len(parts))].id)}
}

// TestOracle applies random commits with our engine and with iceberg-go's builder: both must refuse the same ones
// and make the same table of the others.
func TestOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clock := oracleClock()
		version := rapid.IntRange(1, 3).Draw(t, "format version")
		r, err := DecodeCreate([]byte(`{"name":"t","properties":{"format-version":"` + fmt.Sprint(version) + `"},"schema":{"type":"struct","fields":[` +
			strings.Join(append(fixtureXYZ, field(4, "day", "timestamp"), field(5, "s", `{"type":"struct","fields":[`+field(6, "in", "string")+`]}`)), ",") + `]}}`))
		if err != nil {
			t.Fatal(err)
		}
		d, err := Create(r, CreateStamp{Now: clock, UUID: tableUUID, Location: "s3://b/t0"})
		if err != nil {
			t.Fatal(err)
		}
		w := &world{t: t, d: d, at: clock.UnixMilli(), next: 100}
		for i := range rapid.IntRange(8, 30).Draw(t, "commits") {
			s := Stamp{Now: clock, MetadataLocation: fmt.Sprintf("m%d", i)}
			base, updates := w.d, w.update()
			if w.chance("two", 40) { // drawn for the table that the first ones make, committed together
				if r := request(t, updates...); len(updates) > 0 {
					if next, _, err := Apply(base, r, s); err == nil {
						w.d = next
						second := w.update()
						if strings.Contains(strings.Join(second, ""), `"remove-snapshot-ref","ref-name":"main"`) {
							second = nil // iceberg-go logs what was brought to main and left it at once, Java does not
						}
						updates = append(updates, second...)
					}
				}
			}
			if len(updates) > 0 {
				w.d = againstOracle(t, base, updates, s)
			}
		}
	})
	for _, action := range []string{
		"add-snapshot", "add-schema", "add-spec", "add-sort-order", "set-properties", "set-snapshot-ref", "remove-snapshots",
		"upgrade-format-version", "set-location",
	} {
		if oracleTaken[action] == 0 {
			t.Errorf("no %s was ever taken: the test has lost its grip", action)
		}
	}
}

// oracleTaken counts the commits that both engines took, by their first action.
var oracleTaken = map[string]int{}

func againstOracle(t *rapid.T, base *Document, updates []string, s Stamp) *Document {
	body := `{"requirements":[],"updates":[` + strings.Join(updates, ",") + `]}`
	theirs, theirErr := commitIcebergGo(base.JSON(), []byte(body), s.MetadataLocation)
	r, err := DecodeRequest([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	ours, changed, ourErr := Apply(base, r, s)
	if (ourErr == nil) != (theirErr == nil) {
		t.Fatalf("%s\nours:   %v\ntheirs: %v\nbase: %s", body, ourErr, theirErr, base.JSON())
	}
	if ourErr != nil {
		return base
	}
	oracleTaken[r.Updates[0].Action]++
	checkIndex(t, ours)
	have, want := normalised(t, ours.JSON()), normalised(t, theirs)
	if !changed { // M12: they write a new version of the same table
		delete(have, keyMetadataLog)
		delete(want, keyMetadataLog)
	}
	if !reflect.DeepEqual(have, want) {
		a, _ := json.MarshalIndent(have, "", " ")
		b, _ := json.MarshalIndent(want, "", " ")
		t.Fatalf("%s\nours:   %s\ntheirs: %s\nbase: %s", body, a, b, base.JSON())
	}
	if _, err := table.ParseMetadataBytes(ours.JSON()); err != nil {
		t.Fatalf("iceberg-go cannot read what we wrote: %v\n%s", err, ours.JSON())
	}
	return ours
}

// normalised reads a document and takes away what may differ without meaning: the clock, empty and absent lists,
// the spelling of defaults (M13, M21).
func normalised(t *rapid.T, text []byte) map[string]any {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var v map[string]any
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	delete(v, keyLastUpdated)
	for name, value := range v {
		if value == nil || reflect.DeepEqual(value, []any{}) || reflect.DeepEqual(value, map[string]any{}) || name == keyCurrentSnapshot && fmt.Sprint(value) == "-1" {
			delete(v, name)
		}
	}
	for _, log := range []string{keySnapshotLog, keyMetadataLog} {
		entries, _ := v[log].([]any)
		for _, e := range entries {
			delete(e.(map[string]any), "timestamp-ms")
		}
	}
	lists := append(asList(v[keySchemas]), asList(v[keySnapshots])...)
	if s, ok := v[keySchema]; ok {
		lists = append(lists, s)
	}
	for _, e := range lists {
		o := e.(map[string]any)
		if reflect.DeepEqual(o["identifier-field-ids"], []any{}) {
			delete(o, "identifier-field-ids")
		}
		if fmt.Sprint(o["sequence-number"]) == "0" {
			delete(o, "sequence-number")
		}
	}
	return v
}

func asList(v any) []any {
	list, _ := v.([]any)
	return list
}
