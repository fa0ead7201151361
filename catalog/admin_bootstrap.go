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
	// ClientID and Secret are the credential that the operator chose for root; both "" means that one is generated
	// when root is new, and that an existing root keeps what it has.
	ClientID string
	Secret   auth.Secret
}

// Bootstrapped says what was done.
type Bootstrapped struct {
	Created bool // root is new
	Rotated bool // root was there, and the chosen credential replaced another one
	// ClientID is root's. Secret is what was generated or chosen, "" when nobody but its owner knows it.
	ClientID string
	Secret   auth.Secret
}

// Bootstrap makes the principal root and the role service_admin with all rights on the service, as far as they are
// not there. It asks nobody's leave and is idempotent; two servers may run it at once. It also gives root back a
// role that was taken away.
func (s *Service) Bootstrap(ctx context.Context, b Bootstrap) (Bootstrapped, error) {
	if (b.ClientID == "") != (b.Secret == "") {
		return Bootstrapped{}, fault.New(fault.BadRequest, "the root credential must have a client id and a secret, as id:secret")
	}
	if b.ClientID != "" {
		if err := checkClientID(b.ClientID); err != nil {
			return Bootstrapped{}, err
		}
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
	if b.Secret == "" {
		return root, Bootstrapped{ClientID: root.ClientID}, nil
	}
	rotated, err := s.rotateRoot(ctx, root, b)
	return root, Bootstrapped{Rotated: rotated, ClientID: b.ClientID, Secret: b.Secret}, err
}

func (s *Service) createRoot(ctx context.Context, b Bootstrap) (PrincipalRecord, Bootstrapped, error) {
	done := Bootstrapped{Created: true, ClientID: b.ClientID, Secret: b.Secret}
	var stored auth.StoredSecret
	var err error
	if b.Secret == "" {
		done.ClientID = auth.NewClientID()
		done.Secret, stored = s.Secrets.Generate(done.ClientID)
	} else if stored, err = s.Secrets.StoreChosen(ctx, b.Secret); err != nil {
		return PrincipalRecord{}, Bootstrapped{}, fmt.Errorf("root credential: %w", err)
	}
	f := s.fact(bootstrapCaller(), "bootstrap", RootPrincipal, uuid.Nil, newID())
	root := PrincipalRecord{
		ID: f.Securable, Name: RootPrincipal, ClientID: done.ClientID, Kind: auth.Service,
		Properties: map[string]string{}, Version: 1, CreatedAt: f.At, UpdatedAt: f.At,
	}
	if err := s.Admin.CreatePrincipal(ctx, root, stored, f); err != nil {
		return PrincipalRecord{}, Bootstrapped{}, fmt.Errorf("create %s: %w", RootPrincipal, err)
	}
	return root, done, nil
}

// rotateRoot replaces root's credential by the chosen one unless it is that already.
func (s *Service) rotateRoot(ctx context.Context, root PrincipalRecord, b Bootstrap) (bool, error) {
	account, err := b.Accounts.FindAccountByID(ctx, root.ID)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return false, fmt.Errorf("find the account of %s: %w", RootPrincipal, err)
	}
	if err == nil && account.ClientID == b.ClientID {
		same, err := s.Secrets.Verify(ctx, account.Secret, b.Secret)
		if err != nil {
			return false, fmt.Errorf("check the root credential: %w", err)
		}
		if same {
			return false, nil
		}
	}
	stored, err := s.Secrets.StoreChosen(ctx, b.Secret)
	if err != nil {
		return false, fmt.Errorf("root credential: %w", err)
	}
	f := s.fact(bootstrapCaller(), "bootstrap", root.Name, uuid.Nil, root.ID)
	if err := s.Admin.ReplaceSecret(ctx, root.ID, b.ClientID, stored, f); err != nil {
		return false, fmt.Errorf("rotate the root credential: %w", err)
	}
	return true, nil
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
