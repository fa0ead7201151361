package commit

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/view"
	"pgregory.net/rapid"
)

// viewWorld draws updates that fit, or just miss, a view.
type viewWorld struct {
	world
	v *View
	n int // makes queries different
}

var viewDialects = []string{"spark", "trino", "TRINO", "duckdb"}

// query draws the representations of a new version.
func (w *viewWorld) query() []string {
	var pairs []string
	for _, dialect := range viewDialects {
		if w.chance("has "+dialect, 70) && (dialect != "TRINO" || w.chance("twice", 5)) {
			w.n++
			pairs = append(pairs, dialect, fmt.Sprintf("select %d", w.n))
		}
	}
	return pairs
}

// wantedID draws the id that a client asks for: mostly the next one, as it sees it.
func (w *viewWorld) wantedID() int {
	highest := 0
	for _, version := range w.v.versions {
		highest = max(highest, version.id)
	}
	return max(1, highest+1-w.pick("behind", 3)+w.pick("ahead", 10)/8)
}

func (w *viewWorld) anyVersion() int {
	if w.chance("unknown", 5) {
		return 9999
	}
	return w.v.versions[w.pick("version", len(w.v.versions))].id
}

func (w *viewWorld) schema() string {
	if w.chance("again", 40) {
		return `{"action":"add-schema","schema":` + string(w.v.schemas[w.pick("schema", len(w.v.schemas))].text) + `}`
	}
	return schemaOf(field(1, fmt.Sprintf("c%d", w.pick("column", 20)), "long"))
}

func (w *viewWorld) property() string {
	name, value := "a", fmt.Sprint(w.pick("value", 3))
	switch w.pick("property", 6) {
	case 0:
		name, value = "replace.drop-dialect.allowed", fmt.Sprint(w.chance("allowed", 50))
	case 1, 2:
		name, value = "version.history.num-entries", fmt.Sprint(w.pick("entries", 6))
	case 3:
		return `{"action":"remove-properties","removals":["replace.drop-dialect.allowed","b"]}`
	}
	return fmt.Sprintf(`{"action":"set-properties","updates":{%q:%q}}`, name, value)
}

// update draws one group of updates.
func (w *viewWorld) update() []string {
	switch w.pick("kind", 8) {
	case 0, 1, 2:
		return []string{addVersion(w.wantedID(), 0, w.query()...), useVersion(-1)}
	case 3:
		return []string{w.schema(), addVersion(w.wantedID(), -1, w.query()...), useVersion(-1)}
	case 4:
		return []string{addVersion(w.wantedID(), w.v.schemas[0].id+w.pick("unknown schema", 20)/19, w.query()...)}
	case 5:
		return []string{useVersion(w.anyVersion())}
	case 6:
		return []string{w.property()}
	}
	return []string{fmt.Sprintf(`{"action":"set-location","location":"s3://b/v%d"}`, w.pick("place", 3)), w.schema()}
}

