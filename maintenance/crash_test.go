package maintenance_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	icebergio "github.com/apache/iceberg-go/io"
	"github.com/jackc/pgx/v5"

	"catalogd/catalog"
	"catalogd/internal/fault"
	"catalogd/maintenance"
	"catalogd/maintenance/layout"
	"catalogd/store"
	"catalogd/vending"
)

// mortal is a worker's world that ends at its n-th call: that call fails, after it was done or before, and so does
// every later one, as for a process that was killed there. The calls are those that leave something behind.
type mortal struct {
	maintenance.Store
	maintenance.Tables
	open maintenance.OpenFiles

	mu      sync.Mutex
	calls   []string
	end     int // 0: never
	applied bool
	dead    bool
}

var errDied = errors.New("the process died")

// step counts a call and tells whether it may be done and whether its answer arrives.
func (m *mortal) step(name string, do func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return errDied
	}
	m.calls = append(m.calls, name)
	if len(m.calls) != m.end {
		return do()
	}
	m.dead = true
	if m.applied {
		_ = do()
	}
	return errDied
}

func (m *mortal) SaveProgress(ctx context.Context, l maintenance.Lease, p maintenance.Progress) error {
	return m.step("progress", func() error { return m.Store.SaveProgress(ctx, l, p) })
}

func (m *mortal) RecordFiles(ctx context.Context, l maintenance.Lease, paths []string) error {
	return m.step("record", func() error { return m.Store.RecordFiles(ctx, l, paths) })
}

func (m *mortal) ForgetFiles(ctx context.Context, l maintenance.Lease, paths []string) error {
	return m.step("forget", func() error { return m.Store.ForgetFiles(ctx, l, paths) })
}

func (m *mortal) FinishJob(ctx context.Context, l maintenance.Lease, f maintenance.Finish) error {
	return m.step("finish", func() error { return m.Store.FinishJob(ctx, l, f) })
}

func (m *mortal) ReleaseJob(ctx context.Context, l maintenance.Lease, r maintenance.Release) error {
	return m.step("release", func() error { return m.Store.ReleaseJob(ctx, l, r) })
}

func (m *mortal) CommitTable(ctx context.Context, c catalog.Caller, r catalog.CommitTableRequest) (out catalog.LoadedTable, err error) {
	err = m.step("commit", func() error {
		var err error
		out, err = m.Tables.CommitTable(ctx, c, r)
		return err
	})
	return out, err
}

func (m *mortal) openFiles(ctx context.Context, p vending.Profile, s vending.Scope) (maintenance.Files, error) {
	files, err := m.open(ctx, p, s)
	return &mortalFiles{Files: files, m: m}, err
}

type mortalFiles struct {
	maintenance.Files
	m *mortal
}

