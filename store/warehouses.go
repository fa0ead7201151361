package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"catalogd/authz"
	"catalogd/catalog"
	"catalogd/internal/fault"
	"catalogd/vending"
)

const sqlInsertWarehouse = `
INSERT INTO warehouses (id, name, location, properties, storage, folds_names, version, created_at, updated_at, owner_id)
VALUES (@id, @name, @location, @properties, @storage, @folds_names, 1, @at, @at, @owner)
ON CONFLICT (name) DO NOTHING`

const sqlOwnedLocations = `SELECT DISTINCT location FROM locations WHERE location = ANY (@above::text[]) OR location >= @key AND location < @past LIMIT 1`

// CreateWarehouse makes a warehouse whose base nobody else has, with the catalog role catalog_admin.
func (s *Store) CreateWarehouse(ctx context.Context, w catalog.Warehouse, f catalog.Fact) error {
	if err := checkNames(w.Name); err != nil {
		return err
	}
	properties, storage, err := encodeWarehouse(w)
	if err != nil {
		return err
	}
	return s.InTx(ctx, func(tx pgx.Tx) error {
		if err := checkBase(ctx, tx, w); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, sqlInsertWarehouse, pgx.NamedArgs{
			"id": w.ID, "name": w.Name, "location": w.Location, "properties": properties, "storage": storage,
			"folds_names": w.FoldsNames, "at": f.At, "owner": nullable(w.OwnerID),
		})
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return fault.New(fault.AlreadyExists, "Warehouse already exists: %s", w.Name)
		}
		if err := createCatalogAdmin(ctx, tx, w.ID, f); err != nil {
			return err
		}
		return writeFact(ctx, tx, f)
	})
}

