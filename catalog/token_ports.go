package catalog

import (
	"context"
	"net/netip"
	"time"

	"github.com/google/uuid"

	"catalogd/auth"
)

// PersonalTokenRecord is a personal access token as stored, without its secret.
type PersonalTokenRecord struct {
	ID          uuid.UUID
	PrincipalID uuid.UUID
	Name        string         // the owner's tokens have different ones
	Roles       []string       // principal roles that it is narrowed to; none: all
	Networks    []netip.Prefix // that it may be used from; none: all
	CreatedBy   string
	CreatedAt   time.Time
	RotatedAt   time.Time // zero: never
	ExpiresAt   time.Time
	// OverlapUntil is the end of the secret before the last rotation; zero when it ended at once.
	OverlapUntil time.Time
	LastUse      auth.TokenUse // the zero value: none was noted
}

// PersonalTokenRotation gives a personal access token another secret.
type PersonalTokenRotation struct {
	PrincipalID, ID uuid.UUID
	Secret          auth.StoredSecret
	OverlapUntil    time.Time // of the present secret; zero ends it at once
	ExpiresAt       time.Time // zero leaves it
}

// TokenRevocation ends access tokens of a principal.
type TokenRevocation struct {
	PrincipalID uuid.UUID
	// TokenID is the one that ends, with all that it was exchanged for or from (auth.RevokedWith); "" ends all that were issued before
	// the fact's time, and before now.
	TokenID   string
	ExpiresAt time.Time // of a single one: when it ends by itself
	// Personal removes all personal access tokens as well.
	Personal bool
}

// TokenStore keeps what makes tokens count. Missing principals and tokens: fault.NotFound.
type TokenStore interface {
	// CreatePersonalToken: fault.AlreadyExists when the owner has a live token of that name, fault.IllegalArgument when it
	// has auth.PersonalTokensMax. Tokens that ended long ago are forgotten.
	CreatePersonalToken(ctx context.Context, t PersonalTokenRecord, s auth.StoredSecret, f Fact) error
	// ListPersonalTokens gives all of a principal's by name, also those that have ended lately.
	ListPersonalTokens(ctx context.Context, principalID uuid.UUID) ([]PersonalTokenRecord, error)
	RotatePersonalToken(ctx context.Context, r PersonalTokenRotation, f Fact) error
	DropPersonalToken(ctx context.Context, principalID, id uuid.UUID, f Fact) error
	// RevokeTokens: of more than auth.RevokedTokensMax single ones, none counts that was issued before.
	RevokeTokens(ctx context.Context, r TokenRevocation, f Fact) error
	// RecordTokenUses keeps the latest use of each; those of tokens that are gone are ignored.
	RecordTokenUses(ctx context.Context, uses []auth.TokenUse) error
}

// NetworkStore keeps network policies. uuid.Nil is the policy of the server, for everybody.
type NetworkStore interface {
	// FindNetworkPolicy gives the zero policy where there is none.
	FindNetworkPolicy(ctx context.Context, principalID uuid.UUID) (auth.NetworkPolicy, error)
	// SetNetworkPolicy: the zero policy takes it away. fault.NotFound when the principal is gone.
	SetNetworkPolicy(ctx context.Context, principalID uuid.UUID, p auth.NetworkPolicy, f Fact) error
}

// PersonalTokenKept is for how long a personal access token is shown after its end.
const PersonalTokenKept = 30 * 24 * time.Hour
