package store

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"catalogd/catalog"
)

// stagedSweepMax bounds how many lapsed staged creates one new one takes away.
const stagedSweepMax = 100

const sqlSweepStaged = `
WITH lapsed AS (
    SELECT table_uuid FROM staged_tables
    WHERE expires_at < now() - make_interval(secs => @grace_seconds)
    ORDER BY expires_at
    LIMIT @limit
    FOR UPDATE SKIP LOCKED
), freed AS (
    DELETE FROM locations USING lapsed WHERE locations.owner_id = lapsed.table_uuid AND locations.owner_kind = 'staged'
)
DELETE FROM staged_tables USING lapsed WHERE staged_tables.table_uuid = lapsed.table_uuid`

const sqlInsertStaged = `
INSERT INTO staged_tables (table_uuid, warehouse_id, namespace, name, ident_key, location, principal_id, expires_at)
VALUES (@uuid, @warehouse, @namespace, @name,
        (SELECT @ident_key::text[] FROM warehouses WHERE id = @warehouse AND folds_names), @location, @principal,
        now() + make_interval(secs => @ttl_seconds))`

// StageTable remembers a staged create and reserves its location.
func (s *Store) StageTable(ctx context.Context, t catalog.StagedTable) error {
	if err := errors.Join(checkNames(t.Ident.Namespace...), checkNames(t.Ident.Name)); err != nil {
		return err
	}
	return s.InTx(ctx, func(tx pgx.Tx) error {
		err := reserve(ctx, tx, []reservation{{
			warehouse: t.WarehouseID, location: t.Location, kind: ownerStaged, owner: t.UUID, ident: t.Ident,
			tableUUID: t.UUID, principal: t.PrincipalID, restores: t.Restores,
		}})
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, sqlInsertStaged, pgx.NamedArgs{
			"uuid": t.UUID, "warehouse": t.WarehouseID, "namespace": []string(t.Ident.Namespace), "name": t.Ident.Name,
			"ident_key": foldIdent(t.Ident), "location": t.Location, "principal": t.PrincipalID, "ttl_seconds": t.TTL.Seconds(),
		})
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, sqlSweepStaged, pgx.NamedArgs{"grace_seconds": stagedGrace.Seconds(), "limit": stagedSweepMax})
		if err != nil {
			return err
		}
		return sweepDropped(ctx, tx)
	})
}

const sqlFindStaged = `
SELECT table_uuid, namespace, name, location, principal_id, extract(epoch FROM expires_at - now())::double precision
FROM staged_tables
WHERE warehouse_id = @warehouse AND (namespace = @namespace AND name = @name OR ident_key = @ident_key)
  AND expires_at > now()
ORDER BY expires_at DESC, table_uuid`

// FindStagedTables gives the staged creates of a name that have not expired, newest first. TTL is what is left.
func (s *Store) FindStagedTables(ctx context.Context, warehouseID uuid.UUID, ident catalog.Identifier) ([]catalog.StagedTable, error) {
	args := pgx.NamedArgs{
		"warehouse": warehouseID, "namespace": lookupAll(ident.Namespace), "name": lookup(ident.Name), "ident_key": foldIdent(ident),
	}
	return collect(ctx, s, sqlFindStaged, args, func(row pgx.CollectableRow) (catalog.StagedTable, error) {
		t := catalog.StagedTable{WarehouseID: warehouseID}
		var seconds float64
		err := row.Scan(&t.UUID, &t.Ident.Namespace, &t.Ident.Name, &t.Location, &t.PrincipalID, &seconds)
		t.TTL = time.Duration(seconds * float64(time.Second))
		return t, err
	})
}

const sqlTakeStagedLocations = `
UPDATE locations SET owner_kind = 'table', owner_id = @table WHERE owner_id = @staged AND owner_kind = 'staged'`

// passStaged gives a staged create's location to the table that it becomes. What has lapsed and was swept passes
// nothing; the table then reserves its location anew.
func passStaged(ctx context.Context, tx pgx.Tx, staged, table uuid.UUID) error {
	if _, err := tx.Exec(ctx, sqlTakeStagedLocations, pgx.NamedArgs{"staged": staged, "table": table}); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, sqlForgetStaged, pgx.NamedArgs{"id": staged})
	return err
}
