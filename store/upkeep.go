package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"catalogd/catalog"
	"catalogd/internal/fault"
	"catalogd/maintenance"
	"catalogd/vending"
)

// Limits of the removal of outdated metadata files.
const (
	outdatedClaimSeconds = 120  // how long a claimed file is nobody else's: a round of removals, with its last one, is over
	outdatedRetrySeconds = 3600 // before a file that could not be removed is tried again
	outdatedAttemptsMax  = 10   // then it stays: an orphan like any other
)

const sqlInsertOutdated = `
INSERT INTO outdated_metadata (metadata_location, warehouse_id, table_id, location, delete_after)
SELECT file, @warehouse, @table, @location, now() + make_interval(secs => @grace_seconds)
FROM unnest(@files::text[]) AS file
WHERE EXISTS (SELECT 1 FROM events WHERE id = @event)
ON CONFLICT (metadata_location) DO NOTHING`

// queueOutdated remembers what a commit leaves behind, if it has left it: its event is there.
func queueOutdated(batch *pgx.Batch, c catalog.PointerChange) {
	if len(c.Outdated) == 0 {
		return
	}
	batch.Queue(sqlInsertOutdated, pgx.NamedArgs{
		"warehouse": c.WarehouseID, "table": c.Record.ID, "location": c.Record.Location, "files": c.Outdated,
		"grace_seconds": catalog.OutdatedGrace.Seconds(), "event": c.Fact.ID,
	})
}

const sqlSpareMetadata = `
DELETE FROM outdated_metadata
WHERE metadata_location = ANY (@spellings::text[]) AND (claimed_until IS NULL OR claimed_until < clock_timestamp())`

const sqlIsOutdated = `SELECT EXISTS (SELECT 1 FROM outdated_metadata WHERE metadata_location = ANY (@spellings::text[]))`

// keepRegistered takes a file that is registered, however it is spelled, out of those that may go.
func keepRegistered(ctx context.Context, tx pgx.Tx, changes []catalog.PointerChange) error {
	for _, c := range changes {
		if !c.Registered {
			continue
		}
		args := pgx.NamedArgs{"spellings": append(vending.Spellings(c.Record.MetadataLocation), c.Record.MetadataLocation)}
		if _, err := tx.Exec(ctx, sqlSpareMetadata, args); err != nil {
			return err
		}
		var going bool
		if err := tx.QueryRow(ctx, sqlIsOutdated, args).Scan(&going); err != nil {
			return err
		}
		if going {
			return fault.New(fault.Busy, "the metadata file %s is outdated and being removed at this moment", c.Record.MetadataLocation)
		}
	}
	return nil
}

const sqlDropHopelessOutdated = `DELETE FROM outdated_metadata WHERE delete_after < now() AND attempts >= @attempts`

const sqlFindCurrent = `SELECT metadata_location FROM tables WHERE metadata_location = ANY (@files::text[])`

// Files of one table come together: they are removed with one set of credentials.
const sqlClaimOutdated = `
UPDATE outdated_metadata
SET claimed_until = clock_timestamp() + make_interval(secs => @claim_seconds), attempts = attempts + 1,
    delete_after = now() + make_interval(secs => @retry_seconds)
WHERE metadata_location IN (
    SELECT metadata_location FROM outdated_metadata
    WHERE delete_after < now() AND (claimed_until IS NULL OR claimed_until < clock_timestamp())
    ORDER BY delete_after, metadata_location
    LIMIT @limit
    FOR UPDATE SKIP LOCKED)
RETURNING warehouse_id, table_id, location, metadata_location`

// ClaimOutdated takes files whose grace has passed.
func (s *Store) ClaimOutdated(ctx context.Context, limit int) ([]catalog.OutdatedFile, error) {
	var found []catalog.OutdatedFile
	err := s.InTx(ctx, func(tx pgx.Tx) error {
		args := pgx.NamedArgs{
			"limit": limit, "attempts": outdatedAttemptsMax, "claim_seconds": outdatedClaimSeconds,
			"retry_seconds": outdatedRetrySeconds,
		}
		if _, err := tx.Exec(ctx, sqlDropHopelessOutdated, args); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, sqlClaimOutdated, args)
		if err != nil {
			return err
		}
		if found, err = pgx.CollectRows(rows, pgx.RowToStructByPos[catalog.OutdatedFile]); err != nil || len(found) == 0 {
			return err
		}
		slices.SortFunc(found, func(a, b catalog.OutdatedFile) int {
			return strings.Compare(a.MetadataLocation, b.MetadataLocation)
		})
		found, err = withoutCurrent(ctx, tx, found)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("claim outdated metadata files: %w", err)
	}
	return found, nil
}

