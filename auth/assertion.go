package auth

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"catalogd/internal/fault"
)

// What a principal signs to sign in: RFC 7523, section 2.2 as a client and section 2.1 as a grant.
const (
	assertionTypeJWT = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
	grantJWTBearer   = "urn:ietf:params:oauth:grant-type:jwt-bearer"
)

// Limits of assertions.
const (
	// assertionLifeMax bounds how long an assertion may still be good: each is remembered for so long.
	assertionLifeMax     = 10 * time.Minute
	assertionIDBytesMax  = 256
	assertionPartsMax    = 16 // members of header and of claims
	assertionAudienceMax = 8
)

// assertionText gives the assertion of a request that signs in by one; "" for all others.
func assertionText(r TokenRequest) string {
	if r.Form.Get("grant_type") == grantJWTBearer {
		return r.Form.Get("assertion")
	}
	return r.Form.Get("client_assertion")
}

// asserted authenticates by an assertion: good for one request at any server, signed by a key of the principal that it names. All
// refusals of those that are written correctly say the same and cost what a wrong secret costs.
func (t *Tokens) asserted(ctx context.Context, r TokenRequest) (session, error) {
	if r.Form.Get("client_secret") != "" || isBasic(r.Authorization) {
		return session{}, oauthError(codeInvalidRequest, "an assertion and a client secret are both there; send one of them")
	}
	if kind := r.Form.Get("client_assertion_type"); r.Form.Has("client_assertion") && kind != assertionTypeJWT {
		return session{}, oauthError(codeInvalidRequest, "client_assertion_type %s is not supported; %s is", kind, assertionTypeJWT)
	}
	a, refused, err := t.readAssertion(ctx, r, assertionText(r))
	if err != nil {
		return session{}, err
	}
	if refused != nil {
		return session{}, t.refuseLogin(ctx, r, a.claims.Issuer, a.account.Name, refused)
	}
	r.seen(a.account)
	if err := a.account.State.Admit(Principal{ID: a.account.ID, Address: r.Address}, t.now()); err != nil {
		return session{}, t.notAdmitted(ctx, r, a.account, fault.Message(err))
	}
	mark := sha256.Sum256([]byte(a.claims.ID))
	fresh, err := t.clientKeys.SpendAssertion(ctx, a.account.ID, mark[:], a.claims.ExpiresAt.Add(clockSkewMax))
	if err != nil {
		return session{}, fmt.Errorf("remember the assertion: %w", err)
	}
	if !fresh {
		return session{}, t.notAdmitted(ctx, r, a.account, "the assertion was used before: each one counts once, sign another with a new jti")
	}
	account := a.account
	account.Secret.RotationRequired = false // it was not the secret
	return session{Account: account, mark: KeyMark(a.keyID), within: RoleScope{All: true}, signedInAt: t.now()}, nil
}

// assertion is one that was read.
type assertion struct {
	claims  jwt.RegisteredClaims
	account Account
	keyID   string
}

// readAssertion checks everything but whether it was used before. What it says of a refusal tells nothing about whether the
// principal exists.
func (t *Tokens) readAssertion(ctx context.Context, r TokenRequest, text string) (a assertion, refused *OAuthError, err error) {
	if len(text) > tokenBytesMax {
		return a, oauthError(codeInvalidClient, "the assertion is %d bytes long; at most %d are accepted", len(text), tokenBytesMax), nil
	}
	if t.clientKeys == nil || slices.ContainsFunc(signedParts(text), doubledMembers) {
		return a, oauthError(codeInvalidClient, "the assertion is not a correct JWT"), nil
	}
	var problem error
	_, parseErr := t.assertions.ParseWithClaims(text, &a.claims, func(parsed *jwt.Token) (any, error) {
		if refused = t.checkAssertion(r, parsed, a.claims); refused != nil {
			return nil, errors.New("refused")
		}
		var public any
		public, problem = t.assertionKey(ctx, parsed, &a)
		return public, problem
	})
	switch {
	case refused != nil:
		return a, refused, nil
	case problem != nil && !fault.Is(problem, fault.Unauthenticated):
		return a, nil, problem
	case parseErr != nil:
		return a, oauthError(codeInvalidClient, "the assertion is not signed by a key of the principal that it names"), nil
	}
	return a, nil, nil
}

