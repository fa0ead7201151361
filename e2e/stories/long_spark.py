"""One Spark session that writes and reads one table over and over for a while.   usage: long_spark.py TABLE SECONDS"""
import sys
import time

from engine_spark import session

name, seconds = sys.argv[1], float(sys.argv[2])
spark = session()
spark.sql(f"CREATE NAMESPACE IF NOT EXISTS ice.{name.split('.')[0]}")
spark.sql(f"CREATE TABLE ice.{name} (id BIGINT) USING iceberg")
end, n = time.time() + seconds, 0
while time.time() < end:
    spark.sql(f"INSERT INTO ice.{name} VALUES ({n})")
    n += 1
    for _ in range(3):
        got = spark.sql(f"SELECT count(*), sum(id) FROM ice.{name}").collect()[0]
        if tuple(got) != (n, n * (n - 1) // 2):
            sys.exit(f"after {n} inserts the table reads {tuple(got)}")
    time.sleep(0.5)
print("inserts", n)
spark.stop()
