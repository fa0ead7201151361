package catalogtest

import (
	"context"

	"github.com/google/uuid"

	"catalogd/auth"
	"catalogd/authz"
	"catalogd/catalog"
	"catalogd/internal/fault"
)

// SetOwner gives something another owner.
func (s *Store) SetOwner(ctx context.Context, c catalog.OwnerChange) error {
	return s.tx(ctx, "SetOwner", func(st *state) error {
		if _, ok := st.principals[c.Owner]; !ok && c.Owner != uuid.Nil {
			return fault.New(fault.NotFound, "the principal no longer exists")
		}
		w, isWarehouse := st.warehouses[c.On.ID]
		n, isNamespace := st.namespaces[c.On.ID]
		t, isTable := st.tables[c.On.ID]
		switch {
		case isWarehouse && c.On.Kind == authz.Catalog:
			w.OwnerID = c.Owner
			st.warehouses[w.ID] = w
		case isNamespace && c.On.Kind == authz.Namespace:
			n.OwnerID = c.Owner
			st.namespaces[n.ID] = n
		case isTable:
			t.OwnerID = c.Owner
			st.tables[t.ID] = t
		default:
			return fault.New(fault.NotFound, "%s no longer exists", c.On)
		}
		return st.write(c.Fact)
	})
}

// FindPrincipalName gives the name of a principal.
func (s *Store) FindPrincipalName(ctx context.Context, id uuid.UUID) (string, error) {
	var name string
	err := s.tx(ctx, "FindPrincipalName", func(st *state) error {
		p, ok := st.principals[id]
		if !ok {
			return fault.New(fault.NotFound, "the principal no longer exists")
		}
		name = p.Name
		return nil
	})
	return name, err
}

// bare takes the name off a securable.
func bare(on authz.Securable) authz.Securable { return authz.Securable{Kind: on.Kind, ID: on.ID} }

// owners gives who owns what, by kind and id; the securables' names are empty.
func (st *state) owners() map[authz.Securable]uuid.UUID {
	owners := map[authz.Securable]uuid.UUID{}
	for id, w := range st.warehouses {
		owners[authz.Securable{Kind: authz.Catalog, ID: id}] = w.OwnerID
	}
	for id, n := range st.namespaces {
		owners[authz.Securable{Kind: authz.Namespace, ID: id}] = n.OwnerID
	}
	for id, t := range st.tables {
		owners[authz.Securable{Kind: authz.SecurableKind(t.Kind), ID: id}] = t.OwnerID
	}
	return owners
}

// owns tells whether the principal owns it, and by a token that counts it.
func owns(p auth.Principal, owner uuid.UUID) bool {
	return owner != uuid.Nil && owner == p.ID && p.Roles.All && p.Kind != auth.System
}

// ownership is the grant of an owner.
func ownership(on authz.Securable) catalog.HeldGrant {
	return catalog.HeldGrant{Grant: authz.Grant{Privilege: authz.Ownership, Kind: on.Kind, SecurableID: on.ID}}
}
