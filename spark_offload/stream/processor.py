# SPDX-License-Identifier: Apache-2.0
"""What happens to a group of rows in a micro-batch: late rows out, join, keep, forget."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
import time
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from host import Device, JoinError, open_device
from spark_offload.cluster.devices import TaskDevice, take_device
from spark_offload.cluster.machines import local_device_uri
from spark_offload.cluster.pools import MicroBatchTask
from spark_offload.errors import in_partition, task_partition
from spark_offload.partitioning.tagged import LEFT, RIGHT
from spark_offload.stream.groups import REGISTRY
from spark_offload.stream.passes import NewPairs, Rows, reach
from spark_offload.stream.reduction import HELD
from spark_offload.stream.state import WindowState
from spark_offload.stream.task import (
    GroupedTask,
    MapStore,
    StreamTask,
    Timers,
    ValueStore,
    as_results,
    from_blob,
    require_group,
    require_question,
    to_blob,
    whole_table,
)
from spark_offload.task.join import spare_modules

__all__ = [
    "GroupJoin",
    "NUMBERS",
    "OUTPUT_TYPES",
    "new_rows",
    "output_row",
]

NUMBERS = {
    "left_rows": "bigint",
    "right_rows": "bigint",
    "left_late": "bigint",
    "right_late": "bigint",
    "results": "bigint",
    "stored": "bigint",
    "expired": "bigint",
    "software_rows": "bigint",
    "read_rows": "bigint",
    "cycles": "bigint",
    "seconds": "double",
    "device_seconds": "double",
    "waited_seconds": "double",
}
"""What is measured of a group in a micro-batch, with its type in Spark."""

OUTPUT_TYPES = ", ".join(
    [
        "pairs binary",
        "decision string",
        *(f"{name} {kind} not null" for name, kind in NUMBERS.items()),
    ]
)
"""Columns that the processor returns: packed results, or null beside the numbers of a group.

