package rest

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"catalogd/authz"
	"catalogd/catalog"
)

func TestField_C001_UnknownWarehouse(t *testing.T) {
	l := newLake(t)
	l.door.expect(t, "GET", "/v1/config?warehouse=does-not-exist", "", 404, "NoSuchWarehouseException")
	a := l.door.expect(t, "GET", "/v1/config", "", 200, "") // the only one
	if overrides, _ := a.json()["overrides"].(map[string]any); overrides["prefix"] != "lake" {
		t.Errorf("overrides are %s", a.body)
	}
	l.addWarehouse(t, "pond")
	a = l.door.expect(t, "GET", "/v1/config", "", 400, "BadRequestException")
	if !strings.Contains(a.body, "warehouse") {
		t.Errorf("message does not name the parameter: %s", a.body)
	}
	l.door.expect(t, "GET", "/v1/does-not-exist/namespaces", "", 404, "NoSuchWarehouseException")
}

func TestField_C002_LocationsAreNotNames(t *testing.T) {
	d := newLake(t).door
	for _, warehouse := range []string{"s3%3A%2F%2Facme-lake%2Fwh1%2F", "s3://acme-lake/wh1/", "arn:aws:s3tables:eu-west-1:111122223333:bucket/b1"} {
		a := d.expect(t, "GET", "/v1/config?warehouse="+warehouse, "", 404, "NoSuchWarehouseException")
		if !strings.Contains(a.body, "name") {
			t.Errorf("%s: message does not say that warehouses are named: %s", warehouse, a.body)
		}
	}
}

func TestField_C004_WarehouseNamesOfAnyLetters(t *testing.T) {
	const name = "Retail EU 50% - Zürich"
	l := newLake(t)
	l.addWarehouse(t, name)
	a := l.door.expect(t, "GET", "/v1/config?warehouse=Retail+EU+50%25+-+Z%C3%BCrich", "", 200, "")
	overrides, _ := a.json()["overrides"].(map[string]any)
	prefix, _ := overrides["prefix"].(string)
	if segment(prefix) != prefix || prefix == "" {
		t.Fatalf("prefix %q is not safe in a URL", prefix)
	}
	for i, p := range []string{prefix, segment(name), java(name)} {
		ns := "n" + strconv.Itoa(i)
		l.door.expect(t, "POST", "/v1/"+p+"/namespaces", `{"namespace":["`+ns+`"]}`, 200, "")
		l.door.expect(t, "HEAD", "/v1/"+prefix+"/namespaces/"+ns, "", 204, "")
	}
}

func TestField_C009_ConfigTellsNoSecrets(t *testing.T) {
	l := newLake(t)
	l.addVendingWarehouse(t, "s3lake")
	for _, who := range []string{"ann", "nobody"} {
		a := l.door.as(who).expect(t, "GET", "/v1/config?warehouse=s3lake", "", 200, "")
		if strings.Contains(a.body, "secret") || strings.Contains(a.body, "access-key") || strings.Contains(a.body, "arn:") {
			t.Errorf("%s: config tells secrets: %s", who, a.body)
		}
		defaults, _ := a.json()["defaults"].(map[string]any)
		if defaults["header.X-Iceberg-Access-Delegation"] != "vended-credentials" {
			t.Errorf("%s: defaults are %v", who, defaults)
		}
	}
	a := l.door.expect(t, "GET", "/v1/config?warehouse=lake", "", 200, "")
	if quoted(a.json()["defaults"]) != "{}" {
		t.Errorf("a warehouse that vends nothing asks for delegation: %s", a.body)
	}
	endpoints, _ := a.json()["endpoints"].([]any)
	if len(endpoints) != len(templatesOf((&handlers{}).served())) {
		t.Errorf("%d endpoints are announced", len(endpoints))
	}
}

