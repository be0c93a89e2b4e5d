# SPDX-License-Identifier: Apache-2.0
"""What happens to a group of rows of an as-of join in a micro-batch."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
import time

import pandas as pd
import pyarrow as pa

from host import JoinError
from spark_offload.failures.translation import in_partition, task_partition
from spark_offload.layout.tagged import LEFT, RIGHT
from spark_offload.streaming.asof_state import AsofState
from spark_offload.streaming.blobs import to_blob
from spark_offload.streaming.groups import REGISTRY
from spark_offload.streaming.processor import new_rows, output_row
from spark_offload.streaming.question import require_group, require_question
from spark_offload.streaming.state_protocols import MapStore, Timers, ValueStore
from spark_offload.streaming.task import AsofStreamTask
from spark_offload.tasks.worker_memory import spare_modules

__all__ = ["AsofGroups"]

_NO_TIME = -(1 << 63)
"""Microseconds that no watermark has reached."""


class AsofGroups:
    """The as-of join in one task of one micro-batch, group after group.

    Takes the same as :class:`~spark_offload.streaming.processor.GroupJoin`.
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
