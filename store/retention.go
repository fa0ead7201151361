package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"catalogd/catalog"
)

// sweptAtOnce bounds what one transaction removes of each kind of records.
const sweptAtOnce = 1000

// Rows that nobody had read have no position. They get those behind the last, which are removed at once: whoever comes from
// before them has missed them.
const sqlSweepAudit = `
WITH old AS (
    SELECT id FROM audit WHERE at < now() - make_interval(secs => @seconds) ORDER BY at LIMIT @limit FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM audit WHERE id IN (SELECT id FROM old) RETURNING position
)` + tellSwept + `
    WHERE feeds.name = 'audit' AND sum.gone > 0
)
SELECT count(*) FROM gone`

const tellSwept = `, sum AS (
    SELECT count(*) AS gone, count(*) FILTER (WHERE position IS NULL) AS unplaced, max(position) AS placed FROM gone
), told AS (
    UPDATE feeds SET last = last + sum.unplaced,
        removed = greatest(removed, sum.placed, CASE WHEN sum.unplaced > 0 THEN last + sum.unplaced END)
    FROM sum`

// The oldest go, in the order in which they were written. What a webhook has not got stays, but not for ever: one that
// is not placed has been got by none.
const sqlSweepEvents = `
WITH needed AS (
    SELECT min(least(position, (
        SELECT min(d.position) - 1 FROM webhook_deliveries AS d WHERE d.webhook_id = webhooks.id AND d.state = 'waiting'
    ))) AS position, count(*) > 0 AS any FROM webhooks WHERE enabled
), old AS (
    SELECT id FROM events WHERE sequence IN (SELECT sequence FROM events ORDER BY sequence LIMIT @limit)
        AND at < now() - make_interval(secs => @seconds)
        AND (at < now() - make_interval(secs => @seconds_max)
             OR NOT (SELECT needed.any FROM needed) OR position <= (SELECT needed.position FROM needed))
    FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM events WHERE id IN (SELECT id FROM old) RETURNING position
)` + tellSwept + `
    WHERE feeds.name = 'events' AND sum.gone > 0
)
SELECT count(*) FROM gone`

const sqlSweepDeliveries = `
DELETE FROM webhook_deliveries WHERE (webhook_id, position) IN (
    SELECT webhook_id, position FROM webhook_deliveries
    WHERE state = 'dead' AND first_at < now() - make_interval(secs => @seconds)
    LIMIT @limit FOR UPDATE SKIP LOCKED)`

// The last of a table's jobs of a kind stays: the next plan looks at it, and so do people. One whose files are still
// recorded can be begun again.
const sqlSweepJobs = `
DELETE FROM jobs WHERE id IN (
    SELECT id FROM jobs AS old
    WHERE finished_at < now() - make_interval(secs => @seconds) AND state NOT IN ('queued', 'running')
      AND NOT EXISTS (SELECT FROM job_files WHERE job_id = old.id)
      AND (EXISTS (SELECT FROM jobs AS newer
                   WHERE newer.table_id = old.table_id AND newer.kind = old.kind AND newer.finished_at > old.finished_at)
           OR NOT EXISTS (SELECT FROM tables WHERE tables.id = old.table_id)
              AND NOT EXISTS (SELECT FROM dropped_tables WHERE dropped_tables.id = old.table_id))
    ORDER BY finished_at
    LIMIT @limit FOR UPDATE SKIP LOCKED)`

const sqlSweepMetrics = `
DELETE FROM metrics_reports WHERE id IN (
    SELECT id FROM metrics_reports WHERE id IN (SELECT id FROM metrics_reports ORDER BY id LIMIT @limit)
        AND at < now() - make_interval(secs => @seconds)
    FOR UPDATE SKIP LOCKED)`

// SweepRecords removes old records, up to a limit of each kind.
func (s *Store) SweepRecords(ctx context.Context, k catalog.Keep) (int, error) {
	total := 0
	counted := func(feed, sql string) func(context.Context, pgx.Tx, pgx.NamedArgs) (int, error) {
		return func(ctx context.Context, tx pgx.Tx, args pgx.NamedArgs) (n int, err error) {
			// First, as who places rows does: in the other order the two would wait for each other.
			if _, err := tx.Exec(ctx, sqlLockFeed, pgx.NamedArgs{"feed": feed}); err != nil {
				return 0, err
			}
			err = tx.QueryRow(ctx, sql, args).Scan(&n)
			return n, err
		}
	}
	affected := func(sql string) func(context.Context, pgx.Tx, pgx.NamedArgs) (int, error) {
		return func(ctx context.Context, tx pgx.Tx, args pgx.NamedArgs) (int, error) {
			tag, err := tx.Exec(ctx, sql, args)
			return int(tag.RowsAffected()), err
		}
	}
	for _, sweep := range []struct {
		what string
		keep time.Duration
		run  func(context.Context, pgx.Tx, pgx.NamedArgs) (int, error)
	}{
		{"audit rows", k.Audit, counted(feedAudit, sqlSweepAudit)},
		{"events", k.Events, counted(feedEvents, sqlSweepEvents)},
		{"deliveries", k.Events, affected(sqlSweepDeliveries)},
		{"jobs", k.Jobs, affected(sqlSweepJobs)},
		{"metrics reports", k.Metrics, affected(sqlSweepMetrics)},
	} {
		if sweep.keep <= 0 {
			continue
		}
		removed := 0
		err := s.InTx(ctx, func(tx pgx.Tx) (err error) {
			removed, err = sweep.run(ctx, tx, pgx.NamedArgs{
				"seconds": sweep.keep.Seconds(), "seconds_max": catalog.EventsKeepFactor * sweep.keep.Seconds(), "limit": sweptAtOnce,
			})
			return err
		})
		if err != nil {
			return total, fmt.Errorf("remove old %s: %w", sweep.what, err)
		}
		total += removed
	}
	return total, nil
}
