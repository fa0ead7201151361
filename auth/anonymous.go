package auth

import (
	"context"
	"fmt"

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
	if fault.Is(err, fault.NotFound) {
		return Account{}, fault.New(fault.Unauthenticated, "this server is open to everybody as principal %q (open.principal), and there is none of that name", t.anonymous)
	}
	if err != nil {
		return Account{}, fmt.Errorf("find the principal of requests without a token: %w", err)
	}
	return a, nil
}

// anonymousClient tells whether a token request of an open server is to be answered as one without any credentials: it has none, or
// such as no client ever had. Trial set-ups of engines send something because their forms want it. Wrong secrets of clients that there
// are stay wrong.
func (t *Tokens) anonymousClient(ctx context.Context, r TokenRequest, readings []presented) (bool, error) {
	if t.anonymous == "" {
		return false, nil
	}
	if len(readings) == 0 {
		return !hasCredentials(r) && !r.Form.Has("client_id"), nil
	}
	for _, reading := range readings {
		_, err := t.accounts.FindAccountByClientID(ctx, reading.clientID)
		if err == nil || isPersonal(string(reading.secret)) {
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
	if err == nil {
		err = a.State.Admit(Principal{ID: a.ID, Address: r.Address}, t.now())
	}
	if fault.Is(err, fault.Unauthenticated) {
		return session{}, oauthError(codeInvalidClient, "%s", fault.Message(err))
	}
	a.Secret = StoredSecret{} // it was not shown
	return session{Account: a, within: RoleScope{All: true}}, err
}
