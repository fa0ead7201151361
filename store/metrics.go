package store

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"catalogd/catalog"
)

const sqlInsertReport = `
INSERT INTO metrics_reports (id, table_id, at, principal, report_type, snapshot_id, report)
VALUES (@id, @table, @at, @principal, @type, @snapshot, @report)
ON CONFLICT (id) DO NOTHING`

// AddReport keeps a client's report.
func (s *Store) AddReport(ctx context.Context, r catalog.MetricsReport) error {
	return s.read(ctx, func(q querier) error { // one statement is a transaction of its own
		_, err := q.Exec(ctx, sqlInsertReport, pgx.NamedArgs{
			"id": r.ID, "table": r.TableID, "at": r.At, "principal": storable(r.Principal), "type": storable(r.Type),
			"snapshot": r.SnapshotID, "report": storable(string(r.Report)),
		})
		return err
	})
}

const sqlListReports = `
SELECT id, at, principal, report_type, snapshot_id, report
FROM metrics_reports
WHERE table_id = @table AND (@type::text = '' OR report_type = @type::text) AND (@before::uuid IS NULL OR id < @before::uuid)
ORDER BY id DESC
LIMIT @limit`

// ListReports gives a table's reports, newest first.
func (s *Store) ListReports(ctx context.Context, tableID uuid.UUID, p catalog.MetricsPage) ([]catalog.MetricsReport, error) {
	args := pgx.NamedArgs{"table": tableID, "type": lookup(p.Type), "before": nullable(p.Before), "limit": p.Limit}
	return collect(ctx, s, sqlListReports, args, func(row pgx.CollectableRow) (catalog.MetricsReport, error) {
		r := catalog.MetricsReport{TableID: tableID}
		err := row.Scan(&r.ID, &r.At, &r.Principal, &r.Type, &r.SnapshotID, &r.Report)
		r.At = r.At.UTC()
		return r, err
	})
}

// Ids are time-ordered, so the oldest reports of all tables are at the beginning of the primary key's index.
const sqlSweepReports = `
WITH surplus AS (
    SELECT id FROM metrics_reports WHERE table_id = @table ORDER BY id DESC OFFSET @keep LIMIT @limit
), oldest AS (
    SELECT id, at FROM metrics_reports ORDER BY id LIMIT @limit
)
DELETE FROM metrics_reports WHERE id IN (SELECT id FROM surplus UNION ALL SELECT id FROM oldest WHERE at < @before)`

// SweepReports takes away what is beyond the newest of a table, and what is old of any table, a bounded number of each.
func (s *Store) SweepReports(ctx context.Context, sweep catalog.MetricsSweep) error {
	return s.read(ctx, func(q querier) error { // one statement is a transaction of its own
		_, err := q.Exec(ctx, sqlSweepReports, pgx.NamedArgs{
			"table": sweep.TableID, "keep": sweep.Keep, "before": sweep.Before, "limit": sweep.Limit,
		})
		return err
	})
}
