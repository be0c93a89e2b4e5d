# SPDX-License-Identifier: Apache-2.0
"""Rows of a group that an as-of join keeps: left rows that wait, and right rows they may need.

Both lie in the state as one blob each, which is written anew in every micro-batch. There are few of
them: without a tolerance one right row for each key, else those of a tolerance's length, and the
rows that the watermark has not passed.
"""

import pyarrow as pa

from host.operators.asof import AsofStream
from spark_offload.layout.tagged import LEFT, RIGHT
from spark_offload.streaming.blobs import from_blob, microseconds, to_blob, whole_table
from spark_offload.streaming.state_protocols import MapStore, Timers, ValueStore
from spark_offload.streaming.task import AsofStreamTask

__all__ = ["AsofState"]


class AsofState:
    """The state of one group, in one call of the processor.

    Parameters
    ----------
    task : AsofStreamTask
        What is joined.
    directory, rows : ValueStore, MapStore
        Where the state lies: the numbers of rows of both sides and the timer; the blobs by side.
    timers : Timers
        Where the timer is set that joins and forgets rows although none come.

    Attributes
    ----------
    stream : AsofStream
        The join, with the rows that were kept.
    before : int
        Rows that were kept.
    """

    def __init__(
        self, task: AsofStreamTask, directory: ValueStore, rows: MapStore, timers: Timers
    ) -> None:
        self._task = task
        self._directory = directory
        self._rows = rows
        self._timers = timers
        self.stream = AsofStream(task.left, task.right, task.query, ordered=False)
        found = directory.get()
        self._timer = 0
        if found is not None:
            _, timer, _ = found
            assert isinstance(timer, int)
            self._timer = timer
            self.stream.waiting, self.stream.kept = self._read(LEFT), self._read(RIGHT)
        self.before = self.kept

    @property
    def kept(self) -> int:
        """Rows that are kept now."""
        return self.stream.waiting.num_rows + self.stream.kept.num_rows

    def save(self, fired: int | None = None) -> None:
        """Write the rows, and set the timer for the next one that is decided or forgotten.

        Parameters
        ----------
        fired : int, optional
            The timer that has just gone off, which Spark removes by itself.
        """
        timer = self._next_timer()
        if timer != self._timer:
            if self._timer not in (0, fired):
                self._timers.deleteTimer(self._timer)
            if timer:
                self._timers.registerTimer(timer)
        self._timer = timer
        self._write(LEFT, self.stream.waiting)
        self._write(RIGHT, self.stream.kept)
        if self.kept:
            self._directory.update((self.kept, timer, b""))
        else:
            self._directory.clear()

    def _next_timer(self) -> int:
        """Return the milliseconds of the watermark at which a row leaves; zero if none does."""
        if self.stream.waiting.num_rows:
            # Before these rows leave, no right row is forgotten that they could need.
            times = microseconds(self.stream.waiting, self._task.order(LEFT))
            reach = self._task.ahead
        elif self._task.tolerance is not None and self.stream.kept.num_rows:
            times = microseconds(self.stream.kept, self._task.order(RIGHT))
            reach = self._task.tolerance
        else:
            return 0
        # When the watermark has passed the microsecond; rounded up to milliseconds.
        return max(1, -(-(int(times.min()) + reach + 1) // 1000))

    def _read(self, side: int) -> pa.Table:
        value = self._rows.getValue((side, 0, 0))
        schema = self._task.schema(side)
        if value is None:
            return schema.empty_table()
        blob = value[0]
        assert isinstance(blob, (bytes, bytearray))
        return whole_table(from_blob(bytes(blob), schema), schema)

    def _write(self, side: int, table: pa.Table) -> None:
        if table.num_rows:
            blob = to_blob(table.to_batches(), self._task.schema(side))
            self._rows.updateValue((side, 0, 0), (blob,))
        elif self._rows.getValue((side, 0, 0)) is not None:
            self._rows.removeKey((side, 0, 0))
