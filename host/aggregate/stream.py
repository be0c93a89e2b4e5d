# SPDX-License-Identifier: Apache-2.0
"""Aggregation over windows of rows that come in pieces: results leave as windows end."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host.aggregate.keys import KeyNumbers
from host.aggregate.open_windows import HostWindows, MakeWindows
from host.aggregate.time_column import TimeColumn
from host.aggregate.values import AggregateStates
from host.errors import DisorderError
from host.query.aggregate_query import BOUNDARIES, AggregateQuery
from host.windowed.panes import WindowStates

__all__ = ["WindowAggregation"]

Int64s = npt.NDArray[np.int64]


class WindowAggregation:
    """An aggregation whose rows come in pieces.

    Results come in the order of (window, key), keys ascending and nulls last. Their columns are the
    boundaries of the window, the keys, and the aggregates.

    Parameters
    ----------
    schema : pa.Schema
        Columns of the input.
    query : AggregateQuery
        The aggregation.
    windows : MakeWindows
        Makes what keeps the states of windows that have not ended; by default, the host does.

    Attributes
    ----------
    schema : pa.Schema
        Columns of the results.
    rows, results : int
        Rows that have come, and results that have left.
    late_rows : int
        Rows that were left out, because all their windows had ended.
    held : int
        Number of states (on a device: of rows that it has not got yet) that the host keeps, which
        is what memory grows with.

    Raises
    ------
    UsageError
        If the query does not suit the columns.
    """

    def __init__(
        self, schema: pa.Schema, query: AggregateQuery, windows: MakeWindows = HostWindows
    ) -> None:
        self.query = query
        self._time = TimeColumn(schema, query)
        self._keys = KeyNumbers(schema, query.keys)
        self._values = AggregateStates(schema, query.aggregates, parts=query.parts)
        self.schema = pa.schema(
            [(name, self._time.type) for name in BOUNDARIES]
            + [(field.name, field.type) for field in self._keys.schema]
            + list(self._values.schema)
        )
        self._open = windows(self._time, self._values)
        self._done: int | None = None  # number of the last window that has ended
        self._last: int | None = None
        self.rows = self.results = self.late_rows = 0

    @property
    def held(self) -> int:
        """Number of states or rows that the host keeps."""
        return len(self._open)

    def rows_in_order(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Take the next rows, which are sorted by time; return results of windows that they end.

        Raises
        ------
        DisorderError
            If a time is less than the one before it.
        """
        times = self._time.read(batch, self.rows)
        if not len(times):
            return self._results(None)
        before = times[0] if self._last is None else self._last
        falls = np.flatnonzero(times < np.concatenate([[before], times[:-1]]))
        if len(falls):
            at = int(falls[0])
            earlier = before if at == 0 else times[at - 1]
            raise DisorderError(
                self.query.time, self.rows + at, self._shown(earlier), self._shown(times[at])
            )
        self._last = int(times[-1])
        self._add(batch, times, floor=self._last // self._time.pane)
        return self._until(self._last)

    def rows_until(self, batch: pa.RecordBatch, time: object) -> pa.RecordBatch:
        """Take more rows in any order; return results of the windows that a watermark ends.

        No row that comes later should have a time less than ``time``, a value of the column of time
        and the watermark; one that has is left out of windows that have ended.
        """
        self._add(batch, self._time.read(batch, self.rows))
        return self._until(self._time.units(time))

    def more_rows(self, batch: pa.RecordBatch) -> None:
        """Take more rows in any order, without a watermark."""
        self._add(batch, self._time.read(batch, self.rows))

    def last_rows(self, batch: pa.RecordBatch | None = None) -> pa.RecordBatch:
        """Take the last rows; return the results of all windows that are left."""
        if batch is not None:
            self._add(batch, self._time.read(batch, self.rows))
        return self._results(self._windows(None))

    def _add(self, batch: pa.RecordBatch, times: Int64s, floor: int | None = None) -> None:
        """Add rows with these times to the states."""
        self.rows += batch.num_rows
        if not len(times):
            return
        keys, values = self._keys.of_rows(batch), self._values.of_rows(batch)
        panes = times // self._time.pane
        if self._done is not None:
            open_ = times // self._time.advance > self._done
            self.late_rows += int(np.count_nonzero(~open_))
            if not open_.all():
                keys, panes, values = keys[open_], panes[open_], [at[open_] for at in values]
        self._open.add(keys, panes, values, floor)

    def _until(self, watermark: int) -> pa.RecordBatch:
        """Return the results of the windows that end at or before a time; forget what is done."""
        last = (watermark - self._time.window) // self._time.advance
        if self._done is not None and last <= self._done:
            return self._results(None)
        found = self._windows(last)
        self._done = last
        return self._results(found)

    def _windows(self, last: int | None) -> WindowStates:
        first = None if self._done is None else self._done + 1
        return self._open.ended(self._keys.ranks(), first, last)

    def _results(self, found: WindowStates | None) -> pa.RecordBatch:
        if found is None or not len(found.window):
            # Not from lists: Arrow makes no dictionaries of decimals out of these.
            nothing = [pa.nulls(0, kind) for kind in self.schema.types]
            return pa.RecordBatch.from_arrays(nothing, schema=self.schema)
        columns = [
            *self._time.boundaries(found.window),
            *self._keys.rows(found.key),
            *self._values.results(found.states),
        ]
        self.results += len(found.window)
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _shown(self, time: int) -> object:
        return self._time.values_of([time])[0]
