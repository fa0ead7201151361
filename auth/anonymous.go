package auth

import (
	"context"
	"fmt"
	"strings"

	"catalogd/internal/fault"
)

// Anonymous gives the principal of a request without a token, where the server is open (TokensConfig.Anonymous): else, and when
// there is no such principal, fault.Unauthenticated. It has the rights that the principal was granted and none that needs a sign-in:
// it makes no tokens, secrets and keys.
func (t *Tokens) Anonymous(ctx context.Context) (Principal, error) {
	a, err := t.anonymousAccount(ctx)
	if err != nil {
		return Principal{}, err
	}
	return Principal{ID: a.ID, Name: a.Name, Kind: a.Kind, Roles: RoleScope{All: true}, Anonymous: true}, nil
}

func (t *Tokens) anonymousAccount(ctx context.Context) (Account, error) {
	if t.anonymous == "" {
		return Account{}, fault.New(fault.Unauthenticated, "not signed in: the Authorization header is missing")
	}
	a, err := t.accounts.FindAccountByName(ctx, t.anonymous)
	if fault.Is(err, fault.NotFound) || err == nil && a.Kind == System { // the server itself is let in everywhere
		return Account{}, fault.New(fault.Unauthenticated, "this server is open to everybody as principal %q (open.principal), and there is none of that name", t.anonymous)
	}
	if err != nil {
		return Account{}, fmt.Errorf("find the principal of requests without a token: %w", err)
	}
	return a, nil
}

// BearsNothing tells whether an Authorization header is as good as none: empty, or a bearer token of a client that has none.
func BearsNothing(authorization string) bool {
	scheme, token, _ := strings.Cut(strings.TrimSpace(authorization), " ")
	switch token = strings.TrimSpace(token); token {
	case "", "None", "null", "undefined":
		return scheme == "" || strings.EqualFold(scheme, "Bearer")
	}
	return false
}

// stillOpen refuses tokens that were given for nothing by a server that is open no more, or by another one of the same database
// that is: fault.Unauthenticated. What others obtained is none of its business.
func (t *Tokens) stillOpen(p Principal) error {
	if !p.Anonymous || p.Name == t.anonymous {
		return nil
	}
	return fault.New(fault.Unauthenticated, "the token was given to anybody by a server that is open, and this one is not; sign in")
}

// clientOrAnybody is client, but for who shows nothing to an open server, or what nobody ever gave out.
func (t *Tokens) clientOrAnybody(ctx context.Context, r TokenRequest) (session, error) {
	if t.anonymous == "" {
		return t.client(ctx, r)
	}
	open, err := t.anonymousClient(ctx, r)
	if err != nil {
		return session{}, err
	}
	if !open {
		return t.client(ctx, r)
	}
	return t.anonymousSession(ctx, r)
}

// anonymousClient tells whether a token request of an open server is to be answered as one without any credentials: it has none, or
// such as no client ever had. Trial set-ups of engines send something because their forms want it. Wrong secrets of clients that there
// are, assertions, and secrets that this server made, whoever had them, stay wrong.
func (t *Tokens) anonymousClient(ctx context.Context, r TokenRequest) (bool, error) {
	if !hasCredentials(r) {
		return !r.Form.Has("client_id") && BearsNothing(r.Authorization), nil
	}
	if assertionText(r) != "" {
		return false, nil
	}
	readings, refused := readCredentials(r)
	if refused != nil {
		return false, nil // client says what is wrong with them
	}
	for _, reading := range readings {
		if isPersonal(string(reading.secret)) || clientIDOf(reading.secret) != "" {
			return false, nil
		}
		_, err := t.accounts.FindAccountByClientID(ctx, reading.clientID)
		if err == nil {
			return false, nil
		}
		if !fault.Is(err, fault.NotFound) {
			return false, fmt.Errorf("find client: %w", err)
		}
	}
	return true, nil
}

// anonymousSession is what tokens rest on that are given for no credentials: nothing but that the server is open.
func (t *Tokens) anonymousSession(ctx context.Context, r TokenRequest) (session, error) {
	a, err := t.anonymousAccount(ctx)
	if fault.Is(err, fault.Unauthenticated) {
		return session{}, oauthError(codeInvalidClient, "%s", fault.Message(err))
	}
	if err != nil {
		return session{}, err
	}
	if err := a.State.Admit(Principal{ID: a.ID, Address: r.Address}, t.now()); err != nil {
		return session{}, t.notAdmitted(ctx, r, a, fault.Message(err))
	}
	a.Secret = StoredSecret{} // it was not shown
	return session{Account: a, within: RoleScope{All: true}, origin: origin{Anonymous: true}}, nil
}
