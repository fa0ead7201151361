package rest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"catalogd/authz"
	"catalogd/catalog/catalogtest"
	"catalogd/internal/fault"
)

// viewProperty is a replace as clients of old send it: without requirements.
const viewProperty = `{"updates":[{"action":"set-properties","updates":{"k":"v"}}]}`

// viewVersion is a version of a view; more are further members of it, with their comma.
func viewVersion(sql, more string) string {
	return `{"version-id":1,"timestamp-ms":1573518431292,"schema-id":0,"summary":{"engine-name":"Spark"},"default-namespace":["a"],` +
		`"representations":[{"type":"sql","sql":` + quoted(sql) + `,"dialect":"spark"}]` + more + `}`
}

// viewBodyWith asks for a view with one column; more are further members of the request.
func viewBodyWith(name, version, more string) string {
	return `{"name":` + quoted(name) + `,"schema":{"type":"struct","schema-id":0,"fields":[` +
		`{"id":1,"name":"id","required":false,"type":"long"}]},"view-version":` + version + `,"properties":{"comment":"a=<&>"}` + more + `}`
}

func viewBody(name string) string { return viewBodyWith(name, viewVersion("SELECT 1 AS id", ""), "") }

// replaceSQL asks for another query.
func replaceSQL(sql string) string {
	return `{"updates":[{"action":"add-view-version","view-version":` + viewVersion(sql, "") + `},` +
		`{"action":"set-current-view-version","view-version-id":-1}]}`
}

func (d *door) mustCreateView(t *testing.T, namespace, name string) answer {
	t.Helper()
	a := d.send(t, "POST", namespacesOfLake+"/"+segment(namespace)+"/views", viewBody(name))
	if a.status != 200 {
		t.Fatalf("create view %s.%q: %d %s", namespace, name, a.status, a.body)
	}
	return a
}

// member walks an answer's objects and lists.
func member(t *testing.T, a answer, path ...any) any {
	t.Helper()
	var v any = a.json()
	for _, step := range path {
		switch at := v.(type) {
		case map[string]any:
			v = at[step.(string)]
		case []any:
			v = at[step.(int)]
		default:
			t.Fatalf("%v is not in the answer: %s", path, a.body)
		}
	}
	return v
}

const viewsOfA = namespacesOfLake + "/a/views"

func renameBody(from, toNamespace, to string) string {
	return fmt.Sprintf(`{"source":{"namespace":["a"],"name":%q},"destination":{"namespace":[%q],"name":%q}}`, from, toNamespace, to)
}

