package catalog

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"catalogd/auth"
	"catalogd/internal/fault"
)

// Bootstrap says how the first principal is to be made.
type Bootstrap struct {
	Accounts auth.AccountStore
	// Chosen is the credential that the operator chose for root: it holds afterwards. Without one, a new root gets a
	// generated one.
	Chosen Credential
	// Known is what the server itself remembers of an earlier run, when nothing was chosen: when it does not hold any
	// more, a new one is generated. Without either, an existing root keeps what it has.
	Known Credential
}

// Bootstrapped says what was done.
type Bootstrapped struct {
	Created bool // root is new
	Rotated bool // root was there, and its credential was replaced
	// Credential is root's; its secret is "" when only the principal's owner knows it.
	Credential Credential
}

// Bootstrap makes the principal root and the role service_admin with all rights on the service, as far as they are
// not there. It asks nobody's leave and is idempotent; two servers may run it at once. It also gives root back a
// role that was taken away.
func (s *Service) Bootstrap(ctx context.Context, b Bootstrap) (Bootstrapped, error) {
	if (b.Chosen.ClientID == "") != (b.Chosen.Secret == "") {
		return Bootstrapped{}, fault.New(fault.BadRequest, "the root credential must have a client id and a secret, as id:secret")
	}
	if b.Chosen.ClientID != "" {
		if err := checkClientID(b.Chosen.ClientID); err != nil {
			return Bootstrapped{}, err
		}
	}
	if s.Secrets == nil {
		return Bootstrapped{}, errNoSecrets
	}
	root, done, err := s.ensureRoot(ctx, b)
	if err != nil {
		return Bootstrapped{}, err
	}
	role, err := s.ensureServiceAdmin(ctx)
	if err != nil {
		return Bootstrapped{}, err
	}
	f := s.fact(bootstrapCaller(), "bootstrap", root.Name, uuid.Nil, root.ID)
	if err := s.Admin.AssignPrincipalRole(ctx, root.ID, role.ID, f); err != nil {
		return Bootstrapped{}, fmt.Errorf("assign %s: %w", ServiceAdminRole, err)
	}
	return done, nil
}

func (s *Service) ensureRoot(ctx context.Context, b Bootstrap) (PrincipalRecord, Bootstrapped, error) {
	root, err := s.Admin.FindPrincipal(ctx, RootPrincipal)
	if fault.Is(err, fault.NotFound) {
		var done Bootstrapped
		root, done, err = s.createRoot(ctx, b)
		if !fault.Is(err, fault.AlreadyExists) {
			return root, done, err
		}
		// Another server was faster.
		root, err = s.Admin.FindPrincipal(ctx, RootPrincipal)
	}
	if err != nil {
		return PrincipalRecord{}, Bootstrapped{}, fmt.Errorf("find %s: %w", RootPrincipal, err)
	}
	done, err := s.settleRoot(ctx, root, b)
	return root, done, err
}

func (s *Service) createRoot(ctx context.Context, b Bootstrap) (PrincipalRecord, Bootstrapped, error) {
	credential, stored, err := s.rootCredential(ctx, b.Chosen)
	if err != nil {
		return PrincipalRecord{}, Bootstrapped{}, err
	}
	f := s.fact(bootstrapCaller(), "bootstrap", RootPrincipal, uuid.Nil, newID())
	root := PrincipalRecord{
		ID: f.Securable, Name: RootPrincipal, ClientID: credential.ClientID, Kind: auth.Service,
		Properties: map[string]string{}, Version: 1, CreatedAt: f.At, UpdatedAt: f.At,
	}
	if err := s.Admin.CreatePrincipal(ctx, root, stored, f); err != nil {
		return PrincipalRecord{}, Bootstrapped{}, fmt.Errorf("create %s: %w", RootPrincipal, err)
	}
	return root, Bootstrapped{Created: true, Credential: credential}, nil
}

// rootCredential is the chosen credential, else a generated one.
func (s *Service) rootCredential(ctx context.Context, chosen Credential) (Credential, auth.StoredSecret, error) {
	if chosen.Secret != "" {
		stored, err := s.Secrets.StoreChosen(ctx, chosen.Secret)
		if err != nil {
			return chosen, stored, fmt.Errorf("root credential: %w", err)
		}
		return chosen, stored, nil
	}
	credential := Credential{ClientID: auth.NewClientID()}
	var stored auth.StoredSecret
	credential.Secret, stored = s.Secrets.Generate(credential.ClientID)
	return credential, stored, nil
}

// settleRoot makes the wanted credential of an existing root hold, and changes nothing when it does already.
func (s *Service) settleRoot(ctx context.Context, root PrincipalRecord, b Bootstrap) (Bootstrapped, error) {
	wanted := b.Chosen
	if wanted.Secret == "" {
		wanted = b.Known
	}
	if wanted.Secret == "" {
		return Bootstrapped{Credential: Credential{ClientID: root.ClientID}}, nil
	}
	account, err := b.Accounts.FindAccountByID(ctx, root.ID)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return Bootstrapped{}, fmt.Errorf("find the account of %s: %w", RootPrincipal, err)
	}
	if err == nil && account.ClientID == wanted.ClientID {
		holds, err := s.Secrets.Verify(ctx, account.Secret, wanted.Secret)
		if err != nil {
			return Bootstrapped{}, fmt.Errorf("check the root credential: %w", err)
		}
		if holds {
			return Bootstrapped{Credential: wanted}, nil
		}
	}
	credential, stored, err := s.rootCredential(ctx, b.Chosen)
	if err != nil {
		return Bootstrapped{}, err
	}
	f := s.fact(bootstrapCaller(), "bootstrap", root.Name, uuid.Nil, root.ID)
	if err := s.Admin.ReplaceSecret(ctx, SecretChange{PrincipalID: root.ID, ClientID: credential.ClientID, Secret: stored}, f); err != nil {
		return Bootstrapped{}, fmt.Errorf("rotate the root credential: %w", err)
	}
	return Bootstrapped{Rotated: true, Credential: credential}, nil
}

func (s *Service) ensureServiceAdmin(ctx context.Context) (RoleRecord, error) {
	f := s.fact(bootstrapCaller(), "bootstrap", ServiceAdminRole, uuid.Nil, newID())
	role := RoleRecord{
		ID: f.Securable, Name: ServiceAdminRole, Properties: map[string]string{}, Version: 1, CreatedAt: f.At, UpdatedAt: f.At,
	}
	found, err := s.Admin.FindRole(ctx, uuid.Nil, ServiceAdminRole)
	if fault.Is(err, fault.NotFound) {
		found, err = role, s.Admin.CreateRole(ctx, role, f)
		if fault.Is(err, fault.AlreadyExists) {
			found, err = s.Admin.FindRole(ctx, uuid.Nil, ServiceAdminRole)
		}
	}
	if err != nil {
		return RoleRecord{}, fmt.Errorf("make the role %s: %w", ServiceAdminRole, err)
	}
	f = s.fact(bootstrapCaller(), "bootstrap", ServiceAdminRole, uuid.Nil, found.ID)
	if err := s.Admin.AddGrant(ctx, found, rootGrant(), f); err != nil {
		return RoleRecord{}, fmt.Errorf("grant to %s: %w", ServiceAdminRole, err)
	}
	return found, nil
}
