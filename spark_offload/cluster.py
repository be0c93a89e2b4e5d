# SPDX-License-Identifier: Apache-2.0
"""What a session can do with the machines behind it, whichever way it is connected to them."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from spark_offload.luggage import Luggage
from spark_offload.metrics import JoinMetrics, TaskReport, gather_tasks
from spark_offload.session import use_this_python

__all__ = ["Cluster", "ContextCluster", "cluster_of"]


class Cluster(ABC):
    """The machines of a session.

    Attributes
    ----------
    identity : str
        Of what files are sent to: a file that was sent to it is there for as long as it lives.
    luggage : Luggage or None
        What functions must carry, because Spark does not send it.
    """

    identity: str
    luggage: Luggage | None = None

    @property
    @abstractmethod
    def cores(self) -> int:
        """Tasks that run at the same time."""

    @abstractmethod
    def send_package(self, path: Path) -> None:
        """Let executors import what is in an archive."""

    @abstractmethod
    def send_folder(self, path: Path, name: str) -> None:
        """Let executors find what is in an archive, unpacked, as ``SparkFiles.get(name)``."""

    @abstractmethod
    def gather_tasks(self) -> tuple[TaskReport, Callable[[], JoinMetrics]]:
        """Return the function that tasks report with, and the one that reads the reports."""


class ContextCluster(Cluster):
    """The machines of a session with a Java process of its own, which is the usual one.

    Parameters
    ----------
    session : SparkSession
        The session.
    """

    def __init__(self, session: SparkSession) -> None:
        self._context = session.sparkContext
        self.identity = str(self._context.applicationId)
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


def cluster_of(session: SparkSession, *, streaming: bool = False) -> Cluster:
    """Return the machines of a session, as its streaming queries see them or as all others do."""
    # That module is about clusters, so it imports this one.
    from spark_offload.connect import ConnectCluster, ConnectStreams, is_connect

    if is_connect(session):
        return ConnectStreams(session) if streaming else ConnectCluster(session)
    return ContextCluster(session)
