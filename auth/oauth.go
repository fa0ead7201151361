package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"catalogd/internal/fault"
)

// The grants and token types that the token route knows.
const (
	grantClientCredentials = "client_credentials"
	grantTokenExchange     = "urn:ietf:params:oauth:grant-type:token-exchange"
	grantRefreshToken      = "refresh_token" // some clients send their access token as one
	tokenTypeAccess        = "urn:ietf:params:oauth:token-type:access_token"
	tokenTypeJWT           = "urn:ietf:params:oauth:token-type:jwt"
	tokenTypeID            = "urn:ietf:params:oauth:token-type:id_token" // of subjects alone
)

// The error codes of RFC 6749, section 5.2, and RFC 8693, section 2.2.2.
const (
	codeInvalidRequest   = "invalid_request"
	codeInvalidClient    = "invalid_client"
	codeInvalidGrant     = "invalid_grant"
	codeInvalidScope     = "invalid_scope"
	codeUnsupportedGrant = "unsupported_grant_type"

	codeUnauthorizedClient = "unauthorized_client"
)

// Limits of the token route; the request's size is the endpoint's.
const (
	tokenFormFieldsMax  = 64
	descriptionBytesMax = 500
)

// OAuthError is a refusal of the token route. It goes to the client as RFC 6749 writes it, not as the catalog's
// errors are written.
type OAuthError struct {
	Code        string
	Description string
	Status      int
}

// Error gives code and description.
func (e *OAuthError) Error() string { return e.Code + ": " + e.Description }

func oauthError(code, format string, args ...any) *OAuthError {
	status := http.StatusBadRequest
	if code == codeInvalidClient {
		status = http.StatusUnauthorized
	}
	return &OAuthError{Code: code, Description: printable(fmt.Sprintf(format, args...)), Status: status}
}

// printable keeps a description within the characters that RFC 6749 allows there (clients check) and within reason.
func printable(text string) string {
	if len(text) > descriptionBytesMax {
		text = text[:descriptionBytesMax] + "..."
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '"' || r == '\\':
			return '\''
		case r < 0x20 || r > 0x7e:
			return '?'
		}
		return r
	}, text)
}

// TokenAnswer is a token as the client gets it. Fields that are not known are absent, never null or "": clients
// fail on both.
type TokenAnswer struct {
	AccessToken     string `json:"access_token"`
	TokenType       string `json:"token_type"`
	ExpiresIn       int64  `json:"expires_in"` // seconds
	IssuedTokenType string `json:"issued_token_type"`
	Scope           string `json:"scope,omitempty"`
}

// String hides the token.
func (TokenAnswer) String() string { return "***" }

// LogValue hides the token.
func (TokenAnswer) LogValue() slog.Value { return slog.StringValue("***") }

// TokenRequest is what the token route was sent.
type TokenRequest struct {
	Form          url.Values // from ParseTokenForm
	Authorization string
	// Address is where the request comes from; the zero Addr where that is not known.
	Address netip.Addr
	// RequestID and UserAgent, as the client says, are for the audit.
	RequestID string
	UserAgent string
	// Audiences are what assertions may be meant for: this server's token endpoint and issuer. None: none is accepted.
	Audiences []string
	// Seen is told the client id once it is found that it exists, whether the secret is right or not; nil: nobody is told.
	Seen func(clientID string)

	tried *attempt // of an exchange
}

func (r TokenRequest) seen(a Account) {
	r.names(a.Name)
	if r.Seen != nil {
		r.Seen(a.ClientID)
	}
}

// names notes whose token an exchange wants.
func (r TokenRequest) names(principal string) {
	if r.tried != nil && principal != "" {
		r.tried.named = principal
	}
}

// TokensConfig is what NewTokens needs.
type TokensConfig struct {
	Accounts AccountStore
	Keys     *Keys
	Secrets  *Secrets
	// ClientKeys knows the keys that principals sign in with; nil: they cannot.
	ClientKeys ClientKeyStore
	// Denials is told of each refused login; nil: nobody is.
	Denials  func(context.Context, LoginDenial)
	Rotation RotationStore    // nil: what previous keys made stays as it is
	Issuer   string           // "iss" of tokens; "" means catalogd. The same on all servers of one database.
	Issuers  Issuers          // nil: tokens of identity providers are not good here
	Identity IdentityStore    // nil: nobody acts for another, and there are no Issuers
	Life     time.Duration    // of access tokens; 0 means TokenLifeDefault, more than TokenLifeMax is cut
	Now      func() time.Time // nil: time.Now
	// Anonymous is the name of the principal of requests without a token; "": they are refused.
	Anonymous string
}

// Tokens issues access tokens and checks them.
type Tokens struct {
	accounts AccountStore
	keys     *Keys
	secrets  *Secrets
	rotation RotationStore
	issuer   string
	life     time.Duration
	now      func() time.Time
	parser   *jwt.Parser
	checked  checkedTokens
	issuers  Issuers
	identity IdentityStore
	external checkedTokens
	// anonymous is the name of the principal of who shows nothing; "": who shows nothing is refused.
	anonymous string
	open      atomic.Pointer[Principal] // of a build that checks nobody (authz.Open)

	clientKeys ClientKeyStore
	assertions *jwt.Parser
	throttle   *throttle
	denials    func(context.Context, LoginDenial)
}

