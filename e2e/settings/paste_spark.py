"""Runs the Spark command that `catalogd dev` printed with all of its settings, and writes a table with them.

The packages that it names must be the jars that are here: those would be fetched from Maven Central.

usage: paste_spark.py SETTINGS NAMESPACE
"""
import os
import shlex
import sys

from pyspark.sql import SparkSession

program, *words = shlex.split(open(sys.argv[1]).read().replace("\\\n", " "))
namespace = sys.argv[2]
assert program == "spark-sql", program
builder = SparkSession.builder.master("local[2]").appName("paste").config("spark.jars", os.environ["JARS"])
for flag, value in zip(words[::2], words[1::2], strict=True):
    if flag == "--packages":
        for package in value.split(","):
            _, artifact, version = package.split(":")
            assert f"/{artifact}-{version}.jar" in os.environ["JARS"], f"{package} is not what the tests run"
    elif flag == "--conf":
        builder = builder.config(*value.split("=", 1))
    else:
        raise AssertionError(flag)
for key, value in (("spark.ui.enabled", "false"), ("spark.driver.host", "127.0.0.1"), ("spark.driver.bindAddress", "127.0.0.1"),
                   ("spark.ui.showConsoleProgress", "false"), ("spark.driver.memory", "1g")):
    builder = builder.config(key, value)
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
spark.sql(f"CREATE NAMESPACE IF NOT EXISTS lake.{namespace}")
spark.sql(f"CREATE TABLE lake.{namespace}.of_spark (id BIGINT) USING iceberg")
spark.sql(f"INSERT INTO lake.{namespace}.of_spark SELECT id FROM range(3)")
print("rows", spark.table(f"lake.{namespace}.of_spark").count())
