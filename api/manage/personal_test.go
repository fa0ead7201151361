package manage_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"catalogd/auth"
	"catalogd/catalog"
)

// personal makes a personal access token and gives its id and its text.
func (p *person) personal(principal, body string) (id, text string) {
	p.office.t.Helper()
	r := p.want(201, post, "/principals/"+principal+"/tokens", body)
	id, _ = r.at(p.office.t, "token", "id").(string)
	text, _ = r.at(p.office.t, "secret").(string)
	if r.header.Get("Cache-Control") != "no-store" || id == "" || !strings.HasPrefix(text, "catalogd_pat_") {
		p.office.t.Fatalf("%v %s", r.header, r.body)
	}
	return id, text
}

func (o *office) with(token string) *person { return &person{o, "Bearer " + token} }

func (o *office) exchanged(form url.Values, authorization string) reply {
	return o.send(post, tokenPath, authorization, formType, form.Encode())
}

// A personal access token as bearer, as a credential without an id and exchanged: it is its owner, narrowed to its roles, and
// all that comes of it ends with the next request after its revocation, on another server too.
func TestPersonal_LivesAndDies(t *testing.T) {
	o := newOffice(t)
	ann := o.login(o.hire("ann", "analysts", "writers"), "")
	id, text := ann.personal("ann", `{"name":"laptop","roles":["analysts"],"expiresInDays":7}`)
	bearer := o.with(text)
	roles := func(p *person) string { return fmt.Sprint(p.want(200, get, "/whoami", "").at(t, "activeRoles")) }
	if got := roles(bearer); got != "[analysts]" {
		t.Errorf("as bearer: %s", got)
	}
	sessions := []*person{bearer}
	for name, form := range map[string]url.Values{
		"credential": {"grant_type": {"client_credentials"}, "client_secret": {text}, "scope": {"session:role:ANALYSTS"}},
		"exchange":   {"grant_type": {"urn:ietf:params:oauth:grant-type:token-exchange"}, "subject_token": {text}, "scope": {"catalog"}},
	} {
		r := o.exchanged(form, "")
		if r.status != 200 {
			t.Fatalf("%s: %d %s", name, r.status, r.body)
		}
		access, _ := r.at(t, "access_token").(string)
		if got := roles(o.with(access)); got != "[analysts]" {
			t.Errorf("%s: %s", name, got)
		}
		sessions = append(sessions, o.with(access))
	}
	if r := o.exchanged(url.Values{"grant_type": {"client_credentials"}, "client_secret": {text}, "scope": {"PRINCIPAL_ROLE:writers"}}, ""); r.status != 400 {
		t.Errorf("a role beyond the restriction: %d %s", r.status, r.body)
	}
	if r := ann.want(200, get, "/principals/ann/tokens", ""); strings.Contains(r.body, text) || !strings.Contains(r.body, id) {
		t.Errorf("%s", r.body)
	}
	ann.want(200, get, "/principals/ann/tokens/"+id, "")
	// The text is nowhere in the database.
	if n := o.count("SELECT count(*) FROM catalogd.personal_tokens t, catalogd.events e, catalogd.audit a WHERE t::text || e.details::text || a::text LIKE '%" +
		text[46:80] + "%'"); n > 0 {
		t.Error("the text is in the database")
	}
	branch := o.branch()
	for _, session := range sessions {
		(&person{branch, session.token}).want(200, get, "/whoami", "")
	}
	ann.want(204, del, "/principals/ann/tokens/"+id, "")
	for i, session := range sessions {
		for _, at := range []*office{branch, o} {
			if r := (&person{at, session.token}).want(401, get, "/whoami", ""); !strings.Contains(r.body, "revoked") {
				t.Errorf("session %d: %s", i, r.body)
			}
		}
	}
	ann.want(200, get, "/whoami", "")
	ann.want(404, get, "/principals/ann/tokens/"+id, "")
	ann.want(400, post, "/principals/ann/tokens", `{"name":"short","expiresInDays":0}`)
	ann.want(404, del, "/principals/ann/tokens/nonsense", "")
}

