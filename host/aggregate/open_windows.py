# SPDX-License-Identifier: Apache-2.0
"""The states of windows that have not ended: the contract of who keeps them, and the host."""

from collections.abc import Callable
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from host.aggregate.time_column import TimeColumn
from host.aggregate.values import AggregateStates, Array
from host.windowed.panes import Cells, WindowStates, cells_of, merge_cells

__all__ = ["HostWindows", "MakeWindows", "OpenWindows"]

Int64s = npt.NDArray[np.int64]


class OpenWindows(Protocol):
    """Rows go in by key and pane; states of windows come out when the windows have ended."""

    def __len__(self) -> int:
        """Return the number of states or rows that are kept in the host's memory."""

    def add(self, keys: Int64s, panes: Int64s, values: list[Array], floor: int | None) -> None:
        """Take rows.

        Parameters
        ----------
        keys, panes : array of int64
            Number of each row's key, and of its pane.
        values : list of array
            What the rows contribute to each state.
        floor : int or None
            No later row is in a pane below this one; None if nothing is known.
        """

    def ended(self, ranks: Int64s, first: int | None, last: int | None) -> WindowStates:
        """Return the states of windows that have ended, sorted by window and rank of the key.

        Parameters
        ----------
        ranks : array of int64
            Place of each key among all of them.
        first, last : int or None
            Numbers of the windows; None for those of the first and the last row. Windows up to
            ``last`` are not asked for again.
        """


#: Makes the open windows of an aggregation from its column of time and its states.
MakeWindows: TypeAlias = Callable[[TimeColumn, AggregateStates], OpenWindows]


class HostWindows:
    """The states of keys in panes, and only of panes that a window to come still holds.

    Parameters
    ----------
    time : TimeColumn
    values : AggregateStates
    """

    def __init__(self, time: TimeColumn, values: AggregateStates) -> None:
        self._length, self._advance = time.window // time.pane, time.advance // time.pane
        self._values = values
        self._cells = Cells.none(len(values.states))

    def __len__(self) -> int:
        """Return the number of states."""
        return len(self._cells)

    def add(self, keys: Int64s, panes: Int64s, values: list[Array], floor: int | None) -> None:
        """See :meth:`OpenWindows.add`."""
        del floor
        combines = self._values.combines
        self._cells = merge_cells(self._cells, cells_of(keys, panes, values, combines), combines)

    def ended(self, ranks: Int64s, first: int | None, last: int | None) -> WindowStates:
        """See :meth:`OpenWindows.ended`."""
        # Keys are renumbered by their order, so that results come sorted: there are many more
        # results than cells.
        order = np.argsort(ranks[self._cells.key], kind="stable")
        cells = Cells(
            ranks[self._cells.key][order],
            self._cells.pane[order],
            tuple(states[order] for states in self._cells.states),
        )
        found = cells.windows(
            self._length, self._advance, self._values.combines, first=first, last=last
        )
        if last is None:
            self._cells = Cells.none(len(self._values.states))
        else:
            self._cells = self._cells.after((last + 1) * self._advance)
        return WindowStates(found.window, np.argsort(ranks)[found.key], found.states)
