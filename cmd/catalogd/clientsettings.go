package main

import (
	"fmt"
	"io"
	"strings"

	"catalogd/vending"
)

// clientSettings is what people paste into their engines.
type clientSettings struct {
	CatalogURI string // http://HOST:PORT/api/catalog
	TokenURI   string
	Warehouse  string
	ClientID   string
	Secret     string // or a mask
	Scope      string
	S3         bool // the warehouse is on an object store and vends credentials; else on the server's own disk
	Storage    vending.Profile
}

// Versions that the settings were tried with, in `make test`.
const (
	sparkRuntime   = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
	icebergAWSJars = "org.apache.iceberg:iceberg-aws-bundle:1.12.0"
)

// print writes the settings of every engine.
func (s clientSettings) print(w io.Writer) {
	for _, engine := range []struct {
		name string
		text string
	}{{"Spark 4.1", s.spark()}, {"Trino (etc/catalog/lake.properties)", s.trino()}, {"PyIceberg", s.pyiceberg()}, {"DuckDB", s.duckdb()}} {
		fmt.Fprintf(w, "--- %s\n%s\n", engine.name, engine.text)
	}
}

func (s clientSettings) spark() string {
	packages := sparkRuntime
	if s.S3 {
		packages += "," + icebergAWSJars
	}
	const catalog = "spark.sql.catalog.lake"
	conf := [][2]string{
		{"spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"},
		{catalog, "org.apache.iceberg.spark.SparkCatalog"},
		{catalog + ".type", "rest"},
		{catalog + ".uri", s.CatalogURI},
		{catalog + ".warehouse", s.Warehouse},
		{catalog + ".credential", s.ClientID + ":" + s.Secret},
		{catalog + ".scope", s.Scope},
		{catalog + ".oauth2-server-uri", s.TokenURI},
	}
	if s.S3 {
		conf = append(conf, [2]string{catalog + ".io-impl", "org.apache.iceberg.aws.s3.S3FileIO"})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "spark-sql --packages %s", packages)
	for _, c := range conf {
		fmt.Fprintf(&b, " \\\n  --conf %s=%s", c[0], c[1])
	}
	b.WriteString("\n")
	return b.String()
}

func (s clientSettings) trino() string {
	lines := []string{
		"connector.name=iceberg",
		"iceberg.catalog.type=rest",
		"iceberg.rest-catalog.uri=" + s.CatalogURI,
		"iceberg.rest-catalog.warehouse=" + s.Warehouse,
		"iceberg.rest-catalog.security=OAUTH2",
		"iceberg.rest-catalog.oauth2.credential=" + s.ClientID + ":" + s.Secret,
		"iceberg.rest-catalog.oauth2.scope=" + s.Scope,
		"iceberg.rest-catalog.oauth2.server-uri=" + s.TokenURI,
	}
	if s.S3 {
		// Trino takes the keys from the catalog, and where the store is from its own file.
		lines = append(lines, "iceberg.rest-catalog.vended-credentials-enabled=true", "fs.s3.enabled=true", "s3.region="+s.Storage.Region)
		if s.Storage.Endpoint != "" {
			lines = append(lines, "s3.endpoint="+s.Storage.Endpoint)
		}
		if s.Storage.PathStyleAccess {
			lines = append(lines, "s3.path-style-access=true")
		}
	} else {
		lines = append(lines, "fs.local.enabled=true", "local.location=/")
	}
	return strings.Join(lines, "\n") + "\n"
}

func (s clientSettings) pyiceberg() string {
	return fmt.Sprintf(`from pyiceberg.catalog import load_catalog
catalog = load_catalog("lake", **{
    "type": "rest",
    "uri": %q,
    "warehouse": %q,
    "credential": %q,
    "scope": %q,
    "oauth2-server-uri": %q,
})
`, s.CatalogURI, s.Warehouse, s.ClientID+":"+s.Secret, s.Scope, s.TokenURI)
}

func (s clientSettings) duckdb() string {
	options := []string{"TYPE iceberg", "SECRET catalogd", "ENDPOINT " + sqlText(s.CatalogURI)}
	note := ""
	if !s.S3 {
		options = append(options, "STAGE_CREATE_TABLES false")
		note = "-- DuckDB makes no folders, so on this warehouse tables must be created before they are filled: STAGE_CREATE_TABLES=false\n"
	}
	return fmt.Sprintf(`INSTALL iceberg; LOAD iceberg;
CREATE SECRET catalogd (TYPE iceberg, CLIENT_ID %s, CLIENT_SECRET %s,
  OAUTH2_SERVER_URI %s, OAUTH2_SCOPE %s);
%sATTACH %s AS lake (%s);
`, sqlText(s.ClientID), sqlText(s.Secret), sqlText(s.TokenURI), sqlText(s.Scope), note, sqlText(s.Warehouse), strings.Join(options, ", "))
}

func sqlText(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