// What a personal access token may not do: replace its owner's secret, register keys, make others, and rotate any but itself, or to a later
// end. So who finds one has no more than that.
func TestPersonal_DoesNotWidenItself(t *testing.T) {
	o := newOffice(t)
	ann := o.login(o.hire("ann", "analysts", "service_admin"), "")
	wideID, wide := ann.personal("ann", `{"name":"wide","networks":["127.0.0.0/8"],"expiresInDays":10}`)
	narrowID, narrow := ann.personal("ann", `{"name":"narrow","roles":["analysts"],"networks":["127.0.0.1/32"],"expiresInDays":5}`)
	obtained, _ := o.exchanged(url.Values{"grant_type": {"client_credentials"}, "client_secret": {wide}}, "").at(t, "access_token").(string)
	for _, c := range []struct {
		token, method, path, body string
		status                    int
	}{
		{wide, post, "/rotate", "", 403},
		{wide, post, "/reset", "", 403},
		{narrow, post, "/rotate", "", 403},
		{wide, post, "/keys", `{"key":` + someKey + `}`, 403},
		{wide, post, "/tokens", `{"name":"a","networks":["127.1.0.0/16"],"expiresInDays":9}`, 403},
		{obtained, post, "/tokens", `{"name":"a","networks":["127.1.0.0/16"],"expiresInDays":1}`, 403},
		{narrow, post, "/tokens", `{"name":"b","networks":["127.0.0.1"],"roles":["analysts"]}`, 403},
		{narrow, post, "/tokens/" + narrowID + "/rotate", `{"expiresInDays":0}`, 400},
		{narrow, post, "/tokens/" + wideID + "/rotate", "", 403},
		{wide, post, "/tokens/" + narrowID + "/rotate", `{"expiresInDays":4}`, 403},
		{narrow, post, "/tokens/" + narrowID + "/rotate", `{"expiresInDays":6}`, 403},
		{narrow, post, "/tokens/" + narrowID + "/rotate", `{"expiresInDays":4}`, 200},
		{obtained, post, "/tokens/" + wideID + "/rotate", `{"overlapHours":1}`, 200},
	} {
		if r := o.with(c.token).call(c.method, "/principals/ann"+c.path, c.body); r.status != c.status {
			t.Errorf("%s %s: %d %s, want %d", c.path, c.body, r.status, r.body, c.status)
		}
	}
	ann.personal("ann", `{"name":"a"}`)
	for body, status := range map[string]int{
		`{"name":"a"}`: 409, `{"name":""}`: 400, `{"name":"x","expiresInDays":366}`: 400, `{"name":"x","expiresInDays":-1}`: 400,
		`{"name":"x","roles":["none"]}`: 400, `{"name":"x","networks":["10.0.0.0/33"]}`: 400, `{"name":"x","networks":["here"]}`: 400,
	} {
		if r := ann.call(post, "/principals/ann/tokens", body); r.status != status {
			t.Errorf("%s: %d %s, want %d", body, r.status, r.body, status)
		}
	}
	bob := o.login(o.hire("bob", "analysts"), "")
	bob.want(403, get, "/principals/ann/tokens", "")
	bob.want(403, post, "/principals/ann/tokens", `{"name":"x"}`)
	bob.want(403, post, "/principals/ann/revoke-tokens", "")
	if id, text := o.admin().personal("bob", `{"name":"of root"}`); !strings.Contains(o.with(text).want(200, get, "/whoami", "").body, `"bob"`) || id == "" {
		t.Error("an administrator's token for another is not the other's")
	}
}

