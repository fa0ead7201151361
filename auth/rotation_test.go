package auth

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"catalogd/internal/fault"
)

// A secret's form may be renewed again and again: it stays the same secret, with the fingerprint that its tokens have.
func TestSecrets_RenewedFormKeepsItsFingerprint(t *testing.T) {
	keys := []string{NewRingKey()}
	ring, err := NewRing(keys[0])
	if err != nil {
		t.Fatal(err)
	}
	secret, stored := NewSecrets(ring).Generate(NewClientID())
	first := stored.Mark()
	for range 3 {
		keys = append([]string{NewRingKey()}, keys...)
		if ring, err = NewRing(keys[0], keys[1]); err != nil {
			t.Fatal(err)
		}
		s := NewSecrets(ring)
		form, renewed := s.renew(stored, secret)
		if !renewed {
			t.Fatal("a form of a previous key was not renewed")
		}
		stored.Form = form
		if _, again := s.renew(stored, secret); again {
			t.Error("a form of the current key was renewed")
		}
		if ring, err = NewRing(keys[0]); err != nil {
			t.Fatal(err)
		}
		alone := NewSecrets(ring)
		if good, err := alone.Verify(t.Context(), stored, secret); !good || err != nil {
			t.Errorf("with the current key alone: %v, %v", good, err)
		}
		if good, _ := alone.Verify(t.Context(), stored, secret+"x"); good {
			t.Error("a wrong secret was found right")
		}
		short := StoredSecret{Algorithm: AlgorithmHMAC, Form: form[:len(form)-1]}
		if good, _ := alone.Verify(t.Context(), short, secret); good {
			t.Error("a form of a wrong length was taken")
		}
		if got := stored.Mark(); got != first {
			t.Errorf("the fingerprint changed from %s to %s: tokens of the same secret would not be refreshed", first, got)
		}
	}
}

// brokenRotation cannot keep anything.
type brokenRotation struct{ asked int }

func (b *brokenRotation) ResealSigningKey(context.Context, string, []byte, []byte) error {
	b.asked++
	return fault.New(fault.Busy, "away")
}

func (b *brokenRotation) RenewPersonalForm(context.Context, uuid.UUID, []byte, []byte) error {
	b.asked++
	return fault.New(fault.Busy, "away")
}

func (b *brokenRotation) RenewSecretForm(context.Context, uuid.UUID, []byte, []byte) error {
	b.asked++
	return fault.New(fault.Busy, "away")
}

// A renewed form that cannot be kept does not make a good login fail; a wrong secret never gets as far.
func TestTokens_LoginDoesNotHangOnRenewal(t *testing.T) {
	b := newBench(t)
	account, secret := b.account("ann", "r")
	old := b.ring.keys[0]
	ring, err := NewRing(NewRingKey())
	if err != nil {
		t.Fatal(err)
	}
	ring.keys = append(ring.keys, old)
	rotation := &brokenRotation{}
	tokens := NewTokens(TokensConfig{Accounts: b.store, Keys: NewKeys(b.store, ring, nil), Secrets: NewSecrets(ring), Rotation: rotation})
	form := func(secret Secret) TokenRequest {
		values, err := ParseTokenForm("grant_type=client_credentials&scope=PRINCIPAL_ROLE:ALL&client_id=" + account.ClientID + "&client_secret=" + secret.Reveal())
		if err != nil {
			t.Fatal(err)
		}
		return TokenRequest{Form: values}
	}
	if _, err := tokens.Issue(t.Context(), form(secret+"x")); err == nil || rotation.asked != 0 {
		t.Errorf("a wrong secret: %v, and %d renewals", err, rotation.asked)
	}
	if _, err := tokens.Issue(t.Context(), form(secret)); err != nil || rotation.asked != 1 {
		t.Errorf("%v after %d renewals", err, rotation.asked)
	}
}
