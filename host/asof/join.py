# SPDX-License-Identifier: Apache-2.0
"""The as-of join of two tables, from Arrow to Arrow."""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host.asof.device_rows import DeviceRows
from host.asof.matching import Times, closest_parts
from host.asof.rows import joined_rows
from host.asof.sides import encode_sides, require_tolerance
from host.device import Device
from host.query.asof_query import AsofQuery
from host.query.tables import output_schema, without_views
from host.reference.asof import Keyed, reference_asof
from host.reference.join_type import NO_ROW, JoinType

__all__ = ["AsofJoin"]

Int64s = npt.NDArray[np.int64]

#: Rows in each batch of the result.
BATCH_ROWS = 1 << 16


class AsofJoin:
    """One as-of join of two tables, checked when it is made.

    Results come in the order of the left rows' times, and in input order where times are equal.

    Parameters
    ----------
    left, right : pa.Table
        The rows.
    query : AsofQuery
        The join.
    device : Device, optional
        An open device that finds the right rows, which nobody else uses meanwhile; it stays open.
        Without one, the host finds them.

    Attributes
    ----------
    schema : pa.Schema
        Schema of the result: the left columns, then the right ones.
    found_by : DeviceRows or None
        What drives the device; it has the cycles and counters once there are :attr:`rows`.

    Raises
    ------
    UsageError
        If a column is missing, has a type that cannot be compared or that gives no order, holds a
        null or a decreasing time where it must not, if the tolerance has the wrong unit, or if the
        device is a chain of cores.
    """

    def __init__(
        self, left: pa.Table, right: pa.Table, query: AsofQuery, device: Device | None = None
    ) -> None:
        self.query = query
        left, right = without_views(left), without_views(right)
        self.schema = output_schema(left.schema, right.schema, query.suffix, query.how)
        self._tables = (left, right)
        self._rows: tuple[Int64s, Int64s] | None = None
        require_tolerance(left.schema, query)
        self._sides = sides = encode_sides(left, right, query)
        self.found_by = (
            None
            if device is None
            else DeviceRows(sides.left, sides.right, device, tolerance=sides.tolerance)
        )

    @property
    def rows(self) -> tuple[Int64s, Int64s]:
        """Row numbers of both tables in each result; ``NO_ROW`` for a missing right row."""
        return _together(list(self._parts()))

    def reference_rows(self) -> tuple[Int64s, Int64s]:
        """Return what :attr:`rows` should be, by the reference, which takes a row at a time."""
        found = reference_asof(
            _keyed(self._sides.left),
            _keyed(self._sides.right),
            self.query.direction,
            tolerance=self._sides.tolerance,
            exact=self.query.allow_exact_matches,
        )
        return self._wanted(*self._sides.joined(np.array(found, np.int64)))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the result as it is found; a device works on meanwhile."""
        for left, right in self._parts():
            for begin in range(0, len(left), BATCH_ROWS):
                part = slice(begin, begin + BATCH_ROWS)
                yield joined_rows(self._tables, (left[part], right[part]), self.schema)

    def table(self) -> pa.Table:
        """Return the result as a table."""
        return pa.Table.from_batches(self.batches(), self.schema)

    def _parts(self) -> Iterator[tuple[Int64s, Int64s]]:
        """Yield the row numbers of consecutive results; a second call need not find them again."""
        if self._rows is not None:
            yield self._rows
            return
        parts = []
        first = 0  # of the left tuples of the next part
        for found in closest_parts(
            self._sides.left,
            self._sides.right,
            self.query.direction,
            tolerance=self._sides.tolerance,
            exact=self.query.allow_exact_matches,
            neighbours=self.found_by,
        ):
            parts.append(self._wanted(*self._sides.joined(found, first)))
            yield parts[-1]
            first += len(found)
        self._rows = _together(parts)

    def _wanted(self, left: Int64s, right: Int64s) -> tuple[Int64s, Int64s]:
        """Return the rows that are results."""
        if self.query.how is JoinType.INNER:
            matched = right != NO_ROW
            return left[matched], right[matched]
        return left, right


def _together(parts: Sequence[tuple[Int64s, Int64s]]) -> tuple[Int64s, Int64s]:
    """Return the row numbers of all parts, of which there is at least one."""
    left, right = zip(*parts, strict=True)
    return np.concatenate(left), np.concatenate(right)


def _keyed(side: Times) -> list[Keyed]:
    """Return the rows of a side as the reference takes them."""
    keys = [0] * len(side.time) if side.key is None else side.key.tolist()
    return list(zip(side.time.tolist(), keys, strict=True))
