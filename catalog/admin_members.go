package catalog

import (
	"context"
	"fmt"
	"slices"

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

// AssignPrincipalRole gives a principal a principal role. It is idempotent. A role that holds something on the service is given by who
// administers the service alone, as what it holds is.
func (s *Service) AssignPrincipalRole(ctx context.Context, c Caller, m PrincipalRoleMember) error {
	n := need{"assign-principal-role", m.subject(), authz.PrincipalRoleManageGrants}
	p, r, err := s.memberAndRole(ctx, c, m, n)
	if err != nil {
		return err
	}
	if err := s.mayHandle(ctx, c, r, n); err != nil {
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

// RevokePrincipalRole takes a principal role from a principal; who may is as of AssignPrincipalRole. The last administrator keeps his.
func (s *Service) RevokePrincipalRole(ctx context.Context, c Caller, m PrincipalRoleMember) error {
	n := need{"revoke-principal-role", m.subject(), authz.PrincipalRoleManageGrants}
	p, r, err := s.memberAndRole(ctx, c, m, n, authz.PrincipalManageGrantsForGrantee)
	if err != nil {
		return err
	}
	if err := s.mayHandle(ctx, c, r, n); err != nil {
		return err
	}
	if err := s.Admin.RevokePrincipalRole(ctx, p.ID, r.ID, s.fact(c, n.operation, n.subject, uuid.Nil, p.ID)); err != nil {
		return fmt.Errorf("revoke principal role %s from %s: %w", m.Role, m.Principal, err)
	}
	return nil
}

// mayHandle refuses to give, to take or to drop a principal role that itself holds something on the service, or a catalog role that
// administers the roles of its warehouse, unless the caller administers the service, or the warehouse: membership gives nothing that a
// grant would not give.
func (s *Service) mayHandle(ctx context.Context, c Caller, r RoleRecord, n need) error {
	// Outermost first: all that the role holds on the service or the warehouse itself is among so many.
	grants, err := s.Admin.ListGrants(ctx, r, GrantKey{}, len(authz.Rows()))
	if err != nil {
		return fmt.Errorf("list the grants of %s: %w", r.Name, err)
	}
	for _, g := range grants {
		switch {
		case r.IsPrincipalRole():
			n.wanted = authz.ServiceManageAccess
			return s.requireOnRoot(ctx, c, n)
		case g.Kind == authz.Catalog && authz.AdministersRoles(g.Privilege):
			n.wanted = authz.CatalogManageAccess
			_, err := s.requireOnWarehouse(ctx, c, r.WarehouseID.String(), n)
			return err
		}
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

// AssignCatalogRole gives a principal role a catalog role. It is idempotent. It takes PRINCIPAL_ROLE_LIST as well when the principal role
// has nothing in the warehouse yet, and is none of the caller's: the answer would tell whether it is there.
func (s *Service) AssignCatalogRole(ctx context.Context, c Caller, m CatalogRoleMember) error {
	n := need{"assign-catalog-role", m.subject(), authz.CatalogRoleManageGrants}
	holder, role, shown, err := s.catalogMember(ctx, c, m, n)
	if err != nil {
		return err
	}
	if !shown {
		return s.requireOnRoot(ctx, c, need{n.operation, n.subject, authz.PrincipalRoleList})
	}
	f := s.fact(c, n.operation, n.subject, role.WarehouseID, role.ID)
	if err := s.Admin.AssignCatalogRole(ctx, holder.ID, role.ID, f); err != nil {
		return fmt.Errorf("assign catalog role %s to %s: %w", m.CatalogRole, m.PrincipalRole, err)
	}
	return nil
}

// RevokeCatalogRole takes a catalog role from a principal role.
func (s *Service) RevokeCatalogRole(ctx context.Context, c Caller, m CatalogRoleMember) error {
	n := need{"revoke-catalog-role", m.subject(), authz.CatalogRoleManageGrants}
	holder, role, _, err := s.catalogMember(ctx, c, m, n)
	if err != nil {
		return err
	}
	f := s.fact(c, n.operation, n.subject, role.WarehouseID, role.ID)
	if err := s.Admin.RevokeCatalogRole(ctx, holder.ID, role.ID, f); err != nil {
		return fmt.Errorf("revoke catalog role %s from %s: %w", m.CatalogRole, m.PrincipalRole, err)
	}
	return nil
}

// catalogMember finds both roles, for callers who may give the catalog role. A warehouse's administrators do not learn which principal
// roles there are on the service: one that no right shows them, and that has nothing in their warehouse, is as one that is not there.
func (s *Service) catalogMember(ctx context.Context, c Caller, m CatalogRoleMember, n need) (holder, role RoleRecord, shown bool, err error) {
	res, err := s.resolve(ctx, c, Lookup{Warehouse: m.Warehouse})
	if err == nil {
		err = s.require(ctx, c, res, res.Path(), n)
	}
	if err != nil {
		return holder, role, false, err
	}
	if role, err = s.roleNamed(ctx, res.Warehouse.ID, m.CatalogRole); err != nil {
		return holder, role, false, err
	}
	if err := s.mayHandle(ctx, c, role, n); err != nil {
		return holder, role, false, err
	}
	holder, shown, err = s.shownHolder(ctx, c, res, m.PrincipalRole)
	return holder, role, shown, err
}

// shownHolder finds a principal role that the caller may know of in a warehouse: who lists principal roles knows all of them, everybody
// those that he has, and those that have a role in the warehouse. For others it gives the zero record of a role that nobody has, whether
// it is there or not.
func (s *Service) shownHolder(ctx context.Context, c Caller, res Resolution, name string) (holder RoleRecord, shown bool, err error) {
	holder, err = s.roleNamed(ctx, uuid.Nil, name)
	root := res.Path()[:1]
	if allowed(res, root, authz.PrincipalRoleList) || allowed(res, root, authz.PrincipalRoleListGrants) || err != nil && !fault.Is(err, fault.NotFound) {
		return holder, true, err
	}
	// What is asked is asked of a missing one too, so that time does not tell the two apart.
	own, err := s.Admin.Holdings(ctx, Holder{ID: c.Principal.ID, Brought: c.Principal.Roles.Brought}, uuid.Nil, root)
	if err != nil {
		return RoleRecord{}, false, fmt.Errorf("list the roles of %s: %w", c.Principal.Name, err)
	}
	has := func(r HeldRole) bool { return r.PrincipalRole == name && isActive(c.Principal.Roles, name) }
	there, err := s.Admin.CatalogRolesOf(ctx, holder.ID, res.Warehouse.ID, ListQuery{Page: Page{Limit: 1}})
	if err != nil {
		return RoleRecord{}, false, fmt.Errorf("list the catalog roles of %s: %w", name, err)
	}
	if holder.ID != uuid.Nil && (len(there) > 0 || slices.ContainsFunc(own.Roles, has)) {
		return holder, true, nil
	}
	return RoleRecord{}, false, nil
}

// ListCatalogRolesOf gives the catalog roles that m's principal role has in m's warehouse. Administrators of the
// service may ask, and those of the warehouse; to these a principal role that has none there is as one that does not exist.
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
	holder, _, err := s.shownHolder(ctx, c, res, m.PrincipalRole)
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
