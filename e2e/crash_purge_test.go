package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// purgePoints are the steps of a purge; "purge-removed" is passed after data, manifests, lists and the metadata file.
var purgePoints = []string{
	"purge-claimed", "purge-removed", "purge-removed:2", "purge-removed:3", "purge-removed:4", "purge-before-metadata", "purge-after-metadata",
}

// allPoints are the points at which tests let processes die.
func allPoints() []string {
	return append(append(append([]string{}, compactionPoints...), commitPoints...), purgePoints...)
}

// A worker is killed at each step of a purge. Another one removes the rest; the job can be asked for although its table
// has no name any more, and not one file of another table is gone.
func TestCrash_Purge(t *testing.T) {
	l, py := newLake(t), pyiceberg(t)
	py.run(t, l.server, "stories/crash_tables.py", fmt.Sprintf("make:purged:%d:2", len(purgePoints)), "make:kept:1:3")
	r := l.rest(t)
	type purged struct{ point, folder, job string }
	var all []purged
	for i, point := range purgePoints {
		table := fmt.Sprintf("purged%d", i)
		p := purged{point: point, folder: strings.TrimPrefix(r.load(table).Metadata.Location, "file://")}
		if status, raw := r.call("DELETE", "/dev/namespaces/crash/tables/"+table+"?purgeRequested=true", nil); status != 204 {
			t.Fatalf("drop %s: %d %s", table, status, raw)
		}
		p.job = query[string](l, `SELECT id::text FROM jobs WHERE kind = 'purge' AND state = 'queued'`)[0]
		if count := len(regularFiles(t, p.folder)); count < 6 {
			t.Fatalf("%s: %d files before its purge", table, count)
		}
		w := l.startWorker(point)
		if err := w.wait(t); !killed(err) {
			t.Fatalf("%s: the worker ended with %v:\n%s", point, err, tail(w.log.String(), 20))
		}
		// Nobody else gets the job before the last worker is dead.
		query[string](l, `UPDATE jobs SET lease_until = lease_until + interval '1 hour' WHERE id = $1 RETURNING id::text`, p.job)
		all = append(all, p)
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
		if left := regularFiles(t, p.folder); len(left) > 0 {
			t.Errorf("%s: left %q", p.point, left)
		}
		t.Logf("%-24s %s after %d attempts: %s", p.point, job.State, job.Attempts, job.Reason.Message)
	}
	if n := query[int](l, `SELECT count(*) FROM dropped_tables WHERE purged_until IS NULL`)[0]; n != 0 {
		t.Errorf("%d dropped tables are still known", n)
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
