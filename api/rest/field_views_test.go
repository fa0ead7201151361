package rest

import (
	"fmt"
	"strings"
	"testing"

	"catalogd/authz"
)

func TestField_C058_LogHasChangesOfTheCurrentVersion(t *testing.T) {
	d := newLake(t).door
	d.mustCreateNamespace(t, "a")
	d.mustCreateView(t, "a", "v")
	two := `{"updates":[{"action":"set-properties","updates":{"version.history.num-entries":"10"}},` +
		`{"action":"add-view-version","view-version":` + strings.Replace(viewVersion("SELECT 2", ""), `"version-id":1`, `"version-id":2`, 1) + `},` +
		`{"action":"add-view-version","view-version":` + strings.Replace(viewVersion("SELECT 3", ""), `"version-id":1`, `"version-id":3`, 1) + `},` +
		`{"action":"set-current-view-version","view-version-id":3}]}`
	a := d.expect(t, "POST", viewsOfA+"/v", two, 200, "")
	log, _ := member(t, a, "metadata", "version-log").([]any)
	if len(log) != 2 || quoted(member(t, a, "metadata", "version-log", 1, "version-id")) != "3" {
		t.Errorf("log %v", log)
	}
	for i := range 15 {
		a = d.expect(t, "POST", viewsOfA+"/v", replaceSQL(fmt.Sprintf("SELECT %d AS id", 10+i)), 200, "")
	}
	versions, _ := member(t, a, "metadata", "versions").([]any)
	log, _ = member(t, a, "metadata", "version-log").([]any)
	kept := map[string]bool{}
	for i := range versions {
		kept[quoted(member(t, a, "metadata", "versions", i, "version-id"))] = true
	}
	if len(versions) != 10 || len(log) > 10 || !kept[quoted(member(t, a, "metadata", "current-version-id"))] {
		t.Errorf("%d versions, %d log entries", len(versions), len(log))
	}
	for i := range log {
		if id := quoted(member(t, a, "metadata", "version-log", i, "version-id")); !kept[id] {
			t.Errorf("the log names version %s, which is gone", id)
		}
	}
}

func TestField_C062_UsersOfTablesAskForViews(t *testing.T) {
	l := newLake(t)
	d := l.door
	d.mustCreateNamespace(t, "a")
	d.mustCreateTable(t, "a", "t")
	d.mustCreateTable(t, "a", "u")
	d.mustCreateView(t, "a", "v")
	l.letOnly(t, "lists", authz.TableList)
	l.letOnly(t, "reads", authz.TableReadData)
	l.letOnly(t, "browses", authz.NamespaceList)
	l.letOnlyOn(t, "one", authz.TableReadData, authz.Table, "t")
	for _, who := range []string{"lists", "reads", "browses", "one"} {
		d := d.as(who)
		for _, name := range []string{"t", "u", "v", "none"} {
			d.expect(t, "GET", viewsOfA+"/"+name, "", 404, "NoSuchViewException")
			d.expect(t, "HEAD", viewsOfA+"/"+name, "", 404, "")
			d.expect(t, "DELETE", viewsOfA+"/"+name, "", 404, "NoSuchViewException")
			d.expect(t, "POST", viewsOfA+"/"+name, viewProperty, 404, "NoSuchViewException")
		}
		if names := d.names(t, "/a/views"); len(names) != 0 {
			t.Errorf("%s sees views %q", who, names)
		}
		d.expect(t, "POST", viewsOfA, viewBody("w"), 403, "ForbiddenException")
	}
	if names := d.as("one").names(t, "/a/tables"); quoted(names) != `["t"]` {
		t.Errorf("who may read one table sees %q", names)
	}
	// Who may read one table asks for its metadata tables; engines ask for views of those names too.
	d.as("one").expect(t, "GET", namespacesOfLake+"/a%1Ft/views/files", "", 404, "NoSuchViewException")
	d.expect(t, "GET", viewsOfA+"/v", "", 200, "")
}

// Without any right hidden, missing and mistaken names look the same; one on a view opens that view alone.
func TestField_C154_HiddenAndMissingViewsLookTheSame(t *testing.T) {
	l := newLake(t)
	d := l.door
	d.mustCreateNamespace(t, "a")
	d.mustCreateTable(t, "a", "t")
	for _, name := range []string{"v", "w", "x"} {
		d.mustCreateView(t, "a", name)
	}
	l.letOnlyOn(t, "reader", authz.ViewReadProperties, authz.View, "v")
	l.letOnlyOn(t, "lister", authz.ViewList, authz.View, "v")
	seen := map[string]bool{}
	for _, name := range []string{"v", "t", "none"} {
		for range 2 { // cold and warm
			d.as("").expect(t, "GET", viewsOfA+"/"+name, "", 401, "NotAuthorizedException")
			a := d.as("nobody").expect(t, "GET", viewsOfA+"/"+name, "", 403, "ForbiddenException")
			text, _ := member(t, a, "error", "message").(string)
			seen[strings.ReplaceAll(text, "a."+name, "X")] = true
		}
	}
	if len(seen) != 1 {
		t.Errorf("refusals tell names apart: %v", seen)
	}
	d.as("nobody").expect(t, "GET", viewsOfA, "", 403, "ForbiddenException")
	d.as("nobody").expect(t, "GET", namespacesOfLake+"/none/views", "", 403, "ForbiddenException")

	r := d.as("reader")
	r.expect(t, "GET", viewsOfA+"/v", "", 200, "")
	for _, name := range []string{"w", "t", "none"} {
		r.expect(t, "GET", viewsOfA+"/"+name, "", 404, "NoSuchViewException")
	}
	if names := r.names(t, "/a/views"); quoted(names) != `["v"]` {
		t.Errorf("the reader of v sees %q", names)
	}
	r.expect(t, "POST", viewsOfA+"/v", viewProperty, 403, "ForbiddenException")
	r.expect(t, "DELETE", viewsOfA+"/v", "", 403, "ForbiddenException")
	d.as("lister").expect(t, "HEAD", viewsOfA+"/v", "", 204, "")
	a := d.as("lister").expect(t, "GET", viewsOfA+"/v", "", 403, "ForbiddenException")
	if !strings.Contains(a.body, "VIEW_READ_PROPERTIES") {
		t.Errorf("the refusal does not name the privilege: %s", a.body)
	}
}

