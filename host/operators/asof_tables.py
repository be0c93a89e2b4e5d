# SPDX-License-Identifier: Apache-2.0
"""The as-of join of two tables, on the host or on a device, from Arrow to Arrow."""

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host.devices import Device
from host.engine.asof import SortedRows, Times, places
from host.errors import AcceleratorLimitError
from host.operators.asof import encode_sides, joined_rows, require_tolerance
from host.query.ordering import Ordering
from host.query.queries import AsofQuery, Query
from host.query.tables import output_schema, without_views
from host.reference.arrivals import Side
from host.reference.asof import Keyed, reference_asof
from host.reference.types import NO_ROW, JoinType
from host.session.cores import failed_cores
from host.session.join import Join
from host.session.params import Progress

__all__ = [
    "AsofJoin",
    "DeviceRows",
]

# Find the right row of every left row on a device: one side is stored, the other one probes.
#
# Both sides go through the device in the order of time. The window of the right rows is as large
# as the tolerance needs, and a left row's search ends with the newest row of its key in that
# window. Each core answers with the newest row that it has, and the newest of these is the row
# that is wanted; so as few cores store rows as the window needs. Times themselves stay on the
# host: an order of arrival is all that the device has to know.
#
# Rows ahead are found in the same way, by sending both sides backwards.

Int64s = npt.NDArray[np.int64]
#: Keys of left and of right rows, of which either both are there or neither.
Keys: TypeAlias = tuple[Int64s | None, Int64s | None]

_LATEST = (1 << 64) - 1


