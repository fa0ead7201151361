package store

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"catalogd/catalog"
	"catalogd/internal/fault"
	"catalogd/internal/pgserver/pgtest"
	"catalogd/maintenance"
)

// jobBench is a store with one table in it.
type jobBench struct {
	t     *testing.T
	store *Store
	table maintenance.TableRef
}

func newJobBench(t *testing.T) *jobBench {
	t.Helper()
	return newJobBenchOn(t, openStore(t))
}

func newJobBenchOn(t *testing.T, s *Store) *jobBench {
	t.Helper()
	b := &jobBench{t: t, store: s}
	b.table = b.addTable("orders")
	return b
}

func (b *jobBench) exec(sql string, args pgx.NamedArgs) {
	b.t.Helper()
	err := b.store.InTx(b.t.Context(), func(tx pgx.Tx) error {
		_, err := tx.Exec(b.t.Context(), sql, args)
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// addTable puts rows for a table in a warehouse and a namespace of its own.
func (b *jobBench) addTable(name string) maintenance.TableRef {
	b.t.Helper()
	ref := maintenance.TableRef{ID: uuid.New(), Warehouse: "w-" + name, Ident: catalog.Identifier{Namespace: catalog.Namespace{"a.b", "c"}, Name: name}}
	args := pgx.NamedArgs{"w": uuid.New(), "n": uuid.New(), "t": ref.ID, "wname": ref.Warehouse, "name": name, "at": time.Now(), "levels": []string(ref.Ident.Namespace)}
	b.exec(`INSERT INTO warehouses (id, name, location, storage, created_at, updated_at) VALUES (@w, @wname, 'file:///x', '{}', @at, @at)`, args)
	b.exec(`INSERT INTO namespaces (id, warehouse_id, levels, created_at, updated_at) VALUES (@n, @w, @levels, @at, @at)`, args)
	b.exec(`INSERT INTO tables (id, warehouse_id, namespace_id, name, table_uuid, location, metadata_location, format_version, created_at, updated_at)
	        VALUES (@t, @w, @n, @name, @t, 'file:///x/t', 'file:///x/t/m', 2, @at, @at)`, args)
	return ref
}

func (b *jobBench) enqueue(table maintenance.TableRef, trigger maintenance.Trigger) (maintenance.Job, bool) {
	b.t.Helper()
	job, created, err := b.store.EnqueueJob(b.t.Context(), maintenance.NewJob{
		ID: uuid.New(), Kind: maintenance.Compaction, Table: table, Trigger: trigger, RequestedBy: "somebody",
	}, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return job, created
}

func (b *jobBench) claim(worker string) *maintenance.Claim {
	b.t.Helper()
	claim, err := b.store.ClaimJob(b.t.Context(), worker)
	if err != nil {
		b.t.Fatal(err)
	}
	return claim
}

func (b *jobBench) mustClaim(worker string) maintenance.Job {
	b.t.Helper()
	claim := b.claim(worker)
	if claim == nil {
		b.t.Fatal("there was no job to claim")
	}
	return claim.Job
}

// expire lets the lease of a job run out.
func (b *jobBench) expire(id uuid.UUID) {
	b.exec(`UPDATE jobs SET lease_until = clock_timestamp() - interval '1 second' WHERE id = @id`, pgx.NamedArgs{"id": id})
}

func TestJobs_OneOpenJobOfATable(t *testing.T) {
	b := newJobBench(t)
	first, created := b.enqueue(b.table, maintenance.Automatic)
	if !created || first.State != maintenance.Queued || first.Subject != "a.b.c.orders" {
		t.Fatalf("first job: created %v, %+v", created, first)
	}
	again, created := b.enqueue(b.table, maintenance.Automatic)
	if created || again.ID != first.ID {
		t.Fatalf("a second job was added: %+v", again)
	}
	other, created := b.enqueue(b.addTable("items"), maintenance.Automatic)
	if !created || other.ID == first.ID {
		t.Fatal("another table's job was not added")
	}
}

func TestJobs_ClaimGivesTheTablesPresentName(t *testing.T) {
	b := newJobBench(t)
	b.enqueue(b.table, maintenance.OnDemand)
	b.exec(`UPDATE tables SET name = 'renamed' WHERE id = @id`, pgx.NamedArgs{"id": b.table.ID})
	claim := b.claim("w1")
	if claim == nil || claim.Table == nil || claim.Table.Ident.Name != "renamed" || !slices.Equal(claim.Table.Ident.Namespace, b.table.Ident.Namespace) {
		t.Fatalf("claim: %+v", claim)
	}
	if claim.Job.State != maintenance.Running || claim.Job.Epoch != 1 || claim.Job.Attempts != 1 || claim.Job.Worker != "w1" || claim.Job.StartedAt.IsZero() {
		t.Fatalf("job: %+v", claim.Job)
	}
	if b.claim("w2") != nil {
		t.Fatal("a job whose lease holds was claimed again")
	}
}

func TestJobs_TableThatIsGone(t *testing.T) {
	b := newJobBench(t)
	job, _ := b.enqueue(b.table, maintenance.OnDemand)
	b.exec(`DELETE FROM tables WHERE id = @id`, pgx.NamedArgs{"id": b.table.ID})
	if claim := b.claim("w1"); claim == nil || claim.Job.ID != job.ID || claim.Table != nil {
		t.Fatalf("claim: %+v", claim)
	}
	if _, err := b.store.FindTableRef(t.Context(), b.table.ID); !fault.Is(err, fault.NotFound) {
		t.Fatalf("the name of a table that is gone: %v", err)
	}
}

// A worker that lost its lease changes nothing any more, whatever it tries.
func TestJobs_LostLeaseIsFenced(t *testing.T) {
	b := newJobBench(t)
	b.enqueue(b.table, maintenance.OnDemand)
	old := b.mustClaim("w1")
	if err := b.store.RecordFiles(t.Context(), old.Lease(), []string{"a", "b"}); err != nil {
		t.Fatal(err)
	}
	b.expire(old.ID)
	check := func(when string) {
		t.Helper()
		ctx, l := t.Context(), old.Lease()
		for name, err := range map[string]error{
			"extend":   b.store.ExtendLease(ctx, l),
			"progress": b.store.SaveProgress(ctx, l, maintenance.Progress{Phase: "x"}),
			"record":   b.store.RecordFiles(ctx, l, []string{"c"}),
			"forget":   b.store.ForgetFiles(ctx, l, []string{"a"}),
			"finish":   b.store.FinishJob(ctx, l, maintenance.Finish{State: maintenance.Succeeded}),
			"release":  b.store.ReleaseJob(ctx, l, maintenance.Release{}),
		} {
			if !errors.Is(err, maintenance.ErrLeaseLost) {
				t.Errorf("%s, %s: %v", when, name, err)
			}
		}
	}
	check("expired")
	next := b.mustClaim("w2")
	if next.ID != old.ID || next.Epoch != old.Epoch+1 || next.Attempts != 2 {
		t.Fatalf("takeover: %+v", next)
	}
	check("taken over")
	files, err := b.store.ListFiles(t.Context(), old.ID)
	if err != nil || !slices.Equal(files, []string{"a", "b"}) {
		t.Fatalf("recorded files: %v, %v", files, err)
	}
}

// The fence of a commit holds for the claim that has the lease, and for no other.
func TestJobs_FenceOfACommit(t *testing.T) {
	b := newJobBench(t)
	b.enqueue(b.table, maintenance.OnDemand)
	job := b.mustClaim("w1")
	hold := func(f catalog.Fence) error {
		return b.store.InTx(t.Context(), func(tx pgx.Tx) error { return holdFence(t.Context(), tx, f) })
	}
	if err := hold(job.Lease().Fence()); err != nil {
		t.Fatal(err)
	}
	if err := hold(catalog.Fence{JobID: job.ID, Epoch: job.Epoch - 1}); !fault.Is(err, fault.VersionConflict) {
		t.Fatalf("an old epoch: %v", err)
	}
	if err := b.store.ReleaseJob(t.Context(), job.Lease(), maintenance.Release{}); err != nil {
		t.Fatal(err)
	}
	if err := hold(job.Lease().Fence()); !fault.Is(err, fault.VersionConflict) {
		t.Fatalf("after release: %v", err)
	}
}

func TestJobs_FinishKeepsOutcomeLayoutAndTime(t *testing.T) {
	b := newJobBench(t)
	b.enqueue(b.table, maintenance.OnDemand)
	job := b.mustClaim("w1")
	b.exec(`UPDATE jobs SET started_at = now() - interval '90 seconds' WHERE id = @id`, pgx.NamedArgs{"id": job.ID})
	layout := maintenance.LayoutRecord{Layout: "abc", Runs: map[string]string{job.ID.String(): "abc"}}
	err := b.store.FinishJob(t.Context(), job.Lease(), maintenance.Finish{
		State: maintenance.Succeeded, Reason: maintenance.Reason{Code: "done", Message: "13 files became 3"},
		Outcome: maintenance.Outcome{FilesBefore: 13, FilesAfter: 3, SnapshotID: 1<<62 - 1}, Layout: &layout,
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := b.store.FindJob(t.Context(), job.ID)
	if err != nil {
		t.Fatal(err)
	}
	if got.State != maintenance.Succeeded || got.Outcome.FilesAfter != 3 || got.Outcome.SnapshotID != 1<<62-1 || got.Reason.Message != "13 files became 3" ||
		got.Outcome.Seconds < 90 || got.Outcome.Seconds > 120 || got.FinishedAt.IsZero() {
		t.Fatalf("job: %+v", got)
	}
	state, err := b.store.LoadTableState(t.Context(), b.table.ID)
	if err != nil || state.Layout.Runs[job.ID.String()] != "abc" || state.LastFinished.IsZero() {
		t.Fatalf("state: %+v, %v", state, err)
	}
	if b.claim("w2") != nil {
		t.Fatal("a job that has ended was claimed")
	}
	if _, created := b.enqueue(b.table, maintenance.OnDemand); !created {
		t.Fatal("no new job could be added after the end")
	}
	jobs, err := b.store.ListJobs(t.Context(), b.table.ID, 10)
	if err != nil || len(jobs) != 2 || jobs[1].ID != job.ID {
		t.Fatalf("jobs: %+v, %v", jobs, err)
	}
}

// A job that was given back waits its delay; a request of a person ends the waiting.
func TestJobs_ReleaseWaits(t *testing.T) {
	b := newJobBench(t)
	b.enqueue(b.table, maintenance.Automatic)
	job := b.mustClaim("w1")
	err := b.store.ReleaseJob(t.Context(), job.Lease(), maintenance.Release{Delay: time.Hour, Uncounted: true, Reason: maintenance.Reason{Code: "error", Message: "disk"}})
	if err != nil {
		t.Fatal(err)
	}
	if b.claim("w1") != nil {
		t.Fatal("the delay did not hold")
	}
	if again, created := b.enqueue(b.table, maintenance.OnDemand); created || again.ID != job.ID || again.Trigger != maintenance.OnDemand {
		t.Fatalf("asked for: created %v, %+v", created, again)
	}
	next := b.mustClaim("w1")
	if next.Epoch != 2 || next.Attempts != 1 || next.Reason.Message != "disk" {
		t.Fatalf("second claim: %+v", next)
	}
}

// Many workers share many jobs without one getting what another has.
func TestJobs_ClaimsAreDisjoint(t *testing.T) {
	b := newJobBench(t)
	const jobs, workers = 40, 8
	for range jobs {
		table := b.table
		table.ID = uuid.New()
		b.enqueue(table, maintenance.OnDemand)
	}
	var mu sync.Mutex
	seen := map[uuid.UUID]int{}
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for {
				claim, err := b.store.ClaimJob(context.Background(), "w")
				if err != nil || claim == nil {
					if err != nil {
						t.Error(err)
					}
					return
				}
				mu.Lock()
				seen[claim.Job.ID]++
				mu.Unlock()
			}
		})
	}
	group.Wait()
	if len(seen) != jobs {
		t.Errorf("%d jobs were claimed, want %d", len(seen), jobs)
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("job %s was claimed %d times", id, n)
		}
	}
}

func TestSettings_MergeAndMakeDue(t *testing.T) {
	b := newJobBench(t)
	text := func(s string) *string { return &s }
	save := func(change map[string]*string) maintenance.Stored {
		t.Helper()
		stored, err := b.store.SaveSettings(t.Context(), b.table.ID, change, catalog.Fact{ID: uuid.New(), At: time.Now(), Operation: "set-maintenance"})
		if err != nil {
			t.Fatal(err)
		}
		return stored
	}
	if got := save(map[string]*string{"strategy": text("sort"), "curve": nil}); len(got) != 1 || got["strategy"] != "sort" {
		t.Fatalf("first: %v", got)
	}
	if looks := b.looks(); len(looks) != 0 {
		t.Fatalf("a table that is not switched on was looked at: %v", looks)
	}
	if got := save(map[string]*string{"enabled": text("true"), "strategy": nil}); len(got) != 1 || got["enabled"] != "true" {
		t.Fatalf("second: %v", got)
	}
	if looks := b.looks(); len(looks) != 1 || looks[0].Ident.String() != b.table.Ident.String() || looks[0].Warehouse != b.table.Warehouse {
		t.Fatalf("looks: %v", looks)
	}
	if looks := b.looks(); len(looks) != 0 {
		t.Fatal("two looks at once")
	}
	err := b.store.FinishLook(t.Context(), b.table.ID, maintenance.LookResult{Report: maintenance.LookReport{Reason: maintenance.Reason{Code: "x", Message: "y"}}, LookAfter: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	state, err := b.store.LoadTableState(t.Context(), b.table.ID)
	if err != nil || state.Look.Reason.Code != "x" || state.LookAfter.IsZero() || state.Settings["enabled"] != "true" {
		t.Fatalf("state: %+v, %v", state, err)
	}
	save(map[string]*string{"enabled": text("true")})
	if looks := b.looks(); len(looks) != 1 {
		t.Fatal("a new setting did not end the waiting")
	}
	save(map[string]*string{"enabled": text("false")})
	b.exec(`UPDATE table_maintenance SET enabled = true, dirty_since = now()`, nil)
	if looks := b.looks(); len(looks) != 0 {
		t.Fatal("switched off by command, on by property: the command must win")
	}
}

func (b *jobBench) looks() []maintenance.LookClaim {
	b.t.Helper()
	refs, err := b.store.ClaimLooks(b.t.Context(), 10)
	if err != nil {
		b.t.Fatal(err)
	}
	return refs
}

// A look that dies is taken up again, and a commit during a look is not forgotten by its end.
func TestLooks_AreNotLost(t *testing.T) {
	b := newJobBench(t)
	ago := pgx.NamedArgs{"id": b.table.ID}
	b.exec(`INSERT INTO table_maintenance (table_id, enabled, dirty_since, updated_at) VALUES (@id, true, now(), now())`, ago)
	if len(b.looks()) != 1 {
		t.Fatal("not due after a commit")
	}
	b.exec(`UPDATE table_maintenance SET look_after = now() - interval '1 second'`, nil) // the looker's time is over
	if len(b.looks()) != 1 {
		t.Fatal("the look of a dead worker was lost")
	}
	b.exec(`UPDATE table_maintenance SET dirty_since = now()`, nil) // a commit while we look
	if err := b.store.FinishLook(t.Context(), b.table.ID, maintenance.LookResult{}); err != nil {
		t.Fatal(err)
	}
	b.exec(`UPDATE table_maintenance SET checked_at = now() - interval '1 minute'`, nil)
	if len(b.looks()) != 1 {
		t.Fatal("the commit during the look was forgotten")
	}
	b.exec(`DELETE FROM tables WHERE id = @id`, ago)
	b.exec(`UPDATE table_maintenance SET look_after = now() - interval '1 second'`, nil)
	if len(b.looks()) != 0 || len(b.looks()) != 0 {
		t.Fatal("a table that is gone was looked at")
	}
}

// Reasons quote what clients wrote, and columns may have any name: neither keeps a look or a job from ending.
func TestLooksAndJobs_EndWithAnyText(t *testing.T) {
	b := newJobBench(t)
	b.enqueue(b.table, maintenance.OnDemand)
	job := b.mustClaim("w")
	err := b.store.FinishJob(t.Context(), job.Lease(), maintenance.Finish{
		State: maintenance.Succeeded, Reason: maintenance.Reason{Code: "x", Message: "a\x00b\xff"},
		Layout: &maintenance.LayoutRecord{Columns: []string{"a\x00b", "c"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	state, err := b.store.LoadTableState(t.Context(), b.table.ID)
	if err != nil || !slices.Equal(state.Layout.Columns, []string{"a\uFFFDb", "c"}) {
		t.Errorf("%v: %q", err, state.Layout.Columns)
	}
	err = b.store.FinishLook(t.Context(), b.table.ID, maintenance.LookResult{Report: maintenance.LookReport{Reason: maintenance.Reason{Code: "x", Message: "a\x00b\xff"}}})
	if err != nil {
		t.Error(err)
	}
}

// Without prepared statements a list of ids has no type: jobs and looks were never claimed behind a pooler.
func TestJobs_ThroughAPooler(t *testing.T) {
	b := newJobBenchOn(t, openAt(t, Config{URL: pgtest.Database(t), SimpleProtocol: true}))
	b.enqueue(b.table, maintenance.OnDemand)
	claim := b.claim("w1")
	if claim == nil || claim.Table == nil || claim.Table.Ident.Name != b.table.Ident.Name {
		t.Fatalf("claim: %+v", claim)
	}
	if err := b.store.FinishJob(t.Context(), claim.Job.Lease(), maintenance.Finish{State: maintenance.Succeeded}); err != nil {
		t.Fatal(err)
	}
	gone := b.addTable("gone")
	for _, ref := range []maintenance.TableRef{b.table, gone} {
		b.exec(`INSERT INTO table_maintenance (table_id, enabled, dirty_since, updated_at) VALUES (@id, true, now(), now())`, pgx.NamedArgs{"id": ref.ID})
	}
	b.exec(`DELETE FROM tables WHERE id = @id`, pgx.NamedArgs{"id": gone.ID})
	if looks := b.looks(); len(looks) != 1 || looks[0].ID != b.table.ID {
		t.Fatalf("looks: %+v", looks)
	}
}
