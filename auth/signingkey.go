package auth

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"fmt"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"catalogd/internal/fault"
)

// The algorithms that tokens are signed with. A key is good for its own alone.
const (
	AlgorithmEdDSA = "EdDSA" // Ed25519: cheap and short
	AlgorithmRS256 = "RS256" // for proxies and gateways that check our tokens and know nothing else

	signingRSABits = 2048
)

// signsFrom is when a key begins to sign; keys of the version before say nothing.
func (k StoredKey) signsFrom() time.Time {
	if k.SignsFrom.IsZero() {
		return k.CreatedAt
	}
	return k.SignsFrom
}

// VerifiesUntil is when the last token that the key can have signed has ended; far away for one that is not retired.
func (k StoredKey) VerifiesUntil() time.Time {
	if k.RetiredAt.IsZero() {
		return k.CreatedAt.AddDate(1000, 0, 0)
	}
	return k.RetiredAt.Add(TokenLifeMax)
}

// The states of a signing key.
const (
	KeyAnnounced = "announced" // published, and not signing yet
	KeySigning   = "signing"
	KeyRetired   = "retired" // checks the tokens that it signed
)

// State gives the key's state at a time.
func (k StoredKey) State(now time.Time) string {
	switch {
	case !k.RetiredAt.IsZero() && !now.Before(k.RetiredAt):
		return KeyRetired
	case now.Before(k.signsFrom()):
		return KeyAnnounced
	}
	return KeySigning
}

// signingKey is a stored key that this version can use. Its private half is decrypted at its first signature.
type signingKey struct {
	stored StoredKey
	public crypto.PublicKey
	method jwt.SigningMethod

	mu     sync.Mutex
	opened crypto.Signer
}

// readSigningKey reads a stored key; one that was known before is taken as it is, with what was decrypted of it.
func readSigningKey(stored StoredKey, before *keySet) (*signingKey, bool) {
	key := &signingKey{stored: stored}
	switch stored.Algorithm {
	case AlgorithmEdDSA:
		if len(stored.PublicKey) != ed25519.PublicKeySize {
			return nil, false
		}
		key.public, key.method = ed25519.PublicKey(stored.PublicKey), jwt.SigningMethodEdDSA
	case AlgorithmRS256:
		parsed, err := x509.ParsePKIXPublicKey(stored.PublicKey)
		public, ok := parsed.(*rsa.PublicKey)
		if err != nil || !ok {
			return nil, false
		}
		key.public, key.method = public, jwt.SigningMethodRS256
	default:
		return nil, false
	}
	if before != nil {
		if known := before.keys[stored.KID]; known != nil && bytes.Equal(known.stored.PrivateKey, stored.PrivateKey) {
			known.mu.Lock()
			defer known.mu.Unlock()
			key.opened = known.opened
		}
	}
	return key, true
}

// private decrypts the private half, once.
func (k *signingKey) private(ring *Ring) (crypto.Signer, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.opened != nil {
		return k.opened, nil
	}
	raw, err := ring.Open(Place{Table: keysTable, Row: k.stored.KID}, k.stored.PrivateKey)
	if err != nil {
		return nil, fmt.Errorf("open signing key: %w", err)
	}
	if k.stored.Algorithm == AlgorithmEdDSA {
		if len(raw) != ed25519.SeedSize {
			return nil, fault.New(fault.Internal, "signing key %s has the wrong size", k.stored.KID)
		}
		k.opened = ed25519.NewKeyFromSeed(raw)
		return k.opened, nil
	}
	parsed, err := x509.ParsePKCS8PrivateKey(raw)
	private, ok := parsed.(*rsa.PrivateKey)
	if err != nil || !ok {
		return nil, fault.New(fault.Internal, "signing key %s is not the RSA key that it should be", k.stored.KID)
	}
	k.opened = private
	return private, nil
}

func (k *signingKey) jwk() JWK { return jwkOf(k.public, k.stored.KID, k.stored.Algorithm) }

// generateKey makes a key pair and encrypts its private half.
func generateKey(algorithm string, ring *Ring) (StoredKey, error) {
	key := StoredKey{Algorithm: algorithm}
	var public crypto.PublicKey
	var private []byte
	switch algorithm {
	case AlgorithmEdDSA:
		pair, seed, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return key, fault.Wrap(fault.Internal, err, "make signing key")
		}
		public, private, key.PublicKey = pair, seed.Seed(), pair
	case AlgorithmRS256:
		pair, err := rsa.GenerateKey(rand.Reader, signingRSABits)
		if err != nil {
			return key, fault.Wrap(fault.Internal, err, "make signing key")
		}
		public = &pair.PublicKey
		if key.PublicKey, err = x509.MarshalPKIXPublicKey(public); err == nil {
			private, err = x509.MarshalPKCS8PrivateKey(pair)
		}
		if err != nil {
			return key, fault.Wrap(fault.Internal, err, "make signing key")
		}
	default:
		return key, fault.New(fault.Internal, "tokens cannot be signed with the algorithm %q", algorithm)
	}
	key.KID = thumbprint(public)
	key.PrivateKey = ring.Seal(Place{Table: keysTable, Row: key.KID}, private)
	return key, nil
}
