package rest

import (
	"strings"
	"testing"
)

func TestRegister_AnswersLikeALoad(t *testing.T) {
	l := newLake(t)
	l.mustCreateNamespace(t, "a")
	location := l.lose(t, "register-table", "a")
	body := `{"name":"t","metadata-location":` + quoted(location) + `}`
	a := l.expect(t, "POST", namespacesOfLake+"/a/register", body, 200, "")
	if got := member(t, a, "metadata-location"); got != location {
		t.Errorf("metadata-location %v, want %s", got, location)
	}
	load := l.expect(t, "GET", namespacesOfLake+"/a/tables/t", "", 200, "")
	if a.body != load.body || a.header.Get("Etag") == "" || a.header.Get("Etag") != load.header.Get("Etag") {
		t.Errorf("registered:\n%s %q\nloaded:\n%s %q", a.body, a.header, load.body, load.header)
	}
	l.expect(t, "POST", namespacesOfLake+"/a/register", body, 409, "AlreadyExistsException")
	l.expect(t, "POST", namespacesOfLake+"/a/register", strings.Replace(body, "}", `,"overwrite":true}`, 1), 200, "")
	l.expect(t, "POST", namespacesOfLake+"/none/register", body, 404, "NoSuchNamespaceException")
	l.expect(t, "POST", namespacesOfLake+"/a/register", `{"name":"u"}`, 400, "BadRequestException")
	l.expect(t, "POST", namespacesOfLake+"/a/register", `{"metadata-location":"x"}`, 400, "BadRequestException")
	l.expect(t, "POST", namespacesOfLake+"/a/register",
		strings.NewReplacer(".metadata.json", "-gone.metadata.json", `"t"`, `"u"`).Replace(body), 404, "NotFoundException")
}

func TestRegisterView_AnswersLikeALoad(t *testing.T) {
	l := newLake(t)
	l.mustCreateNamespace(t, "a")
	location := l.lose(t, "register-view", "a")
	body := `{"name":"v","metadata-location":` + quoted(location) + `}`
	a := l.expect(t, "POST", namespacesOfLake+"/a/register-view", body, 200, "")
	load := l.expect(t, "GET", namespacesOfLake+"/a/views/v", "", 200, "")
	if a.body != load.body || member(t, a, "metadata-location") != location {
		t.Errorf("registered:\n%s\nloaded:\n%s", a.body, load.body)
	}
	again := l.expect(t, "POST", namespacesOfLake+"/a/register-view", body, 409, "AlreadyExistsException")
	if got := member(t, again, "error", "message"); got != "View already exists: a.v" {
		t.Errorf("message %q", got)
	}
	l.mustCreateTable(t, "a", "t")
	taken := l.expect(t, "POST", namespacesOfLake+"/a/register-view", strings.Replace(body, `"v"`, `"t"`, 1), 409, "AlreadyExistsException")
	if got := member(t, taken, "error", "message"); got != "Table with same name already exists: a.t" {
		t.Errorf("message %q", got)
	}
}

func TestUnregister_AnswersTheLastCommit(t *testing.T) {
	l := newLake(t)
	l.mustCreateNamespace(t, "a")
	made := l.mustCreateTable(t, "a", "t")
	const set = `{"requirements":[],"updates":[{"action":"set-properties","updates":{"k":"v"}}]}`
	l.expect(t, "POST", namespacesOfLake+"/a/tables/t", set, 200, "")
	last := l.expect(t, "GET", namespacesOfLake+"/a/tables/t", "", 200, "")
	a := l.expect(t, "POST", namespacesOfLake+"/a/tables/t/unregister", "", 200, "")
	location := member(t, last, "metadata-location").(string)
	if location == member(t, made, "metadata-location") || member(t, a, "metadata-location") != location ||
		member(t, a, "metadata", "properties", "k") != "v" {
		t.Errorf("answered %s", a.body)
	}
	l.expect(t, "POST", namespacesOfLake+"/a/tables/t", set, 404, "NoSuchTableException")
	l.expect(t, "POST", namespacesOfLake+"/a/tables/t/unregister", "", 404, "NoSuchTableException")
	l.mustCreateNamespace(t, "b")
	l.expect(t, "POST", namespacesOfLake+"/b/register", `{"name":"u","metadata-location":`+quoted(location)+`}`, 200, "")
}

// There are no functions, which is an answer and no refusal; the routes are not announced.
func TestFunctions_ThereAreNone(t *testing.T) {
	l := newLake(t)
	l.mustCreateNamespace(t, "a")
	a := l.expect(t, "GET", namespacesOfLake+"/a/functions", "", 200, "")
	if a.body != `{"identifiers":[],"next-page-token":null}` {
		t.Errorf("listed %s", a.body)
	}
	l.expect(t, "GET", namespacesOfLake+"/a/functions/f", "", 404, "NoSuchFunctionException")
	l.expect(t, "GET", namespacesOfLake+"/none/functions", "", 404, "NoSuchNamespaceException")
	l.expect(t, "GET", namespacesOfLake+"/none/functions/f", "", 404, "NoSuchNamespaceException")
	for _, template := range templatesOf((&handlers{}).served()) {
		if strings.Contains(template, "functions") {
			t.Errorf("%s is announced", template)
		}
	}
}
