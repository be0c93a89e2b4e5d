# SPDX-License-Identifier: Apache-2.0
"""The questions as an expert of Polars would write them."""

import os
from pathlib import Path

# Read when Polars is loaded; as many as DuckDB gets.
os.environ.setdefault("POLARS_MAX_THREADS", "2")

import polars as pl

from .workload import Workload

__all__ = ["aggregate", "asof", "equality"]


def equality(workload: Workload, output: Path) -> None:
    """Join by equal keys."""
    left, right = pl.scan_parquet(workload.left), pl.scan_parquet(workload.right)
    keys = ["k"], ["rk"]
    if workload.is_long:  # a right row is in each span of time that its window reaches
        first, last = ((pl.col("rt") + way * workload.within) // workload.span for way in (-1, 1))
        left = left.with_columns(span=pl.col("t") // workload.span)
        right = pl.concat(
            [right.with_columns(span=first), right.filter(first != last).with_columns(span=last)]
        )
        keys = ["k", "span"], ["rk", "span"]
    pairs = left.join(right, left_on=keys[0], right_on=keys[1], coalesce=False).filter(
        (pl.col("t") - pl.col("rt")).abs() <= workload.within
    )
    pairs.select("t", "k", "x", "y", "rt", "rk", "rx", "ry").sink_parquet(output)


def aggregate(workload: Workload, output: Path) -> None:
    """Count the rows, and add up a field, of each key in each window of time."""
    width = workload.within
    start = (pl.col("t") // width * width).alias("window_start")
    rows = pl.scan_parquet(workload.left).group_by(start, "k")
    found = rows.agg(
        pl.len().cast(pl.Int64).alias("n"), pl.col("x").sum().cast(pl.Int64).alias("total")
    )
    ends = found.with_columns(window_end=pl.col("window_start") + width)
    ends.select("window_start", "window_end", "k", "n", "total").sink_parquet(output)


def asof(workload: Workload, output: Path) -> None:
    """Join each left row with the last right row of its key, if there is one near enough."""
    left, right = pl.scan_parquet(workload.left), pl.scan_parquet(workload.right)
    pairs = left.set_sorted("t").join_asof(
        right.set_sorted("rt"),
        left_on="t",
        right_on="rt",
        by_left="k",
        by_right="rk",
        tolerance=workload.within,
        coalesce=False,
        check_sortedness=False,
    )
    # The right key is left out of an as-of join's answer; it is the left one.
    pairs = pairs.filter(pl.col("rt").is_not_null()).with_columns(rk=pl.col("k"))
    pairs.select("t", "k", "x", "y", "rt", "rk", "rx", "ry").sink_parquet(output)