// checkAssertion checks what an assertion says, before anything is looked up.
func (t *Tokens) checkAssertion(r TokenRequest, parsed *jwt.Token, c jwt.RegisteredClaims) *OAuthError {
	now := t.now()
	typ, _ := parsed.Header["typ"].(string)
	_, critical := parsed.Header["crit"]
	wrong := func(format string, args ...any) *OAuthError {
		return oauthError(codeInvalidClient, "the assertion "+format, args...)
	}
	switch {
	case critical:
		return wrong("has critical extensions, and no extension is known here")
	case typ != "" && !strings.EqualFold(typ, "JWT") && !strings.EqualFold(typ, "client-authentication+jwt"):
		return wrong("has the type %.40q; wanted is JWT", typ)
	case c.Issuer == "" || c.Issuer != c.Subject || len(c.Issuer) > clientIDBytesMax:
		return wrong("must have the client id as iss and as sub")
	case r.Form.Get("client_id") != "" && strings.TrimSpace(r.Form.Get("client_id")) != c.Issuer:
		return wrong("is of another client than client_id")
	case len(c.Audience) == 0 || len(c.Audience) > assertionAudienceMax || !t.meansUs(r, c.Audience):
		return wrong("is not meant for this server: aud must be its token endpoint or its issuer, as its public_url begins them")
	case c.ExpiresAt == nil:
		return wrong("has no exp")
	case !now.Before(c.ExpiresAt.Time):
		return wrong("has expired")
	case c.ExpiresAt.After(now.Add(assertionLifeMax + clockSkewMax)):
		return wrong("expires in more than %d minutes", int(assertionLifeMax/time.Minute))
	case c.NotBefore != nil && now.Add(clockSkewMax).Before(c.NotBefore.Time), c.IssuedAt != nil && now.Add(clockSkewMax).Before(c.IssuedAt.Time):
		return wrong("is not valid yet; compare the clocks")
	case c.ID == "" || len(c.ID) > assertionIDBytesMax:
		return wrong("must have a jti of 1 to %d bytes", assertionIDBytesMax)
	}
	return nil
}

// meansUs tells whether all audiences are names of this server: one that is meant for others too could be used here by them.
func (t *Tokens) meansUs(r TokenRequest, audience []string) bool {
	return !slices.ContainsFunc(audience, func(a string) bool { return !slices.Contains(r.Audiences, strings.TrimRight(a, "/")) })
}

// assertionKey finds the account that an assertion names, and the key of it that signed. Without a kid the only live key of the
// algorithm is meant, or all of them.
func (t *Tokens) assertionKey(ctx context.Context, parsed *jwt.Token, a *assertion) (any, error) {
	account, err := t.accounts.FindAccountByClientID(ctx, a.claims.Issuer)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return nil, fmt.Errorf("find client: %w", err)
	}
	if account.Kind != Service {
		account = Account{} // whose keys are looked up all the same
	}
	a.account = account
	keys, err := t.clientKeys.ClientKeys(ctx, account.ID)
	if err != nil {
		return nil, fmt.Errorf("find the client's keys: %w", err)
	}
	kid, named := parsed.Header["kid"].(string)
	for _, key := range keys {
		if key.Algorithm != parsed.Method.Alg() || !key.Live(t.now()) || named && isKeyID(kid) && kid != key.ID {
			continue
		}
		public, ok := key.verificationKey()
		if !ok {
			continue
		}
		// The parser takes one key; which one it is has to be known, because the token ends with it.
		signed, signature, _ := cutLast(parsed.Raw)
		raw, err := base64.RawURLEncoding.Strict().DecodeString(signature)
		if err == nil && parsed.Method.Verify(signed, raw, public) == nil {
			a.keyID = key.ID
			return public, nil
		}
	}
	return nil, fault.New(fault.Unauthenticated, "no such key")
}

// isKeyID tells whether a kid can be one of ours; clients may call their keys as they like, then all are tried.
func isKeyID(kid string) bool { return len(kid) == base64.RawURLEncoding.EncodedLen(sha256.Size) }

func cutLast(token string) (before, after string, found bool) {
	i := strings.LastIndexByte(token, '.')
	if i < 0 {
		return "", "", false
	}
	return token[:i], token[i+1:], true
}

// signedParts gives header and claims of a JWT. The signature is left out: one in 256 begins as an object does.
func signedParts(text string) []string {
	parts := strings.SplitN(text, ".", 3)
	return parts[:min(len(parts), 2)]
}

// doubledMembers tells whether a part of a JWT is an object with a member that is there twice, or with too many: two readers could
// read two things in it. What is no JSON at all is the parser's to refuse.
func doubledMembers(part string) bool {
	raw, err := base64.RawURLEncoding.DecodeString(part)
	if raw = bytes.TrimLeft(raw, " \t\r\n"); err != nil || len(raw) == 0 || raw[0] != '{' {
		return false
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if _, err := decoder.Token(); err != nil {
		return false
	}
	seen := map[string]bool{}
	for decoder.More() {
		name, err := decoder.Token()
		text, isText := name.(string)
		text = strings.ToLower(text) // readers of JSON differ in that too
		if err != nil || !isText || seen[text] || len(seen) == assertionPartsMax {
			return true
		}
		seen[text] = true
		var skipped json.RawMessage
		if err := decoder.Decode(&skipped); err != nil {
			return true
		}
	}
	return false
}
