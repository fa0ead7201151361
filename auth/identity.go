package auth

import (
	"context"
	"time"

	"github.com/google/uuid"

	"catalogd/authz"
)

// ExternalTokenBytesMax bounds the tokens of identity providers, which carry lists of groups.
const ExternalTokenBytesMax = 64 << 10

// Federated principals were made for an identity provider's subject. They have no secret.
const Federated PrincipalKind = "federated"

// Identity is whom a verified token of an identity provider names. Issuer and Subject together are who that is; a name can
// be given to somebody else.
type Identity struct {
	Issuer    string
	Subject   string
	Name      string   // for a principal that is made for it
	Roles     []string // principal roles that its groups stand for, whether those exist or not
	TokenID   string   // "" where the token has none
	Key       string   // which of the issuer's keys signed it
	IssuedAt  time.Time
	ExpiresAt time.Time
	Create    bool // the issuer's subjects get a principal at their first token
}

// Issuers verify tokens of identity providers.
type Issuers interface {
	// Issues tells whether a token says that it is one of theirs; nothing is checked.
	Issues(token string) bool
	// Verify: fault.Unauthenticated when the token is not good, fault.Busy when that cannot be told now.
	Verify(ctx context.Context, token string) (Identity, error)
	// Trusts tells whether an Identity's Key is still the issuer's.
	Trusts(issuer, key string) bool
}

// NewFederated is a principal about to be made for an identity.
type NewFederated struct {
	ID       uuid.UUID
	Name     string
	ClientID string
	Issuer   string
	Subject  string
	At       time.Time
}

// IdentityStore finds and makes the principals of identities. The accounts have no secret: it proves nothing here.
type IdentityStore interface {
	// FindIdentity gives the account linked to an identity: fault.NotFound. Of the brought roles its Roles has those that
	// are federated principal roles.
	FindIdentity(ctx context.Context, issuer, subject string, brought []string) (Account, error)
	// CreateIdentity makes a principal and links it, and does nothing when the identity has one by now.
	// fault.AlreadyExists when another principal has the name.
	CreateIdentity(ctx context.Context, n NewFederated) error
	// FindAccountByName: fault.NotFound.
	FindAccountByName(ctx context.Context, name string) (Account, error)
	// FederatedRoles gives those of the names that are federated principal roles.
	FederatedRoles(ctx context.Context, names []string) ([]string, error)
	// RootGrants gives what a caller holds on the service itself, and whether it still exists.
	RootGrants(ctx context.Context, p Principal) (grants []authz.Grant, known bool, err error)
}
