"""DuckDB on a server that is open to everybody: it makes a table, writes and reads, without any credential.

usage: open_duckdb.py NAMESPACE
"""
import importlib
import os
import pathlib
import sys

import duckdb

con = duckdb.connect()
for extension in ("avro", "httpfs", "iceberg"):
    package = pathlib.Path(importlib.import_module(f"duckdb_extension_{extension}").__file__).parent
    (file,) = package.glob(f"extensions/*/{extension}.duckdb_extension")
    con.load_extension(str(file))
uri, warehouse, namespace = os.environ["CATALOG_URI"], os.environ["CATALOG_WAREHOUSE"], sys.argv[1]
con.execute(f"ATTACH '{warehouse}' AS lake (TYPE iceberg, ENDPOINT '{uri}', AUTHORIZATION_TYPE 'none')")
con.execute(f"CREATE SCHEMA lake.{namespace}")
con.execute(f"CREATE TABLE lake.{namespace}.t (id BIGINT)")
con.execute(f"INSERT INTO lake.{namespace}.t VALUES (1), (2)")
print("rows", con.execute(f"SELECT count(*) FROM lake.{namespace}.t").fetchone()[0])
