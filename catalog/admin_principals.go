package catalog

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/google/uuid"

	"catalogd/auth"
	"catalogd/authz"
	"catalogd/internal/fault"
)

// errNoSecrets is for processes that were wired without secrets.key.
var errNoSecrets = fault.New(fault.Internal, "this process cannot make secrets: it was started without secrets.key")

// PrincipalDraft is a principal about to be made.
type PrincipalDraft struct {
	Name       string
	Properties map[string]string
	// RotationRequired makes the first secret good for nothing but replacing itself.
	RotationRequired bool
}

// CreatePrincipal makes a principal and gives its secret, this once.
func (s *Service) CreatePrincipal(ctx context.Context, c Caller, d PrincipalDraft) (PrincipalRecord, auth.Secret, error) {
	if err := s.requireOnRoot(ctx, c, need{"create-principal", d.Name, authz.PrincipalCreate}); err != nil {
		return PrincipalRecord{}, "", err
	}
	if err := checkAdminName("principal name", d.Name); err != nil {
		return PrincipalRecord{}, "", err
	}
	if s.Secrets == nil {
		return PrincipalRecord{}, "", errNoSecrets
	}
	f := s.fact(c, "create-principal", d.Name, uuid.Nil, newID())
	p := PrincipalRecord{
		ID: f.Securable, Name: d.Name, ClientID: auth.NewClientID(), Kind: auth.Service,
		Properties: maps.Clone(d.Properties), Version: 1, CreatedAt: f.At, UpdatedAt: f.At,
	}
	secret, stored := s.Secrets.Generate(p.ClientID)
	stored.RotationRequired = d.RotationRequired
	if err := s.Admin.CreatePrincipal(ctx, p, stored, f); err != nil {
		return PrincipalRecord{}, "", fmt.Errorf("create principal %s: %w", d.Name, err)
	}
	return p, secret, nil
}

// ListPrincipals gives principals by name.
func (s *Service) ListPrincipals(ctx context.Context, c Caller, q ListQuery) ([]PrincipalRecord, error) {
	if err := s.requireOnRoot(ctx, c, need{"list-principals", "all principals", authz.PrincipalList}); err != nil {
		return nil, err
	}
	all, err := s.Admin.ListPrincipals(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("list principals: %w", err)
	}
	return all, nil
}

// FindPrincipal gives one principal; everybody may ask for himself.
func (s *Service) FindPrincipal(ctx context.Context, c Caller, name string) (PrincipalRecord, error) {
	return s.principalForSelfToo(ctx, c, need{"load-principal", name, authz.PrincipalReadProperties})
}

// principalFor finds the principal that n.subject names, for callers who hold the privilege.
func (s *Service) principalFor(ctx context.Context, c Caller, n need) (PrincipalRecord, error) {
	if err := s.requireOnRoot(ctx, c, n); err != nil {
		return PrincipalRecord{}, err
	}
	p, err := s.Admin.FindPrincipal(ctx, n.subject)
	if err != nil {
		return PrincipalRecord{}, fmt.Errorf("find principal %s: %w", n.subject, err)
	}
	return p, nil
}

// principalForSelfToo is principalFor for what everybody may know of himself. Others without the privilege get one
// answer, whether the principal exists or not.
func (s *Service) principalForSelfToo(ctx context.Context, c Caller, n need) (PrincipalRecord, error) {
	p, _, err := s.principalOrSelf(ctx, c, n)
	return p, err
}

// principalOrSelf is principalForSelfToo, with the state of a caller who asks for himself; nil for others.
func (s *Service) principalOrSelf(ctx context.Context, c Caller, n need) (PrincipalRecord, *auth.CallerState, error) {
	res, err := s.resolveRoot(ctx, c)
	if err != nil {
		return PrincipalRecord{}, nil, err
	}
	p, err := s.Admin.FindPrincipal(ctx, n.subject)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return PrincipalRecord{}, nil, fmt.Errorf("find principal %s: %w", n.subject, err)
	}
	if err == nil && p.ID == c.Principal.ID {
		return p, res.Caller, nil
	}
	if refused := s.require(ctx, c, res, res.Path(), n); refused != nil {
		return PrincipalRecord{}, nil, refused
	}
	return p, nil, err
}

