package auth

import (
	"testing"

	"catalogd/internal/fault"
)

// Who shows nothing is somebody only where the server is open, and only while there is whom it is open as.
func TestAnonymous_IsWhomTheServerIsOpenAs(t *testing.T) {
	b := newBench(t)
	for _, name := range []string{"", "nobody"} {
		b.tokens.anonymous = name
		if _, err := b.tokens.Anonymous(t.Context()); !fault.Is(err, fault.Unauthenticated) {
			t.Errorf("open as %q: %v", name, err)
		}
	}
	trial, _ := b.account("trial", "reader")
	b.tokens.anonymous = "trial"
	p, err := b.tokens.Anonymous(t.Context())
	if err != nil || p.ID != trial.ID || !p.Anonymous || !p.Roles.All || p.OwnCredential() || p.SignedInLately(b.now) {
		t.Errorf("%+v, %v", p, err)
	}
}

// The token endpoint of an open server answers those who send nothing, or what nobody ever gave out; a wrong secret stays wrong, and
// so does a personal access token that counts no more. The token has no sign-in behind it.
func TestAnonymous_LoginsOfAnOpenServer(t *testing.T) {
	b := newBench(t)
	etl, secret := b.account("etl", "writer")
	trial, _ := b.account("trial", "reader")
	nothing := TokenRequest{Form: form("grant_type", "client_credentials")}
	invented := TokenRequest{Form: form("grant_type", "client_credentials"), Authorization: basic("somebody:something")}
	for _, r := range []TokenRequest{nothing, invented} {
		_, err := b.tokens.Issue(t.Context(), r)
		wantRefused(t, err, codeInvalidClient, 401)
	}
	b.tokens.anonymous = "trial"
	for _, r := range []TokenRequest{nothing, invented} {
		p, err := b.tokens.Authenticate(t.Context(), "Bearer "+b.issue(t, r).AccessToken)
		if err != nil || p.ID != trial.ID || p.OwnCredential() || p.SignedInLately(b.now) {
			t.Errorf("%+v, %v", p, err)
		}
	}
	if p, err := b.tokens.Authenticate(t.Context(), "Bearer "+b.login(t, etl, secret, "").AccessToken); err != nil || p.ID != etl.ID {
		t.Errorf("a right secret gives %+v, %v", p, err)
	}
	for _, r := range []TokenRequest{
		{Form: form("grant_type", "client_credentials", "client_id", etl.ClientID, "client_secret", "wrong")},
		{Form: form("grant_type", "client_credentials", "client_id", etl.ClientID)},
	} {
		_, err := b.tokens.Issue(t.Context(), r)
		wantRefused(t, err, codeInvalidClient, 401)
	}
}
