# SPDX-License-Identifier: Apache-2.0
"""What joins and forwards compute: results for tuples when they arrive."""

from collections.abc import Iterator
from functools import reduce
from typing import Any

from host.expressions import evaluate
from host.reference.window_state import Arrival, WindowInstance
from host.windowed.common_meaning import Meaning, Reducing, names_of

__all__ = ["ForwardMeaning", "JoinAggregateMeaning", "JoinMeaning"]


class Matching(Meaning):
    """An operator that keeps tuples, and matches arriving ones with them."""

    def matches(self, arrival: Arrival, stored: list[Arrival]) -> Iterator[tuple[Arrival, Arrival]]:
        """Yield (left, right) for each stored tuple of the other input that a tuple matches."""
        assert self.operator.match is not None
        for other in stored:
            left, right = (other, arrival) if arrival.input else (arrival, other)
            if evaluate(self.operator.match, pair_names(left, right)) != 0:
                yield left, right


class JoinMeaning(Matching):
    """J+. A window instance holds how many tuples have come, and those that it stores."""

    def functions(self) -> dict[str, Any]:
        return {"update": self._update, "slide": self._slide}

    def _update(
        self, windows: tuple[WindowInstance, ...], arrival: Arrival
    ) -> tuple[list[Any], list[Any]]:
        count = windows[0].state[0] if windows[0].state else 0
        stored = [window.state[1] if window.state else [] for window in windows]
        pairs = [
            (windows[0].key, (*self.row(left), *self.row(right)))
            for left, right in self.matches(arrival, stored[1 - arrival.input])
        ]
        if not self.operator.in_turns or self._has_turn(count, windows[0], arrival):
            stored[arrival.input] = [*stored[arrival.input], arrival]
        return [(count + 1, tuples) for tuples in stored], pairs

    def _has_turn(self, count: int, window: WindowInstance, arrival: Arrival) -> bool:
        keys = list(dict.fromkeys(self.keys(arrival)))
        return keys[count % len(keys)] == window.key

    def _slide(self, windows: tuple[WindowInstance, ...]) -> list[Any]:
        """Purge tuples that have left. The count stays, or keys would lose their turns."""
        first = windows[0].left + self.operator.advance
        kept = [
            (window.state[0], [tuple_ for tuple_ in window.state[1] if tuple_.timestamp >= first])
            for window in windows
        ]
        empty = not self.operator.in_turns and not any(tuples for _, tuples in kept)
        return [None] * len(kept) if empty else list(kept)


class JoinAggregateMeaning(Matching, Reducing):
    """J+ with reductions. Right tuples are stored; a left one gives what its matches add up to."""

    def functions(self) -> dict[str, Any]:
        return {"update": self._update}

    def _update(
        self, windows: tuple[WindowInstance, ...], arrival: Arrival
    ) -> tuple[list[Any], list[Any]]:
        stored: list[Arrival] = windows[1].state or []
        if arrival.input == 1:
            return [None, [*stored, arrival]], []
        values = (self.values(pair_names(*pair)) for pair in self.matches(arrival, stored))
        states = reduce(self.combined, values, None) or self._of_nothing()
        given = self.outputs(windows[0], states)
        return [None, stored or None], [
            (windows[0].key, (*self.row(arrival), *values)) for values in given
        ]

    def _of_nothing(self) -> tuple[int | None, ...]:
        """Return the states of no match."""
        adds = {"count", "sum"}
        return tuple(0 if one.function in adds else None for one in self.operator.reductions)


class ForwardMeaning(Meaning):
    """O+ without a state: a tuple is put out for each of its keys."""

    def functions(self) -> dict[str, Any]:
        return {"update": self._update}

    def _update(
        self, windows: tuple[WindowInstance, ...], arrival: Arrival
    ) -> tuple[list[Any], list[Any]]:
        return [None for _ in windows], [(windows[0].key, self.row(arrival))]


def pair_names(left: Arrival, right: Arrival) -> dict[str, int]:
    """Return what expressions read of a left and a right tuple."""
    names = {f"l.{name}": value for name, value in names_of(left).items()}
    return names | {f"r.{name}": value for name, value in names_of(right).items()}
