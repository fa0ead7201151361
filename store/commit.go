package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"catalogd/catalog"
	"catalogd/internal/crash"
	"catalogd/internal/fault"
)

// operationAbandoned marks an event that was written instead of a commit's, by who asked whether it had landed.
const operationAbandoned = "commit-abandoned"

// CommitPointers moves, or makes, the pointers of all changes or of none.
func (s *Store) CommitPointers(ctx context.Context, changes []catalog.PointerChange, fence catalog.Fence) error {
	for _, c := range changes {
		if err := checkNames(c.Record.Ident.Name); err != nil {
			return err
		}
	}
	if alone(changes, fence) {
		return s.commitAlone(ctx, changes[0])
	}
	// Rows are locked in one order by everybody, so that two commits of the same tables do not wait for each other.
	ordered := slices.Clone(changes)
	slices.SortStableFunc(ordered, func(a, b catalog.PointerChange) int {
		return cmp.Compare(a.Record.ID.String(), b.Record.ID.String())
	})
	return s.InTx(ctx, func(tx pgx.Tx) error {
		if err := reserveForCommit(ctx, tx, ordered); err != nil {
			return err
		}
		if err := holdFence(ctx, tx, fence); err != nil {
			return err
		}
		if err := keepRegistered(ctx, tx, ordered); err != nil {
			return err
		}
		return movePointers(ctx, tx, ordered)
	})
}

// alone tells that a commit asks nothing before it moves its pointer: it is one table's or view's, takes no location and
// holds no lease.
func alone(changes []catalog.PointerChange, fence catalog.Fence) bool {
	return len(changes) == 1 && changes[0].Old != "" && changes[0].OldLocation == "" && !changes[0].Registered &&
		fence.JobID == uuid.Nil
}

// commitAlone sends a commit whole, in one round trip: its statements are one transaction that ends with them, without
// BEGIN and COMMIT. Where the pointer has not moved they write nothing. So the outcome is certain when the database tells
// it, and when nothing was sent; else it is fault.CommitUnknown, and not tried again here.
func (s *Store) commitAlone(ctx context.Context, c catalog.PointerChange) error {
	moved := false
	err := retry(ctx, func() error {
		batch := &pgx.Batch{}
		if s.pooled {
			batch.Queue(setSchema)
		}
		if err := queuePointer(batch, c, &moved); err != nil {
			return err
		}
		conn, err := s.pool.Acquire(ctx)
		if err != nil {
			return err
		}
		defer conn.Release()
		if err := ctx.Err(); err != nil {
			return err // nothing was sent yet, so the outcome is certain
		}
		results := conn.SendBatch(ctx, batch)
		crash.Point("commit-in-transaction")
		return sentOutcome(results.Close())
	})
	if err != nil {
		return err
	}
	if moved {
		s.tell([]catalog.Fact{c.Fact})
		return nil
	}
	return s.read(ctx, func(q querier) error { return whyNotMoved(ctx, q, c) })
}

// errOnlyAsked rolls a transaction back that was run for its refusals alone.
var errOnlyAsked = errors.New("nothing was to be kept")

// CheckPlaces tells whether the changes' locations would be refused now: it takes them and gives them back.
func (s *Store) CheckPlaces(ctx context.Context, changes []catalog.PointerChange) error {
	err := s.InTx(ctx, func(tx pgx.Tx) error {
		if err := reserveForCommit(ctx, tx, changes); err != nil {
			return err
		}
		return errOnlyAsked
	})
	if errors.Is(err, errOnlyAsked) {
		return nil
	}
	return err
}

// reserveForCommit gives the locations of new tables, and the new locations of moved ones, to their tables.
func reserveForCommit(ctx context.Context, tx pgx.Tx, changes []catalog.PointerChange) error {
	var wanted []reservation
	for _, c := range changes {
		if c.Old != "" && c.OldLocation == "" {
			continue
		}
		wanted = append(wanted, reservation{
			warehouse: c.WarehouseID, location: c.Record.Location, kind: ownerTable, owner: c.Record.ID,
			ident: c.Record.Ident, tableUUID: c.Record.UUID, principal: c.Fact.Caller.Principal.ID,
			staged: c.StagedUUID, registers: c.Registered, restores: c.Restores,
		})
	}
	return reserve(ctx, tx, wanted)
}

