package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// managementCall is one request of Polaris' management API, and what must come back.
type managementCall struct {
	method, path, body string
	status             int
	what               string   // about the request, for the table; "" is the plain one
	fields             []string // that the answer must have, dotted
}

// management sends requests as the root principal, in order, and notes the answers.
type management struct {
	t       *testing.T
	front   *front
	token   string
	results map[string][]string // answers by call
}

// A catalog with everything in it, by Polaris' calls alone, and each refusal that a script may meet.
func TestSmoke_PolarisManagementCalls(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := startDev(t, filepath.Join(dir, "data"), nil)
	t.Cleanup(s.stop)
	m := &management{t: t, front: newFront(t, s), token: s.rest(t).token, results: map[string][]string{}}
	for _, calls := range [][]managementCall{catalogCalls("file://" + dir), principalCalls(), roleCalls()} {
		m.sendAll(calls)
	}
	if status, body := s.rest(t).call(post, "/lake/namespaces", json.RawMessage(`{"namespace":["raw"]}`)); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	tableAndView(t, s)
	m.sendAll(grantCalls())
	m.sendAll(dropCalls())
	held := &table{corner: "call", columns: []string{"answers"}, cells: map[[2]string]string{}}
	for _, call := range slices.Sorted(maps.Keys(m.results)) {
		slices.Sort(m.results[call])
		held.rows = append(held.rows, call)
		held.cells[[2]string{call, "answers"}] = strings.Join(m.results[call], "; ")
	}
	holdTable(t, "management", held)
}

func (m *management) sendAll(calls []managementCall) {
	m.t.Helper()
	for _, c := range calls {
		m.send(c)
	}
}

func (m *management) send(c managementCall) {
	m.t.Helper()
	request, err := http.NewRequest(c.method, m.front.url+"/api/management/v1"+c.path, strings.NewReader(c.body))
	if err != nil {
		m.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+m.token)
	if c.body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		m.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		m.t.Fatal(err)
	}
	if answer.StatusCode != c.status {
		m.t.Errorf("%s %s %s: %d %s, want %d", c.method, c.path, c.body, answer.StatusCode, body, c.status)
	}
	m.has(c, body)
	said := strconv.Itoa(answer.StatusCode)
	if c.what != "" {
		said += " " + c.what
	}
	for _, call := range m.front.taken(m.t) {
		if !slices.Contains(m.results[call], said) {
			m.results[call] = append(m.results[call], said)
		}
	}
}

// has fails for each field that the answer lacks.
func (m *management) has(c managementCall, body []byte) {
	m.t.Helper()
	for _, field := range c.fields {
		var at any
		if err := json.Unmarshal(body, &at); err != nil {
			m.t.Errorf("%s %s: %q is not JSON", c.method, c.path, body)
			return
		}
		for _, name := range strings.Split(field, ".") {
			if list, ok := at.([]any); ok && len(list) > 0 {
				at = list[0]
			}
			object, _ := at.(map[string]any)
			at = object[name]
		}
		if at == nil {
			m.t.Errorf("%s %s: no %s in %s", c.method, c.path, field, body)
		}
	}
}

// entityFields are what Polaris' scripts read of everything that has a version.
func entityFields(below string, more ...string) []string {
	all := append(more, "name", "createTimestamp", "lastUpdateTimestamp", "entityVersion", "properties")
	for i, name := range all {
		all[i] = below + name
	}
	return all
}

const (
	get, post, put, del = http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete
	storageS3           = `{"storageType":"S3","roleArn":"arn:aws:iam::123456789012:role/lake","externalId":"x","region":"us-east-1","allowedLocations":["s3://bucket/cloud"],` +
		`"endpoint":"http://127.0.0.1:9","endpointInternal":"http://127.0.0.1:9","stsEndpoint":"http://127.0.0.1:9","stsUnavailable":false,"pathStyleAccess":true,` +
		`"kmsUnavailable":false,"userArn":"arn:aws:iam::123456789012:user/u"}`
)

func newCatalog(name, location, storage, more string) string {
	return fmt.Sprintf(`{"catalog":{"type":"INTERNAL","name":%q,"properties":{"default-base-location":%q},"storageConfigInfo":%s%s}}`, name, location, storage, more)
}

