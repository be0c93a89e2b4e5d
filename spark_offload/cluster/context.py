# SPDX-License-Identifier: Apache-2.0
"""A session with a Java process of its own, which is the usual one."""

from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from spark_offload.cluster.contract import Cluster
from spark_offload.cluster.shipments import shipments_of
from spark_offload.measures.metrics import JoinMetrics, TaskReport
from spark_offload.measures.reports import gather_tasks
from spark_offload.session.spark_session import use_this_python

__all__ = ["ContextCluster"]


class ContextCluster(Cluster):
    """The machines of a session with a Java process of its own, which has a Spark context.

    Parameters
    ----------
    session : SparkSession
        The session.
    """

    def __init__(self, session: SparkSession) -> None:
        self._context = session.sparkContext
        self.shipments = shipments_of(self._context)
        use_this_python(self._context)

    @property
    def cores(self) -> int:
        """Tasks that run at the same time."""
        return int(self._context.defaultParallelism)

    def send_package(self, path: Path) -> None:
        """Let executors import what is in an archive."""
        self._context.addPyFile(str(path))

    def send_folder(self, path: Path, name: str) -> None:
        """Let executors find what is in an archive, unpacked, as ``SparkFiles.get(name)``."""
        self._context.addArchive(f"{path}#{name}")

    def gather_tasks(self) -> tuple[TaskReport, Callable[[], JoinMetrics]]:
        """Return the function that tasks report with, and the one that reads the reports."""
        return gather_tasks(self._context)
