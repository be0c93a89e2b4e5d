# SPDX-License-Identifier: Apache-2.0
"""The accelerator as a stream: batches of rows in, pairs of row numbers out."""

from collections.abc import Sequence

import pyarrow as pa

from host.devices.waiting import DeviceWatch
from host.errors import EpochError, UsageError
from host.protocol.configuration import require_segments, segment_words
from host.query.cores import Epoch, Segment
from host.reference.arrivals import Side
from host.reference.types import JoinType
from host.runtime import (
    BUFFER_BYTES,
    Columns,
    ConfluenceExecStream,
    GraphError,
    Quantity,
    Quantum,
    Requirements,
    StreamResult,
)
from host.session.control import PACED_ROWS, ROWS, Pacing
from host.session.cores import EpochChanges
from host.session.execution import ROOMS, Execution
from host.session.intake import Intake
from host.session.params import AcceleratorJoinParams, require_epochs
from host.session.records import ElasticRecord, FailureRecord, PrecisionRecord, StagingCounters
from host.session.restart import Trace
from host.session.results import Completion
from host.session.rows import Rows
from host.session.staging import AREAS, HashWatch

__all__ = [
    "AcceleratorJoin",
]

LEAST_RESULT_WORDS = 1 << 12
"""Result words of an exchange for which no buffer has to be granted."""

LEAST_STAGED_WORDS = 3 << 12
"""Input words of an area for which no buffer has to be granted."""


