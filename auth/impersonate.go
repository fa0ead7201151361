package auth

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"

	"catalogd/authz"
	"catalogd/internal/fault"
)

// userBytesMax bounds the name of a user that an actor names.
const userBytesMax = 256

// actorClaim is who acts as the token's principal (RFC 8693, 4.1), with what shows later that it still may: its roles, and
// the token that it showed.
type actorClaim struct {
	Subject   string          `json:"sub"`
	Name      string          `json:"name"`
	Scope     string          `json:"scope,omitempty"`
	Secret    string          `json:"sec,omitempty"`
	Personal  string          `json:"pat,omitempty"`
	TokenID   string          `json:"jti,omitempty"`
	IssuedAt  int64           `json:"ims,omitempty"` // milliseconds
	Federated *federatedClaim `json:"fed,omitempty"`
}

func (a *actorClaim) actor() (Actor, error) {
	shown, err := a.shown()
	return Actor{ID: shown.ID, Name: a.Name, Shown: shown}, err
}

// shown gives the actor as the token that it showed named it. That token's own end is left out, an identity provider's is not.
func (a *actorClaim) shown() (Principal, error) {
	id, err := uuid.Parse(a.Subject)
	if err != nil {
		return Principal{}, fault.Wrap(fault.Unauthenticated, err, "the token names no actor")
	}
	p := Principal{
		ID: id, Name: a.Name, Kind: Service, Roles: rolesOf(a.Scope), TokenID: a.TokenID, SecretMark: a.Secret, IssuedAt: time.UnixMilli(a.IssuedAt),
	}
	if a.Personal != "" {
		if p.PersonalToken, err = uuid.Parse(a.Personal); err != nil {
			return Principal{}, fault.Wrap(fault.Unauthenticated, err, "the actor's personal access token is not named")
		}
	}
	if a.Federated != nil {
		p.ExpiresAt = a.Federated.until()
	}
	return p, (origin{Federated: a.Federated}).addTo(&p)
}

// namedUser reads a user that an actor merely names: an unsigned JWT, as Trino makes for its session's user, or the name
// alone. What is signed is none: it speaks for itself or not at all.
func namedUser(subject string) (string, bool) {
	if len(subject) > tokenBytesMax {
		return "", false
	}
	if strings.Count(subject, ".") != 2 {
		return subject, isUserName(subject)
	}
	parts := strings.Split(subject, ".")
	if parts[2] != "" {
		// Not a JWT at all: a name with two dots in it.
		if _, err := decodePart(parts[0]); err != nil {
			return subject, isUserName(subject)
		}
		return "", false
	}
	var header struct {
		Algorithm string `json:"alg"`
	}
	var body struct {
		Subject string `json:"sub"`
	}
	raw, err := decodePart(parts[0])
	if err != nil || json.Unmarshal(raw, &header) != nil || header.Algorithm != "none" {
		return "", false
	}
	if raw, err = decodePart(parts[1]); err != nil || json.Unmarshal(raw, &body) != nil {
		return "", false
	}
	return body.Subject, isUserName(body.Subject)
}

// decodePart decodes a part of a JWT and wants a JSON object.
func decodePart(part string) (json.RawMessage, error) {
	raw, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil {
		return nil, err
	}
	var object map[string]json.RawMessage
	return raw, json.Unmarshal(raw, &object)
}

func isUserName(name string) bool {
	return name != "" && len(name) <= userBytesMax && strings.TrimSpace(name) == name && !strings.ContainsFunc(name, unicode.IsControl)
}

// actFor gives a token for a user whom the owner of actor_token names, when it may act for others. What the user's own
// identity provider would give is not there: it was not asked.
func (t *Tokens) actFor(ctx context.Context, r TokenRequest, user string) (TokenAnswer, error) {
	wish, refused := parseScope(r.Form.Get("scope"))
	if refused != nil {
		return TokenAnswer{}, refused
	}
	if t.identity == nil {
		return TokenAnswer{}, oauthError(codeInvalidGrant, "nobody may act for another principal here")
	}
	actor, err := t.actorOf(ctx, r, r.Form.Get("actor_token"))
	if err != nil {
		return TokenAnswer{}, err
	}
	if hasCredentials(r) {
		client, err := t.client(ctx, r)
		if err != nil {
			return TokenAnswer{}, err
		}
		if client.ID.String() != actor.Subject {
			return TokenAnswer{}, oauthError(codeInvalidGrant, "actor_token belongs to another principal")
		}
	}
	account, err := t.identity.FindAccountByName(ctx, user)
	if fault.Is(err, fault.NotFound) {
		account, err = Account{}, nil // whether the actor may ask at all comes first
	}
	if err != nil {
		return TokenAnswer{}, fmt.Errorf("find the user: %w", err)
	}
	r.names(account.Name)
	if err := t.mayActFor(ctx, r, actor, account); err != nil {
		return TokenAnswer{}, err
	}
	r.seen(account)
	account.Secret = StoredSecret{} // it did not obtain this token
	roles, refused := wish.grant(account, nil)
	if refused != nil {
		return TokenAnswer{}, refused
	}
	return t.issueFor(ctx, session{Account: account, origin: origin{Actor: actor}}, roles)
}

