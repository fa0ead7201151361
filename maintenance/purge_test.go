package maintenance_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	icebergio "github.com/apache/iceberg-go/io"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"catalogd/auth"
	"catalogd/authz"
	"catalogd/catalog"
	"catalogd/internal/fault"
	"catalogd/maintenance"
	"catalogd/vending"
)

// purgeTable makes a table of a few snapshots.
func purgeTable(b *bench, name string, o tableOptions) (*testTable, map[int64]row) {
	b.t.Helper()
	tt := b.createTable(name, o)
	first, second := tt.rows("a", 4), tt.rows("b", 4)
	tt.append(first)
	tt.append(second)
	return tt, byID(first, second)
}

// filesBelow gives the regular files of a table's folder.
func (b *bench) filesBelow(location string) []string {
	b.t.Helper()
	var found []string
	err := filepath.WalkDir(bare(location), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && !d.IsDir() {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return found
}

// drop drops the table with purge and gives its row's id and the job.
func (tt *testTable) drop() (uuid.UUID, maintenance.Job) {
	tt.t.Helper()
	_, record, err := tt.service.AuthorizeTable(tt.t.Context(), caller(), "w", tt.ident, authz.TableDrop)
	if err != nil {
		tt.t.Fatal(err)
	}
	err = tt.service.DropTable(tt.t.Context(), caller(), catalog.DropTableRequest{Warehouse: "w", Ident: tt.ident, Purge: true})
	if err != nil {
		tt.t.Fatal(err)
	}
	jobs, err := tt.store.ListJobs(tt.t.Context(), record.ID, 10)
	if err != nil || len(jobs) == 0 || jobs[0].Kind != maintenance.Purge {
		tt.t.Fatalf("%v: the drop left %+v", err, jobs)
	}
	return record.ID, jobs[0]
}

func TestField_Z15_APurgeLeavesTheNeighbours(t *testing.T) {
	b := newBench(t)
	orders, _ := purgeTable(b, "orders", tableOptions{below: "s/orders"})
	archive, archived := purgeTable(b, "archive", tableOptions{below: "s/orders_archive"})
	other, others := purgeTable(b, "other", tableOptions{})
	location := orders.load().Location()
	_, err := b.service.RegisterTable(t.Context(), caller(), catalog.RegisterRequest{
		Warehouse: "w", Ident: catalog.Identifier{Namespace: catalog.Namespace{"db"}, Name: "twin"}, MetadataLocation: orders.load().MetadataLocation(),
	})
	if !fault.Is(err, fault.BadRequest) || !strings.Contains(fault.Message(err), "overlaps") {
		t.Errorf("registered twice: %v", err)
	}
	stray := filepath.Join(bare(location), "data", "somebody-elses.parquet")
	if err := (rawFS{}).WriteFile(stray, []byte("x")); err != nil {
		t.Fatal(err)
	}
	before := len(b.filesBelow(location))
	id, job := orders.drop()
	b.drain(b.worker(nil))
	done := orders.job(job.ID)
	expectState(t, done, maintenance.Succeeded, maintenance.CodeDone)
	if left := b.filesBelow(location); !slices.Equal(left, []string{stray}) {
		t.Errorf("left of %d files: %q", before, left)
	}
	if done.Outcome.FilesRemoved != int64(before-1) {
		t.Errorf("%d files removed, there were %d", done.Outcome.FilesRemoved, before-1)
	}
	archive.expect(archived)
	other.expect(others)
	if _, _, err := b.service.LoadDropped(t.Context(), caller(), id); !fault.Is(err, fault.NotFound) {
		t.Errorf("the dropped table is still known: %v", err)
	}
	b.exec(`UPDATE dropped_tables SET purged_until = purged_until - interval '13 hours' WHERE id = @id`, pgx.NamedArgs{"id": id})
	purgeTable(b, "next", tableOptions{below: "s/orders"}) // the place is free for anybody now
}

// Z15: places never overlap, but should they after all, nobody else's file goes.
func TestField_Z15_APurgeMeetsAnothersPlace(t *testing.T) {
	const above, below = `regexp_replace(location, '[^/]*/$', '')`, `location || 'data/'`
	for place, want := range map[string]maintenance.State{above: maintenance.Refused, below: maintenance.Succeeded} {
		b := newBench(t)
		tt, _ := purgeTable(b, "t", tableOptions{below: "s/t"})
		location := tt.load().Location()
		before := b.filesBelow(location)
		id, job := tt.drop()
		b.exec(`INSERT INTO locations (location, warehouse_id, owner_kind, owner_id)
			SELECT `+place+`, warehouse_id, 'table', gen_random_uuid() FROM locations WHERE owner_id = @id`, pgx.NamedArgs{"id": id})
		b.drain(b.worker(nil))
		got := tt.job(job.ID)
		if got.State != want {
			t.Fatalf("%s: %s %+v", place, got.State, got.Reason)
		}
		if place == above {
			if after := b.filesBelow(location); !slices.Equal(after, before) || !strings.Contains(got.Reason.Message, "/s/") {
				t.Errorf("left %q of %q: %s", after, before, got.Reason.Message)
			}
			continue
		}
		if left := b.filesBelow(location + "/data"); len(left) == 0 || int64(len(left)) != got.Outcome.FilesSkipped["neighbour"] {
			t.Errorf("left %q, skipped %v", left, got.Outcome.FilesSkipped)
		}
	}
}

func (b *bench) exec(sql string, args pgx.NamedArgs) {
	b.t.Helper()
	err := b.store.InTx(b.t.Context(), func(tx pgx.Tx) error {
		_, err := tx.Exec(b.t.Context(), sql, args)
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

func TestField_C223_GCDisabled(t *testing.T) {
	b := newBench(t)
	tt, rows := purgeTable(b, "t", tableOptions{properties: map[string]string{"gc.enabled": "false"}})
	last := tt.load()
	_, job := tt.drop()
	b.drain(b.worker(nil))
	got := tt.job(job.ID)
	expectState(t, got, maintenance.NothingToDo, maintenance.CodeGCDisabled)
	if !strings.Contains(got.Reason.Message, last.MetadataLocation()) || got.Outcome.FilesRemoved != 0 {
		t.Errorf("%+v: %s", got.Outcome, got.Reason.Message)
	}
	tt.register(last.MetadataLocation())
	tt.expect(rows)
}

func (tt *testTable) register(location string) {
	tt.t.Helper()
	_, err := tt.service.RegisterTable(tt.t.Context(), caller(), catalog.RegisterRequest{
		Warehouse: "w", Ident: tt.ident, MetadataLocation: location,
	})
	if err != nil {
		tt.t.Fatal(err)
	}
}

// Whoever is quick can have the table back.
func TestPurge_ComesTooLate(t *testing.T) {
	b := newBench(t)
	tt, rows := purgeTable(b, "t", tableOptions{})
	last := tt.load()
	_, job := tt.drop()
	tt.register(last.MetadataLocation())
	b.drain(b.worker(nil))
	expectState(t, tt.job(job.ID), maintenance.NothingToDo, maintenance.CodeTableBack)
	tt.expect(rows)
}

// A worker dies at its first step that leaves something, at its second, and so on, before or after the step took effect.
// The next one removes the rest.
func TestPurge_DiesAtEveryStep(t *testing.T) {
	b := newBench(t)
	neighbour, rows := purgeTable(b, "neighbour", tableOptions{})
	for _, applied := range []bool{false, true} {
		through := false
		for end := 1; !through; end += 2 {
			if end > 60 {
				t.Fatal("no worker ever gets through")
			}
			tt, _ := purgeTable(b, fmt.Sprintf("t%d%v", end, applied), tableOptions{})
			location := tt.load().Location()
			_, job := tt.drop()
			w, m := b.mortalWorker(end, applied, nil)
			if _, err := w.RunOnce(t.Context()); err != nil && !errors.Is(err, errDied) {
				t.Fatal(err)
			}
			through = !m.dead
			b.expireLeases()
			b.drain(b.worker(nil))
			expectState(t, tt.job(job.ID), maintenance.Succeeded, maintenance.CodeDone)
			if left := b.filesBelow(location); len(left) > 0 {
				t.Errorf("died at step %d of %v: left %q", end, m.calls, left)
			}
		}
	}
	neighbour.expect(rows)
}

// stubborn are files that cannot be removed.
type stubborn struct{ maintenance.Files }

func (stubborn) Remove(string) error { return errors.New("access denied") }

var _ icebergio.WriteFileIO = stubborn{}

func TestPurge_GivesUpWithAReason(t *testing.T) {
	b := newBench(t)
	tt, _ := purgeTable(b, "t", tableOptions{})
	last := tt.load()
	before := b.filesBelow(last.Location())
	_, job := tt.drop()
	w := b.worker(func(c *maintenance.Config) {
		open := c.OpenFiles
		c.OpenFiles = func(ctx context.Context, p vending.Profile, s vending.Scope) (maintenance.Files, error) {
			files, err := open(ctx, p, s)
			return stubborn{files}, err
		}
	})
	for attempt := 1; ; attempt++ {
		b.drain(w)
		got := tt.job(job.ID)
		if got.State == maintenance.Failed {
			if attempt != 8 || !strings.Contains(got.Reason.Message, "access denied") || !strings.Contains(got.Reason.Message, "; 0 files were removed") {
				t.Errorf("failed after %d attempts: %s", attempt, got.Reason.Message)
			}
			break
		}
		if got.State != maintenance.Queued || !got.NotBefore.After(got.CreatedAt) || attempt > 8 {
			t.Fatalf("attempt %d: %+v", attempt, got)
		}
		b.expireLeases()
	}
	if after := b.filesBelow(last.Location()); !slices.Equal(after, before) {
		t.Errorf("files went: %q of %q", after, before)
	}
}

// A dropped table has no name any more, but its job can be asked for by who may read its namespace's tables.
func TestPurge_JobIsShown(t *testing.T) {
	b := newBench(t)
	tt, _ := purgeTable(b, "t", tableOptions{})
	_, job := tt.drop()
	got, err := b.operations().FindJob(t.Context(), caller(), job.ID)
	if err != nil || got.State != maintenance.Queued || got.Subject != "db.t" {
		t.Fatalf("%v: %+v", err, got)
	}
	b.drain(b.worker(nil))
	if got, err = b.operations().FindJob(t.Context(), caller(), job.ID); err != nil || got.State != maintenance.Succeeded {
		t.Fatalf("%v: %+v", err, got)
	}
	stranger := catalog.Caller{Principal: auth.Principal{ID: uuid.New(), Name: "stranger", Kind: auth.Service}}
	if _, err := b.operations().FindJob(t.Context(), stranger, job.ID); err == nil {
		t.Error("a stranger is shown the job")
	}
	if _, err := maintenance.ParseKind("purge"); !fault.Is(err, fault.BadRequest) {
		t.Errorf("a purge can be asked for: %v", err)
	}
}

// beside is another catalog on the same warehouse folder: what went on after the backup from which b was restored.
func (b *bench) beside() *bench {
	b.t.Helper()
	return newBenchIn(b.t, b.folder)
}

// A database that was restored from a backup has a purge of a table that somebody got back since then.
func TestPurge_RestoredDatabaseRemovesNothingThatLives(t *testing.T) {
	for name, goOn := range map[string]func(tt *testTable, files []string){
		"registered and appended": func(tt *testTable, files []string) { tt.register("file://" + files[len(files)-1]) },
		"registered an older one": func(tt *testTable, files []string) { tt.register("file://" + files[0]) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			tt, _ := purgeTable(b, "t", tableOptions{})
			last := tt.load()
			_, job := tt.drop()
			live := &testTable{bench: b.beside(), ident: tt.ident, next: tt.next}
			goOn(live, b.metadataOf(last.Location()))
			live.append(live.rows("c", 3))
			newest, before := live.load(), b.filesBelow(last.Location())
			b.drain(b.worker(nil))
			got := tt.job(job.ID)
			expectState(t, got, maintenance.Refused, maintenance.CodeNewerMetadata)
			if after := b.filesBelow(last.Location()); !slices.Equal(after, before) || !strings.Contains(got.Reason.Message, newest.MetadataLocation()) {
				t.Errorf("left %d of %d files: %s", len(after), len(before), got.Reason.Message)
			}
			tt.register(newest.MetadataLocation()) // the remedy
			if tt.load().MetadataLocation() != newest.MetadataLocation() {
				t.Error("not registered")
			}
		})
	}
}

func (b *bench) metadataOf(location string) []string {
	files := b.filesBelow(location + "/metadata")
	return slices.DeleteFunc(files, func(f string) bool { return !strings.HasSuffix(f, ".metadata.json") })
}

// What a commit left that came to nothing long before the drop does not keep a table from being purged; what was left
// around the drop does, whatever is in it.
func TestPurge_LeftoversOfCommits(t *testing.T) {
	for age, want := range map[time.Duration]maintenance.State{time.Hour: maintenance.Succeeded, 0: maintenance.Refused} {
		b := newBench(t)
		tt, _ := purgeTable(b, "t", tableOptions{properties: map[string]string{"write.metadata.previous-versions-max": "1"}})
		leftover := filepath.Join(bare(tt.load().Location()), "metadata", "00009-x.gz.metadata.json")
		if err := (rawFS{}).WriteFile(leftover, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(leftover, time.Time{}, time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
		_, job := tt.drop()
		b.drain(b.worker(nil))
		if got := tt.job(job.ID); got.State != want {
			t.Errorf("a leftover of %s before: %s %+v", age, got.State, got.Reason)
		}
	}
}

// The backup was taken while a compaction was about to commit: the restored database must not take the files of its
// commit for leftovers.
func TestCrash_RestoredDatabaseKeepsWhatWasCommitted(t *testing.T) {
	b := newBench(t)
	tt, _ := crashTable(b, 0)
	last := tt.load()
	job := tt.enqueue()
	w := b.worker(func(c *maintenance.Config) { c.Tables = &lost{Tables: b.service} })
	if _, err := w.RunOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	live := &testTable{bench: b.beside(), ident: tt.ident, next: tt.next}
	live.register(last.MetadataLocation())
	live.append(live.rows("c", 3))
	live.append(live.rows("c", 3))
	before := b.filesBelow(last.Location())
	b.expireLeases()
	b.drain(b.worker(nil))
	got := tt.job(job.ID)
	expectState(t, got, maintenance.Refused, maintenance.CodeNewerMetadata)
	if after := b.filesBelow(last.Location()); !slices.Equal(after, before) || !strings.Contains(got.Reason.Message, live.load().MetadataLocation()) {
		t.Errorf("left %d of %d files: %s", len(after), len(before), got.Reason.Message)
	}
}
