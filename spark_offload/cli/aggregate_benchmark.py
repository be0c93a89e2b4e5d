# SPDX-License-Identifier: Apache-2.0
"""Aggregates over windows of time: the kit beside Spark's own groupBy(window(...))."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from spark_offload.aggregate import plan_aggregate
from spark_offload.planning.aggregate_plan import AggregatePlan

__all__ = ["KIT", "SPARK", "WINDOWS", "AggregateBenchmark"]

KIT, SPARK = "panes on the host", "Spark's groupBy(window)"
"""Names of the two ways."""

WINDOWS = {"sliding": 16, "tumbling": 1}
"""Panes of a window; each window begins one pane after the other."""


@dataclass(frozen=True)
class AggregateBenchmark:
    """Rows that come every millisecond, with a key and a value each.

    Parameters
    ----------
    rows : int
        Number of rows.
    keys : int
        Number of distinct keys, all equally frequent.
    pane : int
        Milliseconds of a pane.
    seed : int
        Of the random numbers.
    """

    rows: int = 800_000
    keys: int = 1_000
    pane: int = 10_000
    seed: int = 25

    def table(self) -> pa.Table:
        """Return the rows, in the order of their times."""
        rng = np.random.default_rng(self.seed)
        times = pa.array(np.arange(self.rows, dtype=np.int64) * 1_000, pa.timestamp("us", "UTC"))
        return pa.table(
            {
                "at": times,
                "key": rng.integers(0, self.keys, self.rows, dtype=np.int32),
                "value": rng.integers(0, 1 << 20, self.rows, dtype=np.int64),
            }
        )

    def ways(self, frame: DataFrame, panes: int) -> dict[str, Callable[[], DataFrame]]:
        """Return both ways to count, add up, and find the greatest in windows of so many panes.

        Parameters
        ----------
        frame : DataFrame
            The rows.
        panes : int
            Panes of a window.
        """

        def planned() -> AggregatePlan:
            return plan_aggregate(
                frame,
                time="at",
                window=f"{panes * self.pane}ms",
                advance=f"{self.pane}ms",
                keys="key",
                aggregates={"n": "count", "total": "sum:value", "most": "max:value"},
                strict=True,
            )

        return {KIT: lambda: planned().dataframe(), SPARK: lambda: planned().own_answer()}

    def __str__(self) -> str:
        return (
            f"{self.rows:,} rows with {self.keys:,} keys; count, sum and max over windows of "
            f"{self.pane / 1000:g} s, and of {WINDOWS['sliding']} times that, every "
            f"{self.pane / 1000:g} s."
        )
