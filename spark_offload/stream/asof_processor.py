# SPDX-License-Identifier: Apache-2.0
"""What happens to a group of rows of an as-of join in a micro-batch, and which rows it keeps."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
import time

import pandas as pd
import pyarrow as pa

from host import JoinError
from host.operators.asof import AsofStream
from spark_offload.errors import in_partition, task_partition
from spark_offload.partitioning.tagged import LEFT, RIGHT
from spark_offload.stream.groups import REGISTRY
from spark_offload.stream.processor import new_rows, output_row
from spark_offload.stream.task import (
    AsofStreamTask,
    MapStore,
    Timers,
    ValueStore,
    from_blob,
    microseconds,
    require_group,
    require_question,
    to_blob,
    whole_table,
)
from spark_offload.task.join import spare_modules

__all__ = [
    "AsofGroups",
    "AsofState",
]

# Rows of a group that an as-of join keeps: left rows that wait, and right rows they may need.
#
# Both lie in the state as one blob each, which is written anew in every micro-batch. There are
# few of them: without a tolerance one right row for each key, else those of a tolerance's length,
# and the rows that the watermark has not passed.


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


# What happens to a group of rows of an as-of join in a micro-batch.

_NO_TIME = -(1 << 63)
"""Microseconds that no watermark has reached."""


class AsofGroups:
    """The as-of join in one task of one micro-batch, group after group.

    Takes the same as :class:`~spark_offload.stream.processor.GroupJoin`.
    """

    def __init__(
        self,
        task: AsofStreamTask,
        question: ValueStore,
        directory: ValueStore,
        rows: MapStore,
        timers: Timers,
    ) -> None:
        self._task = task.in_query()
        self._question = question
        self._stores = (directory, rows, timers)

    def rows_came(
        self, group: int, frames: Iterable[pd.DataFrame], watermark_ms: int
    ) -> Iterator[pd.DataFrame]:
        """Join the new rows of a group with each other and with those that were kept."""
        with _errors_told():
            if group == REGISTRY:
                require_question(self._question, self._task.question)
                for _ in frames:
                    pass
                return
            new, late = new_rows(frames, self._task, watermark_ms)
            yield from self._joined(new, late, watermark_ms)

    def timer_fired(self, group: int, timer: int, watermark_ms: int) -> Iterator[pd.DataFrame]:
        """Join rows of a group that waited for the watermark, and forget others."""
        with _errors_told():
            require_group(group, self._task.groups)
            empty = self._task.left.empty_table(), self._task.right.empty_table()
            yield from self._joined(empty, (0, 0), watermark_ms, fired=timer)

    def close(self) -> None:
        """End the task; there is no device to let go of."""
        spare_modules()

    def _joined(
        self,
        new: tuple[pa.Table, pa.Table],
        late: tuple[int, int],
        watermark_ms: int,
        fired: int | None = None,
    ) -> Iterator[pd.DataFrame]:
        started = time.perf_counter()
        state = AsofState(self._task, *self._stores)
        reached = watermark_ms * 1000 if watermark_ms > 0 else _NO_TIME
        results = state.stream.rows_until(new[LEFT], new[RIGHT], reached)
        if results.num_rows:
            yield output_row(to_blob([results], results.schema))
        state.save(fired=fired)
        stored = new[LEFT].num_rows + new[RIGHT].num_rows
        yield output_row(
            left_rows=new[LEFT].num_rows,
            right_rows=new[RIGHT].num_rows,
            left_late=late[LEFT],
            right_late=late[RIGHT],
            results=results.num_rows,
            stored=stored,
            expired=state.before + stored - state.kept,
            seconds=time.perf_counter() - started,
        )


@contextmanager
def _errors_told() -> Iterator[None]:
    """Name the partition in errors of this kit."""
    try:
        yield
    except JoinError as error:
        raise in_partition(error, task_partition()) from None
