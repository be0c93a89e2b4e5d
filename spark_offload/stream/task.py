# SPDX-License-Identifier: Apache-2.0
"""What the tasks of a streaming join know: the question, the store, and rows as bytes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
import hashlib
from importlib.util import find_spec
import json
from typing import Any, Self

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.streaming.stateful_processor import ValueState

from host import UsageError
from host.arrays import Int64s
from host.errors import MissingToolError
from host.query.queries import AggregateQuery, AsofQuery, Query
from host.reference.types import JoinType
from spark_offload.cluster.machines import DeviceSource
from spark_offload.cluster.session import PROVIDER, ROCKSDB
from spark_offload.partitioning.tagged import LEFT
from spark_offload.stream.groups import MOST_GROUPS, group_keys
from spark_offload.task.task import declared

__all__ = [
    "AsofStreamTask",
    "GroupedTask",
    "SHUFFLE_PARTITIONS",
    "StreamTask",
    "Values",
    "as_results",
    "from_blob",
    "microseconds",
    "partitions_of_query",
    "question_of",
    "question_of_aggregation",
    "question_of_groups",
    "question_type",
    "require_group",
    "require_question",
    "require_state_store",
    "state_partitions",
    "to_blob",
    "whole_table",
]

Values = tuple[Any, ...]
"""A row of Spark's state."""

# A checkpoint belongs to one question: the kept rows answer no other one.
#
# Spark itself compares the schema of the state only. Groups that are cut otherwise would not find
# their rows any more, and nobody would notice; so the first rows after a start are held against
# what the checkpoint was begun with.

FORMAT = "3"
"""Of the state."""

_MARKS, _MOST_DIGITS = 6, 38
"""Fewest fields of the type of a question, and the types of decimal numbers that each may have."""

_REMEDY = (
    "start the query as it was begun, or begin anew with an empty checkpointLocation and an empty "
    "sink"
)


#: What the names that stand in checkpoints are called now.
_WORDS = {"order": "time", "keys": "on", "terms": "on, band and where"}


def question_of(query: Query, left: str, right: str) -> dict[str, str]:
    """Return what must stay the same, by the names of the arguments of ``stream_join``.

    Parameters
    ----------
    query : Query
        What is joined.
    left, right : str
        Columns and types of the inputs.
    """
    asked = (*query.terms, *([] if query.rest is None else [query.rest]))
    return {
        "format": FORMAT,
        "how": query.how.value,
        "terms": " and ".join(sorted(map(str, asked))) or "none",
        "order": ", ".join(query.time),
        "within": str(query.window if query.within is None else query.width)
        + (" per window" if query.per_window else ""),
        "left": left,
        "right": right,
    }


def question_of_aggregation(query: AggregateQuery, given: str) -> dict[str, str]:
    """Return what must stay the same of an aggregation, by the arguments of its function.

    Parameters
    ----------
    query : AggregateQuery
        What is aggregated.
    given : str
        Columns and types of the input.
    """
    return {
        "window": str(query.window),
        "advance": str(query.advance),
        "time": query.time,
        "keys": ", ".join(query.on),
        "aggregates": ", ".join(map(str, query.aggregates.values())),
        "columns": given,
    }


def question_of_groups(number: int) -> dict[str, str]:
    """Return what must stay the same of ``number`` groups, to be added to the question."""
    return {"partitions": str(number)}


def require_question(store: ValueState, question: Mapping[str, str]) -> None:
    """Raise unless the checkpoint was begun with ``question``; write it down if it is new.

    Raises
    ------
    UsageError
        If they differ, naming in what.
    """
    found = store.get()
    if found is None:
        store.update((json.dumps(dict(question), sort_keys=True),))
        return
    begun = {"how": JoinType.INNER.value} | json.loads(str(found[0]))  # once there was no other
    for name, now in question.items():
        if begun.get(name) != now:
            raise UsageError(
                f"The checkpoint of this query was begun with {_WORDS.get(name, name)} = "
                f"{begun.get(name)}, but now it is {now}; the kept rows do not fit: {_REMEDY}."
            )


def question_type(question: Mapping[str, str]) -> pa.DataType:
    """Return a type that two different questions do not share.

    Where Spark itself keeps the state, it compares the types of what is kept with those of the
    checkpoint, when the query starts; a column of this type, whose values are all null, makes it
    compare the question too. The types of the fields are a hash of the question, and their names
    tell it in Spark's error.
    """
    mark = hashlib.sha256(json.dumps(dict(question), sort_keys=True).encode()).digest()
    names = [f"{name} = {text}" for name, text in question.items()]
    names += [f"mark {at}" for at in range(len(names), _MARKS)]
    digits = [1 + mark[at] % _MOST_DIGITS for at in range(len(names))]
    return pa.struct([(name, pa.decimal128(n, 0)) for name, n in zip(names, digits, strict=True)])


def require_group(group: int, groups: Sequence[int]) -> None:
    """Raise if rows are kept for a group that this query does not have.

    Raises
    ------
    UsageError
        If so.
    """
    if group not in groups:
        raise UsageError(
            f"The checkpoint of this query holds rows of a group that there is none of among "
            f"{len(groups)} groups (partitions={len(groups)}): it was begun with more; {_REMEDY}."
        )


# The state store of Spark that a streaming join needs, and what Python needs to speak to it.

SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
"""Option that gives the number of partitions of the state of a query that starts anew."""

_PARTITIONS = ("spark.sql.streaming.internal.stateStore.partitions", SHUFFLE_PARTITIONS)
"""Properties of a task that tell the number of its query: that of Spark 4.3, and the older one."""


