# SPDX-License-Identifier: Apache-2.0
"""Hand results on in their turn, and forget the rows that no later result can refer to."""

from collections.abc import Callable, Sequence

from host.accelerator.params import AcceleratorJoinParams
from host.reference.side import Side
from host.results.completion import Completion
from host.results.release import Release
from host.results.strict_order import StrictOrder
from host.runtime import Buffer, Columns

__all__ = ["Delivery"]


class Delivery:
    """Queues the results of one execution whose turn it is, and puts them into a buffer.

    Pairs wait for their star if their order is strict, and rows that come alone wait until no pair
    of theirs can come any more.

    Parameters
    ----------
    params : AcceleratorJoinParams
        The execution.
    completion : Completion or None
        What finds the rows that come alone; None if only pairs are asked for.
    in_order : bool
        Whether pairs come in the strict order, so that none waits for its star.

    Attributes
    ----------
    ready : list of Columns
        Results that wait for room in the buffer.
    is_cut : bool
        Whether the execution ends before its input does.
    """

    def __init__(
        self,
        params: AcceleratorJoinParams,
        completion: Completion | None,
        *,
        in_order: bool = False,
    ) -> None:
        self._params, self._completion = params, completion
        self._order = StrictOrder(with_probe=completion is not None, in_rounds=params.in_rounds)
        self._waits = params.strict and not in_order
        self._release = Release(params.rows)
        self.ready: list[Columns] = []
        self.is_cut = False

    def sift(self, keep: Callable[[Columns], Columns]) -> None:
        """Drop pairs that wait for their star, unless ``keep`` returns them."""
        self._order.sift(keep)

    def push(self, parts: Sequence[Columns], complete: int, reached: int, *, done: bool) -> None:
        """Queue the results whose turn it is.

        Parameters
        ----------
        parts : list of Columns
            Pairs that have been decoded.
        complete : int
            Number of first arrivals whose pairs have all been decoded.
        reached : int
            No later tuple has a smaller timestamp.
        done : bool
            Whether no pair can follow.
        """
        params = self._params
        if self._waits:
            pairs = self._order.push(parts, complete)
            parts = [] if pairs is None else [pairs]
        if self._completion is not None:
            goes_on = self.is_cut or (done and params.is_cut is not None and params.is_cut())
            parts = self._completion.complete(parts, complete, reached, ended=done and not goes_on)
        self.ready += [results for results in parts if results.num_rows]

    def allow(self, oldest: dict[Side, int]) -> None:
        """Forget the rows below ``oldest``, as soon as no result that waits refers to them."""
        for side, decoded in oldest.items():
            held = self._order.least("left" if side is Side.R else "right")
            alone = None if self._completion is None else self._completion.oldest_row(side)
            self._release.allow(side, min(row for row in (decoded, held, alone) if row is not None))

    def hand_on(self, output: Buffer[Columns]) -> bool:
        """Put queued results into the buffer; return False if there is no room for all of them."""
        self._release.consumed(output.rows)
        while self.ready:
            room = output.provide()
            if not room:
                return False
            pairs = self.ready[0]
            output.produce(pairs.slice(0, room))
            self._release.produced(min(room, pairs.num_rows))
            if room < pairs.num_rows:
                self.ready[0] = pairs.slice(room)
            else:
                del self.ready[0]
        self._release.handed_on()
        return True