The first numbers of a task that has a device of an elastic pool have its decision beside them.
"""


class GroupJoin:
    """The join in one task of one micro-batch, group after group.

    Parameters
    ----------
    task : StreamTask
        What to join.
    question : ValueStore
        What the checkpoint was begun with; holds a value for the group of the registry only.
    directory, rows : ValueStore, MapStore
        See :class:`~spark_offload.stream.state.WindowState`.
    timers : Timers
        The handle of the processor.
    """

    def __init__(
        self,
        task: StreamTask,
        question: ValueStore,
        directory: ValueStore,
        rows: MapStore,
        timers: Timers,
    ) -> None:
        self._task = task.in_query()
        self._question = question
        self._directory = directory
        self._rows = rows
        self._timers = timers
        self._taken: TaskDevice | None = None
        self._is_told = False  # what taking the device has shown
        self._software: Device | None = None

    def rows_came(
        self, group: int, frames: Iterable[pd.DataFrame], watermark_ms: int
    ) -> Iterator[pd.DataFrame]:
        """Join the new rows of a group with each other and with those that were kept.

        Parameters
        ----------
        group : int
            Key of the group.
        frames : iterable of DataFrame
            Packed rows.
        watermark_ms : int
            Milliseconds since 1970; zero or less before there is one.
        """
        with self._errors_told():
            if group == REGISTRY:
                require_question(self._question, self._task.question)
                for _ in frames:
                    pass
                return
            yield from self._joined(group, frames, watermark_ms)

    def timer_fired(self, group: int, timer: int, watermark_ms: int) -> Iterator[pd.DataFrame]:
        """Remove rows of a group that no row can meet any more; they may come alone."""
        with self._errors_told():
            require_group(group, self._task.groups)
            state = self._state(group)
            state.expire(watermark_ms * 1000)
            state.save(fired=timer)
            HELD.trim()
            yield from self._alone(state)
            if state.expired:
                yield output_row(
                    expired=state.expired, results=_count(state), read_rows=state.read_rows
                )

    def close(self, error: BaseException | None = None) -> None:
        """Let go of the device, if one was needed; ``error`` is what the task fails with."""
        taken, self._taken = self._taken, None
        software, self._software = self._software, None
        if software is not None:
            software.close()
        if taken is not None:
            taken.close(error)
        if error is None:
            spare_modules()

    def _joined(
        self, group: int, frames: Iterable[pd.DataFrame], watermark_ms: int
    ) -> Iterator[pd.DataFrame]:
        started = time.perf_counter()
        task = self._task
        new, late = new_rows(frames, task, watermark_ms)
        state = self._state(group)
        if watermark_ms > 0:
            state.expire(watermark_ms * 1000)
        kept = [
            state.near(side, reach(new[1 - side], task.order(1 - side), task.width))
            for side in (LEFT, RIGHT)
        ]
        rows = Rows(kept[LEFT], new[LEFT]), Rows(kept[RIGHT], new[RIGHT])
        taken = self._open()
        pairs = NewPairs(
            task,
            taken.device,
            *rows,
            self._open_software if task.software is not None else None,
        )
        for batch in pairs.batches():
            yield output_row(to_blob([batch], batch.schema))
        for side in (LEFT, RIGHT):
            matched, before = pairs.matched[side], rows[side].kept_count
            state.mark(side, matched[:before])
            state.add(side, new[side], matched[before:])
        state.save()
        HELD.trim()
        yield from self._alone(state)
        taken.rows += sum(side.num_rows for side in new)
        decision, waited = self._first_told(taken)
        yield output_row(
            decision=decision,
            waited_seconds=waited,
            left_rows=new[LEFT].num_rows,
            right_rows=new[RIGHT].num_rows,
            left_late=late[LEFT],
            right_late=late[RIGHT],
            results=pairs.results + _count(state),
            stored=state.stored,
            expired=state.expired,
            software_rows=pairs.software_rows,
            read_rows=state.read_rows,
            cycles=pairs.cycles,
            seconds=time.perf_counter() - started,
            device_seconds=pairs.device_seconds,
        )

    def _alone(self, state: WindowState) -> Iterator[pd.DataFrame]:
        """Rows that the state has let go of, as far as they come alone."""
        for side, rows in state.alone:
            for batch in as_results(self._task, side, rows):
                yield output_row(to_blob([batch], batch.schema))

    def _state(self, group: int) -> WindowState:
        here = MicroBatchTask.here()
        held = HELD.of("" if here is None else here.query, group)
        return WindowState(self._task, self._directory, self._rows, self._timers, held)

    def _open(self) -> TaskDevice:
        if self._taken is None:
            self._taken = take_device(self._task.devices)
            self._is_told = False
        return self._taken

    def _first_told(self, taken: TaskDevice) -> tuple[str | None, float]:
        """Return the decision and the wait that led to the device, the first time only."""
        if self._is_told:
            return None, 0.0
        self._is_told = True
        return None if taken.decision is None else taken.decision.text, taken.waited

    def _open_software(self) -> Device:
        assert self._task.software is not None
        if self._software is None:
            self._software = open_device(local_device_uri(self._task.software))
        return self._software

    @contextmanager
    def _errors_told(self) -> Iterator[None]:
        """Let go of the device if anything fails; name the partition in errors of this kit."""
        try:
            yield
        except JoinError as error:
            self.close(error)
            raise in_partition(error, task_partition()) from None
        except BaseException as error:
            self.close(error)
            raise


def new_rows(
    frames: Iterable[pd.DataFrame], task: GroupedTask, watermark_ms: int
) -> tuple[tuple[pa.Table, pa.Table], tuple[int, int]]:
    """Return the rows of both sides that came in time, and how many of each came late."""
    gathered: tuple[list[pa.RecordBatch], list[pa.RecordBatch]] = ([], [])
    for frame in frames:
        for side, blob in zip(frame["side"], frame["rows"], strict=True):
            gathered[side].extend(from_blob(blob, task.schema(side)))
    left, right = (whole_table(gathered[side], task.schema(side)) for side in (LEFT, RIGHT))
    new = (
        _in_time(left, task.order(LEFT), watermark_ms),
        _in_time(right, task.order(RIGHT), watermark_ms),
    )
    return new, (left.num_rows - new[LEFT].num_rows, right.num_rows - new[RIGHT].num_rows)


def _in_time(table: pa.Table, order: str, watermark_ms: int) -> pa.Table:
    """Return the rows that are not older than the watermark."""
    if watermark_ms <= 0 or not table.num_rows:
        return table
    times = table.column(order).cast(pa.int64())
    return table.filter(pc.greater_equal(times, pa.scalar(watermark_ms * 1000, pa.int64())))


def _count(state: WindowState) -> int:
    return sum(rows.num_rows for _, rows in state.alone)


def output_row(
    pairs: bytes | None = None, decision: str | None = None, **numbers: float
) -> pd.DataFrame:
    """Return a row of the processor's output; numbers that are not given are zero."""
    values: dict[str, list[Any]] = {"pairs": [pairs], "decision": [decision]}
    for name, kind in NUMBERS.items():
        number = numbers.get(name, 0)
        values[name] = [float(number) if kind == "double" else int(number)]
    return pd.DataFrame(values)
