"""ClickHouse as the stories call it; the commands are those of engine_pyiceberg.py, but it creates no tables.

It joins wrong paths when the catalog names the store's endpoint, so it has keys of its own: CLICKHOUSE_ENDPOINT is
host:port, CLICKHOUSE_BUCKET, CLICKHOUSE_KEY and CLICKHOUSE_SECRET the rest.
"""
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "clients" / "clickhouse"))

from chdb import session
from smoke import attach

env = os.environ


def main(commands):
    os.chdir(tempfile.mkdtemp())  # ClickHouse leaves a folder where it runs
    db = session.Session()
    attach(db, env["CATALOG_URI"], env["CATALOG_WAREHOUSE"], {
        "catalog_credential": env["CATALOG_CREDENTIAL"], "auth_scope": env["CATALOG_SCOPE"],
        "oauth_server_uri": env["CATALOG_OAUTH2__SERVER__URI"], "vended_credentials": "false",
        **{f"s3.{name}": env[f"CLICKHOUSE_{name.upper()}"] for name in ("endpoint", "bucket", "key", "secret")}})
    for argument in commands:
        command, name, *rest = argument.split(":")
        if command == "append":
            first, count = map(int, rest)
            db.query(f"INSERT INTO ice.`{name}` SELECT number, 'clickhouse', toDateTime64('2026-01-01 00:00:00', 6) "
                     f"FROM numbers({first}, {count})")
        elif command == "read":
            print(name, str(db.query(f"SELECT count(), sum(id) FROM ice.`{name}`", "TSV")).strip().replace("\t", " "), flush=True)
        else:
            sys.exit(f"no command {command}")


main(sys.argv[1:])
