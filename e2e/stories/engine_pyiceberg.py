"""PyIceberg as the stories call it: commands on the command line, one after another.

create:TABLE            a table (id long, word string, placed timestamp)
append:TABLE:FROM:COUNT rows with ids FROM.. and the word of this engine
overwrite:TABLE:FROM:COUNT the same rows instead of those whose ids begin at FROM, in one commit
read:TABLE              prints "TABLE rows sum-of-ids"
"""
import datetime
import os
import sys

import pyarrow as pa
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import NamespaceAlreadyExistsError
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType, TimestampType

env = os.environ


def connect():
    return load_catalog("story", **{
        "type": "rest", "uri": env["CATALOG_URI"], "warehouse": env["CATALOG_WAREHOUSE"],
        "credential": env["CATALOG_CREDENTIAL"], "scope": env["CATALOG_SCOPE"],
        "oauth2-server-uri": env["CATALOG_OAUTH2__SERVER__URI"]})


def rows(first, count):
    at = datetime.datetime(2026, 1, 1)
    return pa.table({
        "id": pa.array(range(first, first + count), pa.int64()),
        "word": pa.array(["pyiceberg"] * count, pa.string()),
        "placed": pa.array([at + datetime.timedelta(hours=i) for i in range(count)], pa.timestamp("us"))})


def run(cat, command, name, *rest):
    if command == "create":
        try:
            cat.create_namespace(name.split(".")[0])
        except NamespaceAlreadyExistsError:
            pass
        cat.create_table(name, Schema(NestedField(1, "id", LongType()), NestedField(2, "word", StringType()),
                                      NestedField(3, "placed", TimestampType())))
    elif command == "append":
        cat.load_table(name).append(rows(int(rest[0]), int(rest[1])))
    elif command == "overwrite":
        cat.load_table(name).overwrite(rows(int(rest[0]), int(rest[1])), overwrite_filter=f"id >= {rest[0]}")
    elif command == "read":
        ids = cat.load_table(name).scan(selected_fields=("id",)).to_arrow()["id"].to_pylist()
        print(name, len(ids), sum(ids), flush=True)
    else:
        sys.exit(f"no command {command}")


if __name__ == "__main__":
    catalog = connect()
    for argument in sys.argv[1:]:
        run(catalog, *argument.split(":"))
