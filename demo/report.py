"""Prints what the demo measured and writes it to result.json. Fails when a row was lost or changed."""
import json
import os
import pathlib
import sys

SMALL_ROWS = 1_000_000  # below, opening files takes longer than reading them

work, picture, target = sys.argv[1:4]


def part(name):
    return json.loads((pathlib.Path(work) / (name + ".json")).read_text())


loaded, before, after, job = part("load"), part("before"), part("after"), part("job")
sums = part("sum_before"), part("sum_after")
equal = all(sums[0][k] == sums[1][k] for k in ("rows", "checksum")) and sums[1]["rows"] == loaded["rows"]
result = {
    "rows": loaded["rows"], "store": os.environ["STORE"],
    "seconds_load": loaded["seconds_load"], "seconds_compaction": job["seconds"],
    "peak_rss_bytes": int(os.environ["PEAK"]),
    "bytes_before": before["bytes"], "bytes_after": after["bytes"],
    "files_before": before["files"], "files_after": after["files"],
    "row_groups_before": before["row_groups"], "row_groups_after": after["row_groups"],
    "row_group_share_before": before["share"], "row_group_share_after": after["share"],
    "clustering_before": job["clustering_before"], "clustering_after": job["clustering_after"],
    "query_seconds_before": sums[0]["seconds"], "query_seconds_after": sums[1]["seconds"],
    "checksum_equal": equal, "picture": picture,
}
pathlib.Path(target).write_text(json.dumps(result, indent=1) + "\n")

print(f"\n{loaded['rows']:,} rows; clustered in {job['seconds']:.1f} s; the worker's peak memory {result['peak_rss_bytes'] / 1e6:.0f} MB")
print(f"{'':40}{'before':>12}{'after':>12}")
for label, key, form in (("files", "files", "{:,}"), ("row groups", "row_groups", "{:,}"), ("bytes", "bytes", "{:,}")):
    print(f"{label:40}{form.format(before[key]):>12}{form.format(after[key]):>12}")
for label, p in (("one sensor, one day", "p1"), ("one sensor, the year", "p2"), ("all sensors, one hour", "p3")):
    print(f"{'row groups read: ' + label:40}" + f"{before['share'][p]:>12.2%}{after['share'][p]:>12.2%}")
for label, p in (("one sensor, one day", "p1"), ("one sensor, the year", "p2"), ("all sensors, one hour", "p3")):
    print(f"{'DuckDB reads ' + label:40}{sums[0]['seconds'][p] * 1000:>9.1f} ms{sums[1]['seconds'][p] * 1000:>9.1f} ms")
if loaded["rows"] < SMALL_ROWS:
    print(f"fewer than {SMALL_ROWS:,} rows: times are mostly fixed costs, and bytes mostly the heads of files; the shares of row groups still tell")
print(f"row count and checksum {'equal' if equal else 'DIFFER'}; picture: {picture}; figures: {target}")
if not equal:
    sys.exit(f"demo: rows differ: written {loaded['rows']}, read {sums}")
