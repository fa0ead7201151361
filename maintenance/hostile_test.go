package maintenance_test

import (
	"context"
	"encoding/binary"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	icebergio "github.com/apache/iceberg-go/io"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"catalogd/catalog"
	"catalogd/internal/fault"
	"catalogd/maintenance"
	"catalogd/vending"
)

// enabledTable is a table with enough small files for an automatic run.
func (b *bench) enabledTable(name string) *testTable {
	b.t.Helper()
	tt := b.createTable(name, tableOptions{properties: map[string]string{"catalogd.maintenance.enabled": "true"}})
	for range 5 {
		tt.append(tt.rows("A", 10))
	}
	return tt
}

// spoilManifests puts a file of records without a data file in the place of each manifest.
func (tt *testTable) spoilManifests() {
	tt.t.Helper()
	text := func(out []byte, s string) []byte { return append(binary.AppendVarint(out, int64(len(s))), s...) }
	body := append([]byte("Obj\x01"), 4)
	body = text(text(body, "avro.schema"), `{"type": "record", "name": "manifest_entry", "fields": [{"name": "status", "type": "int", "field-id": 0}]}`)
	body = text(text(body, "format-version"), "1")
	sync := strings.Repeat("s", 16)
	body = append(append(body, 0), sync...)
	body = append(append(body, 2, 2, 2), sync...)
	root, spoiled := bare(tt.load().Location()), 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.Contains(d.Name(), "-m") || !strings.HasSuffix(path, ".avro") {
			return err
		}
		spoiled++
		return os.WriteFile(path, body, 0o600)
	})
	if err != nil || spoiled == 0 {
		tt.t.Fatalf("%d manifests spoiled: %v", spoiled, err)
	}
}

func (tt *testTable) status() maintenance.Status {
	tt.t.Helper()
	status, err := tt.operations().Show(tt.t.Context(), caller(), tt.name())
	if err != nil {
		tt.t.Fatal(err)
	}
	return status
}

