package manage_test

import (
	"net/http"
	"strings"
	"testing"

	"catalogd/catalog"
)

const (
	get, post, put, del = http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete
)

// keys checks that an object has exactly these fields.
func keys(t *testing.T, v any, want ...string) {
	t.Helper()
	object, ok := v.(map[string]any)
	if !ok {
		t.Errorf("%v is not an object", v)
		return
	}
	for _, name := range want {
		if value, there := object[name]; !there || value == nil {
			t.Errorf("%s is missing or null in %v", name, object)
		}
	}
	if len(object) != len(want) {
		t.Errorf("fields %v, want %v", object, want)
	}
}

// The story of a set-up, with the bodies that Polaris' command line sends.
func TestStory_ATeamIsSetUpAndWorks(t *testing.T) {
	o := newOffice(t)
	root := o.admin()
	r := root.want(201, post, "/catalogs", `{"catalog":{"type":"INTERNAL","name":"sales","properties":{"default-base-location":"s3://lake/sales/","owner":"ann"},
		"storageConfigInfo":{"storageType":"S3","roleArn":"arn:aws:iam::123456789012:role/lake","endpoint":"http://127.0.0.1:9000","stsUnavailable":false,"pathStyleAccess":true,"kmsUnavailable":false}}}`)
	keys(t, r.object(t), "type", "name", "properties", "createTimestamp", "lastUpdateTimestamp", "entityVersion", "storageConfigInfo")
	if got := r.at(t, "properties", "default-base-location"); got != "s3://lake/sales" {
		t.Errorf("base %v", got)
	}
	if got, _ := r.at(t, "storageConfigInfo", "allowedLocations").([]any); len(got) != 1 || got[0] != "s3://lake/sales" {
		t.Errorf("allowed %v", got)
	}
	r = root.want(201, post, "/principals", `{"principal":{"name":"etl","clientId":"ignored","properties":{"team":"a"}},"credentialRotationRequired":false}`)
	keys(t, r.object(t), "principal", "credentials")
	keys(t, r.at(t, "principal"), "name", "clientId", "properties", "createTimestamp", "lastUpdateTimestamp", "entityVersion")
	keys(t, r.at(t, "credentials"), "clientId", "clientSecret")
	if r.header.Get("Cache-Control") != "no-store" {
		t.Error("a secret may be cached")
	}
	etl := credentialOf(t, r)
	if etl.ClientID == "ignored" {
		t.Error("the client id of the body was taken")
	}
	r = root.want(201, post, "/principal-roles", `{"principalRole":{"name":"engineers","federated":false,"properties":{}}}`)
	keys(t, r.object(t), "name", "federated", "properties", "createTimestamp", "lastUpdateTimestamp", "entityVersion")
	if r = root.want(201, put, "/principals/etl/principal-roles", `{"principalRole":{"name":"engineers"}}`); r.body != "" {
		t.Errorf("body %q", r.body)
	}
	r = root.want(201, post, "/catalogs/sales/catalog-roles", `{"catalogRole":{"name":"writers","properties":{"x":"y"}}}`)
	keys(t, r.object(t), "name", "properties", "createTimestamp", "lastUpdateTimestamp", "entityVersion")
	root.want(201, put, "/principal-roles/engineers/catalog-roles/sales", `{"catalogRole":{"name":"writers"}}`)

	member := o.login(etl, "")
	if r := member.catalogCall(post, "/sales/namespaces", `{"namespace":["raw"]}`); r.status != 403 {
		t.Errorf("before the grant: %d", r.status)
	}
	root.want(201, put, "/catalogs/sales/catalog-roles/writers/grants", `{"grant":{"type":"catalog","privilege":"NAMESPACE_FULL_METADATA"}}`)
	if r := member.catalogCall(post, "/sales/namespaces", `{"namespace":["raw"]}`); r.status != 200 {
		t.Errorf("after the grant: %d %s", r.status, r.body)
	}
	root.want(201, put, "/catalogs/sales/catalog-roles/writers/grants", `{"grant":{"type":"namespace","namespace":["raw"],"privilege":"TABLE_WRITE_DATA"}}`)
	r = root.want(200, get, "/catalogs/sales/catalog-roles/writers/grants", "")
	if want := `{"grants":[{"type":"catalog","privilege":"NAMESPACE_FULL_METADATA"},{"type":"namespace","namespace":["raw"],"privilege":"TABLE_WRITE_DATA"}]}`; r.body != want {
		t.Errorf("grants %s, want %s", r.body, want)
	}
	root.want(201, post, "/catalogs/sales/catalog-roles/writers/grants?cascade=false", `{"grant":{"type":"catalog","privilege":"NAMESPACE_FULL_METADATA"}}`)
	if r := member.catalogCall(post, "/sales/namespaces", `{"namespace":["more"]}`); r.status != 403 {
		t.Errorf("after the revocation: %d", r.status)
	}
	for path, list := range map[string]string{
		"/catalogs": "catalogs", "/principals": "principals", "/principal-roles": "roles", "/principals/etl/principal-roles": "roles",
		"/principal-roles/engineers/principals": "principals", "/principal-roles/engineers/catalog-roles/sales": "roles",
		"/catalogs/sales/catalog-roles": "roles", "/catalogs/sales/catalog-roles/writers/principal-roles": "roles",
	} {
		r := root.want(200, get, path, "")
		if items, _ := r.at(t, list).([]any); len(items) == 0 {
			t.Errorf("%s: %s", path, r.body)
		}
	}
	root.want(204, del, "/principal-roles/engineers/catalog-roles/sales/writers", "")
	root.want(204, del, "/principals/etl/principal-roles/engineers", "")
	root.want(204, del, "/catalogs/sales/catalog-roles/writers", "")
	root.want(204, del, "/principal-roles/engineers", "")
	root.want(204, del, "/principals/etl", "")
	for path, list := range map[string]string{"/catalogs/sales/catalog-roles": "catalog_admin", "/principal-roles": "service_admin", "/principals": "root"} {
		if r := root.want(200, get, path, ""); strings.Count(r.body, `"name"`) != 1 || !strings.Contains(r.body, list) {
			t.Errorf("left in %s: %s", path, r.body)
		}
	}
	if r := member.catalogCall(get, "/sales/namespaces", ""); r.status != 401 {
		t.Errorf("a token of a principal that is gone: %d", r.status)
	}
}

