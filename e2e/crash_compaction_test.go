package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// compactionPoints are the steps of a compaction; those of its commit are commitPoints. ":2" is the second partition.
var compactionPoints = []string{
	"compact-claimed", "compact-intent", "compact-intent:2", "compact-data-bytes", "compact-data-file", "compact-data-file:2",
	"compact-data-written", "compact-manifests", "compact-manifest-list", "compact-before-commit", "compact-after-commit",
}

// What the tables of this test hold, see stories/crash_tables.py.
const (
	crashAppends    = 2 // before the compaction
	crashRows       = 1000
	crashRowsAll    = (crashAppends + 1) * crashRows
	crashAttempts   = 3 // maintenance gives a job that many
	crashCommitDone = "the commit had landed when the job's worker stopped"
)

// crashJob is one table with its job, and what befell it.
type crashJob struct {
	what      string
	table, id string
	point     string
	atDeath   int // recorded files that were there when the worker died
	attempts  []int
	failed    bool    // the job is to end as failed
	hung      *worker // goes on when another worker has ended the job
}

// compactionCrashes is the test's story: tables, jobs and deaths.
type compactionCrashes struct {
	t    *testing.T
	lake *lake
	rest *rest
	jobs []*crashJob
}

// hangPoints are where a worker hangs until another one has done its job. It must not harm what that one did.
var hangPoints = []string{"compact-data-bytes", "compact-before-commit", "commit-after-metadata"}

// The worker is killed at each step of a compaction, Postgres and the server at some; some workers
// hang and come back. Writers go on meanwhile. Every
// job resumes, or ends with a reason; every acknowledged row is there once; nothing names a file that is missing; what
// the dead left behind is gone.
func TestCrash_Compaction(t *testing.T) {
	l, py := newLake(t), pyiceberg(t)
	points := append(slices.Clone(compactionPoints), commitPoints...)
	postgresPoints := []string{"compact-data-bytes", "compact-before-commit", "commit-in-transaction", "compact-after-commit"}
	serverPoints := []string{"compact-data-written", "commit-in-transaction"}
	prefixes := map[string]int{"worker": len(points), "fatal": 1, "hung": len(hangPoints), "postgres": len(postgresPoints), "server": len(serverPoints)}
	var makes, appends, checks []string
	for prefix, n := range prefixes {
		makes = append(makes, fmt.Sprintf("make:%s:%d:%d", prefix, n, crashAppends))
		appends = append(appends, fmt.Sprintf("append:%s:%d:%d", prefix, n, crashAppends))
		checks = append(checks, fmt.Sprintf("check:%s:%d", prefix, n))
	}
	py.run(t, l.server, "stories/crash_tables.py", makes...)
	c := &compactionCrashes{t: t, lake: l, rest: l.rest(t)}

	c.killThrice("fatal0", "compact-data-file")
	for i, point := range points {
		c.killWorker(fmt.Sprintf("worker%d", i), point, i == len(points)-1)
	}
	for i, point := range hangPoints {
		c.hang(fmt.Sprintf("hung%d", i), point)
	}
	survivor := l.startWorker("")
	for i, point := range serverPoints {
		c.killServer(fmt.Sprintf("server%d", i), point)
	}
	for i, point := range postgresPoints {
		c.killPostgres(fmt.Sprintf("postgres%d", i), point)
	}
	py.run(t, l.server, "stories/crash_tables.py", appends...)
	query[string](l, `UPDATE jobs SET lease_until = clock_timestamp() WHERE lease_until > clock_timestamp() + interval '1 minute' RETURNING id::text`)
	await(t, "all jobs have ended", func() bool {
		return query[int](l, `SELECT count(*) FROM jobs WHERE state IN ('queued', 'running')`)[0] == 0
	})
	c.wake()
	_ = survivor.cmd.Process.Signal(os.Interrupt)
	if err := survivor.wait(t); err != nil {
		t.Errorf("the surviving worker ended with %v:\n%s", err, tail(survivor.log.String(), 20))
	}
	c.check(py.run(t, l.server, "stories/crash_tables.py", checks...))
	if t.Failed() {
		t.Logf("the surviving worker's log:\n%s", tail(survivor.log.String(), 80))
	}
}

func (c *compactionCrashes) add(what, table, point string, attempts ...int) *crashJob {
	j := &crashJob{what: what, table: table, point: point, attempts: attempts, id: c.lake.enqueue(c.rest, table)}
	c.jobs = append(c.jobs, j)
	return j
}

