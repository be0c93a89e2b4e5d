# SPDX-License-Identifier: Apache-2.0
"""What Spark's Python workers do with their memory between two tasks.

Spark lets a worker collect garbage behind every task. The collector then visits every object of the
modules that are loaded, some 90,000 with pandas, PyArrow and this kit: 50 ms of processor time, as
much as a small task takes.
"""

from functools import cache
import gc

from pyspark import TaskContext

__all__ = ["spare_modules"]


def spare_modules() -> None:
    """Keep what is loaded by now out of later collections, once in a worker.

    To be called at the end of a task, when everything that a task needs has been loaded. Outside of
    a worker nothing happens.
    """
    if TaskContext.get() is not None:
        _spare()


@cache
def _spare() -> None:
    gc.collect()  # what is garbage now would stay
    gc.freeze()
