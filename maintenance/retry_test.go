package maintenance_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"catalogd/auth"
	"catalogd/catalog"
	"catalogd/internal/fault"
	"catalogd/maintenance"
	"catalogd/vending"
)

// locked are files of which some cannot be removed; batches go key by key, as in an object
// store.
type locked struct {
	maintenance.Files
	refuses func(name string) bool
}

func (l locked) DeleteFiles(_ context.Context, names []string) (gone []string, err error) {
	for _, name := range names {
		if l.refuses(name) {
			err = errors.New("the store says AccessDenied for " + name)
			continue
		}
		if err := l.Files.Remove(name); err != nil {
			return gone, err
		}
		gone = append(gone, name)
	}
	return gone, err
}

// lockedWorker is a worker that cannot remove some files.
func (b *bench) lockedWorker(refuses func(name string) bool) *maintenance.Worker {
	return b.worker(func(c *maintenance.Config) {
		open := c.OpenFiles
		c.OpenFiles = func(ctx context.Context, p vending.Profile, s vending.Scope) (maintenance.Files, error) {
			files, err := open(ctx, p, s)
			return locked{files, refuses}, err
		}
	})
}

// A purge of which the store refuses some files fails in the end with the reason, the number of files that are gone and
// what to do; what names the refused ones is there. Begun again when the cause is mended, it removes the rest, and every
// file has been counted once.
func TestPurge_IsBegunAgain(t *testing.T) {
	in := func(part string) func(string) bool {
		return func(name string) bool { return strings.Contains(name, part) }
	}
	manifests := func(name string) bool { return strings.HasSuffix(name, ".avro") && !strings.Contains(name, "/snap-") }
	for part, refuses := range map[string]func(name string) bool{
		"data": in("/data/"), "manifests": manifests, "lists": in("/snap-"), "metadata": in(".metadata.json"),
	} {
		b := newBench(t)
		tt, _ := purgeTable(b, "t", tableOptions{})
		location := tt.load().Location()
		before := len(b.filesBelow(location))
		_, job := tt.drop()
		for range 8 {
			b.drain(b.lockedWorker(refuses))
			b.expireLeases()
		}
		failed := tt.job(job.ID)
		left := b.filesBelow(location)
		if failed.State != maintenance.Failed || !strings.Contains(failed.Reason.Message, "AccessDenied") ||
			!strings.Contains(failed.Reason.Message, fmt.Sprintf("; %d files were removed", before-len(left))) ||
			!strings.Contains(failed.Reason.Message, "catalogd maintenance retry "+job.ID.String()) {
			t.Errorf("%s: %d of %d files are left; %s: %s", part, len(left), before, failed.State, failed.Reason.Message)
		}
		if failed.Outcome.FilesRemoved != int64(before-len(left)) {
			t.Errorf("%s: %d files removed, %d of %d are left", part, failed.Outcome.FilesRemoved, len(left), before)
		}
		if again, err := b.operations().RetryJob(t.Context(), caller(), job.ID); err != nil || again.State != maintenance.Queued {
			t.Fatalf("%v: %+v", err, again)
		}
		b.drain(b.lockedWorker(in("nothing")))
		done := tt.job(job.ID)
		expectState(t, done, maintenance.Succeeded, maintenance.CodeDone)
		if left := b.filesBelow(location); len(left) > 0 || done.Outcome.FilesRemoved != int64(before) || done.Outcome.FilesUnsettled != 0 {
			t.Errorf("%s: %d of %d files removed, left %q", part, done.Outcome.FilesRemoved, before, left)
		}
	}
}

// Only who might drop the table with purge begins its purge again, and nothing is left to begin when the place is
// another table's.
func TestPurge_IsNotBegunAgain(t *testing.T) {
	b := newBench(t)
	tt, _ := purgeTable(b, "t", tableOptions{below: "s/t"})
	_, job := tt.drop()
	b.exec(`UPDATE jobs SET state = 'failed' WHERE id = @id`, pgx.NamedArgs{"id": job.ID})
	stranger := catalog.Caller{Principal: auth.Principal{ID: uuid.New(), Name: "stranger", Kind: auth.Service}}
	if _, err := b.operations().RetryJob(t.Context(), stranger, job.ID); err == nil {
		t.Error("a stranger begins the purge again")
	}
	next, rows := purgeTable(b, "t", tableOptions{below: "s/t"}) // drop and create mean the same place
	if _, err := b.operations().RetryJob(t.Context(), caller(), job.ID); !fault.Is(err, fault.IllegalArgument) {
		t.Errorf("the place has another table: %v", err)
	}
	b.drain(b.worker(nil))
	next.expect(rows)
}

// Somebody has put a link in the place of the dropped table's folder: what it leads to is not purged.
func TestPurge_FollowsNoLink(t *testing.T) {
	b := newBench(t)
	victim, rows := purgeTable(b, "victim", tableOptions{below: "s/victim"})
	tt, _ := purgeTable(b, "t", tableOptions{below: "s/t"})
	folder, other := bare(tt.load().Location()), bare(victim.load().Location())
	_, job := tt.drop()
	if err := errors.Join(os.Rename(folder, folder+".aside"), os.Symlink(filepath.Base(other), folder)); err != nil {
		t.Fatal(err)
	}
	before := len(b.filesBelow("file://" + other))
	for range 8 {
		b.drain(b.worker(nil))
		b.expireLeases()
	}
	failed := tt.job(job.ID)
	if failed.State != maintenance.Failed || !strings.Contains(failed.Reason.Message, "symbolic link") {
		t.Errorf("%s: %s", failed.State, failed.Reason.Message)
	}
	if after := len(b.filesBelow("file://" + other)); after != before {
		t.Errorf("%d of the victim's %d files are left", after, before)
	}
	victim.expect(rows)
}