// What makes a warehouse can use it, tables and data included.
func TestWarehouse_ItsCreatorMayUseIt(t *testing.T) {
	o := newOffice(t)
	o.open("lake")
	root := o.admin()
	if r := root.catalogCall(post, "/lake/namespaces", `{"namespace":["a"]}`); r.status != 200 {
		t.Errorf("%d %s", r.status, r.body)
	}
	if r := root.catalogCall(post, "/lake/namespaces/a/tables", tableBody); r.status != 200 {
		t.Errorf("%d %s", r.status, r.body)
	}
	r := root.want(200, get, "/catalogs/lake/catalog-roles/catalog_admin/grants", "")
	for _, privilege := range []string{"CATALOG_MANAGE_ACCESS", "CATALOG_MANAGE_METADATA", "CATALOG_MANAGE_CONTENT"} {
		if !strings.Contains(r.body, privilege) {
			t.Errorf("catalog_admin lacks %s: %s", privilege, r.body)
		}
	}
	r = root.want(409, del, "/catalogs/lake", "")
	if r.at(t, "error", "type") != "NamespaceNotEmptyException" {
		t.Errorf("%s", r.body)
	}
}

// A grant on a view opens that view, over renames, until it is taken back.
func TestGrants_OnViews(t *testing.T) {
	o := newOffice(t)
	o.open("lake")
	root, member := o.admin(), o.login(o.hire("reader", "readers"), "PRINCIPAL_ROLE:ALL")
	o.let("readers", "lake", "CATALOG_READ_PROPERTIES")
	do := func(status int, p *person, method, path, body string) {
		t.Helper()
		if r := p.catalogCall(method, path, body); r.status != status {
			t.Errorf("%s %s: %d %s, want %d", method, path, r.status, r.body, status)
		}
	}
	do(200, root, post, "/lake/namespaces", `{"namespace":["a"]}`)
	do(200, root, post, "/lake/namespaces/a/views", viewText("v"))
	do(200, root, post, "/lake/namespaces/a/views", viewText("w"))
	do(403, member, get, "/lake/namespaces/a/views/v", "")
	const grants = "/catalogs/lake/catalog-roles/readers/grants"
	const grant = `{"grant":{"type":"view","namespace":["a"],"viewName":"v","privilege":"VIEW_READ_PROPERTIES"}}`
	root.want(201, put, grants, grant)
	root.want(404, put, grants, strings.Replace(strings.Replace(grant, `"view"`, `"table"`, 1), `viewName":"v","privilege":"VIEW`, `tableName":"v","privilege":"TABLE`, 1))
	do(200, member, get, "/lake/namespaces/a/views/v", "")
	do(404, member, get, "/lake/namespaces/a/views/w", "")
	do(204, root, post, "/lake/views/rename", `{"source":{"namespace":["a"],"name":"v"},"destination":{"namespace":["a"],"name":"x"}}`)
	if r := root.want(200, get, grants, ""); !strings.Contains(r.body, `"viewName":"x"`) || !strings.Contains(r.body, `"type":"view"`) {
		t.Errorf("grants are %s", r.body)
	}
	do(200, member, get, "/lake/namespaces/a/views/x", "")
	root.want(201, post, grants, strings.Replace(grant, `"v"`, `"x"`, 1))
	do(403, member, get, "/lake/namespaces/a/views/x", "")
}

