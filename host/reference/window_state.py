# SPDX-License-Identifier: Apache-2.0
"""The window instances of a generalized operator: what STRETCH calls its state, sigma."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from math import inf
from typing import Any, TypeAlias

__all__ = ["Arrival", "Key", "Result", "WindowInstance", "WindowState"]

#: A key of a tuple. Keys of one operator are of one type that has an order.
Key: TypeAlias = Hashable


@dataclass(frozen=True)
class Arrival:
    """A tuple on its way into an operator.

    Parameters
    ----------
    timestamp : int
        The event time, tau.
    payload : object
        phi; what it is, only the operator's functions know.
    input : int
        Number of the input stream that the tuple comes from: 0 or 1.
    watermark : int, optional
        Explicit watermark: no later tuple has a lower timestamp. By default the tuple's own
        timestamp is the watermark, as where the input is sorted.
    """

    timestamp: int
    payload: Any
    input: int = 0
    watermark: int | None = None


@dataclass(frozen=True)
class Result:
    """A tuple that an operator puts out; its time is the right boundary of its window."""

    timestamp: int
    payload: Any


@dataclass
class WindowInstance:
    """A window of one key and one input: its state zeta, or None while it is empty."""

    state: Any
    left: int
    key: Key


class WindowState:
    """All window instances of an operator: for each key, sets of one instance per input.

    Parameters
    ----------
    size, advance : int
        WS and WA.
    inputs : int
        I.
    """

    def __init__(self, size: int, advance: int, inputs: int) -> None:
        self.size = size
        self.advance = advance
        self.inputs = inputs
        self._sets: dict[Key, dict[int, tuple[WindowInstance, ...]]] = {}

    def __len__(self) -> int:
        """Return the number of sets of window instances."""
        return sum(len(sets) for sets in self._sets.values())

    def earliest_left(self, timestamp: int) -> int:
        """Return the earliest left boundary of a window that a time falls in (earliestWinL)."""
        return ((timestamp - self.size) // self.advance + 1) * self.advance

    def latest_left(self, timestamp: int) -> int:
        """Return the latest left boundary of a window that a time falls in (latestWinL)."""
        return timestamp // self.advance * self.advance

    def check_and_create(self, key: Key, left: int) -> tuple[WindowInstance, ...]:
        """Return the set of a key at a left boundary, which is made if there is none."""
        sets = self._sets.setdefault(key, {})
        if left not in sets:
            sets[left] = tuple(WindowInstance(None, left, key) for _ in range(self.inputs))
        return sets[left]

    def set(self, windows: Iterable[WindowInstance], states: Iterable[Any]) -> None:
        """Give window instances new states."""
        for window, state in zip(windows, states, strict=True):
            window.state = state

    def shift(self, key: Key, left: int, states: Iterable[Any]) -> None:
        """Move the set of a key by WA, with new states."""
        windows = self._sets[key].pop(left)
        for window, state in zip(windows, states, strict=True):
            window.left, window.state = left + self.advance, state
        self._sets[key][left + self.advance] = windows

    def remove(self, key: Key, left: int) -> None:
        """Remove the set of a key."""
        del self._sets[key][left]
        if not self._sets[key]:
            del self._sets[key]

    def earliest(self, keys: Iterable[Key]) -> float:
        """Return the earliest left boundary of the sets of ``keys``; infinity without a set."""
        return min((left for key in keys for left in self._sets[key]), default=inf)

    def all_keys(self) -> list[Key]:
        """Return all keys that have sets."""
        return list(self._sets)

    def keys_at(self, left: float) -> list[Key]:
        """Return the keys that have a set at a left boundary, sorted."""
        found: list[Any] = [key for key, sets in self._sets.items() if left in sets]
        return sorted(found)
