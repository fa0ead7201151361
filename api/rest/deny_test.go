package rest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"catalogd/api"
)

// denyBodies are well-formed bodies for the rows that want one.
var denyBodies = map[string]string{
	"create-namespace":   `{"namespace":["b"]}`,
	"update-namespace":   `{"updates":{"k":"v"}}`,
	"create-table":       createBody("u"),
	"commit-table":       `{"requirements":[],"updates":[{"action":"set-properties","updates":{"k":"v"}}]}`,
	"register-table":     `{"name":"new","metadata-location":"file:///registered/NAMESPACE/table/1.metadata.json"}`,
	"register-view":      `{"name":"new","metadata-location":"file:///registered/NAMESPACE/view/1.metadata.json"}`,
	"report-metrics":     scanReport,
	"create-view":        viewBody("w"),
	"replace-view":       viewProperty,
	"rename-view":        `{"source":{"namespace":["a"],"name":"v"},"destination":{"namespace":["a"],"name":"w"}}`,
	"rename-table":       `{"source":{"namespace":["a"],"name":"t"},"destination":{"namespace":["a"],"name":"u"}}`,
	"commit-transaction": `{"table-changes":[{"identifier":{"namespace":["a"],"name":"t"},"requirements":[],"updates":[{"action":"set-properties","updates":{"k":"v"}}]}]}`,
}

// requestOf fills a row's pattern with things that are there.
func requestOf(e api.Endpoint, namespace string) (target, body string) {
	target = strings.NewReplacer("{prefix}", "lake", "{namespace}", namespace, "{table}", "t", "{view}", "v",
		"{plan-id}", "1", "{function}", "f", "*", "x").Replace(e.Pattern)
	if e.Operation == "drop-namespace" {
		target += "empty"
	}
	body = strings.ReplaceAll(denyBodies[e.Operation], `["a"]`, quoted([]string{namespace}))
	body = strings.ReplaceAll(body, "NAMESPACE", namespace)
	if body == "" && e.Method == http.MethodPost {
		body = "{}"
	}
	return target, body
}

// furnish makes what requestOf asks for.
func (l *lake) furnish(t *testing.T, namespace string) {
	t.Helper()
	l.mustCreateNamespace(t, namespace)
	l.mustCreateNamespace(t, namespace+"empty")
	l.mustCreateTable(t, namespace, "t")
	l.mustCreateView(t, namespace, "v")
	for kind, text := range registered {
		location := "file:///registered/" + namespace + "/" + kind
		l.files.Forge(location+"/1.metadata.json", []byte(fmt.Sprintf(text, uuid.NewString(), location)))
	}
}

// registered are metadata files that somebody else wrote.
var registered = map[string]string{
	"table": `{"format-version":2,"table-uuid":%q,"location":%q,"last-sequence-number":0,"last-updated-ms":1,"last-column-id":1,
		"schemas":[{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":false,"type":"long"}]}],"current-schema-id":0,
		"partition-specs":[{"spec-id":0,"fields":[]}],"default-spec-id":0,"last-partition-id":999,
		"sort-orders":[{"order-id":0,"fields":[]}],"default-sort-order-id":0}`,
	"view": `{"format-version":1,"view-uuid":%q,"location":%q,"current-version-id":1,"properties":{},
		"schemas":[{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":false,"type":"long"}]}],
		"versions":[{"version-id":1,"timestamp-ms":1,"schema-id":0,"summary":{},"default-namespace":["a"],
		"representations":[{"type":"sql","sql":"SELECT 1","dialect":"spark"}]}],"version-log":[{"timestamp-ms":1,"version-id":1}]}`,
}

// open are signed-in routes that need no right: the client must be able to start.
var open = map[string]bool{"load-config": true}

func TestDenyAll_NoRightsNoAnswersNoWrites(t *testing.T) {
	l := newLake(t)
	l.furnish(t, "a")
	events, files := l.traces()
	if events < 4 || files != 4 {
		t.Fatalf("four mutations left %d events and %d files", events, files)
	}
	for _, e := range Endpoints(Config{}) {
		if e.Access == api.Public {
			continue
		}
		target, body := requestOf(e, "a")
		if a := l.door.as("").send(t, e.Method, target, body); a.status != 401 {
			t.Errorf("%s %s by a stranger: %d", e.Method, target, a.status)
		}
		a := l.door.as("nobody").send(t, e.Method, target, body)
		refused := a.status == 403 || a.status == 404 || a.status == 406
		if refused == open[e.Operation] {
			t.Errorf("%s %s without rights: %d %s", e.Method, target, a.status, a.body)
		}
		if a := l.door.as("stranger").send(t, e.Method, target, body); e.Operation != "load-config" && a.status < 400 {
			t.Errorf("%s %s by a principal that was deleted: %d", e.Method, target, a.status)
		}
	}
	if eventsNow, filesNow := l.traces(); eventsNow != events || filesNow != files {
		t.Errorf("callers without rights left %d events and %d files", eventsNow-events, filesNow-files)
	}
}

// The same requests by somebody with rights work, so the refusals above were refusals of rights.
func TestDenyAll_TheRequestsAreGood(t *testing.T) {
	l := newLake(t)
	for i, e := range (&handlers{}).served() {
		if e.Access == api.Public {
			continue
		}
		namespace := fmt.Sprintf("a%d", i)
		l.furnish(t, namespace)
		target, body := requestOf(e, namespace)
		if a := l.door.send(t, e.Method, target, body); a.status >= 300 {
			t.Errorf("%s %s with rights: %d %s", e.Method, target, a.status, a.body)
		}
	}
}

// lose makes a table, or a view, drops it, and gives the metadata file that is left.
func (l *lake) lose(t *testing.T, operation, namespace string) string {
	t.Helper()
	made, kind := l.mustCreateTable, "tables"
	if operation == "register-view" {
		made, kind = l.mustCreateView, "views"
	}
	location := member(t, made(t, namespace, "lost"), "metadata-location").(string)
	l.door.expect(t, "DELETE", namespacesOfLake+"/"+namespace+"/"+kind+"/lost", "", 204, "")
	return location
}