func TestManage_RefusesWhatCannotBeMeant(t *testing.T) {
	o := newOffice(t)
	o.open("lake")
	root := o.admin()
	root.want(201, post, "/catalogs/lake/catalog-roles", `{"catalogRole":{"name":"r"}}`)
	if r := root.catalogCall(post, "/lake/namespaces", `{"namespace":["a"]}`); r.status != 200 {
		t.Fatal(r.body)
	}
	catalogOf := func(change string) string {
		return strings.Replace(`{"catalog":{"name":"n","properties":{"default-base-location":"file:///n"},"storageConfigInfo":{"storageType":"FILE"}}}`,
			strings.Split(change, "=>")[0], strings.Split(change, "=>")[1], 1)
	}
	long := strings.Repeat("x", 257)
	cases := []struct {
		method, path, body string
		status             int
		says               string
	}{
		{post, "/catalogs", `{}`, 400, "catalog is missing"},
		{post, "/catalogs", `{"catalog":`, 400, "JSON"},
		{post, "/catalogs", `{"catalog":{"name":7}}`, 400, "name"},
		{post, "/catalogs", catalogOf(`"name":"n"=>"name":"n","type":"EXTERNAL"`), 400, "EXTERNAL"},
		{post, "/catalogs", catalogOf(`"name":"n"=>"name":"n","connectionConfigInfo":{"uri":"x"}`), 400, "another server"},
		{post, "/catalogs", catalogOf(`"name":"n"=>"name":"lake"`), 409, "exists"},
		{post, "/catalogs", catalogOf(`"name":"n"=>"name":""`), 400, "empty"},
		{post, "/catalogs", catalogOf(`"name":"n"=>"name":"` + long + `"`), 400, "257"},
		{post, "/catalogs", catalogOf(`"name":"n"=>"name":"a\nb"`), 400, "control"},
		{post, "/catalogs", catalogOf(`"name":"n"=>"name":".."`), 400, ".."},
		{post, "/catalogs", catalogOf(`"name":"n"=>"name":" n"`), 400, "blank"},
		{post, "/catalogs", catalogOf(`"name":"n"=>"name":"SyStEm$x"`), 400, "reserved"},
		{post, "/catalogs", catalogOf(`"name":"n"=>"name":"s3://bucket"`), 400, "location"},
		{post, "/catalogs", catalogOf(`"name":"n"=>"name":"0191d0a4-0000-7000-8000-000000000000"`), 400, "id"},
		{post, "/catalogs", catalogOf(`"default-base-location":"file:///n"=>"x":"y"`), 400, "default-base-location"},
		{post, "/catalogs", catalogOf(`file:///n=>file:///a/../b`), 400, ".."},
		{post, "/catalogs", catalogOf(`file:///n=>file:///lakes/lake/inside`), 400, "overlaps"},
		{post, "/catalogs", catalogOf(`file:///n=>file:///lakes`), 400, "overlaps"},
		{post, "/catalogs", catalogOf(`"storageType":"FILE"=>"storageType":"FILE","allowedLocations":["file:///other"]`), 400, "allowedLocations"},
		{post, "/catalogs", catalogOf(`"storageType":"FILE"=>"storageType":"GCS"`), 400, "GCS"},
		{post, "/catalogs", catalogOf(`"storageType":"FILE"=>"storageType":""`), 400, "storageType"},
		{post, "/catalogs", catalogOf(`"storageType":"FILE"=>"storageType":"FILE","region":"x"`), 400, "region"},
		{post, "/catalogs", catalogOf(`"storageType":"FILE"=>"storageType":"S3"`), 400, "roleArn"},
		{post, "/catalogs", catalogOf(`"storageType":"FILE"=>"storageType":"FILE","storageName":"x"`), 400, "storageName"},
		{post, "/catalogs", catalogOf(`"storageType":"FILE"=>"storageType":"FILE","currentKmsKey":"x"`), 400, "currentKmsKey"},
		{get, "/catalogs/none", "", 404, "none"},
		{del, "/catalogs/none", "", 404, "none"},
		{put, "/catalogs/lake", `{"properties":{}}`, 400, "currentEntityVersion"},
		{put, "/catalogs/lake", `{"currentEntityVersion":7,"properties":{}}`, 409, "currentEntityVersion"},
		{put, "/catalogs/lake", `{"currentEntityVersion":1,"properties":{"default-base-location":"file:///x"}}`, 400, "cannot be changed"},
		{put, "/catalogs/lake", `{"currentEntityVersion":1,"storageConfigInfo":{"storageType":"S3","roleArn":"x"}}`, 400, "storageType"},
		{put, "/catalogs/lake", `{"currentEntityVersion":1,"storageConfigInfo":{"storageType":"FILE","allowedLocations":["file:///x"]}}`, 400, "allowedLocations"},

		{post, "/principals", `{}`, 400, "principal"},
		{post, "/principals", `{"principal":{"name":"root"}}`, 409, "exists"},
		{post, "/principals", `{"principal":{"name":"system:worker"}}`, 400, "reserved"},
		{post, "/principals", `{"principal":{"name":"` + long + `"}}`, 400, "257"},
		{get, "/principals/none", "", 404, "none"},
		{put, "/principals/root", `{"currentEntityVersion":9,"properties":{}}`, 409, "changed"},
		{put, "/principals/none", `{"currentEntityVersion":1}`, 404, "none"},
		{post, "/principals/root/reset", `{"clientSecret":"short"}`, 400, "24"},
		{post, "/principals/root/reset", `{"clientId":"a:b"}`, 400, "client id"},
		{post, "/principals/none/reset", ``, 404, "none"},
		{put, "/principals/root/principal-roles", `{"principalRole":{"name":"none"}}`, 404, "none"},
		{put, "/principals/root/principal-roles", `{"principalRole":{}}`, 400, "name"},
		{put, "/principals/root/principal-roles", `{"catalogRole":{"name":"r"}}`, 400, "principalRole"},
		{del, "/principals/root/principal-roles/none", "", 404, "none"},

		{post, "/principal-roles", `{"principalRole":{"name":"ALL"}}`, 400, "ALL"},
		{post, "/principal-roles", `{"principalRole":{"name":"service_admin"}}`, 409, "exists"},
		{get, "/principal-roles/none", "", 404, "none"},
		{get, "/principal-roles/none/principals", "", 404, "none"},
		{get, "/principal-roles/none/catalog-roles/lake", "", 404, "none"},
		{get, "/principal-roles/service_admin/catalog-roles/none", "", 404, "none"},
		{put, "/principal-roles/service_admin/catalog-roles/lake", `{"catalogRole":{"name":"none"}}`, 404, "none"},
		{del, "/principal-roles/service_admin/catalog-roles/lake/r", "", 404, "does not have"},

		{post, "/catalogs/lake/catalog-roles", `{"catalogRole":{"name":"r"}}`, 409, "exists"},
		{post, "/catalogs/none/catalog-roles", `{"catalogRole":{"name":"r"}}`, 404, "none"},
		{get, "/catalogs/lake/catalog-roles/none", "", 404, "none"},
		{get, "/catalogs/lake/catalog-roles/none/grants", "", 404, "none"},
		{put, "/catalogs/lake/catalog-roles/r/grants", `{}`, 400, "grant"},
		{put, "/catalogs/lake/catalog-roles/r/grants", `{"grant":{"type":"catalog","privilege":"NONE"}}`, 400, "NONE"},
		{put, "/catalogs/lake/catalog-roles/r/grants", `{"grant":{"type":"policy","privilege":"TABLE_LIST"}}`, 400, "policy"},
		{put, "/catalogs/lake/catalog-roles/r/grants", `{"grant":{"type":"root","privilege":"SERVICE_MANAGE_ACCESS"}}`, 400, "root"},
		{put, "/catalogs/lake/catalog-roles/r/grants", `{"grant":{"type":"catalog","privilege":"SERVICE_MANAGE_ACCESS"}}`, 400, "cannot be granted"},
		{put, "/catalogs/lake/catalog-roles/r/grants", `{"grant":{"type":"namespace","privilege":"TABLE_LIST"}}`, 400, "namespace"},
		{put, "/catalogs/lake/catalog-roles/r/grants", `{"grant":{"type":"namespace","namespace":["none"],"privilege":"TABLE_LIST"}}`, 404, "none"},
		{put, "/catalogs/lake/catalog-roles/r/grants", `{"grant":{"type":"table","namespace":["a"],"privilege":"TABLE_LIST"}}`, 400, "tableName"},
		{put, "/catalogs/lake/catalog-roles/r/grants", `{"grant":{"type":"table","namespace":["a"],"tableName":"none","privilege":"TABLE_LIST"}}`, 404, "none"},
		{put, "/catalogs/lake/catalog-roles/r/grants", `{"grant":{"type":"table","namespace":["a"],"tableName":"t","privilege":"NAMESPACE_LIST"}}`, 400, "cannot be granted on a table; it can be on a catalog, a namespace"},
		{put, "/catalogs/lake/catalog-roles/r/grants", `{"grant":{"type":"view","namespace":["a"],"viewName":"v","privilege":"VIEW_LIST"}}`, 404, "a.v"},
		{put, "/catalogs/lake/catalog-roles/none/grants", `{"grant":{"type":"catalog","privilege":"TABLE_LIST"}}`, 404, "none"},
	}
	before := o.count("SELECT count(*) FROM catalogd.events")
	for _, c := range cases {
		r := root.call(c.method, c.path, c.body)
		if r.status != c.status {
			t.Errorf("%s %s %s: %d %s, want %d", c.method, c.path, c.body, r.status, r.body, c.status)
			continue
		}
		if message, _ := r.at(t, "error", "message").(string); !strings.Contains(message, c.says) {
			t.Errorf("%s %s %s: %q does not tell about %q", c.method, c.path, c.body, message, c.says)
		}
	}
	if after := o.count("SELECT count(*) FROM catalogd.events"); after != before {
		t.Errorf("refused requests left %d events", after-before)
	}
}

