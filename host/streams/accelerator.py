# SPDX-License-Identifier: Apache-2.0
"""The accelerator as a stream: tuples in, pairs of rows out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from host.device import Device
from host.errors import DisorderError, WindowOverflowError
from host.exact import UInt64s
from host.ordering import Ordering
from host.predicate import Bounds
from host.runtime import Columns, ConduitExecStream, ConduitParams, Quantum, StreamResult
from host.streams.configuration import MARKS, configuration
from host.streams.restore import StrictOrder
from host.streams.results import ResultDecoder
from host.streams.staging import Staging
from host.streams.trace import Trace
from host.streams.watch import Deadline, DeviceWatch
from host.window import CountWindow, Window
from host.words import WordCodec

__all__ = ["AcceleratorJoin", "AcceleratorJoinParams", "Progress"]


@dataclass(frozen=True)
class Progress:
    """What has passed the device so far."""

    tuples: int
    pairs: int
    cycles: int


@dataclass(frozen=True)
class AcceleratorJoinParams(ConduitParams):
    """Parameters of :class:`AcceleratorJoin`.

    Parameters
    ----------
    device : Device
        An open device; the stream does not close it.
    bounds : mapping of str to Bounds
        By key field; fields that are absent are open.
    window : CountWindow or TimeWindow
        Of both sides, in units of the timestamp.
    ordering : Ordering
        The precision that the accelerator is set to.
    strict : bool
        Whether pairs leave in strict order: by the later tuple, then by the earlier one.
    trace : bool
        Whether to take the cycles in which words came and went.
    deadline : Deadline
        When to give up.
    report : callable or None
        Is called with a :class:`Progress` now and then.
    result_words, chunk_cycles, low_water : int
        Result words and clock cycles of one exchange; tuples below which more input is wanted.
    """

    device: Device
    bounds: Mapping[str, Bounds]
    window: Window
    ordering: Ordering
    strict: bool = True
    trace: bool = False
    deadline: Deadline = field(default_factory=Deadline)
    report: Callable[[Progress], None] | None = None
    result_words: int = 1 << 16
    chunk_cycles: int = 1 << 16
    low_water: int = 1 << 12


class _Execution:
    """All that belongs to one execution, so that nothing of it can leak into the next."""

    def __init__(self, params: AcceleratorJoinParams, codec: WordCodec, setup: UInt64s) -> None:
        device = params.device
        self.staging = Staging(device)
        self.skip = self.staging.inherited + MARKS  # what comes before these is not of this query
        self.staging.add(setup, marks=MARKS)
        self.trace = Trace(self.staging.waiting, params.result_words) if params.trace else None
        self.decoder = ResultDecoder(device.manifest, params.ordering)
        self.order = StrictOrder()
        self.results = np.zeros((params.result_words, codec.result.columns), np.uint64)
        self.ready: list[Columns] = []
        self.flushed = False
        self.done = False
        self.pairs = 0


class AcceleratorJoin(ConduitExecStream[AcceleratorJoinParams, Columns, Columns]):
    """Feeds a device and drains it in the same ``execute``; never waits for it.

    The input is what :class:`~host.streams.merge.OrderMerge` produces; the output has the columns
    ``left`` and ``right``, and with a trace ``emitted`` and ``latency`` (visiting latency, in
    cycles). Result words are decoded as they come; what is kept is the window and the open groups.

    Attributes
    ----------
    watch : DeviceWatch or None
        Cycles and seconds of the last execution.
    trace : Trace or None
        Latencies of the last execution, if asked for.
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self._params: AcceleratorJoinParams | None = None
        self._run: _Execution | None = None
        self.watch: DeviceWatch | None = None
        self.trace: Trace | None = None

    def prepare(self, params: AcceleratorJoinParams) -> None:
        super().prepare(params)
        self._params = params
        self._codec = WordCodec(params.device.manifest)
        self._setup = configuration(
            params.device.manifest, params.bounds, params.window, params.ordering
        )

    def open(self, restart: bool = False) -> None:
        super().open(restart)
        self._abandon()
        assert self._params is not None
        self._run = _Execution(self._params, self._codec, self._setup)
        self.watch = DeviceWatch(self._params.device, self._params.deadline)
        self.trace = self._run.trace

    def execute(self, quantum: Quantum) -> StreamResult:
        params, run = self._params, self._run
        assert params is not None
        assert run is not None
        moved = 0
        while moved < quantum.rows:
            if not self._hand_on(run):
                return StreamResult.BUF_OVERFLOW
            if run.done:
                return self.finish()
            if not self._take_input(run, params):
                return StreamResult.BUF_UNDERFLOW
            moved += self._exchange(run, params)
        return StreamResult.QUANTUM_EXPIRED

    def close_impl(self) -> None:
        self._abandon()

    def _abandon(self) -> None:
        if self._run is not None:
            self._run.staging.abandon()
            self._run = None

    def _take_input(self, run: _Execution, params: AcceleratorJoinParams) -> bool:
        """Stage input until there is enough; false if more must come first."""
        while run.staging.waiting < params.low_water and not run.flushed:
            if self.input.at_end:
                run.staging.add(self._codec.pack_control("FLUSH"), marks=1)
                run.decoder.flush()
                run.flushed = True
            elif self.input.demand():
                tuples = self.input.access()
                timed = not isinstance(params.window, CountWindow)
                keys = {
                    key.name: tuples[f"key.{key.name}"]
                    for key in params.device.manifest.keys
                    if f"key.{key.name}" in tuples.arrays
                }
                run.staging.add(
                    self._codec.pack_tuples(
                        tuples["side"], keys, tuples["timestamp"] if timed else None
                    )
                )
                run.decoder.stage(tuples)
                self.input.consume()
            else:
                return False
        return True

    def _exchange(self, run: _Execution, params: AcceleratorJoinParams) -> int:
        """Let the device run for a while; return how many words moved, at least one."""
        assert self.watch is not None
        offered = run.staging.offer(params.low_water)
        words = self._setup[:0] if offered is None else offered
        # A word takes a cycle at the least, so a device is not run dry while it could be fed;
        # once it has FLUSH it returns by itself, with the mark.
        cycles = params.chunk_cycles
        if not run.flushed or len(words) < run.staging.waiting:
            cycles = min(cycles, len(words))
        stamps = None if run.trace is None else run.trace.stamps(len(words))
        self.watch.start()
        done = params.device.exchange(words, run.results, cycles=cycles, stamps=stamps)
        run.staging.accept(done.accepted)
        self.watch.stop(done)
        if run.trace is not None and stamps is not None:
            run.trace.accept(stamps.accepted[: done.accepted])
        if done.produced:
            emitted = None if stamps is None else stamps.produced[: done.produced]
            self._decode(run, params, run.results[: done.produced], emitted)
        return max(1, done.accepted + done.produced)

    def _decode(
        self,
        run: _Execution,
        params: AcceleratorJoinParams,
        words: UInt64s,
        stamps: UInt64s | None,
    ) -> None:
        start = self._skipped(run, words)
        words, stamps = words[start:], None if stamps is None else stamps[start:]
        pairs, stars = run.decoder.decode(words, stamps)
        if run.decoder.marks:
            run.staging.see_marks(run.decoder.marks)
            run.done = True
        self._check_faults(run, params)
        complete = run.decoder.complete
        if run.trace is not None:
            pairs = run.trace.pairs(pairs)
            run.trace.stars(stars)
            run.trace.forget(complete)
        run.pairs += pairs.num_rows
        ready = run.order.push(pairs, complete) if params.strict else pairs
        if ready is not None and ready.num_rows:
            wanted = [
                name for name in ("left", "right", "emitted", "latency") if name in ready.arrays
            ]
            run.ready.append(Columns({name: ready[name] for name in wanted}))
        if params.report is not None and self.watch is not None:
            params.report(Progress(complete, run.pairs, self.watch.cycles))

    def _skipped(self, run: _Execution, words: UInt64s) -> int:
        """How many words come before, and are, the mark of this execution's CLEAR."""
        if not run.skip:
            return 0
        kinds = self._codec.unpack_results(words).kind
        marks = np.flatnonzero(kinds == self._codec.mark)[: run.skip]
        run.skip -= len(marks)
        run.staging.see_marks(len(marks))
        return len(words) if run.skip else int(marks[-1]) + 1

    @staticmethod
    def _check_faults(run: _Execution, params: AcceleratorJoinParams) -> None:
        faults, manifest = run.decoder.faults, params.device.manifest
        if faults.overflow:
            raise WindowOverflowError(
                faults.overflow[0], manifest.capacity, cores=manifest.storage.cores
            )
        if faults.disorder:
            raise DisorderError("timestamp", run.decoder.arrivals, "a later time", "an earlier one")

    def _hand_on(self, run: _Execution) -> bool:
        """Put decoded pairs into the output; false if it has no room for all of them."""
        while run.ready:
            room = self.output.provide()
            if not room:
                return False
            pairs = run.ready[0]
            self.output.produce(pairs.slice(0, room))
            if room < pairs.num_rows:
                run.ready[0] = pairs.slice(room)
            else:
                del run.ready[0]
        return True
