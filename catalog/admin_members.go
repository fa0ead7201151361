package catalog

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"catalogd/authz"
	"catalogd/internal/fault"
)

// PrincipalRoleMember names a principal role and a principal who has it or is to have it.
type PrincipalRoleMember struct {
	Principal string
	Role      string
}

func (m PrincipalRoleMember) subject() string { return m.Principal + " -> " + m.Role }

// AssignPrincipalRole gives a principal a principal role. It is idempotent.
func (s *Service) AssignPrincipalRole(ctx context.Context, c Caller, m PrincipalRoleMember) error {
	n := need{"assign-principal-role", m.subject(), authz.PrincipalRoleManageGrants}
	p, r, err := s.memberAndRole(ctx, c, m, n)
	if err != nil {
		return err
	}
	if r.Federated {
		return fault.New(fault.IllegalArgument, "principal role %s is federated: its members come from the identity provider", m.Role)
	}
	if err := s.Admin.AssignPrincipalRole(ctx, p.ID, r.ID, s.fact(c, n.operation, n.subject, uuid.Nil, p.ID)); err != nil {
		return fmt.Errorf("assign principal role %s to %s: %w", m.Role, m.Principal, err)
	}
	return nil
}

// RevokePrincipalRole takes a principal role from a principal. The last administrator keeps his.
func (s *Service) RevokePrincipalRole(ctx context.Context, c Caller, m PrincipalRoleMember) error {
	n := need{"revoke-principal-role", m.subject(), authz.PrincipalRoleManageGrants}
	p, r, err := s.memberAndRole(ctx, c, m, n, authz.PrincipalManageGrantsForGrantee)
	if err != nil {
		return err
	}
	if err := s.Admin.RevokePrincipalRole(ctx, p.ID, r.ID, s.fact(c, n.operation, n.subject, uuid.Nil, p.ID)); err != nil {
		return fmt.Errorf("revoke principal role %s from %s: %w", m.Role, m.Principal, err)
	}
	return nil
}

// memberAndRole finds a principal and a principal role for callers who hold what n wants and all that is wanted besides.
func (s *Service) memberAndRole(
	ctx context.Context, c Caller, m PrincipalRoleMember, n need, besides ...authz.Privilege,
) (PrincipalRecord, RoleRecord, error) {
	res, err := s.resolveRoot(ctx, c)
	if err != nil {
		return PrincipalRecord{}, RoleRecord{}, err
	}
	for _, wanted := range append([]authz.Privilege{n.wanted}, besides...) {
		if err := s.require(ctx, c, res, res.Path(), need{n.operation, n.subject, wanted}); err != nil {
			return PrincipalRecord{}, RoleRecord{}, err
		}
	}
	p, err := s.Admin.FindPrincipal(ctx, m.Principal)
	if err != nil {
		return PrincipalRecord{}, RoleRecord{}, fmt.Errorf("find principal %s: %w", m.Principal, err)
	}
	r, err := s.roleNamed(ctx, uuid.Nil, m.Role)
	return p, r, err
}

// ListPrincipalRolesOf gives the principal roles of a principal; everybody may ask for himself.
func (s *Service) ListPrincipalRolesOf(ctx context.Context, c Caller, principal string, q ListQuery) ([]RoleRecord, error) {
	p, err := s.principalForSelfToo(ctx, c, need{"list-roles-of-principal", principal, authz.PrincipalListGrants})
	if err != nil {
		return nil, err
	}
	roles, err := s.Admin.PrincipalRolesOf(ctx, p.ID, q)
	if err != nil {
		return nil, fmt.Errorf("list the roles of %s: %w", principal, err)
	}
	return roles, nil
}

// ListPrincipalsWith gives the principals that have a principal role.
func (s *Service) ListPrincipalsWith(ctx context.Context, c Caller, role RoleName, q ListQuery) ([]PrincipalRecord, error) {
	n := need{"list-principals-with-role", role.Name, authz.PrincipalRoleListGrants}
	if err := s.requireOnRoot(ctx, c, n); err != nil {
		return nil, err
	}
	r, err := s.roleNamed(ctx, uuid.Nil, role.Name)
	if err != nil {
		return nil, err
	}
	members, err := s.Admin.PrincipalsWith(ctx, r.ID, q)
	if err != nil {
		return nil, fmt.Errorf("list the principals with %s: %w", role.Name, err)
	}
	return members, nil
}

