package manage_test

import (
	"strings"
	"testing"

	"catalogd/catalog"
)

func TestSecrets_RotateIsForOneselfAndForAdministrators(t *testing.T) {
	o := newOffice(t)
	first := o.hire("etl", "engineers")
	etl, root := o.login(first, ""), o.admin()
	etl.want(403, post, "/principals/root/rotate", "")
	etl.want(403, post, "/principals/none/rotate", "")
	etl.want(403, post, "/principals/etl/reset", "")

	r := etl.want(200, post, "/principals/etl/rotate", "")
	second := credentialOf(t, r)
	if second.ClientID != first.ClientID || second.Secret == first.Secret || r.header.Get("Cache-Control") != "no-store" {
		t.Error("rotation gave the same secret, another client id, or an answer that may be cached")
	}
	if r := o.tryLogin(first, ""); r.status != 401 {
		t.Errorf("the old secret: %d", r.status)
	}
	o.login(second, "")

	third := credentialOf(t, root.want(200, post, "/principals/etl/reset", ""))
	if r := o.tryLogin(second, ""); r.status != 401 {
		t.Errorf("after a reset: %d", r.status)
	}
	o.login(third, "")
	chosen := `{"clientId":"0123456789abcdef","clientSecret":"0123456789abcdef0123456789abcdef"}`
	fourth := credentialOf(t, root.want(200, post, "/principals/etl/reset", chosen))
	if fourth.ClientID != "0123456789abcdef" || fourth.Secret.Reveal() != "0123456789abcdef0123456789abcdef" {
		t.Error("the chosen credential was not taken")
	}
	o.login(fourth, "PRINCIPAL_ROLE:engineers")
	if r := o.tryLogin(third, ""); r.status != 401 {
		t.Errorf("after a reset with a chosen one: %d", r.status)
	}
	o.hire("other")
	root.want(409, post, "/principals/other/reset", `{"clientId":"0123456789abcdef"}`)
	// Secrets are nowhere in the database but as digests.
	for _, secret := range []catalog.Credential{first, second, third, fourth} {
		if n := o.count("SELECT count(*) FROM catalogd.events e, catalogd.audit a WHERE e.details::text || a::text LIKE '%" + secret.Secret.Reveal() + "%'"); n > 0 {
			t.Error("a secret is in the facts")
		}
	}
}

// A secret that must be rotated is good for nothing else.
func TestSecrets_RotationRequired(t *testing.T) {
	o := newOffice(t)
	root := o.admin()
	r := root.want(201, post, "/principals", `{"principal":{"name":"new"},"credentialRotationRequired":true}`)
	root.want(201, put, "/principals/new/principal-roles", `{"principalRole":{"name":"service_admin"}}`)
	first := credentialOf(t, r)
	fresh := o.login(first, "PRINCIPAL_ROLE:ALL")
	fresh.want(403, get, "/principals", "")
	fresh.want(200, get, "/principals/new", "")
	second := credentialOf(t, fresh.want(200, post, "/principals/new/rotate", ""))
	o.login(second, "PRINCIPAL_ROLE:ALL").want(200, get, "/principals", "")
}

// What an administrator did about a stolen token, the token must not undo: it may not replace the secret that came
// after its own. Nor may the holder of an older token after a rotation.
func TestSecrets_ATokenOfAReplacedSecretDoesNotRotate(t *testing.T) {
	o := newOffice(t)
	first := o.hire("etl", "engineers")
	stolen := o.login(first, "")
	second := credentialOf(t, o.admin().want(200, post, "/principals/etl/reset", ""))
	if r := stolen.want(401, post, "/principals/etl/rotate", ""); !strings.Contains(r.body, "replaced") {
		t.Errorf("no reason in %s", r.body)
	}
	owner := o.login(second, "")
	third := credentialOf(t, owner.want(200, post, "/principals/etl/rotate", ""))
	owner.want(401, post, "/principals/etl/rotate", "")
	o.login(third, "").want(200, get, "/principals/etl", "")
}

// A token that was narrowed must not widen itself by way of a new secret, which would give every role.
func TestSecrets_ANarrowedTokenDoesNotRotate(t *testing.T) {
	o := newOffice(t)
	first := o.hire("etl", "engineers", "service_admin")
	narrowed := o.login(first, "PRINCIPAL_ROLE:engineers")
	if r := narrowed.want(403, post, "/principals/etl/rotate", ""); !strings.Contains(r.body, "PRINCIPAL_ROLE:ALL") {
		t.Errorf("no remedy in %s", r.body)
	}
	if n := o.count("SELECT count(*) FROM catalogd.audit WHERE operation = 'rotate-secret'"); n != 1 {
		t.Errorf("%d refusals in the audit, want 1", n)
	}
	o.login(first, "").want(200, post, "/principals/etl/rotate", "")

	// A token of a secret that had to be rotated has no roles; it rotates once and is spent.
	r := o.admin().want(201, post, "/principals", `{"principal":{"name":"new"},"credentialRotationRequired":true}`)
	spent := o.login(credentialOf(t, r), "")
	spent.want(200, post, "/principals/new/rotate", "")
	spent.want(401, post, "/principals/new/rotate", "")
}
