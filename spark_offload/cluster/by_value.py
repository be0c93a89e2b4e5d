# SPDX-License-Identifier: Apache-2.0
"""What travels inside a function, by value, as it imports nothing of this kit: luggage, and entry.

Streaming queries of Spark Connect do not get the artifacts of their session (as of Spark 4.3), so
their functions carry what they need as luggage, and unpack it among the files of the executor,
which Spark removes with the executor. And Spark first calls :meth:`JoinProcessor.init` in a Python
process beside the driver, which does not get the packages that executors get; what the processor
needs on an executor is imported there.
"""

from collections.abc import Callable, Iterator
from importlib import import_module
import io
import os
from pathlib import Path
import pickle
import shutil
import sys
import tempfile
from typing import Any, TypeVar
import zipfile

from pyspark import SparkFiles
from pyspark.cloudpickle import dumps, register_pickle_by_value
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

__all__ = [
    "JoinProcessor",
    "Luggage",
    "carrying",
]

Item = TypeVar("Item")


class Luggage:
    """Archives, by the names of the folders that they become."""

    def __init__(self) -> None:
        self._archives: dict[str, tuple[bytes, bool]] = {}

    def add(self, name: str, archive: bytes, *, importable: bool) -> None:
        """Add a zip; ``importable`` says whether Python imports from it."""
        self._archives[name] = archive, importable

    def unpack(self) -> None:
        """Make the folders ``SparkFiles.get(name)`` on this executor, if they are not there."""
        for name, (archive, importable) in self._archives.items():
            folder = Path(SparkFiles.get(name))
            if not folder.is_dir():
                _unpack(archive, folder)
            if importable and str(folder) not in sys.path:
                sys.path.insert(0, str(folder))


def carrying(
    luggage: Luggage | None, function: Callable[[Iterator[Item]], Iterator[Item]]
) -> Callable[[Iterator[Item]], Iterator[Item]]:
    """Return ``function`` as one that unpacks the luggage before anything else."""
    if luggage is None:
        return function
    pickled = dumps(function)  # type: ignore[no-untyped-call]

    def carried(items: Iterator[Item]) -> Iterator[Item]:
        luggage.unpack()
        yield from pickle.loads(pickled)(items)

    carried.__name__ = carried.__qualname__ = function.__name__
    return carried


def _unpack(archive: bytes, folder: Path) -> None:
    """Make a folder at once, as other tasks of the executor may be doing the same."""
    made = tempfile.mkdtemp(dir=folder.parent)
    with zipfile.ZipFile(io.BytesIO(archive)) as content:
        content.extractall(made)
    try:
        os.rename(made, folder)
    except OSError:
        shutil.rmtree(made)
        if not folder.is_dir():
            raise


class JoinProcessor(StatefulProcessor):
    """Calls the join of one task, such as :class:`~spark_offload.stream.processor.GroupJoin`.

    Parameters
    ----------
    join : str
        Module and name of the class of that join, ``"module:name"``.
    task : bytes
        The pickled :class:`~spark_offload.stream.task.GroupedTask`.
    luggage : Luggage, optional
        Packages and bundles, where Spark does not send them.
    """

    def __init__(self, join: str, task: bytes, luggage: Any = None) -> None:
        self._kind = join
        self._task = task
        self._luggage = luggage
        self._stores: tuple[Any, ...] = ()
        self._join: Any = None

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state."""
        self._join = None
        self._stores = (
            handle.getValueState("question", "question string"),
            handle.getValueState("directory", "length bigint, timer bigint, slices binary"),
            handle.getMapState("rows", "side int, slice bigint, part int", "rows binary"),
            handle,
        )

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
        """Join the new rows of a group."""
        return self._group_join().rows_came(key[0], rows, timerValues.getCurrentWatermarkInMs())

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[Any]:
        """Forget rows of a group."""
        return self._group_join().timer_fired(
            key[0], expiredTimerInfo.getExpiryTimeInMs(), timerValues.getCurrentWatermarkInMs()
        )

    def close(self) -> None:
        """Close the device."""
        if self._join is not None:
            self._join.close()

    def _group_join(self) -> Any:
        if self._join is None:
            if self._luggage is not None:
                self._luggage.unpack()
            module, _, name = self._kind.partition(":")
            kind = getattr(import_module(module), name)
            self._join = kind(pickle.loads(self._task), *self._stores)
        return self._join


register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