def require_state_store(session: SparkSession) -> str:
    """Return the name of the state store that a query would get; nothing is changed.

    Raises
    ------
    UsageError
        If it cannot keep the state of a streaming join.
    MissingToolError
        If the package ``protobuf`` is not there.
    """
    if find_spec("google") is None or find_spec("google.protobuf") is None:
        raise MissingToolError(
            "the Python package protobuf",
            "by streaming joins: Spark's state store is spoken to by it",
            "pip install 'protobuf>=6.33.5', on executors too",
        )
    chosen = session.conf.get(PROVIDER) or ""
    if chosen.endswith("HDFSBackedStateStoreProvider"):
        raise UsageError(
            f"The session keeps the state of streaming queries in {chosen.rpartition('.')[2]}, "
            f"which cannot keep that of a streaming join; choose the other store of Spark first: "
            f"spark.conf.set({PROVIDER!r}, {ROCKSDB!r})."
        )
    return chosen.rpartition(".")[2].removesuffix("StateStoreProvider")


def state_partitions(session: SparkSession) -> int:
    """Return the number of partitions that the state of a new query will have."""
    return int(session.conf.get(SHUFFLE_PARTITIONS) or 1)


def partitions_of_query(planned: int) -> int:
    """Return the number of partitions of the state, in a task of the query.

    Spark keeps it in the checkpoint, so a query that is started again keeps it too, whatever the
    session says then.

    Parameters
    ----------
    planned : int
        The number where nothing tells: that of the session when the join was planned.
    """
    context = TaskContext.get()
    for name in _PARTITIONS:
        found = None if context is None else context.getLocalProperty(name)
        if found:
            return int(found)
    return planned


# What the tasks of a streaming join need to know.


@dataclass(frozen=True, kw_only=True)
class GroupedTask:
    """Description of the tasks of any join of two streams; shipped with the functions.

    Parameters
    ----------
    left, right, output : Schema
        Columns of the inputs and of the answer.
    groups : tuple of int
        Keys of the groups of rows; empty: one for each partition of the state.
    partitions : int
        Partitions of the state, where no task tells them.
    question : mapping of str to str
        What must stay the same for as long as a checkpoint is used.
    times : (str, str)
        The order column of either side.
    """

    left: pa.Schema
    right: pa.Schema
    output: pa.Schema
    times: tuple[str, str]
    groups: tuple[int, ...]
    question: Mapping[str, str]
    partitions: int = 1

    def in_query(self) -> Self:
        """Return what a task of the query needs to know, which knows its number of partitions."""
        if self.groups:
            return self
        number = min(partitions_of_query(self.partitions), MOST_GROUPS)
        question = {**self.question, **question_of_groups(number)}
        return replace(self, groups=group_keys(number), question=question)

    def schema(self, side: int) -> pa.Schema:
        """Return the columns of one side."""
        return self.left if side == LEFT else self.right


@dataclass(frozen=True, kw_only=True)
class StreamTask(GroupedTask):
    """Description of the tasks of a streaming join over a window.

    Parameters
    ----------
    query : Query
        What to join.
    devices : DeviceSource
        Where to get a device, shipped.
    width : int
        Width of the window, in microseconds.
    slice_length : int
        Microseconds that a slice of the kept rows covers.
    software : str or None
        Address of the software device that joins rows which the device cannot hold; None: that is
        an error.
    """

    query: Query
    devices: DeviceSource
    width: int
    slice_length: int
    software: str | None = None


@dataclass(frozen=True, kw_only=True)
class AsofStreamTask(GroupedTask):
    """Description of the tasks of a streaming as-of join.

    Parameters
    ----------
    query : AsofQuery
        What to join.
    ahead : int
        Microseconds after a left row in which its right row can lie.
    tolerance : int or None
        Largest distance in microseconds; None: there is no limit.
    """

    query: AsofQuery
    ahead: int
    tolerance: int | None


# Rows as bytes: an Arrow stream with its schema, in which every type comes back as it was.
#
# Spark hands rows to a stateful processor as pandas frames, where a whole number beside a null
# becomes a float; so rows travel past pandas inside a binary column.


def to_blob(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> bytes:
    """Return rows of ``schema`` as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return bytes(sink.getvalue())


def from_blob(blob: bytes | pa.Buffer, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows that :func:`to_blob` made bytes, with exactly the declared types."""
    with pa.ipc.open_stream(blob) as reader:
        for batch in reader:
            yield declared(batch, schema)


def whole_table(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """Return the rows as one table."""
    return pa.Table.from_batches(list(batches), schema)


def microseconds(table: pa.Table, column: str) -> Int64s:
    """Return the timestamps of a column without nulls as whole numbers."""
    values: Int64s = table.column(column).cast(pa.int64()).to_numpy()
    return values


# One-sided rows as rows of the answer, with nulls for the columns of the other side.


def as_results(task: StreamTask, side: int, rows: pa.Table) -> list[pa.RecordBatch]:
    """Return rows of one side as rows of the answer.

    Parameters
    ----------
    task : StreamTask
        What is joined.
    side : int
        Of the rows.
    rows : Table
        The rows.
    """
    columns = rows.combine_chunks().columns
    if task.query.how.has_pairs:
        own = len(task.schema(side))
        types = task.output.types[own:] if side == LEFT else task.output.types[:-own]
        nulls = [pa.nulls(rows.num_rows, kind) for kind in types]
        columns = [*columns, *nulls] if side == LEFT else [*nulls, *columns]
    batches: list[pa.RecordBatch] = pa.Table.from_arrays(columns, schema=task.output).to_batches()
    return batches