// die runs a worker that claims the job and dies at its point.
func (c *compactionCrashes) die(j *crashJob) {
	c.t.Helper()
	w := c.lake.startWorker(j.point)
	if err := w.wait(c.t); !killed(err) {
		c.t.Fatalf("%s: the worker ended with %v:\n%s", j.what, err, tail(w.log.String(), 20))
	}
	if pid := fmt.Sprintf("/%d", w.cmd.Process.Pid); !strings.HasSuffix(query[string](c.lake, `SELECT worker FROM jobs WHERE id = $1`, j.id)[0], pid) {
		c.t.Fatalf("%s: another worker than %s has the job", j.what, pid)
	}
	c.rest.load(j.table) // and the file that the pointer names is there
	j.atDeath = 0
	for _, path := range c.recorded(j) {
		if _, err := os.Stat(path); err == nil {
			j.atDeath++
		}
	}
}

// recorded gives the files of a job that the database knows.
func (c *compactionCrashes) recorded(j *crashJob) []string {
	paths := query[string](c.lake, `SELECT path FROM job_files WHERE job_id = $1`, j.id)
	for i, p := range paths {
		paths[i] = strings.TrimPrefix(p, "file://")
	}
	return paths
}

// killWorker kills a worker at a point. Other workers get the job when its lease ends: for all but one the clock that
// decides, the database's, is moved, so that the test does not wait half a minute for each.
func (c *compactionCrashes) killWorker(table, point string, leaseRunsOut bool) {
	c.t.Helper()
	j := c.add("worker killed at "+point, table, point, 2)
	c.die(j)
	if !leaseRunsOut {
		query[string](c.lake, `UPDATE jobs SET lease_until = lease_until + interval '1 hour' WHERE id = $1 RETURNING id::text`, j.id)
	}
}

// killThrice kills every worker that a job gets.
func (c *compactionCrashes) killThrice(table, point string) {
	c.t.Helper()
	j := c.add("every worker killed at "+point, table, point, crashAttempts+1)
	j.failed = true
	for range crashAttempts {
		c.die(j)
		query[string](c.lake, `UPDATE jobs SET lease_until = clock_timestamp() WHERE id = $1 RETURNING id::text`, j.id)
	}
	query[string](c.lake, `UPDATE jobs SET lease_until = lease_until + interval '1 hour' WHERE id = $1 RETURNING id::text`, j.id)
}

// hang stops a worker at a point. The lease ends as for the others.
func (c *compactionCrashes) hang(table, point string) {
	c.t.Helper()
	c.lake.wishFor(point, "stop")
	j := c.add("worker hung at "+point, table, point, 2)
	j.hung = c.lake.startWorker("")
	await(c.t, "a worker hangs at "+point, c.lake.wishGranted)
	query[string](c.lake, `UPDATE jobs SET lease_until = lease_until + interval '1 hour' WHERE id = $1 RETURNING id::text`, j.id)
}

// wake lets the hanging workers go on, who believe that the job is theirs, and ends them when they know better.
func (c *compactionCrashes) wake() {
	c.t.Helper()
	for _, j := range c.jobs {
		if j.hung == nil {
			continue
		}
		_ = j.hung.cmd.Process.Signal(syscall.SIGCONT)
		await(c.t, j.what+": it has done with its job", func() bool { return strings.Contains(j.hung.log.String(), "maintenance job") })
		_ = j.hung.cmd.Process.Signal(os.Interrupt)
		// When its statement has run out of time while it hung, it asks about the commit first, and is told when it gives the job back.
		err, log := j.hung.wait(c.t), j.hung.log.String()
		if err != nil || !strings.Contains(log, "the lease was lost") && !strings.Contains(log, "the job's lease is held by somebody else now") {
			c.t.Errorf("%s: it ended with %v:\n%s", j.what, err, tail(j.hung.log.String(), 10))
		}
	}
}

// killPostgres has the living worker kill Postgres, which comes back at once.
func (c *compactionCrashes) killPostgres(table, point string) {
	c.t.Helper()
	starts := c.lake.postgres.started()
	c.lake.wishFor(point, c.lake.postgresPID)
	c.add("Postgres killed at "+point, table, point, 1, 2, 3)
	await(c.t, "Postgres is killed at "+point, c.lake.wishGranted)
	await(c.t, "Postgres is back", func() bool { return c.lake.postgres.started() > starts })
	c.lake.awaitReady()
}

