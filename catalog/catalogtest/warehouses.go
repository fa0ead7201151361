package catalogtest

import (
	"context"
	"maps"
	"strings"

	"github.com/google/uuid"

	"catalogd/authz"
	"catalogd/catalog"
	"catalogd/internal/fault"
	"catalogd/vending"
)

func noSuchWarehouse(name string) error {
	return fault.New(fault.NoSuchWarehouse, "Warehouse does not exist: %s", name)
}

// CreateWarehouse makes a warehouse whose base nobody else has, with the catalog role catalog_admin.
func (s *Store) CreateWarehouse(ctx context.Context, w catalog.Warehouse, f catalog.Fact) error {
	return s.tx(ctx, "CreateWarehouse", func(st *state) error {
		if unstorable(w.Name) || unstorableProperties(w.Properties) {
			return badText()
		}
		key := vending.Key(w.Location)
		meets := st.meetsBase(key, w.ID)
		for at := range st.locations {
			meets = meets || strings.HasPrefix(at, key) || strings.HasPrefix(key, at)
		}
		if meets {
			return fault.New(fault.BadRequest, "the base location %s overlaps another warehouse's: choose another one", w.Location)
		}
		for _, other := range st.warehouses {
			if other.Name == w.Name {
				return fault.New(fault.AlreadyExists, "Warehouse already exists: %s", w.Name)
			}
		}
		w.Properties, w.Version, w.CreatedAt, w.UpdatedAt = maps.Clone(w.Properties), 1, f.At, f.At
		if w.Properties == nil {
			w.Properties = map[string]string{}
		}
		st.warehouses[w.ID] = w
		admin := catalog.RoleRecord{
			ID: uuid.New(), WarehouseID: w.ID, Name: "catalog_admin", Properties: map[string]string{}, Version: 1,
			CreatedAt: f.At, UpdatedAt: f.At,
		}
		st.roles[admin.ID] = admin
		for _, p := range []authz.Privilege{authz.CatalogManageAccess, authz.CatalogManageMetadata, authz.CatalogManageContent} {
			st.grants[grantRow{admin.ID, authz.Catalog, w.ID, p}] = true
		}
		for _, r := range st.roles {
			if r.WarehouseID == uuid.Nil && r.Name == "service_admin" {
				st.catalogRoles[membership{member: r.ID, role: admin.ID}] = true
			}
		}
		return st.write(f)
	})
}

// FindWarehouse finds a warehouse by its name.
func (s *Store) FindWarehouse(ctx context.Context, name string) (catalog.Warehouse, error) {
	var found catalog.Warehouse
	err := s.tx(ctx, "FindWarehouse", func(st *state) error {
		for _, w := range st.warehouses {
			if w.Name == name {
				found = w
				found.Properties = maps.Clone(w.Properties)
				return nil
			}
		}
		return noSuchWarehouse(name)
	})
	return found, err
}

// ListWarehouses gives all warehouses by name.
func (s *Store) ListWarehouses(ctx context.Context, q catalog.ListQuery) ([]catalog.Warehouse, error) {
	var all []catalog.Warehouse
	err := s.tx(ctx, "ListWarehouses", func(st *state) error {
		for _, w := range st.warehouses {
			w.Properties = maps.Clone(w.Properties)
			all = append(all, w)
		}
		all = wantedOf(all, q, func(w catalog.Warehouse) string { return w.Name })
		return nil
	})
	return all, err
}

// UpdateWarehouse replaces properties and storage of the version that w names.
func (s *Store) UpdateWarehouse(ctx context.Context, w catalog.Warehouse, f catalog.Fact) error {
	return s.tx(ctx, "UpdateWarehouse", func(st *state) error {
		row, ok := st.warehouses[w.ID]
		if !ok {
			return noSuchWarehouse(w.Name)
		}
		if row.Version != w.Version {
			return fault.New(fault.VersionConflict, "warehouse %s is not at version %d any more: load it and try again", w.Name, w.Version)
		}
		row.Properties, row.Storage = maps.Clone(w.Properties), w.Storage
		if row.Properties == nil {
			row.Properties = map[string]string{}
		}
		row.Version, row.UpdatedAt = row.Version+1, f.At
		st.warehouses[w.ID] = row
		return st.write(f)
	})
}

// DropWarehouse removes an empty warehouse and everything that hangs on it.
func (s *Store) DropWarehouse(ctx context.Context, id uuid.UUID, f catalog.Fact) error {
	return s.tx(ctx, "DropWarehouse", func(st *state) error {
		w, ok := st.warehouses[id]
		if !ok {
			return noSuchWarehouse(f.Subject)
		}
		for _, n := range st.namespaces {
			if n.warehouse == id {
				return fault.New(fault.NamespaceNotEmpty, "Warehouse %s is not empty: drop its namespaces first", w.Name)
			}
		}
		delete(st.warehouses, id)
		for _, row := range st.webhooks {
			if row.WarehouseID == id {
				st.forgetWebhook(row.ID)
			}
		}
		maps.DeleteFunc(st.locations, func(_ string, l locationRow) bool { return l.warehouse == id })
		maps.DeleteFunc(st.staged, func(_ uuid.UUID, t stagedRow) bool { return t.WarehouseID == id })
		maps.DeleteFunc(st.dropped, func(_ uuid.UUID, d droppedRow) bool { return d.warehouse == id })
		for roleID, r := range st.roles {
			if r.WarehouseID == id {
				st.dropRole(roleID)
			}
		}
		return st.write(f)
	})
}
