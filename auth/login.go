package auth

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"catalogd/internal/fault"
)

// LoginDenial is a login, or an exchange of a token, that was refused, for the audit.
type LoginDenial struct {
	At time.Time
	// Principal is whose client id was given, or whom a token names, "" when it is nobody's. Nobody has proven to be that.
	Principal string
	// Actor is who asked for a token of Principal, and has proven to be that by a live token; the zero value when nobody has.
	Actor     Principal
	RequestID string
	Address   netip.Addr
	UserAgent string
	Reason    string
}

// attempt is what is found out about a token request while it is answered, for the audit of its refusal.
type attempt struct {
	named string    // whose token is wanted, as far as that is a principal
	actor Principal // who has proven to want it for another
	told  bool      // the audit knows of the refusal
}

// denies tells whether a refusal says that somebody is not who he shows to be, or may not have what he asks for; the others are of
// requests that are written wrongly.
func (e *OAuthError) denies() bool {
	return e.Code == codeInvalidClient || e.Code == codeInvalidGrant || e.Code == codeUnauthorizedClient
}

// checkSecret finds the account whose secret one of the readings is. What can be told without work is told first and is never
// throttled: the secret that the server made, and one that was found right before. Refusals look up and hash as much as each other,
// whether the client exists or not.
func (t *Tokens) checkSecret(ctx context.Context, r TokenRequest, readings []presented) (Account, Secret, error) {
	type candidate struct {
		account Account
		secret  Secret
	}
	var chosen []candidate
	named := ""
	for _, reading := range readings {
		account, err := t.accounts.FindAccountByClientID(ctx, reading.clientID)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return Account{}, "", fmt.Errorf("find client: %w", err)
		}
		if err != nil || account.Kind != Service {
			continue
		}
		r.seen(account)
		if t.secrets.knows(account.Secret, reading.secret) {
			return account, reading.secret, nil
		}
		if named = account.Name; account.Secret.Algorithm == AlgorithmArgon2 {
			chosen = append(chosen, candidate{account, reading.secret})
		}
	}
	clientID := readings[0].clientID
	if wait := t.throttle.take(t.now(), r.Address, clientID); wait > 0 {
		return Account{}, "", t.slow(ctx, r, named, wait)
	}
	for _, c := range chosen {
		good, err := t.secrets.Verify(ctx, c.account.Secret, c.secret)
		if err != nil || good {
			t.throttle.forgive(r.Address, clientID)
			return c.account, c.secret, err
		}
	}
	for range len(readings) - len(chosen) {
		if err := t.secrets.Decoy(ctx); err != nil {
			t.throttle.forgive(r.Address, clientID)
			return Account{}, "", err
		}
	}
	const reason = "client id or client secret is wrong"
	t.recordDenial(ctx, r, named, reason)
	return Account{}, "", oauthError(codeInvalidClient, reason)
}

// refuseLogin gives the refusal of an assertion, at the price of a wrong secret, or the time to wait when there were too many.
func (t *Tokens) refuseLogin(ctx context.Context, r TokenRequest, clientID, named string, refused *OAuthError) error {
	if wait := t.throttle.take(t.now(), r.Address, clientID); wait > 0 {
		return t.slow(ctx, r, named, wait)
	}
	if err := t.secrets.Decoy(ctx); err != nil {
		t.throttle.forgive(r.Address, clientID)
		return err
	}
	t.recordDenial(ctx, r, named, refused.Description)
	return refused
}

func (t *Tokens) slow(ctx context.Context, r TokenRequest, named string, wait time.Duration) error {
	t.recordDenial(ctx, r, named, "too many wrong secrets from this address")
	return slowed(wait)
}

// recordDenial tells the audit, which counts those that are too many.
func (t *Tokens) recordDenial(ctx context.Context, r TokenRequest, named, reason string) {
	t.throttle.denied()
	d := LoginDenial{At: t.now(), Principal: named, RequestID: r.RequestID, Address: r.Address, UserAgent: r.UserAgent, Reason: reason}
	if r.tried != nil {
		r.tried.told, d.Actor = true, r.tried.actor
	}
	if t.denials != nil {
		t.denials(ctx, d)
	}
}

// notAdmitted refuses somebody whose credentials were right, and tells the audit: perhaps they are another's by now.
func (t *Tokens) notAdmitted(ctx context.Context, r TokenRequest, a Account, reason string) *OAuthError {
	t.recordDenial(ctx, r, a.Name, reason)
	return oauthError(codeInvalidClient, "%s", reason)
}

// DeniedLogins tells how many logins were refused since the start, recorded or not.
func (t *Tokens) DeniedLogins() uint64 {
	t.throttle.mu.Lock()
	defer t.throttle.mu.Unlock()
	return t.throttle.refused
}
