package catalog

import (
	"context"
	"time"

	"github.com/google/uuid"

	"catalogd/auth"
	"catalogd/authz"
)

// PrincipalRecord is a principal as stored; its secret is elsewhere.
type PrincipalRecord struct {
	ID         uuid.UUID
	Name       string
	ClientID   string
	Kind       auth.PrincipalKind
	Properties map[string]string
	Version    int64
	CreatedAt  time.Time
	UpdatedAt  time.Time
	// RotationRequired tells that the present secret is good for nothing but replacing itself.
	RotationRequired bool
}

// RoleRecord is a principal role, or with a WarehouseID a catalog role.
type RoleRecord struct {
	ID          uuid.UUID
	WarehouseID uuid.UUID // uuid.Nil for principal roles
	Name        string
	Properties  map[string]string
	Federated   bool
	Version     int64
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// RoleGrant is a grant of a catalog role, with its securable's name for answers.
type RoleGrant struct {
	Privilege authz.Privilege
	Kind      authz.SecurableKind
	ID        uuid.UUID
	Namespace Namespace // of a namespace or of a table's
	Name      string    // of a table or view
}

// SecretChange is a principal's new secret.
type SecretChange struct {
	PrincipalID uuid.UUID
	ClientID    string // a new one; "" keeps the old
	Secret      auth.StoredSecret
	// Replaces is the auth.StoredSecret.Mark of the only secret that may be replaced; "" replaces any.
	Replaces string
}

// PrincipalStore keeps principals and their secrets. Names are unique: fault.AlreadyExists; missing: fault.NotFound.
type PrincipalStore interface {
	CreatePrincipal(ctx context.Context, p PrincipalRecord, s auth.StoredSecret, f Fact) error
	FindPrincipal(ctx context.Context, name string) (PrincipalRecord, error)
	ListPrincipals(ctx context.Context) ([]PrincipalRecord, error)
	UpdatePrincipal(ctx context.Context, p PrincipalRecord, f Fact) error
	DropPrincipal(ctx context.Context, id uuid.UUID, f Fact) error
	// ReplaceSecret: fault.Forbidden when Replaces is not the present secret's mark, read under the row's lock.
	ReplaceSecret(ctx context.Context, c SecretChange, f Fact) error
}

// RoleStore keeps principal roles and catalog roles. A WarehouseID of uuid.Nil means principal roles.
type RoleStore interface {
	CreateRole(ctx context.Context, r RoleRecord, f Fact) error
	FindRole(ctx context.Context, warehouseID uuid.UUID, name string) (RoleRecord, error)
	ListRoles(ctx context.Context, warehouseID uuid.UUID) ([]RoleRecord, error)
	UpdateRole(ctx context.Context, r RoleRecord, f Fact) error
	DropRole(ctx context.Context, r RoleRecord, f Fact) error
}

// MemberStore says who has which role.
type MemberStore interface {
	AssignPrincipalRole(ctx context.Context, principalID, roleID uuid.UUID, f Fact) error
	RevokePrincipalRole(ctx context.Context, principalID, roleID uuid.UUID, f Fact) error
	PrincipalRolesOf(ctx context.Context, principalID uuid.UUID) ([]RoleRecord, error)
	PrincipalsWith(ctx context.Context, roleID uuid.UUID) ([]PrincipalRecord, error)
	AssignCatalogRole(ctx context.Context, principalRoleID, catalogRoleID uuid.UUID, f Fact) error
	RevokeCatalogRole(ctx context.Context, principalRoleID, catalogRoleID uuid.UUID, f Fact) error
	CatalogRolesOf(ctx context.Context, principalRoleID, warehouseID uuid.UUID) ([]RoleRecord, error)
	PrincipalRolesWith(ctx context.Context, catalogRoleID uuid.UUID) ([]RoleRecord, error)
}

// GrantStore keeps grants of catalog roles.
type GrantStore interface {
	// AddGrant is idempotent.
	AddGrant(ctx context.Context, role RoleRecord, g RoleGrant, f Fact) error
	// RevokeGrant is idempotent.
	RevokeGrant(ctx context.Context, role RoleRecord, g RoleGrant, f Fact) error
	ListGrants(ctx context.Context, role RoleRecord) ([]RoleGrant, error)
}

// AdminStore is what the management operations need beside Store.
type AdminStore interface {
	PrincipalStore
	RoleStore
	MemberStore
	GrantStore
}
