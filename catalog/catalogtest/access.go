package catalogtest

import (
	"cmp"
	"context"
	"slices"

	"github.com/google/uuid"

	"catalogd/authz"
	"catalogd/catalog"
)

// heldRole is a role of a principal and the names by which it has it.
type heldRole struct {
	id, warehouse uuid.UUID // warehouse is uuid.Nil for principal roles
	catalog.HeldRole
}

// heldRoles gives all roles of a principal, with those that its token brings.
func (st *state) heldRoles(of catalog.Holder) []heldRole {
	holding := map[uuid.UUID]bool{}
	for m := range st.principalRoles {
		holding[m.role] = holding[m.role] || m.member == of.ID
	}
	var held []heldRole
	for id, holder := range st.roles {
		if !holding[id] && !isBrought(holder, of.Brought) {
			continue
		}
		held = append(held, heldRole{id: holder.ID, HeldRole: catalog.HeldRole{PrincipalRole: holder.Name}})
		for c := range st.catalogRoles {
			if role := st.roles[c.role]; c.member == holder.ID {
				held = append(held, heldRole{role.ID, role.WarehouseID, catalog.HeldRole{PrincipalRole: holder.Name, CatalogRole: role.Name}})
			}
		}
	}
	slices.SortFunc(held, func(a, b heldRole) int { return compareRoles(a.HeldRole, b.HeldRole) })
	return held
}

func compareRoles(a, b catalog.HeldRole) int {
	return cmp.Or(cmp.Compare(a.PrincipalRole, b.PrincipalRole), cmp.Compare(a.CatalogRole, b.CatalogRole))
}

func (r heldRole) grant(g grantRow) catalog.HeldGrant {
	return catalog.HeldGrant{
		Grant:         authz.Grant{Privilege: g.privilege, Kind: g.kind, SecurableID: g.securable, Role: cmp.Or(r.CatalogRole, r.PrincipalRole)},
		PrincipalRole: r.PrincipalRole, CatalogRole: r.CatalogRole,
	}
}

// grantsOn gives what the roles hold on the securable.
func (st *state) grantsOn(on authz.Securable, roles []heldRole) []catalog.HeldGrant {
	var held []catalog.HeldGrant
	for _, r := range roles {
		for g := range st.grants {
			if g.role == r.id && g.kind == on.Kind && g.securable == on.ID {
				held = append(held, r.grant(g))
			}
		}
	}
	slices.SortFunc(held, func(a, b catalog.HeldGrant) int {
		return cmp.Or(cmp.Compare(a.PrincipalRole, b.PrincipalRole), cmp.Compare(a.CatalogRole, b.CatalogRole), cmp.Compare(a.Privilege, b.Privilege))
	})
	return held
}

// heldOn gives what a principal's roles hold on a path, outermost first, and its roles in the path's warehouse.
func (st *state) heldOn(of catalog.Holder, warehouse uuid.UUID, path []authz.Securable) (held catalog.Holdings) {
	roles := slices.DeleteFunc(st.heldRoles(of), func(r heldRole) bool { return r.warehouse != uuid.Nil && r.warehouse != warehouse })
	for _, r := range roles {
		held.Roles = append(held.Roles, r.HeldRole)
	}
	for _, on := range path {
		if st.owners()[bare(on)] == of.ID && on.Kind != authz.Root {
			held.Grants = append(held.Grants, ownership(on))
		}
		held.Grants = append(held.Grants, st.grantsOn(on, roles)...)
	}
	return held
}

// Holdings gives what a principal holds on the securables of a path.
func (s *Store) Holdings(ctx context.Context, of catalog.Holder, warehouseID uuid.UUID, path []authz.Securable) (catalog.Holdings, error) {
	var held catalog.Holdings
	err := s.tx(ctx, "Holdings", func(st *state) error {
		held = st.heldOn(of, warehouseID, path)
		return nil
	})
	return held, err
}

// WhoCan gives the principals that hold what is wished for.
func (s *Store) WhoCan(ctx context.Context, q catalog.AccessQuery, p catalog.Page) ([]catalog.Access, error) {
	var who []catalog.Access
	err := s.tx(ctx, "WhoCan", func(st *state) error {
		for id, principal := range st.principals {
			if by, may := st.meets(id, q); may && principal.Name > p.After {
				who = append(who, catalog.Access{Principal: principal.Name, By: by[:min(len(by), catalog.ChainsMax)]})
			}
		}
		slices.SortFunc(who, func(a, b catalog.Access) int { return cmp.Compare(a.Principal, b.Principal) })
		if p.Limit > 0 {
			who = who[:min(len(who), p.Limit)]
		}
		return nil
	})
	return who, err
}