class DeviceRows:
    """Finds right rows by a join on a device; see :class:`host.engine.asof.Neighbours`.

    If the rows within the tolerance are more than the device holds, its window is the largest one,
    and the left rows without an answer are looked up on the host. The newest row of the window is
    the newest row of all, so the other answers are right.

    Parameters
    ----------
    left, right : Times
        The rows, both sorted by time; either both sides have keys, or neither.
    device : Device
        An open device, which nobody else uses meanwhile; it stays open.
    tolerance : int, optional
        Largest distance in time. Rows that are farther away need not be found.

    Attributes
    ----------
    device : Device
        The device.
    cycles : int
        Clock cycles that the device has run.
    counters : Counter of str
        Increases of the device's counters.
    window : int
        Right rows in the largest window so far.
    looked_up : int
        Left rows that were looked up on the host, because they had no answer in the device's
        largest window.

    Raises
    ------
    AcceleratorLimitError
        If the device is a chain of cores, in which no core has the newest rows of the window.
    """

    def __init__(
        self, left: Times, right: Times, device: Device, *, tolerance: int | None = None
    ) -> None:
        if device.manifest.chain is not None:
            raise AcceleratorLimitError(
                f"Device {device.uri!r} is a {device.manifest.chain.architecture} join, whose "
                f"tuples meet while they move, and which cannot end a search at the newest match",
                "as-of joins need another bundle, with engine 'index' if they are to be quick",
            )
        self.device = device
        self.cycles = self.window = self.looked_up = 0
        self.counters: Counter[str] = Counter()
        self._left, self._right = left, right
        self._tolerance = None if tolerance is None else np.uint64(min(tolerance, _LATEST))

    def last_before(self, number: Int64s) -> Iterator[Int64s]:
        """Yield the last row of each left row's key whose number is less than ``number``.

        A part comes when the device has answered its left rows, while it works on later ones.
        """
        times = self._left.time
        first = np.zeros_like(number)  # of the rows within the tolerance
        if self._tolerance is not None:
            earliest = np.where(times > self._tolerance, times - self._tolerance, np.uint64(0))
            first = places(self._right.time, earliest, after=False)
        needed = int((number - first).max(initial=0))
        parts = self._newest((self._left.key, self._right.key), number, needed)
        if needed <= self.device.manifest.capacity:
            yield from parts
        else:
            found = np.concatenate(list(parts))
            yield self._completed(found, number, lambda groups, of: next(groups.last_before(of)))

    def first_from(self, number: Int64s) -> Int64s:
        """Return the first row of each left row's key whose number is at least ``number``."""
        times, rows = self._left.time, len(self._right.time)
        end = np.full_like(number, rows)  # of the rows within the tolerance
        if self._tolerance is not None:
            latest = times + np.minimum(np.uint64(_LATEST) - times, self._tolerance)
            end = places(self._right.time, latest, after=True)
        needed = int((end - number).max(initial=0))
        # Looking ahead is looking back in an order that runs backwards.
        left, right = self._left.key, self._right.key
        keys = (left[::-1], right[::-1]) if left is not None and right is not None else (None, None)
        last = np.concatenate(list(self._newest(keys, rows - number[::-1], needed)))[::-1]
        found = np.where(last == NO_ROW, NO_ROW, rows - 1 - last)
        if needed <= self.device.manifest.capacity:
            return found
        return self._completed(found, number, SortedRows.first_from)

    def _newest(self, keys: Keys, number: Int64s, needed: int) -> Iterator[Int64s]:
        """Yield the last row of each left row's key whose number is less than ``number``.

        Parameters
        ----------
        keys : tuple of array of int64 or None
            Keys of the left and of the right rows.
        number : array of int64
            Ascending: how many right rows come before each left row.
        needed : int
            How many of the last ones are wanted in the window; there are fewer if the device
            cannot hold so many.
        """
        found = np.full(len(number), NO_ROW, np.int64)
        if not needed:
            yield found
            return
        window = min(needed, self.device.manifest.capacity)
        # On a tie of places, a stored row comes before a row that probes.
        stored = {"place": np.arange(len(self._right.time))}
        probes = {"place": number - 1}
        on = None
        for columns, key in zip((probes, stored), keys, strict=True):
            if key is not None:
                columns["key"] = key
                on = "key"
        answered = _Answered(number)
        join = Join(
            pa.table(stored),
            pa.table(probes),
            Query(
                on=on, time="place", rows=window,
                ordering=Ordering.none(), sorted=True,
            ),
            self.device,
            newest_of=Side.R,
            segments=self._segments(window),
            record=True,
            report=answered.note,
        )  # fmt: skip
        begin = came = 0
        with closing(join.batches()) as batches:
            for _ in batches:
                row, probe = join.measured.take_pairs()
                came += len(row)
                # The other pairs were found by rows of the right table, which probe as well.
                earlier = row < number[probe]
                np.maximum.at(found, probe[earlier], row[earlier])
                end = answered.left_rows(came)
                if end > begin:
                    yield found[begin:end]
                    begin = end
        self.window = max(self.window, window)
        self.cycles += join.measured.cycles
        self.counters.update(join.counters())
        if begin < len(found):
            yield found[begin:]

    def _segments(self, window: int) -> list[tuple[int, list[int]]]:
        """Let as few cores store as the window needs, because each that does sends an answer."""
        manifest = self.device.manifest
        live = [n for n in range(manifest.storage.cores) if n not in failed_cores(self.device)]
        fewest = -(-window // manifest.storage.sub_window)
        if fewest >= len(live) or "SEGMENT" not in manifest.operations:
            return []
        return [(0, live[:fewest])]

    def _completed(
        self, found: Int64s, number: Int64s, lookup: Callable[[SortedRows, Int64s], Int64s]
    ) -> Int64s:
        """Look up the left rows without an answer, because the window was smaller than needed."""
        missing = np.flatnonzero(found == NO_ROW)
        self.looked_up += len(missing)
        key = self._left.key
        left = Times(self._left.time[missing], None if key is None else key[missing])
        found[missing] = lookup(SortedRows(left, self._right), number[missing])
        return found


class _Answered:
    """Tells how many left rows are answered, by what their join reports.

    A report counts pairs that have been decoded, and the reader gets these later.

    Parameters
    ----------
    number : array of int64
        Ascending: how many right rows come before each left row.
    """

    def __init__(self, number: Int64s) -> None:
        # The left rows before it come first as well.
        self._places = number + np.arange(len(number))
        self._reports: deque[Progress] = deque()
        self._arrivals = 0

    def note(self, progress: Progress) -> None:
        """Take a report."""
        self._reports.append(progress)

    def left_rows(self, pairs: int) -> int:
        """Return how many first left rows have all of their pairs among the first ``pairs``."""
        while self._reports and self._reports[0].pairs <= pairs:
            self._arrivals = self._reports.popleft().tuples
        return int(np.searchsorted(self._places, self._arrivals))


# The as-of join of two tables, from Arrow to Arrow.

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
            else DeviceRows(sides.left, sides.right, device, tolerance=sides.search.tolerance)
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
            tolerance=self._sides.search.tolerance,
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
        sides = self._sides
        for found in sides.search.parts(sides.left, sides.right, self.found_by):
            parts.append(self._wanted(*sides.joined(found, first)))
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
