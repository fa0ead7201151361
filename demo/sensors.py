"""The demo's table: readings of 100 sensors over a year, and what is measured on it.

Everything here goes through the catalog like any client: PyIceberg logs in over OAuth, creates and fills the table,
and reads the footers of its data files. DuckDB reads the rows back for the checksum.
"""
import array
import datetime
import json
import os
import random
import sys
import time

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import NamespaceAlreadyExistsError, NoSuchTableError
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import SortField, SortOrder
from pyiceberg.transforms import IdentityTransform, YearTransform
from pyiceberg.types import DoubleType, NestedField, StringType, TimestamptzType

NAME = "iot_demo.factory_sensor_data"
SENSORS = 100
DAYS = 365
CHUNK_DAYS = 30
START = datetime.datetime(2022, 12, 31, 5, 0, 30, tzinfo=datetime.timezone.utc)
START_MICROS = int(START.timestamp()) * 1_000_000
DAY_MICROS = 86_400_000_000
INSTANCES = 200  # random instances of each predicate


def catalog():
    env = os.environ
    return load_catalog("demo", **{
        "type": "rest",
        "uri": env["CATALOG_URI"],
        "warehouse": env["CATALOG_WAREHOUSE"],
        "credential": env["CATALOG_CREDENTIAL"],
        "scope": env["CATALOG_SCOPE"],
        "oauth2-server-uri": env["CATALOG_OAUTH2__SERVER__URI"],
        "py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO",
    })


def say(text):
    print(text, file=sys.stderr, flush=True)


def interval_seconds(rows):
    """The seconds between two readings of a sensor so that a year makes about that many rows."""
    return max(1, round(SENSORS * DAYS * 86_400 / rows))


def create(cat):
    schema = Schema(
        NestedField(1, "factory_id", StringType()),
        NestedField(2, "sensor_id", StringType()),
        NestedField(3, "measured_at", TimestamptzType()),
        NestedField(4, "metric_name", StringType()),
        NestedField(5, "metric_value", DoubleType()),
        NestedField(6, "unit", StringType()),
    )
    spec = PartitionSpec(
        PartitionField(source_id=1, field_id=1000, transform=IdentityTransform(), name="factory_id"),
        PartitionField(source_id=3, field_id=1001, transform=YearTransform(), name="measured_at_year"),
    )
    order = SortOrder(SortField(source_id=2, transform=IdentityTransform()),
                      SortField(source_id=3, transform=IdentityTransform()))
    try:
        cat.create_namespace("iot_demo")
    except NamespaceAlreadyExistsError:
        pass
    try:
        cat.drop_table(NAME)
    except NoSuchTableError:
        pass
    return cat.create_table(NAME, schema, partition_spec=spec, sort_order=order, properties={
        "write.parquet.compression-codec": "zstd", "write.parquet.compression-level": "3"})


def chunk(first_micros, readings, step_micros, seed):
    """Rows of one chunk in arrival order: at each moment one reading of every sensor."""
    rows = readings * SENSORS
    index = pa.Array.from_buffers(pa.int64(), rows, [None, pa.py_buffer(array.array("q", range(rows)))])
    moment = pc.divide(index, SENSORS)
    sensor = pc.subtract(index, pc.multiply(moment, SENSORS)).cast(pa.int32())
    names = pa.array(["SNS-%05d" % (i + 1) for i in range(SENSORS)])
    value = pc.round(pc.add(pc.multiply(pc.random(rows, initializer=seed), 40.0), 10.0), 2)
    micros = pc.add(pc.multiply(moment, step_micros), first_micros)

    def constant(text):
        return pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), rows), pa.array([text])).cast(pa.string())
    return pa.table({
        "factory_id": constant("FAC-001"),
        "sensor_id": pa.DictionaryArray.from_arrays(sensor, names).cast(pa.string()),
        "measured_at": micros.cast(pa.timestamp("us", "UTC")),
        "metric_name": constant("temperature"),
        "metric_value": value,
        "unit": constant("celsius"),
    })


def load(rows_wanted):
    """Creates the table and appends 13 chunks of 30 days, each inclusive at both ends."""
    table = create(catalog())
    step = interval_seconds(rows_wanted) * 1_000_000
    began, total, parts = time.time(), 0, -(-DAYS // CHUNK_DAYS)
    for i in range(parts):
        days = min(CHUNK_DAYS, DAYS - i * CHUNK_DAYS)
        first = START_MICROS + i * CHUNK_DAYS * DAY_MICROS
        data = chunk(first, days * DAY_MICROS // step + 1, step, 7 + i)
        table.append(data)
        total += data.num_rows
        say(f"  append {i + 1:2}/{parts}: {total:>11,} rows, {time.time() - began:6.1f} s")
    return {"rows": total, "seconds_load": round(time.time() - began, 2)}


def boxes(table):
    """Every row group of the current snapshot: rows, and the range of both clustering columns."""
    out, sizes, files = [], 0, 0
    for task in table.scan().plan_files():
        files += 1
        sizes += task.file.file_size_in_bytes
        with table.io.new_input(task.file.file_path).open() as f:
            meta = pq.ParquetFile(f).metadata
        position = {meta.schema.column(i).path: i for i in range(meta.num_columns)}
        for g in range(meta.num_row_groups):
            group = meta.row_group(g)
            s = group.column(position["sensor_id"]).statistics
            t = group.column(position["measured_at"]).statistics
            out.append({"rows": group.num_rows, "sensor": [s.min, s.max], "time": [micros_of(t.min), micros_of(t.max)]})
    return out, sizes, files


def micros_of(moment):
    if isinstance(moment, int):
        return moment
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.timezone.utc)
    return (moment - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)) // datetime.timedelta(microseconds=1)


def shares(groups):
    """Mean share of row groups that a reader cannot skip, over seeded random instances of each predicate."""
    rnd = random.Random(20230101)
    end = START_MICROS + DAYS * DAY_MICROS
    hour = 3_600_000_000
    touched = {"p1": 0, "p2": 0, "p3": 0}

    def count(sensor, low, high):
        return sum(1 for g in groups
                   if (sensor is None or g["sensor"][0] <= sensor <= g["sensor"][1])
                   and g["time"][0] < high and g["time"][1] >= low)
    for _ in range(INSTANCES):
        sensor = "SNS-%05d" % rnd.randint(1, SENSORS)
        day = START_MICROS + rnd.randrange(DAYS) * DAY_MICROS
        at = START_MICROS + rnd.randrange(DAYS * 24) * hour
        touched["p1"] += count(sensor, day, day + DAY_MICROS)
        touched["p2"] += count(sensor, START_MICROS, end + 1)
        touched["p3"] += count(None, at, at + hour)
    return {p: touched[p] / INSTANCES / len(groups) for p in touched}


def measure():
    table = catalog().load_table(NAME)
    groups, size, files = boxes(table)
    return {"files": files, "bytes": size, "row_groups": len(groups), "share": shares(groups), "boxes": groups}


if __name__ == "__main__":
    if sys.argv[1] == "load":
        answer = load(int(sys.argv[2]))
    else:
        answer = measure()
    json.dump(answer, open(sys.argv[-1], "w"))
