package manage_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// signingKeys reads an answer about signing keys: their ids by state.
func signingKeys(t *testing.T, r reply) map[string][]string {
	t.Helper()
	var answer struct {
		Keys []struct{ KID, State string }
	}
	if err := json.Unmarshal([]byte(r.body), &answer); err != nil {
		t.Fatal(err)
	}
	byState := map[string][]string{}
	for _, k := range answer.Keys {
		byState[k.State] = append(byState[k.State], k.KID)
	}
	if strings.Contains(r.body, "rivate") {
		t.Errorf("a private half: %s", r.body)
	}
	return byState
}

// The server's own key is rotated over the wire while two servers run: the new one is announced, published by both, and does not sign
// yet; a second rotation waits for it; tokens of either server are good at both throughout.
func TestField_C150_SigningKeysRotateOnTwoServers(t *testing.T) {
	o := newOffice(t)
	branch := o.branch()
	root, there := o.admin(), branch.admin()
	before := signingKeys(t, root.want(200, get, "/signing-keys", ""))
	if len(before["signing"]) != 1 || len(before) != 1 {
		t.Fatalf("%v", before)
	}
	after := signingKeys(t, root.want(200, post, "/signing-keys/rotate", ""))
	if !slices.Equal(after["signing"], before["signing"]) || len(after["announced"]) != 1 {
		t.Fatalf("%v", after)
	}
	if again := signingKeys(t, there.want(200, get, "/signing-keys", "")); !slices.Equal(again["announced"], after["announced"]) {
		t.Errorf("the other server shows %v", again)
	}
	there.want(409, post, "/signing-keys/rotate", "{}")
	for _, at := range []*office{o, o.branch()} {
		published := at.send(http.MethodGet, "/.well-known/jwks.json", "", "", "")
		if !strings.Contains(published.body, after["announced"][0]) || !strings.Contains(published.body, after["signing"][0]) {
			t.Errorf("published: %s", published.body)
		}
	}
	(&person{branch, root.token}).want(200, get, "/principals", "")
	(&person{o, there.token}).want(200, get, "/principals", "")
	(&person{branch, o.admin().token}).want(200, get, "/principals", "")
	if n := o.count("SELECT count(*) FROM catalogd.audit WHERE operation = 'rotate-signing-keys' AND allowed AND principal = 'root'"); n != 1 {
		t.Errorf("%d rotations in the audit", n)
	}

	// A leak: all tokens end, at once on the server that was asked, and on the others as soon as they meet a token of the new key.
	if left := signingKeys(t, root.want(200, post, "/signing-keys/rotate", `{"endTokens":true}`)); len(left["signing"]) != 1 || len(left) != 1 {
		t.Errorf("left: %v", left)
	}
	root.want(401, get, "/principals", "")
	fresh := o.admin()
	fresh.want(200, get, "/principals", "")
}

func TestKeys_AreAdministrators(t *testing.T) {
	o := newOffice(t)
	ann := o.login(o.hire("ann"), "")
	ann.want(403, get, "/signing-keys", "")
	ann.want(403, post, "/signing-keys/rotate", "")
	(&person{office: o}).want(401, get, "/signing-keys", "")
}

const (
	someKey   = `{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}`
	someKeyID = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"
)

// Who may register keys: oneself with all of one's roles, or who may reset secrets. Nobody learns from refusals who exists.
func TestPrincipalKeys_WhoMay(t *testing.T) {
	o := newOffice(t)
	ann, bob := o.hire("ann", "etl"), o.login(o.hire("bob"), "")
	all, narrowed := o.login(ann, ""), o.login(ann, "PRINCIPAL_ROLE:etl")
	body := `{"key":` + someKey + `,"expiresAt":"2100-01-01T00:00:00Z"}`
	if r := narrowed.want(403, post, "/principals/ann/keys", body); !strings.Contains(r.body, "PRINCIPAL_ROLE:ALL") {
		t.Errorf("no remedy in %s", r.body)
	}
	for _, name := range []string{"ann", "nobody"} {
		for _, call := range [][3]string{
			{post, "/principals/" + name + "/keys", body}, {get, "/principals/" + name + "/keys", ""}, {del, "/principals/" + name + "/keys/x", ""},
		} {
			r := bob.want(403, call[0], call[1], call[2])
			if strings.Contains(r.body, "exist") {
				t.Errorf("%v tells %s", call, r.body)
			}
		}
	}
	r := all.want(201, post, "/principals/ann/keys", body)
	if r.at(t, "kid") != someKeyID || r.at(t, "algorithm") != "EdDSA" || r.at(t, "expired") != false || r.at(t, "expiresAt") != "2100-01-01T00:00:00Z" {
		t.Errorf("%s", r.body)
	}
	all.want(409, post, "/principals/ann/keys", `{"key":`+quote(someKey)+`}`)
	narrowed.want(200, get, "/principals/ann/keys", "")
	narrowed.want(403, del, "/principals/ann/keys/"+someKeyID, "")
	all.want(204, del, "/principals/ann/keys/"+someKeyID, "")
	all.want(404, del, "/principals/ann/keys/"+someKeyID, "")
	o.admin().want(201, post, "/principals/ann/keys", `{"key":`+quote(someKey)+`}`)
	o.admin().want(404, post, "/principals/nobody/keys", body)
	for _, bad := range []string{`{}`, `{"key":7}`, `{"key":"x"}`, `{"key":` + someKey + `,"expiresAt":"2001-01-01T00:00:00Z"}`, `{"key":"-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----"}`} {
		all.want(400, post, "/principals/ann/keys", bad)
	}
	if n := o.count("SELECT count(*) FROM catalogd.audit WHERE operation = 'add-principal-key' AND allowed"); n != 2 {
		t.Errorf("%d keys in the audit", n)
	}
	all.want(200, get, "/principals/ann/keys", "")
	o.admin().want(204, del, "/principals/ann", "")
	if n := o.count("SELECT count(*) FROM catalogd.principal_keys"); n != 0 {
		t.Errorf("%d keys of nobody", n)
	}
}
