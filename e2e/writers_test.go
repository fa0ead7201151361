package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The size of the writers' story: short in `make test`, whole with E2E_WRITERS_SECONDS=300 E2E_SPARK_PROCESSES=4.
const (
	writersSecondsDefault = 45
	writersOfEach         = 4
	appendsOfEachMin      = 20 // in a whole run of wholeRunSeconds; a shorter one asks for one
	wholeRunSeconds       = 300
	compactEvery          = 5 * time.Second // while they write
)

// What a worker is to find by itself: so many appends of one file each, in seconds also where the machine is busy.
const (
	foundAppends = 5
	foundMax     = 30 * time.Second
)

func fromEnv(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n > 0 {
		return n
	}
	return otherwise
}

// Four Spark writers with their own retries and four PyIceberg writers with a retry loop append to one table while it
// is being compacted. Every acknowledged row is there once, every row at most once, rewrites land between the appends,
// and compaction ends.
func TestStory_WritersDuringCompaction(t *testing.T) {
	s := fileServer(t)
	seconds := fromEnv("E2E_WRITERS_SECONDS", writersSecondsDefault)
	processes := fromEnv("E2E_SPARK_PROCESSES", 1)
	const table = "writers.rows"
	py, sp := pyiceberg(t), spark(t)
	py.run(t, s, "stories/writers_table.py", "create", table)

	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(seconds+clientSecondsMax)*time.Second)
	defer cancel()
	var running []*exec.Cmd
	var outs []*bytes.Buffer
	start := func(cmd *exec.Cmd) {
		out := &bytes.Buffer{}
		cmd.Stdout, cmd.Stderr = out, out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		running, outs = append(running, cmd), append(outs, out)
	}
	wait := strconv.Itoa(seconds)
	for p := range processes {
		args := []string{table, wait}
		for w := p; w < writersOfEach; w += processes {
			args = append(args, fmt.Sprintf("spark-%d", w))
		}
		start(sp.command(ctx, t, s, "stories/writer_spark.py", args...))
	}
	for w := range writersOfEach {
		start(py.command(ctx, t, s, "stories/writer_pyiceberg.py", table, fmt.Sprintf("pyiceberg-%d", w), wait))
	}
	ends, ended := make([]error, len(running)), make(chan struct{})
	go func() {
		defer close(ended)
		for i, cmd := range running {
			ends[i] = cmd.Wait()
		}
	}()
	asked := compactUntil(t, s, table, ended)
	for i, err := range ends {
		if err != nil {
			t.Errorf("a writer ended with %v\n%s", err, tail(outs[i].String(), 60))
		}
	}
	amid := rewritesAmidAppends(s.rest(t).look(table))
	if amid == 0 {
		t.Errorf("no rewrite landed while the writers wrote; the runs that were asked for ended as %v", asked)
	}
	acknowledged, lost := map[string]int{}, 0
	perWriter := map[string]int{}
	for _, out := range outs {
		for _, line := range strings.Split(out.String(), "\n") {
			switch f := strings.Fields(line); {
			case len(f) == 3 && f[0] == "ack":
				acknowledged[f[1]+" "+f[2]]++
				perWriter[f[1]]++
			case len(f) > 0 && f[0] == "lost":
				lost++
			case len(f) > 0 && f[0] == "failed":
				t.Error(line)
			}
		}
	}
	want := 1
	if seconds >= wholeRunSeconds {
		want = appendsOfEachMin
	}
	if len(perWriter) != 2*writersOfEach {
		t.Errorf("%d writers of %d had an append acknowledged", len(perWriter), 2*writersOfEach)
	}
	for writer, n := range perWriter {
		if n < want {
			t.Errorf("%s had %d appends acknowledged, wanted %d", writer, n, want)
		}
	}
	job := compact(t, s, table)
	if job.State != "succeeded" && job.State != "nothing_to_do" {
		t.Errorf("compaction ended as %+v", job)
	}
	rows := map[string]int{}
	for _, line := range strings.Split(py.run(t, s, "stories/writers_table.py", "read", table), "\n") {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "row" {
			rows[f[1]+" "+f[2]]++
		}
	}
	for row := range acknowledged {
		if rows[row] != 1 {
			t.Errorf("acknowledged row %q is there %d times", row, rows[row])
		}
	}
	for row, n := range rows {
		if n > 1 {
			t.Errorf("row %q is there %d times", row, n)
		}
	}
	t.Logf("%d s: %d acknowledged appends by writer %v, %d lost after Spark's retries; %d rows; %d rewrites between appends, asked-for runs ended as %v; compaction: %s",
		seconds, len(acknowledged), perWriter, lost, len(rows), amid, asked, job.State)
}

// compactUntil asks for one compaction after the other until the writers have ended, and counts how they ended.
func compactUntil(t *testing.T, s *server, table string, ended <-chan struct{}) map[string]int {
	t.Helper()
	states := map[string]int{}
	ticker := time.NewTicker(compactEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ended:
			return states
		case <-ticker.C:
			states[compact(t, s, table).State]++
		}
	}
}

// rewritesAmidAppends counts the snapshots of rewrites that have appends both before and after them.
func rewritesAmidAppends(l loaded) int {
	first, last := int64(math.MaxInt64), int64(0)
	for _, snapshot := range l.Metadata.Snapshots {
		if snapshot.Summary["operation"] == "append" {
			first, last = min(first, snapshot.Sequence), max(last, snapshot.Sequence)
		}
	}
	n := 0
	for _, snapshot := range l.Metadata.Snapshots {
		if snapshot.Summary["operation"] == "replace" && first < snapshot.Sequence && snapshot.Sequence < last {
			n++
		}
	}
	return n
}

