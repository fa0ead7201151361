package auth

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"catalogd/authz"
	"catalogd/internal/fault"
)

// Limits and fixed words of tokens.
const (
	tokenBytesMax = 8 << 10
	tokenType     = "at+jwt" // RFC 9068; no other JWT of ours has it
	audience      = "catalogd"

	// TokenLifeDefault is the life of an access token where the setting says nothing.
	TokenLifeDefault = time.Hour
	// TokenLifeMax bounds the setting: a retired signing key is kept for so long.
	TokenLifeMax = 24 * time.Hour

	clockSkewMax = time.Minute // between servers, for "not before" and "issued at"
)

// claims is what our tokens say. They carry all that a request needs of its caller, so that checking one asks
// nobody; whether the principal still exists is part of the read that each operation does anyway.
type claims struct {
	jwt.RegisteredClaims
	Name     string `json:"name"`
	ClientID string `json:"client_id"`
	Scope    string `json:"scope,omitempty"`
	Secret   string `json:"sec,omitempty"`       // fingerprint of the stored secret that obtained it
	Personal string `json:"pat,omitempty"`       // id of the personal access token that obtained it
	Millis   int64  `json:"ims,omitempty"`       // of IssuedAt, beyond its second: revocation is exact
	SignedIn int64  `json:"auth_time,omitempty"` // seconds; when who has it showed more than a token
	origin

	kid string // of the key that signed it
}

// errExpired marks a token whose only fault is its age.
var errExpired = fault.New(fault.Unauthenticated, "the token has expired; get a new one at /v1/oauth/tokens")

// Authenticate gives the caller of a request from its Authorization header. fault.Unauthenticated when the header
// has no good token of ours. It asks the database only when it does not know the token's key yet.
func (t *Tokens) Authenticate(ctx context.Context, authorization string) (Principal, error) {
	scheme, token, _ := strings.Cut(strings.TrimSpace(authorization), " ")
	token = strings.TrimSpace(token)
	switch {
	case scheme == "":
		return Principal{}, fault.New(fault.Unauthenticated,
			"no token: send Authorization: Bearer with a token from /v1/oauth/tokens (client setting: credential=id:secret)")
	case !strings.EqualFold(scheme, "Bearer"):
		return Principal{}, fault.New(fault.Unauthenticated,
			"this route takes Authorization: Bearer; exchange a client id and secret for a token at /v1/oauth/tokens")
	case token == "" || token == "None" || token == "null" || token == "undefined":
		return Principal{}, fault.New(fault.Unauthenticated,
			"the client sent an empty token: set its credential (id:secret) or token")
	}
	if open := t.open.Load(); authz.Open && open != nil {
		return *open, nil // whoever asks is who asked first
	}
	t.keys.refresh(ctx)
	if p, ok := t.checked.find(token, t.keys, t.now()); ok {
		return p, nil
	}
	if isPersonal(token) {
		return t.authenticatePersonal(ctx, token)
	}
	if p, ok := t.knownExternal(token); ok {
		return p, nil
	}
	if t.isExternal(token) {
		return t.authenticateExternal(ctx, token)
	}
	c, err := t.parse(ctx, token)
	if err != nil {
		return Principal{}, err
	}
	if err := t.checkTimes(c); err != nil {
		return Principal{}, err
	}
	p, err := c.principal()
	if err == nil {
		err = t.stillOpen(p)
	}
	if err == nil && authz.Open {
		t.open.Store(&p)
	}
	if err == nil {
		t.checked.keep(token, checkedToken{principal: p, kid: c.kid, expiresAt: c.ExpiresAt.Time})
	}
	return p, err
}

