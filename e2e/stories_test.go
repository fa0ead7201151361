package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Each engine makes a table and appends to everybody's; all read the same rows, and each table has one history. The
// clients have no right of their own on the bucket: what they reach, they reach with vended credentials.

func TestStory_EnginesShareTablesOnFile(t *testing.T) {
	t.Parallel()
	shareTables(t, recorded(t, fileServer(t), "engines on file"), "share_file", []sharing{
		{e: pyiceberg(t), script: "pyiceberg"}, {e: duckdb(t), script: "duckdb", env: []string{"STAGE_CREATE_TABLES=false"}},
		{e: spark(t), script: "spark"}, {e: spark35(t), script: "spark"},
	})
}

func TestStory_EnginesShareTablesOnS3(t *testing.T) {
	t.Parallel()
	s := recorded(t, s3Server(t), "engines on S3")
	const fileIO = "SPARK_IO=org.apache.iceberg.aws.s3.S3FileIO"
	trino := startTrino(t, s, "iceberg.unique-table-location=false")
	t.Run("C096_TrinoMakesTablesWhereNothingIs", func(t *testing.T) {
		wantLines(t, trino.run(t, s, "stories/engine_trino.py", "sql:CREATE SCHEMA iceberg.field_trino",
			"sql:CREATE TABLE iceberg.field_trino.made AS SELECT 1 AS n", "sql:SELECT 'C096', count(*), sum(n) FROM iceberg.field_trino.made"), "C096 1 1")
	})
	shareTables(t, s, "share_s3", []sharing{
		{e: pyiceberg(t), script: "pyiceberg"},
		// ClickHouse appends only where the snapshot before has all totals in its summary; DuckDB leaves some out.
		{e: clickhouse(t), script: "clickhouse", readsMostly: true, env: []string{
			"CLICKHOUSE_ENDPOINT=" + strings.TrimPrefix(s.s3.env["AWS_ENDPOINT_URL"], "http://"), "CLICKHOUSE_BUCKET=" + s.s3.env["S3_BUCKET"],
			"CLICKHOUSE_KEY=" + s.s3.env["AWS_ACCESS_KEY_ID"], "CLICKHOUSE_SECRET=" + s.s3.env["AWS_SECRET_ACCESS_KEY"]}},
		{e: duckdb(t), script: "duckdb"}, {e: trino, script: "trino", emptyFirst: true}, {e: spark(t), script: "spark", env: []string{fileIO}}, {e: spark35(t), script: "spark", env: []string{fileIO}},
	})
}

// sharing is an engine in the story, and which script speaks for it.
type sharing struct {
	e           engine
	script      string
	env         []string // more variables
	readsMostly bool     // it creates no tables, and appends only when it comes first
	emptyFirst  bool     // it gives a new table a snapshot without rows
}

// Each engine appends this many rows to each table, with ids of its own.
const rowsOfEach = 100

// shareTables lets the engines come twice each. In order they make a table and append to those that are there; then in
// reverse they append to those that came later. Each reads before and after it writes.
func shareTables(t *testing.T, s *server, ns string, engines []sharing) {
	t.Helper()
	table := func(i int) string { return fmt.Sprintf("%s.of_%d_%s", ns, i, engines[i].script) }
	rows, sums, snapshots := map[string]int{}, map[string]int{}, map[string]int{}
	visit := func(i int, appendTo []int, create bool) {
		var args, want []string
		read := func(name string) {
			args, want = append(args, "read:"+name), append(want, fmt.Sprintf("%s %d %d", name, rows[name], sums[name]))
		}
		for name := range rows {
			read(name)
		}
		if create {
			args = append(args, "create:"+table(i))
			if engines[i].emptyFirst {
				snapshots[table(i)]++
			}
		}
		for _, j := range appendTo {
			name, first := table(j), i*rowsOfEach
			args = append(args, fmt.Sprintf("append:%s:%d:%d", name, first, rowsOfEach))
			rows[name] += rowsOfEach
			snapshots[name]++
			sums[name] += rowsOfEach*first + rowsOfEach*(rowsOfEach-1)/2
			read(name)
		}
		e := engines[i].e
		e.env = append(e.env, engines[i].env...)
		start := time.Now()
		wantLines(t, e.run(t, s, "stories/engine_"+engines[i].script+".py", args...), want...)
		t.Logf("%s: %d commands in %.0f s", e.title, len(args), time.Since(start).Seconds())
	}
	var made []int
	for i, sh := range engines {
		if !sh.readsMostly {
			made = append(made, i)
		}
		visit(i, made, !sh.readsMostly)
	}
	for i := len(engines) - 2; i >= 0; i-- {
		visit(i, slices.DeleteFunc(slices.Clone(made), func(j int) bool { return j <= i || engines[i].readsMostly }), false)
	}
	for _, i := range made {
		oneHistory(t, s.rest(t).look(table(i)), table(i), snapshots[table(i)])
	}
}

