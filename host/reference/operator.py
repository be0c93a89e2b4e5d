# SPDX-License-Identifier: Apache-2.0
"""The generalized operator O+ of STRETCH as plain code, for one instance and for several."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from math import inf
from typing import Any, TypeAlias

from host.errors import UsageError

__all__ = [
    "Arrival",
    "GeneralOperator",
    "Key",
    "OperatorInstance",
    "Result",
    "WindowInstance",
    "WindowState",
    "run",
]

# The window instances of a generalized operator: what STRETCH calls its state, sigma.

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


# The generalized operator O+ of STRETCH as plain code: Algorithm 2, with Table I's defaults.
#
# It is the oracle for everything that computes windows. Functions are given as Python functions;
# how an operator that is described as data gets them is in :mod:`host.operators.meaning`.

Windows: TypeAlias = tuple[WindowInstance, ...]


def store(windows: Windows, arrival: Arrival) -> tuple[list[Any], list[Any]]:
    """Store a tuple in the window of its input, the default of f_U."""
    states = [window.state for window in windows]
    states[arrival.input] = [*(states[arrival.input] or []), arrival]
    return states, []


def nothing(windows: Windows) -> list[Any]:
    """Put nothing out, the default of f_O."""
    del windows
    return []


@dataclass(frozen=True)
class GeneralOperator:
    """O+(WA, WS, I, f_MK, WT, f_U, f_O, f_S).

    Parameters
    ----------
    size, advance, inputs : int
        WS, WA and I.
    keys : callable
        f_MK: from an :class:`Arrival` to its keys, of which repeated ones count once.
    single : bool
        WT: one window instance per key that slides, or one for every window.
    update : callable
        f_U: from the window instances of a key and an arrival to their states, and to payloads that
        are put out at once. By default the tuple is stored.
    output : callable
        f_O: from the window instances of a key that have expired to payloads. By default none.
    slide : callable, optional
        f_S: from window instances whose left boundary is about to move by WA to their states; None
        is an empty state. By default tuples that have left are purged.
    """

    size: int
    advance: int
    keys: Callable[[Arrival], Iterable[Key]]
    inputs: int = 1
    single: bool = False
    update: Callable[[Windows, Arrival], tuple[list[Any], list[Any]]] = store
    output: Callable[[Windows], list[Any]] = nothing
    slide: Callable[[Windows], list[Any]] | None = None

    def slid(self, windows: Windows) -> list[Any]:
        """Return the states of windows that move by WA."""
        if self.slide is not None:
            return self.slide(windows)
        first = windows[0].left + self.advance
        kept = ([t for t in window.state or [] if t.timestamp >= first] for window in windows)
        return [tuples or None for tuples in kept]


class OperatorInstance:
    """One instance of an operator: Algorithm 2, processSN.

    Parameters
    ----------
    operator : GeneralOperator
    state : WindowState, optional
        The state, if it is shared with other instances.
    responsible : callable, optional
        Whether a key is this instance's: ``f_mu(k) = j``. By default, every key is.

    Attributes
    ----------
    watermark : int or None
        W; None before the first tuple.
    late : int
        Number of pairs of a tuple and a key's window that were left out, because the window had
        already expired. Zero unless a tuple is below the watermark.
    """

    def __init__(
        self,
        operator: GeneralOperator,
        state: WindowState | None = None,
        responsible: Callable[[Key], bool] = lambda key: True,
    ) -> None:
        self.operator = operator
        self.responsible = responsible
        self.watermark: int | None = None
        self.late = 0
        own = WindowState(operator.size, operator.advance, operator.inputs)
        self._state = own if state is None else state
        self._last: int | None = None
        self._rho = -inf  # a lower bound of the left boundaries of this instance's windows

    def process(self, arrival: Arrival) -> list[Result]:
        """Take a tuple; return the results of windows that its watermark ends, then its own."""
        self._require_order(arrival)
        explicit = arrival.watermark
        results = self.advance(arrival.timestamp if explicit is None else explicit)
        return [*results, *self._handle(arrival)]

    def advance(self, watermark: int) -> list[Result]:
        """Take a watermark without a tuple; return the results of windows that it ends."""
        if self.watermark is None or watermark > self.watermark:
            self.watermark = watermark
        results: list[Result] = []
        # A window has expired when the watermark reaches its right boundary: the boundary is
        # exclusive, and no later tuple is below the watermark. Algorithm 2 steps through all left
        # boundaries from 0; here, those without a window are skipped.
        while self._rho + self.operator.size <= self.watermark:
            keys = [key for key in self._state.keys_at(self._rho) if self.responsible(key)]
            for key in keys:
                results += self._forward_and_shift(key, int(self._rho))
            self._rho = self._state.earliest(filter(self.responsible, self._state.all_keys()))
        return results

    def finish(self) -> list[Result]:
        """Return the results of all windows that hold a tuple: the end of the stream."""
        if self._last is None:
            return []
        last_end = self._state.latest_left(self._last) + self.operator.size
        return self.advance(max(last_end, self.watermark or last_end))

    def take_over(self, other: "OperatorInstance") -> None:
        """Go on from the watermark that another instance has reached (Lemma 3)."""
        self.watermark, self._last = other.watermark, other._last

    def _forward_and_shift(self, key: Key, left: int) -> list[Result]:
        windows = self._state.check_and_create(key, left)
        results = self._results(left, self.operator.output(windows))
        states = self.operator.slid(windows) if self.operator.single else []
        if any(state is not None for state in states):
            self._state.shift(key, left, states)
        else:
            self._state.remove(key, left)
        return results

    def _handle(self, arrival: Arrival) -> Iterator[Result]:
        """Update the windows that a tuple falls in; yield what the updates put out."""
        assert self.watermark is not None
        keys = [key for key in dict.fromkeys(self.operator.keys(arrival)) if self.responsible(key)]
        state, advance = self._state, self.operator.advance
        first = state.earliest_left(arrival.timestamp)
        open_from = max(first, state.earliest_left(self.watermark))
        last = first if self.operator.single else state.latest_left(arrival.timestamp)
        self._rho = min(self._rho, open_from)
        self.late += len(keys) * max(0, min(open_from, last + advance) - first) // advance
        for left in range(open_from, last + 1, advance):
            for key in keys:
                windows = state.check_and_create(key, left)
                states, payloads = self.operator.update(windows, arrival)
                yield from self._results(left, payloads)
                state.set(windows, states)
                if all(one is None for one in states):
                    state.remove(key, left)

    def _results(self, left: int, payloads: Iterable[Any]) -> list[Result]:
        """Return output tuples, whose time is the window's right boundary (prepareOutTuples)."""
        return [Result(left + self.operator.size, payload) for payload in payloads]

    def _require_order(self, arrival: Arrival) -> None:
        """Raise for a tuple that a single window instance cannot take.

        What it holds is the window that the watermark is in. A tuple of another window would change
        the state of a window that has not expired, or of one that has.
        """
        is_sorted = self._last is None or arrival.timestamp >= self._last
        if self.operator.single and not (is_sorted and arrival.watermark is None):
            at = "an explicit watermark" if is_sorted else f"time {self._last} before it"
            raise UsageError(
                f"Tuple with time {arrival.timestamp} has {at}: an operator with a single window "
                f"instance per key takes tuples in the order of their times; sort them first, or "
                f"use instances 'multi'."
            )
        self._last = arrival.timestamp if is_sorted else self._last


def run(operator: GeneralOperator, arrivals: Iterable[Arrival]) -> list[Result]:
    """Return the results of all tuples, with those of the windows that are open at the end."""
    instance = OperatorInstance(operator)
    results = [result for arrival in arrivals for result in instance.process(arrival)]
    return results + instance.finish()
