"""Trino as the stories call it; the commands are those of engine_pyiceberg.py, and sql:STATEMENT prints its rows.
TRINO_URI is the server, whose catalog is `iceberg`."""
import os
import sys
import urllib.parse

from trino.dbapi import connect

address = urllib.parse.urlsplit(os.environ["TRINO_URI"])
connection = connect(host=address.hostname, port=address.port, user="story", catalog="iceberg", http_scheme="http")


def sql(text):
    cursor = connection.cursor()
    cursor.execute(text)
    return cursor.fetchall()


def run(argument):
    command, name, *rest = argument.split(":", 1) if argument.startswith("sql:") else argument.split(":")
    if command == "create":
        sql(f"CREATE SCHEMA IF NOT EXISTS iceberg.{name.split('.')[0]}")
        sql(f"CREATE TABLE iceberg.{name} (id BIGINT, word VARCHAR, placed TIMESTAMP(6))")
    elif command == "append":
        first, count = map(int, rest)
        sql(f"""INSERT INTO iceberg.{name} SELECT n, 'trino', TIMESTAMP '2026-01-01 00:00:00.000000'
                FROM UNNEST(sequence({first}, {first + count - 1})) AS t(n)""")
    elif command == "read":
        print(name, *sql(f"SELECT count(*), sum(id) FROM iceberg.{name}")[0], flush=True)
    elif command == "sql":
        for row in sql(name):
            print(*row, flush=True)
    else:
        sys.exit(f"no command {command}")


for each in sys.argv[1:]:
    run(each)