// The share lock keeps the job from being claimed by somebody else until this transaction has ended. The clock is
// the wall's, not the transaction's: waiting for locks may have taken longer than the lease.
const sqlHoldFence = `
SELECT id FROM jobs
WHERE id = @job AND epoch = @epoch AND state = 'running' AND lease_until > clock_timestamp()
FOR SHARE`

func holdFence(ctx context.Context, tx pgx.Tx, fence catalog.Fence) error {
	if fence.JobID == uuid.Nil {
		return nil
	}
	var held uuid.UUID
	err := tx.QueryRow(ctx, sqlHoldFence, pgx.NamedArgs{"job": fence.JobID, "epoch": fence.Epoch}).Scan(&held)
	if noRows(err) {
		return fault.New(fault.VersionConflict, "the lease of job %s is not held any more", fence.JobID)
	}
	return err
}

// movePointers sends everything in one round trip and then looks whether each pointer moved.
func movePointers(ctx context.Context, tx pgx.Tx, changes []catalog.PointerChange) error {
	batch := &pgx.Batch{}
	moved := make([]bool, len(changes))
	for i, c := range changes {
		if err := queuePointer(batch, c, &moved[i]); err != nil {
			return err
		}
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return commitRefused(err, changes)
	}
	for i, c := range changes {
		if !moved[i] {
			return whyNotMoved(ctx, tx, c)
		}
		noteFact(tx, c.Fact)
	}
	crash.Point("commit-in-transaction")
	return nil
}

// commitRefused names the namespace that is gone; the database does not say which one it was.
func commitRefused(err error, changes []catalog.PointerChange) error {
	if violates(err, "tables_namespace_fkey") {
		for _, c := range changes {
			if c.Old == "" {
				return fault.Wrap(fault.NoSuchNamespace, err, "Namespace does not exist: %s", c.Record.Ident.Namespace)
			}
		}
	}
	return err
}

const sqlFindKind = `SELECT kind FROM tables WHERE id = @id`

// whyNotMoved explains a change that touched no row: a name that is taken, a table that is gone, or a lost race.
func whyNotMoved(ctx context.Context, q querier, c catalog.PointerChange) error {
	var kind catalog.Kind
	if c.Old == "" {
		var holder uuid.UUID
		var name string
		err := q.QueryRow(ctx, sqlFindName, pgx.NamedArgs{
			"namespace": c.Record.NamespaceID, "name": c.Record.Ident.Name, "name_key": fold(c.Record.Ident.Name),
		}).Scan(&holder, &kind, &name)
		switch {
		case noRows(err): // it was there when we inserted and is gone now
			return fault.New(fault.CommitRace, "the name %s was taken and freed meanwhile", c.Record.Ident)
		case err != nil:
			return err
		}
		return c.Record.Kind.Taken(c.Record.Ident, kind)
	}
	err := q.QueryRow(ctx, sqlFindKind, pgx.NamedArgs{"id": c.Record.ID}).Scan(&kind)
	if noRows(err) {
		return c.Record.Kind.Missing(c.Record.Ident)
	}
	if err != nil {
		return err
	}
	return fault.New(fault.CommitRace, "%s %s was changed by another commit", c.Record.Kind, c.Record.Ident)
}

const sqlAbandonCommit = `
INSERT INTO events (id, at, operation) VALUES (@id, now(), 'commit-abandoned') ON CONFLICT (id) DO NOTHING`

const sqlFindEvent = `SELECT operation FROM events WHERE id = @id`

// CommitLanded settles whether a commit landed. Its event's id can be inserted once: by the commit, or here, and
// then the commit, should it still be on its way, fails. While the commit is being decided, the insertion waits.
func (s *Store) CommitLanded(ctx context.Context, commitID uuid.UUID) (bool, error) {
	landed := false
	err := s.InTx(ctx, func(tx pgx.Tx) error {
		args := pgx.NamedArgs{"id": commitID}
		tag, err := tx.Exec(ctx, sqlAbandonCommit, args)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 1 {
			landed = false
			return nil
		}
		var operation string
		if err := tx.QueryRow(ctx, sqlFindEvent, args).Scan(&operation); err != nil {
			return err
		}
		landed = operation != operationAbandoned
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("ask for the outcome of commit %s: %w", commitID, err)
	}
	return landed, nil
}
