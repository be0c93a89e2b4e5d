# SPDX-License-Identifier: Apache-2.0
"""Check terms that the accelerator compares only roughly on the values of the pairs it finds."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host.encode.canonical import doubles
from host.encode.fields import TermTypes

__all__ = ["Recheck"]

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Recheck:
    """A term on floating-point columns, and the positions of these columns.

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

        As in Spark, the difference of doubles is compared with the bounds, and NaN is above all
        numbers.
        """
        left, right = (doubles(column) for column in columns)
        with np.errstate(invalid="ignore", over="ignore"):
            difference = left - right
        kept = np.ones(len(difference), np.bool_)
        if self.term.term.low is not None:
            kept &= (difference >= float(self.term.term.low)) | np.isnan(difference)  # type: ignore[arg-type]
        if self.term.term.high is not None:
            kept &= difference <= float(self.term.term.high)  # type: ignore[arg-type]
        return kept