// withoutCurrent leaves out the current files of tables. There can be none: what is registered is taken off the list,
// and nothing else makes an old file current. But a mistake here would lose a table.
func withoutCurrent(ctx context.Context, tx pgx.Tx, found []catalog.OutdatedFile) ([]catalog.OutdatedFile, error) {
	var names []string
	for _, f := range found {
		names = append(names, vending.Spellings(f.MetadataLocation)...)
	}
	rows, err := tx.Query(ctx, sqlFindCurrent, pgx.NamedArgs{"files": names})
	if err != nil {
		return nil, err
	}
	current, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(current) == 0 {
		return found, err
	}
	var spared []string
	found = slices.DeleteFunc(found, func(f catalog.OutdatedFile) bool {
		live := slices.ContainsFunc(current, func(file string) bool { return vending.Plain(file) == vending.Plain(f.MetadataLocation) })
		if live {
			spared = append(spared, f.MetadataLocation)
		}
		return live
	})
	_, err = tx.Exec(ctx, sqlForgetOutdated, pgx.NamedArgs{"files": spared})
	return found, err
}

const sqlForgetOutdated = `DELETE FROM outdated_metadata WHERE metadata_location = ANY (@files::text[])`

// ForgetOutdated takes files away that were removed.
func (s *Store) ForgetOutdated(ctx context.Context, metadataLocations []string) error {
	return s.InTx(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, sqlForgetOutdated, pgx.NamedArgs{"files": metadataLocations})
		return err
	})
}

const sqlFindDropped = `
SELECT dropped_tables.id, dropped_tables.namespace, dropped_tables.name, dropped_tables.table_uuid, dropped_tables.location,
       dropped_tables.metadata_location, dropped_tables.dropped_at, warehouses.name
FROM dropped_tables JOIN warehouses ON warehouses.id = dropped_tables.warehouse_id
WHERE dropped_tables.id = @id AND dropped_tables.purged_until IS NULL`

// FindDropped gives a dropped table.
func (s *Store) FindDropped(ctx context.Context, id uuid.UUID) (catalog.DroppedTable, error) {
	var d catalog.DroppedTable
	var warehouse string
	err := s.read(ctx, func(q querier) error {
		r := &d.Record
		var levels []string
		err := q.QueryRow(ctx, sqlFindDropped, pgx.NamedArgs{"id": id}).Scan(&r.ID, &levels, &r.Ident.Name, &r.UUID, &r.Location,
			&r.MetadataLocation, &d.DroppedAt, &warehouse)
		if noRows(err) {
			return fault.New(fault.NotFound, "the dropped table is not there any more")
		}
		r.Kind, r.Ident.Namespace = catalog.KindTable, levels
		return err
	})
	if err != nil {
		return catalog.DroppedTable{}, err
	}
	d.Warehouse, err = s.FindWarehouse(ctx, warehouse)
	return d, err
}

const sqlListDropped = `
SELECT dropped_tables.id, dropped_tables.kind, dropped_tables.namespace, dropped_tables.name, dropped_tables.table_uuid,
       dropped_tables.location, dropped_tables.metadata_location, dropped_tables.dropped_at, dropped_tables.purge_requested,
       dropped_tables.unregistered_until IS NOT NULL,
       coalesce((SELECT jobs.id FROM jobs WHERE jobs.table_id = dropped_tables.id AND jobs.kind = 'purge'
                 ORDER BY jobs.created_at DESC LIMIT 1), '00000000-0000-0000-0000-000000000000')
FROM dropped_tables
WHERE dropped_tables.warehouse_id = @warehouse AND dropped_tables.purged_until IS NULL
ORDER BY dropped_tables.dropped_at DESC, dropped_tables.id
LIMIT @limit`

// ListDropped gives a warehouse's dropped tables and views.
func (s *Store) ListDropped(ctx context.Context, warehouseID uuid.UUID, limit int) ([]catalog.DroppedListed, error) {
	var found []catalog.DroppedListed
	err := s.read(ctx, func(q querier) error {
		rows, err := q.Query(ctx, sqlListDropped, pgx.NamedArgs{"warehouse": warehouseID, "limit": limit})
		if err != nil {
			return err
		}
		found, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (d catalog.DroppedListed, err error) {
			r := &d.Record
			var levels []string
			err = row.Scan(&r.ID, &r.Kind, &levels, &r.Ident.Name, &r.UUID, &r.Location, &r.MetadataLocation, &d.DroppedAt,
				&d.PurgeRequested, &d.Unregistered, &d.PurgeJob)
			r.Ident.Namespace = levels
			return d, err
		})
		return err
	})
	return found, err
}

const sqlInsertPurge = `
INSERT INTO jobs (id, kind, table_id, warehouse, subject, state, trigger, requested_by, not_before, created_at, dropped_from)
SELECT @job, @kind, dropped_tables.id, warehouses.name, @subject, 'queued', 'on-demand', @requested_by,
       now() + make_interval(secs => @delay_seconds), now(), dropped_tables.namespace
FROM dropped_tables JOIN warehouses ON warehouses.id = dropped_tables.warehouse_id
WHERE dropped_tables.id = @table`

// addPurge queues the job that removes a dropped table's files, in the transaction that drops it.
func addPurge(ctx context.Context, tx pgx.Tx, d catalog.TableDrop) error {
	_, err := tx.Exec(ctx, sqlInsertPurge, pgx.NamedArgs{
		"job": d.Purge.ID, "kind": string(maintenance.Purge), "table": d.ID, "subject": storable(d.Ident.String()),
		"requested_by": storable(d.Fact.Caller.Principal.Name), "delay_seconds": d.Purge.Delay.Seconds(),
	})
	return err
}
