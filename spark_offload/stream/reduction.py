# SPDX-License-Identifier: Apache-2.0
"""Rows that can have a partner among others, and parts of kept rows that a worker still holds."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import product
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host.columns.fields import TermTypes, bounds_of
from host.columns.kinds import column_type, common_tick, contiguous, integer_view, validity
from host.query.queries import Query

__all__ = [
    "Cells",
    "GroupParts",
    "HELD",
    "HeldParts",
    "KeptPart",
    "ReachedCells",
    "Reduction",
    "identity_of",
]

# Rows that can have a partner among others, found before a device is sent any: a semi-join.
#
# A micro-batch brings few rows, and of the many that are kept only those matter that share a
# value with one of them. The values of all terms are cut into cells as wide as a term's range of
# differences, so that the partners of a row lie in at most two cells of a field. The cells that
# new rows reach are marked in a table of bits, by a hash; a kept row whose own cell is not marked
# has no partner. A few rows remain that have none either, which does no harm.
#
# So what a device is sent, and what it finds, goes by what a micro-batch brings, and not by what
# is kept.

Bools = npt.NDArray[np.bool_]
Int64s = npt.NDArray[np.int64]

_FARTHEST = 1 << 61
"""Values and bounds below this have cells; sums of two fit into 64 bits."""

_CELLS = 64
"""Bits of the table for every cell that is marked, at least: about one in so many is by chance."""

_FACTORS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], np.uint64)
"""Odd factors of the hash, one for each field; further terms tell nothing more."""


@dataclass(frozen=True)
class _Field:
    """A term whose values are cut into cells; bounds and values in ticks."""

    types: TermTypes
    factors: tuple[int, int]
    low: int
    high: int

    @property
    def width(self) -> int:
        """Of a cell."""
        return self.high - self.low + 1

    def values(self, table: pa.Table, side: int) -> tuple[Int64s, Bools | None] | None:
        """Return the values of a side, and which are not null; None if one has no cell."""
        column = self.types.columns[side]
        array = column.comparable(contiguous(table.column(column.column)))
        view, valid = integer_view(array), validity(array)
        known = view if valid is None else view[valid]
        factor = self.factors[side]
        if len(known) and max(-int(known.min()), int(known.max())) * factor >= _FARTHEST:
            return None
        return view.astype(np.int64) * np.int64(factor), valid

    def reached(self, values: Int64s, side: int) -> tuple[Int64s, ...]:
        """Return the cells, one or two for each row of a side, in which its partners lie."""
        first = values + np.int64(-self.high if side == 0 else self.low)
        if self.width == 1:
            return (first,)
        return first // self.width, (first + (self.width - 1)) // self.width


class Reduction:
    """Filter of the rows of one side that can have a partner among those of the other.

    Terms that compare text, floating-point numbers, or with an open bound are left to the device.

    Parameters
    ----------
    query : Query
        The join.
    left, right : Schema
        Columns of both sides.
    """

    def __init__(self, query: Query, left: pa.Schema, right: pa.Schema) -> None:
        fields = []
        for term in query.terms:
            types = TermTypes.of(
                term, column_type(left, term.left, "left"), column_type(right, term.right, "right")
            )
            if types.left.kind.is_coded or term.low is None or term.high is None:
                continue
            tick, factors = common_tick(*types.columns)
            bounds = bounds_of(types, tick, 1)
            assert bounds.low is not None
            assert bounds.high is not None
            if bounds.low <= bounds.high and max(-bounds.low, bounds.high) < _FARTHEST:
                fields.append(_Field(types, factors, bounds.low, bounds.high))
        self._fields = fields[: len(_FACTORS)]

    def cells(self, rows: pa.Table, side: int) -> "Cells | None":
        """Return the cells that rows of a side lie in; None if nothing is known of them."""
        if not self._fields:
            return None
        own = [field.values(rows, side) for field in self._fields]
        cells, valid = [], []
        for field, values in zip(self._fields, own, strict=True):
            if values is None:
                return None
            cells.append(values[0] // field.width)
            if values[1] is not None:
                valid.append(values[1])
        known = np.logical_and.reduce(valid) if valid else None
        return Cells((_hashes(cells) >> np.uint64(32)).astype(np.uint32), known)

    def reached(self, rows: pa.Table, side: int) -> "ReachedCells | None":
        """Return the cells in which partners of rows of a side lie; None if nothing is known."""
        if not self._fields:
            return None
        met = [field.values(rows, side) for field in self._fields]
        marks = []
        for field, values in zip(self._fields, met, strict=True):
            if values is None:
                return None
            marks.append(field.reached(values[0], side))
        return ReachedCells(marks)


@dataclass(frozen=True)
class Cells:
    """The cells that some rows lie in.

    Parameters
    ----------
    hashes : array of uint32
        Of the cell of each row.
    known : array of bool, or None
        Rows that compare no null; None: all of them.
    """

    hashes: npt.NDArray[np.uint32]
    known: Bools | None


class ReachedCells:
    """A table of bits of the cells in which some rows have partners.

    Parameters
    ----------
    marks : sequence of tuple of array
        For each field the cells, one or two for each row, that it reaches.
    """

    def __init__(self, marks: Sequence[tuple[Int64s, ...]]) -> None:
        bits = max(10, (_CELLS * len(marks[0][0]) << len(marks)).bit_length())
        self._shift = 32 - min(bits, 32)
        self._marked = np.zeros(1 << 32 - self._shift, np.bool_)
        for cells in product(*marks):
            self._marked[_hashes(cells) >> np.uint64(32 + self._shift)] = True

    def among(self, cells: Cells) -> Bools:
        """Return which of the rows with these cells can have a partner."""
        found: Bools = self._marked[cells.hashes >> np.uint32(self._shift)]
        return found if cells.known is None else found & cells.known


def _hashes(cells: Sequence[Int64s]) -> npt.NDArray[np.uint64]:
    """Return a hash for each cell, of which the first bits are the best."""
    mixed = np.zeros(len(cells[0]), np.uint64)
    for cell, factor in zip(cells, _FACTORS, strict=False):
        mixed = (mixed ^ cell.view(np.uint64)) * factor
        mixed ^= mixed >> np.uint64(29)
    return mixed * _FACTORS[0]


# Parts of kept rows that a Python worker still holds from an earlier micro-batch.
#
# The state store is what counts, and this is a cache of it. The directory of a group lists an
# identity for each part, a digest of its bytes. A part that is held is believed only if the
# directory, as Spark has just read it, lists its identity. So a task that runs again after a
# failure, moves to another worker, or goes back to an earlier version of the state has the same
# rows: it reads the parts that its worker does not hold.

MOST_BYTES = 1 << 28
"""Bytes of rows that a worker holds from one micro-batch to the next, at most."""


def identity_of(blob: bytes) -> int:
    """Return the identity of a part: 64 bits of a digest of its bytes, as a signed number."""
    return int.from_bytes(blake2b(blob, digest_size=8).digest(), "little", signed=True)


class KeptPart:
    """Rows of one side, in the order in which they came, and the cells that they lie in.

    Parameters
    ----------
    rows : Table
        The rows, which are not changed.
    """

    def __init__(self, rows: pa.Table) -> None:
        self.rows = rows
        self.bytes = rows.nbytes
        self._cells: tuple[Cells | None] | None = None

    def cells(self, reduction: Reduction, side: int) -> Cells | None:
        """Return the cells of the rows by the one question that is asked of them."""
        if self._cells is None:
            self._cells = (reduction.cells(self.rows, side),)
        return self._cells[0]


GroupParts: TypeAlias = dict[tuple[int, int], KeptPart]
"""Parts of a group by their side and identity; both sides may have the same bytes."""


class HeldParts:
    """The parts that a worker holds, by query and group.

    Parameters
    ----------
    most_bytes : int
        Bytes of rows that are held, at most, between two groups.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._groups: OrderedDict[tuple[str, int], GroupParts] = OrderedDict()

    def of(self, query: str, group: int) -> GroupParts:
        """Return the parts of a group, to be changed in place."""
        parts = self._groups.setdefault((query, group), {})
        self._groups.move_to_end((query, group))
        return parts

    def trim(self) -> None:
        """Let go of the groups that have not been used for the longest time, if there is need."""
        sizes = {
            place: sum(part.bytes for part in parts.values())
            for place, parts in self._groups.items()
        }
        total = sum(sizes.values())
        for place, size in sizes.items():
            if total <= self._most_bytes and size:
                break
            total -= size
            del self._groups[place]


HELD = HeldParts()
"""What the Python worker at hand holds."""