func TestManage_UpdatesMoveTheVersion(t *testing.T) {
	o := newOffice(t)
	o.open("lake")
	o.hire("etl", "engineers")
	root := o.admin()
	root.want(201, post, "/catalogs/lake/catalog-roles", `{"catalogRole":{"name":"r"}}`)
	for _, path := range []string{"/catalogs/lake", "/principals/etl", "/principal-roles/engineers", "/catalogs/lake/catalog-roles/r"} {
		r := root.want(200, put, path, `{"currentEntityVersion":1,"properties":{"k":"v"}}`)
		if r.at(t, "entityVersion") != 2.0 || r.at(t, "properties", "k") != "v" {
			t.Errorf("%s: %s", path, r.body)
		}
		if again := root.want(200, get, path, ""); again.body != r.body {
			t.Errorf("%s: read %s, answered %s", path, again.body, r.body)
		}
		root.want(409, put, path, `{"currentEntityVersion":1,"properties":{}}`)
		r = root.want(200, put, path, `{"currentEntityVersion":2}`)
		if r.at(t, "properties", "k") != "v" {
			t.Errorf("%s: properties that were not sent are gone: %s", path, r.body)
		}
	}
	// The base location comes back as it was read; storage may grow.
	root.want(200, put, "/catalogs/lake", `{"currentEntityVersion":3,"properties":{"default-base-location":"file:///lakes/lake"},
		"storageConfigInfo":{"storageType":"FILE","allowedLocations":["file:///lakes/lake","file:///more"]}}`)
	if r := root.want(200, get, "/catalogs/lake", ""); !strings.Contains(r.body, "file:///more") || r.at(t, "properties", "k") != nil {
		t.Errorf("%s", r.body)
	}
}

