package manage_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"catalogd/auth"
)

// published reads the server's own key set.
func (o *office) published() []auth.JWK {
	o.t.Helper()
	var set auth.JWKS
	if err := json.Unmarshal([]byte(o.send(http.MethodGet, "/.well-known/jwks.json", "", "", "").body), &set); err != nil || len(set.Keys) == 0 {
		o.t.Fatal(err)
	}
	return set.Keys
}

func segment(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

// What an attacker has: good tokens of others, the published keys and a key of its own. Each of these is 401 at the catalog, at the
// management API and as a subject of an exchange; none is 500, and none makes the server fetch, read or search what it names.
func TestHostile_TokensOverTheWire(t *testing.T) {
	o, foreign := newOffice(t), newOffice(t)
	o.open("lake")
	good := strings.TrimPrefix(o.admin().token, "Bearer ")
	parts := strings.Split(good, ".")
	claimsText, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	var claims jwt.MapClaims
	if err := json.Unmarshal(claimsText, &claims); err != nil {
		t.Fatal(err)
	}
	key := o.published()[0]
	public, err := base64.RawURLEncoding.DecodeString(key.X)
	if err != nil {
		t.Fatal(err)
	}
	keyText, _ := json.Marshal(key)
	_, own, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	forge := func(method jwt.SigningMethod, by any, header map[string]any, change map[string]any) string {
		changed := jwt.MapClaims{}
		for name, value := range claims {
			changed[name] = value
		}
		for name, value := range change {
			changed[name] = value
		}
		token := jwt.NewWithClaims(method, changed)
		token.Header["typ"], token.Header["kid"] = "at+jwt", key.KeyID
		for name, value := range header {
			token.Header[name] = value
		}
		signed, err := token.SignedString(by)
		if err != nil {
			t.Fatal(err)
		}
		return signed
	}
	ed := jwt.SigningMethodEdDSA
	later := time.Now().Add(time.Hour).Unix()
	hostile := map[string]string{
		"alg none":                forge(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, nil, nil),
		"alg nOnE":                segment(`{"alg":"nOnE","typ":"at+jwt","kid":"`+key.KeyID+`"}`) + "." + parts[1] + ".",
		"HMAC by the key":         forge(jwt.SigningMethodHS256, public, nil, nil),
		"HMAC by its text":        forge(jwt.SigningMethodHS256, []byte(key.X), nil, nil),
		"HMAC by its JWK":         forge(jwt.SigningMethodHS256, keyText, nil, nil),
		"HMAC by nothing":         forge(jwt.SigningMethodHS256, []byte{}, nil, nil),
		"own key":                 forge(ed, own, nil, nil),
		"own key, unknown kid":    forge(ed, own, map[string]any{"kid": "nobody"}, nil),
		"kid a path":              forge(ed, own, map[string]any{"kid": "../../../../dev/null"}, nil),
		"kid a statement":         forge(ed, own, map[string]any{"kid": "x' UNION SELECT 'AAAA' --"}, nil),
		"kid with NUL":            forge(ed, own, map[string]any{"kid": "x\x00y"}, nil),
		"kid 100 KB":              forge(ed, own, map[string]any{"kid": strings.Repeat("k", 100<<10)}, nil),
		"kid an object":           forge(ed, own, map[string]any{"kid": map[string]any{"a": 1}}, nil),
		"its own JWK":             forge(ed, own, map[string]any{"jwk": map[string]any{"kty": "OKP", "crv": "Ed25519", "x": segment(string(own.Public().(ed25519.PublicKey)))}}, nil),
		"jku elsewhere":           forge(ed, own, map[string]any{"jku": foreign.server.URL + "/.well-known/jwks.json"}, nil),
		"x5u elsewhere":           forge(ed, own, map[string]any{"x5u": foreign.server.URL}, nil),
		"critical extension":      forge(ed, own, map[string]any{"crit": []string{"b64"}, "b64": false}, nil),
		"other audience":          forge(ed, own, nil, map[string]any{"aud": "other"}),
		"other issuer":            forge(ed, own, nil, map[string]any{"iss": "https://other.example"}),
		"not yet valid":           forge(ed, own, nil, map[string]any{"nbf": later}),
		"another server's":        strings.TrimPrefix(foreign.admin().token, "Bearer "),
		"claims of another":       parts[0] + "." + segment(strings.Replace(string(claimsText), `"name":"root"`, `"name":"ROOT"`, 1)) + "." + parts[2],
		"doubled claims":          parts[0] + "." + segment(`{"sub":"00000000-0000-0000-0000-000000000000",`+string(claimsText[1:])) + "." + parts[2],
		"signature cut":           good[:len(good)-8],
		"signature gone":          parts[0] + "." + parts[1] + ".",
		"signature in other bits": good[:len(good)-1] + string(good[len(good)-1]^1),
		"JWE":                     segment(`{"alg":"dir","enc":"A256GCM"}`) + "..aaaa.bbbb.cccc",
		"only dots":               "..",
		"a secret":                o.root.Secret.Reveal(),
		"a client id":             o.root.ClientID,
	}
	root := o.login(o.root, "")
	for name, token := range hostile {
		if len(token) > 50<<10 {
			continue // a header that large is 431 before anything reads it
		}
		for _, path := range []string{"/api/management/v1/principals", "/api/catalog/v1/config?warehouse=lake", "/api/catalog/v1/lake/namespaces"} {
			r := o.send(http.MethodGet, path, "Bearer "+token, "", "")
			if r.status != 401 || len(token) > 40 && strings.Contains(r.body, token[20:40]) {
				t.Errorf("%s at %s: %d %s", name, path, r.status, r.body)
			}
		}
		if r := o.exchange(root.token, token); r.status != 400 || !strings.Contains(r.body, "invalid_") {
			t.Errorf("%s as subject: %d %s", name, r.status, r.body)
		}
		if r := o.exchange("Bearer "+token, good); r.status != 401 || !strings.Contains(r.body, "invalid_client") {
			t.Errorf("%s as who asks: %d %s", name, r.status, r.body)
		}
	}
	if r := o.send(http.MethodGet, "/api/management/v1/principals", "Bearer "+strings.Repeat("A", 1<<20), "", ""); r.status != 431 && r.status != 401 {
		t.Errorf("1 MB: %d", r.status)
	}
	if r := o.exchange("", strings.Repeat("A", 1<<20)); r.status != 413 {
		t.Errorf("1 MB as subject: %d %s", r.status, r.body)
	}
	root.want(200, get, "/principals", "")
}

func (o *office) exchange(authorization, subject string) reply {
	o.t.Helper()
	return o.send(http.MethodPost, tokenPath, authorization, formType, url.Values{
		"grant_type": {"urn:ietf:params:oauth:grant-type:token-exchange"}, "subject_token": {subject},
		"subject_token_type": {"urn:ietf:params:oauth:token-type:access_token"},
	}.Encode())
}

// A principal signs in by its key at two servers: each assertion counts once on both, and is meant for one of them by name.
func TestHostile_AssertionsOverTheWire(t *testing.T) {
	o := newOffice(t)
	branch := o.branch()
	ann := o.hire("ann", "etl")
	bob := o.hire("bob")
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key := quote(`{"kty":"OKP","crv":"Ed25519","x":"` + segment(string(public)) + `"}`)
	kid, _ := o.admin().want(201, post, "/principals/ann/keys", `{"key":`+key+`}`).at(t, "kid").(string)
	sign := func(client, audience, jti string) string {
		signed, err := jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.MapClaims{
			"iss": client, "sub": client, "aud": audience, "jti": jti, "exp": time.Now().Add(time.Minute).Unix(),
		}).SignedString(private)
		if err != nil {
			t.Fatal(err)
		}
		return signed
	}
	send := func(at *office, assertion string, more ...string) reply {
		form := url.Values{"grant_type": {"client_credentials"}, "client_assertion": {assertion},
			"client_assertion_type": {"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"}}
		for i := 0; i < len(more); i += 2 {
			form.Set(more[i], more[i+1])
		}
		return at.send(http.MethodPost, tokenPath, "", formType, form.Encode())
	}
	here, there := o.server.URL+tokenPath, branch.server.URL+tokenPath
	first := sign(ann.ClientID, here, "1")
	r := send(o, first)
	if r.status != 200 || r.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %s", r.status, r.body)
	}
	token, _ := r.at(t, "access_token").(string)
	self := &person{o, "Bearer " + token}
	for _, at := range []*office{o, branch} {
		(&person{at, self.token}).want(200, get, "/principals/ann", "")
	}
	self.want(403, post, "/principals/ann/rotate", "") // no secret obtained it
	for name, c := range map[string]struct {
		at        *office
		assertion string
		more      []string
	}{
		"again":             {o, first, nil},
		"again, there":      {branch, sign(ann.ClientID, there, "1"), nil},
		"another's name":    {o, sign(bob.ClientID, here, "2"), nil},
		"another client_id": {o, sign(ann.ClientID, here, "3"), []string{"client_id", bob.ClientID}},
		"meant for there":   {o, sign(ann.ClientID, there, "4"), nil},
		"nobody":            {o, sign("nobody", here, "5"), nil},
	} {
		if r := send(c.at, c.assertion, c.more...); r.status != 401 || !strings.Contains(r.body, "invalid_client") {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
	// A host that the client of another server may mean is not believed.
	request := httptest.NewRequest(http.MethodPost, tokenPath, strings.NewReader(url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"},
		"assertion": {sign(ann.ClientID, "http://other.example"+tokenPath, "6")}}.Encode()))
	request.Header.Set("Content-Type", formType)
	request.Host = "other.example"
	w := httptest.NewRecorder()
	o.server.Config.Handler.ServeHTTP(w, request)
	if w.Code != 401 {
		t.Errorf("meant for another server: %d %s", w.Code, w.Body)
	}
	if r := send(branch, sign(ann.ClientID, there, "7"), "scope", "PRINCIPAL_ROLE:etl"); r.status != 200 || r.at(t, "scope") != "PRINCIPAL_ROLE:etl" {
		t.Errorf("%d %s", r.status, r.body)
	}
	if r := o.exchange(self.token, token); r.status != 200 {
		t.Errorf("a refresh: %d %s", r.status, r.body)
	}
	o.admin().want(204, del, "/principals/ann/keys/"+kid, "")
	for _, at := range []*office{o, branch} {
		(&person{at, self.token}).want(401, get, "/principals/ann", "")
	}
	if r := o.exchange(self.token, token); r.status != 401 {
		t.Errorf("a refresh after the key is gone: %d %s", r.status, r.body)
	}
	if r := send(o, sign(ann.ClientID, here, "8")); r.status != 401 {
		t.Errorf("a key that is gone: %d", r.status)
	}
	if n := o.count("SELECT count(*) FROM catalogd.spent_assertions"); n != 2 {
		t.Errorf("%d assertions are remembered", n)
	}
}

