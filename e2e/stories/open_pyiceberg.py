"""PyIceberg on a server that is open to everybody: without a credential, and with one that nobody ever gave out.

usage: open_pyiceberg.py NAMESPACE
"""
import os
import sys

from pyiceberg.catalog import load_catalog

place = {"type": "rest", "uri": os.environ["CATALOG_URI"], "warehouse": os.environ["CATALOG_WAREHOUSE"]}
for more in ({}, {"credential": "somebody:something", "oauth2-server-uri": os.environ["CATALOG_OAUTH2__SERVER__URI"]}):
    table = load_catalog("lake", **place, **more).load_table(f"{sys.argv[1]}.t")
    print("rows", table.scan().to_arrow().num_rows)
