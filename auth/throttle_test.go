package auth

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"catalogd/internal/fault"
)

var (
	attacker = netip.MustParseAddr("203.0.113.9")
	office   = netip.MustParseAddr("198.51.100.1")
)

func (b *bench) guess(from netip.Addr, id, secret string) error {
	_, err := b.tokens.Issue(context.Background(), TokenRequest{Address: from, RequestID: "r", Form: form("grant_type", "client_credentials", "client_id", id, "client_secret", secret)})
	return err
}

func wantSlowed(t *testing.T, err error) time.Duration {
	t.Helper()
	var s *SlowedError
	if !errors.As(err, &s) || !fault.Is(err, fault.RateLimited) || s.RetryAfter() < time.Second {
		t.Fatalf("got %v, want to be slowed", err)
	}
	return s.RetryAfter()
}

// Guessing from one address is slowed, for one client id and for all together; the right secret is let in at once from everywhere, the
// attacker's own address among them, and so is a chosen one from elsewhere.
func TestThrottle_SlowsWhoGuessesAndNobodyElse(t *testing.T) {
	b := newBench(t)
	victim, secret := b.account("etl")
	other, _ := b.account("other")
	chosen, _ := b.account("chosen")
	var err error
	if chosen.Secret, err = b.secrets.StoreChosen(t.Context(), "a chosen secret of thirty letters"); err != nil {
		t.Fatal(err)
	}
	b.store.accounts[chosen.ID] = chosen
	for range loginPairBurst {
		wantRefused(t, b.guess(attacker, victim.ClientID, "wrong"), codeInvalidClient, 401)
	}
	rounds := b.secrets.rounds.Load()
	wait := wantSlowed(t, b.guess(attacker, victim.ClientID, "wrong"))
	if b.secrets.rounds.Load() != rounds || wait > loginPairEvery {
		t.Errorf("a slowed guess costs %d rounds, and waits %s", b.secrets.rounds.Load()-rounds, wait)
	}
	for _, from := range []netip.Addr{office, attacker} {
		if err := b.guess(from, victim.ClientID, secret.Reveal()); err != nil {
			t.Errorf("the right secret from %s: %v", from, err)
		}
	}
	wantRefused(t, b.guess(attacker, other.ClientID, "wrong"), codeInvalidClient, 401) // the address has not used up all of its own
	wantSlowed(t, b.guess(attacker, victim.ClientID, "wrong"))                         // being slowed does not make it worse, or better
	b.now = b.now.Add(wait)
	wantRefused(t, b.guess(attacker, victim.ClientID, "wrong"), codeInvalidClient, 401)
	wantSlowed(t, b.guess(attacker, victim.ClientID, "wrong"))
	// Another id each time: the address as a whole.
	var slowedAt int
	for i := range 2 * loginAddressBurst {
		if err := b.guess(attacker, fmt.Sprint("nobody", i), "wrong"); fault.Is(err, fault.RateLimited) {
			slowedAt = i
			break
		}
	}
	if slowedAt == 0 || slowedAt > loginAddressBurst {
		t.Errorf("slowed after %d ids", slowedAt)
	}
	wantSlowed(t, b.guess(attacker, chosen.ClientID, "a chosen secret of thirty letters"))
	if err := b.guess(office, chosen.ClientID, "a chosen secret of thirty letters"); err != nil {
		t.Errorf("a chosen secret from elsewhere: %v", err)
	}
	if err := b.guess(attacker, chosen.ClientID, "a chosen secret of thirty letters"); err != nil {
		t.Errorf("a chosen secret that was right before: %v", err)
	}
}

// A good login with a chosen secret costs nothing of what an address has.
func TestThrottle_GoodLoginsAreNotCounted(t *testing.T) {
	b := newBench(t)
	for range 2 * loginPairBurst {
		if wait := b.tokens.throttle.take(b.now, office, "id"); wait > 0 {
			t.Fatal("a good login counts")
		}
		b.tokens.throttle.forgive(office, "id")
	}
	network := netip.MustParseAddr("2001:db8::1")
	for i := range loginPairBurst {
		b.tokens.throttle.take(b.now, netip.MustParseAddr(fmt.Sprintf("2001:db8::%d", i+2)), "id")
	}
	if b.tokens.throttle.take(b.now, network, "id") == 0 {
		t.Error("each address of a network of IPv6 counts for itself")
	}
	if b.tokens.throttle.take(b.now, netip.MustParseAddr("2001:db8:1::1"), "id") > 0 {
		t.Error("another network is slowed")
	}
}