// parse checks everything about a token but its times.
func (t *Tokens) parse(ctx context.Context, token string) (*claims, error) {
	if len(token) > tokenBytesMax {
		return nil, fault.New(fault.Unauthenticated, "the token is %d bytes long; at most %d are accepted", len(token), tokenBytesMax)
	}
	c := &claims{}
	var keyProblem error
	_, err := t.parser.ParseWithClaims(token, c, func(parsed *jwt.Token) (any, error) {
		if typ, _ := parsed.Header["typ"].(string); typ != tokenType {
			return nil, errors.New("not an access token")
		}
		if _, critical := parsed.Header["crit"]; critical {
			return nil, errors.New("it has critical extensions, and no extension is known here")
		}
		kid, _ := parsed.Header["kid"].(string)
		key, err := t.keys.find(ctx, kid)
		if c.kid, keyProblem = kid, err; err != nil {
			return nil, err
		}
		if parsed.Method.Alg() != key.stored.Algorithm {
			return nil, errors.New("signed by another algorithm than the key's")
		}
		return key.public, nil
	})
	if keyProblem != nil {
		// Not the token's fault when the keys cannot be read: then it is no 401, which clients take as final.
		return nil, keyProblem
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unauthenticated, err, "the token is not one of this server's")
	}
	if c.Issuer != t.issuer || len(c.Audience) != 1 || c.Audience[0] != audience || c.ExpiresAt == nil {
		return nil, fault.New(fault.Unauthenticated, "the token is not meant for this server")
	}
	return c, nil
}

// checkTimes refuses tokens outside their time; errExpired when they are merely old.
func (t *Tokens) checkTimes(c *claims) error {
	now := t.now()
	if c.NotBefore != nil && now.Add(clockSkewMax).Before(c.NotBefore.Time) ||
		c.IssuedAt != nil && now.Add(clockSkewMax).Before(c.IssuedAt.Time) {
		return fault.New(fault.Unauthenticated, "the token is not valid yet; compare the servers' clocks")
	}
	if !now.Before(c.ExpiresAt.Time) {
		return errExpired
	}
	return nil
}

func (c *claims) principal() (Principal, error) {
	id, err := uuid.Parse(c.Subject)
	if err != nil {
		return Principal{}, fault.Wrap(fault.Unauthenticated, err, "the token names no principal")
	}
	p := Principal{
		ID: id, Name: c.Name, Kind: Service, Roles: rolesOf(c.Scope), TokenID: c.ID, ExpiresAt: c.ExpiresAt.Time, SecretMark: c.Secret,
	}
	if c.Personal != "" {
		if p.PersonalToken, err = uuid.Parse(c.Personal); err != nil {
			return Principal{}, fault.Wrap(fault.Unauthenticated, err, "the token names no personal access token")
		}
	}
	if c.SignedIn != 0 {
		p.SignedInAt = time.Unix(c.SignedIn, 0)
	}
	if c.IssuedAt != nil {
		p.IssuedAt = c.IssuedAt.Add(time.Duration(c.Millis) * time.Millisecond)
	}
	return p, c.addTo(&p)
}

// issue signs a token of the session with the given roles active.
func (t *Tokens) issue(ctx context.Context, s session, roles RoleScope) (TokenAnswer, error) {
	a := s.Account
	// Never before the moment from which tokens count, whichever server's clock set that.
	issued := t.now().Truncate(time.Millisecond)
	if a.State != nil && issued.Before(a.State.NotBefore) {
		issued = a.State.NotBefore
	}
	now := issued.Truncate(time.Second)
	expires := now.Add(t.life)
	if !s.until.IsZero() && s.until.Before(expires) {
		expires = s.until.Truncate(time.Second)
	}
	c := &claims{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer: t.issuer, Subject: a.ID.String(), Audience: jwt.ClaimStrings{audience},
			IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(expires), ID: newTokenID(s.family),
		},
		Name: a.Name, ClientID: a.ClientID, Scope: roles.scope(), Secret: s.mark, Millis: issued.Sub(now).Milliseconds(),
		origin: s.origin,
	}
	if !s.signedInAt.IsZero() {
		c.SignedIn = s.signedInAt.Unix()
	}
	if s.personal != uuid.Nil {
		c.Personal = s.personal.String()
	}
	token, err := t.keys.sign(ctx, c)
	if err != nil {
		return TokenAnswer{}, fmt.Errorf("issue token for %s: %w", a.Name, err)
	}
	return TokenAnswer{
		AccessToken: token, TokenType: "bearer", IssuedTokenType: tokenTypeAccess,
		ExpiresIn: int64(expires.Sub(now) / time.Second), Scope: roles.scope(),
	}, nil
}
