package auth

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/google/uuid"
)

// RotationStore exchanges what a previous key made for what the current one makes. Each call names what it replaces,
// so that a change that came in between stays; then nothing happens and nothing is wrong.
type RotationStore interface {
	ResealSigningKey(ctx context.Context, kid string, old, fresh []byte) error
	RenewSecretForm(ctx context.Context, principal uuid.UUID, old, fresh []byte) error
	RenewPersonalForm(ctx context.Context, token uuid.UUID, old, fresh []byte) error
}

// A renewed HMAC form ends with the fingerprint of the form that the secret had first: the secret is still the same,
// so tokens that it obtained before are still refreshed.
const fingerprintBytes = 9

// ID marks the current key in what it makes: the first bytes of an HMAC form, and those behind a sealed value's version.
func (r *Ring) ID() []byte { return bytes.Clone(r.keys[0].id) }

// ResealKeys encrypts signing keys anew that a previous key encrypted, and tells how many. Afterwards the previous key
// is not needed for them. Keys that no key of the ring opens are left alone; who signs says so.
func ResealKeys(ctx context.Context, store RotationStore, ring *Ring, keys []StoredKey) (resealed int, err error) {
	for _, key := range keys {
		at := Place{Table: keysTable, Row: key.KID}
		plain, err := ring.Open(at, key.PrivateKey)
		if err != nil || bytes.Equal(key.PrivateKey[1:1+ringIDBytes], ring.keys[0].id) {
			continue
		}
		if err := store.ResealSigningKey(ctx, key.KID, key.PrivateKey, ring.Seal(at, plain)); err != nil {
			return resealed, fmt.Errorf("encrypt signing key %s with the current secrets.key: %w", key.KID, err)
		}
		resealed++
	}
	return resealed, nil
}

// renew gives the form that the current key makes of a secret that was just found right; false: it has that already,
// or no key is in its form.
func (s *Secrets) renew(stored StoredSecret, secret Secret) (form []byte, renewed bool) {
	key := s.ring.keys[0]
	if stored.Algorithm != AlgorithmHMAC || bytes.HasPrefix(stored.Form, key.id) {
		return nil, false
	}
	form = append(bytes.Clone(key.id), key.sum([]byte(secret))...)
	return append(form, stored.fingerprintBytes()...), true
}

// renewForm keeps the renewed form of an account that has just logged in. The login is good whether or not that
// works: the next one tries again, and `catalogd doctor` names those that remain.
func (t *Tokens) renewForm(ctx context.Context, account *Account, secret Secret) {
	form, renewed := t.secrets.renew(account.Secret, secret)
	if !renewed || t.rotation == nil {
		return
	}
	if err := t.rotation.RenewSecretForm(ctx, account.ID, account.Secret.Form, form); err == nil {
		account.Secret.Form = form
	}
}

func (s StoredSecret) fingerprintBytes() []byte {
	if s.Algorithm == AlgorithmHMAC && len(s.Form) == ringIDBytes+sha256.Size+fingerprintBytes {
		return s.Form[ringIDBytes+sha256.Size:]
	}
	sum := sha256.Sum256(append([]byte(s.Algorithm+"\x00"), s.Form...))
	return sum[:fingerprintBytes]
}