// A manifest of records without a data file costs its own table its maintenance, and nobody else anything.
func TestHostile_ManifestWithoutDataFiles(t *testing.T) {
	b := newBench(t)
	bad, good := b.enabledTable("bad"), b.enabledTable("good")
	bad.spoilManifests()
	did := b.once(b.worker(nil))
	if did.Looked != 2 || did.Job == nil || did.Job.TableID != good.tableID() {
		t.Fatalf("%+v", did)
	}
	expectState(t, good.job(did.Job.ID), maintenance.Succeeded, maintenance.CodeDone)
	status := bad.status()
	if status.Look.Reason.Code != maintenance.CodeUnreadable || !strings.Contains(status.Look.Reason.Message, ".avro") ||
		status.NextLook.Before(time.Now().Add(30*time.Minute)) {
		t.Errorf("look: %+v, next %s", status.Look, status.NextLook)
	}
	expectState(t, bad.run(b.worker(nil)), maintenance.Refused, maintenance.CodeUnreadable)
	plan, err := b.operations().Run(t.Context(), caller(), bad.name(), maintenance.RunRequest{Kind: maintenance.Compaction, DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	expectState(t, plan, maintenance.Refused, maintenance.CodeUnreadable)
}

// A table whose looks end their worker is left alone after a few, with a reason that people see, until somebody sets
// its settings.
func TestHostile_LooksThatEndTheWorker(t *testing.T) {
	b := newBench(t)
	bad := b.enabledTable("bad")
	for range 3 {
		b.dueNow()
		if claims, err := b.store.ClaimLooks(t.Context(), 1); err != nil || len(claims) != 1 {
			t.Fatalf("%v %v", claims, err)
		}
		b.lookersDie()
	}
	bad.append(bad.rows("A", 10))
	if did := b.once(b.worker(nil)); did.Looked != 1 || did.Enqueued != 0 {
		t.Fatalf("%+v", did)
	}
	status := bad.status()
	if status.Look.Reason.Code != maintenance.CodeAttempts || status.NextLook.Before(time.Now().Add(20*time.Hour)) {
		t.Errorf("look: %+v, next %s", status.Look, status.NextLook)
	}
	b.lookersDie() // a day goes by
	if did := b.once(b.worker(nil)); did.Looked != 1 || did.Enqueued != 0 {
		t.Errorf("a parked table is looked at again: %+v", did)
	}
	bad.set(`{"enabled": true}`)
	if did := b.once(b.worker(nil)); did.Looked != 1 || did.Enqueued != 1 {
		t.Errorf("settings do not end the parking: %+v", did)
	}
}

// lookersDie makes the time of all claimed and put off looks be over.
func (b *bench) lookersDie() {
	b.t.Helper()
	err := b.store.InTx(b.t.Context(), func(tx pgx.Tx) error {
		_, err := tx.Exec(b.t.Context(), `UPDATE table_maintenance SET look_after = now() - interval '1 second' WHERE look_after IS NOT NULL`)
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// hooked are files of which opening a file is answered by the test.
type hooked struct {
	maintenance.Files
	ctx  context.Context //nolint:containedctx // the files' own
	hook func(ctx context.Context, name string) error
}

func (h hooked) Open(name string) (icebergio.File, error) {
	if err := h.hook(h.ctx, name); err != nil {
		return nil, err
	}
	return h.Files.Open(name)
}

// hookedWorker calls hook for each file that is opened of the table.
func (tt *testTable) hookedWorker(hook func(ctx context.Context, name string) error, change func(*maintenance.Config)) *maintenance.Worker {
	id := uuid.UUID(tt.tableID()).String()
	return tt.worker(func(c *maintenance.Config) {
		c.OpenFiles = func(ctx context.Context, p vending.Profile, s vending.Scope) (maintenance.Files, error) {
			files, err := tt.open(ctx, p, s)
			if err != nil || s.Table != id {
				return files, err
			}
			return hooked{files, ctx, hook}, nil
		}
		if change != nil {
			change(c)
		}
	})
}

// A panic in a look, wherever, is that table's.
func TestHostile_LookPanics(t *testing.T) {
	b := newBench(t)
	bad, good := b.enabledTable("bad"), b.enabledTable("good")
	did := b.once(bad.hookedWorker(func(context.Context, string) error { panic("a defect") }, nil))
	if did.Looked != 2 || did.Enqueued != 1 || did.Job == nil || did.Job.TableID != good.tableID() {
		t.Fatalf("%+v", did)
	}
	if look := bad.status().Look; look.Reason.Code != maintenance.CodeError || !strings.Contains(look.Reason.Message, "defect") {
		t.Errorf("look: %+v", look)
	}
}

// stuck waits until the files' context ends.
func stuck(ctx context.Context, _ string) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// Dropping the table ends a job that reads for ever, and a look.
func TestHostile_DropEndsWhatIsStuck(t *testing.T) {
	b := newBench(t)
	bad := b.enabledTable("bad")
	job := bad.enqueue()
	var once sync.Once
	w := bad.hookedWorker(func(ctx context.Context, name string) error {
		once.Do(func() {
			if err := b.service.DropTable(t.Context(), caller(), catalog.DropTableRequest{Warehouse: "w", Ident: bad.ident}); err != nil {
				t.Error(err)
			}
		})
		return stuck(ctx, name)
	}, func(c *maintenance.Config) { c.HeartbeatEvery = time.Millisecond })
	if did, err := w.RunOnce(t.Context()); err != nil || did.Looked != 1 {
		t.Fatalf("a look: %+v, %v", did, err)
	}
	expectState(t, bad.job(job.ID), maintenance.Failed, maintenance.CodeTableGone)

	bad = b.enabledTable("bad")
	job = bad.enqueue()
	once = sync.Once{}
	w = bad.hookedWorker(func(ctx context.Context, name string) error {
		once.Do(func() {
			if err := b.service.DropTable(t.Context(), caller(), catalog.DropTableRequest{Warehouse: "w", Ident: bad.ident}); err != nil {
				t.Error(err)
			}
		})
		return stuck(ctx, name)
	}, func(c *maintenance.Config) { c.HeartbeatEvery = time.Millisecond; c.Store = noLooks{c.Store} })
	b.drain(w)
	expectState(t, bad.job(job.ID), maintenance.Failed, maintenance.CodeTableGone)
}

// noLooks is a store of which no table is due for a look.
type noLooks struct{ maintenance.Store }

func (noLooks) ClaimLooks(context.Context, int) ([]maintenance.LookClaim, error) { return nil, nil }

// Looks, plans and jobs end at their deadlines, and say so.
func TestHostile_Deadlines(t *testing.T) {
	b := newBench(t)
	tt := b.enabledTable("t")
	at := func(d maintenance.Deadlines) *maintenance.Worker {
		return tt.hookedWorker(stuck, func(c *maintenance.Config) { c.Deadlines = d })
	}
	b.dueNow()
	if _, err := at(maintenance.Deadlines{Look: time.Millisecond}).RunOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	if look := tt.status().Look; look.Reason.Code != maintenance.CodeTooLong {
		t.Errorf("look: %+v", look)
	}
	expectState(t, tt.run(at(maintenance.Deadlines{Job: time.Millisecond})), maintenance.Failed, maintenance.CodeTooLong)
	w := tt.worker(func(c *maintenance.Config) { c.Deadlines.Plan = 1 })
	expectState(t, tt.run(w), maintenance.Refused, maintenance.CodeTooLong)
}

// A table that is stuck keeps neither the looks at other tables waiting nor their jobs.
func TestHostile_OthersGoOn(t *testing.T) {
	b := newBench(t)
	bad := b.enabledTable("bad")
	entered, ended := make(chan struct{}), make(chan maintenance.Finish, 1)
	var once sync.Once
	w := bad.hookedWorker(func(ctx context.Context, name string) error {
		once.Do(func() { close(entered) })
		return stuck(ctx, name)
	}, func(c *maintenance.Config) {
		c.PollEvery = time.Millisecond
		c.Store = endings{c.Store, ended}
	})
	b.dueNow()
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	<-entered
	b.enabledTable("good")
	select {
	case end := <-ended:
		if end.State != maintenance.Succeeded {
			t.Errorf("%+v", end)
		}
	case <-time.After(5 * time.Minute): // for seconds of work, on machines that have other work
		t.Error("the other table was not maintained")
	}
	if err := w.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if look := bad.status().Look; look.Reason.Code != "" {
		t.Errorf("a look that was cut off by the worker's end is reported: %+v", look)
	}
}

type endings struct {
	maintenance.Store
	ended chan maintenance.Finish
}

func (e endings) FinishJob(ctx context.Context, l maintenance.Lease, f maintenance.Finish) error {
	err := e.Store.FinishJob(ctx, l, f)
	select {
	case e.ended <- f:
	default:
	}
	return err
}

// Only so many plans are made at a time for people who ask.
func TestHostile_DryRunsAtOnce(t *testing.T) {
	b := newBench(t)
	tt := b.enabledTable("t")
	o := b.operations()
	entered, free := make(chan struct{}, 3), make(chan struct{})
	o.OpenFiles = func(ctx context.Context, p vending.Profile, s vending.Scope) (maintenance.Files, error) {
		entered <- struct{}{}
		<-free
		return b.open(ctx, p, s)
	}
	dry := func() error {
		_, err := o.Run(t.Context(), caller(), tt.name(), maintenance.RunRequest{Kind: maintenance.Compaction, DryRun: true})
		return err
	}
	var running sync.WaitGroup
	for range 2 {
		running.Go(func() {
			if err := dry(); err != nil {
				t.Error(err)
			}
		})
	}
	<-entered
	<-entered
	if err := dry(); !fault.Is(err, fault.Busy) {
		t.Errorf("a third: %v", err)
	}
	close(free)
	running.Wait()
	if err := dry(); err != nil {
		t.Error(err)
	}
}
