"""Tables of the crash tests, as PyIceberg makes, fills and checks them.

make:PREFIX:COUNT:PARTS     tables PREFIX0.. in the namespace crash, each of PARTS appends to two partitions
append:PREFIX:COUNT:PART    one append more to each
purge:PREFIX:COUNT          drops each, with its files
drop:PREFIX:COUNT           drops each and leaves its files
register:NAME:LOCATION      makes the table crash.NAME of a metadata file
rows:NAME                   prints "rows NAME count digest": of all rows in order
check:PREFIX:COUNT          prints for each table
                              rows TABLE rows distinct-ids smallest greatest snapshots
                              left TABLE files that no snapshot and no metadata names, one a line
                              missing TABLE files that something names and that are not there
                            the last two not on an object store
Append n holds the ids n*1000 .. n*1000+999.
"""
import hashlib
import os
import sys

import pyarrow as pa
from pyiceberg.exceptions import NamespaceAlreadyExistsError
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

from engine_pyiceberg import connect

ROWS = 1000
SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "site", StringType()), NestedField(3, "value", LongType()))
SPEC = PartitionSpec(PartitionField(source_id=2, field_id=1000, transform=IdentityTransform(), name="site"))
PROPERTIES = {"catalogd.maintenance.strategy": "z-order", "catalogd.maintenance.cluster-columns": "value,id",
              "commit.retry.num-retries": "20"}


def rows(part):
    ids = range(part * ROWS, (part + 1) * ROWS)
    return pa.table({"id": pa.array(ids, pa.int64()), "site": pa.array([("north", "south")[i % 2] for i in ids], pa.string()),
                     "value": pa.array([i * 7919 % 1009 for i in ids], pa.int64())})


def plain(location):
    return location.removeprefix("file://")


def named(table):
    """Every file that the table's metadata leads to."""
    metadata = table.metadata
    files = {table.metadata_location, *(entry.metadata_file for entry in metadata.metadata_log)}
    for snapshot in metadata.snapshots:
        files.add(snapshot.manifest_list)
        for manifest in snapshot.manifests(table.io):
            files.add(manifest.manifest_path)
            # Deleted entries name files of snapshots before, which are kept.
            files.update(e.data_file.file_path for e in manifest.fetch_manifest_entry(table.io, discard_deleted=True))
    return {plain(f) for f in files}


def check(table, name):
    ids = table.scan(selected_fields=("id",)).to_arrow()["id"].to_pylist()
    print("rows", name, len(ids), len(set(ids)), min(ids), max(ids), len(table.metadata.snapshots))
    if table.metadata.location.startswith("s3:"):
        return
    wanted = named(table)
    there = {os.path.join(folder, f) for folder, _, files in os.walk(plain(table.metadata.location)) for f in files}
    for path in sorted(there - wanted):
        print("left", name, path)
    for path in sorted(wanted - there):
        print("missing", name, path)


def digest(table):
    rows = table.scan().to_arrow().sort_by("id").to_pylist()
    return len(rows), hashlib.sha256(repr(rows).encode()).hexdigest()


catalog = connect()
for argument in sys.argv[1:]:
    command, rest = argument.split(":", 1)
    if command == "rows":
        print("rows", rest, *digest(catalog.load_table("crash." + rest)))
        continue
    if command == "register":
        name, location = rest.split(":", 1)
        catalog.register_table("crash." + name, location)
        continue
    prefix, count, *rest = rest.split(":")
    for n in range(int(count)):
        name = f"crash.{prefix}{n}"
        if command == "make":
            try:
                catalog.create_namespace("crash")
            except NamespaceAlreadyExistsError:
                pass
            table = catalog.create_table(name, SCHEMA, partition_spec=SPEC, properties=PROPERTIES)
            for part in range(int(rest[0])):
                table.append(rows(part))
        elif command == "purge":
            catalog.purge_table(name)
        elif command == "drop":
            catalog.drop_table(name)
        elif command == "append":
            catalog.load_table(name).append(rows(int(rest[0])))
        elif command == "check":
            check(catalog.load_table(name), name)
        else:
            sys.exit(f"no command {command}")
