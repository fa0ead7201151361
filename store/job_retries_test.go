package store

import (
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"catalogd/catalog"
	"catalogd/internal/fault"
	"catalogd/maintenance"
)

// retryOf asks for a job of the bench's table to be begun again.
func (b *jobBench) retryOf(id uuid.UUID) (maintenance.Job, error) {
	b.t.Helper()
	return b.store.RetryJob(b.t.Context(), maintenance.Retry{JobID: id, WarehouseID: b.warehouseOf(b.table), RequestedBy: "root"},
		catalog.Fact{ID: uuid.New(), Operation: "retry-job", Securable: b.table.ID, Subject: b.table.Ident.String()})
}

func (b *jobBench) warehouseOf(table maintenance.TableRef) (id uuid.UUID) {
	b.t.Helper()
	err := b.store.InTx(b.t.Context(), func(tx pgx.Tx) error {
		return tx.QueryRow(b.t.Context(), `SELECT id FROM warehouses WHERE name = @name`, pgx.NamedArgs{"name": table.Warehouse}).Scan(&id)
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return id
}

func (b *jobBench) facts() (n int) {
	b.t.Helper()
	err := b.store.InTx(b.t.Context(), func(tx pgx.Tx) error {
		return tx.QueryRow(b.t.Context(), `SELECT count(*) FROM events WHERE operation = 'retry-job'`).Scan(&n)
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return n
}

// fail ends a claimed job as failed.
func (b *jobBench) fail(job maintenance.Job) {
	b.t.Helper()
	err := b.store.FinishJob(b.t.Context(), job.Lease(), maintenance.Finish{
		State: maintenance.Failed, Reason: maintenance.Reason{Code: maintenance.CodeError, Message: "denied"}, Outcome: maintenance.Outcome{FilesRemoved: 7},
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// A failed job goes back into the queue with its id, its figures and all its attempts; its old lease stays dead.
func TestJobs_RetryOfAFailedJob(t *testing.T) {
	b := newJobBench(t)
	b.enqueue(b.table, maintenance.Automatic)
	claimed := b.mustClaim("w1")
	b.fail(claimed)
	job, err := b.retryOf(claimed.ID)
	if err != nil || job.ID != claimed.ID || job.State != maintenance.Queued || job.Attempts != 0 || job.Epoch != 1 || job.RequestedBy != "root" ||
		job.Outcome.FilesRemoved != 7 || job.Reason.Message != "denied" || !job.FinishedAt.IsZero() || !job.StartedAt.IsZero() {
		t.Fatalf("%v: %+v", err, job)
	}
	if again, err := b.retryOf(claimed.ID); err != nil || again.ID != job.ID || b.facts() != 1 {
		t.Errorf("the repeat: %v %+v, %d facts", err, again, b.facts())
	}
	if err := b.store.ExtendLease(t.Context(), claimed.Lease()); !fault.Is(err, fault.VersionConflict) {
		t.Errorf("the old lease: %v", err)
	}
	if next := b.mustClaim("w2"); next.ID != claimed.ID || next.Attempts != 1 || next.Epoch != 2 {
		t.Errorf("claimed %+v", next)
	}
}

// Jobs that did not fail, that are not there or whose table is gone are refused, and nothing is written.
func TestJobs_RetryIsRefused(t *testing.T) {
	b := newJobBench(t)
	job, _ := b.enqueue(b.table, maintenance.OnDemand)
	for _, state := range []maintenance.State{maintenance.Succeeded, maintenance.NothingToDo, maintenance.Refused} {
		b.exec(`UPDATE jobs SET state = @state`, pgx.NamedArgs{"state": string(state)})
		if _, err := b.retryOf(job.ID); !fault.Is(err, fault.IllegalArgument) {
			t.Errorf("%s: %v", state, err)
		}
	}
	b.exec(`UPDATE jobs SET state = 'failed'`, nil)
	other := b.addTable("other")
	_, err := b.store.RetryJob(t.Context(), maintenance.Retry{JobID: job.ID, WarehouseID: b.warehouseOf(other)}, catalog.Fact{ID: uuid.New()})
	if !fault.Is(err, fault.IllegalArgument) {
		t.Errorf("from another warehouse: %v", err)
	}
	if _, err := b.retryOf(uuid.New()); !fault.Is(err, fault.NotFound) {
		t.Errorf("an unknown job: %v", err)
	}
	b.exec(`DELETE FROM tables WHERE id = @id`, pgx.NamedArgs{"id": b.table.ID})
	if _, err := b.retryOf(job.ID); !fault.Is(err, fault.IllegalArgument) {
		t.Errorf("without its table: %v", err)
	}
	if n := b.facts(); n != 0 {
		t.Errorf("%d facts", n)
	}
}

// There is one open job of a kind on a table, however many ask at once for old ones to be begun again and for new ones.
func TestJobs_RetriesAndNewJobsAtOnce(t *testing.T) {
	b := newJobBench(t)
	var failed []uuid.UUID
	for range 3 {
		b.enqueue(b.table, maintenance.OnDemand)
		job := b.mustClaim("w")
		b.fail(job)
		failed = append(failed, job.ID)
	}
	var all sync.WaitGroup
	open := make([]uuid.UUID, 12)
	for i := range open {
		all.Go(func() {
			var job maintenance.Job
			var err error
			if i%4 == 3 {
				job, _, err = b.store.EnqueueJob(t.Context(), maintenance.NewJob{
					ID: uuid.New(), Kind: maintenance.Compaction, Table: b.table, Trigger: maintenance.OnDemand,
				}, nil)
			} else {
				job, err = b.retryOf(failed[i%4])
			}
			if err != nil {
				t.Error(err)
			}
			open[i] = job.ID
		})
	}
	all.Wait()
	for _, id := range open {
		if id != open[0] {
			t.Fatalf("several open jobs: %v", open)
		}
	}
	if n := b.facts(); n > 1 {
		t.Errorf("%d facts", n)
	}
}

// A warehouse's jobs are those on its tables, present and dropped, and no other warehouse's.
func TestJobs_OfAWarehouse(t *testing.T) {
	b := newJobBench(t)
	other := b.addTable("other")
	b.enqueue(other, maintenance.OnDemand)
	b.exec(`UPDATE jobs SET state = 'failed'`, nil)
	mine, _ := b.enqueue(b.table, maintenance.OnDemand)
	list := func(states ...maintenance.State) []maintenance.Job {
		jobs, err := b.store.ListWarehouseJobs(t.Context(), b.warehouseOf(b.table), maintenance.JobsPage{States: states, Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		return jobs
	}
	if jobs := list(maintenance.States()...); len(jobs) != 1 || jobs[0].ID != mine.ID {
		t.Errorf("listed %+v", jobs)
	}
	if jobs := list(maintenance.Failed); len(jobs) != 0 {
		t.Errorf("failed: %+v", jobs)
	}
	if jobs := list(maintenance.Failed, maintenance.Queued); len(jobs) != 1 {
		t.Errorf("failed or queued: %+v", jobs)
	}
}

// Pages give each job once, those that were made at the same moment too.
func TestJobs_OfAWarehousePageByPage(t *testing.T) {
	b := newJobBench(t)
	for i := range 7 {
		b.enqueue(b.table, maintenance.OnDemand)
		b.exec(`UPDATE jobs SET state = 'failed', created_at = date_trunc('hour', now()) - make_interval(mins => @minutes) WHERE state = 'queued'`,
			pgx.NamedArgs{"minutes": i / 3})
	}
	seen := map[uuid.UUID]int{}
	page := maintenance.JobsPage{States: maintenance.States(), Limit: 2}
	for pages := 1; ; pages++ {
		jobs, err := b.store.ListWarehouseJobs(t.Context(), b.warehouseOf(b.table), page)
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range jobs {
			seen[j.ID]++
			page.CreatedAt, page.ID = j.CreatedAt, j.ID
		}
		if len(jobs) < page.Limit {
			if pages != 4 {
				t.Errorf("%d pages", pages)
			}
			break
		}
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("job %s came %d times", id, n)
		}
	}
	if len(seen) != 7 {
		t.Errorf("%d jobs came, want 7", len(seen))
	}
}
