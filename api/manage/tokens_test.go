package manage_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
)

const (
	tokenPath = "/api/catalog/v1/oauth/tokens"
	formType  = "application/x-www-form-urlencoded"
)

// refusal is RFC 6749's error body.
type refusal struct {
	Error       any `json:"error"`
	Description any `json:"error_description"`
}

func TestField_C145_TokenRouteSpeaksOAuth(t *testing.T) {
	o := newOffice(t)
	good := url.Values{"grant_type": {"client_credentials"}, "client_id": {o.root.ClientID}, "client_secret": {o.root.Secret.Reveal()}}.Encode()
	wrong := url.Values{"grant_type": {"client_credentials"}, "client_id": {o.root.ClientID}, "client_secret": {"wrong"}}.Encode()
	cases := []struct {
		name, contentType, authorization, body string
		status                                 int
		code                                   string
	}{
		{"plain form", formType, "", good, 200, ""},
		{"with a charset", formType + "; charset=UTF-8", "", good, 200, ""},
		{"odd case", "Application/X-WWW-Form-URLEncoded;charset=utf-8", "", good, 200, ""},
		{"no content type", "", "", good, 200, ""},
		{"stale bearer beside", formType, "Bearer None", good, 200, ""},
		{"wrong secret", formType, "", wrong, 401, "invalid_client"},
		{"nothing", formType, "", "", 400, "invalid_request"},
		{"JSON", "application/json", "", `{"grant_type":"client_credentials"}`, 400, "invalid_request"},
		{"unknown grant", formType, "", "grant_type=password", 400, "unsupported_grant_type"},
		{"doubled", formType, "", good + "&scope=a&scope=b", 400, "invalid_request"},
		{"malformed escape", formType, "", "grant_type=client_credentials&client_id=a&client_secret=b%", 401, "invalid_client"},
		{"ungranted role", formType, "", good + "&scope=PRINCIPAL_ROLE%3Anone", 400, "invalid_scope"},
		{"too long", formType, "", good + "&x=" + strings.Repeat("x", 70<<10), 413, "invalid_request"},
	}
	for _, c := range cases {
		r := o.send(http.MethodPost, tokenPath, c.authorization, c.contentType, c.body)
		if r.status != c.status {
			t.Errorf("%s: %d %s", c.name, r.status, r.body)
			continue
		}
		if r.header.Get("Cache-Control") != "no-store" || r.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: headers %v", c.name, r.header)
		}
		if c.code == "" {
			continue
		}
		var refused refusal
		decoder := json.NewDecoder(strings.NewReader(r.body))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&refused); err != nil || refused.Error != c.code || refused.Description == "" {
			t.Errorf("%s: %s: %v", c.name, r.body, err)
		}
	}
	if r := o.send(http.MethodGet, tokenPath, "", "", ""); r.status != 405 {
		t.Errorf("GET: %d", r.status)
	}
	for _, alias := range []string{"/v1/oauth/tokens", "/catalog/v1/oauth/tokens", "/polaris/api/catalog/v1/oauth/tokens"} {
		if r := o.send(http.MethodPost, alias, "", formType, good); r.status != 200 {
			t.Errorf("%s: %d", alias, r.status)
		}
	}
}

// The line of a login says which client it is for, whether the secret is right or not. An id that does not exist is not named:
// it may be the secret, in the wrong field.
func TestTokens_TheLogNamesTheClient(t *testing.T) {
	o := newOffice(t)
	id, secret := o.root.ClientID, o.root.Secret.Reveal()
	for _, c := range []struct {
		id, secret string
		status     int
		named      bool
	}{{id, secret, 200, true}, {id, "wrong" + secret, 401, true}, {"", secret, 200, true}, {secret, id, 401, false}, {"nobody", secret, 401, false}} {
		o.log.Reset()
		form := url.Values{"grant_type": {"client_credentials"}, "client_id": {c.id}, "client_secret": {c.secret}}
		request := httptest.NewRequest(http.MethodPost, tokenPath, strings.NewReader(form.Encode()))
		request.Header.Set("Content-Type", formType)
		w := httptest.NewRecorder()
		o.server.Config.Handler.ServeHTTP(w, request) // not by the wire: the line is written after the answer
		line := o.log.String()
		if w.Code != c.status || strings.Contains(line, " client_id="+id) != c.named || !strings.Contains(line, "operation=issue-token") {
			t.Errorf("%d, want %d; named: %v\n%s", w.Code, c.status, c.named, line)
		}
		if strings.Contains(line, secret) {
			t.Errorf("the secret is in the log: %s", line)
		}
	}
}

// The life of a long Spark job's token, over the wire: live by Bearer, then by Basic of id:secret and of the secret.
func TestTokens_RefreshOverTheWire(t *testing.T) {
	o := newOffice(t)
	first := o.login(o.root, "catalog")
	token := strings.TrimPrefix(first.token, "Bearer ")
	form := url.Values{
		"grant_type": {"urn:ietf:params:oauth:grant-type:token-exchange"}, "scope": {"catalog"}, "subject_token": {token},
		"subject_token_type": {"urn:ietf:params:oauth:token-type:access_token"},
	}.Encode()
	basic := func(text string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(text)) }
	for name, authorization := range map[string]string{
		"bearer": first.token, "basic": basic(o.root.ClientID + ":" + o.root.Secret.Reveal()), "secret alone": basic(o.root.Secret.Reveal()),
	} {
		r := o.send(http.MethodPost, tokenPath, authorization, formType, form)
		if r.status != 200 {
			t.Errorf("%s: %d %s", name, r.status, r.body)
			continue
		}
		if r.at(t, "expires_in") != 3600.0 || r.at(t, "token_type") != "bearer" || r.at(t, "issued_token_type") != "urn:ietf:params:oauth:token-type:access_token" {
			t.Errorf("%s: %v", name, r.object(t)["expires_in"])
		}
		fresh, _ := r.at(t, "access_token").(string)
		if r := (&person{o, "Bearer " + fresh}).call(get, "/principals", ""); r.status != 200 {
			t.Errorf("%s: the fresh token: %d", name, r.status)
		}
	}
	// A reset ends the session: its refreshes are refused, its old secret too.
	o.admin().want(200, post, "/principals/root/reset", "")
	if r := o.send(http.MethodPost, tokenPath, first.token, formType, form); r.status != 401 {
		t.Errorf("a refresh after the reset: %d", r.status)
	}
	if r := o.send(http.MethodPost, tokenPath, basic(o.root.Secret.Reveal()), formType, form); r.status != 401 {
		t.Errorf("the old secret after the reset: %d", r.status)
	}
}

// An outage of the database is no refusal: the clients' sessions would end with it.
func TestField_C143_TokenRouteDuringAnOutage(t *testing.T) {
	o := newOffice(t)
	o.login(o.root, "")
	o.store.Close()
	r := o.tryLogin(o.root, "")
	if wait, err := strconv.Atoi(r.header.Get("Retry-After")); r.status != 503 || err != nil || wait < 1 {
		t.Errorf("%d, Retry-After %q: %s", r.status, r.header.Get("Retry-After"), r.body)
	}
	if strings.Contains(r.body, "invalid_") {
		t.Errorf("an outage looks like a refusal: %s", r.body)
	}
}