// Who guesses gets 429 with the time to wait, in this shape and no other; the right secret is let in meanwhile; the audit has it.
func TestThrottle_OverTheWire(t *testing.T) {
	o := newOffice(t)
	ann := o.hire("ann")
	wrong := ann
	wrong.Secret = "wrong"
	statuses := map[int]int{}
	for range 14 {
		r := o.tryLogin(wrong, "")
		statuses[r.status]++
		if r.status == 429 && (r.header.Get("Retry-After") == "" || r.header.Get("Retry-After") == "0" || strings.Contains(r.body, "invalid_")) {
			t.Errorf("%v %s", r.header, r.body)
		}
	}
	if statuses[401] < 10 || statuses[429] == 0 || len(statuses) != 2 {
		t.Errorf("%v", statuses)
	}
	o.login(ann, "")
	if n := o.count("SELECT count(*) FROM catalogd.audit WHERE operation = 'issue-token' AND NOT allowed AND subject = 'ann' AND client = '127.0.0.1' AND request_id <> '' AND user_agent <> ''"); n != 14 {
		t.Errorf("%d records", n)
	}
}

// A rolling restart: while each server in turn goes away and another with nothing in memory takes its place, refreshes go through whatever
// answers, and nothing that a client takes for final is ever answered.
func TestField_C143_RefreshesGoThroughARollingRestart(t *testing.T) {
	o := newOffice(t)
	replicas := []*atomic.Pointer[office]{{}, {}}
	for _, r := range replicas {
		r.Store(o.branch())
	}
	token := strings.TrimPrefix(o.admin().token, "Bearer ")
	refresh := func() bool {
		for _, replica := range replicas {
			form := url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:token-exchange"}, "subject_token": {token}}
			request := httptest.NewRequest(http.MethodPost, tokenPath, strings.NewReader(form.Encode()))
			request.Header.Set("Authorization", "Bearer "+token)
			request.Header.Set("Content-Type", formType)
			w := httptest.NewRecorder()
			replica.Load().server.Config.Handler.ServeHTTP(w, request)
			if w.Code == 200 {
				var answer auth.TokenAnswer
				if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
					t.Fatal(err)
				}
				token = answer.AccessToken
				return true
			}
			if w.Code != 503 && w.Code != 429 {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			if w.Header().Get("Retry-After") == "" {
				t.Errorf("no Retry-After: %v", w.Header())
			}
		}
		return false
	}
	for range 2 {
		for _, replica := range replicas {
			replica.Load().store.Close() // it is about to end: nothing that it needs is there any more
			for range 3 {
				if !refresh() {
					t.Fatal("no replica refreshes")
				}
			}
			replica.Store(o.branch())
			if !refresh() {
				t.Fatal("no replica refreshes")
			}
		}
	}
	for _, replica := range replicas {
		replica.Load().store.Close()
	}
	if refresh() {
		t.Error("refreshed without a database")
	}
}

