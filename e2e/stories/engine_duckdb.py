"""DuckDB as the stories call it; the commands are those of engine_pyiceberg.py."""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "clients" / "duckdb"))

from smoke import connect

env = os.environ


def main(commands):
    settings = {"credential": env["CATALOG_CREDENTIAL"], "scope": env["CATALOG_SCOPE"],
                "oauth2-server-uri": env["CATALOG_OAUTH2__SERVER__URI"]}
    if env.get("STAGE_CREATE_TABLES"):
        settings["STAGE_CREATE_TABLES"] = env["STAGE_CREATE_TABLES"]
    db = connect(env["CATALOG_URI"], env["CATALOG_WAREHOUSE"], settings)
    for argument in commands:
        command, name, *rest = argument.split(":")
        if command == "create":
            db.execute(f"CREATE SCHEMA IF NOT EXISTS ice.{name.split('.')[0]}")
            db.execute(f"CREATE TABLE ice.{name} (id BIGINT, word VARCHAR, placed TIMESTAMP)")
        elif command == "append":
            first, count = map(int, rest)
            db.execute(f"""INSERT INTO ice.{name} SELECT i, 'duckdb', TIMESTAMP '2026-01-01' + INTERVAL (i) HOUR
                           FROM range({first}, {first + count}) t(i)""")
        elif command == "read":
            print(name, *db.execute(f"SELECT count(*), sum(id)::BIGINT FROM ice.{name}").fetchone(), flush=True)
        else:
            sys.exit(f"no command {command}")


main(sys.argv[1:])
