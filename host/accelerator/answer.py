# SPDX-License-Identifier: Apache-2.0
"""What comes back from a device in one execution: result words become results in their turn."""

import numpy as np

from host.accelerator.delivery import Delivery
from host.accelerator.failure_response import FailureResponse
from host.accelerator.params import AcceleratorJoinParams, Progress
from host.accelerator.steering import Steering
from host.encode.recheck import Recheck
from host.errors import DisorderError, IllegalWordError, WindowOverflowError
from host.reference.exact import UInt64s
from host.reference.side import Side
from host.results.completion import Completion
from host.results.decoder import ResultDecoder
from host.results.trace import Trace
from host.runtime import Columns
from host.tuples.intake import Intake
from host.tuples.row_store import Rows
from host.words import WordCodec

__all__ = ["Answer", "holding"]


class Answer:
    """Decodes the result words of one execution, and queues the results whose turn it is.

    Parameters
    ----------
    params : AcceleratorJoinParams
        What is executed.
    intake : Intake
        Where the tuples come from.
    completion : Completion or None
        What finds the rows that come alone; None if only pairs are asked for.
    codec : WordCodec
        Layouts of the words.
    decoder : ResultDecoder
        What turns results into pairs of row numbers.
    failures : FailureResponse
        What is done about a core that fails.
    steering : Steering
        What changes the precision, with marks of its own.
    skip : int
        Marks that come before the first result of this execution.
    foreign : int
        Tuples of an earlier query that the device takes first.

    Attributes
    ----------
    decoder : ResultDecoder
        The decoder; another one after a failure that is answered again.
    delivery : Delivery
        Results whose turn it is.
    trace : Trace or None
        Latencies, if they are asked for.
    done : bool
        Whether all results have been decoded.
    """

    def __init__(
        self,
        params: AcceleratorJoinParams,
        intake: Intake,
        completion: Completion | None,
        codec: WordCodec,
        decoder: ResultDecoder,
        failures: FailureResponse,
        steering: Steering,
        *,
        skip: int,
        foreign: int,
    ) -> None:
        self._params, self._intake, self._completion = params, intake, completion
        self._codec, self._failures, self._steering = codec, failures, steering
        self.decoder = decoder
        self.delivery = Delivery(params, completion)
        self.trace = Trace(foreign) if params.trace else None
        self.done = False
        self._skip = skip
        self._pairs = 0

    @property
    def complete(self) -> int:
        """Number of first arrivals whose results can be handed on."""
        return self._failures.limit(self.decoder.complete)

    def accept(self, words: UInt64s, stamps: UInt64s) -> None:
        """Take the cycles in which the device accepted these input words; only with a trace."""
        if self.trace is not None:
            self.trace.accept(np.repeat(stamps, self._codec.tuple_counts(words)))

    def decode(self, words: UInt64s, stamps: UInt64s | None, cycles: int, *, flushed: bool) -> None:
        """Decode result words, and queue the results whose turn it is.

        Parameters
        ----------
        words : array of uint64
            The words.
        stamps : array of uint64 or None
            Cycles in which they left the device; None without a trace.
        cycles : int
            Cycles that the device has run.
        flushed : bool
            Whether the FLUSH of the execution has been staged.

        Raises
        ------
        JoinError
            If the accelerator tells of a fault, or of a core that has failed.
        """
        params = self._params
        results, stamps = self._codec.split_words(words, stamps)
        start = self._skipped(results)
        results, stamps = results[start:], None if stamps is None else stamps[start:]
        parts, stars = self.decoder.decode(results, stamps)
        for recheck in params.rechecks:
            parts = [holding(recheck, pairs, params.rows) for pairs in parts]
        self._check_faults()
        parts, restart = self._failures.see(
            self.decoder, self.delivery, parts, cycles, flushed=flushed
        )
        if restart is not None:
            self.decoder, self._skip = restart.decoder, restart.skip
        # Each change of the precision, and each failure, has a mark of its own.
        if self.decoder.marks > self._steering.marks + self._failures.marks:
            self.done = True
        if self._completion is not None:
            for pairs in parts:
                self._completion.mark(pairs)
        owned = (self._intake.owned(pairs) for pairs in parts if params.how.has_pairs)
        parts = [pairs for pairs in owned if pairs.num_rows]
        if self.trace is not None:
            parts = [self.trace.pairs(pairs) for pairs in parts]
            self.trace.stars(stars)
            self.trace.forget(self.complete)
        self._pairs += sum(pairs.num_rows for pairs in parts)
        self.deliver(parts)
        if params.report is not None:
            params.report(Progress(self.complete, self._pairs, cycles))

    def deliver(self, parts: list[Columns]) -> None:
        """Queue the results whose turn it is; release rows that no later result can refer to."""
        self.delivery.push(parts, self.complete, self._intake.reached, done=self.done)
        oldest = {side: self.decoder.oldest_row(side) for side in Side}
        self.delivery.allow(
            {
                side: self._intake.next_row(side) if row is None else row
                for side, row in oldest.items()
            }
        )

    def _skipped(self, results: UInt64s) -> int:
        """Return how many results come up to and including the mark of this execution's CLEAR."""
        if not self._skip:
            return 0
        marks = np.flatnonzero(self._codec.marks(results))[: self._skip]
        self._skip -= len(marks)
        return len(results) if self._skip else int(marks[-1]) + 1

    def _check_faults(self) -> None:
        """Raise an error if the accelerator has reported a fault."""
        faults, manifest = self.decoder.faults, self._params.device.manifest
        if faults.illegal:  # other faults may follow from this one
            raise IllegalWordError(self._params.device.uri)
        if faults.overflow:
            raise WindowOverflowError(
                faults.overflow[0],
                manifest.capacity,
                cores=manifest.storage.cores,
                engine=manifest.engine,
            )
        if faults.disorder:
            arrivals = self.decoder.arrivals
            raise DisorderError("timestamp", arrivals, "a later time", "an earlier one")


def holding(recheck: Recheck, pairs: Columns, rows: tuple[Rows, Rows]) -> Columns:
    """Return the pairs for which a term holds."""
    if not pairs.num_rows:
        return pairs
    columns = [
        of_side.take(pairs[name], slice(place, place + 1))[0]
        for of_side, name, place in zip(rows, ("left", "right"), recheck.places, strict=True)
    ]
    kept = recheck.holds(columns)
    return pairs if kept.all() else pairs.take(np.flatnonzero(kept))
