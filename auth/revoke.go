package auth

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"catalogd/internal/fault"
)

// Revocable answers what a revocation (RFC 7009) is about: the principal as the shown token names it, and whether there is anything
// to end. Nothing is when the token is none of ours, has ended or was revoked; by the RFC that is a success as well. Who asks
// shows the client's credentials, another live token of the same principal in the header, or nothing but the token, for who has it can do
// all that it can. Refusals are *OAuthError; any other error means that the server could not decide.
func (t *Tokens) Revocable(ctx context.Context, r TokenRequest) (p Principal, live bool, err error) {
	text := r.Form.Get("token")
	if text == "" {
		return Principal{}, false, oauthError(codeInvalidRequest, "the form field token is missing")
	}
	asker, err := t.revoker(ctx, r, text)
	if err != nil {
		return Principal{}, false, err
	}
	p, err = t.holderOf(ctx, text)
	if fault.Is(err, fault.Unauthenticated) {
		return Principal{}, false, nil
	}
	if err != nil {
		return Principal{}, false, err
	}
	if asker != uuid.Nil && asker != p.ID {
		return Principal{}, false, oauthError(codeInvalidGrant, "the token belongs to another principal")
	}
	account, err := t.accounts.FindAccountByID(ctx, p.ID)
	switch {
	case fault.Is(err, fault.NotFound) || err == nil && account.Kind == System:
		return Principal{}, false, nil
	case err != nil:
		return Principal{}, false, fmt.Errorf("find account of token: %w", err)
	}
	r.seen(account)
	p.Name, p.Kind, p.Address = account.Name, account.Kind, r.Address
	if account.State.keepsOut(p) { // the token may be good elsewhere, so this is no success
		return Principal{}, false, t.notAdmitted(ctx, r, account, "requests of this principal may not come from "+addressText(r.Address))
	}
	return p, account.State.Admit(p, t.now()) == nil, nil
}

// revoker finds out who asks for a revocation; uuid.Nil for who shows nothing but the token.
func (t *Tokens) revoker(ctx context.Context, r TokenRequest, text string) (uuid.UUID, error) {
	if hasCredentials(r) {
		client, err := t.client(ctx, r)
		return client.ID, err
	}
	_, token, _ := strings.Cut(strings.TrimSpace(r.Authorization), " ")
	if token = strings.TrimSpace(token); token == "" || token == text {
		return uuid.Nil, nil
	}
	asker, err := t.holderOf(ctx, token)
	var account Account
	if err == nil {
		account, err = t.accounts.FindAccountByID(ctx, asker.ID)
	}
	if err == nil {
		asker.Address = r.Address
		err = account.State.Admit(asker, t.now())
	}
	if fault.Is(err, fault.Unauthenticated) || fault.Is(err, fault.NotFound) {
		return uuid.Nil, t.notAdmitted(ctx, r, account, "the Authorization header proves nobody; leave it away, the token is enough")
	}
	return asker.ID, err
}

// holderOf gives whom a live token names, ours or an identity provider's: fault.Unauthenticated when it is none.
func (t *Tokens) holderOf(ctx context.Context, text string) (Principal, error) {
	if t.isExternal(text) {
		return t.authenticateExternal(ctx, text)
	}
	shown, err := t.shown(ctx, text)
	if err == nil {
		err = shown.problem
	}
	return shown.Principal, err
}

// keepsOut tells whether a network policy, of whatever kind, keeps a caller out.
func (s *CallerState) keepsOut(p Principal) bool {
	if s == nil {
		return false
	}
	if !s.ServerNetwork.Admits(p.Address) || !s.Network.Admits(p.Address) {
		return true
	}
	for _, t := range s.Personal {
		if t.ID == p.PersonalToken {
			return !NetworkPolicy{Allowed: t.Networks}.Admits(p.Address)
		}
	}
	return false
}