// checkBase refuses a base that lies in or around another warehouse's, or another warehouse's table. It is alone
// with the locations until the transaction ends.
func checkBase(ctx context.Context, tx pgx.Tx, w catalog.Warehouse) error {
	if _, err := tx.Exec(ctx, sqlLockLocations); err != nil {
		return err
	}
	refused := fault.New(fault.BadRequest, "the base location %s overlaps another warehouse's: choose another one", w.Location)
	if err := checkForeignBases(ctx, tx, reservation{warehouse: w.ID, location: w.Location}); err != nil {
		if fault.Is(err, fault.BadRequest) {
			return refused
		}
		return err
	}
	key := vending.Key(w.Location)
	var owned string
	err := tx.QueryRow(ctx, sqlOwnedLocations, pgx.NamedArgs{
		"above": prefixesOf(key), "key": key, "past": key[:len(key)-1] + "0",
	}).Scan(&owned)
	if noRows(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return refused
}

const sqlInsertCatalogAdmin = `
INSERT INTO catalog_roles (id, warehouse_id, name, created_at, updated_at)
VALUES (@id, @warehouse, @name, @at, @at)`

const sqlGrantOnWarehouse = `
INSERT INTO grants (role_id, warehouse_id, securable_kind, securable_id, privilege, created_at)
SELECT @role, @warehouse::uuid, 'catalog', @warehouse::uuid, privilege, @at
FROM unnest(@privileges::text[]) AS privilege`

const sqlAssignToServiceAdmin = `
INSERT INTO catalog_role_members (catalog_role_id, principal_role_id)
SELECT @role, principal_roles.id FROM principal_roles WHERE principal_roles.name = 'service_admin'`

// createCatalogAdmin makes the role that administers a warehouse and gives it to the service's administrators.
func createCatalogAdmin(ctx context.Context, tx pgx.Tx, warehouse uuid.UUID, f catalog.Fact) error {
	role := uuid.Must(uuid.NewV7())
	privileges := []string{
		string(authz.CatalogManageAccess), string(authz.CatalogManageMetadata), string(authz.CatalogManageContent),
	}
	_, err := tx.Exec(ctx, sqlInsertCatalogAdmin, pgx.NamedArgs{
		"id": role, "warehouse": warehouse, "name": "catalog_admin", "at": f.At,
	})
	if err != nil {
		return fmt.Errorf("create the role catalog_admin: %w", err)
	}
	_, err = tx.Exec(ctx, sqlGrantOnWarehouse, pgx.NamedArgs{
		"role": role, "warehouse": warehouse, "privileges": privileges, "at": f.At,
	})
	if err != nil {
		return fmt.Errorf("grant to the role catalog_admin: %w", err)
	}
	if _, err = tx.Exec(ctx, sqlAssignToServiceAdmin, pgx.NamedArgs{"role": role}); err != nil {
		return fmt.Errorf("assign the role catalog_admin: %w", err)
	}
	return nil
}

const sqlFindWarehouse = `
SELECT id, name, location, properties, storage, folds_names, version, created_at, updated_at
FROM warehouses WHERE name = @name`

// FindWarehouse finds a warehouse by its name.
func (s *Store) FindWarehouse(ctx context.Context, name string) (catalog.Warehouse, error) {
	var w catalog.Warehouse
	err := s.read(ctx, func(q querier) error {
		rows, err := q.Query(ctx, sqlFindWarehouse, pgx.NamedArgs{"name": lookup(name)})
		if err != nil {
			return err
		}
		w, err = pgx.CollectExactlyOneRow(rows, scanWarehouse)
		if noRows(err) {
			return fault.New(fault.NoSuchWarehouse, "Warehouse does not exist: %s", name)
		}
		return err
	})
	return w, err
}

const sqlListWarehouses = `
SELECT id, name, location, properties, storage, folds_names, version, created_at, updated_at
FROM warehouses WHERE true` + wantedNames

// ListWarehouses gives warehouses by name.
func (s *Store) ListWarehouses(ctx context.Context, q catalog.ListQuery) ([]catalog.Warehouse, error) {
	return collect(ctx, s, sqlListWarehouses, wantedArgs(q, nil), scanWarehouse)
}

func scanWarehouse(row pgx.CollectableRow) (catalog.Warehouse, error) {
	var w catalog.Warehouse
	var properties, storage []byte
	err := row.Scan(&w.ID, &w.Name, &w.Location, &properties, &storage, &w.FoldsNames, &w.Version, &w.CreatedAt, &w.UpdatedAt)
	if err != nil {
		return w, err
	}
	w.CreatedAt, w.UpdatedAt = w.CreatedAt.UTC(), w.UpdatedAt.UTC()
	return w, decodeWarehouse(&w, properties, storage)
}

func decodeWarehouse(w *catalog.Warehouse, properties, storage []byte) error {
	if err := json.Unmarshal(properties, &w.Properties); err != nil {
		return fmt.Errorf("decode properties of warehouse %s: %w", w.Name, err)
	}
	if err := json.Unmarshal(storage, &w.Storage); err != nil {
		return fmt.Errorf("decode storage of warehouse %s: %w", w.Name, err)
	}
	return nil
}

func encodeWarehouse(w catalog.Warehouse) (properties, storage string, err error) {
	if properties, err = encodeProperties(w.Properties); err != nil {
		return "", "", err
	}
	raw, err := json.Marshal(w.Storage)
	if err != nil {
		return "", "", fmt.Errorf("encode storage of warehouse %s: %w", w.Name, err)
	}
	return properties, string(raw), nil
}

// encodeProperties writes properties as a JSON object, never as null.
func encodeProperties(properties map[string]string) (string, error) {
	if properties == nil {
		return "{}", nil
	}
	raw, err := json.Marshal(properties)
	if err != nil {
		return "", fmt.Errorf("encode properties: %w", err)
	}
	return string(raw), nil
}

const sqlUpdateWarehouse = `
UPDATE warehouses SET properties = @properties, storage = @storage, version = version + 1, updated_at = @at
WHERE id = @id AND version = @version`

const sqlWarehouseExists = `SELECT EXISTS (SELECT 1 FROM warehouses WHERE id = @id)`

// UpdateWarehouse replaces properties and storage of the version that w names.
func (s *Store) UpdateWarehouse(ctx context.Context, w catalog.Warehouse, f catalog.Fact) error {
	properties, storage, err := encodeWarehouse(w)
	if err != nil {
		return err
	}
	return s.InTx(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, sqlUpdateWarehouse, pgx.NamedArgs{
			"id": w.ID, "version": w.Version, "properties": properties, "storage": storage, "at": f.At,
		})
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 1 {
			return writeFact(ctx, tx, f)
		}
		var exists bool
		if err := tx.QueryRow(ctx, sqlWarehouseExists, pgx.NamedArgs{"id": w.ID}).Scan(&exists); err != nil {
			return err
		}
		if !exists {
			return fault.New(fault.NoSuchWarehouse, "Warehouse does not exist: %s", w.Name)
		}
		return fault.New(fault.VersionConflict, "warehouse %s is not at version %d any more: load it and try again", w.Name, w.Version)
	})
}

// The row's lock keeps namespaces from coming while we look: their foreign key wants it too.
const sqlLockWarehouse = `SELECT name FROM warehouses WHERE id = @id FOR UPDATE`

const sqlWarehouseHasNamespaces = `SELECT EXISTS (SELECT 1 FROM namespaces WHERE warehouse_id = @id)`

const sqlDeleteWarehouse = `DELETE FROM warehouses WHERE id = @id`

// DropWarehouse removes an empty warehouse with its roles, grants, staged creates and what is left of dropped tables.
func (s *Store) DropWarehouse(ctx context.Context, id uuid.UUID, f catalog.Fact) error {
	return s.InTx(ctx, func(tx pgx.Tx) error {
		args := pgx.NamedArgs{"id": id}
		var name string
		err := tx.QueryRow(ctx, sqlLockWarehouse, args).Scan(&name)
		if noRows(err) {
			return fault.New(fault.NoSuchWarehouse, "Warehouse does not exist: %s", f.Subject)
		}
		if err != nil {
			return err
		}
		var used bool
		if err := tx.QueryRow(ctx, sqlWarehouseHasNamespaces, args).Scan(&used); err != nil {
			return err
		}
		if used {
			return fault.New(fault.NamespaceNotEmpty, "Warehouse %s is not empty: drop its namespaces first", name)
		}
		if _, err := tx.Exec(ctx, sqlDeleteWarehouse, args); err != nil {
			return err
		}
		return writeFact(ctx, tx, f)
	})
}
