package store

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"catalogd/catalog"
	"catalogd/internal/fault"
)

const sqlListTables = `
SELECT name FROM tables
WHERE namespace_id = @namespace AND kind = @kind AND name > @after
ORDER BY name
LIMIT @limit::bigint`

// ListTables gives the names of a namespace's tables or of its views.
func (s *Store) ListTables(ctx context.Context, namespaceID uuid.UUID, kind catalog.Kind, p catalog.Page) ([]string, error) {
	var names []string
	err := s.read(ctx, func(q querier) error {
		rows, err := q.Query(ctx, sqlListTables, pgx.NamedArgs{
			"namespace": namespaceID, "kind": kind, "after": after(p.After), "limit": limit(p),
		})
		if err != nil {
			return err
		}
		names, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	return names, err
}

// The target namespace must stay, and belong to the table's warehouse: a table's files do not move.
const sqlLockRenameTarget = `
SELECT namespaces.id FROM namespaces
JOIN tables ON tables.warehouse_id = namespaces.warehouse_id
WHERE namespaces.id = @namespace AND tables.id = @id
FOR KEY SHARE OF namespaces`

const sqlTableExists = `SELECT EXISTS (SELECT 1 FROM tables WHERE id = @id AND kind = @kind)`

const sqlFindName = `SELECT id, kind FROM tables WHERE namespace_id = @namespace AND name = @name`

const sqlRenameTable = `
UPDATE tables SET namespace_id = @namespace, name = @name, version = version + 1, updated_at = @at
WHERE id = @id AND kind = @kind`

// RenameTable gives a table or a view another name, perhaps in another namespace of its warehouse. Its own name is no change.
func (s *Store) RenameTable(ctx context.Context, r catalog.TableRename) error {
	if err := checkNames(r.Target.Name); err != nil {
		return err
	}
	args := pgx.NamedArgs{"id": r.ID, "kind": r.Kind, "namespace": r.TargetNamespaceID, "name": r.Target.Name, "at": r.Fact.At}
	return s.InTx(ctx, func(tx pgx.Tx) error {
		if err := lockRename(ctx, tx, r, args); err != nil {
			return err
		}
		var holder uuid.UUID
		var kind catalog.Kind
		err := tx.QueryRow(ctx, sqlFindName, args).Scan(&holder, &kind)
		switch {
		case err == nil && holder == r.ID:
			return nil
		case err == nil:
			return renameClash(r, kind)
		case !noRows(err):
			return err
		}
		tag, err := tx.Exec(ctx, sqlRenameTable, args)
		if violates(err, "tables_name_key") {
			return renameClash(r, catalog.KindTable) // taken in this moment; by what, the broken transaction cannot ask
		}
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return missing(r.Kind, r.Source)
		}
		return writeFact(ctx, tx, r.Fact)
	})
}

func lockRename(ctx context.Context, tx pgx.Tx, r catalog.TableRename, args pgx.NamedArgs) error {
	var exists bool
	if err := tx.QueryRow(ctx, sqlTableExists, args).Scan(&exists); err != nil {
		return err
	}
	if !exists {
		return missing(r.Kind, r.Source)
	}
	var target uuid.UUID
	err := tx.QueryRow(ctx, sqlLockRenameTarget, args).Scan(&target)
	if noRows(err) {
		return fault.New(fault.NoSuchNamespace, "Namespace does not exist: %s", r.Target.Namespace)
	}
	return err
}

func renameClash(r catalog.TableRename, kind catalog.Kind) error {
	what := "Table"
	if kind == catalog.KindView {
		what = "View"
	}
	return fault.New(fault.AlreadyExists, "Cannot rename %s to %s. %s already exists", r.Source, r.Target, what)
}

// missing says that a table or a view is gone.
func missing(kind catalog.Kind, id catalog.Identifier) error {
	if kind == catalog.KindView {
		return fault.New(fault.NoSuchView, "View does not exist: %s", id)
	}
	return fault.New(fault.NoSuchTable, "Table does not exist: %s", id)
}

const sqlDropTable = `
WITH gone AS (
    DELETE FROM tables WHERE id = @id AND kind = @kind
    RETURNING id, warehouse_id, namespace_id, name, table_uuid, location, metadata_location
)
INSERT INTO dropped_tables (id, warehouse_id, namespace, name, table_uuid, location, metadata_location,
                            purge_requested, dropped_at)
SELECT gone.id, gone.warehouse_id, namespaces.levels, gone.name, gone.table_uuid, gone.location, gone.metadata_location,
       @purge, @at
FROM gone JOIN namespaces ON namespaces.id = gone.namespace_id`

const sqlKeepDroppedLocations = `UPDATE locations SET owner_kind = 'dropped' WHERE owner_id = @id`

const sqlDeleteTableMaintenance = `DELETE FROM table_maintenance WHERE table_id = @id`

// DropTable takes a table's or a view's name away and keeps what a purge or an undrop needs, its location included.
func (s *Store) DropTable(ctx context.Context, d catalog.TableDrop) error {
	args := pgx.NamedArgs{"id": d.ID, "kind": d.Kind, "purge": d.PurgeRequested, "at": d.Fact.At}
	return s.InTx(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, sqlDropTable, args)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return missing(d.Kind, d.Ident)
		}
		for _, statement := range []string{sqlKeepDroppedLocations, sqlDeleteGrantsOn, sqlDeleteTableMaintenance} {
			if _, err := tx.Exec(ctx, statement, args); err != nil {
				return err
			}
		}
		return writeFact(ctx, tx, d.Fact)
	})
}
