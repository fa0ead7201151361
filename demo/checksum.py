"""Rows and an order-independent checksum of the demo's table, read by DuckDB through the catalog, and how long three
queries take."""
import importlib
import json
import os
import pathlib
import sys
import time

import duckdb

env = os.environ
identity, secret = env["CATALOG_CREDENTIAL"].split(":", 1)
con = duckdb.connect()
for extension in ("avro", "httpfs", "iceberg"):
    package = pathlib.Path(importlib.import_module(f"duckdb_extension_{extension}").__file__).parent
    (file,) = package.glob(f"extensions/*/{extension}.duckdb_extension")
    con.load_extension(str(file))
con.execute(f"""
    CREATE SECRET login (TYPE iceberg, CLIENT_ID '{identity}', CLIENT_SECRET '{secret}',
        OAUTH2_SCOPE '{env["CATALOG_SCOPE"]}', OAUTH2_SERVER_URI '{env["CATALOG_OAUTH2__SERVER__URI"]}')""")
con.execute(f"ATTACH '{env['CATALOG_WAREHOUSE']}' AS lake (TYPE iceberg, SECRET login, ENDPOINT '{env['CATALOG_URI']}')")
con.execute("SET TimeZone = 'UTC'")
rows, total = con.execute("""
    SELECT count(*), sum(hash(factory_id, sensor_id, epoch_us(measured_at), metric_name, metric_value, unit)::HUGEINT)
    FROM lake.iot_demo.factory_sensor_data""").fetchone()

QUERIES = {
    "p1": "sensor_id = 'SNS-00042' AND measured_at >= '2023-06-01' AND measured_at < '2023-06-02'",
    "p2": "sensor_id = 'SNS-00042'",
    "p3": "measured_at >= '2023-06-01 08:00' AND measured_at < '2023-06-01 09:00'",
}


def seconds(where):
    """The median of five warm runs."""
    times = []
    for _ in range(6):
        began = time.perf_counter()
        con.execute(f"SELECT count(*), avg(metric_value) FROM lake.iot_demo.factory_sensor_data WHERE {where}").fetchone()
        times.append(time.perf_counter() - began)
    return sorted(times[1:])[2]


json.dump({"rows": rows, "checksum": str(total), "seconds": {p: round(seconds(w), 4) for p, w in QUERIES.items()}},
          open(sys.argv[1], "w"))