// CatalogRoleMember names a catalog role and a principal role that has it or is to have it.
type CatalogRoleMember struct {
	Warehouse     string
	CatalogRole   string
	PrincipalRole string
}

func (m CatalogRoleMember) subject() string {
	return m.PrincipalRole + " -> " + m.Warehouse + "/" + m.CatalogRole
}

// AssignCatalogRole gives a principal role a catalog role. It is idempotent.
func (s *Service) AssignCatalogRole(ctx context.Context, c Caller, m CatalogRoleMember) error {
	holder, role, err := s.catalogMember(ctx, c, m, "assign-catalog-role")
	if err != nil {
		return err
	}
	f := s.fact(c, "assign-catalog-role", m.subject(), role.WarehouseID, role.ID)
	if err := s.Admin.AssignCatalogRole(ctx, holder.ID, role.ID, f); err != nil {
		return fmt.Errorf("assign catalog role %s to %s: %w", m.CatalogRole, m.PrincipalRole, err)
	}
	return nil
}

// RevokeCatalogRole takes a catalog role from a principal role.
func (s *Service) RevokeCatalogRole(ctx context.Context, c Caller, m CatalogRoleMember) error {
	holder, role, err := s.catalogMember(ctx, c, m, "revoke-catalog-role")
	if err != nil {
		return err
	}
	f := s.fact(c, "revoke-catalog-role", m.subject(), role.WarehouseID, role.ID)
	if err := s.Admin.RevokeCatalogRole(ctx, holder.ID, role.ID, f); err != nil {
		return fmt.Errorf("revoke catalog role %s from %s: %w", m.CatalogRole, m.PrincipalRole, err)
	}
	return nil
}

func (s *Service) catalogMember(ctx context.Context, c Caller, m CatalogRoleMember, operation string) (holder, role RoleRecord, err error) {
	w, err := s.requireOnWarehouse(ctx, c, m.Warehouse, need{operation, m.subject(), authz.CatalogRoleManageGrants})
	if err != nil {
		return holder, role, err
	}
	if role, err = s.roleNamed(ctx, w.ID, m.CatalogRole); err != nil {
		return holder, role, err
	}
	holder, err = s.roleNamed(ctx, uuid.Nil, m.PrincipalRole)
	return holder, role, err
}

// ListCatalogRolesOf gives the catalog roles that m's principal role has in m's warehouse. Administrators of the
// service may ask, and those of the warehouse.
func (s *Service) ListCatalogRolesOf(ctx context.Context, c Caller, m CatalogRoleMember, q ListQuery) ([]RoleRecord, error) {
	res, err := s.resolve(ctx, c, Lookup{Warehouse: m.Warehouse})
	if err != nil {
		return nil, err
	}
	if !allowed(res, res.Path()[:1], authz.PrincipalRoleListGrants) {
		n := need{"list-catalog-roles-of-holder", m.subject(), authz.CatalogRoleListGrants}
		if err := s.require(ctx, c, res, res.Path(), n); err != nil {
			return nil, err
		}
	}
	holder, err := s.roleNamed(ctx, uuid.Nil, m.PrincipalRole)
	if err != nil {
		return nil, err
	}
	roles, err := s.Admin.CatalogRolesOf(ctx, holder.ID, res.Warehouse.ID, q)
	if err != nil {
		return nil, fmt.Errorf("list the catalog roles of %s: %w", m.PrincipalRole, err)
	}
	return roles, nil
}

// ListPrincipalRolesWith gives the principal roles that have a catalog role.
func (s *Service) ListPrincipalRolesWith(ctx context.Context, c Caller, n RoleName, q ListQuery) ([]RoleRecord, error) {
	role, err := s.grantee(ctx, c, n, "list-holders-of-catalog-role", authz.CatalogRoleListGrants)
	if err != nil {
		return nil, err
	}
	holders, err := s.Admin.PrincipalRolesWith(ctx, role.ID, q)
	if err != nil {
		return nil, fmt.Errorf("list who has %s: %w", n.Name, err)
	}
	return holders, nil
}

// grantee finds a catalog role for callers who hold the privilege on its warehouse.
func (s *Service) grantee(ctx context.Context, c Caller, n RoleName, operation string, wanted authz.Privilege) (RoleRecord, error) {
	w, err := s.requireOnWarehouse(ctx, c, n.Warehouse, need{operation, n.subject(), wanted})
	if err != nil {
		return RoleRecord{}, err
	}
	return s.roleNamed(ctx, w.ID, n.Name)
}