func TestViews_LifeOfAView(t *testing.T) {
	l := newLake(t)
	d := l.door
	d.mustCreateNamespace(t, "a")
	d.mustCreateNamespace(t, "b")
	created := d.mustCreateView(t, "a", "v")
	location, _ := member(t, created, "metadata", "location").(string)
	uuid, _ := member(t, created, "metadata", "view-uuid").(string)
	pointer, _ := created.json()["metadata-location"].(string)
	if !strings.HasSuffix(location, "/"+uuid) || !strings.HasPrefix(pointer, location+"/metadata/00000-") || len(uuid) != 36 {
		t.Errorf("location %q, uuid %q, metadata at %q", location, uuid, pointer)
	}
	for _, want := range []string{`,"config":{}}`, `"current-version-id":1`, `"schema-id":0`, `"comment":"a=<&>"`} {
		if !strings.Contains(created.body, want) {
			t.Errorf("%s is not in %s", want, created.body)
		}
	}
	loaded := d.expect(t, "GET", viewsOfA+"/v?referenced-by=a%1Fouter,a%1Fother", "", 200, "")
	if loaded.body != created.body || loaded.header.Get("ETag") != "" {
		t.Errorf("loaded %s\ncreated %s", loaded.body, created.body)
	}
	d.expect(t, "HEAD", viewsOfA+"/v", "", 204, "")
	d.mustCreateNamespace(t, "long")
	d.expect(t, "POST", namespacesOfLake+"/long/views", viewBodyWith("v", viewVersion(strings.Repeat("long ", 4000), ""), ""), 200, "")
	long := d.send(t, "GET", namespacesOfLake+"/long/views/v", "", "Accept-Encoding", "gzip")
	if long.header.Get("Content-Encoding") != "gzip" || !strings.HasSuffix(long.unpacked(t).body, `,"config":{}}`) {
		t.Errorf("a long view was not answered packed: %v", long.header)
	}

	replaced := d.expect(t, "POST", viewsOfA+"/v", replaceSQL("SELECT 2 AS id"), 200, "")
	second, _ := replaced.json()["metadata-location"].(string)
	if quoted(member(t, replaced, "metadata", "current-version-id")) != "2" || !strings.HasPrefix(second, location+"/metadata/00001-") {
		t.Errorf("replaced: %s", replaced.body)
	}
	same := d.expect(t, "POST", viewsOfA+"/v", `{"requirements":null,"updates":[]}`, 200, "")
	if same.body != replaced.body {
		t.Errorf("a replace of nothing moved the view: %s", same.body)
	}
	d.expect(t, "POST", viewsOfA+"/v", `{"requirements":[{"type":"assert-view-uuid","uuid":"`+strings.ToUpper(uuid)+`"}],`+
		`"updates":[{"action":"set-properties","updates":{"k":"v"}}]}`, 200, "")
	a := d.expect(t, "POST", viewsOfA+"/v", `{"requirements":[{"type":"assert-view-uuid","uuid":"00000000-0000-0000-0000-000000000000"}],`+
		`"updates":[]}`, 409, "CommitFailedException")
	if !strings.Contains(a.body, "Requirement failed: view UUID does not match") {
		t.Errorf("text %s", a.body)
	}

	d.expect(t, "POST", "/v1/lake/views/rename", renameBody("v", "b", "w"), 204, "")
	d.expect(t, "GET", viewsOfA+"/v", "", 404, "NoSuchViewException")
	moved := d.expect(t, "GET", namespacesOfLake+"/b/views/w", "", 200, "")
	if member(t, moved, "metadata", "view-uuid") != uuid || member(t, moved, "metadata", "location") != location {
		t.Errorf("renamed: %s", moved.body)
	}
	_, files := l.traces()
	d.expect(t, "DELETE", namespacesOfLake+"/b", "", 409, "NamespaceNotEmptyException")
	d.expect(t, "DELETE", namespacesOfLake+"/b/views/w", "", 204, "")
	d.expect(t, "DELETE", namespacesOfLake+"/b/views/w", "", 404, "NoSuchViewException")
	d.expect(t, "DELETE", namespacesOfLake+"/b", "", 204, "")
	if _, now := l.traces(); now != files || files != 4 {
		t.Errorf("%d files before the drop, %d after it; four were written", files, now)
	}
}

// Names are unique over both kinds, in the reference server's words.
func TestViews_NameClashes(t *testing.T) {
	l := newLake(t)
	d := l.door
	d.mustCreateNamespace(t, "a")
	d.mustCreateTable(t, "a", "t")
	d.mustCreateView(t, "a", "v")
	d.mustCreateView(t, "a", "w")
	events, files := l.traces()
	staged := strings.Replace(createBody("v"), "{", `{"stage-create":true,`, 1)
	for _, c := range []struct{ target, body, text string }{
		{viewsOfA, viewBody("v"), "View already exists: a.v"},
		{viewsOfA, viewBody("t"), "Table with same name already exists: a.t"},
		{namespacesOfLake + "/a/tables", createBody("v"), "View with same name already exists: a.v"},
		{namespacesOfLake + "/a/tables", staged, "View with same name already exists: a.v"},
		{namespacesOfLake + "/a/tables/v", `{"requirements":[{"type":"assert-create"}],"updates":[]}`, "View with same name already exists: a.v"},
		{"/v1/lake/views/rename", renameBody("v", "a", "w"), "Cannot rename a.v to a.w. View already exists"},
		{"/v1/lake/views/rename", renameBody("v", "a", "t"), "Cannot rename a.v to a.t. Table already exists"},
		{"/v1/lake/tables/rename", renameBody("t", "a", "v"), "Cannot rename a.t to a.v. View already exists"},
	} {
		a := d.expect(t, "POST", c.target, c.body, 409, "AlreadyExistsException")
		if text, _ := member(t, a, "error", "message").(string); text != c.text {
			t.Errorf("%s: %q, want %q", c.target, text, c.text)
		}
	}
	if eventsNow, filesNow := l.traces(); eventsNow != events || filesNow != files {
		t.Errorf("refused calls left %d events and %d files", eventsNow-events, filesNow-files)
	}
	d.expect(t, "GET", viewsOfA+"/t", "", 404, "NoSuchViewException")
	d.expect(t, "POST", viewsOfA+"/t", viewProperty, 404, "NoSuchViewException")
	d.expect(t, "DELETE", viewsOfA+"/t", "", 404, "NoSuchViewException")
	d.expect(t, "GET", namespacesOfLake+"/a/tables/v", "", 404, "NoSuchTableException")
	d.expect(t, "POST", namespacesOfLake+"/a/tables/v", setProperty, 404, "NoSuchTableException")
	d.expect(t, "DELETE", namespacesOfLake+"/a/tables/v", "", 404, "NoSuchTableException")
	d.expect(t, "POST", "/v1/lake/views/rename", renameBody("v", "a", "v"), 204, "") // its own name is no change
	for path, want := range map[string]string{"tables": `["t"]`, "views": `["v","w"]`} {
		if got := d.names(t, "/a/"+path); quoted(got) != want {
			t.Errorf("%s are %q", path, got)
		}
	}
}

