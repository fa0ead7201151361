package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"catalogd/catalog"
	"catalogd/internal/fault"
	"catalogd/maintenance"
)

// jobRow is a row of jobs as the statements below list it. Finished and started are NULL until they happen.
type jobRow struct {
	ID          uuid.UUID
	Kind        string
	TableID     uuid.UUID
	Warehouse   string
	Subject     string
	State       string
	Trigger     string
	RequestedBy string
	Phase       string
	Progress    float64
	Outcome     []byte
	ReasonCode  string
	Reason      string
	Attempts    int
	Epoch       int64
	Worker      string
	NotBefore   time.Time
	CreatedAt   time.Time
	StartedAt   *time.Time
	FinishedAt  *time.Time
	DroppedFrom []string
}

func (r jobRow) job() (maintenance.Job, error) {
	j := maintenance.Job{
		ID: r.ID, Kind: maintenance.Kind(r.Kind), TableID: r.TableID, Warehouse: r.Warehouse, Subject: r.Subject,
		State: maintenance.State(r.State), Trigger: maintenance.Trigger(r.Trigger), RequestedBy: r.RequestedBy,
		Phase: r.Phase, Progress: r.Progress, Reason: maintenance.Reason{Code: r.ReasonCode, Message: r.Reason},
		Attempts: r.Attempts, Epoch: r.Epoch, Worker: r.Worker, NotBefore: r.NotBefore, CreatedAt: r.CreatedAt,
		DroppedFrom: r.DroppedFrom,
	}
	if r.StartedAt != nil {
		j.StartedAt = *r.StartedAt
	}
	if r.FinishedAt != nil {
		j.FinishedAt = *r.FinishedAt
	}
	if err := json.Unmarshal(r.Outcome, &j.Outcome); err != nil {
		return maintenance.Job{}, fmt.Errorf("decode the outcome of job %s: %w", r.ID, err)
	}
	return j, nil
}

// collectJobs reads all rows of a query whose columns are jobColumns.
func collectJobs(rows pgx.Rows, err error) ([]maintenance.Job, error) {
	if err != nil {
		return nil, err
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[jobRow])
	if err != nil {
		return nil, err
	}
	jobs := make([]maintenance.Job, len(found))
	for i, r := range found {
		if jobs[i], err = r.job(); err != nil {
			return nil, err
		}
	}
	return jobs, nil
}

const jobColumns = `jobs.id, jobs.kind, jobs.table_id, jobs.warehouse, jobs.subject, jobs.state, jobs.trigger,
    jobs.requested_by, jobs.phase, jobs.progress, jobs.outcome, jobs.reason_code, jobs.reason, jobs.attempts, jobs.epoch,
    jobs.worker, jobs.not_before, jobs.created_at, jobs.started_at, jobs.finished_at,
    jobs.dropped_from`

const sqlInsertJob = `
INSERT INTO jobs (id, kind, table_id, warehouse, subject, state, trigger, requested_by, not_before, created_at)
VALUES (@id, @kind, @table, @warehouse, @subject, 'queued', @trigger, @requested_by, now(), now())
ON CONFLICT (table_id, kind) WHERE state IN ('queued', 'running') DO NOTHING
RETURNING ` + jobColumns

const sqlFindOpenJob = `
SELECT ` + jobColumns + ` FROM jobs
WHERE table_id = @table AND kind = @kind AND state IN ('queued', 'running')`

// A request of a person does not wait for a delay that was meant for a job nobody waits for.
const sqlHastenJob = `
UPDATE jobs SET not_before = now(), trigger = 'on-demand', requested_by = @requested_by
WHERE table_id = @table AND kind = @kind AND state = 'queued' AND @trigger = 'on-demand'`

// enqueueTriesMax bounds the race of an open job that ends between our insertion and our look.
const enqueueTriesMax = 5

