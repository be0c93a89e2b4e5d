# SPDX-License-Identifier: Apache-2.0
"""The state store of Spark that a streaming join needs, and what Python needs to speak to it."""

from importlib.util import find_spec

from pyspark.sql import SparkSession

from host import UsageError
from host.errors import MissingToolError

__all__ = ["PROVIDER", "ROCKSDB", "SHUFFLE_PARTITIONS", "prepare_state_store", "state_partitions"]

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
"""Option that names the state store."""

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
"""The only store of Spark that keeps maps and timers by key."""

SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
"""Option that gives the number of partitions of the state."""


def prepare_state_store(session: SparkSession) -> str:
    """Choose RocksDB if nobody has chosen a state store; return its name and who chose it.

    Raises
    ------
    UsageError
        If another store has been chosen that cannot do.
    MissingToolError
        If the package ``protobuf`` is not there.
    """
    if find_spec("google") is None or find_spec("google.protobuf") is None:
        raise MissingToolError(
            "the Python package protobuf",
            "by streaming joins: Spark's state store is spoken to by it",
            "pip install 'protobuf>=6.33.5', on executors too",
        )
    chosen = session.conf.get(PROVIDER, None)
    if chosen is None:
        session.conf.set(PROVIDER, ROCKSDB)
        return "RocksDB (chosen by stream_join for this session, as there was no other choice)"
    if chosen.endswith("HDFSBackedStateStoreProvider"):
        raise UsageError(
            f"{PROVIDER} is {chosen}, which cannot keep the state of a streaming join; leave it "
            f"out, or set it to {ROCKSDB}."
        )
    return f"{chosen.rpartition('.')[2].removesuffix('StateStoreProvider')} (as the session says)"


def state_partitions(session: SparkSession) -> int:
    """Return the number of partitions that the state of a new query will have."""
    return int(session.conf.get(SHUFFLE_PARTITIONS) or 1)
