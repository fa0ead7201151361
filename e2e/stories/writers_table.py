"""Makes the writers' table, or reads it back.   usage: writers_table.py create|read TABLE"""
import sys

from pyiceberg.exceptions import NamespaceAlreadyExistsError
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import SortField, SortOrder
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

from engine_pyiceberg import connect

catalog = connect()
command, name = sys.argv[1:3]
if command == "create":
    try:
        catalog.create_namespace(name.split(".")[0])
    except NamespaceAlreadyExistsError:
        pass
    catalog.create_table(
        name, Schema(NestedField(1, "writer", StringType()), NestedField(2, "id", LongType())),
        sort_order=SortOrder(SortField(source_id=1, transform=IdentityTransform()),
                             SortField(source_id=2, transform=IdentityTransform())),
        properties={"catalogd.maintenance.enabled": "true", "catalogd.maintenance.strategy": "z-order",
                    "catalogd.maintenance.min-interval-seconds": "5", "commit.retry.num-retries": "20"})
else:
    table = catalog.load_table(name).scan().to_arrow()
    for writer, n in zip(table["writer"].to_pylist(), table["id"].to_pylist()):
        print("row", writer, n)
