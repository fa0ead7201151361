package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"log/slog"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/argon2"

	"catalogd/internal/fault"
)

// The algorithms of stored secrets.
const (
	AlgorithmHMAC   = "hmac-sha256" // secrets that Generate made: nothing to guess, so one cheap round is enough
	AlgorithmArgon2 = "argon2id"    // secrets that somebody chose
)

// Limits of secrets.
const (
	chosenSecretBytesMin = 24
	secretBytesMax       = 1024
	clientIDBytesMax     = 128
	secretRandomBytes    = 32
	clientIDRandomBytes  = 8

	// Cost of one argon2id round: OWASP's floor, about 20 ms of one core.
	argonTime      = 2
	argonMemoryKiB = 19 * 1024
	argonThreads   = 1
	argonSaltBytes = 16
	argonKeyBytes  = 32

	argonAtOnceMax    = 2               // rounds at a time: bounds memory and leaves cores to others
	argonWaitMax      = 3 * time.Second // then the answer is fault.Busy
	checkedSecretsMax = 1024            // chosen secrets remembered after a good check
)

// Secret is a client secret in the clear. It prints as stars; Reveal is for the one answer that shows it.
type Secret string

// Reveal gives the text.
func (s Secret) Reveal() string { return string(s) }

// String hides the text.
func (Secret) String() string { return "***" }

// LogValue hides the text.
func (Secret) LogValue() slog.Value { return slog.StringValue("***") }

// NewClientID makes a client id of 16 hexadecimal digits.
func NewClientID() string {
	raw := make([]byte, clientIDRandomBytes)
	_, _ = rand.Read(raw)
	return hex.EncodeToString(raw)
}

// Generated secrets are cs_<client id>_<256 random bits>: they hold their client id, so that a credential without a
// colon, as some clients send it, still tells whose it is. Only letters, digits, - and _: no client encodes those.
var generatedSecret = regexp.MustCompile(`^cs_([0-9a-f]{16})_[A-Za-z0-9_-]{43}$`)

var generatedClientID = regexp.MustCompile(`^[0-9a-f]{16}$`)

// newSecret makes a secret for the client id; one that somebody chose is left out of it.
func newSecret(clientID string) Secret {
	raw := make([]byte, secretRandomBytes)
	_, _ = rand.Read(raw)
	owner := clientID
	if !generatedClientID.MatchString(owner) {
		owner = "0000000000000000"
	}
	return Secret("cs_" + owner + "_" + base64.RawURLEncoding.EncodeToString(raw))
}

// clientIDOf gives the client id that a generated secret holds; "" for other texts.
func clientIDOf(s Secret) string {
	if m := generatedSecret.FindStringSubmatch(string(s)); m != nil {
		return m[1]
	}
	return ""
}

// Secrets makes and checks client secrets.
type Secrets struct {
	ring  *Ring
	slots chan struct{}
	// rounds counts argon2id rounds: the work that refusals do.
	rounds atomic.Uint64

	mu      sync.Mutex
	checked map[[sha256.Size]byte]struct{}
}

// NewSecrets makes Secrets over the server's ring.
func NewSecrets(ring *Ring) *Secrets {
	return &Secrets{
		ring: ring, slots: make(chan struct{}, argonAtOnceMax), checked: make(map[[sha256.Size]byte]struct{}),
	}
}

// Generate makes a secret of 256 random bits and its stored form.
func (s *Secrets) Generate(clientID string) (Secret, StoredSecret) {
	secret := newSecret(clientID)
	return secret, s.stored(secret)
}

// stored gives the stored form of a secret of 256 random bits.
func (s *Secrets) stored(secret Secret) StoredSecret {
	key := s.ring.keys[0]
	form := append(append([]byte(nil), key.id...), key.sum([]byte(secret))...)
	return StoredSecret{Algorithm: AlgorithmHMAC, Form: form}
}

// StoreChosen gives the stored form of a secret that somebody chose: fault.BadRequest when it is too short to be
// safe, fault.Busy when the server cannot hash it now.
func (s *Secrets) StoreChosen(ctx context.Context, secret Secret) (StoredSecret, error) {
	if len(secret) < chosenSecretBytesMin || len(secret) > secretBytesMax {
		return StoredSecret{}, fault.New(fault.BadRequest,
			"a chosen secret must have %d to %d characters", chosenSecretBytesMin, secretBytesMax)
	}
	salt := make([]byte, argonSaltBytes)
	_, _ = rand.Read(salt)
	head := binary.BigEndian.AppendUint32(nil, argonTime)
	head = binary.BigEndian.AppendUint32(head, argonMemoryKiB)
	head = append(head, argonThreads)
	digest, err := s.argon(ctx, secret, salt, head)
	if err != nil {
		return StoredSecret{}, err
	}
	return StoredSecret{Algorithm: AlgorithmArgon2, Form: append(append(head, salt...), digest...)}, nil
}

