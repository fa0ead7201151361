package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Each engine makes a table and appends to everybody's; all read the same rows. The clients have no right of their
// own on the bucket: what they reach, they reach with vended credentials.

func TestStory_EnginesShareTablesOnFile(t *testing.T) {
	shareTables(t, fileServer(t), "share_file", "STAGE_CREATE_TABLES=false")
}

func TestStory_EnginesShareTablesOnS3(t *testing.T) {
	shareTables(t, s3Server(t), "share_s3", "SPARK_IO=org.apache.iceberg.aws.s3.S3FileIO")
}

func shareTables(t *testing.T, s *server, ns string, env ...string) {
	py, duck, sp := pyiceberg(t), duckdb(t), spark(t)
	duck.env, sp.env = append(duck.env, env...), append(sp.env, env...)
	ofPy, ofDuck, ofSpark := ns+".of_pyiceberg", ns+".of_duckdb", ns+".of_spark"

	py.run(t, s, "stories/engine_pyiceberg.py", "create:"+ofPy, "append:"+ofPy+":0:100")
	duck.run(t, s, "stories/engine_duckdb.py", "create:"+ofDuck, "append:"+ofDuck+":0:100", "append:"+ofPy+":100:100")
	out := sp.run(t, s, "stories/engine_spark.py", "read:"+ofPy, "read:"+ofDuck,
		"create:"+ofSpark, "append:"+ofSpark+":0:100", "append:"+ofPy+":200:100", "append:"+ofDuck+":100:100",
		"read:"+ofPy, "read:"+ofDuck, "read:"+ofSpark)
	wantLines(t, out, ofPy+" 200 19900", ofDuck+" 100 4950", ofPy+" 300 44850", ofDuck+" 200 19900", ofSpark+" 100 4950")

	py.run(t, s, "stories/engine_pyiceberg.py", "append:"+ofSpark+":100:100", "append:"+ofDuck+":200:100")
	duck.run(t, s, "stories/engine_duckdb.py", "append:"+ofSpark+":200:100")
	for _, e := range []engine{py, duck} {
		out := e.run(t, s, "stories/engine_"+e.name+".py", "read:"+ofPy, "read:"+ofDuck, "read:"+ofSpark)
		wantLines(t, out, ofPy+" 300 44850", ofDuck+" 300 44850", ofSpark+" 300 44850")
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
	if got.Rows < 390_000 || !got.ChecksumEqual || got.After["p2"] >= got.Before["p2"] {
		t.Errorf("the demo came to %+v", got)
	}
	if _, err := os.Stat(got.Picture); err != nil {
		t.Error(err)
	}
	t.Logf("%d rows, %d row groups, shares %v -> %v", got.Rows, got.RowGroups, got.Before, got.After)
}
