package rest

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
)

const namespacesOfLake = "/v1/lake/namespaces"

// segment escapes a name as Python and Go clients do; java as Java does.
func segment(name string) string { return strings.ReplaceAll(url.QueryEscape(name), "+", "%20") }
func java(name string) string    { return url.QueryEscape(name) }

func quoted(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// mustCreateNamespace makes a namespace of the warehouse lake, parents not included.
func (d *door) mustCreateNamespace(t *testing.T, levels ...string) {
	t.Helper()
	a := d.send(t, "POST", namespacesOfLake, `{"namespace":`+quoted(levels)+`}`)
	if a.status != 200 {
		t.Fatalf("create namespace %q: %d %s", levels, a.status, a.body)
	}
}

// createBody asks for a table with one column.
func createBody(name string) string {
	return `{"name":` + quoted(name) + `,"schema":{"type":"struct","schema-id":0,"fields":[` +
		`{"id":1,"name":"id","required":false,"type":"long"}]}}`
}

func (d *door) mustCreateTable(t *testing.T, namespace, name string) answer {
	t.Helper()
	a := d.send(t, "POST", namespacesOfLake+"/"+segment(namespace)+"/tables", createBody(name))
	if a.status != 200 {
		t.Fatalf("create table %s.%q: %d %s", namespace, name, a.status, a.body)
	}
	return a
}

func (d *door) expect(t *testing.T, method, target, body string, status int, kind string) answer {
	t.Helper()
	a := d.send(t, method, target, body)
	if a.status != status || kind != "" && (a.errorType() != kind || a.errorCode() != status) {
		t.Errorf("%s %s: %d %s, want %d %s", method, target, a.status, a.body, status, kind)
	}
	return a
}

func TestField_C012_TheUnitSeparatorInPaths(t *testing.T) {
	d := newLake(t).door
	d.mustCreateNamespace(t, "test")
	d.mustCreateNamespace(t, "test", "raw")
	d.mustCreateTable(t, "test\x1fraw", "t1")
	for _, path := range []string{"test%1Fraw", "test%1fraw"} {
		a := d.expect(t, "GET", namespacesOfLake+"/"+path+"/tables", "", 200, "")
		if want := `{"identifiers":[{"namespace":["test","raw"],"name":"t1"}],"next-page-token":null}`; a.body != want {
			t.Errorf("%s: %s", path, a.body)
		}
	}
}

func TestField_C013_NestedNamespaceExists(t *testing.T) {
	d := newLake(t).door
	d.mustCreateNamespace(t, "public")
	d.mustCreateNamespace(t, "public", "default")
	d.expect(t, "HEAD", namespacesOfLake+"/public%1Fdefault", "", 204, "")
	a := d.expect(t, "GET", namespacesOfLake+"/public%1Fdefault", "", 200, "")
	if quoted(a.json()["namespace"]) != `["public","default"]` {
		t.Errorf("namespace is %s", a.body)
	}
	d.expect(t, "POST", namespacesOfLake, `{"namespace":["public","default"]}`, 409, "AlreadyExistsException")
}

func TestField_C014_NoDepthIsAssumed(t *testing.T) {
	d := newLake(t).door
	d.mustCreateNamespace(t, "one")
	for _, ns := range []string{"unity_test%1Fdefault", "one%1Ftwo", "a%1Fb%1Fc%1Fd", "one.two", "nothing"} {
		d.expect(t, "GET", namespacesOfLake+"/"+ns, "", 404, "NoSuchNamespaceException")
		d.expect(t, "GET", namespacesOfLake+"/"+ns+"/tables", "", 404, "NoSuchNamespaceException")
		d.expect(t, "HEAD", namespacesOfLake+"/"+ns, "", 404, "")
	}
	d.expect(t, "GET", namespacesOfLake+"/one/tables", "", 200, "")
}

func TestField_C015_ParentIsDecodedOnce(t *testing.T) {
	d := newLake(t).door
	d.mustCreateNamespace(t, "a_a")
	d.mustCreateNamespace(t, "a_a", "apple")
	d.mustCreateNamespace(t, "a_a", "apple", "pie")
	a := d.expect(t, "GET", namespacesOfLake+"?parent=a_a%1Fapple", "", 200, "")
	if quoted(a.json()["namespaces"]) != `[["a_a","apple","pie"]]` {
		t.Errorf("children are %s", a.body)
	}
	d.expect(t, "GET", namespacesOfLake+"?parent=a_a%251Fapple", "", 404, "NoSuchNamespaceException")
	for _, query := range []string{"", "?parent="} {
		a = d.expect(t, "GET", namespacesOfLake+query, "", 200, "")
		if quoted(a.json()["namespaces"]) != `[["a_a"]]` {
			t.Errorf("top level by %q is %s", query, a.body)
		}
	}
}

func TestField_C019_NoOrphans(t *testing.T) {
	d := newLake(t).door
	a := d.expect(t, "POST", namespacesOfLake, `{"namespace":["a","b","c"]}`, 404, "NoSuchNamespaceException")
	if !strings.Contains(a.body, "exist: a") {
		t.Errorf("message does not name the missing parent: %s", a.body)
	}
	if a := d.send(t, "GET", namespacesOfLake, ""); quoted(a.json()["namespaces"]) != `[]` {
		t.Errorf("something was made: %s", a.body)
	}
}

func TestField_C022_AKeyBothSetAndRemoved(t *testing.T) {
	d := newLake(t).door
	d.expect(t, "POST", namespacesOfLake, `{"namespace":["s"],"properties":{"owner":"bob"}}`, 200, "")
	d.expect(t, "POST", namespacesOfLake+"/s/properties", `{"removals":["owner"],"updates":{"owner":"ann"}}`, 422, "UnprocessableEntityException")
	a := d.expect(t, "GET", namespacesOfLake+"/s", "", 200, "")
	if properties, _ := a.json()["properties"].(map[string]any); properties["owner"] != "bob" {
		t.Errorf("properties changed: %s", a.body)
	}
	a = d.expect(t, "POST", namespacesOfLake+"/s/properties", `{"removals":["owner","none"],"updates":{"k":"v"}}`, 200, "")
	if a.body != `{"updated":["k"],"removed":["owner"],"missing":["none"]}` {
		t.Errorf("changes are %s", a.body)
	}
	a = d.expect(t, "POST", namespacesOfLake+"/s/properties", `{"updates":{"k":"w"}}`, 200, "")
	if a.body != `{"updated":["k"],"removed":[],"missing":[]}` {
		t.Errorf("empty lists became something else: %s", a.body)
	}
}

func TestField_C035_ASlashInAName(t *testing.T) {
	d := newLake(t).door
	d.mustCreateNamespace(t, "a")
	d.mustCreateTable(t, "a", "foo/bar")
	d.expect(t, "GET", namespacesOfLake+"/a/tables/foo%2Fbar", "", 200, "")
	d.expect(t, "HEAD", namespacesOfLake+"/a/tables/foo%2fbar", "", 204, "")
	d.expect(t, "GET", namespacesOfLake+"/a/tables/foo/bar", "", 404, "NoSuchTableException")
	d.expect(t, "DELETE", namespacesOfLake+"/a/tables/foo/bar", "", 404, "NoSuchTableException")
	d.expect(t, "HEAD", namespacesOfLake+"/a/tables/foo/bar", "", 404, "")
	d.expect(t, "DELETE", namespacesOfLake+"/a/tables/foo%2Fbar", "", 204, "")
	d.mustCreateView(t, "a", "foo/bar")
	d.expect(t, "GET", namespacesOfLake+"/a/views/foo%2Fbar", "", 200, "")
	d.expect(t, "HEAD", namespacesOfLake+"/a/views/foo%2fbar", "", 204, "")
	d.expect(t, "GET", namespacesOfLake+"/a/views/foo/bar", "", 404, "NoSuchViewException")
	d.expect(t, "DELETE", namespacesOfLake+"/a/views/foo/bar", "", 404, "NoSuchViewException")
	d.expect(t, "HEAD", namespacesOfLake+"/a/views/foo/bar", "", 404, "")
	d.expect(t, "DELETE", namespacesOfLake+"/a/views/foo%2Fbar", "", 204, "")
}

func TestField_C036_SpacesAndPluses(t *testing.T) {
	d := newLake(t).door
	d.mustCreateNamespace(t, "my space")
	d.mustCreateTable(t, "my space", "daily sales")
	d.mustCreateTable(t, "my space", "a+b")
	for _, path := range []string{
		"/my+space/tables/daily+sales", "/my%20space/tables/daily%20sales", "/my+space/tables/daily%20sales", "/my%20space/tables/a%2Bb",
	} {
		d.expect(t, "GET", namespacesOfLake+path, "", 200, "")
	}
	d.expect(t, "GET", namespacesOfLake+"/my%20space/tables/a+b", "", 404, "NoSuchTableException")
	d.mustCreateView(t, "my space", "daily view")
	d.mustCreateView(t, "my space", "v+w")
	for _, path := range []string{
		"/my+space/views/daily+view", "/my%20space/views/daily%20view", "/my+space/views/daily%20view", "/my%20space/views/v%2Bw",
	} {
		d.expect(t, "GET", namespacesOfLake+path, "", 200, "")
	}
	d.expect(t, "GET", namespacesOfLake+"/my%20space/views/v+w", "", 404, "NoSuchViewException")
}

func TestField_C043_NamesOfDots(t *testing.T) {
	d := newLake(t).door
	d.mustCreateNamespace(t, "a")
	for _, name := range []string{".", ".."} {
		d.expect(t, "POST", namespacesOfLake+"/a/tables", createBody(name), 400, "BadRequestException")
		d.expect(t, "POST", namespacesOfLake, `{"namespace":[`+quoted(name)+`]}`, 400, "BadRequestException")
	}
	d.mustCreateTable(t, "a", "...")
	d.expect(t, "GET", namespacesOfLake+"/a/tables/...", "", 200, "")
	d.expect(t, "GET", namespacesOfLake+"/a/tables/%2E%2E", "", 404, "NoSuchTableException")
	d.expect(t, "GET", namespacesOfLake+"/a/tables/%2E%2E/", "", 404, "NoSuchTableException")
	d.expect(t, "GET", namespacesOfLake+"/%2E%2E/tables", "", 404, "NoSuchNamespaceException")
	d.expect(t, "GET", namespacesOfLake+"/a/tables/..", "", 404, "NoSuchTableException")
}

func TestField_C046_ReservedWordsAsTablesAndNamespaces(t *testing.T) {
	d := newLake(t).door
	d.mustCreateNamespace(t, "tables")
	for _, word := range []string{"rename", "metrics", "credentials", "register", "tables", "views", "config", "properties", "plan"} {
		d.mustCreateTable(t, "tables", word)
		d.expect(t, "GET", namespacesOfLake+"/tables/tables/"+word, "", 200, "")
		d.expect(t, "GET", namespacesOfLake+"/tables/tables/"+word+"/credentials", "", 200, "")
		d.expect(t, "DELETE", namespacesOfLake+"/tables/tables/"+word, "", 204, "")
		d.mustCreateView(t, "tables", word)
		d.expect(t, "GET", namespacesOfLake+"/tables/views/"+word, "", 200, "")
		d.expect(t, "POST", namespacesOfLake+"/tables/views/"+word, viewProperty, 200, "")
		d.expect(t, "DELETE", namespacesOfLake+"/tables/views/"+word, "", 204, "")
	}
	d.mustCreateNamespace(t, "views")
	d.mustCreateView(t, "views", "views")
	d.expect(t, "GET", namespacesOfLake+"/views/views/views", "", 200, "")
}

func TestField_C047_ListsWithoutPagingAreWhole(t *testing.T) {
	l := newLake(t)
	d := l.door
	for i := range 101 {
		d.mustCreateNamespace(t, fmt.Sprintf("n%03d", i))
	}
	a := d.expect(t, "GET", namespacesOfLake, "", 200, "")
	if namespaces, _ := a.json()["namespaces"].([]any); len(namespaces) != 101 || a.json()["next-page-token"] != nil {
		t.Errorf("%d namespaces, token %v", len(namespaces), a.json()["next-page-token"])
	}
	for i := range 101 {
		d.mustCreateTable(t, "n000", fmt.Sprintf("t%03d", i))
	}
	a = d.expect(t, "GET", namespacesOfLake+"/n000/tables", "", 200, "")
	if tables, _ := a.json()["identifiers"].([]any); len(tables) != 101 || a.json()["next-page-token"] != nil {
		t.Errorf("%d tables, token %v", len(tables), a.json()["next-page-token"])
	}
}

func TestField_C053_WalksEnd(t *testing.T) {
	d := newLake(t).door
	for i := range 12 {
		d.mustCreateNamespace(t, fmt.Sprintf("n %02d", i))
	}
	for _, size := range []int{12, 6, 5, 1} {
		seen, token, pages := 0, "", 0
		for {
			a := d.expect(t, "GET", fmt.Sprintf("%s?pageToken=%s&pageSize=%d", namespacesOfLake, token, size), "", 200, "")
			namespaces, _ := a.json()["namespaces"].([]any)
			seen += len(namespaces)
			pages++
			next, more := a.json()["next-page-token"].(string)
			if !more {
				break
			}
			if next == "" || pages > 12 {
				t.Fatalf("by %d: token %q after %d pages", size, next, pages)
			}
			token = next
		}
		if seen != 12 || pages != (12+size-1)/size {
			t.Errorf("by %d: %d namespaces in %d pages", size, seen, pages)
		}
	}
}

// A proxy that decodes the path and escapes it again in its own way, and one that shows the catalog below another path,
// pass all names; a separator that arrives decoded is no request at all, and says so.
func TestField_C252_BehindProxies(t *testing.T) {
	l := newLake(t)
	l.mustCreateNamespace(t, "a")
	l.mustCreateNamespace(t, "a", "b/c d")
	behind, err := url.Parse(l.server.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxies := map[string]*httputil.ReverseProxy{
		"as it came": {Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(behind) }},
		"escaped again": {Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(behind)
			path := strings.NewReplacer("%1F", "%1f", "%2F", "%2f", "-", "%2D").Replace(r.In.URL.EscapedPath())
			r.Out.URL.Path, r.Out.URL.RawPath = r.In.URL.Path, path
		}},
		"below another path": {Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(behind)
			r.Out.URL.Path, r.Out.URL.RawPath = "/polaris/api/catalog"+r.In.URL.Path, "/polaris/api/catalog"+r.In.URL.EscapedPath()
		}},
	}
	for name, proxy := range proxies {
		front := httptest.NewServer(proxy)
		t.Cleanup(front.Close)
		d := &door{server: front, bearer: l.bearer, log: l.log}
		nested := namespacesOfLake + "/" + segment("a\x1fb/c d") + "/tables"
		for _, table := range []string{"t", "x/y", "x-y", "x+y", "x y", "50%", "%2F", "日本", "tables"} {
			if a := d.send(t, "POST", nested, createBody(table)); a.status != 200 {
				t.Fatalf("%s: create %q: %d %s", name, table, a.status, a.body)
			}
			d.expect(t, "GET", nested+"/"+segment(table), "", 200, "")
			d.expect(t, "DELETE", nested+"/"+java(table), "", 204, "")
		}
	}
	connection, err := net.Dial("tcp", behind.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if _, err := connection.Write([]byte("GET /v1/lake/namespaces/a\x1fb HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	if raw, err := io.ReadAll(connection); err != nil || !strings.HasPrefix(string(raw), "HTTP/1.1 400 ") {
		t.Errorf("a decoded separator: %v %.80s", err, raw)
	}
}

// C085: clients take the file system from the locations in answers, never from the warehouse's name.
func TestField_C085_LocationsAreAbsolute(t *testing.T) {
	l := newLake(t)
	l.mustCreateNamespace(t, "a")
	l.addVendingWarehouse(t, "vends")
	for _, warehouse := range []string{"lake", "vends"} {
		base := strings.Replace(namespacesOfLake, "lake", warehouse, 1)
		l.send(t, "POST", base, `{"namespace":["a"]}`)
		made := l.send(t, "POST", base+"/a/tables", createBody("t")).json()
		metadata, _ := made["metadata"].(map[string]any)
		for _, location := range []any{made["metadata-location"], metadata["location"]} {
			text, _ := location.(string)
			if u, err := url.Parse(text); err != nil || !u.IsAbs() || !strings.HasPrefix(u.Path, "/") {
				t.Errorf("%s: %q is no absolute location", warehouse, text)
			}
		}
	}
}
