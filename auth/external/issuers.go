package external

import (
	"context"
	"crypto"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"

	"catalogd/auth"
	"catalogd/internal/fault"
)

// tokenBytesMax bounds a provider's token. Lists of groups make them longer than ours are.
const tokenBytesMax = auth.ExternalTokenBytesMax

// typesTaken are the header types of tokens that say who somebody is. Others are for something else, logging out for one.
var typesTaken = []string{"", "jwt", "at+jwt", "application/at+jwt", "id+jwt"}

// Issuers are the identity providers whose tokens are good here.
type Issuers struct {
	byURL map[string]*issuer
	order []*issuer
	log   *slog.Logger
	now   func() time.Time

	stop    context.CancelFunc
	running sync.WaitGroup
}

type issuer struct {
	*compiled
	keys *keys
}

// Settings are what New needs beside the providers.
type Settings struct {
	Issuers []Config
	Log     *slog.Logger     // nil: silent
	Now     func() time.Time // nil: time.Now
}

// State is how it stands with one provider.
type State struct {
	URL     string
	Ready   bool // its keys are there, if perhaps old
	Problem string
	Keys    int
}

// New checks what is configured: fault.IllegalArgument. It asks nobody anything.
func New(s Settings) (*Issuers, error) {
	if s.Now == nil {
		s.Now = time.Now
	}
	if s.Log == nil {
		s.Log = slog.New(slog.DiscardHandler)
	}
	if len(s.Issuers) > issuersMax {
		return nil, fault.New(fault.IllegalArgument, "%d issuers; at most %d are allowed", len(s.Issuers), issuersMax)
	}
	all := &Issuers{byURL: map[string]*issuer{}, log: s.Log, now: s.Now}
	for _, c := range s.Issuers {
		k, err := compile(c)
		if err != nil {
			return nil, err
		}
		if len(s.Issuers) > 1 && k.GroupsClaim != "" && len(k.Rules) == 0 {
			return nil, fault.New(fault.IllegalArgument, "issuer %s: roles is missing: with more than one issuer each says which of its groups stand for which roles, "+
				"for else a group that somebody makes at one of them would give the roles of another's of the same name", k.URL)
		}
		if all.byURL[k.URL] != nil {
			return nil, fault.New(fault.IllegalArgument, "issuer %s is there twice", k.URL)
		}
		read, err := newKeys(k, s.Now)
		if err != nil {
			return nil, err
		}
		i := &issuer{k, read}
		all.byURL[k.URL], all.order = i, append(all.order, i)
	}
	return all, nil
}

// Start reads the providers' keys and keeps them fresh until Close. A provider that does not answer is asked again, once a
// minute at most; it keeps nobody waiting.
func (s *Issuers) Start() {
	var ctx context.Context
	ctx, s.stop = context.WithCancel(context.Background())
	for _, i := range s.order {
		if !i.keys.isStatic() {
			s.running.Go(func() { s.keepFresh(ctx, i) })
		}
	}
}

// Close ends what Start began.
func (s *Issuers) Close() {
	if s.stop != nil {
		s.stop()
	}
	s.running.Wait()
	for _, i := range s.order {
		i.keys.client.CloseIdleConnections()
	}
}

