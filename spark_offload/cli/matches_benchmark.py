# SPDX-License-Identifier: Apache-2.0
"""Aggregates of the matches of a band: rows whose left rows have a given number of matches."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_offload.cli.benchmark import Cells, grid_join, near
from spark_offload.join_aggregate import plan_join_aggregate
from spark_offload.planning.join_aggregate_plan import JoinAggregatePlan

__all__ = ["PAIRS", "REDUCED", "SPARK", "MatchesBenchmark"]

REDUCED = "matches reduced on the device"
PAIRS = "pairs from the device, reduced by Spark"
SPARK = "Spark by an expert: join and groupBy"
"""Names of the three ways."""


@dataclass(frozen=True)
class MatchesBenchmark:
    """Two streams with a key of uniform values; a left row matches a band of keys.

    A tuple arrives every tick, in turn from the left stream (even ticks) and from the right one.

    Parameters
    ----------
    rows : int
        Rows of each stream.
    window : int
        Right rows that a left row meets, earlier and later ones; even.
    matches : float
        Expected number of those that it matches.
    columns : int
        Columns of right rows that are aggregated.
    seed : int
        Of the random numbers.
    """

    rows: int = 40_000
    window: int = 4_096
    matches: float = 100.0
    columns: int = 1
    seed: int = 56

    REACH = 500
    """Half width of the band."""

    @property
    def within(self) -> int:
        """Width of the window in ticks, in which ``window / 2`` right rows come."""
        return self.window - 1

    def tables(self) -> tuple[pa.Table, pa.Table]:
        """Return the left and the right rows."""
        rng = np.random.default_rng(self.seed)

        def keyed(side: int) -> dict[str, npt.NDArray[np.int64]]:
            return {
                "t": np.arange(self.rows, dtype=np.int64) * 2 + side,
                "x": rng.integers(0, self.values, self.rows),
            }

        left, right = keyed(0), keyed(1)
        for name in self.names:
            right[name] = rng.integers(0, 1 << 20, self.rows)
        return pa.table(left), pa.table(right)

    @property
    def values(self) -> int:
        """Number of values of the key."""
        return round((2 * self.REACH + 1) * self.window / self.matches)

    @property
    def names(self) -> list[str]:
        """Names of the aggregated columns."""
        return [f"v{number}" for number in range(self.columns)]

    def ways(
        self, left: DataFrame, right: DataFrame, reducing: str, pairs: str | None
    ) -> dict[str, Callable[[], JoinAggregatePlan]]:
        """Return what plans the question for a device that reduces matches, and one that does not.

        Count, sum, least and greatest value of each column are asked for.

        Parameters
        ----------
        left, right : DataFrame
            The rows.
        reducing : str
            Address of a join aggregate.
        pairs : str or None
            Address of a device that sends pairs; None for the default one.
        """
        aggregates = {"n": "count"}
        for name in self.names:
            aggregates |= {f"{one}_{name}": f"{one}:{name}" for one in ("sum", "min", "max")}

        def plan(device: str | None) -> JoinAggregatePlan:
            # Strict: what is measured is the device, not what would stand in for it.
            return plan_join_aggregate(
                left,
                right,
                band={"x": (-self.REACH, self.REACH)},
                order="t",
                within=self.within,
                aggregates=aggregates,
                device=device,
                strict=True,
            )

        return {REDUCED: lambda: plan(reducing), PAIRS: lambda: plan(pairs)}

    def by_expert(self, left: DataFrame, right: DataFrame) -> DataFrame:
        """Return the same rows by the query that an expert of Spark writes by hand, in no order.

        The plane of key and time is cut into cells twice as wide as band and window
        (:meth:`Benchmark.by_expert <spark_offload.cli.benchmark.Benchmark.by_expert>`); the pairs
        are grouped by the time of the left row, which no other left row has.
        """
        cells = [Cells("x", self.REACH, self.values), Cells("t", self.within, 2 * self.rows)]
        pairs = grid_join(left, right, cells, near({"x": self.REACH, "t": self.within}))
        values = [
            function(f"{name}_right").alias(f"{function.__name__}_{name}")
            for name in self.names
            for function in (F.sum, F.min, F.max)
        ]
        grouped = pairs.groupBy("t").agg(F.count(F.lit(1)).alias("n"), *values)
        return left.join(grouped, "t", "left").na.fill(0, ["n"])

    def __str__(self) -> str:
        each = "column" if self.columns == 1 else f"each of {self.columns} columns"
        return (
            f"Two streams of {self.rows:,} tuples; count, and sum, least and greatest value of "
            f"{each}, of the matches of each left row: {self.matches:g} on average of the "
            f"{self.window:,} right rows within {self.within:,} ticks."
        )
