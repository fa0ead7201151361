package auth

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"catalogd/internal/fault"
)

func ringOf(t interface{ Fatal(...any) }, keys ...string) *Ring {
	ring, err := NewRing(keys[0], keys[1:]...)
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

func TestRing_RefusesWrongKeys(t *testing.T) {
	for name, key := range map[string]string{
		"empty": "", "short": base64.StdEncoding.EncodeToString(make([]byte, 31)), "long": base64.StdEncoding.EncodeToString(make([]byte, 33)),
		"not base64": strings.Repeat("!", 44),
	} {
		if _, err := NewRing(key); !fault.Is(err, fault.IllegalArgument) || !strings.Contains(err.Error(), "secrets.key") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := NewRing(NewRingKey(), key); !fault.Is(err, fault.IllegalArgument) || !strings.Contains(err.Error(), "secrets.previous_keys") {
			t.Errorf("%s as previous: %v", name, err)
		}
	}
}

// A sealed value opens at its place with its key, also as a previous one, and nowhere else; any changed byte is noticed.
func TestRing_SealedValueOpensAtItsPlaceOnly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		oldKey, newKey := NewRingKey(), NewRingKey()
		before, after := ringOf(t, oldKey), ringOf(t, newKey, oldKey)
		at := Place{rapid.String().Draw(t, "table"), rapid.String().Draw(t, "row")}
		plain := rapid.SliceOf(rapid.Byte()).Draw(t, "plain")
		blob := before.Seal(at, plain)
		for name, ring := range map[string]*Ring{"same": before, "rotated": after} {
			if got, err := ring.Open(at, blob); err != nil || !bytes.Equal(got, plain) {
				t.Fatalf("%s ring: %v", name, err)
			}
		}
		if _, err := ringOf(t, newKey).Open(at, blob); !fault.Is(err, fault.Internal) {
			t.Fatalf("opened without its key: %v", err)
		}
		elsewhere := Place{at.Table, at.Row + "x"}
		if _, err := before.Open(elsewhere, blob); err == nil {
			t.Fatal("opened at another row")
		}
		if len(at.Row) > 0 {
			shifted := Place{at.Table + at.Row[:1], at.Row[1:]}
			if _, err := before.Open(shifted, blob); err == nil {
				t.Fatal("opened at a place with the same letters")
			}
		}
		changed := bytes.Clone(blob)
		changed[rapid.IntRange(0, len(blob)-1).Draw(t, "byte")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if _, err := before.Open(at, changed); err == nil {
			t.Fatal("a changed blob was opened")
		}
		cut := blob[:rapid.IntRange(0, len(blob)-1).Draw(t, "cut")]
		if _, err := before.Open(at, cut); err == nil {
			t.Fatal("a cut blob was opened")
		}
	})
}

func TestSecrets_GeneratedSecretSurvivesKeyRotation(t *testing.T) {
	oldKey := NewRingKey()
	before := NewSecrets(ringOf(t, oldKey))
	secret, stored := before.Generate(NewClientID())
	if stored.Algorithm != AlgorithmHMAC || bytes.Contains(stored.Form, []byte(secret)) {
		t.Fatal("stored form")
	}
	after := NewSecrets(ringOf(t, NewRingKey(), oldKey))
	for name, s := range map[string]*Secrets{"same": before, "rotated": after} {
		if good, err := s.Verify(t.Context(), stored, secret); !good || err != nil {
			t.Errorf("%s: %v %v", name, good, err)
		}
		for _, wrong := range []Secret{"", secret + "x", secret[:len(secret)-1], Secret(strings.ToUpper(string(secret)))} {
			if good, err := s.Verify(t.Context(), stored, wrong); good || err != nil {
				t.Errorf("%s: %v %v for a wrong secret", name, good, err)
			}
		}
	}
	if good, _ := NewSecrets(ringOf(t, NewRingKey())).Verify(t.Context(), stored, secret); good {
		t.Error("verified without the key")
	}
}

func TestSecrets_GeneratedSecretsAreLongAndPlain(t *testing.T) {
	s := NewSecrets(ringOf(t, NewRingKey()))
	seen := map[Secret]bool{}
	for range 100 {
		id := NewClientID()
		secret, _ := s.Generate(id)
		if clientIDOf(secret) != id || seen[secret] {
			t.Fatal("a generated secret does not hold its client id, or came twice")
		}
		seen[secret] = true
	}
	if secret, _ := s.Generate("chosen by somebody"); clientIDOf(secret) == "chosen by somebody" || strings.Contains(secret.Reveal(), " ") {
		t.Error("a client id with blanks went into a secret")
	}
}