// With its end, what a personal access token is good for ends: itself, as a credential, and what was exchanged for it, on each server.
func TestPersonal_EndsWithItsDays(t *testing.T) {
	o := newOffice(t)
	branch := o.branch()
	ann := o.login(o.hire("ann", "analysts"), "")
	id, text := ann.personal("ann", `{"name":"laptop","expiresInDays":7}`)
	credential := url.Values{"grant_type": {"client_credentials"}, "client_secret": {text}}
	exchange := url.Values{"grant_type": {exchangeGrant}, "subject_token": {text}}
	sessions := []*person{o.with(text), o.tokenOf(o.exchanged(credential, "")), o.tokenOf(o.exchanged(exchange, ""))}
	for _, session := range sessions {
		for _, at := range []*office{o, branch} {
			(&person{at, session.token}).want(200, get, "/whoami", "")
		}
	}
	// Its end comes: the row is the truth, whatever servers remember.
	if n := o.count("WITH moved AS (UPDATE catalogd.personal_tokens SET expires_at = now() - interval '1 second' WHERE id = '" + id +
		"' RETURNING 1) SELECT count(*) FROM moved"); n != 1 {
		t.Fatalf("%d rows moved", n)
	}
	for i, session := range sessions {
		for _, at := range []*office{o, branch} {
			if r := (&person{at, session.token}).call(get, "/whoami", ""); r.status != 401 {
				t.Errorf("session %d after the token's end: %d %s", i, r.status, r.body)
			}
		}
	}
	for name, form := range map[string]url.Values{"credential": credential, "exchange": exchange} {
		if r := o.exchanged(form, ""); r.status < 400 || r.status >= 500 || strings.Contains(r.body, "access_token") {
			t.Errorf("%s after the token's end: %d %s", name, r.status, r.body)
		}
	}
	ann.want(200, get, "/whoami", "")
}

// The old secret is good for its overlap, the new one at once.
func TestPersonal_RotationOverTheWire(t *testing.T) {
	o := newOffice(t)
	ann := o.login(o.hire("ann", "analysts"), "")
	id, first := ann.personal("ann", `{"name":"etl"}`)
	second, _ := ann.want(200, post, "/principals/ann/tokens/"+id+"/rotate", `{"overlapHours":24}`).at(t, "secret").(string)
	o.with(first).want(200, get, "/whoami", "")
	o.with(second).want(200, get, "/whoami", "")
	// Whoever has the old text cannot outlive its overlap.
	o.with(first).want(403, post, "/principals/ann/tokens/"+id+"/rotate", "")
	o.with(first).want(403, post, "/principals/ann/tokens", `{"name":"kept"}`)
	third, _ := o.with(second).want(200, post, "/principals/ann/tokens/"+id+"/rotate", "").at(t, "secret").(string)
	o.with(first).want(401, get, "/whoami", "")
	o.with(second).want(401, get, "/whoami", "")
	o.with(third).want(200, get, "/whoami", "")
	ann.want(400, post, "/principals/ann/tokens/"+id+"/rotate", `{"overlapHours":169}`)
}

// One token by its id, then all of them, then with the personal ones; who signs in again is let in at once.
func TestTokens_AreRevoked(t *testing.T) {
	o := newOffice(t)
	credential := o.hire("ann", "analysts")
	one, two := o.login(credential, ""), o.login(credential, "")
	id, _ := one.want(200, get, "/whoami", "").at(t, "token", "id").(string)
	if id == "" {
		t.Fatal("no token's id")
	}
	two.want(204, post, "/principals/ann/revoke-tokens", `{"tokenId":"`+id+`"}`)
	one.want(401, get, "/whoami", "")
	two.want(200, get, "/whoami", "")
	_, text := two.personal("ann", `{"name":"t"}`)
	obtained, _ := o.exchanged(url.Values{"grant_type": {"client_credentials"}, "client_secret": {text}}, "").at(t, "access_token").(string)
	root := o.admin()
	root.want(204, post, "/principals/ann/revoke-tokens", "")
	two.want(401, get, "/whoami", "")
	o.with(obtained).want(401, get, "/whoami", "")
	o.with(text).want(200, get, "/whoami", "")
	for range 3 {
		again := o.login(credential, "")
		again.want(200, get, "/whoami", "")
		again.want(204, post, "/principals/ann/revoke-tokens", `{"personalAccessTokens":true}`)
		again.want(401, get, "/whoami", "")
	}
	o.with(text).want(401, get, "/whoami", "")
	root.want(404, post, "/principals/none/revoke-tokens", "")

	// The id that the audit has of a personal access token is its own.
	again := o.login(credential, "")
	id, text = again.personal("ann", `{"name":"named"}`)
	obtained, _ = o.exchanged(url.Values{"grant_type": {"client_credentials"}, "client_secret": {text}}, "").at(t, "access_token").(string)
	o.with(obtained).want(200, get, "/whoami", "")
	again.want(204, post, "/principals/ann/revoke-tokens", `{"tokenId":"`+id+`"}`)
	o.with(text).want(401, get, "/whoami", "")
	o.with(obtained).want(401, get, "/whoami", "")
	again.want(404, get, "/principals/ann/tokens/"+id, "")
}

