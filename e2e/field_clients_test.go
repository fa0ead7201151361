package e2e

import (
	"strings"
	"testing"
)

// Cases from the field that need the real client: what it sends is the point of them.

// Names that are used again, tables made by one statement, and columns dropped that old specs and orders name.
func TestField_C045_C084_C095_C106_C107_BySpark(t *testing.T) {
	t.Parallel()
	plain := fileServer(t)
	s := recorded(t, plain, "Spark 4")
	const ns = "ice.field_spark."
	var args []string
	sql := func(statements ...string) {
		for _, each := range statements {
			args = append(args, "sql:"+strings.ReplaceAll(each, "@", ns))
		}
	}
	sql("CREATE NAMESPACE IF NOT EXISTS ice.field_spark")
	// C045: the name is used again after a drop without purge.
	sql("CREATE TABLE @again (id BIGINT) USING iceberg", "INSERT INTO @again VALUES (1), (2)", "DROP TABLE @again",
		"CREATE TABLE @again (id BIGINT) USING iceberg", "SELECT 'C045 empty', count(*) FROM @again",
		"INSERT INTO @again VALUES (7)", "SELECT 'C045', count(*), sum(id) FROM @again",
		"SELECT 'C045 snapshots', count(*) FROM @again.snapshots")
	// C084: a renamed table keeps its folder; a new one of the old name is elsewhere, and its purge leaves the first alone.
	sql("CREATE TABLE @m__dbt_tmp USING iceberg AS SELECT id FROM range(5)",
		"ALTER TABLE @m__dbt_tmp RENAME TO field_spark.m",
		"CREATE TABLE @m__dbt_tmp USING iceberg AS SELECT id FROM range(3)",
		"DROP TABLE @m__dbt_tmp PURGE", "SELECT 'C084', count(*), sum(id) FROM @m")
	// C095: files of a table made in one step carry the spec that the table then has.
	sql("CREATE TABLE @parts USING iceberg PARTITIONED BY (kind) AS SELECT id, concat('k', id % 3) AS kind FROM range(9)",
		"SELECT 'C095', count(*), min(spec_id), max(spec_id) FROM @parts.files",
		"SELECT 'C095 pruned', count(*) FROM @parts WHERE kind = 'k1'")
	// C106: an old partition spec names a column that is gone.
	sql("CREATE TABLE @trips (trip_id BIGINT, distance DOUBLE) USING iceberg PARTITIONED BY (bucket(8, trip_id))",
		"INSERT INTO @trips VALUES (1, 1.5), (2, 2.5)",
		"ALTER TABLE @trips REPLACE PARTITION FIELD bucket(8, trip_id) WITH truncate(4, trip_id)",
		"ALTER TABLE @trips DROP PARTITION FIELD truncate(4, trip_id)",
		"INSERT INTO @trips VALUES (3, 3.5)", "ALTER TABLE @trips DROP COLUMN trip_id", "INSERT INTO @trips VALUES (4.5)",
		"SELECT 'C106', count(*), sum(distance) FROM @trips")
	// C107: the same with an old sort order.
	sql("CREATE TABLE @sorted (a BIGINT, b BIGINT) USING iceberg", "ALTER TABLE @sorted WRITE ORDERED BY a",
		"INSERT INTO @sorted VALUES (2, 1), (1, 2)", "ALTER TABLE @sorted WRITE ORDERED BY b", "ALTER TABLE @sorted DROP COLUMN a",
		"INSERT INTO @sorted VALUES (3)", "SELECT 'C107', count(*), sum(b) FROM @sorted")
	wantLines(t, spark(t).run(t, s, "stories/engine_spark.py", args...),
		"C045 empty 0", "C045 1 7", "C045 snapshots 1", "C084 5 10", "C095 3 0 0", "C095 pruned 3", "C106 4 12.0", "C107 3 6")
	first, second := plain.rest(t).look("field_spark.m"), plain.rest(t).look("field_spark.again")
	if first.Metadata.Location == second.Metadata.Location || !strings.Contains(first.Metadata.Location, first.Metadata.UUID) {
		t.Errorf("locations %q and %q", first.Metadata.Location, second.Metadata.Location)
	}
}

// C110: a delete and an append in one commit, each a snapshot.
func TestField_C110_PyIcebergOverwrites(t *testing.T) {
	t.Parallel()
	plain := fileServer(t)
	s := recorded(t, plain, "PyIceberg")
	const table = "field_pyiceberg.rows"
	out := pyiceberg(t).run(t, s, "stories/engine_pyiceberg.py", "create:"+table, "append:"+table+":0:10", "overwrite:"+table+":5:10", "read:"+table)
	wantLines(t, out, table+" 15 105")
	l := plain.rest(t).look(table)
	oneHistory(t, l, table, 3)
	if l.Metadata.Log != nil && len(l.Metadata.Log) != 2 {
		t.Errorf("%d earlier metadata files: the overwrite was not one commit", len(l.Metadata.Log))
	}
	if log := l.Metadata.SnapshotLog; len(log) != 2 || log[1].ID != l.head() {
		t.Errorf("the history names %v; it should have the append and the overwrite's last snapshot %d", log, l.head())
	}
}