// knows tells whether secret is the stored one, as far as that can be told at once: an argon2id secret is only known when it was
// found right before.
func (s *Secrets) knows(stored StoredSecret, secret Secret) bool {
	switch {
	case len(secret) > secretBytesMax:
		return false
	case stored.Algorithm == AlgorithmHMAC:
		return s.verifyHMAC(stored.Form, secret)
	case stored.Algorithm == AlgorithmArgon2:
		return s.checkedBefore(s.entry(stored.Form, secret))
	}
	return false
}

// Verify tells whether secret is the stored one, in time that does not depend on how much of it is right.
func (s *Secrets) Verify(ctx context.Context, stored StoredSecret, secret Secret) (bool, error) {
	if len(secret) > secretBytesMax {
		return false, nil
	}
	switch stored.Algorithm {
	case AlgorithmHMAC:
		return s.verifyHMAC(stored.Form, secret), nil
	case AlgorithmArgon2:
		return s.verifyArgon(ctx, stored.Form, secret)
	}
	return false, fault.New(fault.Internal, "a stored secret has the algorithm %q, which this version does not know", stored.Algorithm)
}

func (s *Secrets) verifyHMAC(form []byte, secret Secret) bool {
	if len(form) != ringIDBytes+sha256.Size && len(form) != ringIDBytes+sha256.Size+fingerprintBytes {
		return false
	}
	key, ok := s.ring.key(form[:ringIDBytes])
	return ok && subtle.ConstantTimeCompare(key.sum([]byte(secret)), form[ringIDBytes:ringIDBytes+sha256.Size]) == 1
}

const argonHeadBytes = 9

func (s *Secrets) verifyArgon(ctx context.Context, form []byte, secret Secret) (bool, error) {
	if len(form) != argonHeadBytes+argonSaltBytes+argonKeyBytes {
		return false, nil
	}
	// The whole stored form is in the cache's key: a rotated secret is another entry.
	entry := s.entry(form, secret)
	if s.checkedBefore(entry) {
		return true, nil
	}
	head, salt, want := form[:argonHeadBytes], form[argonHeadBytes:argonHeadBytes+argonSaltBytes], form[argonHeadBytes+argonSaltBytes:]
	digest, err := s.argon(ctx, secret, salt, head)
	if err != nil || subtle.ConstantTimeCompare(digest, want) != 1 {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.checked) >= checkedSecretsMax {
		clear(s.checked)
	}
	s.checked[entry] = struct{}{}
	return true, nil
}

func (s *Secrets) entry(form []byte, secret Secret) [sha256.Size]byte {
	return [sha256.Size]byte(s.ring.keys[0].sum(form, []byte(secret)))
}

func (s *Secrets) checkedBefore(entry [sha256.Size]byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, good := s.checked[entry]
	return good
}

// Decoy does the work of checking a chosen secret. Refusals of everything cheaper do it too, so that their time does
// not tell which client ids exist, and guessing is slow everywhere.
func (s *Secrets) Decoy(ctx context.Context) error {
	head := binary.BigEndian.AppendUint32(nil, argonTime)
	head = append(binary.BigEndian.AppendUint32(head, argonMemoryKiB), argonThreads)
	_, err := s.argon(ctx, "decoy", make([]byte, argonSaltBytes), head)
	return err
}

func (s *Secrets) argon(ctx context.Context, secret Secret, salt, head []byte) ([]byte, error) {
	rounds, memoryKiB, threads := binary.BigEndian.Uint32(head), binary.BigEndian.Uint32(head[4:]), head[8]
	if rounds == 0 || rounds > 16 || memoryKiB > 1<<20 || threads == 0 || threads > 16 {
		return nil, fault.New(fault.Internal, "a stored secret asks for more work than this version does")
	}
	wait := time.NewTimer(argonWaitMax)
	defer wait.Stop()
	select {
	case s.slots <- struct{}{}:
	case <-wait.C:
		return nil, fault.New(fault.Busy, "too many secrets are being checked; try again in a moment")
	case <-ctx.Done():
		return nil, fault.Wrap(fault.Busy, ctx.Err(), "the request ended before its secret was checked")
	}
	defer func() { <-s.slots }()
	s.rounds.Add(1)
	return argon2.IDKey([]byte(secret), salt, rounds, memoryKiB, threads, argonKeyBytes), nil
}

// Mark tells a stored secret from those before and after it, in the tokens that it obtained: a refresh and a rotation
// find out that it was replaced meanwhile. It is no secret, and stays when the form is renewed.
func (s StoredSecret) Mark() string {
	return base64.RawURLEncoding.EncodeToString(s.fingerprintBytes())
}
