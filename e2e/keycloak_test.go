package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	// keycloakStartMax is how long a Keycloak may take to start: 30 s of processor time, on machines that have other work.
	keycloakStartMax = 10 * time.Minute
	// newKeyMax is how long a new key of the provider may stay unknown: the keys are read once a minute at most.
	newKeyMax = 2 * time.Minute
	// lakeTokenSeconds is the life of the realm's tokens, by clients/keycloak/lake.json.
	lakeTokenSeconds = 300
	// The subject that the realm's user bob has.
	bobSubject = "5f0c8a52-52a5-4bb1-9a0c-0d9f3f5f7a02"
)

// keycloak is a running identity provider that nobody here wrote, with the realm of clients/keycloak/lake.json.
type keycloak struct {
	t        *testing.T
	url      string
	password string // of its administrator
}

// startKeycloak starts one on a free port with a database in memory; it ends with the test.
func startKeycloak(t *testing.T) *keycloak {
	t.Helper()
	installed(t, "keycloak") // which may build it, and is no part of starting it
	dir := tempDir(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	address := freeAddress(t)
	k := &keycloak{t: t, url: "http://" + address, password: "root-of-this-test"}
	_, port, _ := strings.Cut(address, ":")
	cmd := exec.Command(filepath.Join(root(t), "e2e", "clients", "keycloak", "start"), port, filepath.Join(dir, "home"))
	cmd.Env = []string{"KC_BOOTSTRAP_ADMIN_USERNAME=root", "KC_BOOTSTRAP_ADMIN_PASSWORD=" + k.password}
	startJVM(t, "Keycloak", keycloakStartMax, cmd, func() bool {
		answer, err := http.Get(k.issuer() + "/.well-known/openid-configuration")
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
	return k
}

func (k *keycloak) issuer() string { return k.url + "/realms/lake" }

func (k *keycloak) tokenURI() string { return k.issuer() + "/protocol/openid-connect/token" }

// token gives an access token of a realm's client: for itself, or for a user whose password is his name's.
func (k *keycloak) token(client, user string) string {
	k.t.Helper()
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {client}, "client_secret": {client + "-secret-" + client + "-secret"}}
	if user != "" {
		form.Set("grant_type", "password")
		form.Set("username", user)
		form.Set("password", user+"-password")
	}
	return k.tokenBy(k.tokenURI(), form)
}

func (k *keycloak) tokenBy(uri string, form url.Values) string {
	k.t.Helper()
	var answer struct {
		Token string `json:"access_token"`
	}
	if status, raw := postForm(k.t, uri, form, &answer); status != http.StatusOK || answer.Token == "" {
		k.t.Fatalf("Keycloak gives no token: %d %s", status, raw)
	}
	return answer.Token
}

// manage calls its administration of the realm, and wants a success.
func (k *keycloak) manage(method, path string, body, answer any) {
	k.t.Helper()
	token := k.tokenBy(k.url+"/realms/master/protocol/openid-connect/token",
		url.Values{"grant_type": {"password"}, "client_id": {"admin-cli"}, "username": {"root"}, "password": {k.password}})
	sent, err := json.Marshal(body)
	if err != nil {
		k.t.Fatal(err)
	}
	r, err := http.NewRequest(method, k.url+"/admin/realms/lake"+path, bytes.NewReader(sent))
	if err != nil {
		k.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	if status, raw := fetched(k.t, r, answer); status >= http.StatusMultipleChoices {
		k.t.Fatalf("Keycloak's %s %s: %d %s", method, path, status, raw)
	}
}

// setRole gives a user a role of the realm, or takes it away.
func (k *keycloak) setRole(method, user, role string) {
	k.t.Helper()
	var users []struct{ ID string }
	k.manage(http.MethodGet, "/users?exact=true&username="+user, nil, &users)
	var found map[string]any
	k.manage(http.MethodGet, "/roles/"+role, nil, &found)
	if len(users) != 1 {
		k.t.Fatalf("%d users are called %s", len(users), user)
	}
	k.manage(method, "/users/"+users[0].ID+"/role-mappings/realm", []any{found}, nil)
}

// rotateKey makes the realm sign with a new key, and forget the one before.
func (k *keycloak) rotateKey() {
	k.t.Helper()
	var realm struct{ ID string }
	k.manage(http.MethodGet, "", nil, &realm)
	const kind = "org.keycloak.keys.KeyProvider"
	var before []struct{ ID, ProviderID string }
	k.manage(http.MethodGet, "/components?type="+kind, nil, &before)
	k.manage(http.MethodPost, "/components", map[string]any{
		"name": "next", "providerId": "rsa-generated", "providerType": kind, "parentId": realm.ID,
		"config": map[string][]string{"priority": {"200"}, "enabled": {"true"}, "active": {"true"}, "keySize": {"2048"}, "algorithm": {"RS256"}},
	}, nil)
	gone := 0
	for _, component := range before {
		if component.ProviderID == "rsa-generated" {
			k.manage(http.MethodDelete, "/components/"+component.ID, nil, nil)
			gone++
		}
	}
	if gone == 0 {
		k.t.Fatalf("none of %+v was the signing key", before)
	}
}

// server starts a catalogd that takes the realm's tokens.
func (k *keycloak) server() *server {
	k.t.Helper()
	dir := tempDir(k.t)
	k.t.Cleanup(func() { os.RemoveAll(dir) })
	issuers, err := json.Marshal([]map[string]any{{
		"url": k.issuer(), "audiences": []string{"catalogd"}, "groups_claim": "realm_access.roles", "name_prefix": "sso:",
		"roles": []map[string]string{{"pattern": "lake-(.+)", "role": "$1"}},
	}})
	if err != nil {
		k.t.Fatal(err)
	}
	s := &server{dir: filepath.Join(dir, "data"), log: &lockedBuffer{}}
	s.cmd = exec.Command(binary(k.t), "dev", "--data", s.dir, "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--no-worker")
	s.cmd.Env = append(cleanEnv(), "CATALOGD_IDENTITY_ISSUERS="+string(issuers))
	s.waitReady(k.t)
	k.t.Cleanup(s.stop)
	return s
}

// self is what `catalogd whoami` says of a token.
type self struct {
	Name, Issuer, Subject string
	Active                []string `json:"activeRoles"`
}

func (s *server) whoami(t *testing.T, token string) self {
	t.Helper()
	var who self
	text := s.catalogd(t, "whoami", "--token", token, "--output", "json")
	if err := json.Unmarshal([]byte(text), &who); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return who
}

// loads gives the status and the answer of loading orders.online with a token.
func (s *server) loads(t *testing.T, token string) (int, string) {
	t.Helper()
	status, raw := (&rest{t, s.env["CATALOG_URI"] + "/v1", token}).call(http.MethodGet, "/dev/namespaces/orders/tables/online", nil)
	return status, string(raw)
}

func (s *server) wantLoads(t *testing.T, what, token string, want int) {
	t.Helper()
	if status, raw := s.loads(t, token); status != want {
		t.Errorf("%s loads the table: %d %s, want %d", what, status, raw, want)
	}
}

// exchange gives our token for the provider's, and how long it lives.
func (s *server) exchange(t *testing.T, subject string) (token string, seconds int) {
	t.Helper()
	var answer struct {
		Token   string `json:"access_token"`
		Seconds int    `json:"expires_in"`
	}
	status, raw := postForm(t, s.env["CATALOG_OAUTH2__SERVER__URI"], url.Values{
		"grant_type": {"urn:ietf:params:oauth:grant-type:token-exchange"}, "subject_token": {subject},
		"subject_token_type": {"urn:ietf:params:oauth:token-type:jwt"},
	}, &answer)
	if status != http.StatusOK {
		t.Fatalf("exchange: %d %s", status, raw)
	}
	return answer.Token, answer.Seconds
}

// People and programs sign in at Keycloak: their tokens are good as bearers and in exchange, a role of the realm opens a table and
// closes it, no token of ours outlives the one that it was given for, PyIceberg asks Keycloak itself for tokens, a subject can be
// linked to a principal that is there, and a new key of the realm is followed while everything runs.
func TestStory_Keycloak(t *testing.T) {
	t.Parallel()
	k := startKeycloak(t)
	s := k.server()
	s.request(t, http.MethodPost, "/namespaces", `{"namespace":["orders"]}`)
	s.request(t, http.MethodPost, "/namespaces/orders/tables", `{"name":"online","schema":{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":false,"type":"long"}]}}`)
	s.catalogd(t, "role", "create", "analysts", "--federated")
	s.catalogd(t, "role", "create", "writers", "-w", "dev")
	s.catalogd(t, "role", "assign", "writers", "-w", "dev", "--principal-role", "analysts")
	s.catalogd(t, "grant", "create", "TABLE_WRITE_DATA", "-w", "dev", "--role", "writers")

	for name, token := range map[string]string{"sso:service-account-portal": k.token("portal", ""), "sso:ann": k.token("portal", "ann")} {
		ours, seconds := s.exchange(t, token)
		if seconds <= 0 || seconds > lakeTokenSeconds {
			t.Errorf("%s: our token lives %d s, Keycloak's %d s", name, seconds, lakeTokenSeconds)
		}
		for kind, shown := range map[string]string{"Keycloak's token": token, "ours": ours} {
			if who := s.whoami(t, shown); who.Name != name || who.Issuer != k.issuer() || who.Subject == "" || !slices.Equal(who.Active, []string{"analysts"}) {
				t.Errorf("%s of %s is %+v", kind, name, who)
			}
			s.wantLoads(t, kind+" of "+name, shown, http.StatusOK)
		}
	}
	k.rolesOpenAndClose(s)
	k.subjectsAreLinked(s)

	as := *s
	as.env = maps.Clone(s.env)
	as.env["CATALOG_OAUTH2__SERVER__URI"] = k.tokenURI()
	// Keycloak refuses scopes that it does not know; PyIceberg's own is one.
	live := startLive(t, &as, "CREDENTIAL=engine:engine-secret-engine-secret", "SCOPE=openid")
	live.want("append orders.online", "ok")
	live.want("read orders.online", "ok 1")
	k.keysAreFollowed(s)
	live.want("read orders.online", "ok 1") // its token has ended, and the next is signed with the new key
}

// A role of the realm is what opens the table; without it, and with a token for another application, it stays closed.
func (k *keycloak) rolesOpenAndClose(s *server) {
	k.t.Helper()
	s.wantLoads(k.t, "bob, who has no role,", k.token("portal", "bob"), http.StatusForbidden)
	k.setRole(http.MethodPost, "bob", "lake-analysts")
	s.wantLoads(k.t, "bob with the role", k.token("portal", "bob"), http.StatusOK)
	k.setRole(http.MethodDelete, "bob", "lake-analysts")
	s.wantLoads(k.t, "bob without the role", k.token("portal", "bob"), http.StatusForbidden)
	s.wantLoads(k.t, "ann's token for the shop", k.token("shop", "ann"), http.StatusUnauthorized)
}

// Bob's subject becomes a principal that is there, once it is not bob any more.
func (k *keycloak) subjectsAreLinked(s *server) {
	k.t.Helper()
	bob := []string{"--issuer", k.issuer(), "--subject", bobSubject}
	before := k.token("portal", "bob")
	if who := s.whoami(k.t, before); who.Name != "sso:bob" || who.Subject != bobSubject {
		k.t.Errorf("bob is %+v", who)
	}
	s.catalogd(k.t, "principal", "create", "etl")
	s.catalogd(k.t, append([]string{"principal", "remove-identity", "sso:bob"}, bob...)...)
	s.catalogd(k.t, append([]string{"principal", "add-identity", "etl"}, bob...)...)
	s.wantLoads(k.t, "bob's token from before he was etl", before, http.StatusUnauthorized)
	if who := s.whoami(k.t, k.token("portal", "bob")); who.Name != "etl" || who.Issuer != k.issuer() {
		k.t.Errorf("bob is %+v", who)
	}
}

// The realm gets a new key: tokens of the new one are good within a minute, and those of the old one no more, without a restart.
func (k *keycloak) keysAreFollowed(s *server) {
	k.t.Helper()
	old := k.token("portal", "ann")
	s.wantLoads(k.t, "ann before the key changes", old, http.StatusOK)
	k.rotateKey()
	began := time.Now()
	awaitUpTo(k.t, newKeyMax, "the new key is known", func() bool {
		status, _ := s.loads(k.t, k.token("portal", "ann"))
		return status == http.StatusOK
	})
	k.t.Logf("the new key was known after %.0f s", time.Since(began).Seconds())
	if status, raw := s.loads(k.t, old); status != http.StatusUnauthorized || !strings.Contains(raw, "signed with a key that") {
		k.t.Errorf("a token of the old key: %d %s", status, raw)
	}
}

// postForm sends a form and reads the answer into answer where it is a success.
func postForm(t *testing.T, uri string, form url.Values, answer any) (int, string) {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, uri, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return fetched(t, r, answer)
}

func fetched(t *testing.T, r *http.Request, answer any) (int, string) {
	t.Helper()
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err == nil && answer != nil && response.StatusCode == http.StatusOK {
		err = json.Unmarshal(raw, answer)
	}
	if err != nil {
		t.Fatal(fmt.Errorf("%s %s: %w: %s", r.Method, r.URL.Path, err, raw))
	}
	return response.StatusCode, string(raw)
}
