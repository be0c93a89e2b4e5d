# SPDX-License-Identifier: Apache-2.0
"""Decode the results of an accelerator that is cleared amid a join and gets tuples again."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from host.manifest import Manifest
from host.query.ordering import Ordering
from host.reference.side import Side
from host.reference.window import Window
from host.results.decoder import ResultDecoder, ToldFailures, rows_of
from host.results.replay_log import Again
from host.runtime import Columns

__all__ = ["RestartableDecoder"]

Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]


class RestartableDecoder(ResultDecoder):
    """A :class:`ResultDecoder` that can be followed by another one after a CLEAR.

    The accelerator numbers tuples anew after CLEAR, and so does the following decoder. It gives
    places among all arrivals since the beginning, and drops the pairs of probes that were answered
    before.
    """

    def __init__(
        self, manifest: Manifest, ordering: Ordering, window: Window, **options: bool
    ) -> None:
        super().__init__(manifest, ordering, window, **options)
        self._settings = manifest, ordering, window
        # After a restart: tuples of each side that were left out, and probes answered before.
        self._left_out = dict.fromkeys(Side, 0)
        self._answered = dict.fromkeys(Side, 0)

    def first_open(self, side: Side) -> int:
        """Return the number of the first probe of ``side`` that is not completely answered."""
        return max(super().first_open(side), self._answered[side])

    def place(self, side: Side, number: int) -> int:
        """Return the place of a probe that is not answered yet, among all arrivals."""
        number = max(number, self._answered[side])
        if number == self.logs[side].count:
            return self.arrivals
        return super().place(side, number) + self._shift

    def answered(self, told: ToldFailures) -> dict[Side, tuple[int, int]]:
        """Return number and place of each side's first probe that is not completely answered."""
        found = {}
        for side in Side:
            begin, _ = told.begins.get(side, (self.first_open(side), 0))
            number = max(begin, self._answered[side])
            found[side] = number, self.place(side, number)
        return found

    def needed(self, answered: dict[Side, tuple[int, int]]) -> dict[Side, int]:
        """Return the number of each side's first tuple that must be sent again.

        These are the probes that are not answered, and the tuples that they can meet. Tuples are
        numbered from the beginning of the execution.
        """
        found = {}
        for side in Side:
            probe, place = answered[side.other]
            met = place - self._shift - probe
            found[side] = max(0, min(answered[side][0], met - self.reach)) + self._left_out[side]
        return found

    def sent_from(self, side: Side) -> int:
        """Return the number of the oldest tuple of ``side`` that may have to be sent again."""
        return self.logs[side].kept + self._left_out[side]

    def restarted(
        self, again: Again, answered: dict[Side, tuple[int, int]], live: Sequence[int]
    ) -> "RestartableDecoder":
        """Return a decoder for what follows a CLEAR after which tuples are sent again.

        Parameters
        ----------
        again : Again
            The tuples that are sent again.
        answered : dict of Side to tuple of int
            Result of :meth:`answered`.
        live : sequence of int
            The cores that take turns from the CLEAR on.
        """
        manifest, ordering, window = self._settings
        other = RestartableDecoder(
            manifest, ordering, window, detailed=self._detailed, origins=self._origins
        )
        other.begin_segment(live)
        for side, numbers in again.numbers.items():
            log, known = self.logs[side], numbers - self._left_out[side]
            at = again.places[side]
            columns: dict[str, npt.NDArray[Any]] = {
                "before": at - np.arange(len(at)),
                "row": np.asarray(rows_of(log, known), np.int64),
            }
            if log.has("valid"):
                columns["valid"] = log.read("valid", known)
            other.logs[side].append(Columns(columns))
            first = int(numbers[0]) if len(numbers) else log.count + self._left_out[side]
            other._left_out[side] = first
            other._answered[side] = answered[side][0] + self._left_out[side] - first
        other.arrivals = self.arrivals
        other.stars.stage(again.places)
        return other

    @property
    def _shift(self) -> int:
        """Number of arrivals before the first one that this decoder knows."""
        return sum(self._left_out.values())

    def _pairs(
        self, results: UInt64s, side: Side, at: Int64s, stars: Int64s, stamps: UInt64s | None
    ) -> Columns:
        pairs = super()._pairs(results, side, at, stars, stamps)
        if not (self._shift or self._answered[side]):
            return pairs
        arrays = {**pairs.arrays, "probe": pairs["probe"] + self._shift}
        first = self.place(side, self._answered[side])
        return Columns(arrays).take(np.flatnonzero(arrays["probe"] >= first))