// actorOf accepts the live token of an actor. Who acts for somebody else already cannot be one: chains would hide who began.
func (t *Tokens) actorOf(ctx context.Context, r TokenRequest, token string) (*actorClaim, error) {
	shown, err := t.parse(ctx, token)
	if err == nil {
		err = t.checkTimes(shown)
	}
	if fault.Is(err, fault.Unauthenticated) {
		return nil, oauthError(codeInvalidGrant, "actor_token: %s", fault.Message(err))
	}
	if err != nil {
		return nil, err
	}
	if shown.Actor != nil {
		return nil, oauthError(codeInvalidGrant, "actor_token: its owner acts for another principal already")
	}
	if shown.Anonymous {
		return nil, oauthError(codeInvalidGrant, "actor_token: it was given to anybody, and so its owner acts for nobody")
	}
	actor := &actorClaim{
		Subject: shown.Subject, Name: shown.Name, Scope: shown.Scope, Secret: shown.Secret, Personal: shown.Personal, TokenID: shown.ID,
		Federated: shown.Federated,
	}
	if shown.IssuedAt != nil {
		actor.IssuedAt = shown.IssuedAt.UnixMilli() + shown.Millis
	}
	if _, err := t.liveActor(ctx, r, actor); err != nil {
		return nil, err
	}
	return actor, nil
}

// liveActor gives the actor as a caller while the token that it showed would count, but for its end.
func (t *Tokens) liveActor(ctx context.Context, r TokenRequest, a *actorClaim) (Principal, error) {
	named, err := a.shown()
	if err != nil {
		return Principal{}, oauthError(codeInvalidGrant, "actor: %s", fault.Message(err))
	}
	account, err := t.accounts.FindAccountByID(ctx, named.ID)
	switch {
	case fault.Is(err, fault.NotFound) || err == nil && account.Kind == System:
		return Principal{}, oauthError(codeInvalidGrant, "the actor no longer exists")
	case err != nil:
		return Principal{}, fmt.Errorf("find the actor: %w", err)
	case a.Federated != nil && !t.now().Before(a.Federated.until()):
		return Principal{}, oauthError(codeInvalidGrant, "the identity provider's token of the actor has ended")
	}
	p := named
	p.Name, p.Kind, p.Address = account.Name, account.Kind, r.Address
	if err := account.State.Admit(p, t.now()); err != nil {
		return Principal{}, oauthError(codeInvalidGrant, "actor: %s", fault.Message(err))
	}
	if r.tried != nil {
		r.tried.actor = p
	}
	return p, nil
}

// mayActFor refuses unless the actor holds PRINCIPAL_IMPERSONATE by the roles of its token, and the user has no say over
// principals and their rights: an engine must never be a way to administer the service.
func (t *Tokens) mayActFor(ctx context.Context, r TokenRequest, a *actorClaim, user Account) error {
	actor, err := t.liveActor(ctx, r, a)
	if err != nil {
		return err
	}
	if t.identity == nil {
		return oauthError(codeInvalidGrant, "nobody may act for another principal here")
	}
	held, known, err := t.identity.RootGrants(ctx, actor)
	if err != nil {
		return fmt.Errorf("find what the actor holds: %w", err)
	}
	if !known || !authz.Decide(held, []authz.Securable{{Kind: authz.Root, ID: authz.RootID}}, authz.PrincipalImpersonate).Allowed {
		return oauthError(codeUnauthorizedClient, "principal %s may not act for others: %s on the service is missing", actor.Name, authz.PrincipalImpersonate)
	}
	if user.ID == uuid.Nil || user.Kind == System {
		return oauthError(codeInvalidGrant, "subject_token names nobody who is known here")
	}
	if err := user.State.Admit(Principal{ID: user.ID, Address: r.Address}, t.now()); err != nil {
		return oauthError(codeInvalidGrant, "subject_token: %s", fault.Message(err))
	}
	theirs, _, err := t.identity.RootGrants(ctx, Principal{ID: user.ID, Name: user.Name, Kind: user.Kind, Roles: RoleScope{All: true}})
	if err != nil {
		return fmt.Errorf("find what the user holds: %w", err)
	}
	if authz.AdministersPrincipals(theirs) {
		return oauthError(codeInvalidGrant, "principal %s has rights over principals, and nobody may act for such a one", user.Name)
	}
	return nil
}