func (f *mortalFiles) Create(name string) (w icebergio.FileWriter, err error) {
	err = f.m.step("create", func() error {
		var err error
		w, err = f.Files.Create(name)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &mortalWriter{FileWriter: w, m: f.m}, nil
}

func (f *mortalFiles) WriteFile(name string, body []byte) error {
	return f.m.step("write", func() error { return f.Files.WriteFile(name, body) })
}

func (f *mortalFiles) Remove(name string) error {
	return f.m.step("remove", func() error { return f.Files.Remove(name) })
}

type mortalWriter struct {
	icebergio.FileWriter
	m *mortal
}

func (w *mortalWriter) Close() error { return w.m.step("close", w.FileWriter.Close) }

// mortalWorker makes a worker whose world ends at the n-th call.
func (b *bench) mortalWorker(end int, applied bool, change func(*maintenance.Config)) (*maintenance.Worker, *mortal) {
	m := &mortal{Store: b.store, Tables: b.service, open: b.open, end: end, applied: applied}
	w := b.worker(func(c *maintenance.Config) {
		c.Store, c.Tables, c.OpenFiles = m, m, m.openFiles
		if change != nil {
			change(c)
		}
	})
	return w, m
}

// expireLeases lets every lease run out, and every waiting job become due.
func (b *bench) expireLeases() {
	b.t.Helper()
	err := b.store.InTx(b.t.Context(), func(tx pgx.Tx) error {
		_, err := tx.Exec(b.t.Context(), `UPDATE jobs SET lease_until = clock_timestamp() - interval '1 second', not_before = now()
			WHERE state IN ('queued', 'running')`)
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// TestCrash_AtEveryStep ends a worker at its first step that leaves something, then at its second, and so on, each
// time before and after the step took effect, until a worker gets through. A second worker then takes over: no row is
// lost or doubled, nothing unknown stays in the folder, and the job ends well.
func TestCrash_AtEveryStep(t *testing.T) {
	for _, applied := range []bool{false, true} {
		t.Run(fmt.Sprintf("applied=%v", applied), func(t *testing.T) {
			b := newBench(t)
			through := false
			var steps []string
			for end := 1; !through; end++ {
				if end > 100 {
					t.Fatal("no worker ever gets through")
				}
				tt, want := crashTable(b, end)
				job := tt.enqueue()
				w, m := b.mortalWorker(end, applied, nil)
				if _, err := w.RunOnce(t.Context()); err != nil && !errors.Is(err, errDied) {
					t.Fatal(err)
				}
				through = !m.dead
				steps = m.calls
				b.expireLeases()
				b.drain(b.worker(nil))
				got := tt.job(job.ID)
				if got.State != maintenance.Succeeded {
					t.Errorf("died at step %d (%v): job ended %s: %s", end, m.calls[len(m.calls)-1], got.State, got.Reason.Message)
				}
				tt.expect(want)
				tt.expectNoGarbage()
				if n := tt.replaceSnapshots(); n != 1 {
					t.Errorf("died at step %d (%v): %d rewrites in the history", end, m.calls, n)
				}
				if got.Outcome.FilesReplaced != 4 || got.Outcome.FilesWritten != 2 || got.Outcome.RowsAfter != 40 {
					t.Errorf("died at step %d: outcome %+v", end, got.Outcome)
				}
				next := tt.run(b.worker(nil))
				if next.State != maintenance.NothingToDo {
					t.Errorf("died at step %d: the next run ended %s", end, next.State)
				}
			}
			for _, step := range []string{"progress", "record", "create", "close", "write", "commit", "finish"} {
				if !slices.Contains(steps, step) {
					t.Errorf("no worker ever came to step %q: %v", step, steps)
				}
			}
		})
	}
}

func crashTable(b *bench, n int) (*testTable, map[int64]row) {
	b.t.Helper()
	tt := b.createTable(fmt.Sprintf("crash%d", n), tableOptions{})
	want := map[int64]row{}
	for range 2 {
		rows := append(tt.rows("A", 10), tt.rows("B", 10)...)
		maps.Copy(want, byID(rows))
		tt.append(rows)
	}
	return tt, want
}

// replaceSnapshots counts the rewrites in the table's history.
func (tt *testTable) replaceSnapshots() int {
	tt.t.Helper()
	n := 0
	for _, s := range tt.load().Metadata().Snapshots() {
		if s.Summary != nil && s.Summary.Operation == "replace" {
			n++
		}
	}
	return n
}

// A job that ends its worker each time is not tried for ever, and says so.
func TestCrash_AttemptsAreBounded(t *testing.T) {
	b := newBench(t)
	tt, want := crashTable(b, 0)
	job := tt.enqueue()
	for range 4 {
		w, _ := b.mortalWorker(5, true, nil)
		if _, err := w.RunOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.expireLeases()
	}
	b.drain(b.worker(nil))
	expectState(t, tt.job(job.ID), maintenance.Failed, maintenance.CodeAttempts)
	tt.expect(want)
	tt.expectNoGarbage()
}

// lost answers commits with "unknown", after doing them or instead.
type lost struct {
	maintenance.Tables
	landed bool
	hidden bool // loads fail too, so that nobody can ask
	calls  int
}

func (l *lost) CommitTable(ctx context.Context, c catalog.Caller, r catalog.CommitTableRequest) (catalog.LoadedTable, error) {
	l.calls++
	if l.calls > 1 {
		return l.Tables.CommitTable(ctx, c, r)
	}
	if l.landed {
		if _, err := l.Tables.CommitTable(ctx, c, r); err != nil {
			return catalog.LoadedTable{}, err
		}
	}
	l.hidden = true
	return catalog.LoadedTable{}, fault.New(fault.CommitUnknown, "nobody knows")
}

func (l *lost) LoadTable(ctx context.Context, c catalog.Caller, r catalog.LoadTableRequest) (catalog.LoadedTable, error) {
	if l.hidden {
		return catalog.LoadedTable{}, fault.New(fault.Busy, "the database does not answer")
	}
	return l.Tables.LoadTable(ctx, c, r)
}

// After an unknown commit nothing is removed; the next claim knows, and ends the job or begins anew.
func TestCrash_UnknownCommit(t *testing.T) {
	for _, landed := range []bool{true, false} {
		t.Run(fmt.Sprintf("landed=%v", landed), func(t *testing.T) {
			b := newBench(t)
			tt, want := crashTable(b, 0)
			job := tt.enqueue()
			l := &lost{Tables: b.service, landed: landed}
			w := b.worker(func(c *maintenance.Config) { c.Tables = l })
			if _, err := w.RunOnce(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := tt.job(job.ID); got.State != maintenance.Queued {
				t.Fatalf("after the unknown commit the job is %s: %s", got.State, got.Reason.Message)
			}
			files, err := b.store.ListFiles(t.Context(), job.ID)
			if err != nil || len(files) < 4 {
				t.Fatalf("recorded files: %v, %v", files, err)
			}
			l.hidden = false
			b.expireLeases()
			b.drain(w)
			expectState(t, tt.job(job.ID), maintenance.Succeeded, maintenance.CodeDone)
			tt.expect(want)
			tt.expectNoGarbage()
			if n := tt.replaceSnapshots(); n != 1 {
				t.Errorf("%d rewrites in the history", n)
			}
		})
	}
}

// The database's clock is ahead of the worker's, so the rewrite seems to be older than its job. It landed, nobody could say
// so, and everything was overwritten since: its files are history, and no leftovers.
func TestCrash_UnknownCommitAndClocksThatDiffer(t *testing.T) {
	b := newBench(t)
	tt, _ := crashTable(b, 0)
	job := tt.enqueue()
	b.exec(`UPDATE jobs SET created_at = now() + interval '1 minute' WHERE id = @job`, pgx.NamedArgs{"job": job.ID})
	l := &lost{Tables: b.service, landed: true}
	w := b.worker(func(c *maintenance.Config) { c.Tables = l })
	if _, err := w.RunOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.hidden = false
	rows := tt.rows("A", 7)
	tt.overwrite(rows)
	before := b.filesBelow(tt.load().Location())
	b.expireLeases()
	b.drain(w)
	expectState(t, tt.job(job.ID), maintenance.Succeeded, maintenance.CodeDone)
	after := b.filesBelow(tt.load().Location())
	if gone := slices.DeleteFunc(before, func(f string) bool { return slices.Contains(after, f) }); len(gone) > 0 {
		t.Errorf("files of a snapshot are gone: %q", gone)
	}
	tt.expect(byID(rows))
}

// A worker that slept over its lease cannot commit, and removes what it wrote and nobody else.
func TestCrash_LateWorkerIsFenced(t *testing.T) {
	b := newBench(t)
	tt, want := crashTable(b, 0)
	job := tt.enqueue()
	late := b.beforeCommit(func(try int) {
		b.expireLeases()
		b.drain(b.worker(nil)) // somebody else takes the job over and ends it
	})
	if _, err := late.RunOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	expectState(t, tt.job(job.ID), maintenance.Succeeded, maintenance.CodeDone)
	tt.expect(want)
	tt.expectNoGarbage()
	if n := tt.replaceSnapshots(); n != 1 {
		t.Errorf("%d rewrites in the history", n)
	}
}

// Stop gives the job back unharmed: its files are removed, the claim does not count, and another worker goes on.
func TestWorker_StopGivesTheJobBack(t *testing.T) {
	b := newBench(t)
	tt, want := crashTable(b, 0)
	job := tt.enqueue()
	written := make(chan struct{})
	w := b.worker(func(c *maintenance.Config) {
		c.PollEvery = 10 * time.Millisecond
		c.Cluster = func(ctx context.Context, j layout.Job) (layout.Result, error) {
			if _, err := layout.Cluster(ctx, j); err != nil {
				return layout.Result{}, err
			}
			close(written)
			<-ctx.Done()
			return layout.Result{}, ctx.Err()
		}
	})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	<-written
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // for a second of work
	defer cancel()
	if err := w.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	got := tt.job(job.ID)
	if got.State != maintenance.Queued || got.Attempts != 0 {
		t.Fatalf("after Stop: %+v", got)
	}
	tt.expectNoGarbage()
	b.drain(b.worker(nil))
	expectState(t, tt.job(job.ID), maintenance.Succeeded, maintenance.CodeDone)
	tt.expect(want)
}

// A dropped table ends its job with a reason.
func TestWorker_TableIsDropped(t *testing.T) {
	b := newBench(t)
	tt, _ := crashTable(b, 0)
	job := tt.enqueue()
	w := b.afterRewrite(func() {
		if err := b.service.DropTable(t.Context(), caller(), catalog.DropTableRequest{Warehouse: "w", Ident: tt.ident}); err != nil {
			t.Error(err)
		}
	})
	b.drain(w)
	expectState(t, tt.job(job.ID), maintenance.Failed, maintenance.CodeTableGone)
}

var _ maintenance.Store = (*store.Store)(nil)

// A claim by somebody else is enough: from then on the commit of the old claim is refused, even if nothing else moved.
func TestCrash_TakenOverCommitIsRefused(t *testing.T) {
	b := newBench(t)
	tt, want := crashTable(b, 0)
	job := tt.enqueue()
	late := b.beforeCommit(func(int) {
		b.expireLeases()
		if claim, err := b.store.ClaimJob(t.Context(), "somebody else"); err != nil || claim == nil {
			t.Errorf("takeover: %v, %v", claim, err)
		}
	})
	if _, err := late.RunOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := tt.replaceSnapshots(); n != 0 {
		t.Fatal("the commit of a lost claim landed")
	}
	tt.expectNoGarbage()
	b.expireLeases()
	b.drain(b.worker(nil))
	expectState(t, tt.job(job.ID), maintenance.Succeeded, maintenance.CodeDone)
	tt.expect(want)
	tt.expectNoGarbage()
}

// away is a database that does not answer for a while: commits, done or not, and loads.
type away struct {
	maintenance.Tables
	landed  bool
	commits int
	loads   int // still to fail
}

func (a *away) CommitTable(ctx context.Context, c catalog.Caller, r catalog.CommitTableRequest) (catalog.LoadedTable, error) {
	if a.commits++; a.commits > 1 {
		return a.Tables.CommitTable(ctx, c, r)
	}
	a.loads = 2
	if a.landed {
		if _, err := a.Tables.CommitTable(ctx, c, r); err != nil {
			return catalog.LoadedTable{}, err
		}
	}
	return catalog.LoadedTable{}, fault.New(fault.Busy, "the database does not answer")
}

func (a *away) LoadTable(ctx context.Context, c catalog.Caller, r catalog.LoadTableRequest) (catalog.LoadedTable, error) {
	if a.loads > 0 {
		a.loads--
		return catalog.LoadedTable{}, fault.New(fault.Busy, "the database does not answer")
	}
	return a.Tables.LoadTable(ctx, c, r)
}

// A finished rewrite waits for a database that is away for a moment, and knows its own commit even if the answer was
// wrong about it.
func TestCommit_WaitsForTheDatabase(t *testing.T) {
	for _, landed := range []bool{false, true} {
		t.Run(fmt.Sprintf("landed=%v", landed), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			tt, want := crashTable(b, 0)
			job := tt.enqueue()
			w := b.worker(func(c *maintenance.Config) { c.Tables = &away{Tables: c.Tables, landed: landed} })
			if _, err := w.RunOnce(t.Context()); err != nil {
				t.Fatal(err)
			}
			got := tt.job(job.ID)
			expectState(t, got, maintenance.Succeeded, maintenance.CodeDone)
			if got.Attempts != 1 || got.Outcome.FilesReplaced != 4 {
				t.Errorf("job: %+v", got)
			}
			tt.expect(want)
			tt.expectNoGarbage()
			if n := tt.replaceSnapshots(); n != 1 {
				t.Errorf("%d rewrites in the history", n)
			}
		})
	}
}
