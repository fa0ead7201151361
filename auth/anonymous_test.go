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
		if err != nil || p.ID != trial.ID || !p.Anonymous || p.OwnCredential() || p.SignedInLately(b.now) {
			t.Errorf("%+v, %v", p, err)
		}
	}
	if p, err := b.tokens.Authenticate(t.Context(), "Bearer "+b.login(t, etl, secret, "").AccessToken); err != nil || p.ID != etl.ID {
		t.Errorf("a right secret gives %+v, %v", p, err)
	}
	gone, _ := b.tokens.secrets.Generate(NewClientID())
	for _, r := range []TokenRequest{
		{Form: form("grant_type", "client_credentials", "client_id", etl.ClientID, "client_secret", "wrong")},
		{Form: form("grant_type", "client_credentials", "client_id", etl.ClientID)},
		{Form: form("grant_type", "client_credentials", "client_secret", gone.Reveal())},
		{Form: form("grant_type", "client_credentials"), Authorization: "Bearer wrong"},
	} {
		_, err := b.tokens.Issue(t.Context(), r)
		wantRefused(t, err, codeInvalidClient, 401)
	}
}

// A token that was given for nothing is renewed for nothing, and stays what it is: it counts where the server is open as its principal,
// acts for nobody, and does not become one that somebody signed in for.
func TestAnonymous_TokensOfAnOpenServerCountThereAlone(t *testing.T) {
	b := newBench(t)
	trial, secret := b.account("trial", "reader")
	b.account("other", "reader")
	b.tokens.anonymous = "trial"
	ask := form("grant_type", "client_credentials")
	given := b.issue(t, TokenRequest{Form: ask}).AccessToken
	own := b.login(t, trial, secret, "").AccessToken
	exchange := func(subject, authorization string) TokenRequest {
		return TokenRequest{Form: form("grant_type", grantTokenExchange, "subject_token", subject, "subject_token_type", tokenTypeAccess), Authorization: authorization}
	}
	for _, authorization := range []string{"", "Bearer " + given, basic("somebody:something")} {
		renewed := b.issue(t, exchange(given, authorization)).AccessToken
		if p, err := b.tokens.Authenticate(t.Context(), "Bearer "+renewed); err != nil || p.ID != trial.ID || !p.Anonymous || p.SignedInLately(b.now) {
			t.Errorf("renewed by %q: %+v, %v", authorization, p, err)
		}
	}
	for _, r := range []TokenRequest{exchange(given, "Bearer "+own), exchange(own, "Bearer "+given)} {
		_, err := b.tokens.Issue(t.Context(), r)
		wantRefused(t, err, codeInvalidGrant, 400)
	}
	_, err := b.tokens.Issue(t.Context(), exchange(own, basic("somebody:something"))) // that is for who shows nothing
	wantRefused(t, err, codeInvalidClient, 401)
	if _, err := b.tokens.actorOf(t.Context(), TokenRequest{}, given); err == nil {
		t.Error("a token that was given to anybody acts for others")
	}
	for _, name := range []string{"", "other"} {
		closed := b.server()
		closed.anonymous = name
		if _, err := closed.Authenticate(t.Context(), "Bearer "+given); !fault.Is(err, fault.Unauthenticated) {
			t.Errorf("a server that is open as %q lets it in: %v", name, err)
		}
		_, err := closed.Issue(t.Context(), exchange(given, ""))
		wantRefused(t, err, codeInvalidGrant, 400)
		if _, err := closed.Authenticate(t.Context(), "Bearer "+own); err != nil {
			t.Errorf("a server that is open as %q refuses who signed in: %v", name, err)
		}
	}
}

// The server itself is let in everywhere, and so nobody is taken for it.
func TestAnonymous_IsNeverTheServerItself(t *testing.T) {
	b := newBench(t)
	system, _ := b.account("system:maintenance")
	system.Kind = System
	b.store.accounts[system.ID] = system
	b.tokens.anonymous = system.Name
	if _, err := b.tokens.Anonymous(t.Context()); !fault.Is(err, fault.Unauthenticated) {
		t.Errorf("%v", err)
	}
}
