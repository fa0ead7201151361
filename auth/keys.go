package auth

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"catalogd/internal/fault"
)

// Limits of signing keys.
const (
	keyReadIntervalMin = time.Second // between reads that an unknown key id causes
	keyAgeMax          = time.Minute // after which signing and checking read the keys again
	keyReadMax         = 5 * time.Second
	// keyAnnouncedFor is how long a new key is known before it signs. Whoever checks tokens reads the keys each keyAgeMax, so
	// by then all know it, and none has to refuse a token because it read the keys only a moment ago.
	keyAnnouncedFor = 2*keyAgeMax + clockSkewMax
	keysTable       = "signing_keys"

	// KeyRotationMin bounds the setting of automatic rotation: a key signs for longer than it takes to announce the next one.
	KeyRotationMin = time.Hour
)

// Keys holds the keys that tokens are signed with. They live in the database, the private halves encrypted, so that
// every server knows all of them; each reads them at first use, when it meets a key id that it does not know, and each minute.
type Keys struct {
	// Algorithm is what new keys are for, AlgorithmEdDSA or AlgorithmRS256; "" means the first. Set before the first use.
	Algorithm string
	// RotateAfter is the age at which a signing key is succeeded by another by itself; 0: never. Set before the first use.
	RotateAfter time.Duration
	// Log is told of automatic rotations; nil: slog.Default. Set before the first use.
	Log *slog.Logger

	store KeyStore
	ring  *Ring
	now   func() time.Time

	set atomic.Pointer[keySet]

	mu      sync.Mutex // held while reading
	tried   time.Time
	problem error
}

// keySet is what was read at one time.
type keySet struct {
	keys   map[string]*signingKey // by id; of the algorithms that this version has
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

func (k *Keys) algorithm() string {
	if k.Algorithm == "" {
		return AlgorithmEdDSA
	}
	return k.Algorithm
}

// sign signs with the key whose turn it is, and makes one where there is none.
func (k *Keys) sign(ctx context.Context, c jwt.Claims) (string, error) {
	set, err := k.current(ctx)
	if err != nil {
		return "", err
	}
	key := set.signer(k.algorithm(), k.now())
	if key == nil || key.stored.Algorithm != k.algorithm() && !set.announces(k.algorithm()) {
		fresh, err := k.create(ctx, key != nil)
		if err != nil && key == nil {
			return "", err
		}
		if err == nil {
			if key = fresh.signer(k.algorithm(), k.now()); key == nil {
				return "", fault.New(fault.Internal, "there is no active signing key")
			}
		}
	}
	private, err := key.private(k.ring)
	if err != nil {
		return "", err
	}
	token := jwt.NewWithClaims(key.method, c)
	token.Header["kid"] = key.stored.KID
	token.Header["typ"] = tokenType
	signed, err := token.SignedString(private)
	if err != nil {
		return "", fault.Wrap(fault.Internal, err, "sign token")
	}
	return signed, nil
}

// current gives the keys for signing: not older than a minute, unless they cannot be read. Whoever reads them looks whether the
// signing key has had its time.
func (k *Keys) current(ctx context.Context) (*keySet, error) {
	set := k.set.Load()
	if set != nil && k.now().Sub(set.readAt) <= keyAgeMax {
		return set, nil
	}
	fresh, err := k.read(ctx)
	if err != nil {
		if set != nil {
			return set, nil
		}
		return nil, err
	}
	return k.succeed(ctx, fresh), nil
}

// succeed announces the successor of a signing key that has reached its age. A failure is for the log: the old key is still good.
func (k *Keys) succeed(ctx context.Context, set *keySet) *keySet {
	key := set.signer(k.algorithm(), k.now())
	if k.RotateAfter <= 0 || key == nil || k.now().Sub(key.stored.signsFrom()) < k.RotateAfter || set.announces(k.algorithm()) {
		return set
	}
	log := k.Log
	if log == nil {
		log = slog.Default()
	}
	next, err := k.NextKey(false)
	var stored []StoredKey
	if err == nil {
		stored, err = k.store.SucceedSigningKey(ctx, key.stored.KID, next)
	}
	if err != nil {
		log.Error("the signing key has reached its age and could not be succeeded", "key", key.stored.KID, "cause", err)
		return set
	}
	log.Info("the signing key has reached its age; its successor is announced", "key", key.stored.KID, "signs_from", next.SignsFrom)
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.keep(stored)
}

// NextKey makes a key that is to sign after those before it, and keeps it nowhere: from once all servers know it, or at once.
func (k *Keys) NextKey(atOnce bool) (StoredKey, error) {
	key, err := generateKey(k.algorithm(), k.ring)
	key.CreatedAt = k.now().UTC().Truncate(time.Microsecond)
	if key.SignsFrom = key.CreatedAt; !atOnce {
		key.SignsFrom = key.CreatedAt.Add(keyAnnouncedFor)
	}
	return key, err
}

// find gives the key of a key id. An unknown id makes it read the keys, at most once a second however many forged ids come in.
func (k *Keys) find(ctx context.Context, kid string) (*signingKey, error) {
	if key, ok := k.set.Load().find(kid, k.now()); ok {
		return key, nil
	}
	set, err := k.readSeldom(ctx)
	if err != nil {
		return nil, err
	}
	if key, ok := set.find(kid, k.now()); ok {
		return key, nil
	}
	return nil, fault.New(fault.Unauthenticated, "the token was signed with a key that this server does not have")
}

// has tells whether tokens of a key id are still good, by what was read last.
func (k *Keys) has(kid string) bool {
	_, ok := k.set.Load().find(kid, k.now())
	return ok
}

// refresh reads the keys when those that are known are old, so that a server which only checks tokens learns of new keys before they
// sign and of those that are gone. One request at a time does it; nobody waits for it, and a failure changes nothing.
func (k *Keys) refresh(ctx context.Context) {
	set := k.set.Load()
	if set == nil || k.now().Sub(set.readAt) <= keyAgeMax || !k.mu.TryLock() {
		return
	}
	defer k.mu.Unlock()
	if k.now().Sub(k.tried) >= keyReadIntervalMin {
		_, _ = k.readLocked(ctx)
	}
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
	return k.keep(stored), nil
}

// Adopt takes what somebody else has just read or written of the stored keys.
func (k *Keys) Adopt(stored []StoredKey) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keep(stored)
}

