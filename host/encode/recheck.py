# SPDX-License-Identifier: Apache-2.0
"""Check terms that the accelerator compares only roughly on the values of the pairs it finds."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from host.encode.canonical import doubles
from host.encode.fields import TermTypes, bounds_of
from host.encode.kinds import integer_view
from host.encode.scale import common_tick

__all__ = ["Recheck"]

Array = npt.NDArray[Any]
Bools = npt.NDArray[np.bool_]

_MOST = (1 << 63) - 1

_FAR = 2.0**62
"""Differences below this fit into 64 bits, although doubles tell only about how large they are."""


@dataclass(frozen=True)
class Recheck:
    """A term whose values are compared on the host, and the positions of its columns.

    Parameters
    ----------
    term : TermTypes
        The term.
    places : (int, int)
        Positions of the term's columns among the columns of the left and of the right rows.
    """

    term: TermTypes
    places: tuple[int, int]

    @classmethod
    def of(cls, term: TermTypes, left: pa.Schema, right: pa.Schema) -> "Recheck":
        """Find the columns of a term in the schemas of both sides."""
        mine, other = (column.column for column in term.columns)
        return cls(term, (left.get_field_index(mine), right.get_field_index(other)))

    def holds(self, columns: Sequence[pa.Array]) -> Bools:
        """Return for which pairs the term holds, from both columns of the pairs.

        No value of a pair is null. Differences of integers are exact. As in Spark, the difference
        of doubles is compared with the bounds, and NaN is above all numbers.
        """
        if self.term.is_float_difference:
            return self._holds_for_doubles(*(doubles(column) for column in columns))
        left, right = (
            of_side.comparable(column)
            for of_side, column in zip(self.term.columns, columns, strict=True)
        )
        if self.term.left.kind.is_coded:
            equal: Bools = pc.equal(left, right).to_numpy(zero_copy_only=False)
            return equal
        return self._holds_for_integers(integer_view(left), integer_view(right))

    def _holds_for_doubles(self, left: Array, right: Array) -> Bools:
        with np.errstate(invalid="ignore", over="ignore"):
            difference = left - right
        kept = np.ones(len(difference), np.bool_)
        if self.term.term.low is not None:
            kept &= (difference >= float(self.term.term.low)) | np.isnan(difference)  # type: ignore[arg-type]
        if self.term.term.high is not None:
            kept &= difference <= float(self.term.term.high)  # type: ignore[arg-type]
        return kept

    @cached_property
    def _ticks(self) -> tuple[tuple[int, int], int | None, int | None]:
        """Ticks in a unit of either column, and the bounds in ticks."""
        tick, factors = common_tick(*self.term.columns)
        bounds = bounds_of(self.term, tick, 1)
        return factors, bounds.low, bounds.high

    def _holds_for_integers(self, left: Array, right: Array) -> Bools:
        factors, low, high = self._ticks
        ours, theirs = (
            values.astype(np.uint64) * np.uint64(factor)
            for values, factor in zip((left, right), factors, strict=True)
        )
        difference = (ours - theirs).view(np.int64)  # right modulo 2 ** 64
        kept = np.ones(len(difference), np.bool_)
        if low is not None:
            kept &= difference >= low if abs(low) <= _MOST else np.bool_(low < 0)
        if high is not None:
            kept &= difference <= high if abs(high) <= _MOST else np.bool_(high > 0)
        about = left * float(factors[0]) - right * float(factors[1])
        for at in np.flatnonzero(np.abs(about) >= _FAR):
            exact = int(left[at]) * factors[0] - int(right[at]) * factors[1]
            kept[at] = (low is None or low <= exact) and (high is None or exact <= high)
        return kept
