# SPDX-License-Identifier: Apache-2.0
"""An operator that is described as data, on streams: the plan, and what happens to a group.

The tasks of a micro-batch find the keys of its rows, and reduce the rows at hand, without any state
(the first phase). Their parts go to where their keys are, and wait there, in Spark's state store,
until the watermark decides what becomes of them (the second phase).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce

import pyarrow as pa
from pyspark.sql import DataFrame

from host import UsageError
from host.operators.operate import OperatorColumns, OperatorEngine, OperatorQuery, OperatorStream
from spark_offload.cluster.machines import cluster_of, local_device_uri, ship_bundle, ship_packages
from spark_offload.measures import JoinMetrics
from spark_offload.partitioning.tagged import LEFT
from spark_offload.plan.operate import OperatorInputs
from spark_offload.plan.plan import Options, Plan
from spark_offload.stream.plans import (
    Grouping,
    StreamInput,
    delay,
    require_streams,
    require_watermark,
    require_watermarks,
)
from spark_offload.stream.processor import BlobGroups, Both, Step
from spark_offload.stream.task import GroupedTask, Values
from spark_offload.task.task import Answer

__all__ = [
    "OperatorGroups",
    "make_operate_stream_plan",
]

_GROUPS = "spark_offload.stream.operate:OperatorGroups"
"""What makes results of the parts of a group."""


@dataclass(frozen=True, kw_only=True)
class _OperatorStreamTask(GroupedTask):
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


class OperatorGroups(BlobGroups[_OperatorStreamTask]):
    """The second phase: parts wait until the watermark decides what becomes of them."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._columns = OperatorColumns(self.task.given, self.task.query)
        self._engine: OperatorEngine | None = None

    def close(self, error: BaseException | None = None) -> None:
        """End the task, and let go of a device."""
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()
        super().close(error)

    def _step(self, kept: Both, noted: Values | None, new: Both, watermark_ms: int) -> Step:
        if self._engine is None:
            device = self.task.device
            uri = None if device is None else local_device_uri(device)
            self._engine = OperatorEngine(self.task.query.operator, uri)
        cycles = self._engine.work.cycles
        stream, inputs = OperatorStream(self._columns, self._engine), len(self._columns.parts)
        if noted is not None:
            decided, _, since = noted
            stream.decided, stream.since = decided, int(bytes(since))
            stream.kept = list(kept[:inputs])
        results = stream.until(new[:inputs], self._columns.until(max(0, watermark_ms) * 1000))
        at = stream.next_time()
        remembered = at is not None or self.task.query.operator.in_turns
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
    inputs = OperatorInputs.of(frames, query, options)
    if not inputs.columns.has_parts:
        if options.partitions is not None:
            raise UsageError(
                f"partitions={options.partitions}: a forward keeps nothing; leave it out."
            )
        return inputs.planned(
            frames, partial(_answer, inputs=inputs, grouping=None),
            partitions=1, partitioning="as the rows are; nothing is kept of them",
            ordering="in no order", watermark="no row waits for it",
        )  # fmt: skip
    question = {
        "operator": str(query.operator.to_dict()),
        "time": ", ".join(query.time[: len(frames)]),
        "unit": str(query.unit),
        "columns": "; ".join(frame.schema.simpleString() for frame in frames),
    }
    grouping = Grouping.of(frames, question, inputs.columns.part_keys, options.partitions)
    late = max(delay(frame.schema, query.time[side]) for side, frame in enumerate(frames))
    said = {
        "partitioning": inputs.by_keys or "all rows meet",
        "watermark": f"{late:,} ms behind {query.time[LEFT]!r}; a result comes when the watermark "
        f"has decided it",
    }
    strategy = partial(_answer, inputs=inputs, grouping=grouping)
    return inputs.planned(frames, strategy, **{**grouping.words, **said})


def _answer(plan: Plan, *, inputs: OperatorInputs, grouping: Grouping | None) -> Answer:
    """Find the keys of rows where they are, and let groups of rows wait, unless nothing waits."""
    cluster = cluster_of(plan.inputs[0].sparkSession, streaming=True)
    ship_packages(cluster)
    columns, second = inputs.columns, inputs.second_device
    found = inputs.first(cluster, plan.name, None)
    if grouping is None:
        return reduce(DataFrame.unionAll, found), JoinMetrics
    task = _OperatorStreamTask(
        left=columns.parts[0],
        right=columns.parts[-1],
        output=columns.schema,
        query=inputs.query,
        times=(columns.parts[0].names[0], columns.parts[-1].names[0]),
        given=inputs.given,
        device=None if second is None else ship_bundle(cluster, second),
        **grouping.known,
    )
    parts = [
        StreamInput(frame.toDF(*schema.names), columns.part_keys, ())
        for frame, schema in zip(found, columns.parts, strict=True)
    ]
    return grouping.answer(plan, parts, task, _GROUPS, cluster)
