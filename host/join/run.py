# SPDX-License-Identifier: Apache-2.0
"""A join that can be run: its graph of execution streams, and measurements of the last run."""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from host.accelerator.device_join import JoinOptions, PreparedJoin
from host.accelerator.params import Progress
from host.control.elastic_cores import NoteDecision
from host.control.elastic_record import ElasticRecord
from host.control.precision_record import PrecisionRecord
from host.device import Device
from host.exchange.watch import Deadline
from host.failures.failure_record import FailureRecord
from host.query.epochs import Epoch, Epochs
from host.query.segments import Segment, SegmentSchedule
from host.runtime import Columns, ExecStreamGraph, Quantum, Scheduler
from host.tuples.staging_counters import StagingCounters

__all__ = ["JoinResult", "JoinRun", "Latency"]

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Latency:
    """Latencies from a trace, in clock cycles of the device.

    Parameters
    ----------
    processing : array of int64
        For each tuple that is no halo row, in the order of arrival: cycles from its acceptance to
        the star behind its results.
    visiting : array of int64
        For each pair: cycles from the acceptance of the later tuple to the emission of the pair.
    emitted : array of int64
        For each pair: cycle of its emission, counted since the device was opened.
    """

    processing: Int64s
    visiting: Int64s
    emitted: Int64s


@dataclass(frozen=True)
class JoinResult:
    """Result of a join.

    Parameters
    ----------
    table : pa.Table
        The left columns, then the right columns.
    pairs : tuple of array of int64
        Row numbers in the left and in the right table, for every result; -1 where there is no row.
    counters : mapping of str to int
        Increase of the device's counters.
    cycles, device_seconds : int, float
        Clock cycles and seconds that the device has worked.
    latency : Latency or None
        Latencies, if the join was traced.
    """

    table: pa.Table
    pairs: tuple[Int64s, Int64s]
    counters: Mapping[str, int]
    cycles: int
    device_seconds: float
    latency: Latency | None = None