// oneHistory checks that the snapshots follow each other, none beside another.
func oneHistory(t *testing.T, l loaded, name string, snapshots int) {
	t.Helper()
	if len(l.Metadata.Snapshots) != snapshots {
		t.Errorf("%s has %d snapshots, wanted %d, one of each engine that appended and an empty one of some that create", name, len(l.Metadata.Snapshots), snapshots)
	}
	var parent, sequence int64
	for _, snapshot := range l.Metadata.Snapshots {
		if snapshot.Parent != parent || snapshot.Sequence <= sequence {
			t.Errorf("%s: snapshot %d has parent %d and sequence number %d after %d and %d", name, snapshot.ID, snapshot.Parent, snapshot.Sequence, parent, sequence)
		}
		parent, sequence = snapshot.ID, snapshot.Sequence
	}
	if l.head() != parent {
		t.Errorf("%s: main is at %d, not at the last snapshot %d", name, l.head(), parent)
	}
}

func wantLines(t *testing.T, out string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains("\n"+out, "\n"+line+"\n") {
			t.Errorf("no line %q in\n%s", line, tail(out, 60))
		}
	}
}

// demoResult is what the demo writes.
type demoResult struct {
	Rows          int64              `json:"rows"`
	RowGroups     int                `json:"row_groups_after"`
	Before        map[string]float64 `json:"row_group_share_before"`
	After         map[string]float64 `json:"row_group_share_after"`
	ChecksumEqual bool               `json:"checksum_equal"`
	Picture       string             `json:"picture"`
}

// The demo at a small size, as `make demo` runs it.

func TestDemo_SmallOnFile(t *testing.T) { smallDemo(t, "file") }
func TestDemo_SmallOnS3(t *testing.T)   { smallDemo(t, "s3") }

func smallDemo(t *testing.T, store string) {
	dir := filepath.Join(tempDir(t), "demo")
	t.Cleanup(func() { os.RemoveAll(filepath.Dir(dir)) })
	result := filepath.Join(t.TempDir(), "result.json")
	cmd := exec.Command(filepath.Join(root(t), "demo", "run"))
	cmd.Env = append(cleanEnv(), "DEMO_ROWS=400000", "DEMO_EXIT=1", "DEMO_STORE="+store, "DEMO_DATA="+dir,
		"DEMO_RESULT="+result, "CATALOGD_BIN="+binary(t))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("demo: %v\n%s", err, tail(string(out), 60))
	}
	raw, err := os.ReadFile(result)
	if err != nil {
		t.Fatal(err)
	}
	var got demoResult
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	// The bars of the full size: as the row groups are as many, they hold here too.
	if got.Rows < 390_000 || !got.ChecksumEqual || got.RowGroups > 256 ||
		got.After["p1"] > 0.012 || got.After["p2"] > 0.09 || got.After["p3"] > 0.13 {
		t.Errorf("the demo came to %+v", got)
	}
	if _, err := os.Stat(got.Picture); err != nil {
		t.Error(err)
	}
	t.Logf("%d rows, %d row groups, shares %v -> %v", got.Rows, got.RowGroups, got.Before, got.After)
}
