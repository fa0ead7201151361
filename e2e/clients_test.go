package e2e

import (
	"strings"
	"testing"
)

// The smoke scripts take each client through everything that this server serves: namespaces, creation, appends,
// updates and deletes, schema changes, time travel, branches, rename, listing and drop.

func TestSmoke_PyIcebergOnFile(t *testing.T) { smokePyIceberg(t, fileServer(t)) }
func TestSmoke_PyIcebergOnS3(t *testing.T)   { smokePyIceberg(t, s3Server(t)) }
func TestSmoke_DuckDBOnFile(t *testing.T)    { smokeDuckDB(t, fileServer(t), "STAGE_CREATE_TABLES=false") }
func TestSmoke_DuckDBOnS3(t *testing.T)      { smokeDuckDB(t, s3Server(t)) }
func TestSmoke_SparkOnFile(t *testing.T)     { smokeSpark(t, fileServer(t)) }
func TestSmoke_SparkOnS3(t *testing.T) {
	smokeSpark(t, s3Server(t), "io-impl=org.apache.iceberg.aws.s3.S3FileIO")
}

func smokePyIceberg(t *testing.T, s *server) {
	args := append([]string{s.env["CATALOG_URI"], "warehouse=" + s.env["CATALOG_WAREHOUSE"]}, s.smokeArgs()...)
	passed(t, pyiceberg(t).run(t, s, "clients/pyiceberg/smoke.py", args...))
}

func smokeDuckDB(t *testing.T, s *server, more ...string) {
	args := append([]string{s.env["CATALOG_URI"], s.env["CATALOG_WAREHOUSE"]}, s.smokeArgs()...)
	passed(t, duckdb(t).run(t, s, "clients/duckdb/smoke.py", append(args, more...)...))
}

func smokeSpark(t *testing.T, s *server, more ...string) {
	args := append([]string{s.env["CATALOG_URI"], "warehouse=" + s.env["CATALOG_WAREHOUSE"]}, s.smokeArgs()...)
	passed(t, spark(t).run(t, s, "clients/spark/smoke.py", append(args, more...)...))
}

// passed logs a smoke script's closing line and fails unless it counts no failure.
func passed(t *testing.T, out string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(out), "\n")
	last := lines[len(lines)-1]
	if !strings.HasSuffix(last, " 0 failed") || strings.HasPrefix(last, "0 passed") {
		t.Fatalf("%s", tail(out, 60))
	}
	t.Log(last)
}