// names gives a list's names.
func (d *door) names(t *testing.T, path string) []string {
	t.Helper()
	names := []string{}
	list, _ := d.expect(t, "GET", namespacesOfLake+path, "", 200, "").json()["identifiers"].([]any)
	for _, id := range list {
		names = append(names, id.(map[string]any)["name"].(string))
	}
	return names
}

// A view's place is checked as a table's is, on every way that can set it.
func TestTrap34_LocationsOfViews(t *testing.T) {
	l := newLake(t)
	d := l.door
	d.mustCreateNamespace(t, "a")
	table := member(t, d.mustCreateTable(t, "a", "t"), "metadata", "location").(string)
	base := table[:strings.LastIndex(table, "/")]
	view := member(t, d.mustCreateView(t, "a", "v"), "metadata", "location").(string)
	events, files := l.traces()
	set := func(name, value string) string {
		return `{"updates":[{"action":"set-properties","updates":{` + quoted(name) + `:` + quoted(value) + `}}]}`
	}
	move := func(to string) string { return `{"updates":[{"action":"set-location","location":` + quoted(to) + `}]}` }
	for _, location := range []string{"file:///elsewhere/v", base, base + "/../x", table, table + "/in", view, view + "/metadata", base + "x/v", "s3://b/v"} {
		d.expect(t, "POST", viewsOfA, viewBodyWith("new", viewVersion("SELECT 1", ""), `,"location":`+quoted(location)), 400, "BadRequestException")
		if location != view && location != view+"/metadata" { // its own place, and below it
			d.expect(t, "POST", viewsOfA+"/v", move(location), 400, "BadRequestException")
		}
	}
	for _, body := range []string{
		set("write.metadata.path", table+"/metadata"), set("write.metadata.path", view+"x"), set("write.data.path", base),
		set("s3.endpoint", "http://evil"), set("io-impl", "evil"), set("header.x", "y"), set("token", "t"),
	} {
		d.expect(t, "POST", viewsOfA+"/v", body, 400, "BadRequestException")
	}
	steered := strings.Replace(viewBody("new"), `"comment"`, `"s3.endpoint"`, 1)
	d.expect(t, "POST", viewsOfA, steered, 400, "BadRequestException")
	if eventsNow, filesNow := l.traces(); eventsNow != events || filesNow != files {
		t.Errorf("refused calls left %d events and %d files", eventsNow-events, filesNow-files)
	}

	chosen := viewBodyWith("w", viewVersion("SELECT 1", ""), `,"location":"`+base+`/own/"`)
	a := d.expect(t, "POST", viewsOfA, strings.Replace(chosen, `"comment":"a=<&>"`, `"write.metadata.path":"`+base+`/own/meta"`, 1), 200, "")
	if at, _ := a.json()["metadata-location"].(string); member(t, a, "metadata", "location") != base+"/own" || !strings.HasPrefix(at, base+"/own/meta/00000-") {
		t.Errorf("answer %s", a.body)
	}
	a = d.expect(t, "POST", viewsOfA+"/v", move(base+"/moved/v"), 200, "")
	if at, _ := a.json()["metadata-location"].(string); !strings.HasPrefix(at, base+"/moved/v/metadata/00001-") {
		t.Errorf("answer %s", a.body)
	}
	d.expect(t, "POST", viewsOfA, viewBodyWith("x", viewVersion("SELECT 1", ""), `,"location":"`+base+`/moved"`), 400, "BadRequestException")
	d.expect(t, "POST", namespacesOfLake+"/a/tables", strings.Replace(createBody("y"), "{", `{"location":"`+base+`/moved/v",`, 1), 400, "BadRequestException")
}