class JoinRun:
    """Base of joins that run on a device; a derived class makes and prepares the graph.

    Parameters
    ----------
    device : Device
        An open device, which nobody else uses meanwhile; it stays open.
    trace : bool
        Whether to record the cycles in which tuples and results are transferred; implies
        ``record``.
    record : bool
        Whether to keep the row numbers of all results for :attr:`pairs`.
    deadline : Deadline, optional
        Longest time without progress of the device.
    report : callable, optional
        Called with a :class:`Progress` from time to time.
    batch_rows : int
        Largest number of rows in a result batch.
    buffer_rows : int
        Capacity of each buffer between two streams, in rows.
    is_cut : callable, optional
        Returns whether another join continues with the input; see
        :class:`~host.accelerator.device_join.JoinOptions`.
    segments : SegmentSchedule or sequence of (int, sequence of int)
        Changes of the cores that store: after how many tuples of both sides, which cores.
    epochs : EpochSchedule or sequence of Epoch or (int, sequence of int)
        Epochs of an elastic join; a pair is the place and the active cores. A join has either
        epochs or segments. What is wrong with listed epochs is told before any row is taken. If an
        epoch is refused later, the results of all tuples before it are handed on, and then its
        :exc:`~host.errors.EpochError` is raised.
    note_decision : callable, optional
        Called with each decision of an elastic join, and with each change of its cores; see
        :mod:`host.control.elastic_record`.
    pace : int, float or Fraction, optional
        Clock cycles for a unit of the left order column, by which the input arrives; see
        :class:`~host.accelerator.device_join.JoinOptions`.
    """

    #: Schema of the results.
    schema: pa.Schema

    def __init__(
        self,
        device: Device,
        *,
        trace: bool = False,
        record: bool = False,
        deadline: Deadline | None = None,
        report: Callable[[Progress], None] | None = None,
        batch_rows: int = 1 << 16,
        buffer_rows: int = 1 << 17,
        is_cut: Callable[[], bool] | None = None,
        segments: SegmentSchedule | Sequence[tuple[int, Sequence[int]]] = (),
        epochs: Epochs = (),
        note_decision: NoteDecision | None = None,
        pace: Fraction | float | None = None,
    ) -> None:
        self.device = device
        self._before: dict[str, int] = {}
        self._visits: list[Columns] = []
        self._recording = record or trace
        self._quantum = Quantum(batch_rows)
        self._options = JoinOptions(
            trace=trace,
            deadline=Deadline() if deadline is None else deadline,
            report=report,
            batch_rows=batch_rows,
            observe=self._visit,
            is_cut=is_cut,
            segments=segments,
            epochs=epochs,
            note_decision=note_decision,
            pace=pace,
        )
        self._graph = ExecStreamGraph(buffer_rows)

    def _run(self, join: PreparedJoin) -> None:
        """Prepare the graph, which contains ``join``."""
        self.schema = join.schema
        self.encoded = join.plan
        self._accelerator = join.accelerator
        self._graph.prepare()

    def batches(self) -> Generator[pa.RecordBatch, None, None]:
        """Run the join and yield the results in order as they arrive.

        A consumer that stops early only needs to close the iterator; the device can then be used
        again.

        Raises
        ------
        EpochError
            Behind the last result, if an epoch was refused while the join ran.
        """
        self._before = self.device.counters()
        self._visits.clear()
        yield from Scheduler(self._graph, self._quantum).read()
        if self._accelerator.refused is not None:
            raise self._accelerator.refused

    @property
    def staged(self) -> StagingCounters:
        """Counters of the last join's staging of batches into input words."""
        return self._accelerator.staged

    def describe(self) -> str:
        """Return a description of the streams and buffers, one buffer per line."""
        return self._graph.plan()

    @property
    def cycles(self) -> int:
        """Clock cycles that the device has run for the last join."""
        return 0 if self._accelerator.watch is None else self._accelerator.watch.cycles

    @property
    def device_seconds(self) -> float:
        """Seconds that the device has worked for the last join, mostly in parallel to the host."""
        return 0.0 if self._accelerator.watch is None else self._accelerator.watch.seconds

    @property
    def waited_seconds(self) -> float:
        """Seconds in which the host had nothing to do but wait for the device."""
        return 0.0 if self._accelerator.watch is None else self._accelerator.watch.waited

    @property
    def precision(self) -> PrecisionRecord | None:
        """Decisions of an adaptive ordering in the last join; None for any other ordering."""
        return self._accelerator.precision

    @property
    def segments(self) -> list[Segment]:
        """The changes of the cores that store in the last join, with the places where they came."""
        return self._accelerator.segments

    @property
    def epochs(self) -> list[Epoch]:
        """The epochs that took effect in the last join; ``after`` is the place of each."""
        return self._accelerator.epochs

    @property
    def superseded(self) -> list[Epoch]:
        """Epochs of the last join that a later one replaced before they took effect."""
        return self._accelerator.superseded

    @property
    def longest_wait(self) -> int | None:
        """Most cycles from a tuple's arrival to its answer in the last join; None without a pace.

        Arrivals and answers are seen between exchanges, so it is up to two of them too long.
        """
        return self._accelerator.longest_wait

    @property
    def elastic(self) -> ElasticRecord | None:
        """Decisions of an elastic join in its last run; None for any other join."""
        return self._accelerator.elastic

    @property
    def failures(self) -> FailureRecord | None:
        """Cores that failed in the last join; None if a failure ends the join."""
        return self._accelerator.failures

    @property
    def hash_note(self) -> str:
        """Note that an index read too many entries in the last join; empty if it did not."""
        return "" if self._accelerator.hashing is None else self._accelerator.hashing.note

    def counters(self) -> dict[str, int]:
        """Return the increase of the device's counters since the last join began."""
        now = self.device.counters()
        return {name: value - self._before.get(name, 0) for name, value in now.items()}

    @property
    def pairs(self) -> tuple[Int64s, Int64s]:
        """Row numbers of every result in the left and in the right input, if they were recorded.

        For a row that comes alone, the other row number is -1.
        """
        return self._visited("left"), self._visited("right")

    def take_pairs(self) -> tuple[Int64s, Int64s]:
        """Return the :attr:`pairs` recorded since the last call, and forget them."""
        taken = self.pairs
        self._visits.clear()
        return taken

    @property
    def latency(self) -> Latency | None:
        """Latencies of the last join; None if it was not traced."""
        trace = self._accelerator.trace
        if trace is None:
            return None
        processing = trace.processing[self.staged.halo_tuples :]
        emitted = self._visited("emitted")
        pairs = emitted >= 0  # rows that come alone are not emitted by the device
        return Latency(processing, self._visited("latency")[pairs], emitted[pairs])

    def _visit(self, pairs: Columns) -> None:
        if self._recording:
            self._visits.append(pairs)

    def _visited(self, name: str) -> Int64s:
        parts = [pairs[name] for pairs in self._visits if name in pairs.arrays]
        return np.concatenate([np.zeros(0, np.int64), *parts])

    def run(self) -> JoinResult:
        """Run the join and gather all results."""
        self._recording = True
        table = pa.Table.from_batches(list(self.batches()), schema=self.schema)
        return JoinResult(
            table, self.pairs, self.counters(), self.cycles, self.device_seconds, self.latency
        )
