# SPDX-License-Identifier: Apache-2.0
"""Rows that come alone in the results of outer, semi and anti joins."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from host.reference.join_type import NO_ROW, JoinType
from host.reference.side import Side
from host.reference.window import Window
from host.results.departure import departures
from host.runtime import Columns
from host.tuples.intake import Arrived
from host.tuples.tracked_rows import RowTimes, TrackedRows

__all__ = ["Completion"]

Int64s = npt.NDArray[np.int64]

_NAMES = {Side.R: "left", Side.S: "right"}


class Completion:
    """Keeps a bit for each row in the window, and emits rows that come alone when they leave it.

    In strict order, a row comes before the pairs of the tuple that pushes it out. Rows that no
    tuple pushes out come at the end. The result does not depend on when results arrive from the
    device.

    Parameters
    ----------
    how : JoinType
        Type of the join; any but the inner join, which has no rows that come alone.
    window : CountWindow or TimeWindow
        Window of either side.
    """

    def __init__(self, how: JoinType, window: Window) -> None:
        self._how = how
        self._tracked = {side: TrackedRows() for side in Side if how.tracks(side)}
        self._departures = departures(window)

    def take(self, side: Side, taken: RowTimes) -> None:
        """Announce rows in their order of arrival, before their tuples are staged."""
        if side in self._tracked:
            self._tracked[side].add(taken)

    def stage(self, arrived: Arrived) -> None:
        """Announce tuples that will be sent."""
        self._departures.stage(arrived)

    def mark(self, pairs: Columns) -> None:
        """Record pairs that have been found, including pairs that another stream emits."""
        if pairs.num_rows:
            for side, rows in self._tracked.items():
                rows.mark(pairs[_NAMES[side]])

    def oldest_row(self, side: Side) -> int | None:
        """Return the oldest row of ``side`` that can still come alone; None if there is none."""
        return self._tracked[side].oldest if side in self._tracked else None

    def complete(
        self, pairs: Sequence[Columns], complete: int, reached: int, *, ended: bool
    ) -> list[Columns]:
        """Return the results that are now certain.

        Parameters
        ----------
        pairs : sequence of Columns
            Pairs of the result that have become ready. If they have a column ``probe``, they are
            sorted by it, and rows that come alone are inserted at their places. Otherwise those
            rows come behind the pairs.
        complete : int
            Number of first arrivals whose pairs have all been marked and passed to this method.
        reached : int
            No later tuple has a smaller timestamp.
        ended : bool
            Whether no tuple follows.
        """
        alone = [
            rows
            for side, tracked in self._tracked.items()
            if (rows := self._leaving(side, tracked, complete, reached, ended=ended)) is not None
        ]
        self._departures.forget(complete)
        if not alone:
            return [_without_probe(of_pairs) for of_pairs in pairs]
        rows = Columns.concatenate(alone)
        # Rows that leave together come in the order of arrival: on a tie of timestamps, left rows
        # first.
        number, is_right = np.maximum(rows["left"], rows["right"]), rows["left"] == NO_ROW
        rows = rows.take(np.lexsort((number, is_right, rows["time"], rows["place"])))
        if len(pairs) == 1 and "probe" in pairs[0].arrays:
            return [_merged(pairs[0], rows)]
        return [*(_without_probe(of_pairs) for of_pairs in pairs), _results(rows, ())]

    def _leaving(
        self, side: Side, tracked: TrackedRows, complete: int, reached: int, *, ended: bool
    ) -> Columns | None:
        """Return the rows of a side that come alone now, with the places at which they leave."""
        count = len(tracked) if ended else self._departures.gone(side, tracked, complete, reached)
        if not count:
            return None
        places = self._departures.places(side, tracked, count)
        gone = tracked.leave(count)
        wanted = np.flatnonzero((gone["matched"] == self._how.wants_matched) & gone["answered"])
        if not len(wanted):
            return None
        none = np.full(len(wanted), NO_ROW, np.int64)
        numbers = {_NAMES[side]: gone["row"][wanted], _NAMES[side.other]: none}
        return Columns(
            {
                "left": numbers["left"],
                "right": numbers["right"],
                "time": gone["time"][wanted],
                "place": places[wanted],
            }
        )


def _merged(pairs: Columns, alone: Columns) -> Columns:
    """Insert rows that come alone before the pairs of the tuples that push them out."""
    at = np.searchsorted(pairs["probe"], alone["place"], side="left")
    names = [name for name in pairs.arrays if name != "probe"]
    rows = _results(alone, names)
    return Columns({name: np.insert(pairs[name], at, rows[name]) for name in names})


def _results(alone: Columns, names: Sequence[str]) -> Columns:
    """Return rows that come alone as results with columns ``names``; a trace's columns are -1."""
    arrays = {name: np.full(alone.num_rows, -1, np.int64) for name in names}
    return Columns({**arrays, "left": alone["left"], "right": alone["right"]})


def _without_probe(pairs: Columns) -> Columns:
    return Columns({name: array for name, array in pairs.arrays.items() if name != "probe"})
