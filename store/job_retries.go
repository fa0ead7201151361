package store

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"catalogd/catalog"
	"catalogd/internal/fault"
	"catalogd/maintenance"
)

// The job keeps its id, its epoch and what it has done: whoever claims it goes on where it failed. The warehouse is held
// against the table's own: another one may have the name of the job's by now.
const sqlRetryJob = `
UPDATE jobs
SET state = 'queued', phase = '', progress = 0, attempts = 0, worker = '', lease_until = NULL, not_before = now(),
    trigger = 'on-demand', requested_by = @requested_by, started_at = NULL, finished_at = NULL
WHERE id = @job AND state = 'failed' AND (
    EXISTS (SELECT FROM tables WHERE tables.id = jobs.table_id AND tables.warehouse_id = @warehouse)
    OR jobs.dropped_from IS NOT NULL AND EXISTS (
        SELECT FROM dropped_tables
        WHERE dropped_tables.id = jobs.table_id AND dropped_tables.warehouse_id = @warehouse AND dropped_tables.purged_until IS NULL))
    AND NOT EXISTS (
        SELECT FROM jobs AS other
        WHERE other.table_id = jobs.table_id AND other.kind = jobs.kind AND other.state IN ('queued', 'running'))
RETURNING ` + jobColumns

// RetryJob puts a failed job back into the queue.
func (s *Store) RetryJob(ctx context.Context, r maintenance.Retry, f catalog.Fact) (maintenance.Job, error) {
	job, err := s.retryJob(ctx, r, f)
	if violates(err, "jobs_open") { // another job was added in this moment; only another transaction can see it
		job, err = s.retryJob(ctx, r, f)
	}
	if err != nil {
		return maintenance.Job{}, fmt.Errorf("retry job %s: %w", r.JobID, err)
	}
	return job, nil
}

func (s *Store) retryJob(ctx context.Context, r maintenance.Retry, f catalog.Fact) (job maintenance.Job, err error) {
	args := pgx.NamedArgs{"job": r.JobID, "warehouse": r.WarehouseID, "requested_by": storable(r.RequestedBy)}
	err = s.InTx(ctx, func(tx pgx.Tx) error {
		jobs, err := collectJobs(tx.Query(ctx, sqlRetryJob, args))
		if err != nil {
			return err
		}
		if len(jobs) == 1 {
			job = jobs[0]
			return writeFact(ctx, tx, f)
		}
		job, err = findOpen(ctx, tx, r.JobID)
		return err
	})
	return job, err
}

// findOpen gives the open job in whose favour a retry changes nothing: the job itself, or another of its table and kind.
func findOpen(ctx context.Context, tx pgx.Tx, id uuid.UUID) (maintenance.Job, error) {
	jobs, err := collectJobs(tx.Query(ctx, sqlFindJob, pgx.NamedArgs{"job": id}))
	switch {
	case err != nil:
		return maintenance.Job{}, err
	case len(jobs) == 0:
		return maintenance.Job{}, fault.New(fault.NotFound, "there is no job %s", id)
	case !jobs[0].State.Final():
		return jobs[0], nil
	case jobs[0].State != maintenance.Failed:
		return maintenance.Job{}, maintenance.WhyNotRetried(jobs[0])
	}
	open, err := collectJobs(tx.Query(ctx, sqlFindOpenJob, pgx.NamedArgs{"table": jobs[0].TableID, "kind": string(jobs[0].Kind)}))
	if err != nil {
		return maintenance.Job{}, err
	}
	if len(open) == 0 {
		return maintenance.Job{}, maintenance.WhyNotRetried(jobs[0])
	}
	return open[0], nil
}

const sqlListWarehouseJobs = `
SELECT ` + jobColumns + ` FROM jobs
WHERE jobs.warehouse_id = @warehouse AND jobs.state = ANY (@states::text[]) AND jobs.created_at <= @created_at::text::timestamptz
    AND (jobs.created_at < @created_at::text::timestamptz OR jobs.id > @last::uuid) AND (
    EXISTS (SELECT FROM tables WHERE tables.id = jobs.table_id AND tables.warehouse_id = @warehouse)
    OR EXISTS (SELECT FROM dropped_tables WHERE dropped_tables.id = jobs.table_id AND dropped_tables.warehouse_id = @warehouse))
ORDER BY jobs.created_at DESC, jobs.id
LIMIT @limit`

// ListWarehouseJobs gives the jobs on a warehouse's tables.
func (s *Store) ListWarehouseJobs(
	ctx context.Context, warehouseID uuid.UUID, p maintenance.JobsPage,
) ([]maintenance.Job, error) {
	names := make([]string, len(p.States))
	for i, state := range p.States {
		names[i] = string(state)
	}
	jobs, err := s.readJobs(ctx, sqlListWarehouseJobs, pgx.NamedArgs{
		"warehouse": warehouseID, "states": names, "created_at": boundary(p.CreatedAt, "infinity"), "last": p.ID, "limit": p.Limit,
	})
	if err != nil {
		return nil, fmt.Errorf("list the jobs of warehouse %s: %w", warehouseID, err)
	}
	return jobs, nil
}
