# SPDX-License-Identifier: Apache-2.0
"""Trades and quotes: which quotes explain a trade, and how far was the last one from its price?

``python -m examples.spark.trades_and_quotes`` runs it on a simulated accelerator.
"""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from splitjoin.spark import asof_join, open_session, stream_join

__all__ = ["SYMBOLS", "explained", "quotes", "slippage", "trades"]

SYMBOLS = 7

#: A price in cents: each symbol swings slowly around one of its own.
PRICE = "cast(5000 + 1000 * (id % 7) + 200 * sin(id / 500) + (id * 7919) % 31 as int)"


def trades(spark: SparkSession, rows: int = 2_000) -> DataFrame:
    """Return trades, one every 5 milliseconds on average."""
    return spark.range(rows).selectExpr(
        "id as trade",
        "timestamp_millis(1790000000000 + 5 * id + (id * 37) % 11) as time",
        f"concat('S', id % {SYMBOLS}) as symbol",
        f"{PRICE} as price",
        "cast(1 + (id * 13) % 100 as int) as volume",
    )


def quotes(spark: SparkSession, rows: int = 4_000) -> DataFrame:
    """Return quotes of the same time, twice as many as trades."""
    return spark.range(rows).selectExpr(
        "id as quote",
        "timestamp_millis(1790000000000 + cast(2.5 * id as bigint) + (id * 41) % 13) as time",
        f"concat('S', id % {SYMBOLS}) as symbol",
        f"{PRICE.replace('id / 500', 'id / 1000')} as bid",
    )


def explained(trades: DataFrame, quotes: DataFrame, device: str | None = None) -> DataFrame:
    """Pair each trade with the quotes within 50 ms whose bid is at most 10 cents away."""
    close = {("price", "bid"): (-10, 10)}
    return stream_join(
        trades, quotes, on="symbol", band=close, time="time", within="50ms", device=device
    )


def slippage(trades: DataFrame, quotes: DataFrame) -> DataFrame:
    """Return per symbol the mean distance, in cents, between a trade and the last bid before it."""
    priced = asof_join(trades, quotes, time="time", on="symbol", within="1s")
    distance = F.avg(F.abs(F.col("price") - F.col("bid"))).alias("cents")
    return priced.groupBy("symbol").agg(distance, F.count("bid").alias("trades")).orderBy("symbol")


if __name__ == "__main__":
    session = open_session("trades and quotes")
    bought, offered = trades(session), quotes(session)
    pairs = explained(bought, offered)
    alone = bought.join(pairs, "trade", "left_anti").count()
    print(f"{pairs.count():,} pairs; {alone} trades that no quote explains")
    slippage(bought, offered).show()