// versioned are the answers of an update to right and wrong versions of an entity that was never changed.
func versioned(path string) []managementCall {
	return []managementCall{
		{put, path, `{"currentEntityVersion":1,"properties":{"k":"v"}}`, 200, "", entityFields("")},
		{put, path, `{"currentEntityVersion":1,"properties":{"k":"w"}}`, 409, "for another currentEntityVersion", nil},
		{put, path, `{"properties":{}}`, 400, "without currentEntityVersion", nil},
		{put, path, `{"currentEntityVersion":"2","properties":{}}`, 400, "for a wrong type", nil},
		{put, path + "-none", `{"currentEntityVersion":1,"properties":{}}`, 404, "for none such", nil},
		{get, path, "", 200, "", entityFields("")},
		{get, path + "-none", "", 404, "for none such", nil},
		{del, path + "-none", "", 404, "for none such", nil},
	}
}

func catalogCalls(base string) []managementCall {
	file := `{"storageType":"FILE"}`
	calls := []managementCall{
		{post, "/catalogs", newCatalog("lake", base+"/lake", file, `,"unknown":{"x":1}`), 201, "", entityFields("", "type", "storageConfigInfo.storageType", "storageConfigInfo.allowedLocations")},
		{post, "/catalogs", newCatalog("cloud", "s3://bucket/cloud", storageS3, ""), 201, "", entityFields("", "storageConfigInfo.roleArn", "storageConfigInfo.externalId", "storageConfigInfo.region", "storageConfigInfo.endpoint", "storageConfigInfo.stsEndpoint", "storageConfigInfo.userArn")},
		{post, "/catalogs", newCatalog("lake", base+"/other", file, ""), 409, "for a name that is taken", nil},
		{post, "/catalogs", newCatalog("within", base+"/lake/within", file, ""), 400, "for a place within another's", nil},
		{post, "/catalogs", newCatalog("SYSTEM$x", base+"/x", file, ""), 400, "for a reserved name", nil},
		{post, "/catalogs", newCatalog(strings.Repeat("n", 257), base+"/x", file, ""), 400, "for a name of 257 letters", nil},
		{post, "/catalogs", newCatalog("named", base+"/named", `{"storageType":"FILE","storageName":"n"}`, ""), 400, "for a storageName", nil},
		{post, "/catalogs", newCatalog("keys", "s3://bucket/keys", `{"storageType":"S3","roleArn":"arn:aws:iam::123456789012:role/lake","currentKmsKey":"k"}`, ""), 400, "for KMS keys", nil},
		{post, "/catalogs", newCatalog("blue", "abfss://c@a/", `{"storageType":"AZURE","tenantId":"t"}`, ""), 400, "for AZURE, GCS", nil},
		{post, "/catalogs", strings.Replace(newCatalog("far", base+"/far", file, ""), "INTERNAL", "EXTERNAL", 1), 400, "for EXTERNAL", nil},
		{post, "/catalogs", newCatalog("far", base+"/far", file, `,"connectionConfigInfo":{"connectionType":"ICEBERG_REST","uri":"http://127.0.0.1:9"}`), 400, "for a connectionConfigInfo", nil},
		{post, "/catalogs", `{"catalog":{"name":"x"}}`, 400, "without a part that it needs", nil},
		{post, "/catalogs", `{"catalog":{"name":7}}`, 400, "for a wrong type", nil},
		{post, "/catalogs", `{`, 400, "for what is no JSON", nil},
		{get, "/catalogs", "", 200, "", []string{"catalogs.name", "catalogs.entityVersion"}},
		{put, "/catalogs/cloud", `{"currentEntityVersion":1,"storageConfigInfo":` + strings.Replace(storageS3, `"s3://bucket/cloud"`, `"s3://bucket/cloud","s3://bucket/more"`, 1) + `}`, 200, "", nil},
		{put, "/catalogs/cloud", `{"currentEntityVersion":2,"storageConfigInfo":` + strings.Replace(storageS3, "role/lake", "role/other", 1) + `}`, 400, "for another role, tenant or external id", nil},
		{put, "/catalogs/cloud", `{"currentEntityVersion":2,"properties":{"default-base-location":"s3://bucket/elsewhere"}}`, 400, "for another base", nil},
	}
	return append(calls, versioned("/catalogs/lake")...)
}

