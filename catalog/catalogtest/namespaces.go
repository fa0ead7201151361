package catalogtest

import (
	"context"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"catalogd/authz"
	"catalogd/catalog"
	"catalogd/internal/fault"
	"catalogd/vending"
)

// unstorable tells that a database could not hold the text.
func unstorable(texts ...string) bool {
	return slices.ContainsFunc(texts, func(t string) bool { return !utf8.ValidString(t) || strings.ContainsRune(t, 0) })
}

func badText() error {
	return fault.New(fault.BadRequest, "a name or property holds text that cannot be stored: U+0000 or broken Unicode")
}

func noSuchNamespace(name string) error {
	return fault.New(fault.NoSuchNamespace, "Namespace does not exist: %s", name)
}

func unstorableProperties(properties map[string]string) bool {
	for name, value := range properties {
		if strings.ContainsRune(name+value, 0) {
			return true
		}
	}
	return false
}

// CreateNamespace makes a namespace below its parent.
func (s *Store) CreateNamespace(ctx context.Context, c catalog.NamespaceCreate) error {
	return s.tx(ctx, "CreateNamespace", func(st *state) error {
		levels := slices.Clone(c.Record.Levels)
		if unstorable(levels...) || unstorableProperties(c.Record.Properties) {
			return badText()
		}
		if c.Location != "" {
			err := st.reserve(reservation{
				warehouse: c.WarehouseID, owner: c.Record.ID, location: c.Location, kind: authz.Namespace,
			}, s.Now())
			if err != nil {
				return err
			}
		}
		if _, ok := st.warehouses[c.WarehouseID]; !ok {
			return fault.New(fault.NoSuchWarehouse, "Warehouse does not exist")
		}
		row := namespaceRow{NamespaceRecord: c.Record, warehouse: c.WarehouseID}
		row.Levels, row.Properties, row.Version = levels, maps.Clone(c.Record.Properties), 1
		if row.Properties == nil {
			row.Properties = map[string]string{}
		}
		if len(levels) > 1 {
			parent, ok := st.namespaceAt(c.WarehouseID, levels.Parent())
			if !ok {
				return noSuchNamespace(levels.Parent().String())
			}
			row.parent = parent.ID
			row.Levels = append(slices.Clone(parent.Levels), levels[len(levels)-1])
		}
		if _, taken := st.namespaceAt(c.WarehouseID, levels); taken {
			return fault.New(fault.AlreadyExists, "Namespace already exists: %s", levels)
		}
		st.namespaces[row.ID] = row
		return st.write(c.Fact)
	})
}

// UpdateNamespace merges properties and gives them as they were before.
func (s *Store) UpdateNamespace(ctx context.Context, u catalog.NamespaceUpdate) (map[string]string, error) {
	var before map[string]string
	err := s.tx(ctx, "UpdateNamespace", func(st *state) error {
		if location := u.Set["location"]; location != "" {
			err := st.reserve(reservation{warehouse: u.WarehouseID, owner: u.ID, location: location, kind: authz.Namespace}, s.Now())
			if err != nil {
				return err
			}
		}
		row, ok := st.namespaces[u.ID]
		if !ok {
			return noSuchNamespace(u.Fact.Subject)
		}
		if unstorableProperties(u.Set) {
			return badText()
		}
		before = maps.Clone(row.Properties)
		next := maps.Clone(row.Properties)
		for _, name := range u.Remove {
			delete(next, name)
		}
		maps.Copy(next, u.Set)
		if location := next["location"]; location != "" {
			st.release(u.ID, vending.Key(location))
		} else {
			st.release(u.ID, "")
		}
		row.Properties, row.Version = next, row.Version+1
		st.namespaces[u.ID] = row
		return st.write(u.Completed(before))
	})
	if err != nil {
		return nil, err
	}
	return before, nil
}

// DropNamespace removes an empty namespace.
func (s *Store) DropNamespace(ctx context.Context, id uuid.UUID, f catalog.Fact) error {
	return s.tx(ctx, "DropNamespace", func(st *state) error {
		row, ok := st.namespaces[id]
		if !ok {
			return noSuchNamespace(f.Subject)
		}
		used := false
		for _, t := range st.tables {
			used = used || t.NamespaceID == id
		}
		for _, n := range st.namespaces {
			used = used || n.parent == id
		}
		if used {
			return fault.New(fault.NamespaceNotEmpty, "Namespace %s is not empty.", row.Levels)
		}
		delete(st.namespaces, id)
		st.release(id, "")
		st.dropGrantsOn(id)
		return st.write(f)
	})
}
