package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// purgePoints are the steps of a purge; "purge-removed" is passed after data, manifests, lists and the metadata file.
var purgePoints = []string{
	"purge-claimed", "purge-removed", "purge-removed:2", "purge-removed:3", "purge-removed:4", "purge-before-metadata", "purge-after-metadata",
}

// allPoints are the points at which tests let processes die.
func allPoints() []string {
	return slices.Concat(compactionPoints, commitPoints, purgePoints, outboxPoints)
}

// A worker is killed at each step of a purge. Another one removes the rest; the job can be asked for although its table
// has no name any more, and not one file of another table is gone.
func TestCrash_Purge(t *testing.T) {
	diePurging(t, newLake(t), func(location string) []string { return regularFiles(t, strings.TrimPrefix(location, "file://")) })
}

// The same on an object store, where tables are made, filled and dropped with credentials that the server vended.
func TestCrash_PurgeOnS3(t *testing.T) {
	store := sharedStore(t).within("purged")
	diePurging(t, newLakeOn(t, store), func(location string) []string { return store.objects(t, location) })
}

// diePurging lets a worker die at each step of the purges of tables; files gives what is below a location.
func diePurging(t *testing.T, l *lake, files func(location string) []string) {
	py := pyiceberg(t)
	count := fmt.Sprint(len(purgePoints))
	py.run(t, l.server, "stories/crash_tables.py", "make:purged:"+count+":2", "make:kept:1:3")
	r := l.rest(t)
	type purged struct{ point, location, job string }
	all := make([]purged, len(purgePoints))
	for i, point := range purgePoints {
		all[i] = purged{point: point, location: r.look(fmt.Sprintf("crash.purged%d", i)).Metadata.Location}
		if n := len(files(all[i].location)); n < 6 {
			t.Fatalf("purged%d: %d files before its purge", i, n)
		}
	}
	kept := files(r.look("crash.kept0").Metadata.Location)
	py.run(t, l.server, "stories/crash_tables.py", "purge:purged:"+count)
	for i, point := range purgePoints {
		all[i].job = query[string](l, `SELECT id::text FROM jobs WHERE kind = 'purge' AND state = 'queued' AND subject = $1`, fmt.Sprintf("crash.purged%d", i))[0]
		w := l.startWorker(point)
		if err := w.wait(t); !killed(err) {
			t.Fatalf("%s: the worker ended with %v:\n%s", point, err, tail(w.log.String(), 20))
		}
		// Nobody else gets the job before the last worker is dead.
		query[string](l, `UPDATE jobs SET lease_until = lease_until + interval '1 hour' WHERE id = $1 RETURNING id::text`, all[i].job)
	}
	query[string](l, `UPDATE jobs SET lease_until = clock_timestamp() WHERE state = 'running' RETURNING id::text`)
	survivor := l.startWorker("")
	await(t, "all purges have ended", func() bool {
		return query[int](l, `SELECT count(*) FROM jobs WHERE state IN ('queued', 'running')`)[0] == 0
	})
	_ = survivor.cmd.Process.Signal(os.Interrupt)
	if err := survivor.wait(t); err != nil {
		t.Errorf("the surviving worker ended with %v:\n%s", err, tail(survivor.log.String(), 20))
	}
	for _, p := range all {
		job, ok := l.job(r, p.job)
		if !ok || job.State != "succeeded" || job.Attempts != 2 || !strings.HasSuffix(job.Reason.Message, "files were removed") {
			t.Errorf("%s: the job ended as %+v", p.point, job)
		}
		if left := files(p.location); len(left) > 0 {
			t.Errorf("%s: left %q", p.point, left)
		}
		t.Logf("%-24s %s after %d attempts: %s", p.point, job.State, job.Attempts, job.Reason.Message)
	}
	if n := query[int](l, `SELECT count(*) FROM dropped_tables WHERE purged_until IS NULL`)[0]; n != 0 {
		t.Errorf("%d dropped tables are still known", n)
	}
	if now := files(r.look("crash.kept0").Metadata.Location); !slices.Equal(now, kept) {
		t.Errorf("the neighbour had %q and has %q", kept, now)
	}
	out := py.run(t, l.server, "stories/crash_tables.py", "check:kept:1")
	if missing := linesWith(out, "missing"); len(missing) > 0 {
		t.Errorf("the neighbour lost %q", missing)
	}
	if rows := linesWith(out, "rows"); len(rows) != 1 || rows[0][1] != fmt.Sprint(3*crashRows) {
		t.Errorf("the neighbour has %q", rows)
	}
}

// regularFiles gives the files below a folder.
func regularFiles(t testing.TB, folder string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && !entry.IsDir() {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