// killServer has the worker kill the server, while somebody waits for the job through it. No other job may be open: it
// could kill the server before the wish for this one has arrived.
func (c *compactionCrashes) killServer(table, point string) {
	c.t.Helper()
	starts := c.lake.serving.started()
	c.lake.wishFor(point, c.lake.servingPID)
	wait := c.lake.command("maintenance", "run", "-w", "dev", "crash."+table, "--wait", "--output", "json")
	var out, errs bytes.Buffer
	wait.Stdout, wait.Stderr = &out, &errs
	if err := wait.Start(); err != nil {
		c.t.Fatal(err)
	}
	await(c.t, "the server is killed at "+point, c.lake.wishGranted)
	await(c.t, "the server is back", func() bool { return c.lake.serving.started() > starts })
	c.lake.awaitReady()
	err := wait.Wait()
	var job maintained
	if decoded := json.Unmarshal(out.Bytes(), &job); err != nil || decoded != nil {
		c.t.Fatalf("server killed at %s: who waited for the job got %v %v\n%s%s", point, err, decoded, out.String(), errs.String())
	}
	c.jobs = append(c.jobs, &crashJob{what: "server killed at " + point, table: table, point: point, id: job.JobID, attempts: []int{1}})
}

// check holds every job and table against what must be, and prints the table of points.
func (c *compactionCrashes) check(out string) {
	c.t.Helper()
	rows, left := map[string][]string{}, map[string][]string{}
	for _, f := range linesWith(out, "rows") {
		rows[strings.TrimPrefix(f[0], "crash.")] = f[1:]
	}
	for _, f := range linesWith(out, "left") {
		table := strings.TrimPrefix(f[0], "crash.")
		left[table] = append(left[table], f[1])
	}
	for _, f := range linesWith(out, "missing") {
		c.t.Errorf("%s: %s is named and not there", f[0], f[1])
	}
	for _, j := range c.jobs {
		job, ok := c.lake.job(c.rest, j.id)
		if !ok {
			c.t.Fatalf("job %s of %s cannot be loaded", j.id, j.table)
		}
		c.checkEnd(j, job)
		c.checkRows(j, rows[j.table])
		c.checkLeft(j, left[j.table])
		c.t.Logf("%-42s %-9s after %d attempts; files of the dead %d, left %d; %s", j.what, job.State, job.Attempts, j.atDeath,
			len(left[j.table]), job.Reason.Message)
	}
}

func (c *compactionCrashes) checkEnd(j *crashJob, job maintained) {
	c.t.Helper()
	want := "succeeded"
	if j.failed {
		want = "failed"
	}
	if job.State != want || job.Reason.Message == "" || !slices.Contains(j.attempts, job.Attempts) {
		c.t.Errorf("%s: the job ended as %+v; wanted %s after %v attempts", j.what, job, want, j.attempts)
	}
	if j.failed {
		return
	}
	if job.RowsBefore != job.RowsAfter || job.RowsBefore < crashAppends*crashRows {
		c.t.Errorf("%s: %d rows before, %d after", j.what, job.RowsBefore, job.RowsAfter)
	}
	landed := j.point == "compact-after-commit" || j.point == "commit-after-pointer"
	if found := strings.HasPrefix(job.Reason.Message, crashCommitDone); strings.HasPrefix(j.what, "worker") && found != landed {
		c.t.Errorf("%s: the job ended with %q", j.what, job.Reason.Message)
	}
}

// checkRows: rows, distinct ids, smallest, greatest, snapshots.
func (c *compactionCrashes) checkRows(j *crashJob, got []string) {
	c.t.Helper()
	snapshots := crashAppends + 2 // the append meanwhile and one rewrite
	if j.failed {
		snapshots--
	}
	want := []string{fmt.Sprint(crashRowsAll), fmt.Sprint(crashRowsAll), "0", fmt.Sprint(crashRowsAll - 1), fmt.Sprint(snapshots)}
	if !slices.Equal(got, want) {
		c.t.Errorf("%s: rows, distinct ids, smallest, greatest and snapshots are %v, wanted %v", j.what, got, want)
	}
}

// checkLeft: a commit that died leaves the metadata file that it had written, as life-of-a-commit.md says; nothing
// else stays.
func (c *compactionCrashes) checkLeft(j *crashJob, left []string) {
	c.t.Helper()
	allowed := leftBySIGKILL[j.point]
	if j.hung != nil {
		allowed = 0
	}
	recorded := c.recorded(j)
	for _, path := range left {
		switch {
		case strings.HasSuffix(path, ".metadata.json") && allowed > 0:
			allowed--
		case slices.Contains(recorded, path):
			c.t.Errorf("%s: %s was left by an ended job", j.what, filepath.Base(path))
		default:
			c.t.Errorf("%s: %s was left and nobody knows of it", j.what, path)
		}
	}
}