func (s *Issuers) keepFresh(ctx context.Context, i *issuer) {
	for failures := 0; ; {
		switch err := i.keys.read(ctx); {
		case ctx.Err() != nil:
			return
		case err == nil:
			failures = 0
		default:
			failures++
			if failures == 1 {
				s.log.Warn("an identity provider's keys cannot be read; asking again", "issuer", i.URL, "cause", fault.Message(err))
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(i.keys.pause(failures)):
		}
	}
}

// Read reads the keys of all providers now, for those who want to know whether that works.
func (s *Issuers) Read(ctx context.Context) {
	for _, i := range s.order {
		if !i.keys.isStatic() {
			_ = i.keys.read(ctx) // States tells
		}
	}
}

// States tells how it stands with each provider, in the order of the configuration.
func (s *Issuers) States() []State {
	var all []State
	for _, i := range s.order {
		state := State{URL: i.URL}
		if set := i.keys.set.Load(); set != nil {
			state.Ready, state.Keys = true, len(set.keys)
		}
		if problem := i.keys.lastProblem(); problem != nil {
			state.Problem = fault.Message(problem)
		}
		all = append(all, state)
	}
	return all
}

// Issues tells whether a token says that it is a provider's of ours. Nothing about it is checked.
func (s *Issuers) Issues(token string) bool { return s.of(token) != nil }

func (s *Issuers) of(token string) *issuer {
	if s == nil || len(s.byURL) == 0 || len(token) > tokenBytesMax {
		return nil
	}
	_, rest, _ := strings.Cut(token, ".")
	payload, _, signed := strings.Cut(rest, ".")
	if !signed {
		return nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		return nil
	}
	var claims struct {
		Issuer string `json:"iss"`
	}
	if json.Unmarshal(raw, &claims) != nil {
		return nil
	}
	return s.byURL[claims.Issuer]
}

// Trusts tells whether the key, an Identity's, is still the provider's.
func (s *Issuers) Trusts(issuer, key string) bool {
	i := s.byURL[issuer]
	return i != nil && i.keys.has(key)
}

// Verify checks a token wholly and says whom it names. fault.Unauthenticated when it is not good, fault.Busy when the
// provider's keys are not known and cannot be read.
func (s *Issuers) Verify(ctx context.Context, token string) (auth.Identity, error) {
	i := s.of(token)
	if i == nil {
		return auth.Identity{}, fault.New(fault.Unauthenticated, "the token is no configured issuer's")
	}
	key, err := i.keyOf(ctx, token)
	if err != nil {
		return auth.Identity{}, err
	}
	verifier := oidc.NewVerifier(i.URL, key, &oidc.Config{SkipClientIDCheck: true, SupportedSigningAlgs: i.Algorithms, Now: s.now})
	verified, err := verifier.Verify(ctx, token)
	var old *oidc.TokenExpiredError
	if errors.As(err, &old) {
		return auth.Identity{}, fault.New(fault.Unauthenticated, "the token of %s has expired; sign in there again", i.URL)
	}
	if err != nil {
		return auth.Identity{}, fault.Wrap(fault.Unauthenticated, err, "the token is not a good one of %s", i.URL)
	}
	var claims map[string]json.RawMessage
	if err := verified.Claims(&claims); err != nil {
		return auth.Identity{}, fault.Wrap(fault.Unauthenticated, err, "the token is not a good one of %s", i.URL)
	}
	return i.identity(verified, claims, key.used, s.now())
}

// keyOf finds the keys that may have signed the token, by what its header says.
func (i *issuer) keyOf(ctx context.Context, token string) (*candidates, error) {
	algorithms := make([]jose.SignatureAlgorithm, len(i.Algorithms))
	for n, name := range i.Algorithms {
		algorithms[n] = jose.SignatureAlgorithm(name)
	}
	parsed, err := jose.ParseSignedCompact(token, algorithms)
	if err != nil {
		return nil, fault.Wrap(fault.Unauthenticated, err, "the token is not signed as tokens of %s are to be (%s)", i.URL, strings.Join(i.Algorithms, ", "))
	}
	header := parsed.Signatures[0].Protected
	kind, _ := header.ExtraHeaders[jose.HeaderType].(string)
	if !slices.Contains(typesTaken, strings.ToLower(kind)) {
		return nil, fault.New(fault.Unauthenticated, "the token is of the type %q, which does not say who somebody is", shown([]byte(kind)))
	}
	keys, err := i.keys.find(ctx, header.KeyID, header.Algorithm)
	if err != nil {
		return nil, err
	}
	return &candidates{parsed: parsed, keys: keys}, nil
}

// candidates are the keys that may have signed a token; used is the thumbprint of the one that did.
type candidates struct {
	parsed *jose.JSONWebSignature
	keys   []jose.JSONWebKey
	used   string
}

// VerifySignature is oidc.KeySet's.
func (c *candidates) VerifySignature(context.Context, string) ([]byte, error) {
	for _, key := range c.keys {
		if payload, err := c.parsed.Verify(key.Key); err == nil {
			c.used = thumbprintOf(key)
			return payload, nil
		}
	}
	return nil, errors.New("the signature is wrong")
}

func thumbprintOf(key jose.JSONWebKey) string {
	sum, err := key.Thumbprint(crypto.SHA256)
	if err != nil { // keys were valid when they were read
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(sum)
}

// identity reads whom a verified token names.
func (i *issuer) identity(t *oidc.IDToken, claims map[string]json.RawMessage, key string, now time.Time) (auth.Identity, error) {
	meant := slices.ContainsFunc(t.Audience, func(a string) bool { return slices.Contains(i.Audiences, a) })
	switch {
	case !meant:
		return auth.Identity{}, fault.New(fault.Unauthenticated, "the token of %s is for %s, and this server is %s",
			i.URL, shown([]byte(strings.Join(t.Audience, ", "))), strings.Join(i.Audiences, " or "))
	case t.Subject == "":
		return auth.Identity{}, fault.New(fault.Unauthenticated, "the token of %s names no subject", i.URL)
	case now.Add(clockSkewMax).Before(t.IssuedAt):
		return auth.Identity{}, fault.New(fault.Unauthenticated, "the token of %s is not valid yet; compare the servers' clocks", i.URL)
	}
	if err := checkText("subject", t.Subject, subjectBytesMax); err != nil {
		return auth.Identity{}, err
	}
	name, err := i.nameOf(claims, t.Subject)
	if err != nil {
		return auth.Identity{}, err
	}
	roles, err := i.rolesOf(claims)
	if err != nil {
		return auth.Identity{}, err
	}
	var id string
	if raw, ok := claims["jti"]; ok {
		_ = json.Unmarshal(raw, &id) // one that is no text is none
	}
	if checkText("id", id, nameBytesMax) != nil {
		id = ""
	}
	return auth.Identity{
		Issuer: i.URL, Subject: t.Subject, Name: name, Roles: roles, TokenID: id, Key: key,
		IssuedAt: t.IssuedAt, ExpiresAt: t.Expiry, Create: i.CreatePrincipals,
	}, nil
}
