package auth

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"catalogd/internal/fault"
)

// rotate announces a new key as an administrator's request does.
func (b *bench) rotate(t *testing.T, at *Tokens) StoredKey {
	t.Helper()
	next, err := at.keys.NextKey(false)
	if err != nil {
		t.Fatal(err)
	}
	for i := range b.store.keys {
		b.store.keys[i].RetiredAt = next.SignsFrom
	}
	b.store.keys = append(b.store.keys, next)
	return next
}

func kidOf(t *testing.T, token string) string {
	t.Helper()
	parsed, _, err := jwt.NewParser().ParseUnverified(token, jwt.MapClaims{})
	if err != nil {
		t.Fatal(err)
	}
	kid, _ := parsed.Header["kid"].(string)
	return kid
}

// A key is rotated while two servers sign and check: no token is ever refused, and both change over by themselves. One that only
// checks knows the new key before it is used, however many forged ids keep it from reading.
func TestField_C150_RotationOverlapsOnAllServers(t *testing.T) {
	b := newBench(t)
	a, secret := b.account("etl")
	second, third := b.server(), b.server()
	signers := []*Tokens{b.tokens, second}
	checkers := []*Tokens{b.tokens, second, third}
	old := kidOf(t, b.login(t, a, secret, "").AccessToken)
	var tokens []string
	kids := map[string]bool{}
	round := func() {
		for _, at := range signers {
			answer, err := at.Issue(t.Context(), TokenRequest{Form: form("grant_type", "client_credentials", "client_secret", secret.Reveal())})
			if err != nil {
				t.Fatal(err)
			}
			tokens = append(tokens, answer.AccessToken)
			kids[kidOf(t, answer.AccessToken)] = true
		}
		for i, at := range checkers {
			// The reads of forged ids are used up, so a key that is new now would not be found.
			forged := b.forged(t, forge{method: jwt.SigningMethodHS256, key: []byte("x"), header: map[string]any{"kid": "forged"}})
			if _, err := at.Authenticate(t.Context(), "Bearer "+forged); !fault.Is(err, fault.Unauthenticated) {
				t.Fatal(err)
			}
			for _, token := range tokens[max(0, len(tokens)-4):] {
				if _, err := at.Authenticate(t.Context(), "Bearer "+token); err != nil {
					t.Fatalf("server %d at %s: %v", i, b.now, err)
				}
			}
		}
	}
	round()
	next := b.rotate(t, b.tokens)
	for range 5 {
		b.now = b.now.Add(10 * time.Second)
		round()
	}
	if kids[next.KID] {
		t.Fatal("the new key signs before all servers know it")
	}
	for b.now.Before(next.SignsFrom) {
		b.now = b.now.Add(20 * time.Second)
		round()
	}
	clear(kids)
	round()
	if len(kids) != 1 || !kids[next.KID] {
		t.Errorf("after %s tokens are signed by %v, not by %s alone", next.SignsFrom, kids, next.KID)
	}
	// What the old key signed is good to its end, and then the key goes.
	b.now = next.SignsFrom.Add(TokenLifeMax - time.Second)
	if set, err := third.JWKS(t.Context()); err != nil || len(set.Keys) != 2 {
		t.Errorf("before the last token's end: %+v, %v", set, err)
	}
	b.now = b.now.Add(2 * time.Second)
	set, err := third.JWKS(t.Context())
	if err != nil || len(set.Keys) != 1 || set.Keys[0].KeyID != next.KID {
		t.Errorf("after it: %+v, %v", set, err)
	}
	if third.keys.has(old) {
		t.Error("a key that is gone still checks tokens")
	}
}

