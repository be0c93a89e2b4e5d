# SPDX-License-Identifier: Apache-2.0
"""The as-of join of two tables, from Arrow to Arrow."""

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host.asof.device_rows import DeviceRows
from host.asof.matching import Times, closest_rows
from host.asof.rows import joined_rows
from host.asof.sides import encode_sides, require_tolerance
from host.device import Device
from host.query.asof_query import AsofQuery
from host.query.tables import output_schema
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
        self.schema = output_schema(left.schema, right.schema, query.suffix, query.how)
        self._tables = (left, right)
        require_tolerance(left.schema, query)
        self._sides = sides = encode_sides(left, right, query)
        self.found_by = (
            None
            if device is None
            else DeviceRows(sides.left, sides.right, device, tolerance=sides.tolerance)
        )

    @cached_property
    def rows(self) -> tuple[Int64s, Int64s]:
        """Row numbers of both tables in each result; ``NO_ROW`` for a missing right row."""
        found = closest_rows(
            self._sides.left,
            self._sides.right,
            self.query.direction,
            tolerance=self._sides.tolerance,
            exact=self.query.allow_exact_matches,
            neighbours=self.found_by,
        )
        return self._numbered(found)

    def reference_rows(self) -> tuple[Int64s, Int64s]:
        """Return what :attr:`rows` should be, by the reference, which takes a row at a time."""
        found = reference_asof(
            _keyed(self._sides.left),
            _keyed(self._sides.right),
            self.query.direction,
            tolerance=self._sides.tolerance,
            exact=self.query.allow_exact_matches,
        )
        return self._numbered(np.array(found, np.int64))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the result."""
        left, right = self.rows
        for begin in range(0, len(left), BATCH_ROWS):
            part = slice(begin, begin + BATCH_ROWS)
            yield joined_rows(self._tables, (left[part], right[part]), self.schema)

    def table(self) -> pa.Table:
        """Return the result as a table."""
        return pa.Table.from_batches(self.batches(), self.schema)

    def _numbered(self, found: Int64s) -> tuple[Int64s, Int64s]:
        """Return row numbers of the tables for the right tuple of every left tuple with a key."""
        row, right = self._sides.row, self._sides.numbered(found)
        if self.query.how is JoinType.INNER:
            matched = right != NO_ROW
            return row[matched], right[matched]
        return row, right


def _keyed(side: Times) -> list[Keyed]:
    """Return the rows of a side as the reference takes them."""
    keys = [0] * len(side.time) if side.key is None else side.key.tolist()
    return list(zip(side.time.tolist(), keys, strict=True))