func (k *Keys) keep(stored []StoredKey) *keySet {
	before := k.set.Load()
	set := &keySet{keys: make(map[string]*signingKey, len(stored)), stored: stored, readAt: k.now()}
	for _, key := range stored {
		// A key of an algorithm that this version does not have is another version's business.
		if usable, ok := readSigningKey(key, before); ok {
			set.keys[key.KID] = usable
		}
	}
	k.problem = nil
	k.set.Store(set)
	return set
}

// create makes the first key of an algorithm, to sign at once unless another can meanwhile. When two servers do it at once, the
// database keeps one and both use it.
func (k *Keys) create(ctx context.Context, announce bool) (*keySet, error) {
	key, err := k.NextKey(!announce)
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	stored, err := k.store.AddSigningKey(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("add signing key: %w", err)
	}
	return k.keep(stored), nil
}

// find gives a key that checks tokens: until the last token that it can have signed has ended.
func (s *keySet) find(kid string, now time.Time) (*signingKey, bool) {
	if s == nil {
		return nil, false
	}
	key, ok := s.keys[kid]
	return key, ok && now.Before(key.stored.VerifiesUntil())
}

// signer gives the key to sign with: the newest that is no longer announced only and not yet retired, of the wanted algorithm if
// there is one; nil: none.
func (s *keySet) signer(algorithm string, now time.Time) *signingKey {
	var best *signingKey
	for _, stored := range s.stored {
		key, usable := s.keys[stored.KID]
		if !usable || now.Before(stored.signsFrom()) || !stored.RetiredAt.IsZero() && !now.Before(stored.RetiredAt) {
			continue
		}
		if best == nil || key.before(best, algorithm) {
			best = key
		}
	}
	return best
}

// before tells whether k signs rather than other.
func (k *signingKey) before(other *signingKey, algorithm string) bool {
	a, b := k.stored, other.stored
	if (a.Algorithm == algorithm) != (b.Algorithm == algorithm) {
		return a.Algorithm == algorithm
	}
	if !a.signsFrom().Equal(b.signsFrom()) {
		return a.signsFrom().After(b.signsFrom())
	}
	return a.KID > b.KID
}

// announces tells whether there is a key of the algorithm that is not to be retired; one that signs already has no
// successor then if it is to be retired itself.
func (s *keySet) announces(algorithm string) bool {
	for _, stored := range s.stored {
		if _, usable := s.keys[stored.KID]; usable && stored.Algorithm == algorithm && stored.RetiredAt.IsZero() && stored.signsFrom().After(s.readAt) {
			return true
		}
	}
	return false
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
	for _, stored := range set.stored {
		if key, ok := set.find(stored.KID, k.now()); ok {
			document.Keys = append(document.Keys, key.jwk())
		}
	}
	return document, nil
}
