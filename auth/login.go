package auth

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"catalogd/internal/fault"
)

// LoginDenial is a login that was refused, for the audit.
type LoginDenial struct {
	At time.Time
	// Principal is whose client id was given, "" when it is nobody's. Nobody has proven to be that.
	Principal string
	RequestID string
	Address   netip.Addr
	Reason    string
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
		return Account{}, "", t.slow(ctx, r, clientID, named, wait)
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
	t.recordDenial(ctx, r, clientID, named, reason)
	return Account{}, "", oauthError(codeInvalidClient, reason)
}

// refuseLogin gives the refusal of an assertion, at the price of a wrong secret, or the time to wait when there were too many.
func (t *Tokens) refuseLogin(ctx context.Context, r TokenRequest, clientID, named string, refused *OAuthError) error {
	if wait := t.throttle.take(t.now(), r.Address, clientID); wait > 0 {
		return t.slow(ctx, r, clientID, named, wait)
	}
	if err := t.secrets.Decoy(ctx); err != nil {
		t.throttle.forgive(r.Address, clientID)
		return err
	}
	t.recordDenial(ctx, r, clientID, named, refused.Description)
	return refused
}

func (t *Tokens) slow(ctx context.Context, r TokenRequest, clientID, named string, wait time.Duration) error {
	t.recordDenial(ctx, r, clientID, named, "too many wrong secrets from this address")
	return slowed(wait)
}

// recordDenial tells the audit, once a minute for an address and a client id, with the number of those in between.
func (t *Tokens) recordDenial(ctx context.Context, r TokenRequest, clientID, named, reason string) {
	now := t.now()
	due, before := t.throttle.denied(now, r.Address, clientID)
	if !due || t.denials == nil {
		return
	}
	if before > 0 {
		reason = fmt.Sprintf("%s; %d more of this client id and address were refused since the last record", reason, before)
	}
	t.denials(ctx, LoginDenial{At: now, Principal: named, RequestID: r.RequestID, Address: r.Address, Reason: reason})
}

// DeniedLogins tells how many logins were refused since the start, recorded or not.
func (t *Tokens) DeniedLogins() uint64 {
	t.throttle.mu.Lock()
	defer t.throttle.mu.Unlock()
	return t.throttle.refused
}