// startView draws the view that a test begins with.
func startView(t *rapid.T) *View {
	r, err := DecodeCreateView(viewBody(viewVersionOf(1, 0, "trino", "select 0")))
	if err != nil {
		t.Fatal(err)
	}
	v, err := CreateView(r, CreateStamp{Now: now, UUID: viewUUID, Location: "s3://b/v0"})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestViewOracle applies random commits with our engine and with iceberg-go's builder: both must refuse the same ones
// and make the same view of the others. It stays clear of what iceberg-go does otherwise: where an equal version is
// in the base it adds a second one of the same id, -1 is not the schema that was there already, and a history of one
// entry loses a newer version that is not current.
func TestViewOracle(t *testing.T) {
	taken := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		w := &viewWorld{world: world{t: t}, v: startView(t)}
		for range rapid.IntRange(5, 25).Draw(t, "commits") {
			updates := w.update()
			if w.chance("more", 30) {
				updates = append(updates, w.property())
			}
			body := `{"updates":[` + strings.Join(updates, ",") + `]}`
			r, decodeErr := DecodeViewRequest([]byte(body))
			theirs, theirErr := commitViewIcebergGo(w.v.JSON(), []byte(body))
			var ours *View
			ourErr := decodeErr
			if decodeErr == nil {
				ours, _, ourErr = ApplyView(w.v, r, Stamp{Now: now})
			}
			if ourErr == nil && theirErr != nil && strings.Contains(body, `"schema-id":-1`) && strings.Contains(theirErr.Error(), "no schema has been added") {
				continue // the schema was there already
			}
			if (ourErr == nil) != (theirErr == nil) {
				t.Fatalf("%s\nours:   %v\ntheirs: %v\nbase: %s", body, ourErr, theirErr, w.v.JSON())
			}
			if ourErr != nil {
				taken["refused"]++
				continue
			}
			checkView(t, ours)
			have, want := normalisedView(t, ours.JSON()), normalisedView(t, theirs)
			if highest := slices.Max(versionIDs(ours)); len(ours.versions) == 2 && len(asList(want["versions"])) == 1 && highest != ours.current {
				continue // the history of one entry
			}
			if !reflect.DeepEqual(have, want) {
				a, _ := json.MarshalIndent(have, "", " ")
				b, _ := json.MarshalIndent(want, "", " ")
				t.Fatalf("%s\nours:   %s\ntheirs: %s\nbase: %s", body, a, b, w.v.JSON())
			}
			if _, err := view.ParseMetadataBytes(ours.JSON()); err != nil {
				t.Fatalf("iceberg-go cannot read what we wrote: %v\n%s", err, ours.JSON())
			}
			taken[r.Updates[0].Action]++
			w.v = ours
		}
	})
	for _, kind := range []string{"refused", "add-view-version", "set-current-view-version", "set-properties", "set-location", "add-schema"} {
		if taken[kind] == 0 {
			t.Errorf("no %s was ever seen: the test has lost its grip", kind)
		}
	}
}

// commitViewIcebergGo applies a commit with iceberg-go.
func commitViewIcebergGo(base, body []byte) ([]byte, error) {
	metadata, err := view.ParseMetadataBytes(base)
	if err != nil {
		return nil, fmt.Errorf("base: %w", err)
	}
	b, err := view.MetadataBuilderFromBase(metadata)
	if err != nil {
		return nil, err
	}
	var request struct {
		Updates []struct {
			Action   string            `json:"action"`
			Version  *view.Version     `json:"view-version"`
			Schema   *iceberg.Schema   `json:"schema"`
			ID       int64             `json:"view-version-id"`
			Location string            `json:"location"`
			Set      map[string]string `json:"updates"`
			Removed  []string          `json:"removals"`
		} `json:"updates"`
	}
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, err
	}
	for _, u := range request.Updates {
		switch u.Action {
		case "add-view-version":
			b.AddVersion(u.Version)
		case "set-current-view-version":
			b.SetCurrentVersionID(u.ID)
		case "add-schema":
			b.AddSchema(u.Schema)
		case "set-location":
			b.SetLoc(u.Location)
		case "set-properties":
			b.SetProperties(u.Set)
		case "remove-properties":
			b.RemoveProperties(u.Removed)
		default:
			return nil, fmt.Errorf("unknown action %s", u.Action)
		}
	}
	result, err := b.Build()
	if err != nil {
		return nil, err
	}
	return json.Marshal(result.Metadata)
}

// normalisedView reads a document and takes away what may differ without meaning: the clock, the order of versions,
// empty and absent members.
func normalisedView(t *rapid.T, text []byte) map[string]any {
	var v map[string]any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	for _, e := range asList(v[keyVersionLog]) {
		delete(e.(map[string]any), "timestamp-ms")
	}
	slices.SortFunc(asList(v[keyVersions]), func(a, b any) int {
		return int(a.(map[string]any)["version-id"].(float64) - b.(map[string]any)["version-id"].(float64))
	})
	for _, e := range asList(v[keySchemas]) {
		if o := e.(map[string]any); len(asList(o["identifier-field-ids"])) == 0 {
			delete(o, "identifier-field-ids")
		}
	}
	if properties, _ := v[keyProperties].(map[string]any); len(properties) == 0 {
		delete(v, keyProperties)
	}
	return v
}

