package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What README leads a newcomer through works in its order: the first query, the compaction of that very table, and the
// samples for PyIceberg and DuckDB as they are printed. Then come the commands of docs/using.md.
func TestReadme_FirstQuery(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root(t), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	readme := string(text)
	dir := tempDir(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := startDev(t, filepath.Join(dir, "catalogd-data"), nil, "--warehouse-property", "purge-delay-seconds=600")
	t.Cleanup(s.stop)

	out := pyiceberg(t).run(t, s, "../demo/first_query.py")
	if line := tail(out, 1); !strings.HasPrefix(line, "rows ") || !strings.Contains(readme, "\n"+line+"\n") {
		t.Errorf("README does not say what the first query prints: %s", line)
	}
	const command = "maintenance run iot.readings --wait"
	if !strings.Contains(readme, "\nbin/catalogd "+command+"\n") || !strings.Contains(readme, "`8 files became 1`") {
		t.Error("README compacts another table or promises something else")
	}
	if out := s.catalogd(t, strings.Fields(command)...); !strings.Contains(out, "8 files became 1") {
		t.Errorf("the compaction of the first table: %s", out)
	}

	runSamples(t, s, readme, dir)
	runUsing(t, dir)
}

// runSamples runs README's samples in Python.
func runSamples(t *testing.T, s *server, readme, dir string) {
	t.Helper()
	samples := 0
	for part := range strings.SplitSeq(readme, "\n```python\n") {
		sample, _, closed := strings.Cut(part, "\n```\n")
		if !closed || !strings.HasPrefix(sample, "import ") {
			continue
		}
		samples++
		path := filepath.Join(dir, "sample.py")
		if err := os.WriteFile(path, []byte(sample), 0o600); err != nil {
			t.Fatal(err)
		}
		client, want := pyiceberg(t), "104"
		if strings.Contains(sample, "duckdb") {
			client, want = duckdb(t), ""
		}
		if out := client.run(t, s, "settings/run_file.py", path); strings.TrimSpace(out) != want {
			t.Errorf("a sample of README printed %q, not %q:\n%s", out, want, sample)
		}
	}
	if samples != 2 {
		t.Errorf("README has %d samples in Python, not 2", samples)
	}
}

// viewForUsing makes the view of docs/using.md as Spark would.
const viewForUsing = `
curl -sf -H "$auth" -H 'Content-Type: application/json' "$catalog/namespaces/iot/views" -d '{"name": "warm", "properties": {},
  "schema": {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "value", "required": false, "type": "double"}]},
  "view-version": {"version-id": 1, "timestamp-ms": 1, "schema-id": 0, "summary": {}, "default-namespace": ["iot"],
    "representations": [{"type": "sql", "sql": "SELECT value FROM iot.readings WHERE value > 21", "dialect": "spark"}]}}' >/dev/null
`

// runUsing runs the blocks of docs/using.md as one script, in the folder above that of `dev`.
func runUsing(t *testing.T, dir string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), "docs", "using.md"))
	if err != nil {
		t.Fatal(err)
	}
	script := "set -euo pipefail\n"
	for i, part := range strings.Split(string(text), "\n```sh\n")[1:] {
		block, _, closed := strings.Cut(part, "\n```\n")
		if !closed {
			t.Fatal("a block of docs/using.md does not end")
		}
		script += block + "\n"
		if i == 0 {
			script += viewForUsing
		}
	}
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(cleanEnv(), "PATH="+filepath.Dir(binary(t))+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("docs/using.md: %v\n%s", err, tail(string(out), 30))
	}
	for _, want := range []string{"TABLE_DROP is missing", `"name":"warm"`, `"dropped_at":`, `"state":"queued"`} {
		if !strings.Contains(string(out), want) {
			t.Errorf("docs/using.md printed no %s: %s", want, tail(string(out), 60))
		}
	}
}
