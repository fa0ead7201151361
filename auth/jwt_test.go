package auth

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"catalogd/internal/fault"
)

// forge signs what our tokens say, with changes, by any method and key.
type forge struct {
	method jwt.SigningMethod
	key    any
	header map[string]any
	change func(c *claims)
}

func (b *bench) forged(t *testing.T, f forge) string {
	t.Helper()
	c := &claims{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer: "catalogd", Subject: uuid.NewString(), Audience: jwt.ClaimStrings{audience},
			IssuedAt: jwt.NewNumericDate(b.now), ExpiresAt: jwt.NewNumericDate(b.now.Add(time.Hour)), ID: "x",
		},
		Name: "root", Scope: "PRINCIPAL_ROLE:ALL",
	}
	if f.change != nil {
		f.change(c)
	}
	token := jwt.NewWithClaims(f.method, c)
	token.Header["typ"] = tokenType
	token.Header["kid"] = b.store.keys[0].KID
	for name, value := range f.header {
		token.Header[name] = value
	}
	signed, err := token.SignedString(f.key)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

func (b *bench) privateKey(t *testing.T) ed25519.PrivateKey {
	t.Helper()
	seed, err := b.ring.Open(Place{keysTable, b.store.keys[0].KID}, b.store.keys[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return ed25519.NewKeyFromSeed(seed)
}

func TestAuthenticate_HostileTokens(t *testing.T) {
	b := newBench(t)
	a, secret := b.account("etl")
	good := b.login(t, a, secret, "").AccessToken
	own := b.privateKey(t)
	_, other, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ed := jwt.SigningMethodEdDSA
	parts := strings.Split(good, ".")
	raw := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(text)
	}
	noneHead := map[string]any{"alg": "none", "typ": tokenType, "kid": b.store.keys[0].KID}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		t.Fatal(err)
	}
	signature[5] ^= 1
	// The forger works: unchanged, its token is good.
	if _, err := b.tokens.Authenticate(t.Context(), "Bearer "+b.forged(t, forge{method: ed, key: own})); err != nil {
		t.Fatalf("the test's own tokens are refused: %v", err)
	}
	tokens := map[string]string{
		"alg none":               b.forged(t, forge{method: jwt.SigningMethodNone, key: jwt.UnsafeAllowNoneSignatureType}),
		"alg none, no signature": raw(noneHead) + "." + parts[1] + ".",
		"alg none, ours":         raw(noneHead) + "." + parts[1] + "." + parts[2],
		"HS256 by public key":    b.forged(t, forge{method: jwt.SigningMethodHS256, key: b.store.keys[0].PublicKey}),
		"RS256":                  b.forged(t, forge{method: jwt.SigningMethodRS256, key: rsaKey}),
		"other key, our kid":     b.forged(t, forge{method: ed, key: other}),
		"unknown kid":            b.forged(t, forge{method: ed, key: other, header: map[string]any{"kid": "nobody"}}),
		"no kid":                 b.forged(t, forge{method: ed, key: own, header: map[string]any{"kid": nil}}),
		"kid a number":           b.forged(t, forge{method: ed, key: own, header: map[string]any{"kid": 7}}),
		"plain JWT type":         b.forged(t, forge{method: ed, key: own, header: map[string]any{"typ": "JWT"}}),
		"other issuer":           b.forged(t, forge{method: ed, key: own, change: func(c *claims) { c.Issuer = "polaris" }}),
		"other audience":         b.forged(t, forge{method: ed, key: own, change: func(c *claims) { c.Audience = jwt.ClaimStrings{"other"} }}),
		"two audiences":          b.forged(t, forge{method: ed, key: own, change: func(c *claims) { c.Audience = jwt.ClaimStrings{audience, "other"} }}),
		"no audience":            b.forged(t, forge{method: ed, key: own, change: func(c *claims) { c.Audience = nil }}),
		"no expiry":              b.forged(t, forge{method: ed, key: own, change: func(c *claims) { c.ExpiresAt = nil }}),
		"expired":                b.forged(t, forge{method: ed, key: own, change: func(c *claims) { c.ExpiresAt = jwt.NewNumericDate(b.now) }}),
		"expired in 1970":        b.forged(t, forge{method: ed, key: own, change: func(c *claims) { c.ExpiresAt = jwt.NewNumericDate(time.Unix(0, 0)) }}),
		"not yet valid":          b.forged(t, forge{method: ed, key: own, change: func(c *claims) { c.NotBefore = jwt.NewNumericDate(b.now.Add(time.Hour)) }}),
		"issued in the future":   b.forged(t, forge{method: ed, key: own, change: func(c *claims) { c.IssuedAt = jwt.NewNumericDate(b.now.Add(time.Hour)) }}),
		"subject no id":          b.forged(t, forge{method: ed, key: own, change: func(c *claims) { c.Subject = "root" }}),
		"payload changed":        parts[0] + "." + raw(map[string]any{"sub": uuid.NewString(), "iss": "catalogd"}) + "." + parts[2],
		"signature changed":      parts[0] + "." + parts[1] + "." + base64.RawURLEncoding.EncodeToString(signature),
		"signature cut":          parts[0] + "." + parts[1] + "." + parts[2][:20],
		"signature missing":      parts[0] + "." + parts[1] + ".",
		"two parts":              parts[0] + "." + parts[1],
		"four parts":             good + ".x",
		"1 MB":                   parts[0] + "." + strings.Repeat("A", 1<<20) + "." + parts[2],
		"only dots":              "..",
		"not base64":             "a!.b!.c!",
		"not JSON":               base64.RawURLEncoding.EncodeToString([]byte("{")) + "." + parts[1] + "." + parts[2],
		"empty":                  "",
		"PyIceberg's None":       "None",
		"null":                   "null",
	}
	for name, token := range tokens {
		p, err := b.tokens.Authenticate(t.Context(), "Bearer "+token)
		if !fault.Is(err, fault.Unauthenticated) {
			t.Errorf("%s: got %+v, %v", name, p, err)
			continue
		}
		if msg := fault.Message(err); len(msg) > 300 || token != "" && len(token) > 30 && strings.Contains(err.Error(), token) {
			t.Errorf("%s: the message repeats the token: %q", name, msg)
		}
		if name == "expired" {
			continue // its own principal with the secret may exchange it
		}
		if _, err := b.tokens.Issue(t.Context(), TokenRequest{Form: exchangeForm(token), Authorization: basic(a.ClientID + ":" + secret.Reveal())}); err == nil {
			t.Errorf("%s: was exchanged", name)
		}
	}
	for name, header := range map[string]string{"no header": "", "basic": basic("a:b"), "scheme only": "Bearer", "other scheme": "Negotiate x"} {
		if _, err := b.tokens.Authenticate(t.Context(), header); !fault.Is(err, fault.Unauthenticated) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A flood of forged key ids reads the keys once a second, and a warm server never reads them for good tokens.
func TestKeys_UnknownIDsReadTheKeysSeldom(t *testing.T) {
	b := newBench(t)
	a, secret := b.account("etl")
	token := b.login(t, a, secret, "").AccessToken
	own := b.privateKey(t)
	b.now = b.now.Add(10 * time.Second)
	before, finds := b.store.keyReads, b.store.finds
	for range 1000 {
		if _, err := b.tokens.Authenticate(t.Context(), "Bearer "+token); err != nil {
			t.Fatal(err)
		}
	}
	if b.store.keyReads != before || b.store.finds != finds {
		t.Errorf("a warm server asked the store %d times", b.store.keyReads-before+b.store.finds-finds)
	}
	for i := range 1000 {
		forged := b.forged(t, forge{method: jwt.SigningMethodEdDSA, key: own, header: map[string]any{"kid": fmt.Sprint("k", i)}})
		if _, err := b.tokens.Authenticate(t.Context(), "Bearer "+forged); !fault.Is(err, fault.Unauthenticated) {
			t.Fatal(err)
		}
	}
	if got := b.store.keyReads - before; got != 1 {
		t.Errorf("1000 forged key ids read the keys %d times", got)
	}
}

// Two servers that start on an empty database end up with one key and know each other's tokens.
func TestKeys_TwoServersShareTheirKey(t *testing.T) {
	b := newBench(t)
	second := b.server()
	a, secret := b.account("etl")
	r := TokenRequest{Form: form("grant_type", "client_credentials", "client_id", a.ClientID, "client_secret", secret.Reveal())}
	one, err := b.tokens.Issue(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	two, err := second.Issue(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if len(b.store.keys) != 1 {
		t.Fatalf("%d keys", len(b.store.keys))
	}
	for _, pair := range []struct {
		at    *Tokens
		token string
	}{{b.tokens, two.AccessToken}, {second, one.AccessToken}, {b.server(), one.AccessToken}} {
		if _, err := pair.at.Authenticate(t.Context(), "Bearer "+pair.token); err != nil {
			t.Error(err)
		}
	}
	document, err := second.JWKS(t.Context())
	if err != nil || len(document.Keys) != 1 || document.Keys[0].KeyID != b.store.keys[0].KID {
		t.Fatalf("%+v, %v", document, err)
	}
	x, err := base64.RawURLEncoding.DecodeString(document.Keys[0].X)
	if err != nil || string(x) != string(b.store.keys[0].PublicKey) {
		t.Errorf("the published key is not the stored one: %v", err)
	}
}

// A server with another secrets.key cannot sign, says why, and still checks tokens.
func TestKeys_AnotherRing(t *testing.T) {
	b := newBench(t)
	a, secret := b.account("etl")
	token := b.login(t, a, secret, "").AccessToken
	ring, err := NewRing(NewRingKey())
	if err != nil {
		t.Fatal(err)
	}
	b.ring = ring
	stranger := b.server()
	if _, err := stranger.Authenticate(t.Context(), "Bearer "+token); err != nil {
		t.Error(err)
	}
	_, err = stranger.Issue(t.Context(), TokenRequest{Form: exchangeForm(token), Authorization: "Bearer " + token})
	if !fault.Is(err, fault.Internal) || !strings.Contains(err.Error(), "secrets.previous_keys") {
		t.Errorf("got %v", err)
	}
}

// A good token is checked once and remembered; its age and its key are looked at every time.
func TestAuthenticate_RememberedTokenStillEnds(t *testing.T) {
	b := newBench(t)
	a, secret := b.account("etl", "etl")
	token := b.login(t, a, secret, "PRINCIPAL_ROLE:etl").AccessToken
	for range 2 {
		p, err := b.tokens.Authenticate(t.Context(), "Bearer "+token)
		if err != nil || p.ID != a.ID || len(p.Roles.Names) != 1 || p.Roles.Names[0] != "etl" {
			t.Fatalf("%+v, %v", p, err)
		}
		p.Roles.Names[0] = "admin" // callers' changes stay theirs
	}
	if len(b.tokens.checked.tokens) != 1 {
		t.Errorf("%d tokens remembered", len(b.tokens.checked.tokens))
	}
	last := token[len(token)-1]
	for _, other := range []byte("AQgw") {
		if changed := token[:len(token)-1] + string(other); other != last {
			if _, err := b.tokens.Authenticate(t.Context(), "Bearer "+changed); !fault.Is(err, fault.Unauthenticated) {
				t.Errorf("a token with another last letter: %v", err)
			}
		}
	}
	set := b.tokens.keys.set.Load()
	b.tokens.keys.set.Store(&keySet{readAt: b.now})
	b.store.keys = nil
	b.now = b.now.Add(2 * time.Second)
	if _, err := b.tokens.Authenticate(t.Context(), "Bearer "+token); !fault.Is(err, fault.Unauthenticated) {
		t.Errorf("after its key is gone: %v", err)
	}
	b.tokens.keys.set.Store(set)
	b.now = b.now.Add(time.Hour)
	if _, err := b.tokens.Authenticate(t.Context(), "Bearer "+token); !fault.Is(err, fault.Unauthenticated) {
		t.Errorf("after an hour: %v", err)
	}
	for i := range checkedTokensMax + 1 {
		b.tokens.checked.keep(fmt.Sprint(i), checkedToken{})
	}
	if got := len(b.tokens.checked.tokens); got > checkedTokensMax {
		t.Errorf("%d tokens remembered", got)
	}
}

func BenchmarkAuthenticate(b *testing.B) {
	bench := newBench(&testing.T{})
	a, secret := bench.account("etl")
	answer, err := bench.tokens.Issue(b.Context(), TokenRequest{Form: form("grant_type", "client_credentials",
		"client_id", a.ClientID, "client_secret", secret.Reveal())})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := bench.tokens.Authenticate(b.Context(), "Bearer "+answer.AccessToken); err != nil {
			b.Fatal(err)
		}
	}
}
