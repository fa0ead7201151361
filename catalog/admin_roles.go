package catalog

import (
	"context"
	"fmt"
	"maps"

	"github.com/google/uuid"

	"catalogd/authz"
	"catalogd/internal/fault"
)

// RoleName names a principal role or, with a warehouse, a catalog role.
type RoleName struct {
	Warehouse string // name of the warehouse; "" for principal roles
	Name      string
}

func (n RoleName) what() string {
	if n.Warehouse == "" {
		return "principal role"
	}
	return "catalog role"
}

func (n RoleName) subject() string {
	if n.Warehouse == "" {
		return n.Name
	}
	return n.Warehouse + "/" + n.Name
}

// roleRight is one right on principal roles and its counterpart on a warehouse's catalog roles.
type roleRight struct {
	verb               string // of the operation: "create" makes create-principal-role and create-catalog-role
	principal, catalog authz.Privilege
}

var (
	roleCreate = roleRight{"create", authz.PrincipalRoleCreate, authz.CatalogRoleCreate}
	roleList   = roleRight{"list", authz.PrincipalRoleList, authz.CatalogRoleList}
	roleLoad   = roleRight{"load", authz.PrincipalRoleReadProperties, authz.CatalogRoleReadProperties}
	roleUpdate = roleRight{"update", authz.PrincipalRoleWriteProperties, authz.CatalogRoleWriteProperties}
	roleDrop   = roleRight{"drop", authz.PrincipalRoleDrop, authz.CatalogRoleDrop}
)

func (r roleRight) operation(n RoleName) string {
	name := r.verb + "-catalog-role"
	if n.Warehouse == "" {
		name = r.verb + "-principal-role"
	}
	if r == roleList {
		name += "s"
	}
	return name
}

// requireForRole checks the right and gives the warehouse's id, uuid.Nil for principal roles.
func (s *Service) requireForRole(ctx context.Context, c Caller, n RoleName, right roleRight) (uuid.UUID, error) {
	wanted := need{right.operation(n), n.subject(), right.principal}
	if n.Warehouse == "" {
		return uuid.Nil, s.requireOnRoot(ctx, c, wanted)
	}
	wanted.wanted = right.catalog
	w, err := s.requireOnWarehouse(ctx, c, n.Warehouse, wanted)
	return w.ID, err
}

// findRole checks the right and finds the role.
func (s *Service) findRole(ctx context.Context, c Caller, n RoleName, right roleRight) (RoleRecord, error) {
	warehouse, err := s.requireForRole(ctx, c, n, right)
	if err != nil {
		return RoleRecord{}, err
	}
	return s.roleNamed(ctx, warehouse, n.Name)
}

func (s *Service) roleNamed(ctx context.Context, warehouse uuid.UUID, name string) (RoleRecord, error) {
	r, err := s.Admin.FindRole(ctx, warehouse, name)
	if err != nil {
		return RoleRecord{}, fmt.Errorf("find role %s: %w", name, err)
	}
	return r, nil
}

// RoleDraft is what a new role is to have. Federated is for principal roles whose members an identity provider names:
// they are not assigned by hand.
type RoleDraft struct {
	Properties map[string]string
	Federated  bool
}

// IsPrincipalRole tells principal roles from catalog roles.
func (r RoleRecord) IsPrincipalRole() bool { return r.WarehouseID == uuid.Nil }

// CreateRole makes a role with nothing granted.
func (s *Service) CreateRole(ctx context.Context, c Caller, n RoleName, draft RoleDraft) (RoleRecord, error) {
	warehouse, err := s.requireForRole(ctx, c, n, roleCreate)
	if err != nil {
		return RoleRecord{}, err
	}
	if err := checkAdminName(n.what()+" name", n.Name); err != nil {
		return RoleRecord{}, err
	}
	if n.Name == allRolesWord {
		return RoleRecord{}, fault.New(fault.BadRequest, "%s name %q is refused: in scopes it means all roles", n.what(), n.Name)
	}
	f := s.fact(c, roleCreate.operation(n), n.subject(), warehouse, newID())
	r := RoleRecord{
		ID: f.Securable, WarehouseID: warehouse, Name: n.Name, Properties: maps.Clone(draft.Properties),
		Federated: draft.Federated && warehouse == uuid.Nil, Version: 1, CreatedAt: f.At, UpdatedAt: f.At,
	}
	if err := s.Admin.CreateRole(ctx, r, f); err != nil {
		return RoleRecord{}, fmt.Errorf("create role %s: %w", n.Name, err)
	}
	return r, nil
}

// ListRoles gives principal roles, or catalog roles of the warehouse, by name.
func (s *Service) ListRoles(ctx context.Context, c Caller, warehouse string, q ListQuery) ([]RoleRecord, error) {
	id, err := s.requireForRole(ctx, c, RoleName{Warehouse: warehouse, Name: "all roles"}, roleList)
	if err != nil {
		return nil, err
	}
	all, err := s.Admin.ListRoles(ctx, id, q)
	if err != nil {
		return nil, fmt.Errorf("list roles: %w", err)
	}
	return all, nil
}

// FindRole gives one role.
func (s *Service) FindRole(ctx context.Context, c Caller, n RoleName) (RoleRecord, error) {
	return s.findRole(ctx, c, n, roleLoad)
}

// UpdateRole replaces a role's properties.
func (s *Service) UpdateRole(ctx context.Context, c Caller, n RoleName, u Update) (RoleRecord, error) {
	r, err := s.findRole(ctx, c, n, roleUpdate)
	if err != nil {
		return RoleRecord{}, err
	}
	if err := checkUpdate(n.what(), n.Name, u, r.Version); err != nil {
		return RoleRecord{}, err
	}
	if u.Properties != nil {
		r.Properties = u.Properties
	}
	f := s.fact(c, roleUpdate.operation(n), n.subject(), r.WarehouseID, r.ID)
	if err := s.Admin.UpdateRole(ctx, r, f); err != nil {
		return RoleRecord{}, fmt.Errorf("update role %s: %w", n.Name, err)
	}
	r.Version, r.UpdatedAt = r.Version+1, f.At
	return r, nil
}

// DropRole removes a role with what it holds. The roles that every installation and every warehouse has stay; one that holds something on
// the service is dropped by who administers the service alone, and one that administers its warehouse's roles by who administers that.
func (s *Service) DropRole(ctx context.Context, c Caller, n RoleName) error {
	r, err := s.findRole(ctx, c, n, roleDrop)
	if err != nil {
		return err
	}
	if n.Warehouse == "" && r.Name == ServiceAdminRole || n.Warehouse != "" && r.Name == CatalogAdminRole {
		return fault.New(fault.IllegalArgument, "the %s %s cannot be dropped", n.what(), r.Name)
	}
	if err := s.mayHandle(ctx, c, r, need{roleDrop.operation(n), n.subject(), roleDrop.principal}); err != nil {
		return err
	}
	if err := s.Admin.DropRole(ctx, r, s.fact(c, roleDrop.operation(n), n.subject(), r.WarehouseID, r.ID)); err != nil {
		return fmt.Errorf("drop role %s: %w", n.Name, err)
	}
	return nil
}