// A policy holds from the next request on, for logins too; one that would lock its maker out wants that said.
func TestNetworks_AreHeldTo(t *testing.T) {
	o := newOffice(t)
	branch := o.branch()
	credential := o.hire("ann", "analysts")
	ann, root := o.login(credential, ""), o.admin()
	elsewhere := &person{branch, ann.token}
	ann.want(200, get, "/whoami", "")
	elsewhere.want(200, get, "/whoami", "")
	root.want(200, put, "/principals/ann/network-policy", `{"allowed":["192.0.2.0/24"],"blocked":[]}`)
	elsewhere.want(401, get, "/whoami", "")
	if r := ann.want(401, get, "/whoami", ""); !strings.Contains(r.body, "127.0.0.1") || !strings.Contains(r.body, "network policy") {
		t.Errorf("%s", r.body)
	}
	if r := o.tryLogin(credential, ""); r.status != 401 || !strings.Contains(r.body, "network policy") {
		t.Errorf("a login: %d %s", r.status, r.body)
	}
	root.want(200, put, "/principals/ann/network-policy", `{"allowed":[],"blocked":[]}`)
	if r := ann.want(200, get, "/principals/ann/network-policy", ""); r.body != "{\"allowed\":[],\"blocked\":[]}" && r.body != "{\"allowed\":[],\"blocked\":[]}\n" {
		t.Errorf("%s", r.body)
	}
	ann.want(403, put, "/principals/ann/network-policy", `{"allowed":[],"blocked":[]}`)
	ann.want(403, get, "/network-policy", "")
	for _, path := range []string{"/network-policy", "/principals/root/network-policy"} {
		if r := root.want(400, put, path, `{"allowed":["192.0.2.0/24"]}`); !strings.Contains(r.body, "lockOut") {
			t.Errorf("%s: %s", path, r.body)
		}
		root.want(200, put, path, `{"allowed":["127.0.0.0/8"],"blocked":["10.0.0.0/8"]}`)
		root.want(400, put, path, `{"blocked":["127.0.0.1"]}`)
		root.want(200, put, path, `{}`)
	}
	root.want(200, put, "/network-policy", `{"blocked":["127.0.0.1"],"lockOut":true}`)
	root.want(401, get, "/network-policy", "")
	elsewhere.want(401, get, "/whoami", "")
}

// Who may give people new secrets does not become administrator by it.
func TestSecrets_HelpersDoNotBecomeAdministrators(t *testing.T) {
	o := newOffice(t)
	root := o.admin()
	helper := o.login(o.hire("helper", "help"), "")
	o.hire("ann")
	o.hire("boss", "service_admin")
	for _, right := range []string{"PRINCIPAL_RESET_CREDENTIALS", "PRINCIPAL_ROTATE_CREDENTIALS"} {
		root.want(204, put, "/principal-roles/help/service-privileges/"+right, "")
	}
	for name, status := range map[string][2]int{"ann": {200, 201}, "root": {403, 403}, "boss": {403, 403}} {
		helper.want(status[0], post, "/principals/"+name+"/rotate", "")
		helper.want(status[0], post, "/principals/"+name+"/reset", "")
		helper.want(status[1], post, "/principals/"+name+"/tokens", `{"name":"mine"}`)
		helper.want(status[1], post, "/principals/"+name+"/identities", linkBody("https://idp", "s-"+name))
	}
	root.want(200, post, "/principals/boss/reset", "")
}