// UpdatePrincipal replaces the properties.
func (s *Service) UpdatePrincipal(ctx context.Context, c Caller, name string, u Update) (PrincipalRecord, error) {
	p, err := s.principalFor(ctx, c, need{"update-principal", name, authz.PrincipalWriteProperties})
	if err != nil {
		return PrincipalRecord{}, err
	}
	if err := checkUpdate("principal", name, u, p.Version); err != nil {
		return PrincipalRecord{}, err
	}
	if u.Properties != nil {
		p.Properties = u.Properties
	}
	f := s.fact(c, "update-principal", name, uuid.Nil, p.ID)
	if err := s.Admin.UpdatePrincipal(ctx, p, f); err != nil {
		return PrincipalRecord{}, fmt.Errorf("update principal %s: %w", name, err)
	}
	p.Version, p.UpdatedAt = p.Version+1, f.At
	return p, nil
}

// DropPrincipal removes a principal; its tokens end with it. Root and the last administrator stay. One that holds something on the
// service is dropped by who administers the service alone.
func (s *Service) DropPrincipal(ctx context.Context, c Caller, name string) error {
	n := need{"drop-principal", name, authz.PrincipalDrop}
	p, err := s.principalFor(ctx, c, n)
	if err == nil {
		err = s.mayBecome(ctx, c, p, n)
	}
	if err != nil {
		return err
	}
	if p.Name == RootPrincipal {
		return fault.New(fault.IllegalArgument, "the principal %s cannot be dropped; reset its secret to lock it out", RootPrincipal)
	}
	if err := s.Admin.DropPrincipal(ctx, p.ID, s.fact(c, "drop-principal", name, uuid.Nil, p.ID)); err != nil {
		return fmt.Errorf("drop principal %s: %w", name, err)
	}
	return nil
}

// RotateSecret gives a principal a new, generated secret: itself, or another one to who holds
// PRINCIPAL_ROTATE_CREDENTIALS. The old one ends at once, and so do the tokens that it obtained. Of oneself a narrowed
// token is refused: the new secret would give every role. So is one whose secret is replaced in the meantime: a stolen token
// must not undo what was done about the theft. A secret that must be rotated gives tokens without roles, and only those may.
func (s *Service) RotateSecret(ctx context.Context, c Caller, name string) (PrincipalRecord, auth.Secret, error) {
	res, err := s.resolveRoot(ctx, c)
	if err != nil {
		return PrincipalRecord{}, "", err
	}
	p, err := s.Admin.FindPrincipal(ctx, name)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return PrincipalRecord{}, "", fmt.Errorf("find principal %s: %w", name, err)
	}
	if err != nil || p.ID != c.Principal.ID {
		n := need{"rotate-secret", name, authz.PrincipalRotateCredentials}
		if refused := s.require(ctx, c, res, res.Path(), n); refused != nil {
			return PrincipalRecord{}, "", refused
		}
		if err == nil {
			if err := s.mayBecome(ctx, c, p, n); err != nil {
				return PrincipalRecord{}, "", err
			}
		}
		return s.rotateOther(ctx, c, p, err)
	}
	if !c.Principal.Roles.All && !p.RotationRequired {
		n := need{"rotate-secret", name, authz.PrincipalRotateCredentials}
		_ = s.refuseBecause(ctx, c, n, authz.Securable{}, "the token is narrowed to some of the principal's roles")
		return PrincipalRecord{}, "", fault.New(fault.Forbidden, "Principal %q may not rotate its secret with a token that is narrowed to some "+
			"of its roles: sign in with scope PRINCIPAL_ROLE:ALL, or have an administrator reset the secret", name)
	}
	if s.Secrets == nil {
		return PrincipalRecord{}, "", errNoSecrets
	}
	if !c.Principal.BySecret() {
		return PrincipalRecord{}, "", fault.New(fault.Forbidden, "Principal %q may not rotate its secret with a token that no secret of it "+
			"obtained: sign in with the client id and the secret", name)
	}
	if err := s.signedIn(ctx, c, need{"rotate-secret", name, authz.PrincipalRotateCredentials}); err != nil {
		return PrincipalRecord{}, "", err
	}
	secret, stored := s.Secrets.Generate(p.ClientID)
	return s.replaceSecret(ctx, c, "rotate-secret", p, secret,
		SecretChange{ClientID: p.ClientID, Secret: stored, Replaces: c.Principal.SecretMark})
}

