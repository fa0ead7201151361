"""ClickHouse's DataLakeCatalog database (through chDB) against a REST catalog on S3.

    $(clickhouse/install | tail -1) clickhouse/smoke.py URI WAREHOUSE [KEY=VALUE ...]

KEY=VALUE: catalog_credential=id:secret, auth_scope=..., oauth_server_uri=..., auth_header=... and
other settings of the engine; s3.endpoint=host:port s3.bucket=b s3.key=... s3.secret=... when the
catalog vends no credentials; token=... for the table that this script makes itself over HTTP
(ClickHouse creates none in such a database). WAREHOUSE must not be empty.
Prints one line per step, then "N passed, N failed"; exits with 1 when a step failed.
"""

import json
import os
import pathlib
import sys
import tempfile
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

from chdb import session

from steps import Steps, expect, raises

SPACE = "smoke_clickhouse"


def quote(text):
    return "'" + str(text).replace("\\", "\\\\").replace("'", "\\'") + "'"


def call(method, url, body=None, token=None):
    request = urllib.request.Request(url, method=method, data=None if body is None else json.dumps(body).encode())
    request.add_header("Content-Type", "application/json")
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    with urllib.request.urlopen(request) as answer:
        return json.loads(answer.read() or b"null")


def attach(db, uri, warehouse, settings):
    """Makes the database `ice` of the catalog; settings are those of the engine, and s3.* for a store without sessions."""
    s3 = {key[3:]: settings.pop(key) for key in list(settings) if key.startswith("s3.")}
    if s3:
        settings["storage_endpoint"] = f"http://{s3['endpoint']}/{s3['bucket']}"
    db.query("SET allow_database_iceberg = 1, allow_insert_into_iceberg = 1")
    options = {"catalog_type": "rest", "warehouse": warehouse, **settings}
    arguments = [uri.rstrip("/") + "/v1"] + ([s3["key"], s3["secret"]] if s3 else [])
    db.query(f"CREATE DATABASE ice ENGINE = DataLakeCatalog({', '.join(map(quote, arguments))}) "
             f"SETTINGS {', '.join(f'{key} = {quote(value)}' for key, value in options.items())}")


def main(uri, warehouse, *pairs):
    settings = dict(pair.split("=", 1) for pair in pairs)
    token = settings.pop("token", None)
    base = uri.rstrip("/") + "/v1"
    config = call("GET", f"{base}/config?warehouse={warehouse}", token=token)
    prefix = {**config.get("defaults", {}), **config.get("overrides", {})}.get("prefix")
    root = f"{base}/{prefix}" if prefix else base
    os.chdir(tempfile.mkdtemp())  # ClickHouse leaves a folder where it runs
    db = session.Session()

    def sql(text):
        out = str(db.query(text, "JSONCompact"))
        return json.loads(out)["data"] if out else []

    step = Steps(f"ClickHouse {sql('SELECT version()')[0][0]}")

    def made_over_http():
        try:
            call("DELETE", f"{root}/namespaces/{SPACE}/tables/t", token=token)
            call("DELETE", f"{root}/namespaces/{SPACE}", token=token)
        except urllib.error.HTTPError as error:
            expect(error.code, 404)
        call("POST", f"{root}/namespaces", {"namespace": [SPACE], "properties": {}}, token)
        schema = {"type": "struct", "schema-id": 0, "fields": [
            {"id": 1, "name": "id", "required": False, "type": "long"},
            {"id": 2, "name": "word", "required": False, "type": "string"}]}
        call("POST", f"{root}/namespaces/{SPACE}/tables", {"name": "t", "schema": schema}, token)

    def connect():
        attach(db, uri, warehouse, settings)

    def listing():
        expect([f"{SPACE}.t"] in sql("SHOW TABLES FROM ice"), True)

    def insert():
        db.query(f"INSERT INTO ice.`{SPACE}.t` SELECT number, concat('w', toString(number)) FROM numbers(10)")
        db.query(f"INSERT INTO ice.`{SPACE}.t` VALUES (100, 'z')")

    def select():
        expect(sql(f"SELECT toString(count()), max(word) FROM ice.`{SPACE}.t` WHERE id > 5"), [["5", "z"]])

    def missing():
        raises(Exception, lambda: sql(f"SELECT * FROM ice.`{SPACE}.missing`"))

    def drop():
        db.query("DROP DATABASE ice")
        call("DELETE", f"{root}/namespaces/{SPACE}/tables/t", token=token)
        call("DELETE", f"{root}/namespaces/{SPACE}", token=token)

    for each in (made_over_http, connect, listing, insert, select, missing, drop):
        step(each)
    return step.close()


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
