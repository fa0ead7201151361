package store

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"catalogd/catalog"
	"catalogd/internal/fault"
)

// The parent's lock is the one that a foreign key takes: it keeps the parent from being dropped and nothing else.
const sqlFindParent = `
SELECT id, levels FROM namespaces
WHERE warehouse_id = @warehouse AND coalesce(levels_key, levels) = (
    SELECT CASE WHEN folds_names THEN @levels_key::text[] ELSE @levels::text[] END FROM warehouses WHERE id = @warehouse)
FOR KEY SHARE`

const sqlInsertNamespace = `
INSERT INTO namespaces (id, warehouse_id, parent_id, levels, levels_key, properties, version, created_at, updated_at, owner_id)
VALUES (@id, @warehouse, @parent, @levels,
        (SELECT @levels_key::text[] FROM warehouses WHERE id = @warehouse AND folds_names), @properties, 1, @at, @at, @owner)
ON CONFLICT DO NOTHING`

// CreateNamespace makes a namespace below its parent, whose spelling it takes over.
func (s *Store) CreateNamespace(ctx context.Context, c catalog.NamespaceCreate) error {
	properties, err := encodeProperties(c.Record.Properties)
	if err != nil {
		return err
	}
	levels := c.Record.Levels
	if err := checkNames(levels...); err != nil {
		return err
	}
	return s.InTx(ctx, func(tx pgx.Tx) error {
		if c.Location != "" {
			if err := reserve(ctx, tx, []reservation{namespaceReservation(c.WarehouseID, c.Record.ID, c.Location)}); err != nil {
				return err
			}
		}
		parent, above, err := findParent(ctx, tx, c.WarehouseID, levels.Parent())
		if err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, sqlInsertNamespace, pgx.NamedArgs{
			"id": c.Record.ID, "warehouse": c.WarehouseID, "parent": parent, "levels": append(above, levels[len(levels)-1]),
			"levels_key": foldAll(levels), "properties": properties, "at": c.Fact.At,
			"owner": nullable(c.Record.OwnerID),
		})
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return fault.New(fault.AlreadyExists, "Namespace already exists: %s", levels)
		}
		return writeFact(ctx, tx, c.Fact)
	})
}

func namespaceReservation(warehouse, id uuid.UUID, location string) reservation {
	return reservation{warehouse: warehouse, location: location, kind: ownerNamespace, owner: id}
}

// findParent gives the id of a namespace's parent as an argument (NULL for the warehouse itself) and its levels.
func findParent(ctx context.Context, tx pgx.Tx, warehouse uuid.UUID, levels catalog.Namespace) (id any, above []string, err error) {
	if len(levels) == 0 {
		return nil, nil, nil
	}
	var found uuid.UUID
	err = tx.QueryRow(ctx, sqlFindParent, pgx.NamedArgs{
		"warehouse": warehouse, "levels": lookupAll(levels), "levels_key": foldAll(levels),
	}).Scan(&found, &above)
	if noRows(err) {
		return nil, nil, fault.New(fault.NoSuchNamespace, "Namespace does not exist: %s", levels)
	}
	return found, above, err
}

const sqlLockNamespaceProperties = `SELECT properties FROM namespaces WHERE id = @id FOR NO KEY UPDATE`

const sqlUpdateNamespace = `
UPDATE namespaces SET properties = @properties, version = version + 1, updated_at = @at WHERE id = @id`

// UpdateNamespace merges properties and gives them as they were before.
func (s *Store) UpdateNamespace(ctx context.Context, u catalog.NamespaceUpdate) (map[string]string, error) {
	var before map[string]string
	err := s.InTx(ctx, func(tx pgx.Tx) error {
		// The location's lock comes before the row's, as everywhere.
		if location := u.Set["location"]; location != "" {
			if err := reserve(ctx, tx, []reservation{namespaceReservation(u.WarehouseID, u.ID, location)}); err != nil {
				return err
			}
		}
		var raw []byte
		err := tx.QueryRow(ctx, sqlLockNamespaceProperties, pgx.NamedArgs{"id": u.ID}).Scan(&raw)
		if noRows(err) {
			return fault.New(fault.NoSuchNamespace, "Namespace does not exist: %s", u.Fact.Subject)
		}
		if err != nil {
			return err
		}
		before = nil
		if err := json.Unmarshal(raw, &before); err != nil {
			return fmt.Errorf("decode properties of namespace %s: %w", u.Fact.Subject, err)
		}
		next := maps.Clone(before)
		for _, name := range u.Remove {
			delete(next, name)
		}
		maps.Copy(next, u.Set)
		if err := keepOneLocation(ctx, tx, u.ID, next["location"]); err != nil {
			return err
		}
		properties, err := encodeProperties(next)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, sqlUpdateNamespace, pgx.NamedArgs{"id": u.ID, "properties": properties, "at": u.Fact.At}); err != nil {
			return err
		}
		return writeFact(ctx, tx, u.Completed(before))
	})
	if err != nil {
		return nil, err
	}
	return before, nil
}

// The lock keeps tables and namespaces from coming while we look: their foreign keys want it too.
const sqlLockNamespace = `SELECT levels FROM namespaces WHERE id = @id FOR UPDATE`

const sqlNamespaceIsUsed = `
SELECT EXISTS (SELECT 1 FROM tables WHERE namespace_id = @id) OR EXISTS (SELECT 1 FROM namespaces WHERE parent_id = @id)`

const sqlDeleteNamespace = `DELETE FROM namespaces WHERE id = @id`

const sqlDeleteGrantsOn = `DELETE FROM grants WHERE securable_id = @id`

// DropNamespace removes an empty namespace, its grants and its location.
func (s *Store) DropNamespace(ctx context.Context, id uuid.UUID, f catalog.Fact) error {
	return s.InTx(ctx, func(tx pgx.Tx) error {
		args := pgx.NamedArgs{"id": id}
		var levels catalog.Namespace
		err := tx.QueryRow(ctx, sqlLockNamespace, args).Scan(&levels)
		if noRows(err) {
			return fault.New(fault.NoSuchNamespace, "Namespace does not exist: %s", f.Subject)
		}
		if err != nil {
			return err
		}
		var used bool
		if err := tx.QueryRow(ctx, sqlNamespaceIsUsed, args).Scan(&used); err != nil {
			return err
		}
		if used {
			return fault.New(fault.NamespaceNotEmpty, "Namespace %s is not empty.", levels)
		}
		for _, statement := range []string{sqlDeleteGrantsOn, sqlDeleteNamespace} {
			if _, err := tx.Exec(ctx, statement, args); err != nil {
				return err
			}
		}
		if err := releaseLocations(ctx, tx, id); err != nil {
			return err
		}
		return writeFact(ctx, tx, f)
	})
}
