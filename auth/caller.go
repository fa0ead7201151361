package auth

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"catalogd/authz"
	"catalogd/internal/fault"
)

// Limits of what is known of a caller, all of which is read, and kept in memory, together.
const (
	// RevokedTokensMax bounds the access tokens of one principal that are revoked one by one; beyond it none that was
	// issued before counts.
	RevokedTokensMax = 100
	// PersonalTokensMax bounds the personal access tokens of one principal.
	PersonalTokensMax = 100
	// IdentitiesMax bounds the identity providers' subjects that are one principal.
	IdentitiesMax = 20
	// NetworksMax bounds each list of networks.
	NetworksMax = 64
)

// CallerState is what the database knows of a principal that makes its tokens count or not. It is read in the statement
// that finds out what the principal may do, and holds for as long as that answer; nil when there is no such principal.
// Nobody writes to it.
type CallerState struct {
	// SecretMark is the Mark of the present secret; "" when the principal has none.
	SecretMark string
	// NotBefore is the moment before which no token was issued that counts; zero: all count.
	NotBefore time.Time
	Revoked   []string    // ids of access tokens
	Personal  []LiveToken // those that had not ended when this was read
	Keys      []LiveKey   // of its own, which obtain tokens by what they sign
	Network   NetworkPolicy
	// Identities are the identity providers' subjects that are this principal.
	Identities []IdentityLink
	// ServerNetwork is the policy for everybody.
	ServerNetwork NetworkPolicy
}

// LiveToken is what a personal access token is judged by.
type LiveToken struct {
	ID         uuid.UUID
	SecretMark string
	// PreviousMark is that of the secret before, which is good until PreviousUntil.
	PreviousMark  string
	PreviousUntil time.Time
	ExpiresAt     time.Time
	Networks      []netip.Prefix // none: all
}

// LiveKey is what tokens that a principal's key obtained are judged by.
type LiveKey struct {
	ID     string
	EndsAt time.Time // zero: it is good until it is removed
}

// IdentityLink is a subject of an identity provider.
type IdentityLink struct{ Issuer, Subject string }

// NetworkPolicy says from where requests may come. The zero value lets everybody in.
type NetworkPolicy struct {
	Allowed []netip.Prefix // none: all
	Blocked []netip.Prefix // these win
}

// Admits tells whether requests may come from an address. One that is not known is let in only where there is no policy.
func (p NetworkPolicy) Admits(address netip.Addr) bool {
	if len(p.Allowed)+len(p.Blocked) == 0 {
		return true
	}
	return address.IsValid() && !within(p.Blocked, address) && (len(p.Allowed) == 0 || within(p.Allowed, address))
}

func within(networks []netip.Prefix, address netip.Addr) bool {
	address = address.Unmap().WithZone("")
	return slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(address) })
}

// Admit judges a caller as its token names it, at each request anew: fault.Unauthenticated when the token does not
// count, or not from where it comes. now is the time of the request. The server itself is always let in.
func (s *CallerState) Admit(p Principal, now time.Time) error {
	if p.Kind == System || authz.Open {
		return nil
	}
	switch {
	case s == nil:
		return fault.New(fault.Unauthenticated, "the principal of this token no longer exists")
	case (!p.IssuedAt.IsZero() || p.Issuer != "") && p.IssuedAt.Before(s.NotBefore): // a provider's may not tell when it was made
		return fault.New(fault.Unauthenticated, "all tokens of this principal that were issued before %s were revoked; sign in again",
			s.NotBefore.UTC().Format(time.RFC3339))
	case s.revokes(p.TokenID):
		return fault.New(fault.Unauthenticated, "the token was revoked; sign in again")
	case p.Issuer != "" && !slices.Contains(s.Identities, IdentityLink{p.Issuer, p.Subject}):
		return fault.New(fault.Unauthenticated, "the subject of this token is no longer linked to the principal")
	}
	if err := s.admitSecret(p, now); err != nil {
		return err
	}
	if !s.ServerNetwork.Admits(p.Address) || !s.Network.Admits(p.Address) {
		return fault.New(fault.Unauthenticated, "requests of this principal may not come from %s (network policy)", addressText(p.Address))
	}
	return nil
}

// admitSecret judges what the token was obtained with. A token that no secret obtained, such as one for a principal that
// an identity provider knows, does not end with one.
func (s *CallerState) admitSecret(p Principal, now time.Time) error {
	if id, ok := strings.CutPrefix(p.SecretMark, keyMarkPrefix); ok && p.PersonalToken == uuid.Nil {
		live := func(k LiveKey) bool { return k.ID == id && (k.EndsAt.IsZero() || now.Before(k.EndsAt)) }
		if !slices.ContainsFunc(s.Keys, live) {
			return fault.New(fault.Unauthenticated, "the key that obtained the token was removed or has ended")
		}
		return nil
	}
	if p.PersonalToken == uuid.Nil {
		if p.SecretMark != "" && p.SecretMark != s.SecretMark {
			return fault.New(fault.Unauthenticated, "the secret of this principal was replaced; log in with the new one")
		}
		return nil
	}
	at := slices.IndexFunc(s.Personal, func(t LiveToken) bool { return t.ID == p.PersonalToken })
	if at < 0 {
		return fault.New(fault.Unauthenticated, "the personal access token was revoked or has expired")
	}
	t := s.Personal[at]
	switch {
	case !now.Before(t.ExpiresAt):
		return fault.New(fault.Unauthenticated, "the personal access token has expired")
	case p.SecretMark != t.SecretMark && (p.SecretMark != t.PreviousMark || !now.Before(t.PreviousUntil)):
		return fault.New(fault.Unauthenticated, "the personal access token was rotated; use its new secret")
	case !(NetworkPolicy{Allowed: t.Networks}).Admits(p.Address):
		return fault.New(fault.Unauthenticated, "the personal access token may not be used from %s", addressText(p.Address))
	}
	return nil
}

func addressText(address netip.Addr) string {
	if !address.IsValid() {
		return "an address that is not known"
	}
	return address.Unmap().String()
}
