"""Committed releases into Parquet files: what is new since the last run, each once. It ends by itself.

spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0 \
    examples/recipes/spark/releases.py localhost:9092 shoal.releases releases
"""

import sys

from pyspark.sql import SparkSession

brokers, topic, folder = sys.argv[1:]
# A value, and with it its interval, is a number, or a list or an object as text, or null.
FIELDS = (
    "metric STRING, version INT, `group` STRING, seq BIGINT, id STRING, at TIMESTAMP, "
    "value STRING, low STRING, high STRING"
)

spark = SparkSession.builder.appName("releases").config("spark.sql.session.timeZone", "UTC").getOrCreate()
records = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", brokers)
    .option("subscribe", topic)
    .option("startingOffsets", "earliest")
    .option("kafka.isolation.level", "read_committed")
    .load()
)
releases = (
    records.selectExpr("CAST(value AS STRING) AS body")
    .selectExpr(f"from_json(body, '{FIELDS}') AS one", "body")
    .selectExpr(
        "one.metric",
        "one.version",
        "one.group",
        "one.seq",
        "one.id",
        "one.at",
        "try_cast(one.value AS DOUBLE) AS value",
        "try_cast(one.low AS DOUBLE) AS low",
        "try_cast(one.high AS DOUBLE) AS high",
        "body",
    )  # fmt: skip
)
# What is written, and how far the topic was read, is in the folder: another run goes on from there.
query = (
    releases.writeStream.format("parquet")
    .option("path", folder)
    .option("checkpointLocation", f"{folder}/_checkpoint")
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination()
spark.read.parquet(folder).drop("body").orderBy("metric", "group", "seq").show(100, truncate=False)