// Who hands out roles gets by it nothing that no grant would give him: what is held on the service is given by who administers it, as a
// privilege, by a role and by another's credentials alike.
func TestRoles_WhoHandsThemOutDoesNotBecomeAdministrator(t *testing.T) {
	o := newOffice(t)
	root := o.admin()
	clerk := o.login(o.hire("clerk", "clerks"), "")
	o.hire("ann", "analysts")
	o.hire("boss", "bosses")
	o.hire("maker", "makers")
	for _, right := range []string{"PRINCIPAL_ROLE_MANAGE_GRANTS_ON_SECURABLE", "PRINCIPAL_MANAGE_GRANTS_FOR_GRANTEE", "PRINCIPAL_MANAGE_GRANTS_ON_SECURABLE",
		"PRINCIPAL_ROLE_MANAGE_GRANTS_FOR_GRANTEE", "PRINCIPAL_FULL_METADATA", "PRINCIPAL_ROLE_FULL_METADATA", "PRINCIPAL_RESET_CREDENTIALS"} {
		root.want(204, put, "/principal-roles/clerks/service-privileges/"+right, "")
	}
	root.want(204, put, "/principal-roles/bosses/service-privileges/PRINCIPAL_LIST", "")
	root.want(204, put, "/principal-roles/makers/service-privileges/CATALOG_FULL_METADATA", "")
	for _, role := range []string{"service_admin", "bosses", "makers", "clerks"} {
		for _, who := range []string{"clerk", "ann"} {
			if r := clerk.want(403, put, "/principals/"+who+"/principal-roles", `{"principalRole":{"name":"`+role+`"}}`); !strings.Contains(r.body, "SERVICE_MANAGE_ACCESS") {
				t.Errorf("%s: %s", role, r.body)
			}
		}
	}
	for _, c := range [][3]string{
		{put, "/principal-roles/clerks/service-privileges/PRINCIPAL_IMPERSONATE", ""},
		{put, "/principal-roles/analysts/service-privileges/CATALOG_CREATE", ""},
		{del, "/principal-roles/bosses/service-privileges/PRINCIPAL_LIST", ""},
		{del, "/principals/root/principal-roles/service_admin", ""},
		{del, "/principals/boss/principal-roles/bosses", ""},
		{del, "/principal-roles/bosses", ""}, {del, "/principals/boss", ""},
		{post, "/principals/maker/reset", ""}, {post, "/principals/maker/tokens", `{"name":"x"}`},
	} {
		if r := clerk.call(c[0], c[1], c[2]); r.status != 403 || !strings.Contains(r.body, "SERVICE_MANAGE_ACCESS") {
			t.Errorf("%s %s: %d %s", c[0], c[1], r.status, r.body)
		}
	}
	// What clerks are for goes on.
	clerk.want(201, put, "/principals/clerk/principal-roles", `{"principalRole":{"name":"analysts"}}`)
	clerk.want(204, del, "/principals/clerk/principal-roles/analysts", "")
	clerk.want(200, post, "/principals/ann/reset", "")
	clerk.want(204, del, "/principals/ann", "")
	root.want(201, put, "/principals/clerk/principal-roles", `{"principalRole":{"name":"bosses"}}`)
}

// The same in a warehouse: catalog_admin is given by who holds CATALOG_MANAGE_ACCESS, by grant and by role.
func TestRoles_WhoHandsThemOutDoesNotTakeTheWarehouse(t *testing.T) {
	o := newOffice(t)
	o.open("lake")
	root := o.admin()
	clerk, keeper := o.login(o.hire("clerk", "clerks"), ""), o.login(o.hire("keeper", "keepers", "readers"), "")
	o.let("clerks", "lake", "CATALOG_ROLE_MANAGE_GRANTS_ON_SECURABLE")
	o.let("keepers", "lake", "OWNERSHIP")
	o.let("readers", "lake", "TABLE_READ_DATA")
	const roles = "/principal-roles/clerks/catalog-roles/lake"
	for _, role := range []string{"catalog_admin", "clerks"} {
		if r := clerk.want(403, put, roles, `{"catalogRole":{"name":"`+role+`"}}`); !strings.Contains(r.body, "CATALOG_MANAGE_ACCESS") {
			t.Errorf("%s: %s", role, r.body)
		}
	}
	clerk.want(403, del, "/principal-roles/service_admin/catalog-roles/lake/catalog_admin", "")
	for _, privilege := range []string{"CATALOG_MANAGE_ACCESS", "CATALOG_ROLE_MANAGE_GRANTS_ON_SECURABLE", "CATALOG_ROLE_FULL_METADATA"} {
		body := `{"grant":{"type":"catalog","privilege":"` + privilege + `"}}`
		if r := keeper.want(403, put, "/catalogs/lake/catalog-roles/keepers/grants", body); !strings.Contains(r.body, "CATALOG_MANAGE_ACCESS") {
			t.Errorf("%s: %s", privilege, r.body)
		}
		many := `{"changes":[{"action":"add","catalogRole":"keepers",` + body[1:len(body)-1] + `}]}`
		if r := keeper.want(403, post, "/catalogs/lake/grants", many); !strings.Contains(r.body, "CATALOG_MANAGE_ACCESS") {
			t.Errorf("%s among many: %s", privilege, r.body)
		}
	}
	keeper.want(201, put, "/catalogs/lake/catalog-roles/readers/grants", `{"grant":{"type":"catalog","privilege":"TABLE_LIST"}}`)
	clerk.want(201, put, roles, `{"catalogRole":{"name":"readers"}}`)
	clerk.want(204, del, roles+"/readers", "")
	root.want(201, put, roles, `{"catalogRole":{"name":"catalog_admin"}}`)
}

