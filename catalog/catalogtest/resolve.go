package catalogtest

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/google/uuid"

	"catalogd/auth"
	"catalogd/authz"
	"catalogd/catalog"
)

// Resolve answers what a request names and what its caller may do there.
func (s *Store) Resolve(ctx context.Context, l catalog.Lookup) (catalog.Resolution, error) {
	var res catalog.Resolution
	err := s.tx(ctx, "Resolve", func(st *state) error {
		res = st.resolve(l)
		return nil
	})
	return res, err
}

func (st *state) resolve(l catalog.Lookup) catalog.Resolution {
	res := catalog.Resolution{Caller: st.callerState(l.Principal)}
	roles := st.activeRoles(l.Principal)
	if w, ok := st.warehouse(l.Warehouse); ok {
		w.Properties = maps.Clone(w.Properties)
		res.Warehouse = &w
		st.resolveNames(&res, l)
		roles = st.withCatalogRoles(roles, w.ID)
	}
	path := res.Path()
	for g := range st.grants {
		name, acts := roles[g.role]
		on := func(e authz.Securable) bool { return e.Kind == g.kind && e.ID == g.securable }
		if acts && slices.ContainsFunc(path, on) {
			res.Grants = append(res.Grants, authz.Grant{Privilege: g.privilege, Kind: g.kind, SecurableID: g.securable, Role: name})
		}
	}
	return res
}

func (st *state) resolveNames(res *catalog.Resolution, l catalog.Lookup) {
	for depth := 1; depth <= len(l.Namespace); depth++ {
		n, ok := st.namespaceAt(res.Warehouse.ID, l.Namespace[:depth])
		if !ok {
			continue
		}
		record := n.NamespaceRecord
		record.Properties = maps.Clone(record.Properties)
		if depth < len(l.Namespace) {
			res.Ancestors = append(res.Ancestors, record)
			continue
		}
		res.Namespace = &record
	}
	if res.Namespace == nil || l.Table == "" {
		return
	}
	t, ok := st.tableAt(res.Namespace.ID, l.Table)
	switch {
	case !ok:
	case t.Kind == catalog.KindView:
		record := t.TableRecord
		res.View = &record
	default:
		record := t.TableRecord
		res.Table = &record
	}
}

func (st *state) warehouse(name string) (catalog.Warehouse, bool) {
	for _, w := range st.warehouses {
		if w.Name == name {
			return w, true
		}
	}
	id, err := uuid.Parse(name)
	if err != nil || id.String() != name {
		return catalog.Warehouse{}, false
	}
	w, ok := st.warehouses[id]
	return w, ok
}

func (st *state) namespaceAt(warehouse uuid.UUID, levels catalog.Namespace) (namespaceRow, bool) {
	for _, n := range st.namespaces {
		if n.warehouse == warehouse && slices.Equal(st.keyOf(warehouse, n.Levels...), st.keyOf(warehouse, levels...)) {
			return n, true
		}
	}
	return namespaceRow{}, false
}

// keyOf gives names as the warehouse compares them.
func (st *state) keyOf(warehouse uuid.UUID, names ...string) []string {
	if st.warehouses[warehouse].FoldsNames {
		return catalog.Namespace(names).Fold()
	}
	return names
}

func (st *state) sameIdent(warehouse uuid.UUID, a, b catalog.Identifier) bool {
	return slices.Equal(st.keyOf(warehouse, a.Key()...), st.keyOf(warehouse, b.Key()...))
}

func (st *state) tableAt(namespace uuid.UUID, name string) (tableRow, bool) {
	warehouse := st.namespaces[namespace].warehouse
	for _, t := range st.tables {
		if t.NamespaceID == namespace && slices.Equal(st.keyOf(warehouse, t.Ident.Name), st.keyOf(warehouse, name)) {
			return t, true
		}
	}
	return tableRow{}, false
}

// activeRoles gives the principal roles that the token makes active and that the principal still has, or that an identity
// provider's token brings, by id.
func (st *state) activeRoles(p auth.Principal) map[uuid.UUID]string {
	active := map[uuid.UUID]string{}
	if p.Kind == auth.System {
		return active
	}
	for m := range st.principalRoles {
		role := st.roles[m.role]
		if m.member == p.ID && (p.Roles.All || slices.Contains(p.Roles.Names, role.Name)) {
			active[m.role] = role.Name
		}
	}
	if _, there := st.principals[p.ID]; !there {
		return active
	}
	for id, role := range st.roles {
		if isBrought(role, p.Roles.ActiveBrought()) {
			active[id] = role.Name
		}
	}
	return active
}

// isBrought tells whether a role is one that identity providers' tokens bring, and among those brought.
func isBrought(r catalog.RoleRecord, brought []string) bool {
	return r.Federated && r.WarehouseID == uuid.Nil && slices.Contains(brought, r.Name)
}

func (st *state) withCatalogRoles(active map[uuid.UUID]string, warehouse uuid.UUID) map[uuid.UUID]string {
	all := maps.Clone(active)
	for m := range st.catalogRoles {
		role := st.roles[m.role]
		if _, ok := active[m.member]; ok && role.WarehouseID == warehouse {
			all[m.role] = role.Name
		}
	}
	return all
}

// ResolveGrants gives the caller's grants on the root, and its state.
func (s *Store) ResolveGrants(ctx context.Context, l catalog.Lookup) (grants []authz.Grant, caller *auth.CallerState, err error) {
	err = s.tx(ctx, "ResolveGrants", func(st *state) error {
		res := st.resolve(catalog.Lookup{Principal: l.Principal})
		grants, caller = res.Grants, res.Caller
		return nil
	})
	return grants, caller, err
}

// ResolveWarehouses gives what a caller may mean who names no warehouse.
func (s *Store) ResolveWarehouses(ctx context.Context, p auth.Principal) (catalog.NamedByNobody, error) {
	var found catalog.NamedByNobody
	err := s.tx(ctx, "ResolveWarehouses", func(st *state) error {
		res := st.resolve(catalog.Lookup{Principal: p})
		found.Caller, found.RootGrants = res.Caller, res.Grants
		roles := st.activeRoles(p)
		for _, w := range slices.SortedFunc(maps.Values(st.warehouses), func(a, b catalog.Warehouse) int { return cmp.Compare(a.Name, b.Name) }) {
			w.Properties = maps.Clone(w.Properties)
			if len(found.All) < 2 {
				found.All = append(found.All, w)
			}
			if len(found.Granted) < 2 && (st.holdsAnyGrant(st.withCatalogRoles(roles, w.ID), w.ID) || st.ownsIn(p, w.ID)) {
				found.Granted = append(found.Granted, w)
			}
		}
		return nil
	})
	return found, err
}

// ownsIn tells whether the principal owns the warehouse, or something in it.
func (st *state) ownsIn(p auth.Principal, warehouse uuid.UUID) bool {
	for on, owner := range st.owners() {
		if _, at, ok := st.placeOf(grantRow{kind: on.Kind, securable: on.ID}); ok && at == warehouse && owns(p, owner) {
			return true
		}
	}
	return false
}

func (st *state) holdsAnyGrant(roles map[uuid.UUID]string, warehouse uuid.UUID) bool {
	for g := range st.grants {
		if _, acts := roles[g.role]; acts && st.roles[g.role].WarehouseID == warehouse {
			return true
		}
	}
	return false
}
