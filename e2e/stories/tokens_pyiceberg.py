"""A running PyIceberg: one connection, then commands on standard input, each answered by one line.

The environment says how it signs in: TOKEN (as bearer), CREDENTIAL and SCOPE, or EXCHANGE
(exchanged for an access token, which is then the bearer).

read TABLE         "ok COUNT", or "refused NAME-OF-THE-ERROR"
append TABLE       "ok", or "refused …"
work TABLE SECONDS reads the table again and again for so long: "ok", or "refused …"
"""
import json
import os
import sys
import time
import urllib.parse
import urllib.request

import pyarrow as pa
from pyiceberg.catalog import load_catalog

env = os.environ


def exchanged(subject):
    form = {"grant_type": "urn:ietf:params:oauth:grant-type:token-exchange", "subject_token": subject,
            "subject_token_type": "urn:ietf:params:oauth:token-type:access_token", "scope": "session:role:RW_ROLE"}
    with urllib.request.urlopen(env["CATALOG_OAUTH2__SERVER__URI"], urllib.parse.urlencode(form).encode()) as answer:
        return json.load(answer)["access_token"]


settings = {"type": "rest", "uri": env["CATALOG_URI"], "warehouse": env["CATALOG_WAREHOUSE"]}
if "TOKEN" in env:
    settings["token"] = env["TOKEN"]
elif "EXCHANGE" in env:
    settings["token"] = exchanged(env["EXCHANGE"])
else:
    settings |= {"credential": env["CREDENTIAL"], "scope": env["SCOPE"], "oauth2-server-uri": env["CATALOG_OAUTH2__SERVER__URI"]}
catalog = load_catalog("story", **settings)


def run(command, name, seconds="0"):
    if command == "append":
        table = catalog.load_table(name)
        table.append(pa.table({"id": pa.array([1], pa.int64())}))
        return "ok"
    until = time.monotonic() + float(seconds)
    while True:
        count = len(catalog.load_table(name).scan().to_arrow())
        if time.monotonic() >= until:
            return f"ok {count}" if command == "read" else "ok"
        time.sleep(0.5)


print("ready", flush=True)
for line in sys.stdin:
    try:
        print(run(*line.split()), flush=True)
    except Exception as problem:  # whatever the client makes of a refusal
        print("refused", type(problem).__name__, flush=True)
