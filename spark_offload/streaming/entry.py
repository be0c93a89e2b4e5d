# SPDX-License-Identifier: Apache-2.0
"""The class that Spark calls, shipped as its own source of truth: it imports nothing of this kit.

Spark first calls :meth:`JoinProcessor.init` in a Python process beside the driver, which does not
get the packages that executors get; so this module travels by value, and what it needs on an
executor is imported there.
"""

from collections.abc import Iterator
from importlib import import_module
import pickle
import sys
from typing import Any

from pyspark.cloudpickle import register_pickle_by_value
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

__all__ = ["JoinProcessor"]


class JoinProcessor(StatefulProcessor):
    """Calls the join of one task, such as :class:`~spark_offload.streaming.processor.GroupJoin`.

    Parameters
    ----------
    join : str
        Module and name of the class of that join, ``"module:name"``.
    task : bytes
        The pickled :class:`~spark_offload.streaming.task.GroupedTask`.
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
