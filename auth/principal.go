// Package auth tells who is calling: it issues and checks tokens and secrets. What a caller may do is authz's.
package auth

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"catalogd/authz"
)

// PrincipalKind tells people's and programs' principals from the server's own.
type PrincipalKind string

// The kinds of principals. System is the server itself (its maintenance worker); it has no secret and no token.
const (
	Service PrincipalKind = "service"
	System  PrincipalKind = "system"
)

// Principal is an authenticated caller, as a token named it.
type Principal struct {
	ID      uuid.UUID
	Name    string
	Kind    PrincipalKind
	Roles   RoleScope
	TokenID string // jti of the token; goes to the audit
	// ExpiresAt is when the token ends; zero where there is none.
	ExpiresAt time.Time
	// IssuedAt is when the token was made; zero where that means nothing.
	IssuedAt time.Time
	// SignedInAt is when who sends the token showed more than a token for it: a secret, a key's signature, or an identity provider's
	// token that was made then. What is exchanged keeps it. Zero where that is not known.
	SignedInAt time.Time
	// SecretMark is the Mark of the stored secret that obtained the token; "" when none did. Of a personal access token,
	// and of a token that it obtained, it is that of its own secret.
	SecretMark string
	// PersonalToken is the personal access token that this is, or that obtained it; uuid.Nil: none did.
	PersonalToken uuid.UUID
	// Address is where the request comes from, as the server sees it; the zero Addr where that is not known.
	Address netip.Addr
	// Issuer is the identity provider that vouched for the caller; "" when the server itself did.
	Issuer  string
	Subject string // whom the provider named
	// Anonymous tells that nothing was shown, for the request or for the token that it bears: the server is open, and this is whom it
	// takes everybody for.
	Anonymous bool
	// Actor is who acts as this principal; nil when it acts itself.
	Actor *Actor
}

// Actor is a principal that acts as another one.
type Actor struct {
	ID   uuid.UUID
	Name string
	// Shown is the actor as the token that it showed named it: it is judged by that, with every request, as if it had sent it.
	Shown Principal
}

// ActorName is the name of who acts as this principal, "" when it acts itself.
func (p Principal) ActorName() string {
	if p.Actor == nil {
		return ""
	}
	return p.Actor.Name
}

// ActsByRight tells that somebody acts as this principal because he may act for others, and not because the principal's own token
// was shown.
func (p Principal) ActsByRight() bool { return p.Actor != nil && p.Issuer == "" }

// OwnCredential tells whether the principal's own secret, or a key of it, obtained the token: who has that can get all that the
// principal has, and a personal access token, which may end soon, cannot.
func (p Principal) OwnCredential() bool { return p.SecretMark != "" && p.PersonalToken == uuid.Nil }

// SignInFreshMax is for how long after a sign-in its token may make what outlives it.
const SignInFreshMax = 10 * time.Minute

// SignedInLately tells whether the caller itself signed in a short time ago. Only then its token makes what outlives it, as personal
// access tokens, secrets and keys do: a token that somebody found does not live on in them.
func (p Principal) SignedInLately(now time.Time) bool {
	fresh := !p.SignedInAt.IsZero() && now.Sub(p.SignedInAt) < SignInFreshMax
	return fresh && p.PersonalToken == uuid.Nil && p.Actor == nil || authz.Open
}

// BySecret tells whether the principal's own secret obtained the token.
func (p Principal) BySecret() bool {
	return p.OwnCredential() && !strings.HasPrefix(p.SecretMark, keyMarkPrefix)
}

// RoleScope narrows a principal to some of its principal roles. The zero value activates none.
type RoleScope struct {
	All   bool     // every role the principal has at the time of the request
	Names []string // else these, as far as the principal still has them
	// Brought are roles that an identity provider's token gave for the token's own life. They count while they are
	// principal roles that are marked federated, and are narrowed by Names like all others.
	Brought []string
}

// ActiveBrought gives the brought roles that the scope does not leave out.
func (r RoleScope) ActiveBrought() []string {
	if r.All || len(r.Brought) == 0 {
		return r.Brought
	}
	var active []string
	for _, name := range r.Brought {
		if slices.Contains(r.Names, name) {
			active = append(active, name)
		}
	}
	return active
}

func (r RoleScope) clone() RoleScope {
	r.Names, r.Brought = slices.Clone(r.Names), slices.Clone(r.Brought)
	return r
}

// MaintenancePrincipal is who the embedded and the separate worker act as.
func MaintenancePrincipal() Principal {
	return Principal{Name: "system:maintenance", Kind: System}
}

// DeliveryPrincipal is who switches webhooks off that do not take their events.
func DeliveryPrincipal() Principal {
	return Principal{Name: "system:webhooks", Kind: System}
}
