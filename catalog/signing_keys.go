package catalog

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"catalogd/auth"
	"catalogd/authz"
)

// OtherKeys says what becomes of the signing keys beside a new one.
type OtherKeys int

// What can become of them.
const (
	RetireOtherKeys OtherKeys = iota // they sign till the new one does, and check what they signed till it has ended
	RemoveOtherKeys                  // they go at once, and all tokens with them
)

// SigningKeyStore keeps the keys that tokens are signed with.
type SigningKeyStore interface {
	SigningKeys(ctx context.Context) ([]auth.StoredKey, error)
	// RotateSigningKeys keeps the key and gives all that are there then. fault.AlreadyExists when others are to be retired while
	// another one is announced.
	RotateSigningKeys(ctx context.Context, k auth.StoredKey, others OtherKeys, f Fact) ([]auth.StoredKey, error)
}

// KeyMaker makes signing keys and uses those that are kept; auth.Keys is one.
type KeyMaker interface {
	NextKey(atOnce bool) (auth.StoredKey, error)
	Adopt(stored []auth.StoredKey)
}

const signingKeysSubject = "signing keys"

// SigningKeys gives the keys that tokens are signed with or still checked by, oldest first. Without their private halves.
func (s *Service) SigningKeys(ctx context.Context, c Caller) ([]auth.StoredKey, error) {
	if err := s.requireOnRoot(ctx, c, need{"list-signing-keys", signingKeysSubject, authz.ServiceManageAccess}); err != nil {
		return nil, err
	}
	keys, err := s.Admin.SigningKeys(ctx)
	if err != nil {
		return nil, fmt.Errorf("list signing keys: %w", err)
	}
	return publicHalves(keys), nil
}

// RotateSigningKeys makes a key that signs in the place of those before it: once all servers know it, or, when the others are to go
// with all their tokens, at once. It gives all keys.
func (s *Service) RotateSigningKeys(ctx context.Context, c Caller, others OtherKeys) ([]auth.StoredKey, error) {
	if err := s.requireOnRoot(ctx, c, need{"rotate-signing-keys", signingKeysSubject, authz.ServiceManageAccess}); err != nil {
		return nil, err
	}
	if s.SigningKeyMaker == nil {
		return nil, errNoSecrets
	}
	next, err := s.SigningKeyMaker.NextKey(others == RemoveOtherKeys)
	if err != nil {
		return nil, err
	}
	f := s.fact(c, "rotate-signing-keys", next.KID, uuid.Nil, uuid.Nil)
	f.Details = map[string]any{"algorithm": next.Algorithm, "signs-from": next.SignsFrom, "others-removed": others == RemoveOtherKeys}
	keys, err := s.Admin.RotateSigningKeys(ctx, next, others, f)
	if err != nil {
		return nil, fmt.Errorf("rotate the signing keys: %w", err)
	}
	s.SigningKeyMaker.Adopt(keys)
	return publicHalves(keys), nil
}

func publicHalves(keys []auth.StoredKey) []auth.StoredKey {
	public := make([]auth.StoredKey, len(keys))
	for i, k := range keys {
		k.PrivateKey = nil
		public[i] = k
	}
	return public
}

// KeySuccession is the fact that a signing key has reached its age and was given a successor, which nobody asked for.
func KeySuccession(next auth.StoredKey) Fact {
	return Fact{
		ID: newID(), At: next.CreatedAt, Operation: "rotate-signing-keys", Subject: next.KID,
		Caller:  Caller{Principal: auth.Principal{Name: systemNamePrefix + "keys", Kind: auth.System}},
		Details: map[string]any{"algorithm": next.Algorithm, "signs-from": next.SignsFrom},
	}
}