// A token of a new key that nobody announced (the first key; a server of the version before) is found at once.
func TestField_C150_AnUnknownKeyIsLookedForAtOnce(t *testing.T) {
	b := newBench(t)
	a, secret := b.account("etl")
	checker := b.server()
	if _, err := checker.Authenticate(t.Context(), "Bearer "+b.login(t, a, secret, "").AccessToken); err != nil {
		t.Fatal(err)
	}
	next := b.rotate(t, b.tokens)
	b.now = b.now.Add(2 * time.Second)
	b.store.keys[1].SignsFrom = b.now
	b.tokens.keys.Adopt(b.store.keys)
	token := b.login(t, a, secret, "").AccessToken
	if kidOf(t, token) != next.KID {
		t.Fatal("the test's token is not of the new key")
	}
	if _, err := checker.Authenticate(t.Context(), "Bearer "+token); err != nil {
		t.Error(err)
	}
	// 1,000 forged ids in a second cost one read; the good token meanwhile none.
	before := b.store.keyReads
	b.now = b.now.Add(1100 * time.Millisecond)
	for i := range 1000 {
		forged := b.forged(t, forge{method: jwt.SigningMethodHS256, key: []byte("x"), header: map[string]any{"kid": fmt.Sprint("../../k", i, "' OR 1=1")}})
		if _, err := checker.Authenticate(t.Context(), "Bearer "+forged); !fault.Is(err, fault.Unauthenticated) {
			t.Fatal(err)
		}
		if _, err := checker.Authenticate(t.Context(), "Bearer "+token); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.store.keyReads - before; got > 1 {
		t.Errorf("1000 forged ids read the keys %d times", got)
	}
}

// RS256 by setting: published as RSA, found by its id, and good for nothing but RS256. The key before signs until it is known.
func TestKeys_RS256BySetting(t *testing.T) {
	b := newBench(t)
	a, secret := b.account("etl")
	b.login(t, a, secret, "")
	b.tokens = b.server()
	b.tokens.keys.Algorithm = AlgorithmRS256
	if got := kidOf(t, b.login(t, a, secret, "").AccessToken); got != b.store.keys[0].KID {
		t.Error("the RSA key signs before it is known")
	}
	if len(b.store.keys) != 2 || b.store.keys[1].Algorithm != AlgorithmRS256 {
		t.Fatalf("%d keys", len(b.store.keys))
	}
	b.login(t, a, secret, "")
	b.now = b.store.keys[1].SignsFrom.Add(time.Second)
	token := b.login(t, a, secret, "").AccessToken
	if kidOf(t, token) != b.store.keys[1].KID || len(b.store.keys) != 2 {
		t.Fatalf("signed by %s of %d keys", kidOf(t, token), len(b.store.keys))
	}
	for _, at := range []*Tokens{b.tokens, b.server()} {
		if _, err := at.Authenticate(t.Context(), "Bearer "+token); err != nil {
			t.Error(err)
		}
	}
	set, err := b.tokens.JWKS(t.Context())
	if err != nil || len(set.Keys) != 2 {
		t.Fatal(set, err)
	}
	k := set.Keys[1]
	n, err := base64.RawURLEncoding.DecodeString(k.N)
	if err != nil || k.Type != "RSA" || k.Algorithm != AlgorithmRS256 || k.E != "AQAB" || new(big.Int).SetBytes(n).BitLen() != signingRSABits || k.X != "" {
		t.Errorf("%+v, %v", k, err)
	}
	// HMAC by the bytes of the public key, in each form that an attacker has, and our own EdDSA key under the RSA key's id.
	seed := b.privateKey(t)
	for name, f := range map[string]forge{
		"HS256 by DER":       {method: jwt.SigningMethodHS256, key: b.store.keys[1].PublicKey, header: map[string]any{"kid": k.KeyID}},
		"HS256 by modulus":   {method: jwt.SigningMethodHS256, key: n, header: map[string]any{"kid": k.KeyID}},
		"EdDSA, RSA's id":    {method: jwt.SigningMethodEdDSA, key: seed, header: map[string]any{"kid": k.KeyID}},
		"RS256, EdDSA's id":  {method: jwt.SigningMethodRS256, key: b.rsaKey(t, 1), header: map[string]any{"kid": b.store.keys[0].KID}},
		"PS256 by our key":   {method: jwt.SigningMethodPS256, key: b.rsaKey(t, 1), header: map[string]any{"kid": k.KeyID}},
		"RS512 by our key":   {method: jwt.SigningMethodRS512, key: b.rsaKey(t, 1), header: map[string]any{"kid": k.KeyID}},
		"critical extension": {method: jwt.SigningMethodEdDSA, key: seed, header: map[string]any{"crit": []string{"exp"}}},
	} {
		if _, err := b.tokens.Authenticate(t.Context(), "Bearer "+b.forged(t, f)); !fault.Is(err, fault.Unauthenticated) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := b.tokens.Authenticate(t.Context(), "Bearer "+b.forged(t, forge{
		method: jwt.SigningMethodRS256, key: b.rsaKey(t, 1), header: map[string]any{"kid": k.KeyID},
	})); err != nil {
		t.Errorf("the test's own RS256 token: %v", err)
	}
}

// rsaKey opens a stored RSA key.
func (b *bench) rsaKey(t *testing.T, i int) any {
	t.Helper()
	key, ok := readSigningKey(b.store.keys[i], nil)
	if !ok {
		t.Fatal("no usable key")
	}
	private, err := key.private(b.ring)
	if err != nil {
		t.Fatal(err)
	}
	return private
}

// A key that has reached its age announces its successor once, whatever number of servers notice it; while it cannot, it signs on.
func TestKeys_RotateByAge(t *testing.T) {
	b := newBench(t)
	a, secret := b.account("etl")
	second := b.server()
	for _, at := range []*Tokens{b.tokens, second} {
		at.keys.RotateAfter = 24 * time.Hour
	}
	b.login(t, a, secret, "")
	first := b.store.keys[0].KID
	b.now = b.now.Add(23 * time.Hour)
	b.login(t, a, secret, "")
	if len(b.store.keys) != 1 {
		t.Fatal("rotated before its time")
	}
	b.now = b.now.Add(2 * time.Hour)
	for _, at := range []*Tokens{b.tokens, second, b.tokens} {
		answer, err := at.Issue(t.Context(), TokenRequest{Form: form("grant_type", "client_credentials", "client_secret", secret.Reveal())})
		if err != nil || kidOf(t, answer.AccessToken) != first {
			t.Fatal("signed by another key, or not at all", err)
		}
	}
	if len(b.store.keys) != 2 || b.store.keys[1].SignsFrom.Sub(b.now) != keyAnnouncedFor {
		t.Fatalf("%d keys", len(b.store.keys))
	}
	b.now = b.now.Add(keyAnnouncedFor)
	if got := kidOf(t, b.login(t, a, secret, "").AccessToken); got != b.store.keys[1].KID {
		t.Errorf("signed by %s", got)
	}
	b.now = b.now.Add(24 * time.Hour)
	b.tokens.keys.store = refusingSuccession{b.store}
	if got := kidOf(t, b.login(t, a, secret, "").AccessToken); got != b.store.keys[1].KID {
		t.Errorf("signed by %s", got)
	}
}

// refusingSuccession cannot write.
type refusingSuccession struct{ KeyStore }

func (refusingSuccession) SucceedSigningKey(context.Context, string, StoredKey) ([]StoredKey, error) {
	return nil, fault.New(fault.Busy, "not now")
}

// An algorithm that this version does not have ends nothing, and its key is another version's.
func TestKeys_UnknownAlgorithms(t *testing.T) {
	b := newBench(t)
	a, secret := b.account("etl")
	b.store.keys = []StoredKey{
		{KID: "future", Algorithm: "ML-DSA", PublicKey: []byte{1}, CreatedAt: b.now},
		{KID: "broken", Algorithm: AlgorithmRS256, PublicKey: []byte{1}, CreatedAt: b.now},
		{KID: "short", Algorithm: AlgorithmEdDSA, PublicKey: make(ed25519.PublicKey, 5), CreatedAt: b.now, RetiredAt: b.now},
	}
	token := b.login(t, a, secret, "").AccessToken
	if _, err := b.tokens.Authenticate(t.Context(), "Bearer "+token); err != nil {
		t.Error(err)
	}
	b.tokens.keys.Algorithm = "ML-DSA"
	if _, err := b.tokens.keys.NextKey(false); !fault.Is(err, fault.Internal) || !strings.Contains(err.Error(), "ML-DSA") {
		t.Error(err)
	}
}