// mayBecome refuses to give the caller another principal's credentials when that one holds anything on the service, unless the caller
// administers the service: who may help people who lost their secrets must get by it nothing that no grant would give him.
func (s *Service) mayBecome(ctx context.Context, c Caller, p PrincipalRecord, n need) error {
	if p.ID == c.Principal.ID {
		return nil
	}
	theirs, _, err := s.Store.ResolveGrants(ctx, Lookup{Principal: auth.Principal{
		ID: p.ID, Name: p.Name, Kind: p.Kind, Roles: auth.RoleScope{All: true},
	}})
	if err != nil {
		return fmt.Errorf("resolve the grants of %s: %w", p.Name, err)
	}
	if !authz.HoldsOnService(theirs) {
		return nil
	}
	n.wanted = authz.ServiceManageAccess
	return s.requireOnRoot(ctx, c, n)
}

// rotateOther gives a principal that was looked for a new secret, whatever its present one is.
func (s *Service) rotateOther(ctx context.Context, c Caller, p PrincipalRecord, missing error) (PrincipalRecord, auth.Secret, error) {
	switch {
	case missing != nil:
		return PrincipalRecord{}, "", missing
	case s.Secrets == nil:
		return PrincipalRecord{}, "", errNoSecrets
	}
	secret, stored := s.Secrets.Generate(p.ClientID)
	return s.replaceSecret(ctx, c, "rotate-secret", p, secret, SecretChange{ClientID: p.ClientID, Secret: stored})
}

// Credential is a client id and a secret that somebody chose; what is "" is not chosen.
type Credential struct {
	ClientID string
	Secret   auth.Secret
}

// ResetSecret gives a principal a new secret, a generated one unless one was chosen, and a chosen client id if any.
func (s *Service) ResetSecret(ctx context.Context, c Caller, name string, chosen Credential) (PrincipalRecord, auth.Secret, error) {
	n := need{"reset-secret", name, authz.PrincipalResetCredentials}
	p, err := s.principalFor(ctx, c, n)
	if err == nil {
		err = s.mayBecome(ctx, c, p, n)
	}
	if err != nil {
		return PrincipalRecord{}, "", err
	}
	if s.Secrets == nil {
		return PrincipalRecord{}, "", errNoSecrets
	}
	if p.ID == c.Principal.ID && c.Principal.PersonalToken != uuid.Nil {
		return PrincipalRecord{}, "", fault.New(fault.Forbidden, "a personal access token may not replace the secret of its owner: "+
			"sign in with the client id and the secret")
	}
	if p.ID == c.Principal.ID {
		if err := s.signedIn(ctx, c, n); err != nil {
			return PrincipalRecord{}, "", err
		}
	}
	secret, change := chosen.Secret, SecretChange{ClientID: p.ClientID}
	if chosen.ClientID != "" {
		if err := checkClientID(chosen.ClientID); err != nil {
			return PrincipalRecord{}, "", err
		}
		change.ClientID = chosen.ClientID
	}
	if chosen.Secret == "" {
		secret, change.Secret = s.Secrets.Generate(change.ClientID)
	} else if change.Secret, err = s.Secrets.StoreChosen(ctx, chosen.Secret); err != nil {
		return PrincipalRecord{}, "", fmt.Errorf("clientSecret: %w", err)
	}
	return s.replaceSecret(ctx, c, "reset-secret", p, secret, change)
}

func (s *Service) replaceSecret(
	ctx context.Context, c Caller, operation string, p PrincipalRecord, secret auth.Secret, change SecretChange,
) (PrincipalRecord, auth.Secret, error) {
	f := s.fact(c, operation, p.Name, uuid.Nil, p.ID)
	change.PrincipalID = p.ID
	if err := s.Admin.ReplaceSecret(ctx, change, f); err != nil {
		return PrincipalRecord{}, "", fmt.Errorf("replace the secret of %s: %w", p.Name, err)
	}
	p.ClientID, p.Version, p.UpdatedAt = change.ClientID, p.Version+1, f.At
	return p, secret, nil
}

// checkClientID refuses client ids that could not be sent as id:secret.
func checkClientID(id string) error {
	if len(id) > clientIDBytesMax {
		return fault.New(fault.BadRequest, "client id is %d characters long; at most %d are allowed", len(id), clientIDBytesMax)
	}
	for _, r := range id {
		if r <= 0x20 || r > 0x7e || strings.ContainsRune(`:%+"\`, r) {
			return fault.New(fault.BadRequest, "client id %q must consist of printable characters without blanks, colons, %%, + and quotes", id)
		}
	}
	return nil
}