func TestField_C011_TypesOfMissingThings(t *testing.T) {
	d := newLake(t).door
	d.mustCreateNamespace(t, "a")
	const ask = `{"requirements":[],"updates":[]}`
	d.expect(t, "GET", namespacesOfLake+"/none", "", 404, "NoSuchNamespaceException")
	d.expect(t, "GET", namespacesOfLake+"?parent=none", "", 404, "NoSuchNamespaceException")
	d.expect(t, "DELETE", namespacesOfLake+"/none", "", 404, "NoSuchNamespaceException")
	d.expect(t, "POST", namespacesOfLake+"/none/tables", createBody("t"), 404, "NoSuchNamespaceException")
	d.expect(t, "GET", namespacesOfLake+"/a/tables/none", "", 404, "NoSuchTableException")
	d.expect(t, "POST", namespacesOfLake+"/a/tables/none", ask, 404, "NoSuchTableException")
	d.expect(t, "DELETE", namespacesOfLake+"/a/tables/none", "", 404, "NoSuchTableException")
	d.expect(t, "GET", namespacesOfLake+"/a/tables/none/credentials", "", 404, "NoSuchTableException")
	d.expect(t, "GET", namespacesOfLake+"/a/views/none", "", 404, "NoSuchViewException")
	d.mustCreateTable(t, "a", "t")
	d.expect(t, "POST", namespacesOfLake+"/a/tables", createBody("t"), 409, "AlreadyExistsException")
	d.expect(t, "DELETE", namespacesOfLake+"/a", "", 409, "NamespaceNotEmptyException")
	d.expect(t, "POST", namespacesOfLake+"/a/tables/t", `{"requirements":[{"type":"assert-table-uuid","uuid":"00000000-0000-0000-0000-000000000000"}],"updates":[]}`,
		409, "CommitFailedException")
	d.expect(t, "POST", namespacesOfLake+"/a/tables/t", `{"requirements":[{"type":"assert-nonsense"}],"updates":[]}`, 400, "BadRequestException")
	d.expect(t, "POST", "/v1/lake/tables/rename", `{"source":{"namespace":["a"],"name":"t"},"destination":{"namespace":["none"],"name":"t"}}`,
		404, "NoSuchNamespaceException")
	d.expect(t, "POST", "/v1/lake/tables/rename", `{"source":{"namespace":["a"],"name":"none"},"destination":{"namespace":["a"],"name":"u"}}`,
		404, "NoSuchTableException")
}

func TestField_C129_HeadsAndDrops(t *testing.T) {
	l := newLake(t)
	d := l.door
	d.mustCreateNamespace(t, "a")
	d.mustCreateTable(t, "a", "t")
	for path, there := range map[string]int{"/a": 204, "/b": 404, "/a/tables/t": 204, "/a/tables/u": 404, "/b/tables/t": 404, "/a/views/v": 404} {
		if a := d.expect(t, "HEAD", namespacesOfLake+path, "", there, ""); a.body != "" || a.header.Get("Content-Length") > "0" {
			t.Errorf("HEAD %s: body %q, Content-Length %q", path, a.body, a.header.Get("Content-Length"))
		}
		if a := d.as("nobody").send(t, "HEAD", namespacesOfLake+path, ""); a.status != 403 && a.status != 404 {
			t.Errorf("HEAD %s without rights: %d", path, a.status)
		}
		d.as("").expect(t, "HEAD", namespacesOfLake+path, "", 401, "")
	}
	d.expect(t, "POST", "/v1/lake/tables/rename", `{"source":{"namespace":["a"],"name":"t"},"destination":{"namespace":["a"],"name":"u"}}`, 204, "")
	d.expect(t, "HEAD", namespacesOfLake+"/a/tables/t", "", 404, "")
	for _, flag := range []string{"?purgeRequested=False", "?purgeRequested=True", "?purgeRequested=true", ""} {
		d.expect(t, "DELETE", namespacesOfLake+"/a/tables/u"+flag, "", 204, "")
		d.mustCreateTable(t, "a", "u")
	}
	d.expect(t, "DELETE", namespacesOfLake+"/a/tables/u?purgeRequested=maybe", "", 400, "BadRequestException")
	d.expect(t, "DELETE", namespacesOfLake+"/a/tables/u", "", 204, "")
	d.expect(t, "DELETE", namespacesOfLake+"/a", "", 204, "")
}

