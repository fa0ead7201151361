"""Runs the DuckDB settings that `catalogd dev` printed and reads the table that PyIceberg wrote, then makes one.

The extensions come from packages here, so that INSTALL, which asks a registry of DuckDB's own, is left out.
usage: paste_duckdb.py SETTINGS NAMESPACE
"""
import importlib
import pathlib
import sys

import duckdb

con = duckdb.connect()
for extension in ("avro", "httpfs", "iceberg"):
    package = pathlib.Path(importlib.import_module(f"duckdb_extension_{extension}").__file__).parent
    (file,) = package.glob(f"extensions/*/{extension}.duckdb_extension")
    con.load_extension(str(file))
settings, namespace = pathlib.Path(sys.argv[1]).read_text(), sys.argv[2]
install = "INSTALL iceberg; LOAD iceberg;"
assert install in settings
con.execute(settings.replace(install, ""))
print("sum", con.execute(f"SELECT sum(value) FROM lake.{namespace}.readings").fetchone()[0])
con.execute(f"CREATE TABLE lake.{namespace}.second (a BIGINT)")
con.execute(f"INSERT INTO lake.{namespace}.second VALUES (1), (2)")
print("rows", con.execute(f"SELECT count(*) FROM lake.{namespace}.second").fetchone()[0])
