# SPDX-License-Identifier: Apache-2.0
"""How far a local Spark has come: tasks of its stages, and rows told through small files."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
import tempfile

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from host.cli.command import Status

__all__ = ["running_stages", "show_progress", "tuples_writer"]


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
def show_progress(status: Status, spark: SparkSession) -> Iterator[str]:
    """Show what Spark does for a join while the body runs; yield the folder that tasks write to.

    Parameters
    ----------
    status : Status
        Where to show it.
    spark : SparkSession
        Whose tasks to count.
    """
    told: dict[str, int] = {}
    with tempfile.TemporaryDirectory(prefix="splitjoin-progress-") as folder:

        def count() -> str:
            for path in Path(folder).iterdir():
                text = path.read_text()  # empty while it is being written
                told[path.name] = int(text) if text.isdigit() else told.get(path.name, 0)
            rows = sum(told.values())
            parts = [f"{rows:,} rows joined" if rows else "", running_stages(spark)]
            return ", ".join(part for part in parts if part)

        with status.stage("joining in Spark", count):
            yield folder


def running_stages(spark: SparkSession) -> str:
    """Say how far the stages that run are: of reading, shuffling, joining, writing.

    Executors tell of the rows of unfinished tasks with every heartbeat, so the numbers move within
    the first task.
    """
    try:
        active = spark._jsc.sc().statusStore().activeStages()
        stages = [active.apply(index) for index in range(active.size())]
        return ", ".join(
            f"stage {stage.stageId()}: {stage.numCompleteTasks()} of {stage.numTasks()} tasks"
            + _rows_read(int(stage.inputRecords()) + int(stage.shuffleReadRecords()))
            for stage in sorted(stages, key=lambda stage: int(stage.stageId()))
        )
    except (Py4JError, OSError, AttributeError):
        return ""  # Spark is being stopped


def _rows_read(rows: int) -> str:
    return f" and {rows:,} rows" if rows else ""