func principalCalls() []managementCall {
	created := append(entityFields("principal.", "clientId"), "credentials.clientId", "credentials.clientSecret")
	calls := []managementCall{
		{post, "/principals", `{"principal":{"name":"ann","clientId":"ignored","properties":{"a":"b"},"type":"SERVICE"},"credentialRotationRequired":false}`, 201, "", created},
		{post, "/principals", `{"principal":{"name":"must","properties":{}},"credentialRotationRequired":true}`, 201, "", created},
		{post, "/principals", `{"principal":{"name":"ann"}}`, 409, "for a name that is taken", nil},
		{post, "/principals", `{"principal":{"name":""}}`, 400, "for a bad name", nil},
		{post, "/principals", `{}`, 400, "without a part that it needs", nil},
		{post, "/principals", `{"principal":{"name":"x","properties":{"a":1}}}`, 400, "for a wrong type", nil},
		{get, "/principals", "", 200, "", []string{"principals.name", "principals.clientId"}},
		{post, "/principals/ann/rotate", "", 200, "", created},
		{post, "/principals/none/rotate", "", 404, "for none such", nil},
		{post, "/principals/ann/reset", `{}`, 200, "", created},
		{post, "/principals/ann/reset", `{"clientId":"ann-chosen","clientSecret":"chosen-secret-of-ann-0123456789"}`, 200, "", created},
		{post, "/principals/ann/reset", `{"clientSecret":"short"}`, 400, "for a weak secret", nil},
		{post, "/principals/must/reset", `{"clientId":"ann-chosen"}`, 409, "for a client id that is taken", nil},
		{post, "/principals/none/reset", `{}`, 404, "for none such", nil},
		{del, "/principals/root", "", 400, "for root", nil},
	}
	calls = append(calls, managementCall{post, "/principals", `{"principal":{"name":"fresh"}}`, 201, "", created})
	return append(calls, versioned("/principals/fresh")...)
}

func roleCalls() []managementCall {
	var calls []managementCall
	for _, kind := range []struct{ path, wrapper string }{{"/principal-roles", "principalRole"}, {"/catalogs/lake/catalog-roles", "catalogRole"}} {
		body := func(name, more string) string { return `{"` + kind.wrapper + `":{"name":"` + name + `"` + more + `}}` }
		calls = append(calls,
			managementCall{post, kind.path, body("r", `,"properties":{"a":"b"}`), 201, "", entityFields("")},
			managementCall{post, kind.path, body("r", ""), 409, "for a name that is taken", nil},
			managementCall{post, kind.path, body("ALL", ""), 400, "for a bad name", nil},
			managementCall{post, kind.path, `{}`, 400, "without a part that it needs", nil},
			managementCall{post, kind.path, body("x", `,"properties":[]`), 400, "for a wrong type", nil},
			managementCall{get, kind.path, "", 200, "", []string{"roles.name", "roles.entityVersion"}},
		)
		calls = append(calls, versioned(kind.path+"/r")...)
	}
	return append(calls,
		managementCall{post, "/catalogs/none/catalog-roles", `{"catalogRole":{"name":"r"}}`, 404, "for none such", nil},
		managementCall{post, "/principal-roles", `{"principalRole":{"name":"outside","federated":true}}`, 201, "", []string{"federated"}},
		managementCall{put, "/principals/ann/principal-roles", `{"principalRole":{"name":"outside"}}`, 400, "for a federated role", nil},
		managementCall{put, "/principals/ann/principal-roles", `{"principalRole":{"name":"r","federated":false}}`, 201, "", nil},
		managementCall{put, "/principals/ann/principal-roles", `{"principalRole":{"name":"none"}}`, 404, "for none such", nil},
		managementCall{put, "/principals/ann/principal-roles", `{}`, 400, "without a part that it needs", nil},
		managementCall{get, "/principals/ann/principal-roles", "", 200, "", []string{"roles.name"}},
		managementCall{get, "/principals/none/principal-roles", "", 404, "for none such", nil},
		managementCall{get, "/principal-roles/r/principals", "", 200, "", []string{"principals.name"}},
		managementCall{get, "/principal-roles/none/principals", "", 404, "for none such", nil},
		managementCall{put, "/principal-roles/r/catalog-roles/lake", `{"catalogRole":{"name":"r"}}`, 201, "", nil},
		managementCall{put, "/principal-roles/r/catalog-roles/lake", `{"catalogRole":{"name":"none"}}`, 404, "for none such", nil},
		managementCall{get, "/principal-roles/r/catalog-roles/lake", "", 200, "", []string{"roles.name"}},
		managementCall{get, "/principal-roles/r/catalog-roles/none", "", 404, "for none such", nil},
		managementCall{get, "/catalogs/lake/catalog-roles/r/principal-roles", "", 200, "", []string{"roles.name"}},
		managementCall{get, "/catalogs/lake/catalog-roles/none/principal-roles", "", 404, "for none such", nil},
		managementCall{del, "/principal-roles/service_admin", "", 400, "for service_admin", nil},
		managementCall{del, "/catalogs/lake/catalog-roles/catalog_admin", "", 400, "for catalog_admin", nil},
	)
}

