# SPDX-License-Identifier: Apache-2.0
"""Bounded differences as an equality of grid cells, which Spark can hash or sort.

A field's values are cut into cells. A row of one side lies in one cell; a row of the other side is
repeated for every cell that its band reaches. Rows that match meet in exactly one cell, so an
equality of cells, with the exact conditions beside it, gives every pair once.

Cells are twice as wide as the band: then a band reaches at most two of them, and three of two on
average. Wider cells hold more rows that do not match; narrower ones repeat more rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_offload.own_join.differences import MOST_LONG, Difference

__all__ = ["Cells", "cells_of", "in_cells", "repeated_for_cells"]

_FIELD_BITS = 32
"""Cells of one field that lie less than ``2 ** _FIELD_BITS`` apart never share a key."""

_LAST_CELL = float(1 << 50)
"""Cells of doubles are numbered up to this; doubles beyond it share the last cell."""

_GREATEST = 1e300
"""Doubles beyond this share the last cell too, NaN and infinity among them."""

_ROUNDING = 2.0**-50
"""Bounds the error of a few sums of doubles, relative to the greatest of them."""

_FINEST = 2.0**-30
"""Cells of doubles are not narrower than the bounds of the difference times this."""


@dataclass(frozen=True)
class Cells:
    """The cells of one field.

    Parameters
    ----------
    difference : Difference
        The term whose columns are cut into cells; bounded on both sides.
    width : int or float
        Of a cell, in the unit of the numbers that are compared.
    """

    difference: Difference
    width: int | float

    def of(self, column: Column, side: int) -> Column:
        """Return the cell that a row lies in; null if its value is."""
        return F.when(column.isNotNull(), self._cell(self.difference.number(column, side)))

    def reached(self, column: Column, side: int) -> tuple[Column, Column]:
        """Return the first and the last cell in which a row's partners can lie, or two nulls."""
        # `least` and `greatest` skip nulls, which would meet one another in one cell.
        first, last = self._reached(column, side)
        return F.when(column.isNotNull(), first), F.when(column.isNotNull(), last)

    def _reached(self, column: Column, side: int) -> tuple[Column, Column]:
        low, high = self._bounds
        nearest, farthest = (-high, -low) if side == 0 else (low, high)
        number = self.difference.number(column, side)
        if self.difference.is_whole:
            return (
                self._cell(_saturated(number, int(nearest))),
                self._cell(_saturated(number, int(farthest))),
            )
        value = _clamped(number.cast("double"), _GREATEST)
        # Doubles are rounded, and decimals where they become doubles.
        error = (F.abs(value) + max(abs(low), abs(high))) * F.lit(_ROUNDING)
        return self._cell(value + nearest - error), self._cell(value + farthest + error)

    @property
    def _bounds(self) -> tuple[int | float, int | float]:
        low, high = _numbers(self.difference)
        return low, max(low, high)  # bounds that exclude each other: any one cell will do

    def _cell(self, number: Column) -> Column:
        """Return the cell of a number: a function that never decreases, so that no match is lost.

        Numbers are divided towards zero. This makes the cell around zero twice as wide as the
        others, which does no harm.
        """
        if self.difference.is_whole:
            return F.call_function("div", number, F.lit(int(self.width)).cast("bigint"))
        value = _clamped(number.cast("double"), _GREATEST)
        return _clamped(value / F.lit(float(self.width)), _LAST_CELL).cast("bigint")


def cells_of(difference: Difference) -> Cells | None:
    """Return the cells of a term, or None if it cannot be cut.

    It cannot if it is an equality, which needs no cells, if it is open at one end, or if its bounds
    are so wide that they exclude next to nothing.
    """
    if difference.is_equality or difference.low is None or difference.high is None:
        return None
    low, high = _numbers(difference)
    farthest = max(abs(low), abs(high))
    if difference.is_whole:
        count = max(1, int(high) - int(low) + 1)
        return Cells(difference, 2 * count) if farthest < difference.farthest // 16 else None
    width = max(2.0 * (high - low), farthest * _FINEST, 1 / _GREATEST)
    return Cells(difference, width) if farthest < _GREATEST / _LAST_CELL**2 else None


def in_cells(
    frame: DataFrame, name: str, cells: Sequence[tuple[Cells, Column]], side: int
) -> DataFrame:
    """Return ``frame`` with the key of the cell that each row lies in, as column ``name``."""
    return frame.withColumn(name, _key([cell.of(column, side) for cell, column in cells]))


def repeated_for_cells(
    frame: DataFrame, name: str, cells: Sequence[tuple[Cells, Column]], side: int
) -> DataFrame:
    """Return every row once for each cell that it reaches, whose key is column ``name``.

    Rows with a null in one of the fields are left out.
    """
    columns = frame.columns
    fields = [f"{name}{at}" for at in range(len(cells))]
    for field, (cell, column) in zip(fields, cells, strict=True):
        frame = frame.withColumn(field, F.explode(F.sequence(*cell.reached(column, side))))
    return frame.select(*columns, _key([F.col(field) for field in fields]).alias(name))


def _key(cells: list[Column]) -> Column:
    """Mix the cells of all fields into one number.

    The cells that one row reaches differ by few in each field, so that their keys differ in the low
    or in the high bits: no pair of rows meets twice. Other cells that share a key only meet rows in
    vain.
    """
    return reduce(lambda mixed, cell: F.shiftleft(mixed, _FIELD_BITS).bitwiseXOR(cell), cells)


def _numbers(difference: Difference) -> tuple[int | float, int | float]:
    """Both bounds: whole numbers as they are, all others as doubles."""
    assert difference.low is not None
    assert difference.high is not None
    if difference.is_whole:
        return int(difference.low), int(difference.high)
    return float(difference.low), float(difference.high)


def _saturated(number: Column, distance: int) -> Column:
    """Return the sum; the least or the greatest number of 64 bits where it does not fit."""
    if distance >= 0:
        return F.least(number, F.lit(MOST_LONG - distance)) + F.lit(distance).cast("bigint")
    return F.greatest(number, F.lit(-MOST_LONG - 1 - distance)) + F.lit(distance).cast("bigint")


def _clamped(value: Column, most: float) -> Column:
    """Return doubles between ``-most`` and ``most``, which NaN becomes, as the greatest."""
    return F.least(F.greatest(value, F.lit(-most)), F.lit(most))
