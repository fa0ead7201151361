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

// GrantKey is a grant's place among those of its role.
type GrantKey struct {
	Namespace Namespace       `json:"n"`
	Name      string          `json:"t"`
	Privilege authz.Privilege `json:"p"`
}

// Key is the grant's place.
func (g RoleGrant) Key() GrantKey { return GrantKey{g.Namespace, g.Name, g.Privilege} }

// GrantOn is a grant on a securable, by who holds it; and its place among those of the securable.
type GrantOn struct {
	Role      string          `json:"r"`
	Privilege authz.Privilege `json:"p"`
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
	ListPrincipals(ctx context.Context, q ListQuery) ([]PrincipalRecord, error)
	UpdatePrincipal(ctx context.Context, p PrincipalRecord, f Fact) error
	DropPrincipal(ctx context.Context, id uuid.UUID, f Fact) error
	// ReplaceSecret: fault.Forbidden when Replaces is not the present secret's mark, read under the row's lock.
	ReplaceSecret(ctx context.Context, c SecretChange, f Fact) error
}

// RoleStore keeps principal roles and catalog roles. A WarehouseID of uuid.Nil means principal roles.
type RoleStore interface {
	CreateRole(ctx context.Context, r RoleRecord, f Fact) error
	FindRole(ctx context.Context, warehouseID uuid.UUID, name string) (RoleRecord, error)
	ListRoles(ctx context.Context, warehouseID uuid.UUID, q ListQuery) ([]RoleRecord, error)
	UpdateRole(ctx context.Context, r RoleRecord, f Fact) error
	DropRole(ctx context.Context, r RoleRecord, f Fact) error
}

// MemberStore says who has which role.
type MemberStore interface {
	AssignPrincipalRole(ctx context.Context, principalID, roleID uuid.UUID, f Fact) error
	RevokePrincipalRole(ctx context.Context, principalID, roleID uuid.UUID, f Fact) error
	PrincipalRolesOf(ctx context.Context, principalID uuid.UUID, q ListQuery) ([]RoleRecord, error)
	PrincipalsWith(ctx context.Context, roleID uuid.UUID, q ListQuery) ([]PrincipalRecord, error)
	AssignCatalogRole(ctx context.Context, principalRoleID, catalogRoleID uuid.UUID, f Fact) error
	RevokeCatalogRole(ctx context.Context, principalRoleID, catalogRoleID uuid.UUID, f Fact) error
	CatalogRolesOf(ctx context.Context, principalRoleID, warehouseID uuid.UUID, q ListQuery) ([]RoleRecord, error)
	PrincipalRolesWith(ctx context.Context, catalogRoleID uuid.UUID, q ListQuery) ([]RoleRecord, error)
}

// GrantStore keeps grants of catalog roles.
type GrantStore interface {
	// AddGrant is idempotent.
	AddGrant(ctx context.Context, role RoleRecord, g RoleGrant, f Fact) error
	// RevokeGrant is idempotent.
	RevokeGrant(ctx context.Context, role RoleRecord, g RoleGrant, f Fact) error
	// ChangeGrants makes all of these changes of catalog roles' grants, those of one grant in their order, each idempotent with its own fact, or none of them.
	ChangeGrants(ctx context.Context, changes []GrantWrite) error
	// ListGrants gives a role's grants behind one, outermost securables first; limit 0 is all of them.
	ListGrants(ctx context.Context, role RoleRecord, behind GrantKey, limit int) ([]RoleGrant, error)
	// ListGrantsOn gives the grants that roles of a warehouse hold on a securable itself, by role and privilege.
	ListGrantsOn(ctx context.Context, warehouseID uuid.UUID, on authz.Securable, behind GrantOn, limit int) ([]GrantOn, error)
}

// HeldGrant is a grant that a principal holds, and by which of its roles: the principal has PrincipalRole, which has
// CatalogRole, which holds the grant. The grant's Role is the last of the two. Both are "" for OWNERSHIP of what the
// principal itself owns.
type HeldGrant struct {
	authz.Grant
	PrincipalRole string
	CatalogRole   string // "" when the principal role itself holds it
}

// HeldRole is a role of a principal: a principal role and, with a CatalogRole, one that this has in a warehouse.
type HeldRole struct{ PrincipalRole, CatalogRole string }

// Holder is a principal that is asked about, with the federated roles that its token brings: nobody else knows them.
type Holder struct {
	ID      uuid.UUID
	Brought []string
}

// Holdings are what a principal holds on the securables of one path, outermost first, and its roles by name: each
// principal role with each of its catalog roles of the path's warehouse, or alone when it has none there.
type Holdings struct {
	Grants []HeldGrant
	Roles  []HeldRole
}

// AccessQuery asks who may: whoever holds all of the wishes, with all its roles.
type AccessQuery struct {
	WarehouseID uuid.UUID // of the paths; uuid.Nil for the service alone
	Wishes      []AccessWish
}

// AccessWish is met by any of the privileges on any element of the path.
type AccessWish struct {
	Privileges []authz.Privilege
	Path       []authz.Securable // root first
}

// Access is somebody who may, and the grants by which, outermost first and at most ChainsMax.
type Access struct {
	Principal string
	By        []HeldGrant
}

// ReachQuery asks for the securables that a principal's roles hold grants on.
type ReachQuery struct {
	Of          Holder
	WarehouseID uuid.UUID // uuid.Nil: of the service and of all warehouses
	// Viewer sees the warehouses on which one of its active roles holds one of ViewerPrivileges; nil sees all.
	Viewer           *auth.Principal
	ViewerPrivileges []authz.Privilege
	After            ReachKey // the zero value for the first page
	Limit            int
}

// ReachKey is a securable's place in the order of Reach: the service first, warehouses by name, and in each what is
// further out before what is in it.
type ReachKey struct {
	Warehouse string              `json:"w"`
	Namespace Namespace           `json:"n"`
	Name      string              `json:"t"` // of a table or view
	Kind      authz.SecurableKind `json:"k"`
}

// Reached is a securable with the grants on it that a principal holds.
type Reached struct {
	Key ReachKey
	By  []HeldGrant
}

// AccessStore answers who holds what. Each method is one statement.
type AccessStore interface {
	// Holdings: a principal that is not there holds nothing.
	Holdings(ctx context.Context, of Holder, warehouseID uuid.UUID, path []authz.Securable) (Holdings, error)
	// WhoCan gives principals by name.
	WhoCan(ctx context.Context, q AccessQuery, p Page) ([]Access, error)
	Reach(ctx context.Context, q ReachQuery) ([]Reached, error)
}

// AdminStore is what the management operations need beside Store.
type AdminStore interface {
	PrincipalStore
	RoleStore
	MemberStore
	GrantStore
	AccessStore
	SigningKeyStore
	ClientKeyStore
	IdentityLinkStore
	TokenStore
	NetworkStore
	OwnerStore
	WebhookStore
}
