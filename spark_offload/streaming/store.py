# SPDX-License-Identifier: Apache-2.0
"""The state store of Spark that a streaming join needs, and what Python needs to speak to it."""

from importlib.util import find_spec

from pyspark import TaskContext
from pyspark.sql import SparkSession

from host import UsageError
from host.errors import MissingToolError
from spark_offload.session.spark_session import PROVIDER, ROCKSDB

__all__ = ["SHUFFLE_PARTITIONS", "partitions_of_query", "require_state_store", "state_partitions"]

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
