package manage_test

import (
	"strings"
	"testing"

	"catalogd/api"
	"catalogd/api/manage"
)

// Everybody without rights is refused, whatever he asks for, and nothing is written but the refusals.
func TestField_C153_DenyAll(t *testing.T) {
	o := newOffice(t)
	o.oneTable()
	o.hire("etl", "engineers")
	nobody := o.login(o.hire("nobody", "nobodies"), "")
	narrowed := o.login(o.root, "") // root without its role
	narrowed.token = o.login(o.hire("halfadmin", "service_admin", "clerks"), "PRINCIPAL_ROLE:clerks").token
	gone := o.login(o.hire("gone", "service_admin"), "")
	gone.want(204, post, "/principals/gone/revoke-tokens", "")
	bodies := map[string]string{
		"create-warehouse": fileCatalog("new", "file:///new"), "create-principal": `{"principal":{"name":"x"}}`,
		"create-principal-role": `{"principalRole":{"name":"x"}}`, "create-catalog-role": `{"catalogRole":{"name":"x"}}`,
		"assign-principal-role": `{"principalRole":{"name":"service_admin"}}`, "assign-catalog-role": `{"catalogRole":{"name":"catalog_admin"}}`,
		"create-personal-token": `{"name":"x"}`, "add-principal-key": `{"key":{}}`, "link-identity": `{"issuer":"https://idp","subject":"x"}`,
		"add-grant":     `{"grant":{"type":"table","namespace":["a"],"tableName":"t","privilege":"TABLE_READ_DATA"}}`,
		"change-grants": `{"changes":[{"action":"revoke","catalogRole":"reader","grant":{"type":"table","namespace":["a"],"tableName":"t","privilege":"TABLE_READ_DATA"}}]}`,
		"revoke-grant":  `{"grant":{"type":"table","namespace":["a"],"tableName":"none","privilege":"TABLE_READ_DATA"}}`,
		"set-owner":     `{"owner":"etl"}`, "set-maintenance": `{"settings":{"enabled":"true"}}`, "run-maintenance": `{"job":"compaction"}`,
		"can-i": `{"principal":"etl","questions":[{"privilege":"TABLE_READ_DATA","securable":{"catalog":"lake","namespace":["a"],"table":"t"}}]}`,
	}
	bodies["create-webhook"], bodies["update-webhook"] = `{"url":"https://hooks.example.com","catalog":"lake"}`, `{"enabled":false}`
	hook, _ := o.admin().want(201, post, "/webhooks", bodies["create-webhook"]).at(t, "webhook", "id").(string)
	queries := map[string]string{"who-can": "?privilege=TABLE_READ_DATA&catalog=lake&namespace=a&table=t"}
	before := o.count("SELECT count(*) FROM catalogd.events")
	denials := o.count("SELECT count(*) FROM catalogd.audit WHERE NOT allowed AND principal <> 'gone'")
	asked := 0
	for _, e := range manage.Endpoints(manage.Config{}) {
		if e.Operation == "load-job" || e.Operation == "retry-job" {
			continue // of a job that is not there: jobs_test.go
		}
		if !strings.HasPrefix(e.Pattern, api.ManagementBase) {
			continue // Polaris' calls of the catalog: policies_test.go
		}
		path := strings.NewReplacer("/api/management/v1", "", "{catalog}", "lake", "{namespace}", "a", "{table}", "t",
			"{webhook}", hook, "{principal}", "etl", "{role}", "engineers", "{catalogRole}", "catalog_admin", "{privilege}", "PRINCIPAL_IMPERSONATE").Replace(e.Pattern) + queries[e.Operation]
		stranger := &person{o, ""}
		ended := func(body string) { // whose token was revoked
			if r := gone.call(e.Method, path, body); r.status != 401 || !strings.Contains(r.body, "revoked") {
				t.Errorf("%s %s with a revoked token: %d %s", e.Method, path, r.status, r.body)
			}
		}
		if e.Operation == "who-am-i" { // everybody who is signed in may know who he is
			stranger.want(401, e.Method, path, "")
			ended("")
			continue
		}
		body := bodies[e.Operation]
		if body == "" && e.Method == put {
			body = `{"currentEntityVersion":1,"properties":{}}`
		}
		ended(body)
		for _, p := range []*person{nobody, narrowed} {
			asked++
			if r := p.call(e.Method, path, body); r.status != 403 || r.at(t, "error", "type") != "ForbiddenException" {
				t.Errorf("%s %s: %d %s", e.Method, path, r.status, r.body)
			}
		}
		if r := stranger.call(e.Method, path, body); r.status != 401 {
			t.Errorf("%s %s by a stranger: %d", e.Method, path, r.status)
		}
	}
	if after := o.count("SELECT count(*) FROM catalogd.events"); after != before {
		t.Errorf("%d events by callers without rights", after-before)
	}
	if o.count("SELECT count(*) FROM catalogd.audit WHERE NOT allowed AND principal = 'gone'") == 0 {
		t.Error("nothing tells of the revoked token")
	}
	if got := o.count("SELECT count(*) FROM catalogd.audit WHERE NOT allowed AND principal <> 'gone'") - denials; got != asked {
		t.Errorf("%d refusals, %d in the audit", asked, got)
	}
}

// Without rights, what is there and what is not look the same; with a right on the parent, a miss is a miss.
func TestField_C154_MissingAndHiddenLookTheSame(t *testing.T) {
	o := newOffice(t)
	o.open("lake")
	nobody, root := o.login(o.hire("nobody"), ""), o.admin()
	for _, pair := range [][2]string{
		{"/principals/root", "/principals/none"}, {"/principal-roles/service_admin", "/principal-roles/none"},
		{"/catalogs/lake/catalog-roles/catalog_admin", "/catalogs/lake/catalog-roles/none"},
		{"/principals/root/principal-roles", "/principals/none/principal-roles"},
	} {
		for range 2 {
			there, missing := nobody.call(get, pair[0], ""), nobody.call(get, pair[1], "")
			if there.status != 403 || missing.status != 403 {
				t.Errorf("%v: %d and %d", pair, there.status, missing.status)
			}
		}
		if r := root.call(get, pair[1], ""); r.status != 404 {
			t.Errorf("%s for an administrator: %d", pair[1], r.status)
		}
	}
}
