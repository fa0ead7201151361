package auth

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"catalogd/internal/fault"
)

func networks(texts ...string) (all []netip.Prefix) {
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// Each sentence about when a token counts, by the one thing that differs from a good caller.
func TestCallerState_Admit(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	pat := uuid.New()
	live := LiveToken{
		ID: pat, SecretMark: "pat", PreviousMark: "old pat", PreviousUntil: now.Add(time.Minute), ExpiresAt: now.Add(time.Hour),
		Networks: networks("10.0.0.0/8"),
	}
	for _, c := range []struct {
		name   string
		change func(s *CallerState, p *Principal)
		reason string // "" lets in
	}{
		{"good", func(*CallerState, *Principal) {}, ""},
		{"revoked token", func(s *CallerState, _ *Principal) { s.Revoked = []string{"other", "jti"} }, "was revoked"},
		{"revoked with its family", func(s *CallerState, p *Principal) {
			p.TokenID = newTokenID("first")
			s.Revoked = RevokedWith(newTokenID("first"))
		}, "was revoked"},
		{"the family's first", func(s *CallerState, p *Principal) { p.TokenID, s.Revoked = "first", RevokedWith(newTokenID("first")) }, "was revoked"},
		{"of a provider's token with a long id", func(s *CallerState, p *Principal) {
			first := strings.Repeat("x", 100)
			p.TokenID, s.Revoked = newTokenID(familyOf(first)), RevokedWith(first)
		}, "was revoked"},
		{"another family", func(s *CallerState, p *Principal) {
			p.TokenID, s.Revoked = newTokenID("first"), RevokedWith(newTokenID("second"))
		}, ""},
		{"another one revoked", func(s *CallerState, _ *Principal) { s.Revoked = []string{"other"} }, ""},
		{"issued before", func(s *CallerState, _ *Principal) { s.NotBefore = now.Add(time.Millisecond) }, "were revoked"},
		{"a provider's that does not tell when it was issued", func(s *CallerState, p *Principal) {
			p.IssuedAt, p.Issuer, p.Subject, s.NotBefore = time.Time{}, "https://idp", "u-1", now
			s.Identities = []IdentityLink{{"https://idp", "u-1"}}
		}, "were revoked"},
		{"issued at that moment", func(s *CallerState, _ *Principal) { s.NotBefore = now }, ""},
		{"replaced secret", func(s *CallerState, _ *Principal) { s.SecretMark = "new" }, "was replaced"},
		{"secret taken away", func(s *CallerState, _ *Principal) { s.SecretMark = "" }, "was replaced"},
		{"by a key", func(s *CallerState, p *Principal) { s.Keys, p.SecretMark = []LiveKey{{ID: "k"}}, KeyMark("k") }, ""},
		{"by a key that is gone", func(s *CallerState, p *Principal) { s.Keys, p.SecretMark = []LiveKey{{ID: "other"}}, KeyMark("k") }, "was removed"},
		{"by a key that has ended", func(s *CallerState, p *Principal) {
			s.Keys, p.SecretMark = []LiveKey{{ID: "k", EndsAt: now}}, KeyMark("k")
		}, "has ended"},
		{"no secret obtained it", func(_ *CallerState, p *Principal) { p.SecretMark = "" }, ""},
		{"personal", func(_ *CallerState, p *Principal) { p.PersonalToken, p.SecretMark = pat, "pat" }, ""},
		{"personal of the secret", func(_ *CallerState, p *Principal) { p.PersonalToken = pat }, "was rotated"},
		{"personal of no secret", func(_ *CallerState, p *Principal) { p.PersonalToken, p.SecretMark = pat, "" }, "was rotated"},
		{"personal, overlapping", func(_ *CallerState, p *Principal) { p.PersonalToken, p.SecretMark = pat, "old pat" }, ""},
		{"personal, no longer overlapping", func(s *CallerState, p *Principal) {
			p.PersonalToken, p.SecretMark, s.Personal[0].PreviousUntil = pat, "old pat", now
		}, "was rotated"},
		{"personal, ended since", func(s *CallerState, p *Principal) {
			p.PersonalToken, p.SecretMark, s.Personal[0].ExpiresAt = pat, "pat", now
		}, "has expired"},
		{"personal, revoked", func(s *CallerState, p *Principal) { p.PersonalToken, p.SecretMark, s.Personal = pat, "pat", nil }, "was revoked"},
		{"personal, from elsewhere", func(_ *CallerState, p *Principal) {
			p.PersonalToken, p.SecretMark, p.Address = pat, "pat", netip.MustParseAddr("192.0.2.1")
		}, "192.0.2.1"},
		{"allowed", func(s *CallerState, _ *Principal) { s.Network.Allowed = networks("192.0.2.0/24", "10.1.0.0/16") }, ""},
		{"not allowed", func(s *CallerState, _ *Principal) { s.Network.Allowed = networks("192.0.2.0/24") }, "network policy"},
		{"blocked wins", func(s *CallerState, _ *Principal) {
			s.Network = NetworkPolicy{Allowed: networks("10.0.0.0/8"), Blocked: networks("10.1.2.3/32")}
		}, "network policy"},
		{"blocked by the server", func(s *CallerState, _ *Principal) { s.ServerNetwork.Blocked = networks("10.0.0.0/8") }, "network policy"},
		{"mapped into IPv6", func(s *CallerState, p *Principal) {
			s.Network.Blocked, p.Address = networks("10.0.0.0/8"), netip.MustParseAddr("::ffff:10.1.2.3")
		}, "network policy"},
		{"with a zone", func(s *CallerState, p *Principal) {
			s.Network.Allowed, p.Address = networks("fe80::/10"), netip.MustParseAddr("fe80::1%eth0")
		}, ""},
		{"from nowhere", func(s *CallerState, p *Principal) {
			s.Network.Blocked, p.Address = networks("192.0.2.0/24"), netip.Addr{}
		}, "not known"},
		{"the server itself", func(s *CallerState, p *Principal) { *p, s.SecretMark = MaintenancePrincipal(), "x" }, ""},
	} {
		state := &CallerState{SecretMark: "mark", Personal: []LiveToken{live}}
		p := Principal{
			ID: uuid.New(), Kind: Service, TokenID: "jti", SecretMark: "mark", IssuedAt: now, Address: netip.MustParseAddr("10.1.2.3"),
		}
		c.change(state, &p)
		err := state.Admit(p, now)
		if c.reason == "" && err != nil || c.reason != "" && (!fault.Is(err, fault.Unauthenticated) || !strings.Contains(err.Error(), c.reason)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.reason)
		}
	}
	var nobody *CallerState
	if err := nobody.Admit(Principal{Kind: Service}, now); !fault.Is(err, fault.Unauthenticated) {
		t.Errorf("a principal that is gone: %v", err)
	}
	if err := nobody.Admit(MaintenancePrincipal(), now); err != nil {
		t.Errorf("the server itself, which has no row: %v", err)
	}
}