// viewLife follows one view through its commits.
type viewLife struct {
	definitions map[int]string // what each id stood for, dropped versions too
	schemas     map[int]string
	highest     int
	log         []string // every entry that there ever was
}

func newLife(t *rapid.T, v *View) *viewLife {
	l := &viewLife{definitions: map[int]string{}, schemas: map[int]string{}}
	l.see(t, v, v)
	return l
}

// see holds the next version of the view against all that came before.
func (l *viewLife) see(t *rapid.T, before, v *View) {
	if v.version(v.current) == nil || v.version(v.current).schema < 0 {
		t.Fatalf("the current version %d is not kept: %s", v.current, v.JSON())
	}
	highest := l.highest
	for _, version := range v.versions {
		text := version.definition(version.schema)
		was, known := l.definitions[version.id]
		if known && (was != text || before.version(version.id) == nil && version.id <= highest) {
			t.Fatalf("id %d is used again: %s, was %s", version.id, text, was)
		}
		if !known && version.id <= highest {
			t.Fatalf("the new id %d is not above %d", version.id, highest)
		}
		l.definitions[version.id] = text
		l.highest = max(l.highest, version.id)
	}
	for _, s := range v.schemas {
		if was, known := l.schemas[s.id]; known && was != string(s.text) {
			t.Fatalf("schema %d changed: %s, was %s", s.id, s.text, was)
		}
		l.schemas[s.id] = string(s.text)
	}
	if len(v.schemas) != len(l.schemas) {
		t.Fatalf("a schema is gone: %s", v.JSON())
	}
	l.seeLog(t, before, v)
}

// seeLog wants the log to be the end of the full history, which grows by one entry when the current version changes.
func (l *viewLife) seeLog(t *rapid.T, before, v *View) {
	texts := make([]string, len(v.log))
	for i, e := range v.log {
		texts[i] = string(e.text)
		if v.version(e.version) == nil {
			t.Fatalf("the log has the dropped version %d: %s", e.version, v.JSON())
		}
	}
	if len(texts) == 0 || v.log[len(v.log)-1].version != v.current {
		t.Fatalf("the log does not end with the current version %d: %s", v.current, texts)
	}
	if len(l.log) == 0 || before.current != v.current {
		l.log = append(l.log, texts[len(texts)-1])
	}
	if len(texts) > len(l.log) || !slices.Equal(texts, l.log[len(l.log)-len(texts):]) {
		t.Fatalf("the log %v is not the end of %v", texts, l.log)
	}
}

// TestViewHistory drives a view through many commits, several groups of updates each: its history stays linear, the
// current version is always kept, ids are never given twice, and no more versions stay than were asked for.
func TestViewHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &viewWorld{world: world{t: t}, v: startView(t)}
		life := newLife(t, w.v)
		for i := range rapid.IntRange(5, 30).Draw(t, "commits") {
			var updates []string
			for range rapid.IntRange(1, 3).Draw(t, "groups") {
				updates = append(updates, w.update()...)
			}
			r, err := DecodeViewRequest([]byte(`{"updates":[` + strings.Join(updates, ",") + `]}`))
			if err != nil {
				continue
			}
			next, changed, err := ApplyView(w.v, r, Stamp{Now: now.Add(time.Duration(i) * time.Second)})
			if err != nil {
				checkKind(t, err)
				continue
			}
			if !changed {
				if next != w.v {
					t.Fatalf("no change, but another view")
				}
				continue
			}
			checkView(t, next)
			life.see(t, w.v, next)
			if kept := keptMax(next, strings.Count(strings.Join(updates, ""), "add-view-version")); len(next.versions) > kept {
				t.Fatalf("%d versions stay, want %d at most: %s", len(next.versions), kept, next.JSON())
			}
			w.v = next
			if again, changed, err := ApplyView(next, ViewRequest{}, Stamp{Now: now}); changed || err != nil || again != next {
				t.Fatalf("nothing is a change: %v", err)
			}
		}
	})
}

// keptMax is the most versions that a commit may leave which adds so many.
func keptMax(v *View, added int) int {
	size := historySizeDefault
	if text, set := v.Property(historySizeProperty); set {
		_, _ = fmt.Sscan(text, &size)
	}
	return max(size, added+1, 2)
}
