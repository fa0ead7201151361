package store

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"catalogd/catalog"
	"catalogd/internal/fault"
	"catalogd/vending"
)

// The target namespace must stay, and belong to the table's warehouse: a table's files do not move.
const sqlLockRenameTarget = `
SELECT namespaces.id FROM namespaces
JOIN tables ON tables.warehouse_id = namespaces.warehouse_id
WHERE namespaces.id = @namespace AND tables.id = @id
FOR KEY SHARE OF namespaces`

// A table that was renamed since its name was looked up is not the one that was meant. No namespace: it is not asked.
const stillThere = `(@from::uuid IS NULL OR tables.namespace_id = @from AND tables.name = @from_name)`

const sqlTableExists = `SELECT EXISTS (SELECT 1 FROM tables WHERE id = @id AND kind = @kind)`

const sqlFindName = `
SELECT id, kind, name FROM tables
WHERE namespace_id = @namespace AND coalesce(name_key, name) = (
    SELECT CASE WHEN warehouses.folds_names THEN @name_key::text ELSE @name::text END
    FROM namespaces JOIN warehouses ON warehouses.id = namespaces.warehouse_id
    WHERE namespaces.id = @namespace)`

const sqlRenameTable = `
UPDATE tables
SET namespace_id = @namespace, name = @name, name_key = CASE WHEN name_key IS NOT NULL THEN @name_key END, version = version + 1,
    updated_at = @at
WHERE id = @id AND kind = @kind AND ` + stillThere

// RenameTable gives a table or a view another name, perhaps in another namespace of its warehouse. Its own name is no change.
func (s *Store) RenameTable(ctx context.Context, r catalog.TableRename) error {
	if err := checkNames(r.Target.Name); err != nil {
		return err
	}
	err := s.renameTable(ctx, r)
	if violates(err, "tables_name_key") || violates(err, "tables_folded_key") { // taken in this moment; by what, only another transaction can ask
		err = s.renameTable(ctx, r)
	}
	return err
}

func (s *Store) renameTable(ctx context.Context, r catalog.TableRename) error {
	args := pgx.NamedArgs{
		"id": r.ID, "kind": r.Kind, "namespace": r.TargetNamespaceID, "name": r.Target.Name, "name_key": fold(r.Target.Name),
		"at": r.Fact.At, "from": nullable(r.From.NamespaceID), "from_name": storable(r.From.Name),
	}
	return s.InTx(ctx, func(tx pgx.Tx) error {
		if err := lockRename(ctx, tx, r, args); err != nil {
			return err
		}
		var holder uuid.UUID
		var kind catalog.Kind
		var name string
		err := tx.QueryRow(ctx, sqlFindName, args).Scan(&holder, &kind, &name)
		switch {
		case err == nil && holder == r.ID && name == r.Target.Name:
			if here := (catalog.Place{NamespaceID: r.TargetNamespaceID, Name: name}); r.From != (catalog.Place{}) && r.From != here {
				return renamedMeanwhile(r.Kind, r.Source) // by somebody else, to the very same name
			}
			return writeOutcome(ctx, tx, r.Fact)
		case err == nil && holder == r.ID: // spelled anew, in a warehouse that folds names
		case err == nil:
			return kind.NotRenamed(r.Source, r.Target)
		case !noRows(err):
			return err
		}
		tag, err := tx.Exec(ctx, sqlRenameTable, args)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return renamedMeanwhile(r.Kind, r.Source) // or dropped: who looks again learns which
		}
		return writeFact(ctx, tx, r.Fact)
	})
}

func renamedMeanwhile(kind catalog.Kind, id catalog.Identifier) error {
	return fault.New(fault.CommitRace, "%s %s was renamed or dropped meanwhile", kind, id)
}

func lockRename(ctx context.Context, tx pgx.Tx, r catalog.TableRename, args pgx.NamedArgs) error {
	var exists bool
	if err := tx.QueryRow(ctx, sqlTableExists, args).Scan(&exists); err != nil {
		return err
	}
	if !exists {
		return r.Kind.Missing(r.Source)
	}
	var target uuid.UUID
	err := tx.QueryRow(ctx, sqlLockRenameTarget, args).Scan(&target)
	if noRows(err) {
		return fault.New(fault.NoSuchNamespace, "Namespace does not exist: %s", r.Target.Namespace)
	}
	return err
}

const sqlDropTable = `
WITH gone AS (
    DELETE FROM tables WHERE id = @id AND kind = @kind AND (@at_location = '' OR metadata_location = @at_location) AND ` + stillThere + `
    RETURNING id, warehouse_id, namespace_id, kind, name, name_key, table_uuid, location, metadata_location
)
INSERT INTO dropped_tables (id, warehouse_id, namespace_id, namespace, name, table_uuid, location, metadata_location,
                            purge_requested, unregistered_until, dropped_at, ident_key, kind)
SELECT gone.id, gone.warehouse_id, namespaces.id, namespaces.levels, gone.name, gone.table_uuid, gone.location, gone.metadata_location,
       @purge, CASE WHEN @unregistered THEN now() + make_interval(secs => @grace_seconds) END, @at,
       CASE WHEN gone.name_key IS NOT NULL THEN namespaces.levels_key || gone.name_key END, gone.kind
FROM gone JOIN namespaces ON namespaces.id = gone.namespace_id
RETURNING dropped_tables.location`

const sqlKeepDroppedLocations = `
UPDATE locations SET owner_kind = CASE WHEN location = @key THEN 'dropped' ELSE 'former' END WHERE owner_id = @id`

const sqlDeleteTableMaintenance = `DELETE FROM table_maintenance WHERE table_id = @id`

// DropTable takes a table's or a view's name away and keeps what a purge or an undrop needs, its location included.
func (s *Store) DropTable(ctx context.Context, d catalog.TableDrop) error {
	args := pgx.NamedArgs{
		"id": d.ID, "kind": d.Kind, "purge": d.PurgeRequested, "at": d.Fact.At, "unregistered": d.Unregistered,
		"grace_seconds": placeGrace.Seconds(), "at_location": storable(d.At),
		"from": nullable(d.From.NamespaceID), "from_name": storable(d.From.Name),
	}
	return s.InTx(ctx, func(tx pgx.Tx) error {
		var location string
		err := tx.QueryRow(ctx, sqlDropTable, args).Scan(&location)
		if noRows(err) {
			return whyNotDropped(ctx, tx, d, args)
		}
		if err != nil {
			return err
		}
		args["key"] = vending.Key(location)
		if d.PurgeRequested && d.Kind == catalog.KindTable {
			if err := addPurge(ctx, tx, d); err != nil {
				return err
			}
		}
		for _, statement := range []string{sqlKeepDroppedLocations, sqlDeleteGrantsOn, sqlDeleteTableMaintenance} {
			if _, err := tx.Exec(ctx, statement, args); err != nil {
				return err
			}
		}
		if err := sweepDropped(ctx, tx); err != nil {
			return err
		}
		return writeFact(ctx, tx, d.Fact)
	})
}

func whyNotDropped(ctx context.Context, tx pgx.Tx, d catalog.TableDrop, args pgx.NamedArgs) error {
	var exists bool
	if err := tx.QueryRow(ctx, sqlTableExists, args).Scan(&exists); err != nil {
		return err
	}
	if exists {
		return fault.New(fault.CommitRace, "%s %s was changed by another commit, or renamed", d.Kind, d.Ident)
	}
	return d.Kind.Missing(d.Ident)
}
