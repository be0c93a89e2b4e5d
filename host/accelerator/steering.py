# SPDX-License-Identifier: Apache-2.0
"""What is observed of a device while it joins, and how its next exchange follows from that."""

from collections.abc import Sequence

from host.accelerator.params import AcceleratorJoinParams
from host.control import elastic_cores, pacing
from host.control.adaptive_precision import AdaptivePrecision
from host.control.elastic_cores import ElasticCores
from host.control.pacing import Pacing
from host.cores.failed_cores import NewTurns
from host.device.thread import Finished
from host.exchange.staging import Staging
from host.query.segments import Segment
from host.reference.exact import UInt64s
from host.results.decoder import ResultDecoder
from host.tuples.intake import Arrived

__all__ = ["Steering"]


class Steering:
    """The precision that adapts, the cores of an elastic join, and the pace of the input.

    Each of the three is there if it is asked for. Without any of them, every exchange offers all
    words that wait.

    Parameters
    ----------
    params : AcceleratorJoinParams
        What is executed.
    staging : Staging
        The words that wait; it holds those of the configuration.
    decoder : ResultDecoder
        The decoder of the results.
    cores : sequence of int
        The cores that take turns at first.
    marks : int
        Marks that come before the first tuple.

    Attributes
    ----------
    adaptive : AdaptivePrecision or None
        What chooses the precision.
    elastic : ElasticCores or None
        What chooses the cores that store.
    pacing : Pacing or None
        When the tuples arrive.
    """

    def __init__(
        self,
        params: AcceleratorJoinParams,
        staging: Staging,
        decoder: ResultDecoder,
        *,
        cores: Sequence[int],
        marks: int,
    ) -> None:
        device = params.device
        self._staging = staging
        self.adaptive: AdaptivePrecision | None = None
        self.elastic: ElasticCores | None = None
        self.pacing: Pacing | None = None
        self._chunk_cycles, self._low_water = params.chunk_cycles, params.low_water
        if params.adapts:
            self.adaptive = AdaptivePrecision(
                device, params.ordering, staging, decoder, marks=marks
            )
            self._chunk_cycles = min(self._chunk_cycles, self.adaptive.chunk_cycles)
        if params.pace is not None:
            self.pacing = Pacing(params.pace, params.plan.times, device, staging)
            self._chunk_cycles = min(self._chunk_cycles, pacing.QUANTUM)
            self._low_water = min(self._low_water, 2 * pacing.ROWS)
        if params.elastic is not None:
            self.elastic = ElasticCores(
                device, params.elastic, params.plan.window, cores, staging,
                pacing=self.pacing, note=params.note_decision,
            )  # fmt: skip
            self._chunk_cycles = min(self._chunk_cycles, self.elastic.chunk_cycles)
            self._low_water = min(self._low_water, elastic_cores.ROWS)

    @property
    def marks(self) -> int:
        """Number of marks that answer changes of the precision."""
        return 0 if self.adaptive is None else self.adaptive.record.changed

    @property
    def wants_input(self) -> bool:
        """Whether so few words wait that more should be staged.

        Words that the device was offered count only in an elastic join, whose changes come behind
        all of them, and in one whose input has a pace.
        """
        is_behind = self.elastic is not None or self.pacing is not None
        few = self._staging.waiting if is_behind else self._staging.kept_back
        return few < self._low_water

    def stage(self, arrived: Arrived) -> None:
        """Take tuples that are staged."""
        if self.pacing is not None:
            self.pacing.stage(arrived)
        if self.elastic is not None:
            self.elastic.stage(arrived)

    def begin(self, segment: Segment) -> None:
        """Take note of a segment that begins with the next tuple that is staged."""
        if self.elastic is not None:
            self.elastic.begin(segment)

    def go_on(self, turns: NewTurns) -> None:
        """Take note of a failure: these cores store what is staged from now on."""
        for part in (self.pacing, self.elastic):
            if part is not None:
                part.go_on(turns)

    def bounds(self, words: UInt64s, cycle: int, *, flushed: bool) -> tuple[int, int]:
        """Return how many of the waiting words the next exchange offers, and its most cycles.

        Accepting a word takes at least one cycle, so with this limit the device stops before it
        runs dry while it could be fed. After FLUSH, it returns by itself with the mark.

        Parameters
        ----------
        words : array of uint64
            The words.
        cycle : int
            Cycles that the device has run.
        flushed : bool
            Whether FLUSH is among the words so far.
        """
        if self.pacing is not None:
            return self.pacing.due_words(words, cycle), self._chunk_cycles
        limit = self._chunk_cycles if flushed else min(self._chunk_cycles, len(words))
        return len(words), limit

    def settle(self, finished: Finished) -> None:
        """Take the outcome of an exchange whose words and marks :class:`Staging` knows already."""
        for part in (self.pacing, self.adaptive, self.elastic):
            if part is not None:
                part.settle(finished)

    def steer(self, cycle: int) -> None:
        """Change the precision or the cores, if what was observed calls for it.

        Called while the device is in no exchange.

        Parameters
        ----------
        cycle : int
            Cycles that the device has run.
        """
        if self.adaptive is not None:
            self.adaptive.steer(cycle)
        if self.elastic is not None:
            self.elastic.steer()

    def note(self, complete: int, cycle: int) -> None:
        """Observe what is answered, now that all results that have come are decoded.

        Parameters
        ----------
        complete : int
            Tuples that are answered.
        cycle : int
            Cycles that the device has run.
        """
        if self.pacing is not None:
            waited = self.pacing.answer(complete, cycle)
            if self.elastic is not None:
                self.elastic.note_waits(waited)
        if self.adaptive is not None:
            self.adaptive.note_flight()
        if self.elastic is not None:
            self.elastic.note_flight(complete)