// Who administers one warehouse does not learn by it which principal roles there are.
func TestRoles_OfOthersAreNotProbed(t *testing.T) {
	o := newOffice(t)
	o.open("north")
	root := o.admin()
	o.hire("reader", "readers")
	o.let("readers", "north", "TABLE_LIST")
	north := o.login(o.hire("of-north", "north-admins"), "")
	root.want(201, put, "/principal-roles/north-admins/catalog-roles/north", `{"catalogRole":{"name":"catalog_admin"}}`)
	o.hire("of-south", "south-admins")
	for _, c := range [][2]string{{get, ""}, {put, ""}, {del, "/readers"}} {
		there := north.call(c[0], "/principal-roles/south-admins/catalog-roles/north"+c[1], `{"catalogRole":{"name":"readers"}}`)
		missing := north.call(c[0], "/principal-roles/never-admins/catalog-roles/north"+c[1], `{"catalogRole":{"name":"readers"}}`)
		if there.status != missing.status || strings.ReplaceAll(there.body, "south", "never") != missing.body {
			t.Errorf("%s: %d %s, and of a missing one %d %s", c[0], there.status, there.body, missing.status, missing.body)
		}
	}
	north.want(201, put, "/principal-roles/north-admins/catalog-roles/north", `{"catalogRole":{"name":"readers"}}`) // its own
	north.want(204, del, "/principal-roles/readers/catalog-roles/north/readers", "")                                // has one in the warehouse
	if r := north.want(403, put, "/principal-roles/readers/catalog-roles/north", `{"catalogRole":{"name":"readers"}}`); !strings.Contains(r.body, "PRINCIPAL_ROLE_LIST") {
		t.Errorf("%s", r.body)
	}
	root.want(404, put, "/principal-roles/never-admins/catalog-roles/north", `{"catalogRole":{"name":"readers"}}`)
	root.want(404, get, "/principal-roles/never-admins/catalog-roles/north", "")
}

// early signs in at a server whose clock is behind by so much: its token is as old.
func (o *office) early(c catalog.Credential, behind time.Duration) *person {
	o.t.Helper()
	clock := func() time.Time { return time.Now().Add(-behind) }
	tokens := auth.NewTokens(auth.TokensConfig{Accounts: o.store, Keys: auth.NewKeys(o.store, o.ring, nil), Secrets: auth.NewSecrets(o.ring), Now: clock})
	answer, err := tokens.Issue(o.t.Context(), auth.TokenRequest{Form: url.Values{
		"grant_type": {"client_credentials"}, "client_id": {c.ClientID}, "client_secret": {c.Secret.Reveal()},
	}})
	if err != nil {
		o.t.Fatal(err)
	}
	return o.with(answer.AccessToken)
}