class AcceleratorJoin(ConfluenceExecStream[AcceleratorJoinParams, pa.RecordBatch, Columns]):
    """Stream that feeds and drains a device, and prepares and decodes words while the device works.

    The inputs are side R (input 0) and side S (input 1), each sorted by time, or a single input of
    tagged batches. Values are written from the Arrow buffers directly into the words that the
    device is offered. The output has the columns ``left`` and ``right``; with a trace, it also has
    ``emitted`` and ``latency`` (the visiting latency in cycles). For a row that comes alone, all
    columns except its own row number are -1. Result words are decoded as they arrive; only the
    window and the open groups are kept. The governor is asked for the rooms that result words
    arrive in and for the areas that input words wait in; with fewer buffers an exchange moves fewer
    of either, and a batch is staged in shorter pieces.

    Attributes
    ----------
    watch : DeviceWatch or None
        Cycles and seconds of the last execution.
    trace : Trace or None
        Latencies of the last execution, if it was traced.
    staged : StagingCounters
        Counters of the staging in the last execution.
    hashing : HashWatch or None
        Seeds that an index had in the last execution, and whether the next one gets others.
    precision : PrecisionRecord or None
        Decisions of an adaptive precision in the last execution.
    segments : list of Segment
        Changes of the cores that store, in the last execution.
    epochs, superseded : list of Epoch
        Epochs that took effect in the last execution, and those that never did.
    refused : EpochError or None
        Why the last execution ended before an epoch. The stream ends without an error, so that
        what it has handed on reaches the reader, who must look here.
    elastic : ElasticRecord or None
        Decisions of an elastic join in the last execution.
    failures : FailureRecord or None
        Cores that failed in the last execution; None if a failure ends the join.
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self._params: AcceleratorJoinParams | None = None
        self._run: Execution | None = None
        self._pacing: Pacing | None = None
        self.watch: DeviceWatch | None = None
        self.trace: Trace | None = None
        self.staged = StagingCounters()
        self.hashing: HashWatch | None = None
        self.precision: PrecisionRecord | None = None
        self.segments: list[Segment] = []
        self.epochs: list[Epoch] = []
        self.superseded: list[Epoch] = []
        self.refused: EpochError | None = None
        self.elastic: ElasticRecord | None = None
        self.failures: FailureRecord | None = None

    def prepare(self, params: AcceleratorJoinParams) -> None:
        needed = 2 if params.layout is None else 1
        if len(self.inputs) != needed:
            raise GraphError(
                f"Stream {self.name!r} needs {needed} input(s), not {len(self.inputs)}"
            )
        listed = params.segments != () or params.epochs != ()
        if listed and params.elastic is not None:
            raise UsageError(
                "A join has either a controller of its cores ('elastic') or given epochs or "
                "segments; leave one of them out."
            )
        if listed or params.elastic is not None:
            require_segments(params.device.manifest)
        require_epochs(params)
        if isinstance(params.segments, Sequence):
            for _, cores in params.segments:  # what is wrong is told before any row is taken
                segment_words(params.device.manifest, cores, params.plan.window)
        super().prepare(params)
        self._params = params

    def requirements(self) -> Requirements:
        return Requirements(optimum=Quantity(buffers=sum(self._wanted)))

    @property
    def _bytes_of_words(self) -> tuple[int, int]:
        """Bytes in all rooms for a result word, and in all areas for an input word."""
        assert self._params is not None
        manifest = self._params.device.manifest
        return 8 * ROOMS * manifest.result_word.columns, 8 * AREAS * manifest.input_word.columns

    @property
    def _wanted(self) -> tuple[int, int]:
        """Buffers for result words, and for input words."""
        assert self._params is not None
        results, inputs = self._bytes_of_words
        return (
            -(-self._params.result_words * results // BUFFER_BYTES),
            -(-self._params.staged_words * inputs // BUFFER_BYTES),
        )

    @property
    def result_words(self) -> int:
        """Most result words of an exchange, by the buffers that were granted; these come first."""
        assert self._params is not None
        granted = self.allocation.buffers * BUFFER_BYTES // self._bytes_of_words[0]
        return min(self._params.result_words, max(LEAST_RESULT_WORDS, granted))

    @property
    def staged_words(self) -> int:
        """Input words of an area, by the buffers that result words leave."""
        assert self._params is not None
        buffers = max(0, self.allocation.buffers - self._wanted[0])
        granted = buffers * BUFFER_BYTES // self._bytes_of_words[1]
        return min(self._params.staged_words, max(LEAST_STAGED_WORDS, granted))

    def open(self, restart: bool = False) -> None:
        super().open(restart)
        self._abandon()
        params = self._params
        assert params is not None
        for rows in params.rows:
            rows.clear()
        completion = None
        if params.how is not JoinType.INNER:
            completion = Completion(params.how, params.plan.window)
        intake = self._intake(params, completion)
        self._run = run = Execution(
            params, intake, completion, self.result_words, self.staged_words
        )
        self.watch, self.trace, self.hashing = run.watch, run.answer.trace, run.hashing
        steering = run.steering
        self.precision = None if steering.adaptive is None else steering.adaptive.record
        self.refused = None
        changes = run.offering.changes
        self.segments = changes.begun
        if isinstance(changes, EpochChanges):
            self.epochs, self.superseded = changes.epochs, changes.superseded
        self.elastic = None if steering.elastic is None else steering.elastic.record
        self._pacing = steering.pacing
        self.failures = run.failures.record
        self.staged = intake.counters

    def _intake(self, params: AcceleratorJoinParams, completion: Completion | None) -> Intake:
        intake = params.intake(self.inputs, None if completion is None else completion.take)
        # A third of an area has room for a batch of either side.
        intake.most_rows = min(intake.most_rows, self.staged_words // (3 * len(Side)))
        if params.elastic is not None:
            sub_window = params.device.manifest.storage.sub_window
            intake.most_rows = min(ROWS, max(1, sub_window // 2))
        if params.pace is not None:
            intake.most_rows = min(intake.most_rows, PACED_ROWS)
        return intake

    @property
    def longest_wait(self) -> int | None:
        """Most cycles from a tuple's arrival to its answer; None without a pace of the input."""
        return None if self._pacing is None else self._pacing.longest

    @property
    def stores(self) -> tuple[Rows, Rows]:
        """The stores of the rows of both sides."""
        assert self._params is not None
        return self._params.rows

    def execute(self, quantum: Quantum) -> StreamResult:
        run = self._run
        assert run is not None
        moved = 0
        while moved < quantum.rows:
            if not run.answer.delivery.hand_on(self.output):
                return StreamResult.BUF_OVERFLOW
            if run.answer.done:
                self.refused = run.offering.refused
                return self.finish()
            if not run.offering.take_input():
                return StreamResult.BUF_UNDERFLOW
            moved += run.exchange()
        return StreamResult.QUANTUM_EXPIRED

    def close_impl(self) -> None:
        self._abandon()

    def _abandon(self) -> None:
        run, self._run = self._run, None
        if run is not None:
            run.abandon()
