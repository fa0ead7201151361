"""Runs the PyIceberg settings that `catalogd dev` printed, as they stand, and writes a table with them.

usage: paste_pyiceberg.py SETTINGS NAMESPACE
"""
import sys

import pyarrow as pa

exec(open(sys.argv[1]).read())
namespace = sys.argv[2]
catalog.create_namespace(namespace)  # noqa: F821: the settings make it
table = catalog.create_table(f"{namespace}.readings", schema=pa.schema([("id", pa.int64()), ("value", pa.float64())]))  # noqa: F821
table.append(pa.table({"id": [1, 2, 3], "value": [1.0, 2.0, 3.0]}))
print("rows", table.scan().to_arrow().num_rows)
