package auth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"catalogd/internal/fault"
)

// tokenMarkBytes of a token's hash name one that has no id of its own.
const tokenMarkBytes = 12

// federatedClaim says that an identity provider vouched for the token's principal, till when, and which roles it gave.
type federatedClaim struct {
	Issuer  string           `json:"iss"`
	Subject string           `json:"sub"`
	Until   *jwt.NumericDate `json:"exp"`
	Roles   []string         `json:"roles,omitempty"`
}

func (f *federatedClaim) until() time.Time {
	if f.Until == nil {
		return time.Time{}
	}
	return f.Until.Time
}

// origin is what a token says beyond a principal that showed its own secret.
type origin struct {
	Federated *federatedClaim `json:"fed,omitempty"`
	Actor     *actorClaim     `json:"act,omitempty"`
	// Anonymous tells that nothing was shown for the token: it counts where the server is open as its principal, and nowhere else.
	Anonymous bool `json:"anon,omitempty"`
}

// isOwn tells that the principal's own secret obtained the token.
func (o origin) isOwn() bool { return o.Federated == nil && o.Actor == nil }

// addTo completes a principal with who vouched for it and who acts as it.
func (o origin) addTo(p *Principal) error {
	p.Anonymous = o.Anonymous
	if f := o.Federated; f != nil {
		p.Issuer, p.Subject, p.Roles.Brought = f.Issuer, f.Subject, f.Roles
	}
	if o.Actor != nil {
		actor, err := o.Actor.actor()
		if err != nil {
			return err
		}
		p.Actor = &actor
	}
	return nil
}

// isExternal tells whether a token says that it is an identity provider's. What is ours never says so.
func (t *Tokens) isExternal(token string) bool { return t.issuers != nil && t.issuers.Issues(token) }

// authenticateExternal gives the caller that an identity provider's token names, making its principal at first sight.
func (t *Tokens) authenticateExternal(ctx context.Context, token string) (Principal, error) {
	identity, err := t.issuers.Verify(ctx, token)
	if err != nil {
		return Principal{}, err
	}
	account, err := t.accountOf(ctx, identity)
	if err != nil {
		return Principal{}, err
	}
	p := Principal{
		ID: account.ID, Name: account.Name, Kind: account.Kind, Roles: RoleScope{All: true, Brought: identity.Roles},
		TokenID: identity.TokenID, IssuedAt: identity.IssuedAt, ExpiresAt: identity.ExpiresAt,
		Issuer: identity.Issuer, Subject: identity.Subject, SignedInAt: identity.IssuedAt,
	}
	if p.TokenID == "" {
		p.TokenID = tokenMark(token)
	}
	t.external.keep(token, checkedToken{principal: p, kid: identity.Key, expiresAt: identity.ExpiresAt})
	return p, nil
}

// knownExternal gives whom a provider's token names that was found good before. Time and key are looked at each time.
func (t *Tokens) knownExternal(token string) (Principal, bool) {
	if t.issuers == nil || len(token) > ExternalTokenBytesMax {
		return Principal{}, false
	}
	t.external.mu.RLock()
	found, ok := t.external.tokens[sha256.Sum256([]byte(token))]
	t.external.mu.RUnlock()
	if !ok || !t.now().Before(found.expiresAt) || !t.issuers.Trusts(found.principal.Issuer, found.kid) {
		return Principal{}, false
	}
	found.principal.Roles = found.principal.Roles.clone()
	return found.principal, true
}

// tokenMark names a token that has no id.
func tokenMark(token string) string {
	sum := sha256.Sum256([]byte(token))
	return "sha256:" + hex.EncodeToString(sum[:tokenMarkBytes])
}

