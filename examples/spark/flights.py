# SPDX-License-Identifier: Apache-2.0
"""Flights: which connections does a timetable offer, and which does a delay break?

A connection is an arrival and a departure at the same airport, 30 to 180 minutes later.
``python -m examples.spark.flights`` runs it on a simulated accelerator.
"""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from splitjoin.spark import open_session, stream_join

__all__ = ["AIRPORTS", "connections", "flights", "missed"]

AIRPORTS = ("ATL", "DEN", "DFW", "JFK", "LAX", "ORD", "SEA", "SFO")


def flights(spark: SparkSession, rows: int = 600) -> DataFrame:
    """Return a timetable of ten hours, with delays: most flights are late by a few minutes."""
    airports = ", ".join(f"'{airport}'" for airport in AIRPORTS)
    way = len(AIRPORTS)
    return spark.range(rows).selectExpr(
        "id as flight",
        f"element_at(array({airports}), cast(1 + id % {way} as int)) as origin",
        f"element_at(array({airports}), cast(1 + (id + 1 + (id * 3) % {way - 1}) % {way} as int))"
        " as destination",
        "timestamp_seconds(1790000000 + 60 * id) as departs",
        "timestamp_seconds(1790000000 + 60 * id + 60 * (55 + (id * 23) % 240)) as arrives",
        "cast((id * id * 7) % 53 * ((id * 11) % 10) / 9 as int) as delay",
    )


def connections(timetable: DataFrame, device: str | None = None) -> DataFrame:
    """Pair each arrival with the departures from its airport 30 to 180 minutes later."""
    arriving = timetable.selectExpr("flight", "destination as airport", "arrives as at", "delay")
    leaving = timetable.selectExpr("flight", "origin as airport", "departs as at", "delay")
    return stream_join(
        arriving,
        leaving,
        on="airport",
        time="at",
        within=("-180 minutes", "-30 minutes"),
        device=device,
    )


def missed(connections: DataFrame) -> DataFrame:
    """Return per airport how many connections there are, and how many a delay breaks."""
    minutes = (F.unix_seconds("at_right") - F.unix_seconds("at")) / 60
    slack = minutes + F.col("delay_right") - F.col("delay")
    broken = F.count_if(slack < 30).alias("missed")
    return connections.groupBy("airport").agg(F.count("*").alias("offered"), broken)


if __name__ == "__main__":
    session = open_session("flights")
    missed(connections(flights(session))).orderBy("airport").show()
