package manage_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"catalogd/api"
	"catalogd/api/manage"
	"catalogd/api/rest"
)

// own are the calls that a tenant is answered about itself, whatever the path names beside; skipped are about no tenant.
var (
	ownCalls     = []string{"who-am-i", "load-config", "can-i"}
	unnamedCalls = []string{"list-warehouses", "list-principals", "list-principal-roles", "create-principal", "create-principal-role", "create-warehouse"}
)

// newTenants gives an office of two tenants, with warehouses north and south that hold the same, and its administrator.
func newTenants(t *testing.T) (*office, *person) {
	t.Helper()
	o := newOffice(t)
	root := o.admin()
	for _, name := range []string{"north", "south"} {
		o.open(name)
		o.furnish(root, name, "a")
	}
	return o, root
}

// TestTenants_AreNotVisibleToOneAnother gives two tenants a warehouse each, with all rights on it and none on the other's,
// and walks the table of endpoints: each answer about the other's namespaces, tables, views, roles and grants is, apart
// from the names that were sent and the request's id, that about what is not there.
func TestTenants_AreNotVisibleToOneAnother(t *testing.T) {
	o := newOffice(t)
	root := o.admin()
	tenants := map[string]*person{}
	for _, name := range []string{"north", "south"} {
		o.open(name)
		o.furnish(root, name, "a")
		root.want(201, post, "/catalogs/"+name+"/catalog-roles", `{"catalogRole":{"name":"inner"}}`)
		tenants[name] = o.login(o.hire("of-"+name, name+"-admins"), "")
		root.want(201, put, "/principal-roles/"+name+"-admins/catalog-roles/"+name, `{"catalogRole":{"name":"catalog_admin"}}`)
	}
	south := tenants["south"]
	hook, _ := root.want(201, post, "/webhooks", `{"url":"https://hooks.example.com","catalog":"north"}`).at(t, "webhook", "id").(string)
	asked := 0
	for _, e := range append(rest.Endpoints(rest.Config{}), manage.Endpoints(manage.Config{})...) {
		if e.Access == api.Public || slices.Contains(ownCalls, e.Operation) || slices.Contains(unnamedCalls, e.Operation) {
			continue
		}
		there, missing := e, e
		there.Pattern = strings.ReplaceAll(e.Pattern, "{webhook}", hook)
		missing.Pattern = strings.ReplaceAll(e.Pattern, "{webhook}", "018f3a1e-7b7c-7000-8000-000000000001")
		one, other := tenantCall(there, "north", "a", "t", "v", "inner"), tenantCall(missing, "north", "xx", "xt", "xv", "xinner")
		a, b := o.send(e.Method, one.path, south.token, "application/json", one.body), o.send(e.Method, other.path, south.token, "application/json", other.body)
		asked++
		if a.status < 400 && e.Operation != "list-functions" {
			t.Errorf("%s %s by another tenant: %d %s", e.Method, one.path, a.status, a.body)
		}
		if a.status != b.status || blank(a.body) != blank(b.body) || shownHeader(a.header) != shownHeader(b.header) {
			t.Errorf("%s: what is there is told from what is not:\n%d %s %s\n%d %s %s", e.Operation, a.status, shownHeader(a.header), blank(a.body), b.status, shownHeader(b.header), blank(b.body))
		}
	}
	t.Logf("%d calls about another tenant's things", asked)
	for _, p := range []struct{ method, path, body string }{
		{get, "/catalogs", ""}, {get, "/principals", ""}, {get, "/principal-roles", ""}, {get, "/principals?nameContains=north", ""},
		{post, "/catalogs", fileCatalog("north", "file:///x")}, {post, "/principals", `{"principal":{"name":"of-north"}}`},
		{post, "/principal-roles", `{"principalRole":{"name":"north-admins"}}`}, {get, "/principals/of-north/reach", ""},
		{get, "/webhooks", ""}, {get, "/webhooks?catalog=north", ""}, {post, "/webhooks", `{"url":"https://hooks.example.com"}`},
	} {
		if r := south.call(p.method, p.path, p.body); r.status != 403 {
			t.Errorf("%s %s: %d %s", p.method, p.path, r.status, r.body)
		}
	}
	// Nothing of north is in what south may list.
	for _, path := range []string{"/principals/of-south/reach", "/whoami", "/catalogs/south/catalog-roles/catalog_admin/principal-roles"} {
		if r := south.want(200, get, path, ""); strings.Contains(r.body, "north") {
			t.Errorf("%s: %s", path, r.body)
		}
	}
	// Keys of repeats are each tenant's own.
	key := http.Header{"Idempotency-Key": {"018f3a1e-7b7c-7000-8000-000000000001"}}
	for name, p := range tenants {
		if r := o.sendWith(post, "/api/catalog/v1/"+name+"/namespaces", p.token, `{"namespace":["keyed"]}`, key); r.status != 200 {
			t.Errorf("the same key in %s: %d %s", name, r.status, r.body)
		}
	}
}

