# SPDX-License-Identifier: Apache-2.0
"""An operator that is described as data, on streams: the plan, and what happens to a group.

The tasks of a micro-batch find the keys of its rows, and reduce the rows at hand, without any state
(the first phase). Their parts go to where their keys are, and wait there, in Spark's state store,
until the watermark decides what becomes of them (the second phase).
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
import time

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import LongType

from host import JoinError, UsageError
from host.operators.operate import (
    OperatorColumns,
    OperatorQuery,
    OperatorStream,
    Software,
    engine_of,
)
from spark_offload.cluster.machines import cluster_of, local_device_uri, ship_bundle, ship_packages
from spark_offload.errors import in_partition, task_partition
from spark_offload.measures import JoinMetrics
from spark_offload.partitioning.placement import require_partitions
from spark_offload.partitioning.tagged import LEFT
from spark_offload.plan.operate import OperatorInputs
from spark_offload.plan.plan import Answer, Plan
from spark_offload.stream.checks import (
    delay,
    require_streams,
    require_watermark,
    require_watermarks,
    state_text,
)
from spark_offload.stream.graph import StreamInput, StreamNames, stream_frame
from spark_offload.stream.groups import REGISTRY, group_keys
from spark_offload.stream.metrics import measured_by, metrics_name
from spark_offload.stream.processor import output_row
from spark_offload.stream.task import (
    GroupedTask,
    MapStore,
    Timers,
    ValueStore,
    from_blob,
    question_of_groups,
    require_group,
    require_question,
    require_state_store,
    state_partitions,
    to_blob,
    whole_table,
)
from spark_offload.task.join import spare_modules

__all__ = [
    "OperatorGroups",
    "OperatorStreamTask",
    "make_operate_stream_plan",
]

_GROUPS = "spark_offload.stream.operate:OperatorGroups"
"""What makes results of the parts of a group."""


@dataclass(frozen=True, kw_only=True)
class OperatorStreamTask(GroupedTask):
    """What the tasks of the second phase need to know.

    Parameters
    ----------
    query : OperatorQuery
        What is computed.
    given : tuple of pa.Schema
        Columns of the rows of each input.
    device : str or None
        Address of the accelerator that finds pairs, shipped; None for software.
    """

    query: OperatorQuery
    given: tuple[pa.Schema, ...]
    device: str | None

    def order(self, side: int) -> str:
        """Return the column of time of the parts of one side."""
        return self.schema(side).names[0]


class OperatorGroups:
    """The second phase in one task of one micro-batch, group after group.

    Takes the same as :class:`~spark_offload.stream.processor.GroupJoin`. The parts of a group lie
    in the state as a blob for each input, which is written anew in every micro-batch.
    """

    def __init__(
        self,
        task: OperatorStreamTask,
        question: ValueStore,
        directory: ValueStore,
        rows: MapStore,
        timers: Timers,
    ) -> None:
        self._task = task.in_query()
        self._question, self._directory = question, directory
        self._rows, self._timers = rows, timers
        self._columns = OperatorColumns(task.given, task.query)
        self._engine: Software | None = None

    def rows_came(
        self, group: int, frames: Iterable[pd.DataFrame], watermark_ms: int
    ) -> Iterator[pd.DataFrame]:
        """Take the new parts of a group; give the results that the watermark decides."""
        with self._errors_told():
            if group == REGISTRY:
                require_question(self._question, self._task.question)
                for _ in frames:
                    pass
                return
            gathered: list[list[pa.RecordBatch]] = [[] for _ in self._columns.parts]
            for frame in frames:
                for side, blob in zip(frame["side"], frame["rows"], strict=True):
                    gathered[side].extend(from_blob(blob, self._columns.parts[side]))
            new = [
                whole_table(batches, schema)
                for batches, schema in zip(gathered, self._columns.parts, strict=True)
            ]
            yield from self._decided(new, watermark_ms)

    def timer_fired(self, group: int, timer: int, watermark_ms: int) -> Iterator[pd.DataFrame]:
        """Give the results of a group that waited for the watermark, and forget parts."""
        with self._errors_told():
            require_group(group, self._task.groups)
            none = [schema.empty_table() for schema in self._columns.parts]
            yield from self._decided(none, watermark_ms, fired=timer)

    def close(self) -> None:
        """End the task, and let go of a device."""
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()
        spare_modules()

    def _decided(
        self, new: Sequence[pa.Table], watermark_ms: int, fired: int | None = None
    ) -> Iterator[pd.DataFrame]:
        started = time.perf_counter()
        if self._engine is None:
            device = self._task.device
            uri = None if device is None else local_device_uri(device)
            self._engine = engine_of(self._task.query.operator, uri)
        cycles = self._engine.work.cycles
        stream, timer = self._read(self._engine)
        before = sum(table.num_rows for table in stream.kept)
        results = stream.until(new, self._columns.until(max(0, watermark_ms) * 1000))
        if results.num_rows:
            yield output_row(to_blob(results.to_batches(), results.schema))
        self._save(stream, timer, fired)
        came = [table.num_rows - late for table, late in zip(new, stream.late, strict=True)]
        kept = sum(table.num_rows for table in stream.kept)
        yield output_row(
            left_rows=came[0],
            right_rows=sum(came[1:]),
            left_late=stream.late[0],
            right_late=sum(stream.late[1:]),
            results=results.num_rows,
            stored=sum(came),
            expired=before + sum(came) - kept,
            cycles=self._engine.work.cycles - cycles,
            seconds=time.perf_counter() - started,
        )

    def _read(self, engine: Software) -> tuple[OperatorStream, int]:
        """Return the parts of the group in the state, and the timer that is set."""
        stream = OperatorStream(self._columns, engine)
        found = self._directory.get()
        if found is None:
            return stream, 0
        decided, timer, since = found
        assert isinstance(decided, int)
        assert isinstance(timer, int)
        assert isinstance(since, (bytes, bytearray))
        stream.decided, stream.since = decided, int(bytes(since))
        for side, schema in enumerate(self._columns.parts):
            value = self._rows.getValue((side, 0, 0))
            if value is not None:
                blob = value[0]
                assert isinstance(blob, (bytes, bytearray))
                stream.kept[side] = whole_table(from_blob(bytes(blob), schema), schema)
        return stream, timer

    def _save(self, stream: OperatorStream, before: int, fired: int | None) -> None:
        """Write the parts, and set the timer for the watermark that has something to decide."""
        at = stream.next_time()
        timer = 0 if at is None else max(1, -(-self._columns.time_of(at) // 1000))
        if timer != before or timer == fired:
            if before not in (0, fired):
                self._timers.deleteTimer(before)
            if timer:
                self._timers.registerTimer(timer)
        for side, table in enumerate(stream.kept):
            place = (side, 0, 0)
            if table.num_rows:
                self._rows.updateValue(place, (to_blob(table.to_batches(), table.schema),))
            elif self._rows.getValue(place) is not None:
                self._rows.removeKey(place)
        if timer or self._task.query.operator.in_turns:
            self._directory.update((stream.decided, timer, str(stream.since).encode()))
        else:
            self._directory.clear()

    @contextmanager
    def _errors_told(self) -> Iterator[None]:
        """Let go of the device if anything fails; name the partition in errors of this kit."""
        try:
            yield
        except JoinError as error:
            self.close()
            raise in_partition(error, task_partition()) from None
        except BaseException:
            self.close()
            raise


def make_operate_stream_plan(
    frames: Sequence[DataFrame],
    query: OperatorQuery,
    *,
    device: str | None = None,
    partitions: int | None = None,
) -> Plan:
    """Check everything that can be checked without reading a row, and decide where to run.

    Raises
    ------
    UsageError
        If the inputs, a column, a type, a watermark, the state store or the device will not do.
    """
    if len(frames) > 1:
        require_streams(frames[0], frames[1])
        require_watermarks(frames[0], frames[1], query.time)
    else:
        require_watermark(frames[0].schema, "frame", query.time[LEFT])
    require_partitions(partitions)
    inputs = OperatorInputs.of(frames, query, device)
    title = f"splitjoin operate: {query}"
    session = frames[0].sparkSession
    late = max(delay(frame.schema, query.time[side]) for side, frame in enumerate(frames))
    if not inputs.columns.has_parts:
        if partitions is not None:
            raise UsageError(f"partitions={partitions}: a forward keeps nothing; leave it out.")
        explanation = inputs.explained(
            title, 1, "as the rows are; nothing is kept of them", ordering="in no order",
            watermark="no row waits for it",
        )  # fmt: skip

        def forwarded(*_: DataFrame) -> Answer:
            cluster = cluster_of(session, streaming=True)
            ship_packages(cluster)
            found = inputs.first(cluster, title)
            answer = found[0] if len(found) == 1 else found[0].unionAll(found[1])
            return answer, lambda: JoinMetrics(())

        return inputs.planned(frames, explanation, forwarded)
    keys = inputs.columns.part_keys
    groups = () if keys and partitions is None else group_keys(partitions or 1)
    if not keys and partitions not in (None, 1):
        raise UsageError(
            f"partitions={partitions} needs keys: all rows of operator {query.operator.name!r} "
            f"meet in one group; leave partitions out."
        )
    store = require_state_store(session)
    number = len(groups) or state_partitions(session)
    question = {
        "operator": str(query.operator.to_dict()),
        "time": ", ".join(query.time[: len(frames)]),
        "unit": str(query.unit),
        "columns": "; ".join(frame.schema.simpleString() for frame in frames),
    }
    name = metrics_name(question, *frames)
    if groups:
        question |= question_of_groups(len(groups))
    explanation = inputs.explained(
        title,
        number,
        f"by the keys {', '.join(query.operator.key_names or ())}" if keys else "all rows meet",
        ordering="in no order within a micro-batch; no column carries a watermark",
        state=f"{store}; {state_text(session, number)}",
        watermark=f"{late:,} ms behind {query.time[LEFT]!r}; a result comes when the watermark has "
        f"decided it",
        metrics=f"observedMetrics[{name!r}] of a query's progress; stream_metrics(query)",
    )

    def grouped(*_: DataFrame) -> Answer:
        cluster = cluster_of(session, streaming=True)
        ship_packages(cluster)
        found = inputs.first(cluster, title)
        second = inputs.second_device
        task = OperatorStreamTask(
            left=inputs.columns.parts[0],
            right=inputs.columns.parts[-1],
            output=inputs.columns.schema,
            groups=groups,
            question=question,
            partitions=state_partitions(session),
            query=query,
            given=inputs.given,
            device=None if second is None else ship_bundle(cluster, second),
        )
        named = [
            frame.toDF(*schema.names)
            for frame, schema in zip(found, inputs.columns.parts, strict=True)
        ]
        answer = stream_frame(
            [StreamInput(frame, keys, ()) for frame in named],
            [LongType()] * len(keys),
            task,
            StreamNames(_GROUPS, name, title),
            inputs.schema,
            cluster.luggage,
        )
        return answer, measured_by("stream_metrics")

    return inputs.planned(frames, explanation, grouped)