// Nobody can be locked out of the service by accident.
func TestManage_GuardRails(t *testing.T) {
	o := newOffice(t)
	o.open("lake")
	root := o.admin()
	for _, path := range []string{
		"/principals/root", "/principal-roles/service_admin", "/catalogs/lake/catalog-roles/catalog_admin", "/principals/root/principal-roles/service_admin",
	} {
		r := root.want(400, del, path, "")
		if r.at(t, "error", "type") != "IllegalArgumentException" {
			t.Errorf("%s: %s", path, r.body)
		}
	}
	second := o.hire("second", "service_admin")
	root.want(204, del, "/principals/root/principal-roles/service_admin", "")
	root.want(403, get, "/principals", "")
	other := o.login(second, "")
	other.want(200, get, "/principals", "")
	other.want(400, del, "/principals/second", "")
	// Bootstrap gives root its role back.
	if _, err := o.service.Bootstrap(t.Context(), catalog.Bootstrap{Accounts: o.store}); err != nil {
		t.Fatal(err)
	}
	root.want(200, get, "/principals", "")
	other.want(204, del, "/principals/second", "")
}

// A warehouse's administrator administers its roles, and nothing beside.
func TestManage_WarehouseAdministrator(t *testing.T) {
	o := newOffice(t)
	o.open("lake")
	o.open("pond")
	credential := o.hire("warden", "wardens")
	o.let("wardens", "lake", "CATALOG_MANAGE_ACCESS")
	warden := o.login(credential, "")
	warden.want(201, post, "/catalogs/lake/catalog-roles", `{"catalogRole":{"name":"readers"}}`)
	warden.want(201, put, "/catalogs/lake/catalog-roles/readers/grants", `{"grant":{"type":"catalog","privilege":"TABLE_READ_DATA"}}`)
	warden.want(201, put, "/principal-roles/wardens/catalog-roles/lake", `{"catalogRole":{"name":"readers"}}`)
	warden.want(200, get, "/principal-roles/wardens/catalog-roles/lake", "")
	warden.want(200, get, "/catalogs/lake/catalog-roles/readers/principal-roles", "")
	warden.want(204, del, "/catalogs/lake/catalog-roles/readers", "")
	for _, c := range [][3]string{
		{get, "/catalogs", ""}, {post, "/catalogs", fileCatalog("new", "file:///new")}, {del, "/catalogs/lake", ""},
		{get, "/principals", ""}, {get, "/principals/root", ""}, {get, "/principals/none", ""}, {get, "/principal-roles", ""},
		{post, "/principal-roles", `{"principalRole":{"name":"x"}}`},
		{get, "/catalogs/pond/catalog-roles", ""}, {post, "/catalogs/pond/catalog-roles", `{"catalogRole":{"name":"x"}}`},
		{put, "/catalogs/pond/catalog-roles/catalog_admin/grants", `{"grant":{"type":"catalog","privilege":"TABLE_READ_DATA"}}`},
		{put, "/principal-roles/wardens/catalog-roles/pond", `{"catalogRole":{"name":"catalog_admin"}}`},
		{put, "/principals/warden/principal-roles", `{"principalRole":{"name":"service_admin"}}`},
	} {
		warden.want(403, c[0], c[1], c[2])
	}
	// He knows himself.
	warden.want(200, get, "/principals/warden", "")
	warden.want(200, get, "/principals/warden/principal-roles", "")
}

// Odd names survive the trip through paths.
func TestManage_OddNames(t *testing.T) {
	o := newOffice(t)
	root := o.admin()
	for name, escaped := range map[string]string{
		"a b": "a%20b", "a/b": "a%2Fb", "a+b": "a%2Bb", "prüfung": "pr%C3%BCfung", "a%2Fb": "a%252Fb", `q"'\`: "q%22%27%5C", "config": "config",
	} {
		root.want(201, post, "/principals", `{"principal":{"name":`+quote(name)+`}}`)
		if r := root.want(200, get, "/principals/"+escaped, ""); r.at(t, "name") != name {
			t.Errorf("%q: %s", name, r.body)
		}
		root.want(201, post, "/catalogs", fileCatalog(name, "file:///odd/"+escaped[:1]+strings.Repeat("x", len(name))+"-"+strings.Map(plain, name)))
		root.want(200, get, "/catalogs/"+escaped, "")
		root.want(204, del, "/catalogs/"+escaped, "")
		root.want(204, del, "/principals/"+escaped, "")
	}
}

func plain(r rune) rune {
	if r >= 'a' && r <= 'z' {
		return r
	}
	return '-'
}
