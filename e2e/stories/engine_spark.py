"""Spark as the stories call it; the commands are those of engine_pyiceberg.py, and sql:STATEMENT prints its rows.

SPARK_DELEGATION=header adds the client's own delegation header; without it the client relies on the server's
defaults. SPARK_IO, when set, is the FileIO class.
"""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "clients" / "spark"))

from smoke import connect

env = os.environ


def session():
    properties = {"warehouse": env["CATALOG_WAREHOUSE"], "credential": env["CATALOG_CREDENTIAL"],
                  "scope": env["CATALOG_SCOPE"], "oauth2-server-uri": env["CATALOG_OAUTH2__SERVER__URI"]}
    if env.get("SPARK_IO"):
        properties["io-impl"] = env["SPARK_IO"]
    if env.get("SPARK_DELEGATION") == "header":
        properties["header.X-Iceberg-Access-Delegation"] = "vended-credentials"
    return connect(env["CATALOG_URI"], properties)


def run(spark, argument):
    command, name, *rest = argument.split(":", 1) if argument.startswith("sql:") else argument.split(":")
    if command == "create":
        spark.sql(f"CREATE NAMESPACE IF NOT EXISTS ice.{name.split('.')[0]}")
        spark.sql(f"CREATE TABLE ice.{name} (id BIGINT, word STRING, placed TIMESTAMP_NTZ) USING iceberg")
    elif command == "append":
        first, count = map(int, rest)
        spark.sql(f"""INSERT INTO ice.{name} SELECT id, 'spark', timestamp_ntz'2026-01-01 00:00:00'
                      FROM range({first}, {first + count})""")
    elif command == "read":
        print(name, *spark.sql(f"SELECT count(*), sum(id) FROM ice.{name}").collect()[0], flush=True)
    elif command == "sql":
        for row in spark.sql(name).collect():
            print(*row, flush=True)
    else:
        sys.exit(f"no command {command}")


if __name__ == "__main__":
    spark = session()
    for each in sys.argv[1:]:
        run(spark, each)
    spark.stop()