// EnqueueJob adds a job, or gives the open one.
func (s *Store) EnqueueJob(ctx context.Context, n maintenance.NewJob, f *catalog.Fact) (maintenance.Job, bool, error) {
	var job maintenance.Job
	created := false
	args := pgx.NamedArgs{
		"id": n.ID, "kind": string(n.Kind), "table": n.Table.ID, "warehouse": n.Table.Warehouse,
		"subject": storable(n.Table.Ident.String()), "trigger": string(n.Trigger), "requested_by": storable(n.RequestedBy),
	}
	err := s.InTx(ctx, func(tx pgx.Tx) error {
		for range enqueueTriesMax {
			jobs, err := collectJobs(tx.Query(ctx, sqlInsertJob, args))
			if err != nil {
				return err
			}
			if len(jobs) == 1 {
				job, created = jobs[0], true
				if f == nil {
					return nil
				}
				return writeFact(ctx, tx, *f)
			}
			if _, err := tx.Exec(ctx, sqlHastenJob, args); err != nil {
				return err
			}
			if jobs, err = collectJobs(tx.Query(ctx, sqlFindOpenJob, args)); err != nil {
				return err
			}
			if len(jobs) == 1 {
				job, created = jobs[0], false
				return nil
			}
		}
		return fault.New(fault.Busy, "jobs of table %s begin and end too fast to add one", n.Table.Ident)
	})
	if err != nil {
		return maintenance.Job{}, false, fmt.Errorf("enqueue a %s job for %s: %w", n.Kind, n.Table.Ident, err)
	}
	return job, created, nil
}

// Jobs of kinds that only another version knows are left to it. The oldest job that is due comes first; one whose lease has run out is due. A job that is just being committed is
// locked by the commit's fence and skipped.
const sqlClaimJob = `
UPDATE jobs
SET state = 'running', epoch = jobs.epoch + 1, attempts = jobs.attempts + 1, worker = @worker, phase = '', progress = 0,
    lease_until = clock_timestamp() + @lease, started_at = coalesce(jobs.started_at, now())
WHERE id = (
    SELECT due.id FROM jobs AS due
    WHERE due.state IN ('queued', 'running') AND due.not_before <= now() AND due.kind = ANY (@kinds::text[])
      AND (due.state = 'queued' OR due.lease_until < clock_timestamp())
    ORDER BY due.not_before, due.id
    LIMIT 1
    FOR UPDATE SKIP LOCKED)
RETURNING ` + jobColumns

const sqlFindTableRef = `
SELECT tables.id, warehouses.name, namespaces.levels, tables.name
FROM tables
JOIN namespaces ON namespaces.id = tables.namespace_id
JOIN warehouses ON warehouses.id = tables.warehouse_id
WHERE tables.id = ANY(@ids::text[]::uuid[]) AND tables.kind = 'table'`

