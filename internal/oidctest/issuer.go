// Package oidctest is a small identity provider for tests: discovery, keys that change, and tokens that say whatever a test
// wants them to.
package oidctest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"
)

// The paths that an Issuer answers.
const (
	DiscoveryPath = "/.well-known/openid-configuration"
	KeysPath      = "/keys"
)

const rsaBits = 2048

// Issuer is a provider on loopback. Its URL is its tokens' "iss".
type Issuer struct {
	URL    string
	server *httptest.Server

	mu      sync.Mutex
	keys    []*Key
	made    int
	hits    map[string]int
	answers map[string]http.HandlerFunc
}

// Key is one signing key.
type Key struct {
	ID        string
	Algorithm string
	private   crypto.Signer
}

// New starts a provider with one key of the algorithm; it ends with the test.
func New(t testing.TB, algorithm string) *Issuer {
	t.Helper()
	i := &Issuer{hits: map[string]int{}, answers: map[string]http.HandlerFunc{}}
	i.server = httptest.NewServer(i)
	t.Cleanup(i.server.Close)
	i.URL = i.server.URL
	i.AddKey(algorithm)
	return i
}

// ServeHTTP is the provider.
func (i *Issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	i.hits[r.URL.Path]++
	answer := i.answers[r.URL.Path]
	i.mu.Unlock()
	switch {
	case answer != nil:
		answer(w, r)
	case r.URL.Path == DiscoveryPath:
		writeJSON(w, map[string]any{"issuer": i.URL, "jwks_uri": i.URL + KeysPath})
	case r.URL.Path == KeysPath:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(i.KeySet())
	default:
		http.NotFound(w, r)
	}
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// Answer answers a path by fn from now on; nil: as usual again.
func (i *Issuer) Answer(path string, fn http.HandlerFunc) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.answers[path] = fn
}

// Hits counts the requests for a path.
func (i *Issuer) Hits(path string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.hits[path]
}

// AddKey makes a key of the algorithm; tokens are signed with the newest.
func (i *Issuer) AddKey(algorithm string) *Key {
	k := &Key{Algorithm: algorithm, private: newPrivate(algorithm)}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.made++
	k.ID = fmt.Sprintf("key-%d", i.made)
	i.keys = append(i.keys, k)
	return k
}

// Withdraw takes a key out of the set.
func (i *Issuer) Withdraw(k *Key) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = slices.DeleteFunc(i.keys, func(other *Key) bool { return other == k })
}

// Newest is the key that tokens are signed with.
func (i *Issuer) Newest() *Key {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.keys[len(i.keys)-1]
}

// KeySet is the JWKS document.
func (i *Issuer) KeySet() []byte {
	i.mu.Lock()
	defer i.mu.Unlock()
	set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{}}
	for _, k := range i.keys {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: k.private.Public(), KeyID: k.ID, Algorithm: k.Algorithm, Use: "sig"})
	}
	document, err := json.Marshal(set)
	if err != nil {
		panic(err)
	}
	return document
}

// Claims are what a good token says, for the audience "catalogd" and an hour, with what more adds or, with a nil value,
// takes away.
func (i *Issuer) Claims(subject string, more map[string]any) map[string]any {
	now := time.Now()
	claims := map[string]any{
		"iss": i.URL, "sub": subject, "aud": "catalogd", "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
		"jti": fmt.Sprintf("%s-%d", subject, now.UnixNano()),
	}
	maps.Copy(claims, more)
	maps.DeleteFunc(claims, func(_ string, value any) bool { return value == nil })
	return claims
}

// Token is a good token of a subject, with more in it.
func (i *Issuer) Token(subject string, more map[string]any) string {
	return i.Newest().Sign(i.Claims(subject, more), nil)
}

// Sign makes a token of any claims; header adds to its header.
func (k *Key) Sign(claims, header map[string]any) string {
	return sign(jwt.GetSigningMethod(k.Algorithm), k.private, claims, merged(map[string]any{"kid": k.ID}, header))
}

// SignHMAC makes a token that is signed with the public key as if that were a secret.
func (k *Key) SignHMAC(claims map[string]any) string {
	secret, err := json.Marshal(jose.JSONWebKey{Key: k.private.Public(), KeyID: k.ID})
	if err != nil {
		panic(err)
	}
	return sign(jwt.SigningMethodHS256, secret, claims, map[string]any{"kid": k.ID})
}

// Unsigned makes a token of the algorithm none.
func Unsigned(claims map[string]any) string {
	return sign(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, claims, nil)
}

func sign(method jwt.SigningMethod, key any, claims, header map[string]any) string {
	token := jwt.NewWithClaims(method, jwt.MapClaims(claims))
	maps.Copy(token.Header, header)
	signed, err := token.SignedString(key)
	if err != nil {
		panic(err)
	}
	return signed
}

func merged(a, b map[string]any) map[string]any {
	maps.Copy(a, b)
	return a
}

// Tampered gives a token with other claims under the old signature.
func Tampered(token string, claims map[string]any) string {
	parsed, _, err := jwt.NewParser().ParseUnverified(token, jwt.MapClaims{})
	if err != nil {
		panic(err)
	}
	body, err := json.Marshal(claims)
	if err != nil {
		panic(err)
	}
	header, err := json.Marshal(parsed.Header)
	if err != nil {
		panic(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	return encode(header) + "." + encode(body) + "." + encode(parsed.Signature)
}

func newPrivate(algorithm string) crypto.Signer {
	var key crypto.Signer
	var err error
	switch algorithm {
	case "ES256":
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "RS256", "PS256", "RS512":
		key, err = rsa.GenerateKey(rand.Reader, rsaBits)
	case "EdDSA":
		_, key, err = ed25519.GenerateKey(rand.Reader)
	default:
		panic("oidctest: no keys of " + algorithm)
	}
	if err != nil {
		panic(err)
	}
	return key
}
