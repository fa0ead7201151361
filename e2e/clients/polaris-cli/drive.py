"""Runs commands of Apache Polaris' command line client in one process: starting it for each would take longer than all of
its requests. Reads {"args": [...], "input": "..."} a line, answers {"exit": n, "out": "...", "err": "..."} a line."""

import contextlib
import io
import json
import sys

from apache_polaris.cli.polaris_cli import PolarisCli

answers = sys.stdout
for line in sys.stdin:
    command = json.loads(line)
    out, err, code = io.StringIO(), io.StringIO(), 0
    kept, sys.stdin = sys.stdin, io.StringIO(command.get("input") or "")
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            PolarisCli.execute(command["args"])
    except SystemExit as end:
        code = 0 if end.code is None else end.code if isinstance(end.code, int) else 1
    finally:
        sys.stdin = kept
    print(json.dumps({"exit": code, "out": out.getvalue(), "err": err.getvalue()}), file=answers, flush=True)