func TestField_C169_Delegation(t *testing.T) {
	l := newLake(t)
	l.addVendingWarehouse(t, "s3lake")
	d := l.door
	const at = "/v1/s3lake/namespaces"
	d.expect(t, "POST", at, `{"namespace":["a"]}`, 200, "")
	for name, want := range map[string]bool{
		"vended-credentials": true, "vended-credentials,remote-signing": true, "remote-signing": false, "foo": false, "": false,
	} {
		var headers []string
		if name != "" {
			headers = []string{"x-iceberg-access-delegation", name}
		}
		table := "t" + strconv.Itoa(len(name))
		for _, a := range []answer{
			d.send(t, "POST", at+"/a/tables", createBody(table), headers...),
			d.send(t, "GET", at+"/a/tables/"+table, "", headers...),
		} {
			config, _ := a.json()["config"].(map[string]any)
			credentials, isList := a.json()["storage-credentials"].([]any)
			_, secret := config["s3.secret-access-key"]
			if a.status != 200 || !isList || secret != want || (len(credentials) == 1) != want || len(credentials) > 1 {
				t.Errorf("%q: %d %s", name, a.status, a.body)
			}
			if noStore := a.header.Get("Cache-Control") == "no-store"; noStore != want {
				t.Errorf("%q: Cache-Control is %q", name, a.header.Get("Cache-Control"))
			}
			if config["s3.remote-signing-enabled"] != nil {
				t.Errorf("%q: keys beside remote signing", name)
			}
		}
	}
	d.send(t, "POST", at+"/a/tables", createBody("x"))
	a := d.expect(t, "GET", at+"/a/tables/x/credentials", "", 200, "")
	credentials, _ := a.json()["storage-credentials"].([]any)
	if len(credentials) != 1 || a.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("refresh without the header: %s", a.body)
	}
	one := credentials[0].(map[string]any)
	prefix, _ := one["prefix"].(string)
	if !strings.HasPrefix(prefix, "s3://") || !strings.HasSuffix(prefix, "/") {
		t.Errorf("prefix is %q", prefix)
	}
	if refresh := one["config"].(map[string]any)["client.refresh-credentials-endpoint"]; refresh != "v1/s3lake/namespaces/a/tables/x/credentials" {
		t.Errorf("refresh endpoint is %v", refresh)
	}
}

const scanReport = `{"report-type":"scan-report","table-name":"other.table","snapshot-id":1,"filter":true,"schema-id":0,` +
	`"projected-field-ids":[1],"projected-field-names":["id"],"metrics":{},"unknown":{"deep":[null]}}`

func TestField_C197_ReportsAreRead(t *testing.T) {
	l := newLake(t)
	d := l.door
	d.mustCreateNamespace(t, "a")
	d.mustCreateTable(t, "a", "t")
	const at = namespacesOfLake + "/a/tables/"
	d.expect(t, "POST", at+"t/metrics", scanReport, 204, "")
	d.expect(t, "POST", at+"t/metrics", `{"report-type":"never-heard-of","snapshot-id":"one"}`, 204, "")
	kept := l.reports(t, "t")
	if len(kept) != 2 || kept[0].Type != "never-heard-of" || kept[0].SnapshotID != nil || string(kept[1].Report) != scanReport ||
		kept[1].SnapshotID == nil || *kept[1].SnapshotID != 1 || kept[1].Principal != "ann" {
		t.Errorf("kept %+v", kept)
	}
	d.expect(t, "POST", at+"none/metrics", scanReport, 404, "NoSuchTableException")
	d.expect(t, "POST", at+"t/metrics", `{"report-type":`, 400, "BadRequestException")
	d.expect(t, "POST", at+"t/metrics", ``, 400, "BadRequestException")
	d.expect(t, "POST", at+"t/metrics", "{\"report-type\":\"\xff\"}", 400, "BadRequestException")
	for _, body := range []string{`[]`, `null`, `{}`, `{"report-type":5}`, `{"report-type":""}`, `{"report-type":"a\u0000"}`} {
		d.expect(t, "POST", at+"t/metrics", body, 400, "BadRequestException")
	}
	if n := len(l.reports(t, "t")); n != 2 {
		t.Errorf("%d reports are kept, 2 were taken", n)
	}
}

