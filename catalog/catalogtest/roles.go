package catalogtest

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/google/uuid"

	"catalogd/authz"
	"catalogd/catalog"
	"catalogd/internal/fault"
)

func roleKind(warehouse uuid.UUID) string {
	if warehouse != uuid.Nil {
		return "Catalog role"
	}
	return "Principal role"
}

// CreateRole makes a principal role or, in a warehouse, a catalog role.
func (s *Store) CreateRole(ctx context.Context, r catalog.RoleRecord, f catalog.Fact) error {
	return s.tx(ctx, "CreateRole", func(st *state) error {
		if _, ok := st.warehouses[r.WarehouseID]; r.WarehouseID != uuid.Nil && !ok {
			return fault.New(fault.NoSuchWarehouse, "Warehouse does not exist")
		}
		if _, taken := st.roleNamed(r.WarehouseID, r.Name); taken {
			return fault.New(fault.AlreadyExists, "%s already exists", roleKind(r.WarehouseID))
		}
		r.Properties, r.Version, r.UpdatedAt = orEmpty(r.Properties), 1, r.CreatedAt
		st.roles[r.ID] = r
		return st.write(f)
	})
}

func (st *state) roleNamed(warehouse uuid.UUID, name string) (catalog.RoleRecord, bool) {
	for _, r := range st.roles {
		if r.WarehouseID == warehouse && r.Name == name {
			return r, true
		}
	}
	return catalog.RoleRecord{}, false
}

// FindRole gives a role by name.
func (s *Store) FindRole(ctx context.Context, warehouseID uuid.UUID, name string) (catalog.RoleRecord, error) {
	var found catalog.RoleRecord
	err := s.tx(ctx, "FindRole", func(st *state) error {
		r, ok := st.roleNamed(warehouseID, name)
		if !ok {
			return fault.New(fault.NotFound, "%s does not exist: %s", roleKind(warehouseID), name)
		}
		found = r
		found.Properties = maps.Clone(r.Properties)
		return nil
	})
	return found, err
}

// ListRoles gives all principal roles, or the catalog roles of a warehouse, by name.
func (s *Store) ListRoles(ctx context.Context, warehouseID uuid.UUID, q catalog.ListQuery) ([]catalog.RoleRecord, error) {
	return s.listRoles(ctx, "ListRoles", q, func(_ *state, r catalog.RoleRecord) bool { return r.WarehouseID == warehouseID })
}

func (s *Store) listRoles(ctx context.Context, method string, q catalog.ListQuery, wanted func(*state, catalog.RoleRecord) bool) ([]catalog.RoleRecord, error) {
	var found []catalog.RoleRecord
	err := s.tx(ctx, method, func(st *state) error {
		for _, r := range st.roles {
			if wanted(st, r) {
				r.Properties = maps.Clone(r.Properties)
				found = append(found, r)
			}
		}
		found = wantedOf(found, q, func(r catalog.RoleRecord) string { return r.Name })
		return nil
	})
	return found, err
}

// UpdateRole replaces the properties of the version that r names.
func (s *Store) UpdateRole(ctx context.Context, r catalog.RoleRecord, f catalog.Fact) error {
	return s.tx(ctx, "UpdateRole", func(st *state) error {
		row, ok := st.roles[r.ID]
		if !ok {
			return fault.New(fault.NotFound, "%s does not exist: %s", roleKind(r.WarehouseID), r.Name)
		}
		if row.Version != r.Version {
			return changedMeanwhile(roleKind(r.WarehouseID), r.Name)
		}
		row.Properties, row.Version, row.UpdatedAt = orEmpty(r.Properties), row.Version+1, f.At
		st.roles[r.ID] = row
		return st.write(f)
	})
}

// DropRole removes a role with its memberships and grants.
func (s *Store) DropRole(ctx context.Context, r catalog.RoleRecord, f catalog.Fact) error {
	return s.tx(ctx, "DropRole", func(st *state) error {
		return st.keepingAdministrators(func() error {
			if _, ok := st.roles[r.ID]; !ok {
				return fault.New(fault.NotFound, "%s does not exist: %s", roleKind(r.WarehouseID), r.Name)
			}
			st.dropRole(r.ID)
			return st.write(f)
		})
	})
}

func (st *state) dropRole(id uuid.UUID) {
	delete(st.roles, id)
	gone := func(m membership, _ bool) bool { return m.member == id || m.role == id }
	maps.DeleteFunc(st.principalRoles, gone)
	maps.DeleteFunc(st.catalogRoles, gone)
	maps.DeleteFunc(st.grants, func(g grantRow, _ bool) bool { return g.role == id })
}

