# SPDX-License-Identifier: Apache-2.0
"""An operator that is described as data, on streams: the plan, and what happens to a group.

The tasks of a micro-batch find the keys of its rows, and reduce the rows at hand, without any state
(the first phase). Their parts go to where their keys are, and wait there, in Spark's state store,
until the watermark decides what becomes of them (the second phase).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from host import UsageError
from host.operators.operate import (
    OperatorColumns,
    OperatorEngine,
    OperatorQuery,
    OperatorStream,
)
from spark_offload.cluster.machines import cluster_of, local_device_uri, ship_bundle, ship_packages
from spark_offload.measures import JoinMetrics
from spark_offload.partitioning.placement import require_partitions
from spark_offload.partitioning.tagged import LEFT
from spark_offload.plan.operate import OperatorInputs
from spark_offload.plan.options import Options
from spark_offload.plan.plan import Plan
from spark_offload.stream.checks import (
    delay,
    require_streams,
    require_watermark,
    require_watermarks,
)
from spark_offload.stream.graph import Grouping, StreamInput
from spark_offload.stream.processor import BlobGroups, Both, Step
from spark_offload.stream.task import GroupedTask, Values
from spark_offload.task.task import Answer

__all__ = [
    "OperatorGroups",
    "OperatorStreamTask",
    "make_operate_stream_plan",
]

_GROUPS = "spark_offload.stream.operate:OperatorGroups"
"""What makes results of the parts of a group."""


@dataclass(frozen=True, kw_only=True)
class OperatorStreamTask(GroupedTask):
    """Description of the tasks of the second phase of an operator on streams.

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


class OperatorGroups(BlobGroups[OperatorStreamTask]):
    """The second phase: parts wait until the watermark decides what becomes of them."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._columns = OperatorColumns(self._task.given, self._task.query)
        self._engine: OperatorEngine | None = None

    def close(self, error: BaseException | None = None) -> None:
        """End the task, and let go of a device."""
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()
        super().close(error)

    def _step(self, kept: Both, noted: Values | None, new: Both, watermark_ms: int) -> Step:
        if self._engine is None:
            device = self._task.device
            uri = None if device is None else local_device_uri(device)
            self._engine = OperatorEngine(self._task.query.operator, uri)
        cycles = self._engine.work.cycles
        stream, inputs = OperatorStream(self._columns, self._engine), len(self._columns.parts)
        if noted is not None:
            decided, _, since = noted
            assert isinstance(decided, int)
            assert isinstance(since, (bytes, bytearray))
            stream.decided, stream.since = decided, int(bytes(since))
            stream.kept = list(kept[:inputs])
        results = stream.until(new[:inputs], self._columns.until(max(0, watermark_ms) * 1000))
        at = stream.next_time()
        remembered = at is not None or self._task.query.operator.in_turns
        return Step(
            results,
            stream.late,
            stream.kept,
            None if at is None else self._columns.time_of(at),
            (stream.decided, str(stream.since).encode()) if remembered else None,
            self._engine.work.cycles - cycles,
        )


def make_operate_stream_plan(
    frames: Sequence[DataFrame],
    query: OperatorQuery,
    options: Options,
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
    partitions = options.partitions
    require_partitions(partitions)
    inputs = OperatorInputs.of(frames, query, options)
    title = f"splitjoin operate: {query}"
    session = frames[0].sparkSession
    late = max(delay(frame.schema, query.time[side]) for side, frame in enumerate(frames))
    if not inputs.columns.has_parts:
        if partitions is not None:
            raise UsageError(f"partitions={partitions}: a forward keeps nothing; leave it out.")
        explanation = inputs.explained(
            title, partitions=1, partitioning="as the rows are; nothing is kept of them",
            ordering="in no order", watermark="no row waits for it",
        )  # fmt: skip

        def forwarded(*_: DataFrame) -> Answer:
            cluster = cluster_of(session, streaming=True)
            ship_packages(cluster)
            found = inputs.first(cluster, title)
            answer = found[0] if len(found) == 1 else found[0].unionAll(found[1])
            return answer, lambda: JoinMetrics(())

        return inputs.planned(frames, explanation, forwarded)
    keys = inputs.columns.part_keys
    if not keys and partitions not in (None, 1):
        raise UsageError(
            f"partitions={partitions} needs keys: all rows of operator {query.operator.name!r} "
            f"meet in one group; leave partitions out."
        )
    question = {
        "operator": str(query.operator.to_dict()),
        "time": ", ".join(query.time[: len(frames)]),
        "unit": str(query.unit),
        "columns": "; ".join(frame.schema.simpleString() for frame in frames),
    }
    grouping = Grouping.of(frames, question, keys, partitions)
    names = ", ".join(query.operator.key_names or ())
    explanation = grouping.explained(
        **inputs.words(title),
        partitioning=f"by the keys {names}" if keys else "all rows meet",
        watermark=f"{late:,} ms behind {query.time[LEFT]!r}; a result comes when the watermark has "
        f"decided it",
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
            query=query,
            given=inputs.given,
            device=None if second is None else ship_bundle(cluster, second),
            **grouping.known,
        )
        parts = [
            StreamInput(frame.toDF(*schema.names), keys, ())
            for frame, schema in zip(found, inputs.columns.parts, strict=True)
        ]
        return grouping.answer(parts, task, _GROUPS, title, inputs.schema, cluster)

    return inputs.planned(frames, explanation, grouped)
