"""Makes the table iot.readings, fills it and reads it back. Run again it adds the same rows once more."""
import datetime
import os

import pyarrow as pa
from pyiceberg.catalog import load_catalog

env = os.environ  # what catalogd-data/client.env says
catalog = load_catalog("lake", **{
    "type": "rest", "uri": env["CATALOG_URI"], "warehouse": env["CATALOG_WAREHOUSE"], "scope": env["CATALOG_SCOPE"],
    "credential": env["CATALOG_CREDENTIAL"], "oauth2-server-uri": env["CATALOG_OAUTH2__SERVER__URI"],
})
catalog.create_namespace_if_not_exists("iot")
readings = catalog.create_table_if_not_exists("iot.readings", pa.schema(
    [("sensor_id", pa.string()), ("measured_at", pa.timestamp("us", tz="UTC")), ("value", pa.float64())]))
start = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
for day in range(8):  # eight commits, and a small file each: something for the worker to merge
    hours = [(start + datetime.timedelta(days=day, hours=h), f"sensor-{h % 3}") for h in range(24)]
    readings.append(pa.table({"sensor_id": [name for _, name in hours], "measured_at": [at for at, _ in hours],
                              "value": [20 + at.hour / 10 for at, _ in hours]}, schema=readings.schema().as_arrow()))

warm = readings.scan(row_filter="sensor_id = 'sensor-1' and value > 21").to_arrow()
print(f"rows {readings.scan().to_arrow().num_rows}, files {len(list(readings.scan().plan_files()))}, warm hours of sensor-1: {warm.num_rows}")