func (st *state) dropGrantsOn(securable uuid.UUID) {
	maps.DeleteFunc(st.grants, func(g grantRow, _ bool) bool { return g.securable == securable })
}

func gone() error {
	return fault.New(fault.NotFound, "the role, or who was to have it, no longer exists")
}

// AssignPrincipalRole gives a principal a role; a repeat leaves no fact.
func (s *Store) AssignPrincipalRole(ctx context.Context, principalID, roleID uuid.UUID, f catalog.Fact) error {
	return s.tx(ctx, "AssignPrincipalRole", func(st *state) error {
		_, principal := st.principals[principalID]
		if role, ok := st.roles[roleID]; !ok || !principal || role.WarehouseID != uuid.Nil {
			return gone()
		}
		return st.assign(st.principalRoles, membership{principalID, roleID}, f)
	})
}

func (st *state) assign(members map[membership]bool, m membership, f catalog.Fact) error {
	if members[m] {
		return nil
	}
	members[m] = true
	return st.write(f)
}

// RevokePrincipalRole takes a role from a principal.
func (s *Store) RevokePrincipalRole(ctx context.Context, principalID, roleID uuid.UUID, f catalog.Fact) error {
	return s.tx(ctx, "RevokePrincipalRole", func(st *state) error {
		return st.keepingAdministrators(func() error {
			m := membership{principalID, roleID}
			if !st.principalRoles[m] {
				return fault.New(fault.NotFound, "the principal does not have this role")
			}
			delete(st.principalRoles, m)
			return st.write(f)
		})
	})
}

// PrincipalRolesOf gives the roles of a principal.
func (s *Store) PrincipalRolesOf(ctx context.Context, principalID uuid.UUID, q catalog.ListQuery) ([]catalog.RoleRecord, error) {
	return s.listRoles(ctx, "PrincipalRolesOf", q, func(st *state, r catalog.RoleRecord) bool {
		return st.principalRoles[membership{principalID, r.ID}]
	})
}

// PrincipalsWith gives who has a principal role.
func (s *Store) PrincipalsWith(ctx context.Context, roleID uuid.UUID, q catalog.ListQuery) ([]catalog.PrincipalRecord, error) {
	return s.listPrincipals(ctx, "PrincipalsWith", q, func(st *state, id uuid.UUID) bool {
		return st.principalRoles[membership{id, roleID}]
	})
}

// AssignCatalogRole gives a principal role a catalog role; a repeat leaves no fact.
func (s *Store) AssignCatalogRole(ctx context.Context, principalRoleID, catalogRoleID uuid.UUID, f catalog.Fact) error {
	return s.tx(ctx, "AssignCatalogRole", func(st *state) error {
		member, ok := st.roles[principalRoleID]
		role, okRole := st.roles[catalogRoleID]
		if !ok || !okRole || member.WarehouseID != uuid.Nil || role.WarehouseID == uuid.Nil {
			return gone()
		}
		return st.assign(st.catalogRoles, membership{principalRoleID, catalogRoleID}, f)
	})
}

// RevokeCatalogRole takes a catalog role from a principal role.
func (s *Store) RevokeCatalogRole(ctx context.Context, principalRoleID, catalogRoleID uuid.UUID, f catalog.Fact) error {
	return s.tx(ctx, "RevokeCatalogRole", func(st *state) error {
		m := membership{principalRoleID, catalogRoleID}
		if !st.catalogRoles[m] {
			return fault.New(fault.NotFound, "the principal role does not have this catalog role")
		}
		delete(st.catalogRoles, m)
		return st.write(f)
	})
}

// CatalogRolesOf gives the catalog roles that a principal role has in a warehouse.
func (s *Store) CatalogRolesOf(ctx context.Context, principalRoleID, warehouseID uuid.UUID, q catalog.ListQuery) ([]catalog.RoleRecord, error) {
	return s.listRoles(ctx, "CatalogRolesOf", q, func(st *state, r catalog.RoleRecord) bool {
		return r.WarehouseID == warehouseID && st.catalogRoles[membership{principalRoleID, r.ID}]
	})
}

// PrincipalRolesWith gives the principal roles that have a catalog role.
func (s *Store) PrincipalRolesWith(ctx context.Context, catalogRoleID uuid.UUID, q catalog.ListQuery) ([]catalog.RoleRecord, error) {
	return s.listRoles(ctx, "PrincipalRolesWith", q, func(st *state, r catalog.RoleRecord) bool {
		return st.catalogRoles[membership{r.ID, catalogRoleID}]
	})
}

