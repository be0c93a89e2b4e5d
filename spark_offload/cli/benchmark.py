# SPDX-License-Identifier: Apache-2.0
"""The benchmark of the SplitJoin paper, a band on two fields, on uniform and clustered streams."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from host import CountWindow, TimeWindow
from host.query.queries import JoinQuery, Term

__all__ = ["Benchmark", "Cells", "grid_join", "near"]


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

    def query(self, *, counted: bool = False) -> JoinQuery:
        """Return the question: by time, or by the last ``window`` rows, which is the same here."""
        band = (-self.reach, self.reach)
        return JoinQuery(
            terms=(Term("x", "x", *band), Term("y", "y", *band)),
            order=("t", "t"),
            window=CountWindow(self.window) if counted else TimeWindow(self.within),
        )

    def in_spark(self, left: DataFrame, right: DataFrame) -> DataFrame:
        """Return the same question as Spark's own join, in the order of the later row.

        The conditions are written down as they are, so Spark compares every row with every row.
        """
        other = _renamed(right)
        joined = left.join(other, self._near())
        later = F.greatest("t", "t_right")
        return joined.orderBy(later, F.least("t", "t_right"))

    def by_expert(self, left: DataFrame, right: DataFrame) -> DataFrame:
        """Return the same rows by the query that an expert of Spark writes by hand, in no order.

        The plane of ``x`` and ``y`` is cut into cells twice as wide as the band, so that each right
        row reaches at most two cells of a field. Spark joins by one ``bigint``, the number of the
        cell, and the exact conditions filter the pairs. The left rows are broadcast, each of them
        once; the right rows are repeated for their cells as they stream past. Spark left to itself
        broadcasts the repeated rows, which takes about twice as long. Cells of one field only take
        ten times as long.

        In a cluster the cells hold many rows, so time is cut too, into cells twice as wide as the
        window; for uniform fields that would repeat rows for nothing.
        """
        cells = [Cells(name, self.reach, 10_000) for name in "xy"]
        if self.deviation is not None:
            cells.append(Cells("t", self.within, 2 * self.rows))
        return grid_join(left, right, cells, self._near())

    def _near(self) -> Column:
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


@dataclass(frozen=True)
class Cells:
    """Cells of one column, twice as wide as what a row reaches; ``count`` leaves room at the end.

    ``div`` rounds towards zero, so cell 0 also holds the values that lie up to a width below zero.

    Parameters
    ----------
    name : str
        The column.
    reach : int
        Largest difference of two values that match.
    greatest : int
        Greatest value.
    """

    name: str
    reach: int
    greatest: int

    @property
    def width(self) -> int:
        """Values of a cell."""
        return 2 * (2 * self.reach + 1)

    @property
    def count(self) -> int:
        """Number of cells."""
        return self.greatest // self.width + 2

    def of(self, value: Column) -> Column:
        """Return the cell of a value."""
        return F.call_function("div", value, F.lit(self.width))


def grid_join(
    left: DataFrame, right: DataFrame, cells: Sequence[Cells], condition: Column
) -> DataFrame:
    """Return the pairs of rows that meet in a cell and fulfil a condition, in no order.

    Left rows are broadcast; right rows are repeated for the cells that they reach, and their
    columns end in ``_right``.
    """
    own, other = left, _renamed(right)
    number, reached_number = F.lit(0).cast("bigint"), F.lit(0).cast("bigint")
    for each in cells:
        number = number * each.count + each.of(F.col(each.name))
        value = F.col(f"{each.name}_right")
        reached = F.sequence(each.of(value - each.reach), each.of(value + each.reach))
        other = other.withColumn(f"cell_{each.name}", F.explode(reached))
        reached_number = reached_number * each.count + F.col(f"cell_{each.name}")
    own = own.withColumn("cell", number)
    other = other.withColumn("cell", reached_number)
    return (
        F.broadcast(own)
        .join(other, "cell")
        .where(condition)
        .select(*left.columns, *(f"{name}_right" for name in right.columns))
    )


def near(reaches: Mapping[str, int]) -> Column:
    """Return whether the columns of a pair differ by so much at most."""
    conditions = [
        F.abs(F.col(name) - F.col(f"{name}_right")) <= reach for name, reach in reaches.items()
    ]
    return reduce(lambda one, other: one & other, conditions)


def _renamed(right: DataFrame) -> DataFrame:
    """The right rows with the names that their columns have in the answer."""
    return right.toDF(*(f"{name}_right" for name in right.columns))
