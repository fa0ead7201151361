package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The smoke scripts take each client through everything that it can do and this server serves. What they show is the
// first table of docs/compatibility.md.

func TestSmoke_PyIcebergOnFile(t *testing.T) { smokePyIceberg(t, fileServer(t), "file") }
func TestSmoke_PyIcebergOnS3(t *testing.T)   { smokePyIceberg(t, s3Server(t), "S3") }
func TestSmoke_DuckDBOnFile(t *testing.T) {
	smokeDuckDB(t, fileServer(t), "file", "STAGE_CREATE_TABLES=false")
}
func TestSmoke_DuckDBOnS3(t *testing.T)    { smokeDuckDB(t, s3Server(t), "S3") }
func TestSmoke_SparkOnFile(t *testing.T)   { smokeSpark(t, spark(t), fileServer(t), "file") }
func TestSmoke_SparkOnS3(t *testing.T)     { smokeSpark(t, spark(t), s3Server(t), "S3", s3FileIO) }
func TestSmoke_Spark35OnFile(t *testing.T) { smokeSpark(t, spark35(t), fileServer(t), "file") }
func TestSmoke_Spark35OnS3(t *testing.T)   { smokeSpark(t, spark35(t), s3Server(t), "S3", s3FileIO) }

const s3FileIO = "io-impl=org.apache.iceberg.aws.s3.S3FileIO"

func smokePyIceberg(t *testing.T, s *server, warehouse string) {
	t.Parallel()
	s = recorded(t, s, "PyIceberg")
	args := append([]string{s.env["CATALOG_URI"], "warehouse=" + s.env["CATALOG_WAREHOUSE"]}, s.smokeArgs()...)
	smoke(t, pyiceberg(t), s, warehouse, "clients/pyiceberg/smoke.py", args...)
}

func smokeDuckDB(t *testing.T, s *server, warehouse string, more ...string) {
	t.Parallel()
	s = recorded(t, s, "DuckDB")
	args := append([]string{s.env["CATALOG_URI"], s.env["CATALOG_WAREHOUSE"]}, s.smokeArgs()...)
	smoke(t, duckdb(t), s, warehouse, "clients/duckdb/smoke.py", append(args, more...)...)
}

func smokeSpark(t *testing.T, e engine, s *server, warehouse string, more ...string) {
	t.Parallel()
	s = recorded(t, s, e.title)
	args := append([]string{s.env["CATALOG_URI"], "warehouse=" + s.env["CATALOG_WAREHOUSE"]}, s.smokeArgs()...)
	smoke(t, e, s, warehouse, "clients/spark/smoke.py", append(args, more...)...)
}

// Trino runs with the settings that `catalogd dev` printed, on a store where it has no right of its own.
func TestSmoke_TrinoOnS3(t *testing.T) {
	t.Parallel()
	s := recorded(t, s3Server(t), "Trino")
	e := startTrino(t, s)
	smoke(t, e, s, "S3", "clients/trino/smoke.py", e.uri)
}

// ClickHouse creates no tables in such a database: its script makes one over HTTP with a token. It takes vended keys, but
// joins wrong paths when the catalog also names the store's endpoint; so this warehouse keeps that to itself, as one on
// AWS does, and ClickHouse is told by hand.
func TestSmoke_ClickHouseOnS3(t *testing.T) {
	t.Parallel()
	store := sharedStore(t).within("clickhouse")
	store.endpointHidden = true
	dir := tempDir(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := startDev(t, filepath.Join(dir, "data"), store)
	t.Cleanup(s.stop)
	token := s.rest(t).token
	s = recorded(t, s, "ClickHouse")
	smoke(t, clickhouse(t), s, "S3", "clients/clickhouse/smoke.py", s.env["CATALOG_URI"], s.env["CATALOG_WAREHOUSE"], "token="+token,
		"catalog_credential="+s.env["CATALOG_CREDENTIAL"], "auth_scope="+s.env["CATALOG_SCOPE"],
		"oauth_server_uri="+s.env["CATALOG_OAUTH2__SERVER__URI"], "storage_endpoint="+s.s3.bucketURL())
}

// iceberg-js makes catalog calls only; it asks no /v1/config, so it is told the prefix.
func TestSmoke_IcebergJSOnFile(t *testing.T) {
	t.Parallel()
	s := fileServer(t)
	token := s.rest(t).token
	s = recorded(t, s, "iceberg-js")
	folder := installed(t, "iceberg-js")[0]
	smoke(t, icebergJS(t), s, "file", "clients/iceberg-js/smoke.mjs", folder, s.env["CATALOG_URI"], token, s.env["CATALOG_WAREHOUSE"])
}

// smoke runs a client's script, fails for each step that failed, and holds the others against docs/compatibility.md.
func smoke(t *testing.T, e engine, s *server, warehouse, script string, args ...string) {
	t.Helper()
	e.env = append(e.env, s.optionalSteps(t)...)
	out, err := e.attempt(t, s, script, args...)
	measured(t, warehouse, out)
	if err != nil {
		t.Errorf("%s %s: %v\nserver:\n%s", e.name, script, err, tail(s.log.String(), 12))
	}
}

// optionalSteps switches on those steps of the scripts that the server announces the routes for.
func (s *server) optionalSteps(t *testing.T) (env []string) {
	t.Helper()
	status, config := s.rest(t).call("GET", "/config?warehouse="+s.env["CATALOG_WAREHOUSE"], nil)
	if status != 200 {
		t.Fatalf("config: %d %s", status, config)
	}
	for variable, operation := range map[string]string{
		"SMOKE_VIEWS": "POST /v1/{prefix}/namespaces/{namespace}/views", "SMOKE_REGISTER": "POST /v1/{prefix}/namespaces/{namespace}/register",
	} {
		if strings.Contains(string(config), `"`+operation+`"`) {
			env = append(env, variable+"=1")
		}
	}
	return env
}

// passed logs a script's closing line and fails unless it counts no failure.
func passed(t *testing.T, out string) {
	t.Helper()
	last := lastLine(out)
	if !strings.HasSuffix(last, " 0 failed") || strings.HasPrefix(last, "0 passed") {
		t.Fatalf("%s", tail(out, 60))
	}
	t.Log(last)
}