func TestSecrets_ChosenSecretIsRememberedAfterAGoodCheck(t *testing.T) {
	s := NewSecrets(ringOf(t, NewRingKey()))
	const chosen = Secret("correct horse battery staple")
	stored, err := s.StoreChosen(t.Context(), chosen)
	if err != nil {
		t.Fatal(err)
	}
	if good, err := s.Verify(t.Context(), stored, "incorrect horse battery staple"); good || err != nil {
		t.Fatalf("%v %v", good, err)
	}
	if good, err := s.Verify(t.Context(), stored, chosen); !good || err != nil {
		t.Fatalf("%v %v", good, err)
	}
	// All slots taken: only what is remembered can be answered.
	for range argonAtOnceMax {
		s.slots <- struct{}{}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if good, err := s.Verify(ended, stored, chosen); !good || err != nil {
		t.Errorf("a remembered secret was hashed again: %v %v", good, err)
	}
	if _, err := s.Verify(ended, stored, "incorrect horse battery staple"); !fault.Is(err, fault.Busy) {
		t.Errorf("a wrong secret was remembered: %v", err)
	}
	other := stored
	other.Form = bytes.Clone(stored.Form)
	other.Form[len(other.Form)-1] ^= 1
	if _, err := s.Verify(ended, other, chosen); !fault.Is(err, fault.Busy) {
		t.Errorf("the memory does not know which stored secret it is about: %v", err)
	}
}

func TestSecrets_MemoryIsBounded(t *testing.T) {
	s := NewSecrets(ringOf(t, NewRingKey()))
	const chosen = Secret("correct horse battery staple")
	stored, err := s.StoreChosen(t.Context(), chosen)
	if err != nil {
		t.Fatal(err)
	}
	for i := range checkedSecretsMax {
		s.checked[[32]byte{byte(i), byte(i >> 8), 1}] = struct{}{}
	}
	if good, err := s.Verify(t.Context(), stored, chosen); !good || err != nil || len(s.checked) > checkedSecretsMax {
		t.Errorf("%v %v, %d entries", good, err, len(s.checked))
	}
}

func TestSecrets_ChosenSecretsNeedLength(t *testing.T) {
	s := NewSecrets(ringOf(t, NewRingKey()))
	for _, chosen := range []Secret{"", Secret(strings.Repeat("a", chosenSecretBytesMin-1)), Secret(strings.Repeat("a", secretBytesMax+1))} {
		if _, err := s.StoreChosen(t.Context(), chosen); !fault.Is(err, fault.BadRequest) {
			t.Errorf("%d characters: %v", len(chosen), err)
		}
	}
}

func TestSecrets_DamagedRowsAreNoSecrets(t *testing.T) {
	s := NewSecrets(ringOf(t, NewRingKey()))
	for _, stored := range []StoredSecret{
		{Algorithm: AlgorithmHMAC}, {Algorithm: AlgorithmHMAC, Form: make([]byte, 36)},
		{Algorithm: AlgorithmArgon2}, {Algorithm: AlgorithmArgon2, Form: make([]byte, 20)},
	} {
		if good, err := s.Verify(t.Context(), stored, ""); good || err != nil {
			t.Errorf("%s of %d bytes: %v %v", stored.Algorithm, len(stored.Form), good, err)
		}
	}
	huge := append([]byte{0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 1}, make([]byte, 48)...)
	if _, err := s.Verify(t.Context(), StoredSecret{Algorithm: AlgorithmArgon2, Form: huge}, "x"); !fault.Is(err, fault.Internal) {
		t.Errorf("4 TB of work: %v", err)
	}
	if _, err := s.Verify(t.Context(), StoredSecret{Algorithm: "md5"}, "x"); !fault.Is(err, fault.Internal) {
		t.Errorf("unknown algorithm: %v", err)
	}
}

// Whatever way a secret reaches a log or an error, it is stars.
func TestSecrets_PrintAsStars(t *testing.T) {
	ring := ringOf(t, NewRingKey())
	secret, stored := NewSecrets(ring).Generate(NewClientID())
	answer := TokenAnswer{AccessToken: "eyJ.secret.token"}
	var out bytes.Buffer
	log := slog.New(slog.NewJSONHandler(&out, nil))
	log.Info("x", "secret", secret, "stored", stored, "answer", answer, "ring", ring)
	fmt.Fprintf(&out, "%s %v %s %v %s %v %s", secret, secret, stored, stored, answer, answer, ring)
	text := out.String()
	for _, leak := range []string{secret.Reveal(), string(stored.Form), "eyJ.secret.token", base64.StdEncoding.EncodeToString(stored.Form)} {
		if strings.Contains(text, leak) {
			t.Errorf("%q is in %s", leak, text)
		}
	}
}

func BenchmarkArgon2(b *testing.B) {
	s := NewSecrets(ringOf(b, NewRingKey()))
	for b.Loop() {
		if err := s.Decoy(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