// AddGrant grants a privilege to a role; a repeat leaves no fact.
func (s *Store) AddGrant(ctx context.Context, role catalog.RoleRecord, g catalog.RoleGrant, f catalog.Fact) error {
	return s.tx(ctx, "AddGrant", func(st *state) error { return st.changeGrant(catalog.GrantWrite{Role: role, Grant: g, Fact: f}) })
}

// RevokeGrant takes a grant back; a repeat leaves no fact.
func (s *Store) RevokeGrant(ctx context.Context, role catalog.RoleRecord, g catalog.RoleGrant, f catalog.Fact) error {
	return s.tx(ctx, "RevokeGrant", func(st *state) error {
		return st.changeGrant(catalog.GrantWrite{Role: role, Grant: g, Revoke: true, Fact: f})
	})
}

// ChangeGrants makes all of the changes or none.
func (s *Store) ChangeGrants(ctx context.Context, changes []catalog.GrantWrite) error {
	return s.tx(ctx, "ChangeGrants", func(st *state) error {
		for _, c := range changes {
			if err := st.changeGrant(c); err != nil {
				return err
			}
		}
		return nil
	})
}

func (st *state) changeGrant(c catalog.GrantWrite) error {
	row := grantRow{c.Role.ID, c.Grant.Kind, c.Grant.ID, c.Grant.Privilege}
	if _, ok := st.roles[c.Role.ID]; !ok && !c.Revoke {
		return fault.New(fault.NotFound, "the role no longer exists: %s", c.Role.Name)
	}
	if st.grants[row] != c.Revoke {
		return nil
	}
	if !c.Revoke {
		st.grants[row] = true
		return st.write(c.Fact)
	}
	return st.keepingAdministrators(func() error {
		delete(st.grants, row)
		return st.write(c.Fact)
	})
}

// ListGrants gives what a role holds on what is still there, outermost securables first.
func (s *Store) ListGrants(ctx context.Context, role catalog.RoleRecord, behind catalog.GrantKey, most int) ([]catalog.RoleGrant, error) {
	var grants []catalog.RoleGrant
	err := s.tx(ctx, "ListGrants", func(st *state) error {
		for g := range st.grants {
			if shown, ok := st.shownGrant(g); ok && g.role == role.ID {
				grants = append(grants, shown)
			}
		}
		order := func(a, b catalog.GrantKey) int {
			return cmp.Or(slices.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Privilege, b.Privilege))
		}
		slices.SortFunc(grants, func(a, b catalog.RoleGrant) int { return order(a.Key(), b.Key()) })
		grants = atMost(slices.DeleteFunc(grants, func(g catalog.RoleGrant) bool { return order(g.Key(), behind) <= 0 }), most)
		return nil
	})
	return grants, err
}

// ListGrantsOn gives who holds what on a securable of a warehouse, by role and privilege.
func (s *Store) ListGrantsOn(
	ctx context.Context, warehouseID uuid.UUID, on authz.Securable, behind catalog.GrantOn, most int,
) ([]catalog.GrantOn, error) {
	var grants []catalog.GrantOn
	order := func(a, b catalog.GrantOn) int {
		return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Privilege, b.Privilege))
	}
	err := s.tx(ctx, "ListGrantsOn", func(st *state) error {
		for g := range st.grants {
			role := st.roles[g.role]
			to := catalog.GrantOn{Role: role.Name, Privilege: g.privilege}
			if g.securable == on.ID && g.kind == on.Kind && role.WarehouseID == warehouseID && order(to, behind) > 0 {
				grants = append(grants, to)
			}
		}
		slices.SortFunc(grants, order)
		grants = atMost(grants, most)
		return nil
	})
	return grants, err
}

func (st *state) shownGrant(g grantRow) (catalog.RoleGrant, bool) {
	shown := catalog.RoleGrant{Privilege: g.privilege, Kind: g.kind, ID: g.securable}
	switch g.kind {
	case authz.Namespace:
		n, ok := st.namespaces[g.securable]
		shown.Namespace = n.Levels
		return shown, ok
	case authz.Table, authz.View:
		t, ok := st.tables[g.securable]
		shown.Namespace, shown.Name = t.Ident.Namespace, t.Ident.Name
		return shown, ok && string(t.Kind) == string(g.kind)
	}
	return shown, true
}
