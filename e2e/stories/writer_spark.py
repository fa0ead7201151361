"""Appends one-row batches by Spark SQL, with Spark's own retries, until the time is over.

    writer_spark.py TABLE SECONDS WRITER [WRITER ...]

Each WRITER is a thread of its own in this session. Prints "ack WRITER ID" for every append that was acknowledged,
"lost WRITER ID" for one whose retries were used up (Iceberg's table property commit.retry.num-retries).
"""
import sys
import threading
import time

from engine_spark import session


def write(spark, name, writer, end):
    n = 0
    while time.time() < end:
        try:
            spark.sql(f"INSERT INTO ice.{name} SELECT '{writer}', {n}L")
        except Exception as error:
            if "CommitFailedException" not in str(error):
                print("failed", writer, n, " ".join(str(error).split())[:300], flush=True)
            else:
                print("lost", writer, n, flush=True)
        else:
            print("ack", writer, n, flush=True)
        n += 1


def main(name, seconds, *writers):
    spark = session()
    end = time.time() + float(seconds)
    threads = [threading.Thread(target=write, args=(spark, name, w, end)) for w in writers]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    spark.stop()


main(*sys.argv[1:])
