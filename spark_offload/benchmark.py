# SPDX-License-Identifier: Apache-2.0
"""The benchmark of the SplitJoin paper: two uniform streams, a band on two fields."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from host import CountWindow, TimeWindow
from host.query import JoinQuery, Term

__all__ = ["Benchmark"]


@dataclass(frozen=True)
class Benchmark:
    """Two streams whose fields ``x`` and ``y`` are uniform over 1 to 10,000.

    A tuple arrives every tick, in turn from R (even ticks) and from S (odd ones). A pair matches
    if ``x`` differs by at most ``reach``, and ``y`` too.

    Parameters
    ----------
    rows : int
        Rows of each stream.
    window : int
        Tuples of each window, as the time that so many of a side take.
    reach : int
        Half width of the band.
    seed : int
        Of the random numbers.
    """

    rows: int = 20_000
    window: int = 8_192
    reach: int = 10
    seed: int = 2016

    @property
    def within(self) -> int:
        """Width of the time-based window in ticks: it holds exactly ``window`` tuples a side."""
        return 2 * self.window - 1

    def tables(self) -> tuple[pa.Table, pa.Table]:
        """Return R and S."""
        rng = np.random.default_rng(self.seed)
        sides = []
        for side in range(2):
            sides.append(
                pa.table(
                    {
                        "t": np.arange(self.rows, dtype=np.int64) * 2 + side,
                        "x": rng.integers(1, 10_001, self.rows, dtype=np.int32),
                        "y": rng.integers(1, 10_001, self.rows, dtype=np.int32),
                    }
                )
            )
        return sides[0], sides[1]

    def query(self, *, counted: bool = False) -> JoinQuery:
        """Return the question: by time, or by the last ``window`` rows, which is the same here."""
        band = (-self.reach, self.reach)
        return JoinQuery(
            terms=(Term("x", "x", *band), Term("y", "y", *band)),
            order=("t", "t"),
            window=CountWindow(self.window) if counted else TimeWindow(self.within),
        )

    def in_spark(self, left: DataFrame, right: DataFrame) -> DataFrame:
        """Return the same question as Spark's own join, in the order of the later row."""
        l, r = left.alias("l"), right.alias("r")
        near = [
            F.abs(F.col(f"l.{name}") - F.col(f"r.{name}")) <= limit
            for name, limit in (("t", self.within), ("x", self.reach), ("y", self.reach))
        ]
        joined = l.join(r, near[0] & near[1] & near[2]).select(
            *(F.col(f"l.{name}") for name in left.columns),
            *(F.col(f"r.{name}").alias(f"{name}_right") for name in right.columns),
        )
        later = F.greatest("t", "t_right")
        return joined.orderBy(later, F.least("t", "t_right"))

    def __str__(self) -> str:
        return (
            f"Two streams of {self.rows:,} tuples, fields x and y uniform over 1 to 10,000; pairs "
            f"with |x - x'| <= {self.reach} and |y - y'| <= {self.reach}, each window the last "
            f"{self.window:,} tuples of a stream."
        )