// reports gives what is kept of a table of namespace a, newest first.
func (l *lake) reports(t *testing.T, table string) []catalog.MetricsReport {
	t.Helper()
	res, err := l.store.Resolve(t.Context(), catalog.Lookup{Warehouse: "lake", Namespace: catalog.Namespace{"a"}, Table: table})
	if err != nil {
		t.Fatal(err)
	}
	kept, err := l.store.ListReports(t.Context(), res.Table.ID, catalog.MetricsPage{Limit: 10000})
	if err != nil {
		t.Fatal(err)
	}
	return kept
}

// A filter of any length is taken; what is kept of it is bounded, and so is the number of reports.
func TestTrap45_ReportsAreBounded(t *testing.T) {
	l := newLake(t)
	l.mustCreateNamespace(t, "a")
	l.mustCreateTable(t, "a", "t")
	const at = namespacesOfLake + "/a/tables/t/metrics"
	long := strings.Repeat("x", 200<<10)
	l.expect(t, "POST", at, `{"report-type":"scan-report","snapshot-id":7,"filter":"`+long+`","metrics":{"a":1}}`, 204, "")
	kept := l.reports(t, "t")
	if got := string(kept[0].Report); got != `{"catalogd.shortened":["filter"],"filter":null,"metrics":{"a":1},"report-type":"scan-report","snapshot-id":7}` {
		t.Errorf("kept %.300s", got)
	}
	many := make([]string, 40)
	for i := range many {
		many[i] = `"` + strconv.Itoa(i) + `":"` + long[:10<<10] + `"`
	}
	l.expect(t, "POST", at, `{"report-type":"odd",`+strings.Join(many, ",")+`}`, 204, "")
	if got := string(l.reports(t, "t")[0].Report); got != `{"catalogd.shortened":["*"],"report-type":"odd"}` {
		t.Errorf("kept %.300s", got)
	}
	for range 1100 {
		l.expect(t, "POST", at, `{"report-type":"scan-report"}`, 204, "")
	}
	if n := len(l.reports(t, "t")); n < 1000 || n > 1016 {
		t.Errorf("%d reports are kept", n)
	}
}

func TestField_C200_ReportsAreNotTrusted(t *testing.T) {
	l := newLake(t)
	l.door.mustCreateNamespace(t, "a")
	l.door.mustCreateTable(t, "a", "t")
	l.letOnly(t, "reader", authz.TableReadData)
	reader := l.door.as("reader")
	reader.expect(t, "POST", namespacesOfLake+"/a/tables/t/metrics", scanReport, 204, "")
	reader.expect(t, "DELETE", namespacesOfLake+"/a/tables/t", "", 403, "ForbiddenException")
	// Who may only read commits nothing; a report of a commit of his is made up.
	commitReport := strings.Replace(scanReport, "scan-report", "commit-report", 1)
	reader.expect(t, "POST", namespacesOfLake+"/a/tables/t/metrics", commitReport, 403, "ForbiddenException")
	l.letOnly(t, "writer", authz.TableWriteData)
	l.door.as("writer").expect(t, "POST", namespacesOfLake+"/a/tables/t/metrics", commitReport, 204, "")
	l.door.expect(t, "POST", namespacesOfLake+"/a/views", viewBody("v"), 200, "")
	l.door.expect(t, "POST", namespacesOfLake+"/a/tables/v/metrics", scanReport, 404, "NoSuchTableException")
	if a := l.door.as("nobody").send(t, "POST", namespacesOfLake+"/a/tables/t/metrics", scanReport); a.status != 403 {
		t.Errorf("a report without the right to read: %d", a.status)
	}
}

