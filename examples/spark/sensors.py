# SPDX-License-Identifier: Apache-2.0
"""Machines with sensors: hot and shaking at the same moment, while nobody was repairing them.

Two streams of files are joined as they come in, and the alarms are then held against the intervals
in which a machine was under repair. ``python -m examples.spark.sensors`` runs it on a simulated
accelerator.
"""

from pathlib import Path
import tempfile

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from splitjoin.spark import open_session, overlap_join, stream_join

__all__ = ["MACHINES", "alarms", "readings", "repairs", "run", "unexplained"]

MACHINES = 5
FIRST = 1_790_000_000  # seconds since 1970
TEMPERATURE = "cast(60 + 30 * sin(id / 40) + (id * 7) % 5 as int)"
VIBRATION = "cast(50 + 40 * sin(id / 55) + (id * 11) % 7 as int)"


def readings(spark: SparkSession, value: str, late: int, rows: int = 1_500) -> DataFrame:
    """Return the readings of a kind of sensor, one a second, from the machines in turn."""
    return spark.range(rows).selectExpr(
        f"timestamp_seconds({FIRST} + id + (id * {late}) % 3) as at",
        f"cast(id % {MACHINES} as int) as machine",
        f"{value} as value",
    )


def repairs(spark: SparkSession) -> DataFrame:
    """Return the times at which machines were under repair."""
    return spark.range(20).selectExpr(
        f"cast(id % {MACHINES} as int) as machine",
        f"timestamp_seconds({FIRST} + 75 * id) as begins",
        f"timestamp_seconds({FIRST} + 75 * id + 20 + (id * 17) % 25) as ends",
    )


def alarms(hot: DataFrame, shaking: DataFrame, device: str | None = None) -> DataFrame:
    """Pair the readings of a machine above 80 degrees with those above 75 hertz, 4 s apart at most.

    Both frames may be streaming ones.
    """
    return stream_join(
        hot.where("value > 80"),
        shaking.where("value > 75"),
        on="machine",
        time="at",
        within="4 seconds",
        device=device,
    )


def unexplained(alarms: DataFrame, repairs: DataFrame, device: str | None = None) -> DataFrame:
    """Return the alarms during which the machine was not under repair."""
    lasting = alarms.select(
        "machine",
        F.least("at", "at_right").alias("begins"),
        F.greatest("at", "at_right").alias("ends"),
    )
    return overlap_join(
        lasting,
        repairs,
        left_interval=("begins", "ends"),
        on="machine",
        how="left_anti",
        longest="45 seconds",
        device=device,
    )


def run(spark: SparkSession, folder: Path, device: str | None = None) -> DataFrame:
    """Write the readings as files, join them as streams, and return the alarms that they gave."""
    streams = []
    for name, value, late in (("hot", TEMPERATURE, 5), ("shaking", VIBRATION, 7)):
        whole = readings(spark, value, late)
        early = F.col("at") < F.timestamp_seconds(F.lit(FIRST + 750))
        for half in (early, ~early):  # each file becomes a micro-batch
            whole.where(half).coalesce(1).write.mode("append").parquet(str(folder / name))
        stream = spark.readStream.schema(whole.schema).option("maxFilesPerTrigger", 1)
        streams.append(stream.parquet(str(folder / name)).withWatermark("at", "10 seconds"))
    query = (
        alarms(*streams, device=device)
        .writeStream.format("parquet")
        .option("path", str(folder / "alarms"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return spark.read.parquet(str(folder / "alarms"))


if __name__ == "__main__":
    session = open_session("sensors", options={"spark.sql.shuffle.partitions": "4"})
    with tempfile.TemporaryDirectory() as place:
        found = run(session, Path(place))
        left = unexplained(found, repairs(session))
        print(f"{found.count():,} alarms, {left.count():,} of them without a repair")
        left.groupBy("machine").count().orderBy("machine").show()