// accountOf finds the principal that is linked to an identity, and makes it where that is wanted. A principal that has the
// name already stays its owner's: names are what anybody may choose at some provider.
func (t *Tokens) accountOf(ctx context.Context, i Identity) (Account, error) {
	account, err := t.identity.FindIdentity(ctx, i.Issuer, i.Subject, i.Roles)
	if fault.Is(err, fault.NotFound) {
		if !i.Create {
			return Account{}, fault.New(fault.Unauthenticated, "no principal belongs to subject %q of %s: and none is made for it (create_principals)", i.Subject, i.Issuer)
		}
		made := NewFederated{
			ID: uuid.Must(uuid.NewV7()), Name: i.Name, ClientID: NewClientID(), Issuer: i.Issuer, Subject: i.Subject, At: t.now(),
		}
		err = t.identity.CreateIdentity(ctx, made)
		if fault.Is(err, fault.AlreadyExists) {
			return Account{}, fault.Wrap(fault.Unauthenticated, err, "subject %q of %s is called %q, which is another principal's name: give the issuer a "+
				"name_prefix", i.Subject, i.Issuer, i.Name)
		}
		if err != nil {
			return Account{}, fmt.Errorf("make a principal for subject %s of %s: %w", i.Subject, i.Issuer, err)
		}
		account, err = t.identity.FindIdentity(ctx, i.Issuer, i.Subject, i.Roles)
	}
	if err != nil {
		return Account{}, fmt.Errorf("find the principal of subject %s of %s: %w", i.Subject, i.Issuer, err)
	}
	if account.Kind == System {
		return Account{}, fault.New(fault.Unauthenticated, "the token names no principal")
	}
	return account, nil
}

// exchangeAny answers a token exchange, and tells the audit when it refuses: what it is shown is as good as a secret.
func (t *Tokens) exchangeAny(ctx context.Context, r TokenRequest, subject string) (TokenAnswer, error) {
	r.tried = &attempt{}
	answer, err := t.exchangeBySubject(ctx, r, subject)
	if refused := (*OAuthError)(nil); errors.As(err, &refused) && refused.denies() && !r.tried.told {
		t.recordDenial(ctx, r, r.tried.named, refused.Description)
	}
	return answer, err
}

// exchangeBySubject answers by what the subject token is: an identity provider's, a user that an actor names, one of ours that no
// secret of its principal obtained, or any other.
func (t *Tokens) exchangeBySubject(ctx context.Context, r TokenRequest, subject string) (TokenAnswer, error) {
	if t.isExternal(subject) {
		return t.exchangeExternal(ctx, r, subject)
	}
	if r.Form.Get("actor_token") != "" {
		if user, ok := namedUser(subject); ok {
			return t.actFor(ctx, r, user)
		}
	}
	if shown, err := t.parse(ctx, subject); err == nil && !shown.isOwn() {
		return t.renew(ctx, r, shown)
	}
	return t.exchange(ctx, r, subject)
}

// exchangeExternal gives a token of ours for an identity provider's. That token alone is good as a bearer too, so nothing
// more is asked; credentials that come along must be right all the same. An actor is named in the token, and needs no right:
// the user's own token speaks for the user.
func (t *Tokens) exchangeExternal(ctx context.Context, r TokenRequest, subjectToken string) (TokenAnswer, error) {
	wish, refused := parseScope(r.Form.Get("scope"))
	if refused != nil {
		return TokenAnswer{}, refused
	}
	if hasCredentials(r) {
		if _, err := t.client(ctx, r); err != nil {
			return TokenAnswer{}, err
		}
	}
	identity, err := t.issuers.Verify(ctx, subjectToken)
	if identity.TokenID == "" {
		identity.TokenID = tokenMark(subjectToken) // as the bearer's: what is revoked is not exchanged either
	}
	var account Account
	if err == nil {
		account, err = t.accountOf(ctx, identity)
	}
	if err == nil {
		r.names(account.Name)
		err = account.State.Admit(Principal{
			ID: account.ID, TokenID: identity.TokenID, IssuedAt: identity.IssuedAt, Issuer: identity.Issuer, Subject: identity.Subject,
			Address: r.Address,
		}, t.now())
	}
	if fault.Is(err, fault.Unauthenticated) {
		return TokenAnswer{}, oauthError(codeInvalidGrant, "subject_token: %s", fault.Message(err))
	}
	if err != nil {
		return TokenAnswer{}, err
	}
	r.seen(account)
	var actor *actorClaim
	if token := r.Form.Get("actor_token"); token != "" {
		if actor, err = t.actorOf(ctx, r, token); err != nil {
			return TokenAnswer{}, err
		}
	}
	roles, refused := wish.grant(account, nil)
	if refused != nil {
		return TokenAnswer{}, refused
	}
	made := origin{Actor: actor, Federated: &federatedClaim{
		Issuer: identity.Issuer, Subject: identity.Subject, Until: jwt.NewNumericDate(identity.ExpiresAt), Roles: account.Brought,
	}}
	return t.issueFor(ctx, session{Account: account, origin: made, family: familyOf(identity.TokenID), signedInAt: identity.IssuedAt}, roles)
}

