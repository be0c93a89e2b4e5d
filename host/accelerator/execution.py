# SPDX-License-Identifier: Apache-2.0
"""One execution of a join: stage words, exchange them with the device, decode what comes back."""

import numpy as np

from host.accelerator.answer import Answer
from host.accelerator.failure_response import FailureResponse
from host.accelerator.offering import Offering
from host.accelerator.params import AcceleratorJoinParams
from host.accelerator.steering import Steering
from host.cores.failed_cores import failed_cores, has_gates, participation
from host.cores.turns import all_cores, segment_words
from host.device import Stamps
from host.device.thread import DeviceThread, Finished
from host.exchange.configuration import MARKS, configuration
from host.exchange.hash_choice import HashWatch
from host.exchange.memory_watch import MemoryWatch
from host.exchange.staging import Staging
from host.exchange.watch import DeviceWatch
from host.query.on_failure import OnFailure
from host.reference.exact import UInt64s
from host.results.completion import Completion
from host.results.decoder import ResultDecoder
from host.results.ordinals import result_decoder
from host.tuples.intake import Intake
from host.words import WordCodec

__all__ = ["ROOMS", "Execution"]

ROOMS = 2
"""Rooms for result words: one is decoded while the device fills the other."""


class Execution:
    """The state of one execution, kept together so that none of it can leak into the next one.

    Parameters
    ----------
    params : AcceleratorJoinParams
        What is executed.
    intake : Intake
        Where the tuples come from.
    completion : Completion or None
        What finds the rows that come alone; None if only pairs are asked for.
    result_words : int
        Largest number of result words in one exchange.
    staged_words : int
        Number of input words in an area of the staging.

    Attributes
    ----------
    offering : Offering
        What stages the tuples, and changes which cores store them.
    answer : Answer
        What decodes the results, and queues those whose turn it is.
    steering : Steering
        What chooses precision and cores while the join runs, and when tuples are offered.
    failures : FailureResponse
        What is done about a core that fails.
    watch : DeviceWatch
        Cycles and seconds.
    hashing : HashWatch
        Seeds that an index has, and whether the next execution gets others.
    """

    def __init__(
        self,
        params: AcceleratorJoinParams,
        intake: Intake,
        completion: Completion | None,
        result_words: int,
        staged_words: int,
    ) -> None:
        device = params.device
        self._params = params
        self._codec = codec = WordCodec(device.manifest)
        self.hashing = HashWatch(device)
        self._staging = staging = Staging(device, codec.input.columns, staged_words)
        # Marks of earlier queries and of the setup come first.
        skip = staging.inherited + MARKS
        staging.append(self._setup(), marks=MARKS)
        staging.append(all_cores(device.manifest))
        foreign = int(codec.tuple_counts(staging.words).sum())  # of an earlier query
        decoder = self._decoder()
        failed = failed_cores(device)
        live = [core for core in range(device.manifest.storage.cores) if core not in failed]
        if has_gates(device.manifest):
            self._begin_turns(decoder, live)
        self.failures = FailureResponse(params, staging, decoder)
        self.steering = Steering(params, staging, decoder, cores=live, marks=skip)
        self.answer = Answer(
            params, intake, completion, codec, decoder, self.failures, self.steering,
            skip=skip, foreign=foreign,
        )  # fmt: skip
        self.offering = Offering(
            params, intake, completion, codec, staging, self.answer, self.failures, self.steering,
            self.hashing.choice,
        )  # fmt: skip
        self.watch = DeviceWatch(device, params.deadline)
        self._memory = MemoryWatch(device)
        self._thread = DeviceThread(device)
        self._rooms = [
            np.zeros((result_words, device.manifest.result_word.columns), np.uint64)
            for _ in range(ROOMS)
        ]

    def _setup(self) -> UInt64s:
        """Return the words that configure the accelerator."""
        params, manifest = self._params, self._params.device.manifest
        setup = configuration(
            manifest,
            params.plan.bounds,
            params.plan.window,
            params.precision,
            params.distinct,
            spreads=params.plan.spreads,
            choice=self.hashing.choice,
            newest_of=params.newest_of,
        )
        if has_gates(manifest):
            setup = np.concatenate([participation(params.device), setup])
        return setup

    def _decoder(self) -> ResultDecoder:
        """Return what decodes the results of this execution."""
        params = self._params
        return result_decoder(
            params.device.manifest,
            params.precision,
            params.plan.window,
            detailed=params.strict or params.trace,
            changes=params.adapts,
            origins=params.survives,
            restarts=params.on_failure is OnFailure.REPLAY,
        )

    def _begin_turns(self, decoder: ResultDecoder, live: list[int]) -> None:
        """Let all cores take turns that have not failed."""
        manifest = self._params.device.manifest
        self._staging.append(segment_words(manifest, live, self._params.plan.window))
        if len(live) < manifest.storage.cores:
            decoder.begin_segment(live)

    def exchange(self) -> int:
        """Finish an exchange, begin the next one, and decode results; return the words moved.

        Without words that wait, and before all are staged, only results that are ready are counted:
        rows that come alone must be handed on first.
        """
        if not (self._staging.waiting or self.offering.flushed):
            return sum(pairs.num_rows for pairs in self.answer.delivery.ready)
        if not self._thread.is_busy:
            self._begin()
        finished = self._thread.finish(self._params.deadline.of_exchange)
        self.watch.see(finished)
        words = self._settle(finished)
        if len(words):
            self._memory.check()
        self.steering.steer(self.watch.cycles)
        # The device must not run on after it has answered everything.
        if self._staging.waiting or (self.offering.flushed and self._staging.due):
            self._begin()
        if len(words):
            stamps = finished.stamps
            self._decode(words, None if stamps is None else stamps.produced[: len(words)])
        self.steering.note(self.answer.decoder.complete, self.watch.cycles)
        return max(1, finished.done.accepted + len(words))

    def _begin(self) -> None:
        """Begin an exchange that offers the device the waiting words whose time has come."""
        words = self._staging.offer()
        results = self._rooms.pop(0)
        self._rooms.append(results)
        count, cycles = self.steering.bounds(
            words, self.watch.cycles, flushed=self.offering.flushed
        )
        words = words[:count]
        stamps = Stamps.for_arrays(words, results) if self._params.trace else None
        self._thread.begin(words, results, cycles=cycles, stamps=stamps)

    def _settle(self, finished: Finished) -> UInt64s:
        """Record the words that an exchange moved; return its result words."""
        done = finished.done
        self._staging.accept(done.accepted)
        if finished.stamps is not None:
            self.answer.accept(
                finished.words[: done.accepted], finished.stamps.accepted[: done.accepted]
            )
        words = finished.results[: done.produced]
        if self._staging.due:
            self._staging.see_marks(int(np.count_nonzero(self._codec.marks(words))))
        self.steering.settle(finished)
        return words

    def _decode(self, words: UInt64s, stamps: UInt64s | None) -> None:
        """Decode result words, and take note of cores that turn out to have failed."""
        self.answer.decode(words, stamps, self.watch.cycles, flushed=self.offering.flushed)
        turns = self.failures.take_turns()
        if turns is not None:
            self.offering.go_on(turns)
        if self.answer.done:
            self.hashing.finish()

    def abandon(self) -> None:
        """End the execution, wherever it stands; the next one of the device skips its results."""
        try:
            if self._thread.is_busy and not self._thread.is_stuck:
                self._settle(self._thread.finish(self._params.deadline.of_exchange))
        finally:
            self._thread.close()
            self._staging.abandon()
