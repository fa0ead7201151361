// Package auth tells who is calling: it issues and checks tokens and secrets. What a caller may do is authz's.
package auth

import (
	"time"

	"github.com/google/uuid"
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
	// SecretMark is the Mark of the stored secret that obtained the token; "" when none did.
	SecretMark string
}

// RoleScope narrows a principal to some of its principal roles. The zero value activates none.
type RoleScope struct {
	All   bool     // every role the principal has at the time of the request
	Names []string // else these, as far as the principal still has them
}

// MaintenancePrincipal is who the embedded and the separate worker act as.
func MaintenancePrincipal() Principal {
	return Principal{Name: "system:maintenance", Kind: System}
}