// ClaimJob takes a due job.
func (s *Store) ClaimJob(ctx context.Context, worker string) (*maintenance.Claim, error) {
	var claim *maintenance.Claim
	err := s.InTx(ctx, func(tx pgx.Tx) error {
		claim = nil
		jobs, err := collectJobs(tx.Query(ctx, sqlClaimJob, pgx.NamedArgs{
			"worker": storable(worker), "lease": maintenance.LeaseDuration, "kinds": maintenance.KindNames(),
		}))
		if err != nil || len(jobs) == 0 {
			return err
		}
		refs, err := findTableRefs(ctx, tx, []uuid.UUID{jobs[0].TableID})
		if err != nil {
			return err
		}
		claim = &maintenance.Claim{Job: jobs[0]}
		if len(refs) == 1 {
			claim.Table = &refs[0]
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("claim a job: %w", err)
	}
	return claim, nil
}

// findTableRefs gives the present names of tables; those that are gone are left out.
func findTableRefs(ctx context.Context, q querier, ids []uuid.UUID) ([]maintenance.TableRef, error) {
	return collectFrom(ctx, q, sqlFindTableRef, pgx.NamedArgs{"ids": idTexts(ids)}, func(row pgx.CollectableRow) (maintenance.TableRef, error) {
		var r maintenance.TableRef
		var levels []string
		err := row.Scan(&r.ID, &r.Warehouse, &levels, &r.Ident.Name)
		r.Ident.Namespace = levels
		return r, err
	})
}

const sqlExtendLease = `
UPDATE jobs SET lease_until = clock_timestamp() + @lease
WHERE id = @job AND epoch = @epoch AND state = 'running' AND lease_until > clock_timestamp()`

// ExtendLease is the heartbeat.
func (s *Store) ExtendLease(ctx context.Context, l maintenance.Lease) error {
	return s.InTx(ctx, func(tx pgx.Tx) error {
		return execHeld(ctx, tx, sqlExtendLease, leaseArgs(l, pgx.NamedArgs{"lease": maintenance.LeaseDuration}))
	})
}

func leaseArgs(l maintenance.Lease, args pgx.NamedArgs) pgx.NamedArgs {
	args["job"], args["epoch"] = l.JobID, l.Epoch
	return args
}

// execHeld runs an update of the one row that a lease names. No row: the lease is lost.
func execHeld(ctx context.Context, tx pgx.Tx, sql string, args pgx.NamedArgs) error {
	tag, err := tx.Exec(ctx, sql, args)
	if err != nil {
		return err
	}
	if tag.RowsAffected() == 0 {
		return maintenance.ErrLeaseLost
	}
	return nil
}

const sqlSaveProgress = `
UPDATE jobs SET phase = @phase, progress = @progress, outcome = @outcome
WHERE id = @job AND epoch = @epoch AND state = 'running' AND lease_until > clock_timestamp()`

// SaveProgress keeps how far a job is.
func (s *Store) SaveProgress(ctx context.Context, l maintenance.Lease, p maintenance.Progress) error {
	outcome, err := json.Marshal(p.Outcome)
	if err != nil {
		return fmt.Errorf("encode an outcome: %w", err)
	}
	return s.InTx(ctx, func(tx pgx.Tx) error {
		return execHeld(ctx, tx, sqlSaveProgress, leaseArgs(l, pgx.NamedArgs{
			"phase": p.Phase, "progress": p.Fraction, "outcome": string(outcome),
		}))
	})
}

// The time is from the first claim on, whoever worked.
const sqlFinishJob = `
UPDATE jobs
SET state = @state, phase = '', progress = 1, reason_code = @code, reason = @reason, lease_until = NULL,
    finished_at = clock_timestamp(),
    outcome = @outcome::jsonb || jsonb_build_object('seconds', round(extract(epoch FROM clock_timestamp() - started_at), 3))
WHERE id = @job AND epoch = @epoch AND state = 'running' AND lease_until > clock_timestamp()
RETURNING table_id`

const sqlSaveLayout = `
INSERT INTO table_maintenance (table_id, layout, updated_at) VALUES (@table, @layout, now())
ON CONFLICT (table_id) DO UPDATE SET layout = EXCLUDED.layout, updated_at = EXCLUDED.updated_at`

const sqlLookAfter = `
UPDATE table_maintenance SET look_after = now() + @after::interval WHERE table_id = @table`

// encodeLayout writes a layout as JSON that a jsonb column takes: names of columns may hold what it does not.
func encodeLayout(l *maintenance.LayoutRecord) ([]byte, error) {
	if l != nil {
		kept := *l
		kept.Columns = texts(l.Columns, storable)
		l = &kept
	}
	text, err := json.Marshal(l)
	if err != nil {
		return nil, fmt.Errorf("encode a layout: %w", err)
	}
	return text, nil
}

// FinishJob ends a job.
func (s *Store) FinishJob(ctx context.Context, l maintenance.Lease, f maintenance.Finish) error {
	outcome, err := json.Marshal(f.Outcome)
	if err != nil {
		return fmt.Errorf("encode an outcome: %w", err)
	}
	layout, err := encodeLayout(f.Layout)
	if err != nil {
		return err
	}
	return s.InTx(ctx, func(tx pgx.Tx) error {
		var table uuid.UUID
		err := tx.QueryRow(ctx, sqlFinishJob, leaseArgs(l, pgx.NamedArgs{
			"state": string(f.State), "code": f.Reason.Code, "reason": storable(f.Reason.Message), "outcome": string(outcome),
		})).Scan(&table)
		if noRows(err) {
			return maintenance.ErrLeaseLost
		}
		if err != nil {
			return err
		}
		if f.Layout != nil {
			if _, err := tx.Exec(ctx, sqlSaveLayout, pgx.NamedArgs{"table": table, "layout": string(layout)}); err != nil {
				return err
			}
		}
		if len(f.Kept) > 0 {
			if _, err := tx.Exec(ctx, sqlForgetFiles, leaseArgs(l, pgx.NamedArgs{"paths": f.Kept})); err != nil {
				return err
			}
		}
		if err := settleDropped(ctx, tx, table, f.Dropped); err != nil {
			return err
		}
		if f.LookAfter <= 0 {
			return nil
		}
		_, err = tx.Exec(ctx, sqlLookAfter, pgx.NamedArgs{"table": table, "after": f.LookAfter})
		return err
	})
}

const sqlReleaseJob = `
UPDATE jobs
SET state = 'queued', phase = '', progress = 0, worker = '', lease_until = NULL, not_before = now() + @delay::interval,
    reason_code = @code, reason = @reason, attempts = attempts - @uncounted, outcome = coalesce(@outcome::jsonb, outcome)
WHERE id = @job AND epoch = @epoch AND state = 'running' AND lease_until > clock_timestamp()`

// ReleaseJob gives a job back.
func (s *Store) ReleaseJob(ctx context.Context, l maintenance.Lease, r maintenance.Release) error {
	uncounted := 0
	if r.Uncounted {
		uncounted = 1
	}
	var outcome *string
	if r.Outcome != nil {
		text, err := json.Marshal(r.Outcome)
		if err != nil {
			return fmt.Errorf("encode an outcome: %w", err)
		}
		outcome = new(string(text))
	}
	return s.InTx(ctx, func(tx pgx.Tx) error {
		return execHeld(ctx, tx, sqlReleaseJob, leaseArgs(l, pgx.NamedArgs{
			"delay": r.Delay, "code": r.Reason.Code, "reason": storable(r.Reason.Message), "uncounted": uncounted,
			"outcome": outcome,
		}))
	})
}

const sqlRecordFiles = `
INSERT INTO job_files (job_id, path) SELECT @job, unnest(@paths::text[]) ON CONFLICT (job_id, path) DO NOTHING`

// RecordFiles keeps the names of files that are about to be written.
func (s *Store) RecordFiles(ctx context.Context, l maintenance.Lease, paths []string) error {
	return s.withLease(ctx, l, sqlRecordFiles, paths)
}

const sqlForgetFiles = `DELETE FROM job_files WHERE job_id = @job AND path = ANY(@paths::text[])`

// ForgetFiles takes names away.
func (s *Store) ForgetFiles(ctx context.Context, l maintenance.Lease, paths []string) error {
	return s.withLease(ctx, l, sqlForgetFiles, paths)
}

// withLease changes a job's files while its lease holds: the fence's statement locks the job's row.
func (s *Store) withLease(ctx context.Context, l maintenance.Lease, sql string, paths []string) error {
	return s.InTx(ctx, func(tx pgx.Tx) error {
		args := leaseArgs(l, pgx.NamedArgs{"paths": paths})
		if err := holdLease(ctx, tx, args); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, sql, args)
		return err
	})
}

const sqlListJobFiles = `SELECT path FROM job_files WHERE job_id = @job ORDER BY path`

// ListFiles gives the recorded files of a job.
func (s *Store) ListFiles(ctx context.Context, jobID uuid.UUID) ([]string, error) {
	return collect(ctx, s, sqlListJobFiles, pgx.NamedArgs{"job": jobID}, pgx.RowTo[string])
}

const sqlFindJob = `SELECT ` + jobColumns + ` FROM jobs WHERE id = @job`

// FindJob gives a job by its id.
func (s *Store) FindJob(ctx context.Context, id uuid.UUID) (maintenance.Job, error) {
	jobs, err := s.readJobs(ctx, sqlFindJob, pgx.NamedArgs{"job": id})
	if err != nil {
		return maintenance.Job{}, fmt.Errorf("find job %s: %w", id, err)
	}
	if len(jobs) == 0 {
		return maintenance.Job{}, fault.New(fault.NotFound, "there is no job %s", id)
	}
	return jobs[0], nil
}

const sqlListJobs = `
SELECT ` + jobColumns + ` FROM jobs WHERE table_id = @table ORDER BY created_at DESC, id LIMIT @limit`

// ListJobs gives a table's jobs, newest first.
func (s *Store) ListJobs(ctx context.Context, tableID uuid.UUID, limit int) ([]maintenance.Job, error) {
	jobs, err := s.readJobs(ctx, sqlListJobs, pgx.NamedArgs{"table": tableID, "limit": limit})
	if err != nil {
		return nil, fmt.Errorf("list the jobs of table %s: %w", tableID, err)
	}
	return jobs, nil
}

func (s *Store) readJobs(ctx context.Context, sql string, args pgx.NamedArgs) ([]maintenance.Job, error) {
	var jobs []maintenance.Job
	err := s.read(ctx, func(q querier) error {
		var err error
		jobs, err = collectJobs(q.Query(ctx, sql, args))
		return err
	})
	return jobs, err
}

// FindTableRef gives the present name of a table.
func (s *Store) FindTableRef(ctx context.Context, tableID uuid.UUID) (maintenance.TableRef, error) {
	var refs []maintenance.TableRef
	err := s.read(ctx, func(q querier) error {
		var err error
		refs, err = findTableRefs(ctx, q, []uuid.UUID{tableID})
		return err
	})
	if err != nil {
		return maintenance.TableRef{}, fmt.Errorf("find table %s: %w", tableID, err)
	}
	if len(refs) == 0 {
		return maintenance.TableRef{}, fault.New(fault.NotFound, "the table is not there any more")
	}
	return refs[0], nil
}