// A token carries no warehouse: a tenant's good one is worth at another's what its principal was granted there, which is nothing.
func TestHostile_ATokenAtAnothersWarehouse(t *testing.T) {
	o, root := newTenants(t)
	south := o.login(o.hire("of-south", "south-admins"), "")
	root.want(201, put, "/principal-roles/south-admins/catalog-roles/south", `{"catalogRole":{"name":"catalog_admin"}}`)
	for _, c := range [][3]string{
		{get, "/namespaces", ""}, {get, "/namespaces/a", ""}, {get, "/namespaces/a/tables", ""}, {get, "/namespaces/a/tables/t", ""},
		{get, "/namespaces/a/views/v", ""}, {post, "/namespaces", `{"namespace":["mine"]}`}, {del, "/namespaces/a/tables/t", ""},
	} {
		if r := south.catalogCall(c[0], "/north"+c[1], c[2]); r.status != 403 {
			t.Errorf("%s %s of another: %d %s", c[0], c[1], r.status, r.body)
		}
		if r := south.catalogCall(c[0], "/south"+c[1], c[2]); r.status >= 300 {
			t.Errorf("%s %s of its own: %d %s", c[0], c[1], r.status, r.body)
		}
	}
	if r := root.catalogCall(get, "/north/namespaces/a/tables/t", ""); r.status != 200 {
		t.Errorf("what another tried was done: %d %s", r.status, r.body)
	}
}
