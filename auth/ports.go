package auth

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"
)

// StoredSecret is the form of a secret that goes to the database: its algorithm (hmac-sha256 for generated ones,
// argon2id for chosen ones) and the digest with whatever the algorithm needs. Never the secret.
type StoredSecret struct {
	Algorithm string
	Form      []byte
	// RotationRequired makes the secret good for nothing but rotating itself.
	RotationRequired bool
}

// LogValue hides the digest.
func (StoredSecret) LogValue() slog.Value { return slog.StringValue("***") }

// String hides the digest.
func (StoredSecret) String() string { return "***" }

// Account is a principal with its secret and the names of its principal roles.
type Account struct {
	ID       uuid.UUID
	Name     string
	ClientID string
	Kind     PrincipalKind
	Secret   StoredSecret
	Roles    []string
}

// StoredKey is a signing key at rest: the private half is encrypted.
type StoredKey struct {
	KID        string
	Algorithm  string
	PublicKey  []byte
	PrivateKey []byte
	CreatedAt  time.Time
	RetiredAt  time.Time // zero while active
}

// AccountStore finds accounts. fault.NotFound when there is none.
type AccountStore interface {
	FindAccountByClientID(ctx context.Context, clientID string) (Account, error)
	FindAccountByID(ctx context.Context, id uuid.UUID) (Account, error)
}

// KeyStore keeps signing keys.
type KeyStore interface {
	SigningKeys(ctx context.Context) ([]StoredKey, error)
	// AddSigningKey inserts the key unless an active one exists (two servers may start at once), and gives the active ones.
	AddSigningKey(ctx context.Context, k StoredKey) ([]StoredKey, error)
}
