package store

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"catalogd/maintenance"
	"catalogd/vending"
)

const sqlBeginPurge = `
UPDATE dropped_tables SET purge_started_at = coalesce(dropped_tables.purge_started_at, now())
FROM jobs
WHERE jobs.id = @job AND dropped_tables.id = jobs.table_id`

// BeginPurge marks a dropped table as beyond help.
func (s *Store) BeginPurge(ctx context.Context, l maintenance.Lease) (bool, error) {
	begun := false
	err := s.InTx(ctx, func(tx pgx.Tx) error {
		args := leaseArgs(l, pgx.NamedArgs{})
		if err := holdLease(ctx, tx, args); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, sqlBeginPurge, args)
		begun = tag.RowsAffected() == 1
		return err
	})
	if err != nil {
		return false, fmt.Errorf("begin purge %s: %w", l.JobID, err)
	}
	return begun, nil
}

// Namespaces have no files of their own.
const sqlFindNeighbours = `
SELECT locations.location, locations.owner_id = jobs.table_id AS own
FROM jobs
JOIN dropped_tables ON dropped_tables.id = jobs.table_id
JOIN locations ON locations.owner_kind <> 'namespace'
    AND (locations.location = ANY (@above::text[]) OR locations.location >= @key AND locations.location < @past)
WHERE jobs.id = @job AND dropped_tables.purge_started_at IS NOT NULL`

// ConfirmPurge tells whether a dropped table's place is still its own.
func (s *Store) ConfirmPurge(ctx context.Context, l maintenance.Lease, location string) (neighbours []string, held bool, err error) {
	key := vending.Key(location)
	type place struct {
		Location string
		Own      bool
	}
	err = s.InTx(ctx, func(tx pgx.Tx) error {
		neighbours, held = nil, false
		args := leaseArgs(l, pgx.NamedArgs{"key": key, "above": prefixesOf(key), "past": key[:len(key)-1] + "0"})
		if err := holdLease(ctx, tx, args); err != nil {
			return err
		}
		places, err := collectFrom(ctx, tx, sqlFindNeighbours, args, pgx.RowToStructByPos[place])
		if err != nil {
			return err
		}
		for _, p := range places {
			if p.Own {
				held = held || p.Location == key
				continue
			}
			neighbours = append(neighbours, p.Location)
		}
		return nil
	})
	if err != nil {
		return nil, false, fmt.Errorf("confirm purge %s: %w", l.JobID, err)
	}
	return neighbours, held, nil
}

// holdLease refuses who does not hold a job's lease any more, and keeps it until the transaction ends.
func holdLease(ctx context.Context, tx pgx.Tx, args pgx.NamedArgs) error {
	var held uuid.UUID
	err := tx.QueryRow(ctx, sqlHoldFence, args).Scan(&held)
	if noRows(err) {
		return maintenance.ErrLeaseLost
	}
	return err
}

const sqlKeepDropped = `UPDATE dropped_tables SET purge_started_at = NULL WHERE id = @id`

// droppedSweepMax bounds how many lapsed rows one drop or staged create takes away. It is more than one, so that they
// grow fewer.
const droppedSweepMax = 100

// Places are locked with their rows, so that this waits for nobody who is taking one at this moment.
const sqlSweepDropped = `
WITH lapsed AS (
    SELECT dropped_tables.id
    FROM dropped_tables JOIN locations ON locations.owner_id = dropped_tables.id AND locations.owner_kind = 'dropped'
    WHERE coalesce(dropped_tables.purged_until, dropped_tables.unregistered_until) < now()
    ORDER BY coalesce(dropped_tables.purged_until, dropped_tables.unregistered_until)
    LIMIT @limit
    FOR UPDATE SKIP LOCKED
), freed AS (
    DELETE FROM locations USING lapsed WHERE locations.owner_id = lapsed.id AND locations.owner_kind = 'dropped'
)
DELETE FROM dropped_tables USING lapsed WHERE dropped_tables.id = lapsed.id`

// sweepDropped forgets unregistered and purged tables whose places are nobody's any more. Former places stay.
func sweepDropped(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, sqlSweepDropped, pgx.NamedArgs{"limit": droppedSweepMax})
	return err
}

// The row stays while its place is for nobody but its name.
const sqlSettlePurged = `
UPDATE dropped_tables SET purged_until = now() + make_interval(secs => @grace_seconds) WHERE id = @id`

// settleDropped lets go of a dropped table whose files are gone, or lets it be registered again.
func settleDropped(ctx context.Context, tx pgx.Tx, id uuid.UUID, fate maintenance.DroppedFate) error {
	args := pgx.NamedArgs{"id": id}
	switch fate {
	case maintenance.DroppedKept:
		_, err := tx.Exec(ctx, sqlKeepDropped, args)
		return err
	case maintenance.DroppedForgotten:
		args["grace_seconds"] = placeGrace.Seconds()
		_, err := tx.Exec(ctx, sqlSettlePurged, args)
		return err
	}
	return nil
}
