// Package e2e drives the built catalogd with clients that nobody here wrote: Spark, Trino, PyIceberg, DuckDB, ClickHouse,
// iceberg-go, iceberg-js and Iceberg's compatibility kit, on a `file:` warehouse and on S3 with vended credentials, and with
// Keycloak as identity provider. It holds tests and their harness only; the scripts that the clients run are in clients and
// stories, the object store is in s3.
package e2e
