# SPDX-License-Identifier: Apache-2.0
"""Archives that travel inside a function, for where Spark does not bring files to tasks.

Streaming queries of Spark Connect do not get the artifacts of their session (as of Spark 4.3). So
their functions carry what they need, and unpack it among the files of the executor, which Spark
removes with the executor. This module travels by value: it imports nothing of this kit.
"""

from collections.abc import Callable, Iterator
import io
import os
from pathlib import Path
import pickle
import shutil
import sys
import tempfile
from typing import TypeVar
import zipfile

from pyspark import SparkFiles
from pyspark.cloudpickle import dumps, register_pickle_by_value

__all__ = ["Luggage", "carrying"]

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


register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
