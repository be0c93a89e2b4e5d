# SPDX-License-Identifier: Apache-2.0
"""What happens to a group of rows in a micro-batch: late rows out, join, keep, forget."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
import time
from typing import Any, Generic, TypeVar

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql.streaming.stateful_processor import MapState, StatefulProcessorHandle, ValueState

from host import Device, JoinError, open_device
from host.operators.asof import AsofStream
from spark_offload.cluster.machines import TaskDevice, local_device_uri, take_device
from spark_offload.errors import in_partition, task_partition
from spark_offload.measures import NUMBERS
from spark_offload.partitioning.tagged import LEFT, RIGHT
from spark_offload.stream.groups import REGISTRY
from spark_offload.stream.passes import NewPairs, Rows, reach
from spark_offload.stream.state import HELD, WindowState, move_timer
from spark_offload.stream.task import (
    AsofStreamTask,
    GroupedTask,
    StreamTask,
    Values,
    as_results,
    from_blob,
    microseconds,
    require_group,
    require_question,
    to_blob,
    whole_table,
)
from spark_offload.task.task import spare_modules

__all__ = [
    "AsofGroups",
    "BlobGroups",
    "GroupJoin",
    "Groups",
    "OUTPUT_TYPES",
    "Step",
    "in_time",
]

Shipped = TypeVar("Shipped", bound=GroupedTask)

Both = tuple[pa.Table, pa.Table]
"""Rows of the left and of the right side."""

_QUERY = "sql.streaming.queryId"
"""Property by which Spark tells a task its query, the same after a restart."""

OUTPUT_TYPES = ", ".join(
    [
        "pairs binary",
        *(f"{name} {kind} not null" for name, kind in NUMBERS.items()),
    ]
)
"""Columns that the processor returns: packed results, or null beside the numbers of a group."""


@dataclass(eq=False)
class Groups(ABC, Generic[Shipped]):
    """A query over streams in one task of one micro-batch, group after group.

    Parameters
    ----------
    task : GroupedTask
        What to compute.
    question : ValueState
        What the checkpoint was begun with; holds a value for the group of the registry only.
    directory, rows : ValueState, MapState
        Where the state of the group lies that Spark is calling for.
    timers : StatefulProcessorHandle
        The handle of the processor.
    """

    task: Shipped
    question: ValueState
    directory: ValueState
    rows: MapState
    timers: StatefulProcessorHandle

    def __post_init__(self) -> None:
        self.task = self.task.in_query()

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
                require_question(self.question, self.task.question)
                for _ in frames:
                    pass
                return
            gathered: tuple[list[pa.RecordBatch], list[pa.RecordBatch]] = ([], [])
            for frame in frames:
                for side, blob in zip(frame["side"], frame["rows"], strict=True):
                    gathered[side].extend(from_blob(blob, self.task.schema(side)))
            left, right = (
                whole_table(gathered[side], self.task.schema(side)) for side in (LEFT, RIGHT)
            )
            yield from self._work(group, (left, right), watermark_ms, None)

    def timer_fired(self, group: int, timer: int, watermark_ms: int) -> Iterator[pd.DataFrame]:
        """Give the results of a group that waited for the watermark, and forget rows."""
        with self._errors_told():
            require_group(group, self.task.groups)
            none = self.task.left.empty_table(), self.task.right.empty_table()
            yield from self._work(group, none, watermark_ms, timer)

    def close(self, error: BaseException | None = None) -> None:
        """End the task; ``error`` is what it fails with."""
        if error is None:
            spare_modules()

    @abstractmethod
    def _work(
        self, group: int, new: Both, watermark_ms: int, fired: int | None
    ) -> Iterator[pd.DataFrame]:
        """Take rows that have come; ``fired`` is the timer that went off, if none have."""

    @contextmanager
    def _errors_told(self) -> Iterator[None]:
        """Let go of devices if anything fails; name the partition in errors of this kit."""
        try:
            yield
        except JoinError as error:
            self.close(error)
            raise in_partition(error, task_partition()) from None
        except BaseException as error:
            self.close(error)
            raise


def in_time(new: Both, task: GroupedTask, watermark_ms: int) -> tuple[Both, tuple[int, int]]:
    """Return the rows that are not older than the watermark, and how many of each side are."""
    found = []
    for side, table in enumerate(new):
        if watermark_ms > 0 and table.num_rows:
            times = table.column(task.times[side]).cast(pa.int64())
            early = pc.greater_equal(times, pa.scalar(watermark_ms * 1000, pa.int64()))
            table = table.filter(early)
        found.append(table)
    left, right = found
    return (left, right), (new[LEFT].num_rows - left.num_rows, new[RIGHT].num_rows - right.num_rows)


class GroupJoin(Groups[StreamTask]):
    """The join over a window; the state is a :class:`~spark_offload.stream.state.WindowState`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._taken: TaskDevice | None = None
        self._waited = 0.0  # for the device, which has not been told
        self._software: Device | None = None

    def close(self, error: BaseException | None = None) -> None:
        """Let go of the device, if one was needed; ``error`` is what the task fails with."""
        taken, self._taken = self._taken, None
        software, self._software = self._software, None
        if software is not None:
            software.close()
        if taken is not None:
            taken.close(error)
        super().close(error)

    def _work(
        self, group: int, new: Both, watermark_ms: int, fired: int | None
    ) -> Iterator[pd.DataFrame]:
        started = time.perf_counter()
        state, told = self._state(group), dict[str, float]()
        if watermark_ms > 0:
            state.expire(watermark_ms * 1000)
        if fired is None:
            yield from self._joined(state, new, watermark_ms, told)
        state.save(fired=fired)
        HELD.trim()
        # Rows that the state has let go of, as far as they come alone.
        for side, rows in state.alone:
            for batch in as_results(self.task, side, rows):
                yield _output_row(to_blob([batch], batch.schema))
        if fired is None:
            told["seconds"] = time.perf_counter() - started
        if told or state.expired:
            told["results"] = told.get("results", 0) + sum(len(rows) for _, rows in state.alone)
            changed = {"stored": state.stored, "expired": state.expired}
            yield _output_row(None, read_rows=state.read_rows, **changed, **told)

    def _joined(
        self, state: WindowState, came: Both, watermark_ms: int, told: dict[str, float]
    ) -> Iterator[pd.DataFrame]:
        """Yield the pairs of rows that have come, and keep these; add what is measured."""
        task = self.task
        new, late = in_time(came, task, watermark_ms)
        kept = [
            state.near(side, reach(new[1 - side], task.times[1 - side], task.width))
            for side in (LEFT, RIGHT)
        ]
        rows = Rows(kept[LEFT], new[LEFT]), Rows(kept[RIGHT], new[RIGHT])
        software = self._open_software if task.software is not None else None
        pairs = NewPairs(task, self._open().device, *rows, software)
        for batch in pairs.batches():
            yield _output_row(to_blob([batch], batch.schema))
        for side in (LEFT, RIGHT):
            matched, before = pairs.matched[side], rows[side].kept_count
            state.mark(side, matched[:before])
            state.add(side, new[side], matched[before:])
        told.update(
            waited_seconds=self._waited,
            left_rows=new[LEFT].num_rows,
            right_rows=new[RIGHT].num_rows,
            left_late=late[LEFT],
            right_late=late[RIGHT],
            results=pairs.results,
            software_rows=pairs.software_rows,
            cycles=pairs.cycles,
            device_seconds=pairs.device_seconds,
        )
        self._waited = 0.0

    def _state(self, group: int) -> WindowState:
        context = TaskContext.get()
        query = None if context is None else context.getLocalProperty(_QUERY)
        held = HELD.of(query or "", group)
        return WindowState(self.task, self.directory, self.rows, self.timers, held)

    def _open(self) -> TaskDevice:
        if self._taken is None:
            self._taken = take_device(self.task.devices)
            self._waited = self._taken.waited
        return self._taken

    def _open_software(self) -> Device:
        assert self.task.software is not None
        if self._software is None:
            self._software = open_device(local_device_uri(self.task.software))
        return self._software


