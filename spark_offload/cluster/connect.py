# SPDX-License-Identifier: Apache-2.0
"""Spark Connect: a session whose Spark runs in another process, reached over the network.

There is no Spark context, so no accumulators; and no Java object behind a frame, so no estimate of
its size. Files are sent as artifacts.
"""

from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from host import UsageError
from spark_offload.cluster.contract import Cluster
from spark_offload.cluster.luggage import Luggage
from spark_offload.cluster.shipments import Shipments, shipments_of
from spark_offload.measures.metrics import JoinMetrics, TaskMetrics, TaskReport

__all__ = ["ConnectCluster", "ConnectStreams", "is_connect"]


class ConnectCluster(Cluster):
    """The machines of a session of Spark Connect.

    Parameters
    ----------
    session : SparkSession
        The session.
    """

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        # What is sent belongs to the session, not to the server.
        self.shipments = shipments_of(session)

    @property
    def cores(self) -> int:
        """Tasks that run at the same time, told by the partitions of a range, in a small job."""
        parts = self._session.range(1 << 16).select(F.spark_partition_id().alias("part"))
        last = parts.agg(F.max("part").alias("last")).first()
        return 1 if last is None else int(last.last) + 1

    def send_package(self, path: Path) -> None:
        """Let executors import what is in an archive."""
        self._session.addArtifacts(str(path), pyfile=True)

    def send_folder(self, path: Path, name: str) -> None:
        """Let executors find what is in an archive, unpacked, as ``SparkFiles.get(name)``."""
        self._session.addArtifacts(f"{path}#{name}", archive=True)

    def gather_tasks(self) -> tuple[TaskReport, Callable[[], JoinMetrics]]:
        """Return a function that tasks report with, to nobody, and one that says so."""
        return _unheard, _no_metrics


class ConnectStreams(ConnectCluster):
    """The machines as one streaming query sees them: its functions carry what is sent.

    Parameters
    ----------
    session : SparkSession
        The session.
    """

    def __init__(self, session: SparkSession) -> None:
        super().__init__(session)
        # Every query has luggage of its own.
        self.shipments = Shipments()
        self._carried = Luggage()
        self.luggage = self._carried

    def send_package(self, path: Path) -> None:
        """Let executors import what is in an archive."""
        self._carried.add(path.stem, path.read_bytes(), importable=True)

    def send_folder(self, path: Path, name: str) -> None:
        """Let executors find what is in an archive, unpacked, as ``SparkFiles.get(name)``."""
        self._carried.add(name, path.read_bytes(), importable=False)


def is_connect(of: SparkSession | DataFrame) -> bool:
    """Tell whether a session, or that of a frame, is one of Spark Connect."""
    # Asked by the name of its module, as importing that takes packages that few need.
    return type(of).__module__.startswith("pyspark.sql.connect.")


def _unheard(task: TaskMetrics) -> None:
    """Spark Connect has no way back for what a task measured."""


def _no_metrics() -> JoinMetrics:
    raise UsageError(
        "Spark Connect has no accumulators, which is how tasks report what they measured; run the "
        "program with a session of its own (spark-submit, or SparkSession.builder.master(...)) to "
        "have metrics of batch joins. Those of streams, stream_metrics(query), come with Connect."
    )
