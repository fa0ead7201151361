package manage_test

import (
	"net/http"
	"net/url"
	"testing"

	"catalogd/catalog"
)

const revokePath = "/api/catalog/v1/oauth/revoke"

// revoke sends RFC 7009's form.
func (o *office) revoke(authorization string, form url.Values) reply {
	return o.send(http.MethodPost, revokePath, authorization, formType, form.Encode())
}

// raw is the token without its scheme.
func (p *person) raw() string { return p.token[len("Bearer "):] }

func withSecret(c catalog.Credential, token string) url.Values {
	return url.Values{"token": {token}, "client_id": {c.ClientID}, "client_secret": {c.Secret.Reveal()}}
}

// Who shows the client's credentials, a live token of the same principal, or nothing but the token ends it, on every server.
func TestRevoke_WhoHasATokenEndsIt(t *testing.T) {
	o := newOffice(t)
	other := o.branch()
	credential := o.hire("ann", "analysts")
	basic := http.Request{Header: http.Header{}}
	basic.SetBasicAuth(credential.ClientID, credential.Secret.Reveal())
	live := o.login(credential, "")
	for name, revoke := range map[string]func(token string) reply{
		"secret in the form": func(token string) reply { return o.revoke("", withSecret(credential, token)) },
		"Basic": func(token string) reply {
			return o.revoke(basic.Header.Get("Authorization"), url.Values{"token": {token}})
		},
		"another live token": func(token string) reply { return o.revoke(live.token, url.Values{"token": {token}}) },
		"the token itself":   func(token string) reply { return o.revoke("Bearer "+token, url.Values{"token": {token}}) },
		"a hint": func(token string) reply {
			return o.revoke("", url.Values{"token": {token}, "token_type_hint": {"refresh_token"}})
		},
		"nothing else": func(token string) reply { return o.revoke("", url.Values{"token": {token}}) },
	} {
		p := o.login(credential, "")
		other.with(p.raw()).want(200, get, "/whoami", "")
		if r := revoke(p.raw()); r.status != 200 || r.body != "" || r.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %s %v", name, r.status, r.body, r.header)
		}
		p.want(401, get, "/whoami", "")
		other.with(p.raw()).want(401, get, "/whoami", "")
	}
	live.want(200, get, "/whoami", "") // none but the very token
	if n := o.count("SELECT count(*) FROM catalogd.audit WHERE operation = 'revoke-token' AND allowed AND principal = 'ann'"); n != 6 {
		t.Errorf("%d rows in the audit", n)
	}
	for _, alias := range []string{"/v1/oauth/revoke", "/polaris/api/catalog/v1/oauth/revoke"} {
		if r := o.send(http.MethodPost, alias, "", formType, "token=x"); r.status != 200 {
			t.Errorf("%s: %d", alias, r.status)
		}
	}
}

// A personal access token ends with all that it obtained; what it obtained ends alone.
func TestRevoke_PersonalTokens(t *testing.T) {
	o := newOffice(t)
	ann := o.login(o.hire("ann", "analysts"), "")
	_, text := ann.personal("ann", `{"name":"etl"}`)
	exchange := url.Values{"grant_type": {"client_credentials"}, "client_secret": {text}}
	first, _ := o.exchanged(exchange, "").at(t, "access_token").(string)
	second, _ := o.exchanged(exchange, "").at(t, "access_token").(string)
	if r := o.revoke("", url.Values{"token": {first}, "client_secret": {text}}); r.status != 200 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	o.with(first).want(401, get, "/whoami", "")
	o.with(second).want(200, get, "/whoami", "")
	if r := o.revoke("", url.Values{"token": {text}}); r.status != 200 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	for _, token := range []string{text, second} {
		o.with(token).want(401, get, "/whoami", "")
	}
	ann.want(200, get, "/whoami", "")
}

// What counts nowhere is a success, and leaves nothing in the audit; what is another's, or not asked well, is refused.
func TestRevoke_Answers(t *testing.T) {
	o := newOffice(t)
	credential := o.hire("ann", "analysts")
	ann, bob := o.login(credential, ""), o.login(o.hire("bob", "analysts"), "")
	gone := o.login(credential, "")
	if r := o.revoke("", url.Values{"token": {gone.raw()}}); r.status != 200 {
		t.Fatal(r.status)
	}
	before := o.count("SELECT count(*) FROM catalogd.audit WHERE allowed")
	wrong := withSecret(credential, ann.raw())
	wrong.Set("client_secret", "wrong")
	for name, c := range map[string]struct {
		authorization string
		form          url.Values
		status        int
		code          string
	}{
		"revoked already":         {"", url.Values{"token": {gone.raw()}}, 200, ""},
		"no token of ours":        {"", url.Values{"token": {"x"}}, 200, ""},
		"a forged one":            {"", url.Values{"token": {ann.raw() + "x"}}, 200, ""},
		"half a personal one":     {"", url.Values{"token": {"catalogd_pat_00"}}, 200, ""},
		"unknown, by a client":    {"", withSecret(credential, "x"), 200, ""},
		"no token":                {"", url.Values{}, 400, "invalid_request"},
		"a wrong secret":          {"", wrong, 401, "invalid_client"},
		"another's, by a client":  {"", withSecret(credential, bob.raw()), 400, "invalid_grant"},
		"another's, by a token":   {ann.token, url.Values{"token": {bob.raw()}}, 400, "invalid_grant"},
		"a header that is no one": {gone.token, url.Values{"token": {ann.raw()}}, 401, "invalid_client"},
	} {
		r := o.revoke(c.authorization, c.form)
		if r.status != c.status || c.code != "" && r.at(t, "error") != c.code {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
	ann.want(200, get, "/whoami", "")
	bob.want(200, get, "/whoami", "")
	if r := o.send(http.MethodPost, revokePath, "", "application/json", `{"token":"x"}`); r.status != 400 || r.at(t, "error") != "invalid_request" {
		t.Errorf("JSON: %d %s", r.status, r.body)
	}
	if n := o.count("SELECT count(*) FROM catalogd.audit WHERE allowed"); n != before {
		t.Errorf("%d rows for what changed nothing", n-before)
	}
	// From outside of the principal's networks nothing is said to have ended.
	o.admin().want(200, put, "/principals/ann/network-policy", `{"allowed":["192.0.2.0/24"]}`)
	if r := o.revoke("", url.Values{"token": {ann.raw()}}); r.status != 401 || r.at(t, "error") != "invalid_client" {
		t.Errorf("from elsewhere: %d %s", r.status, r.body)
	}
	o.admin().want(200, put, "/principals/ann/network-policy", `{}`)
	ann.want(200, get, "/whoami", "")
}
