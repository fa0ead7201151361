"""Trino's Iceberg connector against a REST catalog, through Trino's Python client.

    trino/start 8080 DATA_DIR PROPERTIES &
    $(trino/install | tail -1 | cut -d' ' -f2) trino/smoke.py http://127.0.0.1:8080

Waits up to two minutes for the server. Prints one line per step, then "N passed, N failed";
exits with 1 when a step failed. SMOKE_SKIP=name,name leaves steps out.
"""

import os
import pathlib
import sys
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

from trino.dbapi import connect
from trino.exceptions import Error, TrinoUserError

from steps import Steps, expect, raises

SPACE = "smoke_trino"
TABLE = f"iceberg.{SPACE}.orders"


def main(server):
    address = urllib.parse.urlsplit(server)
    connection = connect(host=address.hostname, port=address.port, user="smoke", catalog="iceberg", http_scheme=address.scheme)
    step = Steps()

    def sql(text):
        cursor = connection.cursor()
        cursor.execute(text)
        return [tuple(row) for row in cursor.fetchall()]

    def wait():
        end = time.monotonic() + 120
        while True:
            try:
                return expect(sql("SELECT 1"), [(1,)])
            except (Error, OSError):
                if time.monotonic() > end:
                    raise
                time.sleep(1)

    def clean():
        if (SPACE,) in sql("SHOW SCHEMAS FROM iceberg"):
            sql(f"DROP SCHEMA iceberg.{SPACE} CASCADE")

    def schema():
        clean()
        sql(f"CREATE SCHEMA iceberg.{SPACE}")
        raises(TrinoUserError, lambda: sql(f"CREATE SCHEMA iceberg.{SPACE}"))

    def create():
        sql(f"""CREATE TABLE {TABLE} (id BIGINT NOT NULL, word VARCHAR, placed TIMESTAMP(6))
                WITH (partitioning = ARRAY['day(placed)', 'bucket(id, 2)'], sorted_by = ARRAY['word'], format_version = 2)""")
        expect(sql(f"SHOW TABLES FROM iceberg.{SPACE}"), [("orders",)])

    def insert():
        sql(f"INSERT INTO {TABLE} SELECT n, 'w' || CAST(n AS varchar), TIMESTAMP '2026-01-01 00:00:00' + n * INTERVAL '1' HOUR FROM UNNEST(sequence(0, 47)) AS t(n)")
        expect(sql(f"SELECT count(*), sum(id) FROM {TABLE}"), [(48, 1128)])

    def update_delete_merge():
        sql(f"UPDATE {TABLE} SET word = 'changed' WHERE id = 3")
        sql(f"DELETE FROM {TABLE} WHERE id IN (1, 30)")
        sql(f"""MERGE INTO {TABLE} t USING (VALUES (BIGINT '5', 'm'), (BIGINT '500', 'n')) AS s(id, word) ON t.id = s.id
                WHEN MATCHED THEN UPDATE SET word = s.word
                WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.word, TIMESTAMP '2026-02-01 00:00:00')""")
        expect(sql(f"SELECT count(*) FROM {TABLE}"), [(47,)])
        expect(sql(f"SELECT word FROM {TABLE} WHERE id IN (3, 5, 500) ORDER BY id"), [("changed",), ("m",), ("n",)])

    def metadata_tables():
        for name in ("snapshots", "history", "manifests", "partitions", "refs", "files", "metadata_log_entries", "properties"):
            expect(sql(f'SELECT count(*) FROM iceberg.{SPACE}."orders${name}"')[0][0] > 0, True)

    def time_travel():
        first = sql(f'SELECT snapshot_id FROM iceberg.{SPACE}."orders$snapshots" WHERE CAST(json_extract_scalar(CAST(summary AS json), \'$["total-records"]\') AS bigint) = 48 ORDER BY committed_at LIMIT 1')[0][0]
        expect(sql(f"SELECT count(*) FROM {TABLE} FOR VERSION AS OF {first}"), [(48,)])

    def evolve():
        sql(f"ALTER TABLE {TABLE} ADD COLUMN amount DECIMAL(10,2)")
        sql(f"ALTER TABLE {TABLE} RENAME COLUMN word TO label")
        sql(f"ALTER TABLE {TABLE} SET PROPERTIES partitioning = ARRAY['day(placed)']")
        sql(f"COMMENT ON TABLE {TABLE} IS 'orders of the smoke test'")
        expect([row[0] for row in sql(f"SHOW COLUMNS FROM {TABLE}")], ["id", "label", "placed", "amount"])

    def create_as_select():
        sql(f"CREATE TABLE iceberg.{SPACE}.copied AS SELECT id FROM {TABLE} WHERE id < 10")
        sql(f"CREATE OR REPLACE TABLE iceberg.{SPACE}.copied AS SELECT id FROM {TABLE} WHERE id < 5")
        expect(sql(f"SELECT count(*) FROM iceberg.{SPACE}.copied"), [(4,)])
        sql(f"DROP TABLE iceberg.{SPACE}.copied")

    def view():
        sql(f"CREATE VIEW iceberg.{SPACE}.small AS SELECT id FROM {TABLE} WHERE id < 10")
        expect(sql(f"SELECT count(*) FROM iceberg.{SPACE}.small"), [(9,)])
        sql(f"CREATE OR REPLACE VIEW iceberg.{SPACE}.small AS SELECT id FROM {TABLE} WHERE id < 5")
        sql(f"ALTER VIEW iceberg.{SPACE}.small RENAME TO iceberg.{SPACE}.smaller")
        expect(sql(f"SELECT count(*) FROM iceberg.{SPACE}.smaller"), [(4,)])
        sql(f"DROP VIEW iceberg.{SPACE}.smaller")

    def maintenance():
        sql(f"ALTER TABLE {TABLE} EXECUTE optimize")
        sql(f"ANALYZE {TABLE}")
        sql(f"ALTER TABLE {TABLE} EXECUTE optimize_manifests")
        expect(sql(f"SELECT count(*) FROM {TABLE}"), [(47,)])

    def version_three():
        three = f"iceberg.{SPACE}.three"
        sql(f"CREATE TABLE {three} (id BIGINT) WITH (format_version = 3)")
        sql(f"INSERT INTO {three} SELECT n FROM UNNEST(sequence(0, 9)) AS t(n)")
        sql(f"DELETE FROM {three} WHERE id = 4")
        expect(sql(f"SELECT count(*), sum(id) FROM {three}"), [(9, 41)])
        sql(f"DROP TABLE {three}")

    def rename():
        sql(f"ALTER TABLE {TABLE} RENAME TO iceberg.{SPACE}.renamed")
        expect(sql(f"SELECT count(*) FROM iceberg.{SPACE}.renamed"), [(47,)])
        sql(f"ALTER TABLE iceberg.{SPACE}.renamed RENAME TO {TABLE}")

    def information_schema():
        expect(sql(f"SELECT count(*) FROM iceberg.information_schema.columns WHERE table_schema = '{SPACE}' AND table_name = 'orders'"), [(4,)])

    def refusals():
        raises(TrinoUserError, lambda: sql(f"CREATE TABLE {TABLE} (id BIGINT)"))
        raises(TrinoUserError, lambda: sql(f"SELECT * FROM iceberg.{SPACE}.missing"))
        raises(TrinoUserError, lambda: sql(f"DROP SCHEMA iceberg.{SPACE}"))

    def drop():
        clean()
        expect((SPACE,) in sql("SHOW SCHEMAS FROM iceberg"), False)

    skipped = set(filter(None, os.environ.get("SMOKE_SKIP", "").split(",")))
    for each in (wait, schema, create, insert, update_delete_merge, metadata_tables, time_travel, evolve,
                 create_as_select, view, maintenance, version_three, rename, information_schema, refusals, drop):
        if each.__name__ in skipped:
            print(f"skip   {each.__name__}")
        else:
            step(each)
            if each is wait and step.failed:
                break
            if each is wait:
                step.of("Trino " + sql("SELECT node_version FROM system.runtime.nodes")[0][0])
    return step.close()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