// NewTokens makes Tokens.
func NewTokens(c TokensConfig) *Tokens {
	if c.Issuer == "" {
		c.Issuer = "catalogd"
	}
	if c.Life <= 0 {
		c.Life = TokenLifeDefault
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Tokens{
		accounts: c.Accounts, keys: c.Keys, secrets: c.Secrets, rotation: c.Rotation, issuer: c.Issuer, life: min(c.Life, TokenLifeMax), now: c.Now,
		issuers: c.Issuers, identity: c.Identity, anonymous: c.Anonymous,
		parser:     jwt.NewParser(jwt.WithValidMethods([]string{AlgorithmEdDSA, AlgorithmRS256}), jwt.WithoutClaimsValidation(), jwt.WithStrictDecoding()),
		clientKeys: c.ClientKeys, throttle: newThrottle(), denials: c.Denials,
		assertions: jwt.NewParser(jwt.WithValidMethods([]string{AlgorithmEdDSA, AlgorithmES256, AlgorithmRS256}),
			jwt.WithoutClaimsValidation(), jwt.WithStrictDecoding()),
	}
}

// JWKS gives the public keys that tokens are signed with.
func (t *Tokens) JWKS(ctx context.Context) (JWKS, error) { return t.keys.JWKS(ctx) }

// ParseTokenForm reads the body of a token request. Every field is decoded once; one that cannot be decoded is
// refused as a credential would be, because that is what it mostly is.
func ParseTokenForm(body string) (url.Values, error) {
	form := url.Values{}
	for field := range strings.SplitSeq(strings.TrimSpace(body), "&") {
		if field == "" {
			continue
		}
		rawName, rawValue, _ := strings.Cut(field, "=")
		name, err := url.QueryUnescape(rawName)
		if err != nil {
			return nil, oauthError(codeInvalidClient, "the form is not correctly encoded")
		}
		value, err := url.QueryUnescape(rawValue)
		if err != nil {
			return nil, oauthError(codeInvalidClient, "the form field %s is not correctly encoded: %% must be written %%25", name)
		}
		if form.Has(name) {
			return nil, oauthError(codeInvalidRequest, "the form field %s is there twice", name)
		}
		if len(form) >= tokenFormFieldsMax {
			return nil, oauthError(codeInvalidRequest, "the form has more than %d fields", tokenFormFieldsMax)
		}
		form.Set(name, value)
	}
	return form, nil
}

// Issue answers a token request. Refusals are *OAuthError; any other error means that the server could not decide,
// which clients must not take for a refusal.
func (t *Tokens) Issue(ctx context.Context, r TokenRequest) (TokenAnswer, error) {
	switch grant := r.Form.Get("grant_type"); grant {
	case grantJWTBearer:
		if r.Form.Get("assertion") == "" {
			return TokenAnswer{}, oauthError(codeInvalidRequest, "the form field assertion is missing")
		}
		return t.issueForClient(ctx, r)
	case grantClientCredentials:
		return t.issueForClient(ctx, r)
	case grantTokenExchange:
		if err := checkExchange(r.Form); err != nil {
			return TokenAnswer{}, err
		}
		return t.exchangeAny(ctx, r, r.Form.Get("subject_token"))
	case grantRefreshToken:
		if r.Form.Get("refresh_token") == "" {
			return TokenAnswer{}, oauthError(codeInvalidRequest, "the form field refresh_token is missing")
		}
		return t.exchangeAny(ctx, r, r.Form.Get("refresh_token"))
	case "":
		return TokenAnswer{}, oauthError(codeInvalidRequest, "the form field grant_type is missing")
	default:
		return TokenAnswer{}, oauthError(codeUnsupportedGrant, "grant_type %s is not supported; %s, %s and %s are",
			grant, grantClientCredentials, grantTokenExchange, grantJWTBearer)
	}
}

func (t *Tokens) issueForClient(ctx context.Context, r TokenRequest) (TokenAnswer, error) {
	wish, refused := parseScope(r.Form.Get("scope"))
	if refused != nil {
		return TokenAnswer{}, refused
	}
	client, err := t.clientOrAnybody(ctx, r)
	if err != nil {
		return TokenAnswer{}, err
	}
	roles, refused := wish.grant(client.Account, &client.within)
	if refused != nil {
		return TokenAnswer{}, refused
	}
	return t.issue(ctx, client, roles)
}

func checkExchange(form url.Values) error {
	if form.Get("subject_token") == "" {
		return oauthError(codeInvalidRequest, "the form field subject_token is missing")
	}
	for _, field := range []string{"subject_token_type", "actor_token_type", "requested_token_type"} {
		switch kind := form.Get(field); {
		case kind == "", kind == tokenTypeAccess, kind == tokenTypeJWT, kind == tokenTypeID && field == "subject_token_type":
		default:
			return oauthError(codeInvalidRequest, "%s %s is not supported; %s is", field, kind, tokenTypeAccess)
		}
	}
	return nil
}

// exchange gives a new token for one of ours. Who asks must be whom the token names, shown by the client's
// credentials, which make an expired token acceptable too, or by a live token. The new token is never wider than
// the old one.
func (t *Tokens) exchange(ctx context.Context, r TokenRequest, subjectToken string) (TokenAnswer, error) {
	wish, refused := parseScope(r.Form.Get("scope"))
	if refused != nil {
		return TokenAnswer{}, refused
	}
	subject, err := t.shown(ctx, subjectToken)
	if fault.Is(err, fault.Unauthenticated) {
		return TokenAnswer{}, oauthError(codeInvalidGrant, "subject_token: %s", fault.Message(err))
	}
	if err != nil {
		return TokenAnswer{}, err
	}
	r.names(subject.Name)
	var client session
	switch {
	case subject.Anonymous && hasCredentials(r):
		client, err = t.clientOrAnybody(ctx, r)
	case hasCredentials(r):
		client, err = t.client(ctx, r)
	default:
		client, err = t.bearer(ctx, r, subject)
	}
	if err != nil {
		return TokenAnswer{}, err
	}
	r.seen(client.Account)
	if client.ID != subject.ID {
		return TokenAnswer{}, oauthError(codeInvalidGrant, "subject_token belongs to another principal")
	}
	if subject.problem != nil && !errors.Is(subject.problem, errExpired) {
		return TokenAnswer{}, oauthError(codeInvalidGrant, "subject_token: %s", fault.Message(subject.problem))
	}
	within := client.within.narrowed(subject.Roles)
	roles, refused := wish.grant(client.Account, &within)
	if refused != nil {
		return TokenAnswer{}, refused
	}
	return t.issue(ctx, client, roles)
}

// shownToken is one of our tokens that a token request shows.
type shownToken struct {
	Principal
	problem error // with its times; errExpired when it is merely old
}

// shown reads one of our tokens: fault.Unauthenticated when it is none.
func (t *Tokens) shown(ctx context.Context, token string) (shownToken, error) {
	if isPersonal(token) {
		p, _, err := t.personal(ctx, token)
		return shownToken{Principal: p}, err
	}
	c, err := t.parse(ctx, token)
	if err != nil {
		return shownToken{}, err
	}
	p, err := c.principal()
	if err == nil {
		err = t.stillOpen(p)
	}
	return shownToken{Principal: p, problem: t.checkTimes(c)}, err
}

// bearer accepts the live token in the header, or the subject token itself when there is no header. A token that would
// not be accepted at another route is not accepted here. Both must rest on the same secret: the new token ends with it.
func (t *Tokens) bearer(ctx context.Context, r TokenRequest, subject shownToken) (session, error) {
	shown := subject
	if strings.TrimSpace(r.Authorization) != "" {
		_, token, _ := strings.Cut(strings.TrimSpace(r.Authorization), " ")
		read, err := t.shown(ctx, strings.TrimSpace(token))
		if fault.Is(err, fault.Unauthenticated) {
			return session{}, oauthError(codeInvalidClient, "the Authorization header: %s", fault.Message(err))
		}
		if err != nil {
			return session{}, err
		}
		shown = read
	}
	if shown.ID != subject.ID {
		return session{}, oauthError(codeInvalidGrant, "subject_token belongs to another principal")
	}
	for _, token := range []shownToken{shown, subject} {
		if token.problem != nil {
			return session{}, oauthError(codeInvalidClient, "%s", fault.Message(token.problem))
		}
	}
	account, err := t.accounts.FindAccountByID(ctx, shown.ID)
	switch {
	case fault.Is(err, fault.NotFound) || err == nil && account.Kind == System:
		return session{}, oauthError(codeInvalidClient, "the principal of the token no longer exists")
	case err != nil:
		return session{}, fmt.Errorf("find account of token: %w", err)
	}
	for _, token := range []shownToken{shown, subject} {
		token.Address = r.Address
		if err := account.State.Admit(token.Principal, t.now()); err != nil {
			return session{}, t.notAdmitted(ctx, r, account, fault.Message(err))
		}
	}
	if shown.PersonalToken != subject.PersonalToken || shown.SecretMark != subject.SecretMark || shown.Anonymous != subject.Anonymous {
		return session{}, oauthError(codeInvalidGrant, "subject_token was obtained with another secret than the token in the header")
	}
	if shown.PersonalToken != uuid.Nil {
		s := ofPersonal(shown.Principal, account)
		s.family = familyOfShown(subject.Principal)
		return s, nil
	}
	return session{
		Account: account, mark: subject.SecretMark, within: RoleScope{All: true}, family: familyOf(subject.TokenID), signedInAt: subject.SignedInAt,
		origin: origin{Anonymous: subject.Anonymous},
	}, nil
}
