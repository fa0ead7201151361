package auth

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"catalogd/internal/fault"
)

const (
	// AlgorithmEdDSA is the one algorithm that tokens are signed with. Tokens are opaque to clients, so the cheap
	// and short one; a key is good for its own algorithm only.
	AlgorithmEdDSA = "EdDSA"

	keyReadIntervalMin = time.Second // between reads that an unknown key id causes
	keyAgeMax          = time.Minute // after which signing reads the keys again
	keyReadMax         = 5 * time.Second
	keysTable          = "signing_keys"
)

// Keys holds the keys that tokens are signed with. They live in the database, the private halves encrypted, so that
// every server knows all of them; each reads them at first use and when it meets a key id that it does not know.
type Keys struct {
	store KeyStore
	ring  *Ring
	now   func() time.Time

	set atomic.Pointer[keySet]

	mu      sync.Mutex // held while reading
	tried   time.Time
	problem error
}

type keySet struct {
	public map[string]ed25519.PublicKey
	stored []StoredKey
	readAt time.Time
}

// NewKeys makes Keys; it reads nothing yet. now may be nil.
func NewKeys(store KeyStore, ring *Ring, now func() time.Time) *Keys {
	if now == nil {
		now = time.Now
	}
	return &Keys{store: store, ring: ring, now: now}
}

// sign signs with the newest active key and makes the first key where there is none.
func (k *Keys) sign(ctx context.Context, c jwt.Claims) (string, error) {
	set := k.set.Load()
	if set == nil || k.now().Sub(set.readAt) > keyAgeMax {
		fresh, err := k.read(ctx)
		if err != nil && set == nil {
			return "", err
		}
		if err == nil {
			set = fresh
		}
	}
	key, ok := set.newest()
	if !ok {
		var err error
		if set, err = k.create(ctx); err != nil {
			return "", err
		}
		if key, ok = set.newest(); !ok {
			return "", fault.New(fault.Internal, "there is no active signing key")
		}
	}
	private, err := k.ring.Open(Place{Table: keysTable, Row: key.KID}, key.PrivateKey)
	if err != nil {
		return "", fmt.Errorf("open signing key: %w", err)
	}
	if len(private) != ed25519.SeedSize {
		return "", fault.New(fault.Internal, "signing key %s has the wrong size", key.KID)
	}
	token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, c)
	token.Header["kid"] = key.KID
	token.Header["typ"] = tokenType
	signed, err := token.SignedString(ed25519.NewKeyFromSeed(private))
	if err != nil {
		return "", fault.Wrap(fault.Internal, err, "sign token")
	}
	return signed, nil
}

// find gives the public key of a key id. An unknown id makes it read the keys, at most once a second however many
// forged ids come in.
func (k *Keys) find(ctx context.Context, kid string) (ed25519.PublicKey, error) {
	if set := k.set.Load(); set != nil {
		if key, ok := set.public[kid]; ok {
			return key, nil
		}
	}
	set, err := k.readSeldom(ctx)
	if err != nil {
		return nil, err
	}
	if key, ok := set.public[kid]; ok {
		return key, nil
	}
	return nil, fault.New(fault.Unauthenticated, "the token was signed with a key that this server does not have")
}

// has tells whether a key id is among those that were read last.
func (k *Keys) has(kid string) bool {
	set := k.set.Load()
	if set == nil {
		return false
	}
	_, ok := set.public[kid]
	return ok
}

func (k *Keys) readSeldom(ctx context.Context) (*keySet, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now := k.now(); now.Sub(k.tried) < keyReadIntervalMin && !k.tried.IsZero() {
		if set := k.set.Load(); set != nil {
			return set, nil
		}
		return nil, k.problem
	}
	return k.readLocked(ctx)
}

func (k *Keys) read(ctx context.Context) (*keySet, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.readLocked(ctx)
}

func (k *Keys) readLocked(ctx context.Context) (*keySet, error) {
	k.tried = k.now()
	// Everybody waits for this read, so the caller who happened to start it cannot end it by going away.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keyReadMax)
	defer cancel()
	stored, err := k.store.SigningKeys(ctx)
	if err != nil {
		k.problem = fmt.Errorf("read signing keys: %w", err)
		return nil, k.problem
	}
	return k.keep(stored)
}

func (k *Keys) keep(stored []StoredKey) (*keySet, error) {
	set := &keySet{public: make(map[string]ed25519.PublicKey, len(stored)), stored: stored, readAt: k.now()}
	for _, key := range stored {
		// A key of an algorithm that this version does not have is another version's business.
		if key.Algorithm == AlgorithmEdDSA && len(key.PublicKey) == ed25519.PublicKeySize {
			set.public[key.KID] = ed25519.PublicKey(key.PublicKey)
		}
	}
	k.problem = nil
	k.set.Store(set)
	return set, nil
}

// create makes the first key. When two servers do it at once, the database keeps one and both use it.
func (k *Keys) create(ctx context.Context) (*keySet, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "make signing key")
	}
	kid := thumbprint(public)
	k.mu.Lock()
	defer k.mu.Unlock()
	stored, err := k.store.AddSigningKey(ctx, StoredKey{
		KID: kid, Algorithm: AlgorithmEdDSA, PublicKey: public,
		PrivateKey: k.ring.Seal(Place{Table: keysTable, Row: kid}, private.Seed()), CreatedAt: k.now(),
	})
	if err != nil {
		return nil, fmt.Errorf("add signing key: %w", err)
	}
	return k.keep(stored)
}

// newest gives the key to sign with.
func (s *keySet) newest() (StoredKey, bool) {
	var best StoredKey
	for _, key := range s.stored {
		if _, usable := s.public[key.KID]; !usable || !key.RetiredAt.IsZero() {
			continue
		}
		if best.KID == "" || key.CreatedAt.After(best.CreatedAt) || key.CreatedAt.Equal(best.CreatedAt) && key.KID > best.KID {
			best = key
		}
	}
	return best, best.KID != ""
}

// JWK is one public key, RFC 8037.
type JWK struct {
	Type      string `json:"kty"`
	Curve     string `json:"crv"`
	X         string `json:"x"`
	KeyID     string `json:"kid"`
	Use       string `json:"use"`
	Algorithm string `json:"alg"`
}

// JWKS is the document of public keys, RFC 7517.
type JWKS struct {
	Keys []JWK `json:"keys"`
}

// JWKS gives the public keys; it reads them at most once a second.
func (k *Keys) JWKS(ctx context.Context) (JWKS, error) {
	set, err := k.readSeldom(ctx)
	if err != nil {
		return JWKS{}, err
	}
	document := JWKS{Keys: []JWK{}}
	for _, key := range set.stored {
		if public, ok := set.public[key.KID]; ok {
			document.Keys = append(document.Keys, JWK{
				Type: "OKP", Curve: "Ed25519", X: base64.RawURLEncoding.EncodeToString(public),
				KeyID: key.KID, Use: "sig", Algorithm: AlgorithmEdDSA,
			})
		}
	}
	return document, nil
}

// thumbprint is RFC 7638's, which makes a key id that is the key's own.
func thumbprint(public ed25519.PublicKey) string {
	sum := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + base64.RawURLEncoding.EncodeToString(public) + `"}`))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
