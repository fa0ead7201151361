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
	// State is what its tokens are judged by.
	State *CallerState
	// Brought are those of Roles that an identity provider's token gives.
	Brought []string
}

// StoredKey is a signing key at rest: the private half is encrypted.
type StoredKey struct {
	KID        string
	Algorithm  string
	PublicKey  []byte
	PrivateKey []byte
	CreatedAt  time.Time
	SignsFrom  time.Time // it is published before; zero: from CreatedAt on
	RetiredAt  time.Time // when it ceases to sign, maybe in the future; zero: it has no successor
}

// AccountStore finds accounts and personal access tokens. fault.NotFound when there is none.
type AccountStore interface {
	FindAccountByClientID(ctx context.Context, clientID string) (Account, error)
	FindAccountByID(ctx context.Context, id uuid.UUID) (Account, error)
	FindAccountByName(ctx context.Context, name string) (Account, error) // without its secret
	FindPersonalToken(ctx context.Context, id uuid.UUID) (PersonalAccount, error)
}

// KeyStore keeps signing keys.
type KeyStore interface {
	SigningKeys(ctx context.Context) ([]StoredKey, error)
	// AddSigningKey inserts the key unless one of its algorithm is there that is not to be retired (two servers may start at
	// once), and gives all.
	AddSigningKey(ctx context.Context, k StoredKey) ([]StoredKey, error)
	// SucceedSigningKey inserts the key and retires the one named old from the moment on at which the new one signs, unless old
	// has been retired meanwhile; and gives all.
	SucceedSigningKey(ctx context.Context, old string, k StoredKey) ([]StoredKey, error)
}

// ClientKeyStore knows principals' own keys, and which assertions were used.
type ClientKeyStore interface {
	// ClientKeys gives a principal's keys, ended ones maybe among them.
	ClientKeys(ctx context.Context, principal uuid.UUID) ([]ClientKey, error)
	// SpendAssertion remembers the mark of a principal's assertion till a time; false when it was there already, on whatever server.
	SpendAssertion(ctx context.Context, principal uuid.UUID, mark []byte, until time.Time) (fresh bool, err error)
}
