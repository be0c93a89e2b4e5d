# SPDX-License-Identifier: Apache-2.0
"""The operators of a query over streams: pack rows, take them group by group, unpack results."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
import pickle
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType

from spark_offload.cluster.by_value import JoinProcessor, Luggage, carrying
from spark_offload.cluster.machines import Cluster
from spark_offload.explanation.explanations import Explanation
from spark_offload.partitioning.columns import common_type, partition_key
from spark_offload.partitioning.placement import require_partitions
from spark_offload.stream.checks import state_text
from spark_offload.stream.groups import group_keys
from spark_offload.stream.metrics import measured_by, metrics_name, observed_columns
from spark_offload.stream.packing import INPUT_TYPES, pack_function, unpack_function
from spark_offload.stream.processor import OUTPUT_TYPES
from spark_offload.stream.task import (
    GroupedTask,
    question_of_groups,
    require_state_store,
    state_partitions,
)
from spark_offload.task.task import Answer

__all__ = [
    "Grouping",
    "StreamInput",
]


@dataclass(frozen=True)
class StreamInput:
    """One input of a streaming join.

    Parameters
    ----------
    frame : DataFrame
        The rows.
    keys : sequence of str
        Columns that rows are grouped by.
    required : sequence of str
        Columns in which a null keeps a row out of the answer.
    """

    frame: DataFrame
    keys: Sequence[str]
    required: Sequence[str]


@dataclass(frozen=True)
class Grouping:
    """The groups of a query over streams, and what all such queries settle in the same way.

    Parameters
    ----------
    groups : tuple of int
        Keys of the groups of rows; empty: one for each partition of the state.
    partitions : int
        Partitions that the state of a new query has.
    reason : str
        What rows are grouped by, and why into so many.
    state : str
        Where rows are kept.
    question : mapping of str to str
        What must stay the same for as long as a checkpoint is used.
    name : str
        Under which the progress of a query has the numbers.
    """

    groups: tuple[int, ...]
    partitions: int
    reason: str
    state: str
    question: Mapping[str, str]
    name: str

    @classmethod
    def of(
        cls,
        frames: Sequence[DataFrame],
        question: Mapping[str, str],
        keys: Sequence[str],
        wanted: int | None,
    ) -> "Grouping":
        """Settle it; raises if the state store or the number of groups will not do.

        Parameters
        ----------
        frames : sequence of DataFrame
            The inputs.
        question : mapping of str to str
            What is asked.
        keys : sequence of str
            Columns that rows are grouped by; none: all rows meet in one group.
        wanted : int, optional
            How many groups the user wants.
        """
        require_partitions(wanted)
        session = frames[0].sparkSession
        partitions = state_partitions(session)
        by = f"by a hash of the equal columns {', '.join(keys)}"
        groups: tuple[int, ...] = ()
        if not keys:
            groups, reason = group_keys(1), "no column must be equal, so any two rows may meet"
        elif wanted is not None:
            groups, reason = group_keys(wanted), f"{by}; the number as asked for"
        else:
            reason = f"{by}; one for each partition of the state"
        state = f"{require_state_store(session)}; {state_text(session, len(groups) or partitions)}"
        name = metrics_name(question, *frames)
        asked = {**question, **(question_of_groups(len(groups)) if groups else {})}
        return cls(groups, partitions, reason, state, asked, name)

    def explained(self, **words: Any) -> Explanation:
        """Return the explanation of a query, from what only this query has to say."""
        said: dict[str, Any] = {
            "partitions": len(self.groups) or self.partitions,
            "partitioning": self.reason,
            "state": self.state,
            "ordering": "in no order within a micro-batch; no column carries a watermark",
            "metrics": f"observedMetrics[{self.name!r}] of a query's progress; "
            f"stream_metrics(query)",
        }
        return Explanation(**{**said, **words})

    @property
    def known(self) -> dict[str, Any]:
        """What all tasks know of the groups."""
        return {"groups": self.groups, "question": self.question, "partitions": self.partitions}

    def answer(
        self,
        inputs: Sequence[StreamInput],
        task: GroupedTask,
        processor: str,
        title: str,
        schema: StructType,
        cluster: Cluster,
    ) -> Answer:
        """Return the answer of a query.

        Parameters
        ----------
        inputs : sequence of StreamInput
            The left and the right rows, or those of a single input.
        task : GroupedTask
            What the tasks need to know.
        processor : str
            Module and name of the class of the groups; see :class:`JoinProcessor`.
        title : str
            Under which Spark's plan shows it.
        schema : StructType
            Columns of the answer.
        cluster : Cluster
            The machines, as the query sees them.
        """
        luggage = cluster.luggage
        first, last = inputs[0], inputs[-1]
        kinds = [
            common_type(first.frame.schema[own].dataType, last.frame.schema[other].dataType)
            for own, other in zip(first.keys, last.keys, strict=True)
        ]
        packed = [_packed(task, own, kinds, side, luggage) for side, own in enumerate(inputs)]
        joined = (
            reduce(DataFrame.unionAll, packed)
            .groupBy("group")
            .transformWithStateInPandas(
                JoinProcessor(processor, pickle.dumps(task), luggage),
                OUTPUT_TYPES,
                "Append",
                "EventTime",
            )
            .observe(self.name, *observed_columns())
        )
        unpacked = joined.mapInArrow(carrying(luggage, unpack_function(task, title)), schema)
        return unpacked, measured_by("stream_metrics")


def _packed(
    task: GroupedTask,
    own: StreamInput,
    kinds: Sequence[DataType],
    side: int,
    luggage: Luggage | None,
) -> DataFrame:
    """Return the rows of one side that can be in the answer, packed by group."""
    # Positions as names: no name of the user's can clash or need quoting.
    names = {name: f"c{index}" for index, name in enumerate(own.frame.columns)}
    rows = own.frame.toDF(*names.values())
    # A null time stays, to be complained of.
    order = F.col(names[task.order(side)])
    for column in own.required:
        rows = rows.where(F.col(names[column]).isNotNull() | order.isNull())
    keys = [
        partition_key(F.col(names[name]), kind) for name, kind in zip(own.keys, kinds, strict=True)
    ]
    rows = rows.select(_group(task, keys).alias("group"), *names.values())
    return rows.mapInArrow(carrying(luggage, pack_function(task, side)), INPUT_TYPES)


def _group(task: GroupedTask, keys: Sequence[Column]) -> Column:
    """Return the hash that gives the number of a row's group: equal keys, equal groups."""
    return F.lit(0) if len(task.groups) == 1 else F.hash(*keys)