// Spark asks for the table first, and for the view when that is missing.
func TestField_C063_TableFirstThenView(t *testing.T) {
	l := newLake(t)
	d := l.door
	d.mustCreateNamespace(t, "a")
	d.mustCreateTable(t, "a", "t")
	d.mustCreateView(t, "a", "v")
	l.letOnlyOn(t, "reader", authz.ViewReadProperties, authz.View, "v")
	l.letOnly(t, "all", authz.ViewReadProperties)
	for _, who := range []string{"ann", "reader", "all"} {
		d.as(who).expect(t, "GET", namespacesOfLake+"/a/tables/v", "", 404, "NoSuchTableException")
		d.as(who).expect(t, "GET", viewsOfA+"/v", "", 200, "")
	}
	d.expect(t, "GET", namespacesOfLake+"/a/tables/missing", "", 404, "NoSuchTableException")
	d.expect(t, "GET", viewsOfA+"/missing", "", 404, "NoSuchViewException")
	d.as("all").expect(t, "GET", namespacesOfLake+"/a/tables/t", "", 403, "ForbiddenException")
	d.as("nobody").expect(t, "GET", namespacesOfLake+"/a/tables/v", "", 403, "ForbiddenException")
}

func TestField_C064_DefaultsStay(t *testing.T) {
	d := newLake(t).door
	d.mustCreateNamespace(t, "a")
	for name, more := range map[string]string{"with": `,"default-catalog":"lake"`, "without": ""} {
		version := viewVersion("SELECT 1 FROM orders", more)
		d.expect(t, "POST", viewsOfA, viewBodyWith(name, version, ""), 200, "")
		a := d.expect(t, "GET", viewsOfA+"/"+name, "", 200, "")
		stored, _ := member(t, a, "metadata", "versions", 0).(map[string]any)
		if catalog, set := stored["default-catalog"]; set != (more != "") || set && catalog != "lake" {
			t.Errorf("%s: default-catalog is %v", name, catalog)
		}
		if quoted(stored["default-namespace"]) != `["a"]` {
			t.Errorf("%s: default-namespace is %v", name, stored["default-namespace"])
		}
	}
	empty := strings.Replace(viewVersion("SELECT 1", ""), `["a"]`, `[]`, 1)
	d.expect(t, "POST", viewsOfA, viewBodyWith("empty", empty, ""), 200, "")
	a := d.expect(t, "GET", viewsOfA+"/empty", "", 200, "")
	if quoted(member(t, a, "metadata", "versions", 0, "default-namespace")) != `[]` {
		t.Errorf("an empty list became %s", a.body)
	}
}

func TestField_C065_RenamesTellWhatIsMissing(t *testing.T) {
	d := newLake(t).door
	d.mustCreateNamespace(t, "a")
	d.mustCreateTable(t, "a", "t")
	d.mustCreateView(t, "a", "v")
	d.expect(t, "POST", "/v1/lake/views/rename", renameBody("none", "a", "w"), 404, "NoSuchViewException")
	d.expect(t, "POST", "/v1/lake/views/rename", renameBody("none", "none", "w"), 404, "NoSuchViewException")
	d.expect(t, "POST", "/v1/lake/views/rename", renameBody("t", "a", "w"), 404, "NoSuchViewException")
	d.expect(t, "POST", "/v1/lake/views/rename", renameBody("v", "none", "w"), 404, "NoSuchNamespaceException")
	d.expect(t, "POST", "/v1/lake/views/rename", renameBody("v", "a", "t"), 409, "AlreadyExistsException")
	d.expect(t, "POST", "/v1/lake/views/rename", renameBody("v", "a", ".."), 400, "BadRequestException")
	d.expect(t, "POST", "/v1/lake/views/rename", `{"source":{"namespace":["a"],"name":"v"}}`, 400, "BadRequestException")
}

func TestField_C067_AViewBecomesATable(t *testing.T) {
	d := newLake(t).door
	d.mustCreateNamespace(t, "a")
	place := ""
	for range 3 {
		at := ""
		if place != "" {
			at = `,"location":` + quoted(place)
		}
		a := d.expect(t, "POST", viewsOfA, viewBodyWith("m", viewVersion("SELECT 1", ""), at), 200, "")
		place = member(t, a, "metadata", "location").(string)
		a = d.expect(t, "POST", namespacesOfLake+"/a/tables", createBody("m"), 409, "AlreadyExistsException")
		if !strings.Contains(a.body, "View with same name already exists: a.m") {
			t.Errorf("the refusal does not say that a view holds the name: %s", a.body)
		}
		d.expect(t, "DELETE", viewsOfA+"/m", "", 204, "")
		d.expect(t, "POST", namespacesOfLake+"/a/tables", strings.Replace(createBody("m"), "{", `{"location":`+quoted(place)+`,`, 1), 200, "")
		d.expect(t, "GET", viewsOfA+"/m", "", 404, "NoSuchViewException")
		d.expect(t, "DELETE", namespacesOfLake+"/a/tables/m", "", 204, "")
	}
}
