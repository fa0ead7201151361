"""Appends one-row batches with a retry loop until the time is over.   usage: writer_pyiceberg.py TABLE WRITER SECONDS

Prints "ack WRITER ID" for every append that the catalog acknowledged. An append that lost its race is tried again
with the same row; one whose outcome is unknown is looked up before it is tried again.
"""
import random
import sys
import time

import pyarrow as pa
from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException
from pyiceberg.expressions import And, EqualTo

from engine_pyiceberg import connect


PAUSE = 0.25  # between appends, in seconds: a writer that gathers rows, not a loop that only commits


def main(name, writer, seconds):
    catalog, end, n = connect(), time.time() + float(seconds), 0
    while time.time() < end:
        batch = pa.table({"writer": pa.array([writer]), "id": pa.array([n], pa.int64())})
        for _ in range(500):
            table = catalog.load_table(name)
            try:
                table.append(batch)
                break
            except CommitFailedException:
                time.sleep(random.uniform(0, 0.05))  # a longer wait would only let the others pass again
            except CommitStateUnknownException:
                mine = And(EqualTo("writer", writer), EqualTo("id", n))
                if catalog.load_table(name).scan(row_filter=mine).to_arrow().num_rows:
                    break
        else:
            sys.exit(f"{writer}: row {n} lost its race 500 times")
        print("ack", writer, n, flush=True)
        n += 1
        time.sleep(PAUSE)


main(*sys.argv[1:4])
