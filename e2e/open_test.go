package e2e

import (
	"net/http"
	"strings"
	"testing"
)

// Trials without authentication: engines that send nothing, and such as send what nobody ever gave out.
func TestField_C157_OpenMode(t *testing.T) {
	s := startDev(t, tempDir(t), nil, "--open")
	t.Cleanup(s.stop)
	if !strings.Contains(s.log.String(), "THIS SERVER IS OPEN") {
		t.Errorf("the log is not loud about it:\n%s", tail(s.log.String(), 12))
	}
	visitor := &rest{t: t, base: s.env["CATALOGD_MANAGEMENT_URI"]}
	if status, raw := visitor.call(http.MethodGet, "/whoami", nil); status != 200 || !strings.Contains(string(raw), `"name":"anonymous"`) {
		t.Errorf("a request without a token is from %d %s", status, raw)
	}
	if status, raw := visitor.call(http.MethodPost, "/principals", map[string]any{"principal": map[string]any{"name": "friend"}}); status != 403 {
		t.Errorf("a principal made without a token: %d %s", status, raw)
	}
	if out := duckdb(t).run(t, s, "stories/open_duckdb.py", "c157"); !strings.Contains(out, "rows 2") {
		t.Errorf("DuckDB read %s", out)
	}
	if out := pyiceberg(t).run(t, s, "stories/open_pyiceberg.py", "c157"); strings.Count(out, "rows 2") != 2 {
		t.Errorf("PyIceberg read %s", out)
	}
	s.env["CATALOG_CREDENTIAL"] = ""
	if out := spark(t).run(t, s, "stories/engine_spark.py", "read:c157.t"); !strings.Contains(out, "c157.t 2 3") {
		t.Errorf("Spark read %s", out)
	}
}
