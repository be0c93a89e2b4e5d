# SPDX-License-Identifier: Apache-2.0
"""The operators of a streaming join: pack the rows of both sides, join groups, unpack results."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
import pickle

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType

from spark_offload.cluster.by_value import JoinProcessor, Luggage, carrying
from spark_offload.partitioning.columns import common_type, partition_key
from spark_offload.stream.metrics import observed_columns
from spark_offload.stream.packing import INPUT_TYPES, pack_function, unpack_function
from spark_offload.stream.processor import OUTPUT_TYPES
from spark_offload.stream.task import GroupedTask

__all__ = [
    "StreamInput",
    "StreamNames",
    "key_types",
    "stream_frame",
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
class StreamNames:
    """Names of the parts of a streaming join.

    Parameters
    ----------
    join : str
        Module and name of the class that joins a group; see :class:`JoinProcessor`.
    metrics : str
        Under which the progress of a query has the numbers of the join.
    plan : str
        Under which Spark's plan shows the join.
    """

    join: str
    metrics: str
    plan: str


def key_types(
    left: StructType, right: StructType, keys: Sequence[tuple[str, str]]
) -> list[DataType]:
    """Return the common types of pairs of columns that must be equal."""
    return [common_type(left[own].dataType, right[other].dataType) for own, other in keys]


def stream_frame(
    inputs: Sequence[StreamInput],
    kinds: Sequence[DataType],
    task: GroupedTask,
    names: StreamNames,
    schema: StructType,
    luggage: Luggage | None,
) -> DataFrame:
    """Return the answer of a streaming join.

    Parameters
    ----------
    inputs : sequence of StreamInput
        The left and the right rows, or those of a single input.
    kinds : sequence of DataType
        Common types of their keys.
    task : GroupedTask
        What the tasks need to know.
    names : StreamNames
        Names of the parts.
    schema : StructType
        Columns of the answer.
    luggage : Luggage or None
        What functions must carry.
    """
    packed = [_packed(task, own, kinds, side, luggage) for side, own in enumerate(inputs)]
    processor = JoinProcessor(names.join, pickle.dumps(task), luggage)
    joined = (
        reduce(DataFrame.unionAll, packed)
        .groupBy("group")
        .transformWithStateInPandas(processor, OUTPUT_TYPES, "Append", "EventTime")
        .observe(names.metrics, *observed_columns())
    )
    return joined.mapInArrow(carrying(luggage, unpack_function(task, names.plan)), schema)


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
