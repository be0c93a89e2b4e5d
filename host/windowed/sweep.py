# SPDX-License-Identifier: Apache-2.0
"""Sweep over windows that hold most keys: one state per key, moved from window to window.

Where the keys of a window are many, this is an order of magnitude faster than the reduction of a
range of cells for each result (:mod:`host.windowed.panes`), because results come sorted and states
are read in order.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["Sweep"]

Array: TypeAlias = npt.NDArray[Any]
Int64s: TypeAlias = npt.NDArray[np.int64]


class Sweep:
    """Cells by their panes, and the windows over them.

    Parameters
    ----------
    key, pane : array of int64
        Key and pane of each cell; each pair of them once. Keys are numbers from 0 on.
    states : sequence of array
        States of the cells, one array for each reduction.
    combines : sequence of callable
        Combination of each reduction's states.
    length, advance : int
        Panes of a window, and panes that the next one begins later.
    """

    def __init__(
        self,
        key: Int64s,
        pane: Int64s,
        states: Sequence[Array],
        combines: Sequence[Callable[[Array, Array], Array]],
        length: int,
        advance: int,
    ) -> None:
        order = np.argsort(pane, kind="stable")
        self._key = key[order]
        self._pane = pane[order]
        self._states = [column[order] for column in states]
        self._combines = list(combines)
        self._length = length
        self._advance = advance
        self._keys = int(key.max()) + 1

    @property
    def slides(self) -> bool:
        """Whether what leaves a window can be taken out of its state, exactly.

        That is so for sums of integers. A sum of floats would keep the rounding of what has left.
        """
        return all(
            combine is np.add and column.dtype == np.int64
            for combine, column in zip(self._combines, self._states, strict=True)
        )

    def windows(self, first: int, last: int) -> tuple[Int64s, Int64s, tuple[Array, ...]]:
        """Return (window, key, states) of the windows ``first .. last`` in their order."""
        steps = self._slid(first, last) if self.slides else self._rebuilt(first, last)
        counts, keys, states = [], [], []
        for found, values in steps:
            counts.append(len(found))
            keys.append(found)
            states.append(values)
        window = np.repeat(np.arange(first, last + 1, dtype=np.int64), counts)
        joined = tuple(np.concatenate(column) for column in zip(*states, strict=True))
        return window, np.concatenate(keys), joined

    def _span(self, begin: int, end: int) -> slice:
        """Return where the cells of the panes ``begin .. end - 1`` are."""
        low, high = np.searchsorted(self._pane, [begin, end])
        return slice(int(low), int(high))

    def _slid(self, first: int, last: int) -> Iterator[tuple[Int64s, list[Array]]]:
        """Yield each window's keys and states; panes come in and go out."""
        held = np.zeros(self._keys, np.int64)  # cells of each key in the window
        states = [np.zeros(self._keys, np.int64) for _ in self._states]
        begin = end = first * self._advance
        for window in range(first, last + 1):
            for span, sign in (
                (self._span(end, window * self._advance + self._length), 1),
                (self._span(begin, window * self._advance), -1),
            ):
                self._add(held, states, span, sign)
            begin = window * self._advance
            end = begin + self._length
            found = np.flatnonzero(held)
            yield found, [state[found] for state in states]

    def _add(self, held: Int64s, states: list[Int64s], span: slice, sign: int) -> None:
        keys = self._key[span]
        np.add.at(held, keys, sign)  # several panes of a span may have one key
        for state, column in zip(states, self._states, strict=True):
            np.add.at(state, keys, sign * column[span])

    def _rebuilt(self, first: int, last: int) -> Iterator[tuple[Int64s, list[Array]]]:
        """Yield each window's keys and states, combined from its panes one after the other."""
        states = [np.zeros(self._keys, column.dtype) for column in self._states]
        bounds = np.searchsorted(
            self._pane, np.arange(first * self._advance, last * self._advance + self._length + 1)
        )
        for window in range(first, last + 1):
            held = np.zeros(self._keys, np.bool_)
            place = (window - first) * self._advance
            for low, high in zip(
                bounds[place : place + self._length],
                bounds[place + 1 : place + self._length + 1],
                strict=True,
            ):
                keys = self._key[low:high]
                fresh = ~held[keys]
                for state, column, combine in zip(
                    states, self._states, self._combines, strict=True
                ):
                    values = column[low:high]
                    state[keys] = np.where(fresh, values, combine(state[keys], values))
                held[keys] = True
            found = np.flatnonzero(held)
            yield found, [state[found] for state in states]