// To purge takes the right on the data; the flag in any client's spelling must get there.
func TestTrap31_PurgeIsAskedFor(t *testing.T) {
	l := newLake(t)
	l.mustCreateNamespace(t, "a")
	l.mustCreateTable(t, "a", "t")
	l.letOnly(t, "dropper", authz.TableDrop)
	for _, flag := range []string{"true", "True"} {
		l.as("dropper").expect(t, "DELETE", namespacesOfLake+"/a/tables/t?purgeRequested="+flag, "", 403, "ForbiddenException")
	}
	l.as("dropper").expect(t, "DELETE", namespacesOfLake+"/a/tables/t?purgeRequested=False", "", 204, "")
}

// Java looks for db.table.files as table "files" of namespace db.table first; only a missing table lets it go on.
func TestTrap11_ProbingForMetadataTables(t *testing.T) {
	d := newLake(t).door
	d.mustCreateNamespace(t, "db")
	d.mustCreateTable(t, "db", "tbl")
	a := d.expect(t, "GET", namespacesOfLake+"/db%1Ftbl/tables/files?snapshots=all", "", 404, "NoSuchTableException")
	if !strings.Contains(a.body, "Table does not exist: db.tbl.files") {
		t.Errorf("message is %s", a.body)
	}
	d.expect(t, "HEAD", namespacesOfLake+"/db%1Ftbl/tables/files", "", 404, "")
}

func TestTrap03_TagsAndRevalidation(t *testing.T) {
	l := newLake(t)
	d := l.door
	d.mustCreateNamespace(t, "a")
	created := d.mustCreateTable(t, "a", "t")
	const at = namespacesOfLake + "/a/tables/t"
	loaded := d.expect(t, "GET", at, "", 200, "")
	tag := loaded.header["Etag"] // the client's spelling; the server's is checked on the wire in package api
	if len(tag) != 1 || !strings.HasPrefix(tag[0], `W/"`) || created.header.Get("ETag") != tag[0] {
		t.Fatalf("tags are %v and %v", created.header["Etag"], tag)
	}
	strong := strings.TrimPrefix(tag[0], "W/") // as this server sent it once, and as some clients keep it
	for _, sent := range []string{tag[0], strong, strings.Trim(strong, `"`), `"x", ` + tag[0], `W/"x",` + strong, "*"} {
		a := d.send(t, "GET", at, "", "If-None-Match", sent)
		if a.status != http.StatusNotModified || a.body != "" || a.header.Get("ETag") != tag[0] {
			t.Errorf("If-None-Match %s: %d %q %v", sent, a.status, a.body, a.header["Etag"])
		}
	}
	if a := d.send(t, "GET", at+"?snapshots=refs", "", "If-None-Match", tag[0]); a.status != 200 {
		t.Errorf("another representation: %d", a.status)
	}
	committed := d.expect(t, "POST", at, `{"requirements":[],"updates":[{"action":"set-properties","updates":{"k":"v"}}]}`, 200, "")
	again := d.send(t, "GET", at, "", "If-None-Match", tag[0])
	if again.status != 200 || committed.header.Get("ETag") != again.header.Get("ETag") || again.header.Get("ETag") == tag[0] {
		t.Errorf("after a commit: %d, tags %q and %q", again.status, committed.header.Get("ETag"), again.header.Get("ETag"))
	}
	d.expect(t, "GET", at+"?snapshots=some", "", 400, "BadRequestException")
}

