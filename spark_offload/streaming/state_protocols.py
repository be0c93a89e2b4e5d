# SPDX-License-Identifier: Apache-2.0
"""What is used of Spark's state and timers, so that tests can stand in for Spark."""

from typing import Protocol

__all__ = ["MapStore", "Timers", "ValueStore", "Values"]

Values = tuple[object, ...]


class ValueStore(Protocol):
    """What is used of :class:`pyspark.sql.streaming.stateful_processor.ValueState`."""

    def get(self) -> Values | None: ...
    def update(self, newValue: Values) -> None: ...
    def clear(self) -> None: ...


class MapStore(Protocol):
    """What is used of :class:`pyspark.sql.streaming.stateful_processor.MapState`."""

    def getValue(self, key: Values) -> Values | None: ...
    def updateValue(self, key: Values, value: Values) -> None: ...
    def removeKey(self, key: Values) -> None: ...


class Timers(Protocol):
    """What is used of the handle of a processor."""

    def registerTimer(self, expiryTimestampMs: int) -> None: ...
    def deleteTimer(self, expiryTimestampMs: int) -> None: ...
