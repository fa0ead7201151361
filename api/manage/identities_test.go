package manage_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
)

// linkBody names a subject of a provider.
func linkBody(issuer, subject string) string {
	return `{"issuer":` + quote(issuer) + `,"subject":` + quote(subject) + `}`
}

func unlinkPath(principal, issuer, subject string) string {
	return "/principals/" + principal + "/identities?" + url.Values{"issuer": {issuer}, "subject": {subject}}.Encode()
}

// An administrator links a subject to a principal that is there: the subject's tokens are the principal's, also those that came before,
// and end with the link. Nobody is made beside.
func TestIdentities_ASubjectIsLinkedByHand(t *testing.T) {
	o, idp := federated(t)
	root := o.admin()
	o.hire("etl", "engineers")
	root.want(204, put, "/principal-roles/engineers/service-privileges/CATALOG_LIST", "")
	before := o.count(`SELECT count(*) FROM principals`)
	r := root.want(201, post, "/principals/etl/identities", linkBody(idp.URL, "job/7"))
	if r.at(t, "issuer") != idp.URL || r.at(t, "subject") != "job/7" || r.at(t, "linkedAt") == nil {
		t.Errorf("linked: %s", r.body)
	}
	if r := root.want(409, post, "/principals/root/identities", linkBody(idp.URL, "job/7")); !strings.Contains(r.body, "the subject is etl already") {
		t.Errorf("linked twice: %s", r.body)
	}
	raw := idp.Token("job/7", map[string]any{"preferred_username": "etl"})
	bearer := o.with(raw)
	exchanged := o.tokenOf(o.exchanged(url.Values{"grant_type": {exchangeGrant}, "subject_token": {raw}}, ""))
	for name, job := range map[string]*person{"the provider's token": bearer, "ours": exchanged} {
		r := job.want(200, get, "/whoami", "")
		if r.at(t, "name") != "etl" || r.at(t, "issuer") != idp.URL || r.at(t, "subject") != "job/7" || job.active() != `["engineers"]` {
			t.Errorf("%s is %s", name, r.body)
		}
		job.want(200, get, "/catalogs", "")
		job.want(200, get, "/principals/etl/identities", "")
	}
	if now := o.count(`SELECT count(*) FROM principals`); now != before {
		t.Errorf("there were %d principals and are %d", before, now)
	}
	// What is revoked may be the provider's, and stays so for as long as that may be good.
	root.want(204, post, "/principals/etl/revoke-tokens", `{"tokenId":"somebody's"}`)
	if o.count(`SELECT count(*) FROM revoked_tokens WHERE expires_at > now() + interval '5 years'`) != 1 {
		t.Error("the revocation of a linked subject's token ends before the token may")
	}
	root.want(404, del, unlinkPath("etl", idp.URL, "job"), "")
	root.want(204, del, unlinkPath("etl", idp.URL, "job/7"), "")
	for name, job := range map[string]*person{"the provider's token": bearer, "ours": exchanged} {
		if r := job.call(get, "/whoami", ""); r.status != 401 || !strings.Contains(r.body, "no longer linked") {
			t.Errorf("%s of an unlinked subject: %d %s", name, r.status, r.body)
		}
	}
	if r := root.want(200, get, "/principals/etl/identities", ""); !strings.Contains(r.body, `"identities":[]`) {
		t.Errorf("left: %s", r.body)
	}
	if n := o.count(`SELECT count(*) FROM audit WHERE operation IN ('link-identity', 'unlink-identity') AND allowed`); n != 2 {
		t.Errorf("%d changes in the audit", n)
	}
	own := o.login(o.hire("ann"), "").want(200, get, "/whoami", "")
	for _, absent := range []string{"issuer", "subject", "actor"} {
		if strings.Contains(own.body, `"`+absent+`"`) {
			t.Errorf("%s of who signed in here: %s", absent, own.body)
		}
	}
}