func TestTrap_CommitsAsClientsSendThem(t *testing.T) {
	d := newLake(t).door
	d.mustCreateNamespace(t, "a")
	d.mustCreateTable(t, "a", "t")
	const at = namespacesOfLake + "/a/tables/t"
	// DuckDB and ClickHouse: null means that the branch must not be there.
	a := d.expect(t, "POST", at, `{"identifier":{"namespace":["a"],"name":"t"},"requirements":[`+
		`{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":null}],`+
		`"updates":[{"action":"set-properties","updates":{"k":"v"}}],"unknown":1}`, 200, "")
	if a.json()["metadata-location"] == nil || strings.Contains(a.body, "null") {
		t.Errorf("answer is %s", a.body)
	}
	before := a.json()["metadata-location"]
	a = d.expect(t, "POST", at, `{"requirements":[],"updates":[]}`, 200, "")
	if a.json()["metadata-location"] != before {
		t.Errorf("a commit of nothing moved the table: %s", a.body)
	}
	d.expect(t, "POST", "/v1/lake/transactions/commit", `{"table-changes":[{"identifier":{"namespace":["a"],"name":"t"},"requirements":[],`+
		`"updates":[{"action":"set-properties","updates":{"k":"w"}}]}]}`, 204, "")
	d.expect(t, "POST", "/v1/lake/transactions/commit", `{"table-changes":[{"requirements":[],"updates":[]}]}`, 400, "BadRequestException")
	d.expect(t, "POST", "/v1/lake/transactions/commit", `{"table-changes":[]}`, 400, "BadRequestException")
	d.expect(t, "POST", at, `{"requirements":[],"updates":[{"action":"make-coffee"}]}`, 400, "BadRequestException")
	d.expect(t, "POST", at, `{"requirements":{},"updates":[]}`, 400, "BadRequestException")
	d.expect(t, "POST", at, `[]`, 400, "BadRequestException")
	d.expect(t, "POST", at, `{`, 400, "BadRequestException")
}

func TestTrap27_StagedCreateTakesNothing(t *testing.T) {
	d := newLake(t).door
	d.mustCreateNamespace(t, "a")
	body := strings.Replace(createBody("t"), "{", `{"stage-create":true,`, 1)
	a := d.expect(t, "POST", namespacesOfLake+"/a/tables", body, 200, "")
	if _, there := a.json()["metadata-location"]; there || a.header.Get("ETag") != "" {
		t.Errorf("a staged table has a location or a tag: %s", a.body)
	}
	d.expect(t, "HEAD", namespacesOfLake+"/a/tables/t", "", 404, "")
	d.mustCreateTable(t, "a", "t")
}

func TestTrap19_NobodyIsNobody(t *testing.T) {
	d := newLake(t).door
	for _, header := range []string{"Bearer None", "Bearer ", "Basic x", "None"} {
		a := d.as("").send(t, "GET", namespacesOfLake, "", "Authorization", header)
		if a.status != 401 || a.errorType() != "NotAuthorizedException" || a.header.Get("WWW-Authenticate") == "" {
			t.Errorf("%q: %d %s", header, a.status, a.body)
		}
	}
}

func TestBadInput_Namespaces(t *testing.T) {
	d := newLake(t).door
	for _, body := range []string{
		``, `{`, `[]`, `{}`, `{"namespace":null}`, `{"namespace":[]}`, `{"namespace":"a"}`, `{"namespace":[1]}`, `{"namespace":[""]}`,
		`{"namespace":[null]}`, `{"namespace":["a"],"properties":{"k":1}}`, `{"namespace":["a"],"properties":{"k":null}}`,
		`{"namespace":["a"],"properties":[]}`, `{"namespace":["a\u001fb"]}`, `{"namespace":["\u0000"]}`, `{"namespace":["\ud800"]}`,
		`{"namespace":["a\n"]}`, `{"namespace":["` + strings.Repeat("x", 3000) + `"]}`, "{\"namespace\":[\"\xff\"]}", `{"namespace":["a"]}x`,
	} {
		d.expect(t, "POST", namespacesOfLake, body, 400, "BadRequestException")
	}
	d.expect(t, "POST", namespacesOfLake, `{"namespace":["`+strings.Repeat("x", 2<<20)+`"]}`, 413, "PayloadTooLargeException")
	d.expect(t, "POST", namespacesOfLake, `{"namespace":["a"],"properties":null}`, 200, "")
	if a := d.send(t, "GET", namespacesOfLake, ""); quoted(a.json()["namespaces"]) != `[["a"]]` {
		t.Errorf("bad requests left something: %s", a.body)
	}
}