func grantCalls() []managementCall {
	const grants = "/catalogs/lake/catalog-roles/r/grants"
	var calls []managementCall
	good := []string{
		`{"type":"catalog","privilege":"CATALOG_MANAGE_CONTENT"}`, `{"type":"namespace","namespace":["raw"],"privilege":"NAMESPACE_FULL_METADATA"}`,
		`{"type":"table","namespace":["raw"],"tableName":"t","privilege":"TABLE_WRITE_DATA"}`,
		`{"type":"view","namespace":["raw"],"viewName":"v","privilege":"VIEW_READ_PROPERTIES"}`, `{"type":"table","namespace":["raw"],"tableName":"t","privilege":"SELECT"}`,
	}
	for _, g := range good {
		calls = append(calls, managementCall{put, grants, `{"grant":` + g + `}`, 201, "", nil}, managementCall{put, grants, `{"grant":` + g + `}`, 201, "", nil})
	}
	calls = append(calls, managementCall{get, grants, "", 200, "", []string{"grants.type", "grants.privilege"}},
		managementCall{get, "/catalogs/lake/catalog-roles/none/grants", "", 404, "for none such", nil})
	bad := map[string]string{
		`{"type":"policy","namespace":["raw"],"policyName":"p","privilege":"POLICY_READ"}`: "for a policy", `{"type":"catalog","privilege":"NO_SUCH"}`: "for no privilege",
		`{"type":"table","namespace":["raw"],"tableName":"t","privilege":"CATALOG_CREATE"}`: "for a privilege that is not one there", `{"type":"catalog","privilege":"POLICY_CREATE"}`: "for a policy",
		`{"type":"catalog","privilege":7}`: "for a wrong type", `{"type":"namespace","privilege":"TABLE_LIST"}`: "without a part that it needs", `{"privilege":"TABLE_LIST"}`: "without a part that it needs",
	}
	for _, method := range []string{put, post} {
		for _, g := range slices.Sorted(maps.Keys(bad)) {
			calls = append(calls, managementCall{method, grants, `{"grant":` + g + `}`, 400, bad[g], nil})
		}
		calls = append(calls, managementCall{method, grants, `{"grant":{"type":"table","namespace":["raw"],"tableName":"none","privilege":"TABLE_LIST"}}`, 404, "for none such", nil},
			managementCall{method, grants, `{}`, 400, "without a part that it needs", nil})
	}
	for i, g := range good {
		path := grants + []string{"", "?cascade=false", "?cascade=true"}[i%3]
		calls = append(calls, managementCall{post, path, `{"grant":` + g + `}`, 201, "", nil})
	}
	return append(calls, managementCall{post, grants, `{"grant":` + good[0] + `}`, 201, "", nil})
}

func dropCalls() []managementCall {
	return []managementCall{
		{del, "/catalogs/lake", "", 409, "while it is not empty", nil},
		{del, "/principal-roles/r/catalog-roles/lake/r", "", 204, "", nil},
		{del, "/principal-roles/r/catalog-roles/lake/r", "", 404, "for none such", nil},
		{del, "/principals/ann/principal-roles/r", "", 204, "", nil},
		{del, "/principals/ann/principal-roles/r", "", 404, "for none such", nil},
		{del, "/catalogs/lake/catalog-roles/r", "", 204, "", nil},
		{del, "/principal-roles/r", "", 204, "", nil},
		{del, "/principals/ann", "", 204, "", nil},
		{del, "/principals/ann", "", 404, "for none such", nil},
		{del, "/catalogs/cloud", "", 204, "", nil},
		{get, "/catalogs/cloud", "", 404, "for none such", nil},
	}
}