func TestTrap40_BodiesOfViews(t *testing.T) {
	d := newLake(t).door
	d.mustCreateNamespace(t, "a")
	d.mustCreateView(t, "a", "v")
	a := d.expect(t, "GET", viewsOfA+"/v", "", 200, "")
	if strings.Contains(a.body, "null") || a.json()["metadata-location"] == "" {
		t.Errorf("null or no location in %s", a.body)
	}
	for _, body := range []string{
		``, `{`, `[]`, `null`, `{}`, `{"name":"w"}`, viewBodyWith("", viewVersion("SELECT 1", ""), ""), viewBodyWith("..", viewVersion("SELECT 1", ""), ""),
		strings.Replace(viewBody("w"), `"default-namespace":["a"],`, "", 1), strings.Replace(viewBody("w"), `"struct"`, `"list"`, 1),
	} {
		d.expect(t, "POST", viewsOfA, body, 400, "BadRequestException")
	}
	for _, body := range []string{``, `{`, `[]`, `{"updates":[{"action":"make-coffee"}]}`, `{"requirements":[{"type":"assert-nonsense"}],"updates":[]}`} {
		d.expect(t, "POST", viewsOfA+"/v", body, 400, "BadRequestException")
	}
	twice := viewVersion("SELECT 1", "")
	twice = strings.Replace(twice, `"dialect":"spark"}`, `"dialect":"spark"},{"type":"sql","sql":"SELECT 2","dialect":"SPARK"}`, 1)
	for target, body := range map[string]string{viewsOfA: viewBodyWith("w", twice, ""), viewsOfA + "/v": `{"updates":[{"action":"add-view-version","view-version":` + twice + `}]}`} {
		a := d.expect(t, "POST", target, body, 400, "IllegalArgumentException")
		if !strings.Contains(strings.ToLower(a.body), "invalid view version: cannot add multiple queries for dialect spark") {
			t.Errorf("%s: %s", target, a.body)
		}
	}
	d.expect(t, "POST", viewsOfA+"/v", replaceSQL("日本語 AS 'ä'"), 200, "")
	if a := d.expect(t, "GET", viewsOfA+"/v", "", 200, ""); !strings.Contains(a.body, "日本語 AS 'ä'") {
		t.Errorf("the query is %s", a.body)
	}
}

// Replaces at the same time are tried again on the server: each that was acknowledged is in the history once.
func TestViews_ConcurrentReplacesAllLand(t *testing.T) {
	const writers = 16
	d := newLake(t).door
	d.mustCreateNamespace(t, "a")
	d.mustCreateView(t, "a", "v")
	d.expect(t, "POST", viewsOfA+"/v", `{"updates":[{"action":"set-properties","updates":{"version.history.num-entries":"100"}}]}`, 200, "")
	statuses := make([]int, writers)
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			statuses[i] = d.send(t, "POST", viewsOfA+"/v", replaceSQL(fmt.Sprintf("SELECT 'writer %d'", i))).status
		})
	}
	all.Wait()
	a := d.expect(t, "GET", viewsOfA+"/v", "", 200, "")
	for i, status := range statuses {
		if n := strings.Count(a.body, fmt.Sprintf("SELECT 'writer %d'", i)); status != 200 || n != 1 {
			t.Errorf("writer %d: %d, there %d times", i, status, n)
		}
	}
	versions, _ := member(t, a, "metadata", "versions").([]any)
	var ids []string
	for i := range versions {
		ids = append(ids, quoted(member(t, a, "metadata", "versions", i, "version-id")))
	}
	slices.Sort(ids)
	if len(ids) != writers+1 || len(slices.Compact(ids)) != writers+1 {
		t.Errorf("version ids %q", ids)
	}
}

