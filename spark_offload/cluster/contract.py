# SPDX-License-Identifier: Apache-2.0
"""What a session can do with the machines behind it, whichever way it is connected to them."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path

from spark_offload.cluster.luggage import Luggage
from spark_offload.cluster.shipments import Shipments
from spark_offload.measures.metrics import JoinMetrics, TaskReport

__all__ = ["Cluster"]


class Cluster(ABC):
    """The machines of a session.

    Attributes
    ----------
    shipments : Shipments
        What has been sent to the machines; it is there for as long as they are.
    luggage : Luggage or None
        What functions must carry, because Spark does not send it.
    """

    shipments: Shipments
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