# Groups of which few rows are kept: as one blob for each side, written anew in every micro-batch.


@dataclass(frozen=True)
class Step:
    """Change of a group when rows or a watermark come.

    Parameters
    ----------
    results : Table
        What the watermark has decided.
    late : sequence of int
        Rows of each side that came too late.
    kept : sequence of Table
        Rows of each side that are kept.
    at : int or None
        Microseconds of the watermark that has something to decide or to forget; None: none has.
    noted : (int, bytes) or None
        What stands in the directory beside; None if nothing of the group has to be remembered.
    cycles : int
        Clock cycles that a device ran.
    """

    results: pa.Table
    late: Sequence[int]
    kept: Sequence[pa.Table]
    at: int | None
    noted: tuple[int, bytes] | None
    cycles: int = 0


class BlobGroups(Groups[Shipped]):
    """Groups whose rows lie in the state as a blob for each side."""

    @abstractmethod
    def _step(self, kept: Both, noted: Values | None, new: Both, watermark_ms: int) -> Step:
        """Return what becomes of a group, from what was kept and noted of it, and what came."""

    def _work(
        self, group: int, new: Both, watermark_ms: int, fired: int | None
    ) -> Iterator[pd.DataFrame]:
        started = time.perf_counter()
        found = self.directory.get()
        before = self._read(LEFT, found), self._read(RIGHT, found)
        step = self._step(before, found, new, watermark_ms)
        if step.results.num_rows:
            yield _output_row(to_blob(step.results.to_batches(), step.results.schema))
        timer = 0 if step.at is None else max(1, -(-step.at // 1000))  # rounded up to milliseconds
        timer_before = 0 if found is None else found[1]
        # A timer that has gone off is gone, and may be wanted again.
        move_timer(self.timers, 0 if timer == fired else timer_before, timer, fired)
        for side, table in enumerate(step.kept):
            place = (side, 0, 0)
            if table.num_rows:
                self.rows.updateValue(place, (to_blob(table.to_batches(), table.schema),))
            elif before[side].num_rows:
                self.rows.removeKey(place)
        if step.noted is None:
            self.directory.clear()
        else:
            self.directory.update((step.noted[0], timer, step.noted[1]))
        late = [*step.late, 0][:2]
        came = [table.num_rows - behind for table, behind in zip(new, late, strict=True)]
        gone = sum(table.num_rows for table in before) - sum(table.num_rows for table in step.kept)
        yield _output_row(
            left_rows=came[LEFT],
            right_rows=came[RIGHT],
            left_late=late[LEFT],
            right_late=late[RIGHT],
            results=step.results.num_rows,
            stored=sum(came),
            expired=gone + sum(came),
            cycles=step.cycles,
            seconds=time.perf_counter() - started,
        )

    def _read(self, side: int, found: Values | None) -> pa.Table:
        value = None if found is None else self.rows.getValue((side, 0, 0))
        schema = self.task.schema(side)
        if value is None:
            return schema.empty_table()
        blob = value[0]
        return whole_table(from_blob(bytes(blob), schema), schema)


_NO_TIME = -(1 << 63)
"""Microseconds that no watermark has reached."""


class AsofGroups(BlobGroups[AsofStreamTask]):
    """The as-of join: left rows that wait are kept, and the right rows that they may need.

    Without a tolerance that is one right row for each key, else those of a tolerance's length, and
    the rows that the watermark has not passed.
    """

    def _step(self, kept: Both, noted: Values | None, new: Both, watermark_ms: int) -> Step:
        task = self.task
        stream = AsofStream(task.left, task.right, task.query, ordered=False)
        stream.waiting, stream.kept = kept
        new, late = in_time(new, task, watermark_ms)
        reached = watermark_ms * 1000 if watermark_ms > 0 else _NO_TIME
        results = pa.Table.from_batches([stream.rows_until(*new, reached)])
        left, right = stream.waiting, stream.kept
        count = left.num_rows + right.num_rows
        noted_now = (count, b"") if count else None
        return Step(results, late, (left, right), self._next(left, right), noted_now)

    def _next(self, waiting: pa.Table, kept: pa.Table) -> int | None:
        """Return the watermark at which a row leaves."""
        task = self.task
        if waiting.num_rows:
            # Before these rows leave, no right row is forgotten that they could need.
            return int(microseconds(waiting, task.times[LEFT]).min()) + task.ahead + 1
        if task.tolerance is not None and kept.num_rows:
            return int(microseconds(kept, task.times[RIGHT]).min()) + task.tolerance + 1
        return None


def _output_row(pairs: bytes | None = None, **numbers: float) -> pd.DataFrame:
    """Return a row of the processor's output; numbers that are not given are zero."""
    values: dict[str, list[Any]] = {"pairs": [pairs]}
    for name, kind in NUMBERS.items():
        number = numbers.get(name, 0)
        values[name] = [float(number) if kind == "double" else int(number)]
    return pd.DataFrame(values)
