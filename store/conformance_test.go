package store

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"catalogd/catalog"
	"catalogd/catalog/catalogtest"
	"catalogd/internal/pgserver/pgtest"
	"catalogd/maintenance"
)

func TestStore_KeepsThePromises(t *testing.T) {
	catalogtest.Run(t, func(t *testing.T) catalog.Store {
		url := pgtest.Database(t)
		return &backdoorStore{Store: openAt(t, Config{URL: url}), url: url}
	})
}

func TestStore_KeepsThePromisesWithFoldedNames(t *testing.T) {
	catalogtest.RunFolded(t, func(t *testing.T) catalog.Store {
		url := pgtest.Database(t)
		return &backdoorStore{Store: openAt(t, Config{URL: url}), url: url}
	})
}

// TestStore_KeepsThePromisesThroughAPooler does without prepared statements and settings of a session.
func TestStore_KeepsThePromisesThroughAPooler(t *testing.T) {
	catalogtest.Run(t, func(t *testing.T) catalog.Store {
		url := pgtest.Database(t)
		return &backdoorStore{Store: openAt(t, Config{URL: url, SimpleProtocol: true}), url: url}
	})
}

// backdoorStore is a store that the suite may look into.
type backdoorStore struct {
	*Store
	url string
}

var _ catalogtest.Backdoor = (*backdoorStore)(nil)

func (s *backdoorStore) execute(t testing.TB, statement string, args pgx.NamedArgs) {
	t.Helper()
	err := s.InTx(context.Background(), func(tx pgx.Tx) error {
		_, err := tx.Exec(context.Background(), statement, args)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (s *backdoorStore) SetLease(t testing.TB, f catalog.Fence, held bool) {
	t.Helper()
	seconds := 60
	if !held {
		seconds = -1
	}
	s.execute(t, `
INSERT INTO jobs (id, kind, table_id, warehouse, subject, state, trigger, epoch, lease_until, not_before, created_at)
VALUES (@id, 'compaction', @id, 'w', 'a.t', 'running', 'on-demand', @epoch, now() + make_interval(secs => @seconds), now(), now())
ON CONFLICT (id) DO UPDATE SET epoch = EXCLUDED.epoch, lease_until = EXCLUDED.lease_until`,
		pgx.NamedArgs{"id": f.JobID, "epoch": f.Epoch, "seconds": seconds})
}

// rows reads as the store itself does, whichever way it talks to Postgres.
func rows[T any](t testing.TB, s *Store, query string, scan func(pgx.CollectableRow) (T, error)) []T {
	t.Helper()
	var found []T
	err := s.read(context.Background(), func(q querier) error {
		rows, err := q.Query(context.Background(), query)
		if err != nil {
			return err
		}
		found, err = pgx.CollectRows(rows, scan)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func (s *backdoorStore) EventRows(t testing.TB) []catalogtest.Event {
	t.Helper()
	return rows(t, s.Store, `
SELECT id, operation, coalesce(warehouse_id, '00000000-0000-0000-0000-000000000000'),
       coalesce(securable_id, '00000000-0000-0000-0000-000000000000'), subject
FROM events ORDER BY sequence`, func(row pgx.CollectableRow) (e catalogtest.Event, err error) {
		err = row.Scan(&e.ID, &e.Operation, &e.Warehouse, &e.Securable, &e.Subject)
		return e, err
	})
}

func (s *backdoorStore) AuditRows(t testing.TB) []catalogtest.Audit {
	t.Helper()
	return rows(t, s.Store, `
SELECT coalesce(event_id, '00000000-0000-0000-0000-000000000000'), principal, operation, subject, allowed, reason
FROM audit ORDER BY id`, func(row pgx.CollectableRow) (a catalogtest.Audit, err error) {
		err = row.Scan(&a.Event, &a.Principal, &a.Operation, &a.Subject, &a.Allowed, &a.Reason)
		return a, err
	})
}

func (s *backdoorStore) MaintenanceOf(t testing.TB, table uuid.UUID) (enabled, dirty bool) {
	t.Helper()
	err := s.InTx(context.Background(), func(tx pgx.Tx) error {
		err := tx.QueryRow(context.Background(), `SELECT enabled, dirty_since IS NOT NULL FROM table_maintenance WHERE table_id = @id`,
			pgx.NamedArgs{"id": table}).Scan(&enabled, &dirty)
		if noRows(err) {
			return nil
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return enabled, dirty
}

func (s *backdoorStore) LapseOutcome(t testing.TB, principal, key uuid.UUID) {
	t.Helper()
	s.execute(t, `UPDATE idempotency_keys SET expires_at = now() WHERE principal_id = @principal AND key = @key`,
		pgx.NamedArgs{"principal": principal, "key": key})
}

func (s *backdoorStore) Replica(t testing.TB) catalog.Store {
	t.Helper()
	replica, err := Open(context.Background(), Config{URL: s.url, SimpleProtocol: s.pooled})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(replica.Close)
	return replica
}

func (s *backdoorStore) LapseStaged(t testing.TB, staged uuid.UUID) {
	t.Helper()
	s.execute(t, `UPDATE staged_tables SET expires_at = now() - interval '3 days' WHERE table_uuid = @id`, pgx.NamedArgs{"id": staged})
}

func (s *backdoorStore) LapseDropped(t testing.TB, dropped uuid.UUID) {
	t.Helper()
	s.execute(t, `
UPDATE dropped_tables
SET unregistered_until = unregistered_until - interval '3 days', purged_until = purged_until - interval '3 days'
WHERE id = @id`,
		pgx.NamedArgs{"id": dropped})
}

func (s *backdoorStore) MarkPurging(t testing.TB, dropped uuid.UUID) {
	t.Helper()
	s.execute(t, `UPDATE dropped_tables SET purge_started_at = now() WHERE id = @id`, pgx.NamedArgs{"id": dropped})
}

func (s *backdoorStore) FinishPurge(t testing.TB, dropped uuid.UUID) {
	t.Helper()
	s.MarkPurging(t, dropped)
	err := s.InTx(context.Background(), func(tx pgx.Tx) error {
		return settleDropped(context.Background(), tx, dropped, maintenance.DroppedForgotten)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (s *backdoorStore) PurgeOf(t testing.TB, dropped uuid.UUID) (job catalog.PurgeJob, found bool) {
	t.Helper()
	var seconds float64
	err := s.InTx(context.Background(), func(tx pgx.Tx) error {
		err := tx.QueryRow(context.Background(), `
SELECT id, extract(epoch FROM not_before - created_at)::double precision FROM jobs
WHERE table_id = @id AND kind = 'purge' AND state = 'queued' AND dropped_from IS NOT NULL`,
			pgx.NamedArgs{"id": dropped}).Scan(&job.ID, &seconds)
		if noRows(err) {
			return nil
		}
		found = err == nil
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	job.Delay = time.Duration(seconds * float64(time.Second))
	return job, found
}

func (s *backdoorStore) LapseOutdated(t testing.TB) {
	t.Helper()
	s.execute(t, `UPDATE outdated_metadata SET delete_after = now() - interval '1 second', claimed_until = NULL`, pgx.NamedArgs{})
}
