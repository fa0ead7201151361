package external

import (
	"context"
	"crypto/rsa"
	"encoding/json"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"

	"catalogd/internal/fault"
)

// Limits of a provider's keys.
const (
	keysMax         = 100
	rsaBitsMin      = 2048
	refetchPauseMin = time.Minute      // between reads that unknown key ids cause
	keysAgeMax      = 10 * time.Minute // after which they are read again, so that keys that were withdrawn end
	retryPauseMin   = time.Second      // after a failure, doubled up to refetchPauseMin
	waitersMax      = 16               // requests that wait for one read; more are sent away
)

// keys are a provider's keys as they were read last.
type keys struct {
	config *compiled
	client *http.Client
	now    func() time.Time

	set     atomic.Pointer[keySet]
	problem atomic.Pointer[error] // of the last read
	waiting atomic.Int32

	mu      sync.Mutex // held while reading
	address string     // where the keys are; "" before discovery
	tried   time.Time
}

// keySet never changes.
type keySet struct {
	keys   []jose.JSONWebKey
	prints map[string]bool // thumbprints
}

func newKeySet(usable []jose.JSONWebKey) *keySet {
	set := &keySet{keys: usable, prints: make(map[string]bool, len(usable))}
	for _, key := range usable {
		set.prints[thumbprintOf(key)] = true
	}
	return set
}

func newKeys(c *compiled, now func() time.Time) (*keys, error) {
	k := &keys{config: c, client: newClient(c), now: now, address: c.KeysURL}
	if len(c.KeySet) == 0 {
		return k, nil
	}
	set, err := parseKeys(c.KeySet)
	if err != nil {
		return nil, fault.Wrap(fault.IllegalArgument, err, "issuer %s: jwks: %s", c.URL, fault.Message(err))
	}
	k.set.Store(newKeySet(set))
	return k, nil
}

// isStatic tells that the keys were given and are never read.
func (k *keys) isStatic() bool { return len(k.config.KeySet) > 0 }

// find gives the keys that may have signed a token of the key id and algorithm. An id that is not known makes it read the
// keys once a minute at most, whatever comes in. fault.Busy when they cannot be read: that is nothing a token is to blame for.
func (k *keys) find(ctx context.Context, kid, algorithm string) ([]jose.JSONWebKey, error) {
	if found := k.set.Load().matching(kid, algorithm); len(found) > 0 {
		return found, nil
	}
	if !k.isStatic() {
		if err := k.readSeldom(ctx); err != nil {
			return nil, err
		}
	}
	if found := k.set.Load().matching(kid, algorithm); len(found) > 0 {
		return found, nil
	}
	return nil, fault.New(fault.Unauthenticated, "the token was signed with a key that %s does not have", k.config.URL)
}

// has tells whether a key is still in the set.
func (k *keys) has(thumbprint string) bool {
	set := k.set.Load()
	return set != nil && set.prints[thumbprint]
}

func (s *keySet) matching(kid, algorithm string) []jose.JSONWebKey {
	if s == nil {
		return nil
	}
	var found []jose.JSONWebKey
	for _, key := range s.keys {
		if (kid == "" || key.KeyID == kid) && (key.Algorithm == "" || key.Algorithm == algorithm) {
			found = append(found, key)
		}
	}
	return found
}

// readSeldom reads the keys unless that was tried within the last minute. Who comes meanwhile waits for it, a few at a time.
func (k *keys) readSeldom(ctx context.Context) error {
	if k.waiting.Add(1) > waitersMax {
		k.waiting.Add(-1)
		return fault.New(fault.Busy, "the keys of %s are being read", k.config.URL)
	}
	defer k.waiting.Add(-1)
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.tried.IsZero() && k.now().Sub(k.tried) < refetchPauseMin {
		return k.lastProblem()
	}
	return k.readLocked(ctx)
}

// read reads the keys now.
func (k *keys) read(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.readLocked(ctx)
}

func (k *keys) readLocked(ctx context.Context) error {
	k.tried = k.now()
	// Others wait for this too, so that the caller who began it cannot end it by going away.
	set, err := k.fetch(context.WithoutCancel(ctx))
	if err != nil {
		err = fault.Wrap(fault.Busy, err, "the keys of issuer %s cannot be read: %s", k.config.URL, fault.Message(err))
		k.problem.Store(&err)
		return err
	}
	k.set.Store(newKeySet(set))
	k.problem.Store(nil)
	return nil
}

func (k *keys) lastProblem() error {
	if p := k.problem.Load(); p != nil {
		return *p
	}
	return nil
}

func (k *keys) fetch(ctx context.Context) ([]jose.JSONWebKey, error) {
	if k.address == "" {
		address, err := discover(ctx, k.client, k.config)
		if err != nil {
			return nil, err
		}
		k.address = address
	}
	var document json.RawMessage
	err := fetchJSON(ctx, k.client, k.address, &document)
	if err == nil {
		var set []jose.JSONWebKey
		if set, err = parseKeys(document); err == nil {
			return set, nil
		}
		err = fault.Wrap(fault.Busy, err, "GET %s: %s", k.address, fault.Message(err))
	}
	k.address = k.config.KeysURL // perhaps they have moved: ask again where they are
	return nil, err
}

// parseKeys reads a JWKS. Keys that cannot have signed a token that we accept are left out, so that one of a new kind does
// not make the others useless.
func parseKeys(document []byte) ([]jose.JSONWebKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(document, &set); err != nil || set.Keys == nil {
		return nil, fault.New(fault.IllegalArgument, "this is no JSON Web Key Set: %s", shown(document))
	}
	if len(set.Keys) > keysMax {
		return nil, fault.New(fault.IllegalArgument, "there are %d keys; at most %d are read", len(set.Keys), keysMax)
	}
	var usable []jose.JSONWebKey
	for _, raw := range set.Keys {
		var key jose.JSONWebKey
		if key.UnmarshalJSON(raw) != nil || !key.IsPublic() || !key.Valid() || key.Use == "enc" {
			continue
		}
		if public, isRSA := key.Key.(*rsa.PublicKey); isRSA && public.N.BitLen() < rsaBitsMin {
			continue
		}
		usable = append(usable, key)
	}
	if len(usable) == 0 {
		return nil, fault.New(fault.IllegalArgument, "none of %d keys is a public one that checks signatures", len(set.Keys))
	}
	return usable, nil
}

// pause says how long until the keys are to be read again, after so many failures.
func (k *keys) pause(failures int) time.Duration {
	if failures == 0 {
		return keysAgeMax
	}
	return min(retryPauseMin<<min(failures-1, 10), refetchPauseMin)
}