// A token that was stolen does not live on: what outlives it is made within minutes of a sign-in alone, and an exchange is none.
func TestPersonal_TakesASignIn(t *testing.T) {
	o, idp := federated(t)
	credential := o.hire("ann", "analysts")
	id, _ := o.login(credential, "").personal("ann", `{"name":"laptop"}`)
	stale, fresh := o.early(credential, auth.SignInFreshMax+time.Second), o.early(credential, auth.SignInFreshMax-time.Minute)
	again := o.tokenOf(o.exchanged(url.Values{"grant_type": {exchangeGrant}, "subject_token": {strings.TrimPrefix(stale.token, "Bearer ")}}, ""))
	for _, p := range []*person{stale, again} {
		p.want(200, get, "/principals/ann", "")
		for _, c := range [][2]string{
			{"/tokens", `{"name":"kept"}`}, {"/tokens", `{"name":"kept","expiresInDays":1}`}, {"/tokens/" + id + "/rotate", ""},
			{"/rotate", ""}, {"/keys", `{"key":` + someKey + `}`},
		} {
			if r := p.call(post, "/principals/ann"+c[0], c[1]); r.status != 403 || !strings.Contains(r.body, "sign in") {
				t.Errorf("%s: %d %s", c[0], r.status, r.body)
			}
		}
	}
	fresh.want(201, post, "/principals/ann/keys", `{"key":`+someKey+`}`)
	fresh.personal("ann", `{"name":"new"}`)
	fresh.want(200, post, "/principals/ann/tokens/"+id+"/rotate", "")
	fresh.want(200, post, "/principals/ann/rotate", "")

	// A provider's token is a sign-in when it was made.
	user := func(issued time.Time) *person {
		return o.with(idp.Token("u-1", map[string]any{"preferred_username": "bob", "iat": issued.Unix()}))
	}
	user(time.Now()).personal("sso:bob", `{"name":"laptop"}`)
	old := user(time.Now().Add(-auth.SignInFreshMax - time.Minute))
	old.want(403, post, "/principals/sso:bob/tokens", `{"name":"more"}`)
	exchanged := o.tokenOf(o.exchanged(url.Values{"grant_type": {exchangeGrant}, "subject_token": {strings.TrimPrefix(old.token, "Bearer ")}}, ""))
	exchanged.want(403, post, "/principals/sso:bob/tokens", `{"name":"more"}`)
}

// Who revokes a token ends what it was exchanged for, and from, on every server; another sign-in goes on.
func TestTokens_AFamilyEndsTogether(t *testing.T) {
	o, idp := federated(t)
	branch := o.branch()
	credential := o.hire("ann", "analysts")
	exchange := func(p *person) *person {
		return o.tokenOf(o.exchanged(url.Values{"grant_type": {exchangeGrant}, "subject_token": {strings.TrimPrefix(p.token, "Bearer ")}}, ""))
	}
	idOf := func(p *person) string {
		id, _ := p.want(200, get, "/whoami", "").at(t, "token", "id").(string)
		return id
	}
	other := o.login(credential, "")
	for name, begin := range map[string]func() *person{
		"a secret": func() *person { return o.login(credential, "") },
		"a provider": func() *person {
			return o.with(idp.Token("u-1", map[string]any{"preferred_username": "bob", "jti": uuid.NewString()}))
		},
		"a provider's long id": func() *person {
			return o.with(idp.Token("u-1", map[string]any{"preferred_username": "bob", "jti": strings.Repeat("j", 90) + uuid.NewString()}))
		},
	} {
		for revoked := range 3 {
			first := begin()
			family := []*person{first, exchange(first), nil}
			family[2] = exchange(family[1])
			who, _ := first.want(200, get, "/whoami", "").at(t, "name").(string)
			o.admin().want(204, post, "/principals/"+who+"/revoke-tokens", `{"tokenId":"`+idOf(family[revoked])+`"}`)
			for i, p := range family {
				for _, at := range []*office{o, branch} {
					if r := (&person{at, p.token}).call(get, "/whoami", ""); r.status != 401 {
						t.Errorf("%s: token %d after the revocation of %d: %d", name, i, revoked, r.status)
					}
				}
				if r := o.exchanged(url.Values{"grant_type": {exchangeGrant}, "subject_token": {strings.TrimPrefix(p.token, "Bearer ")}}, ""); r.status == 200 {
					t.Errorf("%s: token %d was exchanged after the revocation of %d", name, i, revoked)
				}
			}
		}
	}
	other.want(200, get, "/whoami", "")
}
