package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What README leads a newcomer through works in its order: the first query, the compaction of that very table, and the
// samples for PyIceberg and DuckDB as they are printed.
func TestReadme_FirstQuery(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root(t), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	readme := string(text)
	dir := tempDir(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := startDev(t, filepath.Join(dir, "data"), nil)
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