func TestThrottle_MemoryIsBounded(t *testing.T) {
	throttle := newThrottle()
	now := time.Unix(1_800_000_000, 0)
	for i := range 3 * throttleEntriesMax {
		address := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		throttle.take(now, address, strings.Repeat("x", 100)+fmt.Sprint(i))
		throttle.denied()
	}
	if n := throttle.buckets.Len(); n > throttleEntriesMax {
		t.Errorf("%d entries", n)
	}
}

// Each refused login is told to the audit, which counts what is too many; also one whose credentials were right.
func TestThrottle_DenialsAreTold(t *testing.T) {
	b := newBench(t)
	a, secret := b.account("etl")
	for range 25 {
		_ = b.guess(attacker, a.ClientID, "wrong")
	}
	_ = b.guess(attacker, "nobody-or-a-secret", "wrong")
	if len(b.denials) != 26 || b.denials[0].Principal != "etl" || b.denials[0].Address != attacker || b.denials[0].RequestID != "r" || b.denials[25].Principal != "" {
		t.Fatalf("%+v", b.denials)
	}
	b.store.states[a.ID] = CallerState{Network: NetworkPolicy{Blocked: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}}}
	wantRefused(t, b.guess(attacker, a.ClientID, secret.Reveal()), codeInvalidClient, 401)
	if last := b.denials[len(b.denials)-1]; len(b.denials) != 27 || last.Principal != "etl" || !strings.Contains(last.Reason, "network policy") {
		t.Errorf("%+v", last)
	}
	if n := b.tokens.DeniedLogins(); n != 27 {
		t.Errorf("%d denied", n)
	}
	for _, d := range b.denials {
		if strings.Contains(fmt.Sprint(d), "wrong-secret") || strings.Contains(fmt.Sprint(d), "nobody-or") {
			t.Errorf("%+v tells what was sent", d)
		}
	}
}

func TestAssertion_DoubledMembersBehindSpaces(t *testing.T) {
	part := base64.RawURLEncoding.EncodeToString([]byte(" \n{\"iss\":\"a\",\"ISS\":\"b\"}"))
	if !doubledMembers(part) {
		t.Error("a doubled member was not seen")
	}
}

// Whether a client exists, has a secret that the server made or one that somebody chose, is the server's own, or shows a key: refusals do the
// same work. Clocks tell nothing here; look-ups and rounds do.
func TestClient_RefusalsDoTheSameWork(t *testing.T) {
	b := newBench(t)
	made, _ := b.account("made")
	chosen, _ := b.account("chosen")
	system, systemSecret := b.account("system")
	system.Kind = System
	b.store.accounts[system.ID] = system
	var err error
	if chosen.Secret, err = b.secrets.StoreChosen(t.Context(), "a chosen secret of thirty letters"); err != nil {
		t.Fatal(err)
	}
	b.store.accounts[chosen.ID] = chosen
	type work struct {
		finds  int
		rounds uint64
	}
	measure := func(r TokenRequest) (work, string) {
		finds, rounds := b.store.finds, b.secrets.rounds.Load()
		_, err := b.tokens.Issue(t.Context(), r)
		wantRefused(t, err, codeInvalidClient, 401)
		return work{b.store.finds - finds, b.secrets.rounds.Load() - rounds}, err.Error()
	}
	byForm := func(id, secret string) TokenRequest {
		return TokenRequest{Form: form("grant_type", "client_credentials", "client_id", id, "client_secret", secret)}
	}
	byBasic := func(id, secret string) TokenRequest { // two readings: as it is, and decoded
		return TokenRequest{Form: form("grant_type", "client_credentials"), Authorization: basic(id + ":" + secret + "%41")}
	}
	for kind, request := range map[string]func(id, secret string) TokenRequest{"form": byForm, "Basic": byBasic} {
		want, text := measure(request("nobody", "wrong"))
		if want.rounds == 0 || want.finds == 0 {
			t.Fatalf("%s: %+v", kind, want)
		}
		for _, c := range []struct{ id, secret string }{{made.ClientID, "wrong"}, {chosen.ClientID, "wrong"}, {system.ClientID, systemSecret.Reveal()}} {
			if got, message := measure(request(c.id, c.secret)); got != want || message != text {
				t.Errorf("%s of %s: %+v %q, want %+v %q", kind, c.id, got, message, want, text)
			}
		}
	}
	b.register(t, made, AlgorithmEdDSA)
	want, text := measure(asserting(b.sign(t, Account{ClientID: "nobody"}, AlgorithmES256, nil)))
	for _, a := range []Account{made, chosen, system} {
		if got, message := measure(asserting(b.sign(t, a, AlgorithmES256, nil))); got != want || message != text {
			t.Errorf("assertion of %s: %+v %q, want %+v %q", a.Name, got, message, want, text)
		}
	}
}