// renew gives a new token for a live one of ours that no secret of its principal obtained. Who shows it must be whom it names,
// which the token itself shows, or who acts as that. The new token never outlives the identity provider's token, the link to
// its subject, or the actor's right.
func (t *Tokens) renew(ctx context.Context, r TokenRequest, subject *claims) (TokenAnswer, error) {
	wish, refused := parseScope(r.Form.Get("scope"))
	if refused != nil {
		return TokenAnswer{}, refused
	}
	r.names(subject.Name)
	if err := t.mayRenew(ctx, r, subject); err != nil {
		return TokenAnswer{}, err
	}
	account, err := t.accountOfToken(ctx, r, subject)
	if err != nil {
		return TokenAnswer{}, err
	}
	r.seen(account)
	made := origin{Actor: subject.Actor}
	if f := subject.Federated; f != nil {
		made.Federated = &federatedClaim{Issuer: f.Issuer, Subject: f.Subject, Until: f.Until, Roles: account.Brought}
	} else if err := t.mayActFor(ctx, r, subject.Actor, account); err != nil {
		return TokenAnswer{}, err
	}
	within := rolesOf(subject.Scope)
	roles, refused := wish.grant(account, &within)
	if refused != nil {
		return TokenAnswer{}, refused
	}
	s := session{Account: account, origin: made, family: familyOf(subject.ID)}
	if subject.SignedIn != 0 {
		s.signedInAt = time.Unix(subject.SignedIn, 0)
	}
	return t.issueFor(ctx, s, roles)
}

// mayRenew wants the token itself to be live, or its actor's credentials: clients ask so when it has ended meanwhile.
func (t *Tokens) mayRenew(ctx context.Context, r TokenRequest, subject *claims) error {
	problem := t.checkTimes(subject)
	if hasCredentials(r) {
		client, err := t.client(ctx, r)
		if err != nil {
			return err
		}
		if subject.Actor == nil || subject.Actor.Subject != client.ID.String() {
			return oauthError(codeInvalidGrant, "subject_token belongs to another principal")
		}
		if errors.Is(problem, errExpired) {
			problem = nil
		}
	}
	if problem != nil {
		return oauthError(codeInvalidGrant, "subject_token: %s", fault.Message(problem))
	}
	return nil
}

// accountOfToken gives the account that one of our tokens names, with the roles that its identity provider gave, and without
// its secret.
func (t *Tokens) accountOfToken(ctx context.Context, r TokenRequest, subject *claims) (Account, error) {
	principal, err := subject.principal()
	if err != nil {
		return Account{}, oauthError(codeInvalidGrant, "subject_token: %s", fault.Message(err))
	}
	var account Account
	if f := subject.Federated; f != nil {
		account, err = t.identity.FindIdentity(ctx, f.Issuer, f.Subject, f.Roles)
	} else {
		account, err = t.accounts.FindAccountByID(ctx, principal.ID)
	}
	switch {
	case fault.Is(err, fault.NotFound) || err == nil && (account.Kind == System || account.ID != principal.ID):
		return Account{}, oauthError(codeInvalidGrant, "the principal of the token no longer exists")
	case err != nil:
		return Account{}, fmt.Errorf("find account of token: %w", err)
	}
	principal.Address = r.Address
	if err := account.State.Admit(principal, t.now()); err != nil {
		return Account{}, oauthError(codeInvalidGrant, "subject_token: %s", fault.Message(err))
	}
	account.Secret = StoredSecret{} // it did not obtain this token
	return account, nil
}

// issueFor signs a token that no secret of the account obtained. It ends with the identity provider's, if there is one.
func (t *Tokens) issueFor(ctx context.Context, s session, roles RoleScope) (TokenAnswer, error) {
	if s.Federated != nil {
		if s.until = s.Federated.until().Truncate(time.Second); !t.now().Truncate(time.Second).Before(s.until) {
			return TokenAnswer{}, oauthError(codeInvalidGrant, "the identity provider's token has ended; sign in there again")
		}
	}
	answer, err := t.issue(ctx, s, roles)
	if err == nil && len(answer.AccessToken) > tokenBytesMax {
		return TokenAnswer{}, oauthError(codeInvalidScope, "a token with so many roles would be too long; ask for some of them by scope")
	}
	return answer, err
}
