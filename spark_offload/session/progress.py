# SPDX-License-Identifier: Apache-2.0
"""How far a local Spark has come: tasks of its stages, and rows told through small files."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
import tempfile

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from host.cli.status import Status

__all__ = ["show_progress", "tuples_writer"]


def tuples_writer(folder: str | None, partition: int) -> Callable[[int], None]:
    """Return the function by which a task tells how many tuples it has sent to its device."""

    def tell(tuples: int) -> None:
        if folder is None:
            return
        # Nobody may care any more, or the driver may be on another machine.
        if Path(folder).is_dir():
            Path(folder, str(partition)).write_text(str(tuples))

    return tell


@contextmanager
def show_progress(status: Status, spark: SparkSession, total: int) -> Iterator[str]:
    """Show what Spark does for a join while the body runs; yield the folder that tasks write to.

    Parameters
    ----------
    status : Status
        Where to show it.
    spark : SparkSession
        Whose tasks to count.
    total : int
        Tuples that will be joined in all, without those that are sent to several tasks.
    """
    with tempfile.TemporaryDirectory(prefix="splitjoin-progress-") as folder:

        def count() -> str:
            parts = [_joined(folder, total), _stages(spark)]
            return ", ".join(part for part in parts if part)

        with status.stage("joining in Spark", count):
            yield folder


def _joined(folder: str, total: int) -> str:
    """Say how many tuples the tasks have told of, once there are any."""
    texts = [path.read_text() for path in Path(folder).iterdir()]
    told = min(sum(int(text) for text in texts if text.isdigit()), total)
    return f"{told:,} of {total:,} rows joined" if told else ""


def _stages(spark: SparkSession) -> str:
    """Say how many tasks of the stages that run are done: of reading, shuffling, joining."""
    try:
        tracker = spark.sparkContext.statusTracker()
        found = [(stage, tracker.getStageInfo(stage)) for stage in tracker.getActiveStageIds()]
    except (Py4JError, OSError, AttributeError):
        return ""  # Spark is being stopped
    return ", ".join(
        f"stage {stage}: {info.numCompletedTasks} of {info.numTasks} tasks"
        for stage, info in sorted(found)
        if info is not None
    )
