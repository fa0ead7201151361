package rest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"catalogd/api"
)

// denyBodies are well-formed bodies for the rows that want one.
var denyBodies = map[string]string{
	"create-namespace":   `{"namespace":["b"]}`,
	"update-namespace":   `{"updates":{"k":"v"}}`,
	"create-table":       createBody("u"),
	"commit-table":       `{"requirements":[],"updates":[{"action":"set-properties","updates":{"k":"v"}}]}`,
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
}

// open are signed-in routes that need no right: the client must be able to start.
var open = map[string]bool{"load-config": true}

func TestDenyAll_NoRightsNoAnswersNoWrites(t *testing.T) {
	l := newLake(t)
	l.furnish(t, "a")
	events, files := l.traces()
	if events < 4 || files != 2 {
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