// tenantCall fills an endpoint's pattern and body.
type filledCall struct{ path, body string }

func tenantCall(e api.Endpoint, warehouse, namespace, table, view, role string) filledCall {
	path := strings.NewReplacer("{prefix}", warehouse, "{catalog}", warehouse, "{namespace}", namespace, "{table}", table, "{view}", view,
		"{catalogRole}", role, "{principal}", "of-"+warehouse+namespace, "{role}", warehouse+"-admins"+namespace, "{policy}", "p", "{job}",
		"018f3a1e-7b7c-7000-8000-000000000001", "{token}", "018f3a1e-7b7c-7000-8000-000000000001", "*", "x").Replace(e.Pattern)
	path = unfilled.ReplaceAllString(path, "x")
	body := strings.NewReplacer("NS", namespace, `"t"`, `"`+table+`"`, `"v"`, `"`+view+`"`, "X-", "x-", "LOST", "file:///lakes/north/x/metadata/v1.metadata.json", `"catalog":"lake"`, `"catalog":"`+warehouse+`"`).Replace(operationBodies[e.Operation])
	if e.Operation == "who-can" {
		path += fmt.Sprintf("?privilege=TABLE_LIST&catalog=%s&namespace=%s&table=%s", warehouse, namespace, table)
	}
	if body == "" && e.Method == put {
		body = `{"currentEntityVersion":1,"properties":{},"owner":"of-south"}`
	}
	return filledCall{path, body}
}

var (
	unfilled = regexp.MustCompile(`\{[^}]*\}`)
	// sent are the names that the two requests differ in; an answer may repeat them.
	sent = regexp.MustCompile(`\b(xx|xt|xv|xinner|a|t|v|inner)\b`)
)

// blank takes the names that were sent out of an answer.
func blank(body string) string {
	for _, suffix := range []string{"of-northxx", "of-northa", "north-adminsxx", "north-adminsa"} {
		body = strings.ReplaceAll(body, suffix, "_")
	}
	return sent.ReplaceAllString(body, "_")
}

// shownHeader are the headers of an answer but for those that differ from request to request.
func shownHeader(h http.Header) string {
	var lines []string
	for name, values := range h {
		if !slices.Contains([]string{"Date", "Content-Length", "X-Request-Id"}, name) {
			lines = append(lines, name+": "+strings.Join(values, ","))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "; ")
}

// sendWith is send with headers.
func (o *office) sendWith(method, path, token, body string, header http.Header) reply {
	o.t.Helper()
	request, err := http.NewRequestWithContext(o.t.Context(), method, o.server.URL+path, strings.NewReader(body))
	if err != nil {
		o.t.Fatal(err)
	}
	request.Header = header.Clone()
	request.Header.Set("Authorization", token)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		o.t.Fatal(err)
	}
	response.Body.Close()
	return reply{response.StatusCode, response.Header, ""}
}
