package catalog

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"catalogd/auth"
	"catalogd/authz"
	"catalogd/internal/fault"
)

// ClientKeyStore keeps the public keys that principals sign in with.
type ClientKeyStore interface {
	// ClientKeys gives them oldest first.
	ClientKeys(ctx context.Context, principal uuid.UUID) ([]auth.ClientKey, error)
	// AddClientKey: fault.AlreadyExists when the principal has the key, fault.IllegalArgument when it has too many.
	AddClientKey(ctx context.Context, principal uuid.UUID, k auth.ClientKey, f Fact) error
	// RemoveClientKey: fault.NotFound when the principal has no such key.
	RemoveClientKey(ctx context.Context, principal uuid.UUID, kid string, f Fact) error
}

// ClientKeyDraft is a public key to be registered.
type ClientKeyDraft struct {
	Text   string    // PEM or a JWK
	EndsAt time.Time // zero: it is good until it is removed
}

// AddClientKey registers a public key for a principal: its own by a token with all its roles that its secret or one of its keys
// obtained, because who has the private half gets such tokens for ever; others' with PRINCIPAL_RESET_CREDENTIALS.
func (s *Service) AddClientKey(ctx context.Context, c Caller, name string, d ClientKeyDraft) (auth.ClientKey, error) {
	p, err := s.keyHolder(ctx, c, need{"add-principal-key", name, authz.PrincipalResetCredentials})
	if err != nil {
		return auth.ClientKey{}, err
	}
	key, err := auth.ReadClientKey(d.Text)
	if err != nil {
		return auth.ClientKey{}, err
	}
	f := s.fact(c, "add-principal-key", name, uuid.Nil, p.ID)
	if !d.EndsAt.IsZero() && !d.EndsAt.After(f.At) {
		return auth.ClientKey{}, fault.New(fault.BadRequest, "expiresAt %s is over already", d.EndsAt.UTC().Format(time.RFC3339))
	}
	key.CreatedAt, key.EndsAt = f.At, d.EndsAt
	f.Details = map[string]any{"key": key.ID, "algorithm": key.Algorithm}
	if err := s.Admin.AddClientKey(ctx, p.ID, key, f); err != nil {
		return auth.ClientKey{}, fmt.Errorf("add a key of %s: %w", name, err)
	}
	return key, nil
}

// ClientKeys gives a principal's public keys; everybody may ask for his own.
func (s *Service) ClientKeys(ctx context.Context, c Caller, name string) ([]auth.ClientKey, error) {
	p, err := s.principalForSelfToo(ctx, c, need{"list-principal-keys", name, authz.PrincipalReadProperties})
	if err != nil {
		return nil, err
	}
	keys, err := s.Admin.ClientKeys(ctx, p.ID)
	if err != nil {
		return nil, fmt.Errorf("list the keys of %s: %w", name, err)
	}
	return keys, nil
}

// RemoveClientKey takes a public key from a principal; tokens that it obtained end at once. Who may is as of AddClientKey.
func (s *Service) RemoveClientKey(ctx context.Context, c Caller, name, kid string) error {
	p, err := s.keyHolder(ctx, c, need{"remove-principal-key", name, authz.PrincipalResetCredentials})
	if err != nil {
		return err
	}
	f := s.fact(c, "remove-principal-key", name, uuid.Nil, p.ID)
	f.Details = map[string]any{"key": kid}
	if err := s.Admin.RemoveClientKey(ctx, p.ID, kid, f); err != nil {
		return fmt.Errorf("remove a key of %s: %w", name, err)
	}
	return nil
}

// keyHolder finds the principal whose keys the caller may change.
func (s *Service) keyHolder(ctx context.Context, c Caller, n need) (PrincipalRecord, error) {
	p, err := s.principalForSelfToo(ctx, c, n)
	if err != nil {
		return p, err
	}
	if p.ID != c.Principal.ID {
		return p, s.mayBecome(ctx, c, p, n)
	}
	return p, s.requireOwnCredential(ctx, c, n, "its keys")
}

// requireOwnCredential refuses a caller who would change what he himself signs in with by a token that may be narrower or shorter.
func (s *Service) requireOwnCredential(ctx context.Context, c Caller, n need, what string) error {
	const reason = "the token is narrowed, or neither the principal's secret nor a key of it obtained it"
	if c.Principal.Roles.All && c.Principal.OwnCredential() {
		return s.signedIn(ctx, c, n)
	}
	_ = s.refuseBecause(ctx, c, n, authz.Securable{}, reason)
	return fault.New(fault.Forbidden, "Principal %q may not change %s with this token: %s; sign in with the client id and "+
		"the secret, with scope PRINCIPAL_ROLE:ALL", c.Principal.Name, what, reason)
}
