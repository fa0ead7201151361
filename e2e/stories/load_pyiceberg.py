"""An old PyIceberg looks at a table's metadata: read:TABLE prints "TABLE snapshots"."""
import os
import sys

from pyiceberg.catalog import load_catalog

env = os.environ
catalog = load_catalog("story", **{
    "type": "rest", "uri": env["CATALOG_URI"], "warehouse": env["CATALOG_WAREHOUSE"], "credential": env["CATALOG_CREDENTIAL"]})
for argument in sys.argv[1:]:
    _, name = argument.split(":")
    print(name, len(catalog.load_table(name).metadata.snapshots))