// Tokens count from the very moment on, whichever server's clock set it: who signs in next is let in.
func TestTokens_ASignInAfterRevocationCounts(t *testing.T) {
	b := newBench(t)
	a, secret := b.account("ann", "r")
	principal := func(token string) Principal {
		t.Helper()
		p, err := b.tokens.Authenticate(t.Context(), "Bearer "+token)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	b.now = b.now.Add(300*time.Millisecond + 500*time.Microsecond)
	before := principal(b.login(t, a, secret, "").AccessToken)
	for _, ahead := range []time.Duration{time.Millisecond, 40 * time.Second} { // by the clock of the server that revoked
		moment := b.now.Truncate(time.Millisecond).Add(ahead)
		b.store.states[a.ID] = CallerState{NotBefore: moment}
		state := &CallerState{NotBefore: moment, SecretMark: a.Secret.Mark()}
		if err := state.Admit(before, b.now); !fault.Is(err, fault.Unauthenticated) {
			t.Errorf("%v: a token from before: %v", ahead, err)
		}
		if err := state.Admit(principal(b.login(t, a, secret, "").AccessToken), b.now); err != nil {
			t.Errorf("%v: a token from after: %v", ahead, err)
		}
	}
}

// What a token is refused for at any route, its refresh is refused for; and who logs in is held to the network policy.
func TestTokens_RefreshIsJudged(t *testing.T) {
	b := newBench(t)
	a, secret := b.account("ann", "r")
	token := b.login(t, a, secret, "").AccessToken
	p, err := b.tokens.Authenticate(t.Context(), "Bearer "+token)
	if err != nil {
		t.Fatal(err)
	}
	refresh := func() error {
		form, err := ParseTokenForm("grant_type=" + grantTokenExchange + "&subject_token=" + token)
		if err != nil {
			t.Fatal(err)
		}
		_, err = b.tokens.Issue(t.Context(), TokenRequest{Form: form, Authorization: "Bearer " + token, Address: netip.MustParseAddr("192.0.2.1")})
		return err
	}
	if err := refresh(); err != nil {
		t.Fatal(err)
	}
	for reason, state := range map[string]CallerState{
		"was revoked": {Revoked: []string{p.TokenID}}, "were revoked": {NotBefore: b.now.Add(time.Second)},
		"network policy": {Network: NetworkPolicy{Blocked: networks("192.0.2.0/24")}},
	} {
		b.store.states[a.ID] = state
		if err := refresh(); err == nil || !strings.Contains(err.Error(), "invalid_client") || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: %v", reason, err)
		}
	}
	form, err := ParseTokenForm("grant_type=client_credentials&client_id=" + a.ClientID + "&client_secret=" + secret.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	b.store.states[a.ID] = CallerState{ServerNetwork: NetworkPolicy{Allowed: networks("10.0.0.0/8")}}
	if _, err := b.tokens.Issue(t.Context(), TokenRequest{Form: form, Address: netip.MustParseAddr("192.0.2.1")}); err == nil || !strings.Contains(err.Error(), "network policy") {
		t.Errorf("a login from elsewhere: %v", err)
	}
}
