package manage_test

import (
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
	"testing"

	"catalogd/auth/external"
	"catalogd/internal/oidctest"
)

const exchangeGrant = "urn:ietf:params:oauth:grant-type:token-exchange"

// federated gives an office that takes a provider's tokens.
func federated(t *testing.T) (*office, *oidctest.Issuer) {
	t.Helper()
	o, idp := newOffice(t), oidctest.New(t, "ES256")
	issuers, err := external.New(external.Settings{Issuers: []external.Config{{
		URL: idp.URL, Audiences: []string{"catalogd"}, GroupsClaim: "groups", NamePrefix: "sso:", CreatePrincipals: true,
	}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(issuers.Close)
	o.issuers = issuers
	o.serve()
	return o, idp
}

func (o *office) tokenOf(r reply) *person {
	o.t.Helper()
	if r.status != 200 {
		o.t.Fatalf("no token: %d %s", r.status, r.body)
	}
	token, _ := r.at(o.t, "access_token").(string)
	return o.with(token)
}

func (p *person) active() string {
	p.office.t.Helper()
	return text(p.want(200, get, "/whoami", "").at(p.office.t, "activeRoles"))
}

// A provider's token is good as a bearer and in exchange; its roles are those that are federated, and they end when the role does.
func TestFederation_RolesComeWithTheToken(t *testing.T) {
	o, idp := federated(t)
	root := o.admin()
	root.want(201, post, "/principal-roles", `{"principalRole":{"name":"analysts","federated":true}}`)
	root.want(201, post, "/principal-roles", `{"principalRole":{"name":"plain"}}`)
	root.want(204, put, "/principal-roles/analysts/service-privileges/CATALOG_LIST", "")
	raw := idp.Token("u-1", map[string]any{"preferred_username": "ann", "groups": []string{"analysts", "plain", "service_admin", "nobody"}})
	exchange := url.Values{"grant_type": {exchangeGrant}, "subject_token": {raw}, "subject_token_type": {"urn:ietf:params:oauth:token-type:jwt"}}
	bearer, exchanged := o.with(raw), o.tokenOf(o.exchanged(exchange, ""))
	for name, ann := range map[string]*person{"the provider's token": bearer, "ours": exchanged} {
		if active := ann.active(); active != `["analysts"]` {
			t.Errorf("%s makes %s active", name, active)
		}
		ann.want(200, get, "/catalogs", "")
		ann.want(403, get, "/principals", "")
	}
	if r := root.want(200, get, "/principals/sso:ann", ""); strings.Contains(r.body, "Secret") {
		t.Errorf("the principal is %s", r.body)
	}
	root.want(400, put, "/principals/sso:ann/principal-roles", `{"principalRole":{"name":"analysts"}}`)
	root.want(201, put, "/principals/sso:ann/principal-roles", `{"principalRole":{"name":"plain"}}`)
	if active := bearer.active(); active != `["analysts","plain"]` {
		t.Errorf("with one by hand %s are active", active)
	}
	root.want(204, "DELETE", "/principal-roles/analysts", "")
	for name, ann := range map[string]*person{"the provider's token": bearer, "ours": exchanged} {
		if r := ann.call(get, "/catalogs", ""); r.status != 403 {
			t.Errorf("%s without its role: %d", name, r.status)
		}
	}
	// How long a provider's token lives is the provider's to say; what was revoked does not come back after a day.
	root.want(204, post, "/principals/sso:ann/revoke-tokens", `{"tokenId":"somebody's"}`)
	if o.count(`SELECT count(*) FROM revoked_tokens WHERE expires_at > now() + interval '5 years'`) != 1 {
		t.Error("the revocation of a provider's token ends before the token may")
	}
	root.want(204, "DELETE", "/principals/sso:ann", "")
	for name, ann := range map[string]*person{"the provider's token": bearer, "ours": exchanged} {
		if r := ann.call(get, "/whoami", ""); r.status != 401 {
			t.Errorf("%s of a dropped principal: %d", name, r.status)
		}
	}
	if r := o.with(idp.Token("u-1", map[string]any{"preferred_username": "ann"})).active(); r != `[]` {
		t.Errorf("it came back with %s", r)
	}
}

// The revocation of an identity provider's token is in the audit, with the token's id and whom it named, and so is who shows it afterwards.
func TestFederation_RevocationsAreInTheAudit(t *testing.T) {
	o, idp := federated(t)
	for _, c := range []struct{ subject, name, id string }{{"u-1", "sso:ann", "idp-token-1"}, {"u-2", "sso:bob", ""}} {
		claims := map[string]any{"preferred_username": strings.TrimPrefix(c.name, "sso:"), "jti": c.id}
		if c.id == "" {
			delete(claims, "jti")
		}
		raw := idp.Token(c.subject, claims)
		user := o.with(raw)
		shown, _ := user.want(200, get, "/whoami", "").at(t, "token", "id").(string)
		if shown == "" || c.id != "" && shown != c.id {
			t.Errorf("the token of %s is %q, want %q", c.name, shown, c.id)
		}
		if r := o.revoke("", url.Values{"token": {raw}}); r.status != 200 {
			t.Fatalf("%d %s", r.status, r.body)
		}
		user.want(401, get, "/catalogs", "")
		for query, want := range map[string]string{
			"operation=revoke-token&allowed=true":     c.name,
			"operation=list-warehouses&allowed=false": "",
		} {
			_, r := o.admin().page("/audit?principal=" + url.QueryEscape(c.name) + "&" + query)
			rows, _ := r.object(t)["rows"].([]any)
			if len(rows) != 1 || rows[0].(map[string]any)["tokenId"] != shown || want != "" && rows[0].(map[string]any)["subject"] != want {
				t.Errorf("%s of %s: %s", query, c.name, r.body)
			}
			if strings.Contains(r.body, raw) {
				t.Errorf("the audit has the token of %s", c.name)
			}
		}
	}
}

// Hostile tokens stay outside on every kind of route, and nobody is made for them.
func TestFederation_HostileTokensMakeNobody(t *testing.T) {
	o, idp := federated(t)
	before := o.count(`SELECT count(*) FROM principals`)
	claims := idp.Claims("u-1", map[string]any{"preferred_username": "ann"})
	for _, raw := range []string{
		oidctest.Unsigned(claims), idp.Newest().SignHMAC(claims), oidctest.New(t, "ES256").Newest().Sign(claims, nil),
		idp.Token("u-1", map[string]any{"aud": "shop"}), idp.Token("u-1", map[string]any{"exp": 1}),
		idp.Token("u-1", map[string]any{"preferred_username": "a\x00b"}),
	} {
		if r := o.with(raw).call(get, "/whoami", ""); r.status != 401 {
			t.Errorf("as a bearer: %d %s", r.status, r.body)
		}
		r := o.exchanged(url.Values{"grant_type": {exchangeGrant}, "subject_token": {raw}}, "")
		if r.status != 400 && r.status != 401 {
			t.Errorf("in exchange: %d %s", r.status, r.body)
		}
	}
	if now := o.count(`SELECT count(*) FROM principals`); now != before {
		t.Errorf("there were %d principals and are %d", before, now)
	}
	if n := o.count(`SELECT count(*) FROM catalogd.audit WHERE operation = 'issue-token' AND NOT allowed`); n != 6 {
		t.Errorf("%d records of six refused exchanges", n)
	}
}

// An administrator lets an engine's role act for others, and takes that back; what the engine does as a user is the user's.
func TestFederation_AnEngineActsForItsUsers(t *testing.T) {
	o, _ := federated(t)
	root := o.admin()
	o.hire("ann", "writers")
	engine := o.login(o.hire("trino", "engines"), "")
	raw := strings.TrimPrefix(engine.token, "Bearer ")
	encode := base64.RawURLEncoding.EncodeToString
	unsigned := encode([]byte(`{"alg":"none"}`)) + "." + encode([]byte(`{"sub":"ann"}`)) + "."
	ask := func(user string) reply {
		return o.exchanged(url.Values{"grant_type": {exchangeGrant}, "subject_token": {user}, "actor_token": {raw},
			"subject_token_type": {"urn:ietf:params:oauth:token-type:jwt"}}, engine.token)
	}
	const right = "/principal-roles/engines/service-privileges/"
	if r := ask(unsigned); r.status != 400 || !strings.Contains(r.body, "PRINCIPAL_IMPERSONATE") {
		t.Errorf("without the right: %d %s", r.status, r.body)
	}
	const told = `SELECT count(*) FROM catalogd.audit WHERE operation = 'issue-token' AND NOT allowed AND user_agent <> '' AND `
	if n := o.count(told + `principal = 'trino' AND subject = 'ann' AND token_id <> ''`); n != 1 {
		t.Errorf("%d records of that", n)
	}
	root.want(400, put, right+"SERVICE_MANAGE_ACCESS", "")
	root.want(400, put, right+"TABLE_LIST", "")
	root.want(404, put, "/principal-roles/nobody/service-privileges/PRINCIPAL_IMPERSONATE", "")
	engine.want(403, put, right+"PRINCIPAL_IMPERSONATE", "")
	for range 2 { // idempotent
		root.want(204, put, right+"PRINCIPAL_IMPERSONATE", "")
	}
	for _, user := range []string{unsigned, "ann"} {
		ann := o.tokenOf(ask(user))
		if r := ann.want(200, get, "/whoami", ""); r.at(t, "name") != "ann" || r.at(t, "actor") != "trino" || ann.active() != `["writers"]` {
			t.Errorf("the user is %s", r.body)
		}
		if r := ann.call(post, "/principals/ann/tokens", `{"name":"kept"}`); r.status != 403 {
			t.Errorf("a token for later: %d %s", r.status, r.body)
		}
		ann.want(403, post, "/principals/ann/revoke-tokens", `{"personalAccessTokens":true}`)
		if r := ann.call(post, "/principals/ann/rotate", `{}`); r.status < 400 {
			t.Errorf("a new secret: %d", r.status)
		}
		ann.want(403, get, "/principals", "")
	}
	if o.count(`SELECT count(*) FROM audit WHERE principal = 'ann' AND actor = 'trino' AND NOT allowed`) == 0 {
		t.Error("the audit does not tell who acted as ann")
	}
	live := o.tokenOf(ask("ann"))
	root.want(201, post, "/principal-roles", `{"principalRole":{"name":"office"}}`)
	root.want(204, put, "/principal-roles/office/service-privileges/PRINCIPAL_LIST", "")
	root.want(201, put, "/principals/ann/principal-roles", `{"principalRole":{"name":"office"}}`)
	live.want(401, get, "/principals", "") // she has rights over principals now, and the engine does not get them
	root.want(204, "DELETE", "/principals/ann/principal-roles/office", "")
	live.want(200, get, "/whoami", "")
	for _, user := range []string{"root", "trino", "nobody"} {
		if r := ask(user); r.status != 400 {
			t.Errorf("%s: %d %s", user, r.status, r.body)
		}
	}
	for range 2 {
		root.want(204, "DELETE", right+"PRINCIPAL_IMPERSONATE", "")
	}
	live.want(401, get, "/whoami", "") // and what was issued before ends with the right
	root.want(204, put, right+"PRINCIPAL_IMPERSONATE", "")
	live.want(200, get, "/whoami", "")
	root.want(204, post, "/principals/trino/revoke-tokens", "")
	live.want(401, get, "/whoami", "") // or with the token that the engine showed
	root.want(204, "DELETE", right+"PRINCIPAL_IMPERSONATE", "")
	if r := ask("ann"); r.status != 400 {
		t.Errorf("with the right taken back: %d", r.status)
	}
	if !slices.Contains([]int{3}, o.count(`SELECT count(*) FROM audit WHERE operation = 'grant-on-service' AND allowed`)) {
		t.Error("each of the three grants is not once in the audit")
	}
}

// A group is one issuer's: a second one, where somebody makes a group of the same name, does not give the first one's roles.
func TestFederation_GroupsAreTheirIssuers(t *testing.T) {
	o, first, second := newOffice(t), oidctest.New(t, "ES256"), oidctest.New(t, "ES256")
	config := func(idp *oidctest.Issuer, prefix string, rules ...external.Rule) external.Config {
		return external.Config{URL: idp.URL, Audiences: []string{"catalogd"}, GroupsClaim: "groups", NamePrefix: prefix, CreatePrincipals: true, Rules: rules}
	}
	issuers, err := external.New(external.Settings{Issuers: []external.Config{
		config(first, "one:", external.Rule{Group: "admins", Role: "admins"}), config(second, "two:", external.Rule{Group: "partners", Role: "partners"}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(issuers.Close)
	o.issuers = issuers
	o.serve()
	for _, role := range []string{"admins", "partners"} {
		o.admin().want(201, post, "/principal-roles", `{"principalRole":{"name":"`+role+`","federated":true}}`)
	}
	claims := map[string]any{"preferred_username": "ann", "groups": []string{"admins", "partners"}}
	for raw, roles := range map[string]string{first.Token("u-1", claims): `["admins"]`, second.Token("u-1", claims): `["partners"]`} {
		exchanged := o.tokenOf(o.exchanged(url.Values{"grant_type": {exchangeGrant}, "subject_token": {raw}}, ""))
		if a, b := o.with(raw).active(), exchanged.active(); a != roles || b != roles {
			t.Errorf("%s and %s are active, want %s", a, b, roles)
		}
	}
}
