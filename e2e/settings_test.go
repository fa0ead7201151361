package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What `catalogd dev` prints for people to paste works as it stands, on both kinds of warehouse.
func TestSettings_PastedOnFile(t *testing.T) { pasteSettings(t, fileServer(t), "pasted_file") }
func TestSettings_PastedOnS3(t *testing.T)   { pasteSettings(t, s3Server(t), "pasted_s3") }

func pasteSettings(t *testing.T, s *server, namespace string) {
	printed, err := os.ReadFile(filepath.Join(s.dir, "clients.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		engine engine
		of     string
		script string
		want   []string
	}{
		{pyiceberg(t), "PyIceberg", "settings/paste_pyiceberg.py", []string{"rows 3"}},
		{duckdb(t), "DuckDB", "settings/paste_duckdb.py", []string{"sum 6.0", "rows 2"}},
		{spark(t), "Spark 4.1", "settings/paste_spark.py", []string{"rows 3"}},
	} {
		path := filepath.Join(t.TempDir(), "settings")
		if err := os.WriteFile(path, []byte(settingsOf(t, string(printed), c.of)), 0o600); err != nil {
			t.Fatal(err)
		}
		out := c.engine.run(t, s, c.script, path, namespace)
		for _, want := range c.want {
			if !strings.Contains(out, want) {
				t.Errorf("%s printed no %q: %s", c.engine.name, want, out)
			}
		}
	}
}

// settingsOf cuts one engine's part out: it begins with a line "--- Name" and ends before the next.
func settingsOf(t *testing.T, printed, engine string) string {
	t.Helper()
	for part := range strings.SplitSeq("\n"+printed, "\n--- ") {
		name, text, found := strings.Cut(part, "\n")
		if found && strings.EqualFold(name, engine) {
			return text
		}
	}
	t.Fatalf("no settings for %s were printed", engine)
	return ""
}