// Nobody becomes somebody else by a link: it takes the right to reset secrets, and of oneself one's own credential.
func TestIdentities_WhoMayLink(t *testing.T) {
	o := newOffice(t)
	root := o.admin()
	helper := o.hire("helper", "helpdesk")
	root.want(204, put, "/principal-roles/helpdesk/service-privileges/PRINCIPAL_RESET_CREDENTIALS", "")
	ann, desk, narrowed := o.login(o.hire("ann"), ""), o.login(helper, ""), o.login(helper, "PRINCIPAL_ROLE:helpdesk")
	const idp = "https://idp"
	for _, name := range []string{"ann", "helper", "nobody"} {
		for _, call := range [][3]string{{post, "/principals/" + name + "/identities", linkBody(idp, "s")}, {del, unlinkPath(name, idp, "s"), ""}} {
			if r := ann.want(403, call[0], call[1], call[2]); strings.Contains(r.body, "exist") {
				t.Errorf("%v tells %s", call, r.body)
			}
		}
	}
	ann.want(200, get, "/principals/ann/identities", "")
	ann.want(403, get, "/principals/helper/identities", "")
	desk.want(404, post, "/principals/nobody/identities", linkBody(idp, "s"))
	narrowed.want(201, post, "/principals/ann/identities", linkBody(idp, "s"))
	if r := narrowed.want(403, post, "/principals/helper/identities", linkBody(idp, "t")); !strings.Contains(r.body, "PRINCIPAL_ROLE:ALL") {
		t.Errorf("no remedy in %s", r.body)
	}
	desk.want(201, post, "/principals/helper/identities", linkBody(idp, "t"))
	narrowed.want(403, del, unlinkPath("helper", idp, "t"), "")
	desk.want(204, del, unlinkPath("helper", idp, "t"), "")
	long := strings.Repeat("s", 256)
	for _, bad := range []string{
		`{}`, linkBody(idp, ""), linkBody("", "s"), linkBody("idp", "s"), linkBody(idp, " s"), linkBody(idp, "a\x00b"), linkBody(idp, long),
		linkBody("https://"+strings.Repeat("i", 2048), "s"),
	} {
		root.want(400, post, "/principals/ann/identities", bad)
	}
	root.want(400, del, "/principals/ann/identities", "")
	root.want(204, del, "/principals/ann", "")
	if n := o.count("SELECT count(*) FROM catalogd.federated_identities"); n != 0 {
		t.Errorf("%d subjects of nobody", n)
	}
}

// What a principal role holds on the service is listed, by who may list the grants of roles.
func TestServicePrivileges_AreListed(t *testing.T) {
	o := newOffice(t)
	root := o.admin()
	ann := o.login(o.hire("ann", "engines"), "")
	held := func(role string) string {
		var answer struct{ Privileges []string }
		if err := json.Unmarshal([]byte(root.want(200, get, "/principal-roles/"+role+"/service-privileges", "").body), &answer); err != nil {
			t.Fatal(err)
		}
		return strings.Join(answer.Privileges, " ")
	}
	if got := held("engines"); got != "" {
		t.Errorf("a new role holds %s", got)
	}
	for _, privilege := range []string{"PRINCIPAL_IMPERSONATE", "CATALOG_LIST"} {
		root.want(204, put, "/principal-roles/engines/service-privileges/"+privilege, "")
	}
	if got := held("engines"); got != "CATALOG_LIST PRINCIPAL_IMPERSONATE" {
		t.Errorf("it holds %s", got)
	}
	if got := held("service_admin"); got != "SERVICE_MANAGE_ACCESS" {
		t.Errorf("administrators hold %s", got)
	}
	root.want(404, get, "/principal-roles/nobody/service-privileges", "")
	ann.want(403, get, "/principal-roles/engines/service-privileges", "")
	ann.want(403, get, "/principal-roles/nobody/service-privileges", "")
}
