package auth

import (
	"hash/maphash"
	"net/netip"
	"sync"
	"time"

	"catalogd/internal/fault"
	"catalogd/internal/lru"
)

// Limits of logins that fail. They slow whoever guesses: an address for one client id, and an address for all of them. No client id
// has a limit of its own, so nobody can lock another's principal out from elsewhere; and a right secret that can be told without
// work (a generated one, one that was found right before, an assertion) is always let in.
const (
	loginPairBurst     = 10 // wrong secrets at once, from one address for one client id
	loginPairEvery     = 10 * time.Second
	loginAddressBurst  = 50 // the same for all client ids together
	loginAddressEvery  = time.Second
	throttleEntriesMax = 8192 // addresses and pairs that are remembered; beyond, those that were quiet for the longest are forgiven
	loginNetworkBits6  = 64   // who has one IPv6 address has 2^64
)

// SlowedError tells a client that has sent too many wrong secrets when to come again. It is no refusal: clients take those as final.
type SlowedError struct {
	meaning *fault.Error
	after   time.Duration
}

// Error gives the message.
func (e *SlowedError) Error() string { return e.meaning.Error() }

// Unwrap gives the fault that it is.
func (e *SlowedError) Unwrap() error { return e.meaning }

// RetryAfter is how long to wait, in whole seconds.
func (e *SlowedError) RetryAfter() time.Duration { return e.after }

func slowed(after time.Duration) *SlowedError {
	seconds := (after + time.Second - 1) / time.Second
	return &SlowedError{
		meaning: fault.New(fault.RateLimited, "too many wrong secrets came from this address; try again in %d seconds", seconds),
		after:   seconds * time.Second,
	}
}

// throttle counts wrong secrets.
type throttle struct {
	seed maphash.Seed

	mu      sync.Mutex
	buckets *lru.Cache[throttleKey, *bucket]
	refused uint64 // all of them, since the start
}

// throttleKey is an address's, with a client id or for all of them. The id is hashed: it is as long and as odd as somebody likes.
type throttleKey struct {
	address netip.Addr
	client  uint64
	all     bool
}

// bucket is full again at a time, and drips until then.
type bucket struct{ fullAt time.Time }

func newThrottle() *throttle {
	return &throttle{seed: maphash.MakeSeed(), buckets: lru.New[throttleKey, *bucket](throttleEntriesMax)}
}

func (t *throttle) keys(address netip.Addr, clientID string) (all, pair throttleKey) {
	address = address.Unmap().WithZone("")
	if address.Is6() {
		if network, err := address.Prefix(loginNetworkBits6); err == nil {
			address = network.Addr()
		}
	}
	return throttleKey{address: address, all: true}, throttleKey{address: address, client: maphash.String(t.seed, clientID)}
}

// take counts a login that needs work, before the work: many at once do not slip through together. With a wait it was not counted
// and is not to be looked at.
func (t *throttle) take(now time.Time, address netip.Addr, clientID string) (wait time.Duration) {
	all, pair := t.keys(address, clientID)
	t.mu.Lock()
	defer t.mu.Unlock()
	wait = max(t.waitOf(all, now, loginAddressBurst, loginAddressEvery), t.waitOf(pair, now, loginPairBurst, loginPairEvery))
	if wait == 0 {
		t.fill(all, now, loginAddressEvery)
		t.fill(pair, now, loginPairEvery)
	}
	return wait
}

func (t *throttle) waitOf(key throttleKey, now time.Time, burst int, every time.Duration) time.Duration {
	b, ok := t.buckets.Find(key)
	if !ok {
		return 0
	}
	return max(0, b.fullAt.Sub(now)-time.Duration(burst-1)*every)
}

// forgive takes back what take counted: the secret was right, or nobody could tell.
func (t *throttle) forgive(address netip.Addr, clientID string) {
	all, pair := t.keys(address, clientID)
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, every := range map[throttleKey]time.Duration{all: loginAddressEvery, pair: loginPairEvery} {
		if b, ok := t.buckets.Find(key); ok {
			b.fullAt = b.fullAt.Add(-every)
		}
	}
}

// denied counts a refused login.
func (t *throttle) denied() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refused++
}

func (t *throttle) fill(key throttleKey, now time.Time, every time.Duration) *bucket {
	b, ok := t.buckets.Find(key)
	if !ok {
		b = &bucket{}
		t.buckets.Put(key, b, 1)
	}
	if b.fullAt.Before(now) {
		b.fullAt = now
	}
	b.fullAt = b.fullAt.Add(every)
	return b
}
