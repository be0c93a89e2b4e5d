# SPDX-License-Identifier: Apache-2.0
"""The benchmark of the SplitJoin paper, a band on two fields, on uniform and clustered streams.

Its time on devices that nobody has here is that of the cost model.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from host.protocol.cost_model import mean_of_last
from host.protocol.modelled import ModelledDevice
from host.query.queries import Query

__all__ = [
    "Benchmark",
    "estimated",
    "near",
    "renamed",
]


@dataclass(frozen=True)
class Benchmark:
    """Two streams whose fields ``x`` and ``y`` are uniform over 1 to 10,000, or in one cluster.

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
    deviation : float or None
        Standard deviation of normal fields around 5,000, kept within 1 to 10,000; None: the fields
        are uniform.
    """

    rows: int = 20_000
    window: int = 8_192
    reach: int = 10
    seed: int = 2016
    deviation: float | None = None

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
                        "x": self._field(rng),
                        "y": self._field(rng),
                    }
                )
            )
        return sides[0], sides[1]

    def _field(self, rng: np.random.Generator) -> npt.NDArray[np.int32]:
        """Draw the values of one field."""
        if self.deviation is None:
            return rng.integers(1, 10_001, self.rows, dtype=np.int32)
        values = rng.normal(5_000, self.deviation, self.rows)
        return np.clip(np.rint(values), 1, 10_000).astype(np.int32)

    def query(self, *, counted: bool = False) -> Query:
        """Return the question: by time, or by the last ``window`` rows, which is the same here."""
        band = (-self.reach, self.reach)
        return Query(
            band=[("x", "x", *band), ("y", "y", *band)],
            time="t",
            rows=self.window if counted else None,
            within=None if counted else self.within,
        )

    def in_spark(self, left: DataFrame, right: DataFrame) -> DataFrame:
        """Return the same question as Spark's own join, in the order of the later row.

        The conditions are written down as they are, so Spark compares every row with every row.
        """
        other = renamed(right)
        joined = left.join(other, self.near())
        later = F.greatest("t", "t_right")
        return joined.orderBy(later, F.least("t", "t_right"))

    def near(self) -> Column:
        """The conditions as they are asked for."""
        return near({"t": self.within, "x": self.reach, "y": self.reach})

    def __str__(self) -> str:
        values = (
            "uniform over 1 to 10,000"
            if self.deviation is None
            else f"normal around 5,000 with a standard deviation of {self.deviation:g}"
        )
        return (
            f"Two streams of {self.rows:,} tuples, fields x and y {values}; pairs "
            f"with |x - x'| <= {self.reach} and |y - y'| <= {self.reach}, each window the last "
            f"{self.window:,} tuples of a stream."
        )


def estimated(benchmark: Benchmark, device: ModelledDevice, results: int) -> tuple[str, float, str]:
    """Return a device's name, the seconds of its cycles for a benchmark, and what these are."""
    window = mean_of_last(benchmark.window, benchmark.rows)
    found = device.estimate(2 * benchmark.rows, (window, window), results)
    words = f"{found.cycles:.3g} cycles per tuple at {device.mhz:.1f} MHz; clock: {device.clock}"
    return device.name, found.device, words


def near(reaches: Mapping[str, int]) -> Column:
    """Return whether the columns of a pair differ by so much at most."""
    conditions = [
        F.abs(F.col(name) - F.col(f"{name}_right")) <= reach for name, reach in reaches.items()
    ]
    return reduce(lambda one, other: one & other, conditions)


def renamed(right: DataFrame) -> DataFrame:
    """The right rows with the names that their columns have in the answer."""
    return right.toDF(*(f"{name}_right" for name in right.columns))