// The answers to a replace and to a create are lost. Whether they had landed or not, the client gets 200 and it is there
// once; what was refused takes its file with it.
func TestTrap02_LostAnswersOfViewsAreSettled(t *testing.T) {
	for _, landed := range []bool{true, false} {
		l := newLake(t)
		l.mustCreateNamespace(t, "a")
		l.store.Inject(catalogtest.LoseAnswer("CommitPointers", 1, landed))
		l.expect(t, "POST", viewsOfA, viewBody("v"), 200, "")
		l.store.Inject(catalogtest.LoseAnswer("CommitPointers", 1, landed))
		l.expect(t, "POST", viewsOfA+"/v", viewProperty, 200, "")
		l.store.Inject(nil)
		if a := l.expect(t, "GET", viewsOfA+"/v", "", 200, ""); !strings.Contains(a.body, `"k":"v"`) {
			t.Errorf("landed %v: the replace is not there: %s", landed, a.body)
		}
		counts := map[string]int{}
		for _, e := range l.store.Events() {
			counts[e.Operation]++
		}
		if _, files := l.traces(); counts["create-view"] != 1 || counts["replace-view"] != 1 || files != 2 {
			t.Errorf("landed %v: events %v, %d files", landed, counts, files)
		}
		events, files := l.traces()
		l.store.Inject(catalogtest.FailMethod("CommitPointers", fault.New(fault.NoSuchView, "View does not exist: a.v")))
		l.expect(t, "POST", viewsOfA+"/v", replaceSQL("SELECT 7"), 404, "NoSuchViewException")
		if eventsNow, filesNow := l.traces(); eventsNow != events || filesNow != files {
			t.Errorf("a refused replace left %d events and %d files", eventsNow-events, filesNow-files)
		}
	}
}

func TestField_C052_ListsAreFilteredBeforeTheyArePaged(t *testing.T) {
	const tables, visible = 300, 5
	l := newLake(t)
	d := l.door
	d.mustCreateNamespace(t, "a")
	for i := range tables {
		d.mustCreateTable(t, "a", fmt.Sprintf("t%03d", i))
	}
	var want []string
	for i := tables - visible; i < tables; i++ {
		want = append(want, fmt.Sprintf("t%03d", i))
		if i == tables-visible {
			l.letOnlyOn(t, "few", authz.TableReadProperties, authz.Table, want[0])
		} else {
			l.grantMore(t, "few", authz.TableList, want[len(want)-1])
		}
	}
	for _, size := range []int{30, visible, 2, 1} {
		var seen []string
		pages := 0
		for token, more := "", true; more; pages++ {
			a := d.as("few").expect(t, "GET", fmt.Sprintf("%s/a/tables?pageToken=%s&pageSize=%d", namespacesOfLake, token, size), "", 200, "")
			list, _ := a.json()["identifiers"].([]any)
			for _, id := range list {
				seen = append(seen, id.(map[string]any)["name"].(string))
			}
			token, more = a.json()["next-page-token"].(string)
		}
		if !slices.Equal(seen, want) || pages != (visible+size-1)/size {
			t.Errorf("by %d: %q in %d pages", size, seen, pages)
		}
	}
	if names := d.as("few").names(t, "/a/views"); len(names) != 0 {
		t.Errorf("views %q", names)
	}
}

func TestViews_ListsArePaged(t *testing.T) {
	d := newLake(t).door
	d.mustCreateNamespace(t, "a")
	d.mustCreateTable(t, "a", "v01x")
	for i := range 7 {
		d.mustCreateView(t, "a", fmt.Sprintf("v%02d", i))
	}
	if names := d.names(t, "/a/views"); len(names) != 7 {
		t.Errorf("without paging: %q", names)
	}
	var seen []string
	for token, more := "", true; more; {
		a := d.expect(t, "GET", fmt.Sprintf("%s?pageToken=%s&pageSize=3", viewsOfA, token), "", 200, "")
		list, _ := a.json()["identifiers"].([]any)
		for _, id := range list {
			seen = append(seen, id.(map[string]any)["name"].(string))
		}
		token, more = a.json()["next-page-token"].(string)
	}
	if len(seen) != 7 || !slices.IsSorted(seen) {
		t.Errorf("by three: %q", seen)
	}
	d.expect(t, "GET", namespacesOfLake+"/none/views", "", 404, "NoSuchNamespaceException")
	d.expect(t, "GET", viewsOfA+"?pageToken=x", "", 400, "BadRequestException")
}
