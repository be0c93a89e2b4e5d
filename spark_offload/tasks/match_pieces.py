# SPDX-License-Identifier: Apache-2.0
"""Tagged rows cut into pieces that hold all matches of the left rows which they answer for.

A left row is *complete* when no later row can match it: over a window of time, when a row has come
that is later than the window reaches; over a window of rows, when so many left rows have come
behind it. A piece answers for the left rows that are complete and have not been answered for. What
the others may still match is kept for the next piece.

In a frame that is cut into ranges of time, a left row is answered for in the range in which it
leaves the window (:mod:`spark_offload.layout.halos`), whose halo has all that the row has met.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host import CountWindow
from host.query.queries import JoinQuery
from host.session.intake import TaggedLayout
from host.session.rows import joined
from spark_offload.layout.order_axis import LEAST
from spark_offload.layout.tagged import LEFT
from spark_offload.tasks.split_sides import split_sides
from spark_offload.tasks.window_size import order_numbers

__all__ = ["MatchPiece", "MatchPieces"]

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class MatchPiece:
    """Rows of both sides in the order of arrival.

    Parameters
    ----------
    left, right : pa.Table
        The rows.
    answered : array of bool
        Which left rows the piece answers for; the others are there to be counted.
    """

    left: pa.Table
    right: pa.Table
    answered: Bools


class MatchPieces:
    """Cuts the rows of a partition.

    Parameters
    ----------
    layout : TaggedLayout
        Of the rows.
    query : JoinQuery
        Which rows match.
    width : int or None
        Of a window of time, as a difference of order numbers; None if times are no such numbers,
        which makes one piece of all rows.
    rows : int
        Rows of a piece at least; as many as are kept, if those are more, so that sending these
        again costs no more than the piece itself.
    """

    def __init__(
        self, layout: TaggedLayout, query: JoinQuery, width: int | None, *, rows: int
    ) -> None:
        self._layout = layout
        self._size = query.window.size if isinstance(query.window, CountWindow) else None
        self._width = width
        self._rows = rows
        self._kept: list[pa.RecordBatch] = []

    def of(self, batches: Iterable[pa.RecordBatch]) -> Iterator[MatchPiece]:
        """Yield the pieces of tagged batches in the order of arrival, each with an answer."""
        pieces = self._pieces(batches)
        return (piece for piece in pieces if piece.answered.any())

    def _pieces(self, batches: Iterable[pa.RecordBatch]) -> Iterator[MatchPiece]:
        waiting: list[pa.RecordBatch] = []
        count = 0
        for batch in batches:
            waiting.append(batch)
            count += batch.num_rows
            if count >= max(self._rows, sum(kept.num_rows for kept in self._kept)):
                yield self._piece(waiting, ends=False)
                waiting, count = [], 0
        if waiting or self._kept:
            yield self._piece(waiting, ends=True)

    def _piece(self, batches: list[pa.RecordBatch], *, ends: bool) -> MatchPiece:
        rows = joined([*self._kept, *batches])
        is_left = rows.column(self._layout.side).to_numpy() == LEFT
        complete = is_left if ends else self._complete(rows, is_left)
        owned = self._owned(rows)
        self._kept = [] if ends else [rows.filter(pa.array(self._met(rows, is_left, complete)))]
        answered = complete & owned
        # Left rows of a window of rows count each other, whichever are answered for.
        sent = is_left if self._size is not None else answered
        left, right = split_sides([rows.filter(pa.array(sent | ~is_left))], self._layout)
        return MatchPiece(left, right, answered[sent])

    def _complete(self, rows: pa.RecordBatch, is_left: Bools) -> Bools:
        """Return which rows are left rows that no later row matches."""
        if self._size is not None:
            behind = int(is_left.sum()) - np.cumsum(is_left)
            return is_left & (behind >= self._size)
        if self._width is None or not len(rows):
            return np.zeros(len(is_left), np.bool_)
        times = order_numbers(rows)
        return is_left & (times < max(LEAST, int(times[-1]) - self._width))

    def _owned(self, rows: pa.RecordBatch) -> Bools:
        """Return which rows the partition answers for, if they are left rows."""
        if self._layout.alone is None:
            return np.ones(len(rows), np.bool_)
        owned: Bools = rows.column(self._layout.alone).to_numpy(zero_copy_only=False)
        return owned

    def _met(self, rows: pa.RecordBatch, is_left: Bools, complete: Bools) -> Bools:
        """Return the left rows that are not complete, and the right rows that they may match."""
        waiting = is_left & ~complete
        first = int(np.argmax(waiting)) if waiting.any() else len(rows)
        if self._size is not None:
            ahead = np.cumsum(~is_left)
            before = int(ahead[first - 1]) if first else 0  # right rows before the first that waits
            return waiting | (~is_left & (ahead > before - self._size))
        if self._width is None:
            return np.ones(len(rows), np.bool_)
        times = order_numbers(rows)
        oldest = int(times[min(first, len(rows) - 1)])
        return waiting | (~is_left & (times >= max(LEAST, oldest - self._width)))
