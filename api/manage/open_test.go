package manage_test

import (
	"strings"
	"testing"
)

// visit gives a second server over the office's database, which is open as the principal, and who comes there without a token.
func (o *office) visit(principal string) *person {
	o.t.Helper()
	o.openAs = principal
	other := o.branch()
	o.openAs = ""
	return &person{office: other}
}

// Who shows no token works as the principal that the server is open as, is found in the audit so, and changes nothing that lasts longer
// than the server is open.
func TestOpen_VisitorsWorkAndAdministerNothing(t *testing.T) {
	o := newOffice(t)
	o.open("lake")
	trial := o.hire("trial", "visitors")
	o.let("visitors", "lake", "CATALOG_MANAGE_CONTENT")
	visitor := o.visit("trial")

	if r := visitor.want(200, get, "/whoami", ""); r.at(t, "name") != "trial" {
		t.Errorf("whoami %s", r.body)
	}
	for _, path := range []string{"/config?warehouse=lake", "/config"} {
		if r := visitor.catalogCall(get, path, ""); r.status != 200 {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
	if r := visitor.catalogCall(post, "/lake/namespaces", `{"namespace":["a"]}`); r.status != 200 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	audit := o.admin().want(200, get, "/audit?operation=create-namespace", "")
	if !strings.Contains(audit.body, `"principal":"trial"`) || !strings.Contains(audit.body, `"credential":"none"`) {
		t.Errorf("the audit has %s", audit.body)
	}

	token := o.login(trial, "").want(201, post, "/principals/trial/tokens", `{"name":"mine"}`)
	id, _ := token.at(t, "token", "id").(string)
	for _, c := range []struct{ method, path, body string }{
		{post, "/principals/trial/tokens", `{"name":"t"}`},
		{post, "/principals/trial/tokens/" + id + "/rotate", `{}`},
		{del, "/principals/trial/tokens/" + id, ""},
		{post, "/principals/trial/revoke-tokens", `{}`},
		{post, "/principals/trial/rotate", ""},
		{post, "/principals/trial/reset", ""},
		{post, "/principals", `{"principal":{"name":"friend"}}`},
		{post, "/principals/root/reset", ""},
		{put, "/principals/trial/principal-roles", `{"principalRole":{"name":"service_admin"}}`},
		{put, "/catalogs/lake/catalog-roles/visitors/grants", `{"grant":{"type":"catalog","privilege":"CATALOG_MANAGE_ACCESS"}}`},
	} {
		if r := visitor.call(c.method, c.path, c.body); r.status != 403 {
			t.Errorf("%s %s: %d %s", c.method, c.path, r.status, r.body)
		}
	}
	visitor.token = "Bearer wrong"
	if r := visitor.call(get, "/whoami", ""); r.status != 401 {
		t.Errorf("a bad token: %d %s", r.status, r.body)
	}
}

// Nobody is an administrator without a token, whatever the setting says, and however the administrator came by the rights.
func TestOpen_NobodyAdministersWithoutAToken(t *testing.T) {
	o := newOffice(t)
	o.open("lake")
	o.hire("keeper", "keepers")
	o.let("keepers", "lake", "CATALOG_MANAGE_ACCESS")
	for _, c := range []struct{ principal, method, path string }{
		{"root", get, "/api/catalog/v1/config?warehouse=lake"},
		{"root", get, "/api/catalog/v1/config"},
		{"root", get, "/api/catalog/v1/lake/namespaces"},
		{"root", get, "/api/management/v1/whoami"},
		{"root", get, "/api/management/v1/principals"},
		{"root", post, "/api/management/v1/principals/root/revoke-tokens"},
		{"keeper", get, "/api/catalog/v1/lake/namespaces"},
		{"keeper", get, "/api/management/v1/catalogs/lake/catalog-roles"},
	} {
		visitor := o.visit(c.principal)
		if r := visitor.office.send(c.method, c.path, "", "application/json", ""); r.status != 401 || !strings.Contains(r.body, "open to everybody as principal") {
			t.Errorf("%s %s as %s: %d %s", c.method, c.path, c.principal, r.status, r.body)
		}
	}
	if r := o.visit("root").office.admin().call(get, "/principals", ""); r.status != 200 {
		t.Errorf("who signed in as root: %d %s", r.status, r.body)
	}
}

// A token that an open server gave for nothing is found in the audit so, and is worth nothing at the other servers of its database.
func TestOpen_ItsTokensAreWorthNothingElsewhere(t *testing.T) {
	o := newOffice(t)
	o.open("lake")
	o.hire("trial", "visitors")
	o.let("visitors", "lake", "CATALOG_MANAGE_CONTENT")
	visitor := o.visit("trial")
	r := visitor.office.send(post, "/api/catalog/v1/oauth/tokens", "", "application/x-www-form-urlencoded", "grant_type=client_credentials&scope=catalog")
	if r.status != 200 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	token, _ := r.at(t, "access_token").(string)
	visitor.token = "Bearer " + token
	if r := visitor.catalogCall(post, "/lake/namespaces", `{"namespace":["b"]}`); r.status != 200 {
		t.Errorf("%d %s", r.status, r.body)
	}
	if audit := o.admin().want(200, get, "/audit?operation=create-namespace", ""); !strings.Contains(audit.body, `"credential":"none"`) {
		t.Errorf("the audit has %s", audit.body)
	}
	visitor.office = o
	if r := visitor.catalogCall(get, "/lake/namespaces", ""); r.status != 401 {
		t.Errorf("at a server that is not open: %d %s", r.status, r.body)
	}
}