// A table that is given maintenance, and then enough small files, is compacted without anybody's asking: a worker as it
// is delivered finds it within seconds.
func TestStory_WorkerFindsTableByItself(t *testing.T) {
	s, py := fileServer(t), pyiceberg(t)
	const table = "found.rows"
	py.run(t, s, "stories/engine_pyiceberg.py", "create:"+table)
	manage := &rest{t, s.env["CATALOGD_MANAGEMENT_URI"], s.rest(t).token}
	const path = "/catalogs/dev/namespaces/found/tables/rows/maintenance"
	if status, raw := manage.call("PUT", path, map[string]any{"settings": map[string]any{"enabled": true}}); status != 200 {
		t.Fatalf("enable maintenance: %d %s", status, raw)
	}
	appends := make([]string, foundAppends)
	for i := range appends {
		appends[i] = fmt.Sprintf("append:%s:%d:1", table, i)
	}
	py.run(t, s, "stories/engine_pyiceberg.py", appends...)
	enough, shown := time.Now(), ""
	var done jobAnswer
	defer func() {
		if t.Failed() {
			t.Logf("the table's maintenance: %s", shown)
		}
	}()
	awaitUpTo(t, foundMax, "an automatic run has succeeded", func() bool {
		status, raw := manage.call("GET", path, nil)
		var m struct {
			Jobs []jobAnswer `json:"jobs"`
		}
		if err := json.Unmarshal(raw, &m); err != nil || status != 200 {
			t.Fatalf("show maintenance: %d %s", status, raw)
		}
		shown = string(raw)
		i := slices.IndexFunc(m.Jobs, func(j jobAnswer) bool { return j.Trigger == "automatic" && j.State == "succeeded" })
		if i >= 0 {
			done = m.Jobs[i]
		}
		return i >= 0
	})
	if done.FilesBefore != foundAppends || done.FilesAfter != 1 || done.RowsBefore != foundAppends || done.RowsAfter != foundAppends {
		t.Errorf("the run ended as %+v", done)
	}
	t.Logf("%d files became %d, seen %s after the last append's client had ended", done.FilesBefore, done.FilesAfter, time.Since(enough).Round(time.Millisecond))
}

// jobAnswer is what `catalogd maintenance … --output json` prints.
type jobAnswer struct {
	JobID       string `json:"job_id"`
	State       string `json:"state"`
	Trigger     string `json:"trigger"`
	FilesBefore int    `json:"files_before"`
	FilesAfter  int    `json:"files_after"`
	RowsBefore  int64  `json:"rows_before"`
	RowsAfter   int64  `json:"rows_after"`
	Reason      struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"reason"`
}

// compact runs one compaction on demand and waits for it.
func compact(t *testing.T, s *server, table string) jobAnswer {
	t.Helper()
	out := s.catalogd(t, "maintenance", "run", "-w", "dev", table, "--wait", "--output", "json")
	var job jobAnswer
	if err := json.Unmarshal([]byte(out), &job); err != nil {
		t.Fatalf("maintenance run printed %q: %v", out, err)
	}
	return job
}

// Spark reads a table that the worker has clustered: same rows, same sums.
func TestStory_SparkReadsClusteredTable(t *testing.T) {
	for name, s := range map[string]*server{"file": fileServer(t), "s3": s3Server(t)} {
		t.Run(name, func(t *testing.T) {
			table := "clustered.readings"
			sp := spark(t)
			if name == "s3" {
				sp.env = append(sp.env, "SPARK_IO=org.apache.iceberg.aws.s3.S3FileIO", "SPARK_DELEGATION=header")
			}
			sums := "sql:SELECT count(*), sum(id), sum(hash(id, label, at, price, day)), min(at), max(at) FROM ice." + table
			out := sp.run(t, s, "stories/engine_spark.py",
				"sql:CREATE NAMESPACE IF NOT EXISTS ice.clustered",
				"sql:CREATE TABLE ice."+table+" (id BIGINT, label STRING, at TIMESTAMP, price DECIMAL(10,2), day DATE) USING iceberg",
				"sql:ALTER TABLE ice."+table+" WRITE ORDERED BY label, at",
				"sql:INSERT INTO ice."+table+fill(0), "sql:INSERT INTO ice."+table+fill(1), "sql:INSERT INTO ice."+table+fill(2),
				"sql:INSERT INTO ice."+table+fill(3), "sql:INSERT INTO ice."+table+fill(4), "sql:INSERT INTO ice."+table+fill(5), sums)
			job := compact(t, s, table)
			if job.State != "succeeded" || job.RowsBefore != job.RowsAfter {
				t.Fatalf("compaction ended as %+v", job)
			}
			after := sp.run(t, s, "stories/engine_spark.py", sums,
				"sql:SELECT operation FROM ice."+table+".snapshots ORDER BY committed_at DESC LIMIT 1")
			before := lastLine(out)
			wantLines(t, after, before, "replace")
			t.Logf("%d files became %d; Spark reads %q before and after", job.FilesBefore, job.FilesAfter, before)
		})
	}
}

// fill is a SELECT of 5,000 rows with a null and odd values here and there.
func fill(part int) string {
	return fmt.Sprintf(` SELECT id, if(id %% 50 = 0, NULL, concat('label-', id %% 97)), timestamp_seconds(1700000000 + id * 37),
		cast(id %% 1000 AS DECIMAL(10,2)) / 4, date_add(date'2024-01-01', cast(id %% 400 AS INT)) FROM range(%d, %d)`,
		part*5000, (part+1)*5000)
}

func lastLine(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return lines[len(lines)-1]
}