// meets tells whether a principal holds all that is wished for, and by which grants.
func (st *state) meets(principal uuid.UUID, q catalog.AccessQuery) (by []catalog.HeldGrant, may bool) {
	var longest []authz.Securable
	for _, w := range q.Wishes {
		if len(w.Path) > len(longest) {
			longest = w.Path
		}
	}
	met := map[int]bool{}
	for _, g := range st.heldOn(catalog.Holder{ID: principal}, q.WarehouseID, longest).Grants {
		counts := false
		for i, w := range q.Wishes {
			on := func(e authz.Securable) bool { return e.Kind == g.Kind && e.ID == g.SecurableID }
			if slices.Contains(w.Privileges, g.Privilege) && slices.ContainsFunc(w.Path, on) {
				met[i], counts = true, true
			}
		}
		if counts {
			by = append(by, g)
		}
	}
	return by, len(met) == len(q.Wishes)
}

// Reach gives the securables that a principal's roles hold grants on.
func (s *Store) Reach(ctx context.Context, q catalog.ReachQuery) ([]catalog.Reached, error) {
	var found []catalog.Reached
	err := s.tx(ctx, "Reach", func(st *state) error {
		found = st.reach(q)
		return nil
	})
	return found, err
}

func (st *state) reach(q catalog.ReachQuery) []catalog.Reached {
	roles, at := st.heldRoles(q.Of), map[authz.Securable]catalog.ReachKey{}
	for g := range st.grants {
		if key, warehouse, ok := st.placeOf(g); ok && st.sees(q, warehouse) {
			at[authz.Securable{Kind: g.kind, ID: g.securable, Name: warehouse.String()}] = key
		}
	}
	for on, owner := range st.owners() {
		if owner != q.Of.ID {
			continue
		}
		if key, warehouse, ok := st.placeOf(grantRow{kind: on.Kind, securable: on.ID}); ok && st.sees(q, warehouse) {
			at[authz.Securable{Kind: on.Kind, ID: on.ID, Name: warehouse.String()}] = key
		}
	}
	var found []catalog.Reached
	for on, key := range at {
		acting := slices.DeleteFunc(slices.Clone(roles), func(r heldRole) bool {
			return r.warehouse != uuid.Nil && r.warehouse.String() != on.Name && key.Kind != authz.Root
		})
		by := st.grantsOn(on, acting)
		if st.owners()[bare(on)] == q.Of.ID {
			by = append([]catalog.HeldGrant{ownership(on)}, by...)
		}
		if len(by) > 0 && compareKeys(key, q.After) > 0 {
			found = append(found, catalog.Reached{Key: key, By: by})
		}
	}
	slices.SortFunc(found, func(a, b catalog.Reached) int { return compareKeys(a.Key, b.Key) })
	if q.Limit > 0 {
		found = found[:min(len(found), q.Limit)]
	}
	return found
}

func compareKeys(a, b catalog.ReachKey) int {
	return cmp.Or(cmp.Compare(a.Warehouse, b.Warehouse), slices.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
}

// placeOf says where a grant's securable is; uuid.Nil for the service.
func (st *state) placeOf(g grantRow) (key catalog.ReachKey, warehouse uuid.UUID, ok bool) {
	shown, ok := st.shownGrant(g)
	key = catalog.ReachKey{Namespace: shown.Namespace, Name: shown.Name, Kind: g.kind}
	switch g.kind {
	case authz.Catalog:
		warehouse = g.securable
	case authz.Namespace:
		warehouse = st.namespaces[g.securable].warehouse
	case authz.Table, authz.View:
		warehouse = st.tables[g.securable].warehouse
	}
	w, there := st.warehouses[warehouse]
	key.Warehouse = w.Name
	return key, warehouse, ok && (there || g.kind == authz.Root)
}

// sees tells whether what is in the warehouse is asked for and may be shown.
func (st *state) sees(q catalog.ReachQuery, warehouse uuid.UUID) bool {
	switch {
	case q.WarehouseID != uuid.Nil && q.WarehouseID != warehouse:
		return false
	case q.Viewer == nil || warehouse == uuid.Nil:
		return true
	}
	viewing := st.withCatalogRoles(st.activeRoles(*q.Viewer), warehouse)
	for _, p := range q.ViewerPrivileges {
		for role := range viewing {
			if st.grants[grantRow{role, authz.Catalog, warehouse, p}] {
				return true
			}
		}
	}
	return false
}
