# SPDX-License-Identifier: Apache-2.0
"""What a join on a device is asked to do: its options, its plan, and its progress reports."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from host.arrays import Int64s
from host.columns.encoding import (
    Arrangement,
    EncodingPlan,
    arrange,
    joined_schema,
    plan_streams,
    plan_tables,
)
from host.columns.kinds import Ranges
from host.devices import Device
from host.devices.waiting import Deadline
from host.errors import UsageError
from host.installation import processors
from host.protocol.configuration import require_abilities, require_segments
from host.protocol.manifest import Manifest
from host.protocol.segments import (
    largest_window,
    outgrown,
    require_capacity,
    require_pairs,
    side_label,
)
from host.query.cores import Epochs, EpochSchedule, ListedEpochs
from host.query.ordering import Ordering
from host.query.queries import OnFailure, Query
from host.query.tables import Supply
from host.reference.arrivals import Side
from host.reference.types import JoinType
from host.reference.window import CountWindow, Window
from host.runtime import Buffer, StreamParams
from host.session.control import NoteDecision, control_of
from host.session.cores import EpochChanges
from host.session.intake import Intake, PairedIntake, TaggedIntake, TaggedLayout, TakeRows
from host.session.rows import Rows, RowStore, SharedRows, TableRows

if TYPE_CHECKING:
    from host.columns.conditions import BoundCondition
    from host.columns.windows import PairWindows

__all__ = [
    "AREAS",
    "JoinOptions",
    "JoinParams",
    "Progress",
    "ROOMS",
    "plan_join",
    "plan_join_of_tables",
    "require_room",
]

ROOMS = 2
"""Rooms for result words: one is decoded while the device fills the other."""

AREAS = 2
"""Areas of input words: the device may read one while the other one is filled."""


@dataclass(frozen=True)
class Progress:
    """Tuples whose results are complete, pairs so far, and cycles of the device."""

    tuples: int
    pairs: int
    cycles: int


@dataclass(frozen=True)
class JoinOptions:
    """Options of running a join, as opposed to the query; every way to run one takes them.

    Parameters
    ----------
    trace : bool
        Whether to record the cycles in which tuples and results are transferred; implies
        ``record``.
    record : bool
        Whether to keep the row numbers of all results.
    deadline : Deadline
        Longest time without progress of the device.
    report : callable, optional
        Called with a :class:`Progress` from time to time.
    batch_rows : int
        Largest number of rows in a result batch.
    buffer_rows : int
        Capacity of each buffer between two streams, in rows; that of a pipeline is its own.
    is_cut : callable, optional
        Called when the input has ended; returns whether another join continues with it. If so, a
        row that the window still holds does not come alone, because a later row could match it.
    epochs : EpochSchedule or sequence of Epoch or (int, sequence of int)
        Epochs of an elastic join, which make its cores active or not; a pair is the place, after so
        many tuples of both sides, and the active cores. At first all cores store. The answer is the
        same whichever cores do. What is wrong with listed epochs is told before any row is taken.
        If an epoch is refused later, the results of all tuples before it are handed on, and then
        its :exc:`~host.errors.EpochError` is raised.
    note_decision : callable, optional
        Called with each decision of an elastic join, and with each change of its cores; see
        :mod:`host.session.records`.
    pace : int, float or Fraction, optional
        Clock cycles that pass while the left order column advances by one of its units. A tuple is
        then offered no earlier than it arrives. By default the device gets the input as fast as it
        takes it. Only for a device with a clock.
    distinct : tuple of bool
        Whether the caller knows that a probe can match at most one row of the left side, and of
        the right side.
    first_rows : tuple of int
        For streams: the numbers of the first row of either side, where a join goes on with rows
        behind others; of tagged rows, the first one counts.
    answered : tuple of int
        For two streams: the numbers of the first row of either side that was not answered before;
        pairs of two earlier rows are not in the result.
    threads : int
        Threads that join blocks in software at the same time; by default, one per processor.
    eager : bool
        Whether the software engine answers what has come as soon as more input is missing, and does
        not gather larger blocks.
    newest_of : Side, optional
        The side of whose window only the newest match of each row of the other side is wanted; only
        for an inner join. An index then sends one match of each core, the core's newest; a scan
        sends all of them. Older matches, and pairs whose later row is one of this side, may be
        missing from the result.
    result_words, chunk_cycles, low_water : int
        Largest number of result words and of clock cycles in one exchange, and the number of
        waiting words below which more input is staged. Fewer result words if the governor grants
        fewer buffers.
    staged_words : int
        Words in each of the two areas of input words: those of an exchange, those that are staged
        meanwhile, and a batch of either side before these are known to be enough. Fewer if the
        governor grants fewer buffers.
    """

    trace: bool = False
    record: bool = False
    deadline: Deadline = field(default_factory=Deadline)
    report: Callable[[Progress], None] | None = None
    batch_rows: int = 1 << 16
    buffer_rows: int = 1 << 17
    is_cut: Callable[[], bool] | None = None
    epochs: Epochs = ()
    note_decision: NoteDecision | None = None
    pace: Fraction | float | None = None
    distinct: tuple[bool, bool] = (False, False)
    first_rows: tuple[int, int] = (0, 0)
    answered: tuple[int, int] = (0, 0)
    threads: int = field(default_factory=processors)
    eager: bool = False
    newest_of: Side | None = None
    result_words: int = 1 << 16
    staged_words: int = 3 << 16
    chunk_cycles: int = 1 << 16
    low_water: int = 1 << 12

    @property
    def uses_cores(self) -> bool:
        """Whether something is asked for that only a device with cores and a clock has."""
        return self.trace or self.pace is not None or self.epochs != ()


@dataclass(frozen=True)
class JoinParams(StreamParams):
    """A join that has been checked and planned for a device, for use in one graph.

    Parameters
    ----------
    device : Device
        An open device, which nobody else uses meanwhile; it stays open.
    query : Query
        The query, which decides which results are wanted and in which order.
    plan : EncodingPlan
        Encoding of rows as tuples, with the bounds and the window.
    left, right, schema : pa.Schema
        Schemas of the inputs and of the result.
    rows : tuple of Rows
        Stores that keep the rows of either side as long as a pair can refer to them.
    layout : TaggedLayout or None
        Layout of the batches if both sides come in one input; None for two inputs.
    options : JoinOptions
        Options of running the join.
    """

    device: Device
    query: Query
    plan: EncodingPlan
    left: pa.Schema
    right: pa.Schema
    schema: pa.Schema
    rows: tuple[Rows, Rows]
    layout: TaggedLayout | None = None
    options: JoinOptions = field(default_factory=JoinOptions)

    def intake(self, inputs: Sequence[Buffer[pa.RecordBatch]], tell: TakeRows | None) -> Intake:
        """Return what takes the rows from the inputs; ``tell`` is called with all rows of them."""
        manifest = self.device.manifest
        if self.layout is None:
            answered = self.options.answered
            return PairedIntake(inputs, self.plan, self.rows, manifest, tell, answered=answered)
        return TaggedIntake(inputs, self.plan, self.rows, manifest, self.layout, tell)

    @property
    def in_software(self) -> bool:
        """Whether the software engine joins: its device has no cores, and no words are needed."""
        query = self.query
        return self.device.is_software_engine and not (
            self.options.uses_cores or query.elastic or query.ordering.hold
        )

    @property
    def first_arrival(self) -> int:
        """The place of the first arrival; those of a device are counted from zero."""
        return sum(self.options.first_rows) if self.in_software else 0

    @cached_property
    def rechecks(self) -> "tuple[BoundCondition, ...]":
        """Terms and conditions for which the device finds all pairs, and possibly others."""
        rough, condition = self.plan.rough_terms, self.plan.condition
        terms = []
        if rough:
            from host.columns.conditions import BoundCondition

            terms = [BoundCondition.of_term(term, self.left, self.right) for term in rough]
        return (*terms, *(() if condition is None else (condition,)))

    @cached_property
    def windows(self) -> "PairWindows | None":
        """The windows for each of which a pair comes once; None if it comes once at all."""
        if not self.query.per_window:
            return None
        from host.columns.windows import PairWindows

        return PairWindows(self.query, self.left, self.right)

    @property
    def distinct(self) -> tuple[bool, bool]:
        """Whether a walk may end at the first match: every one must be a match of the query."""
        return (False, False) if self.rechecks or self.query.once else self.options.distinct

    @property
    def newest_of(self) -> Side | None:
        """The side of whose window only the newest match is wanted, if the device can tell."""
        return None if self.rechecks or self.query.once else self.options.newest_of

    @property
    def strict(self) -> bool:
        """Whether pairs are ordered by their later tuple, then by their earlier one.

        Strict order is restored from full groups, at full speed, unless the accelerator sends it in
        rounds. A join that goes on after a failure holds pairs back until their star in any case.
        """
        return self.query.ordering.period == 1 or self.survives

    @property
    def survives(self) -> bool:
        """Whether the join goes on after the failure of a core."""
        return self.query.on_failure is not OnFailure.RAISE

    @property
    def in_rounds(self) -> bool:
        """Whether the accelerator sends the results of a probe in rounds."""
        return self.query.ordering.in_hardware and "INNER" in self.device.manifest.operations

    @property
    def is_exact(self) -> bool:
        """Whether results have one order only: within a round, it is up to the device."""
        ordering = self.query.ordering
        return ordering.period == 1 and not (self.in_rounds and ordering.rounds > 1)

    @property
    def adapts(self) -> bool:
        """Whether the period, or the rounds, are chosen while an accelerator that has them runs."""
        ordering = self.query.ordering
        has = self.in_rounds if ordering.rounds else self.device.manifest.chain is None
        return ordering.hold is not None and has

    @property
    def epoch_schedule(self) -> EpochSchedule:
        """The epochs of an execution; those of a list begin anew with each execution."""
        epochs = self.options.epochs
        return ListedEpochs(epochs) if isinstance(epochs, Sequence) else epochs

    @property
    def precision(self) -> Ordering:
        """The ordering precision that the accelerator is set to, at first if it adapts."""
        ordering, manifest = self.query.ordering, self.device.manifest
        if self.in_rounds:
            return ordering
        if self.strict:
            return Ordering(manifest.probes)
        if ordering.hold is not None:
            return Ordering(control_of(ordering, manifest).period)
        if ordering.period == 0:
            # Without stars the index of a probe wraps, and no bound on the probes under way tells
            # how often it has. The longest period keeps every index unambiguous.
            return Ordering(1 << manifest.probe_bits)
        return ordering

    def require_cores(self) -> None:
        """Raise unless the cores can change as the options ask.

        Raises
        ------
        UsageError
            If two things would choose the cores, if an accelerator or its cores cannot do what is
            listed, or if an epoch begins beyond a value that the order column cannot hold.
        EpochError
            If a listed epoch cannot take effect.
        """
        listed = self.options.epochs != ()
        if listed and self.query.elastic is not None:
            raise UsageError(
                "A join has either a controller of its cores ('elastic') or given epochs; leave "
                "one of them out."
            )
        if listed or self.query.elastic is not None:
            require_segments(self.device.manifest)
        schedule = self.epoch_schedule
        if isinstance(schedule, ListedEpochs) and schedule.epochs:
            # As long as no tuple is cut, no floor of a time is asked for.
            changes = EpochChanges(self.device, self.plan, schedule, floor=int)
            for epoch in schedule.epochs:
                if epoch.beyond is not None:
                    self.plan.times.ticks(epoch.beyond)
                changes.admit(epoch)


def plan_join(
    left: pa.Schema,
    right: pa.Schema,
    query: Query,
    device: Device,
    *,
    ranges: tuple[Ranges, Ranges] = ({}, {}),
    layout: TaggedLayout | None = None,
    is_one: bool = False,
    options: JoinOptions | None = None,
) -> JoinParams:
    """Plan the join of two streams, each sorted by its order column, from their schemas.

    Parameters
    ----------
    left, right : pa.Schema
        Schemas of the streams.
    query : Query
        The join. The streams must be sorted, whether or not the query declares it.
    device : Device
        An open device.
    ranges : tuple of mapping
        Known ranges of columns; see :func:`~host.columns.encoding.plan_streams`.
    layout : TaggedLayout, optional
        Layout of the batches if one stream has the rows of both sides in their order of arrival.
    is_one : bool
        Whether both streams are one and the same.
    options : JoinOptions, optional
        Options of running the join.

    Raises
    ------
    UsageError
        If the query does not suit the streams or the device.
    """
    _require(query, device, is_one)
    plan = plan_streams(left, right, query, device.manifest, ranges=ranges)
    require_capacity(plan.window, device.manifest)
    schema = joined_schema(left, right, query)
    chosen = _chosen(options, query)
    first = chosen.first_rows
    rows: tuple[Rows, Rows] = (RowStore(first[0]), RowStore(first[1]))
    if layout is not None:
        rows = SharedRows.pair(RowStore(first[0]), *layout.slices)
    return JoinParams(device, query, plan, left, right, schema, rows, layout, chosen)


def plan_join_of_tables(
    left: pa.Table,
    right: pa.Table,
    query: Query,
    device: Device,
    *,
    options: JoinOptions | None = None,
) -> tuple[JoinParams, list[Supply]]:
    """Plan the join of whole tables; return the plan and the columns to send, in order.

    The tables are inspected, so any values that can be encoded are accepted.

    Raises
    ------
    UsageError
        If the query does not suit the tables or the device.
    CapacityError
        If a time-based window holds more rows than the device's capacity.
    """
    manifest = device.manifest
    _require(query, device, left is right)
    whole = left.combine_chunks()
    left, right = whole, whole if left is right else right.combine_chunks()
    schema = joined_schema(left.schema, right.schema, query)
    plan = plan_tables(left, right, query, manifest)
    require_capacity(plan.window, manifest)
    orders: tuple[Int64s | None, Int64s | None] = (None, None)
    if plan.timed or not query.sorted:
        arranged = arrange(plan, left, right)
        require_room(arranged, plan.window, manifest)
        orders = arranged.orders
    supplies = [
        Supply(table.select(plan.columns(side)), order)
        for side, (table, order) in enumerate(zip((left, right), orders, strict=True))
    ]
    params = JoinParams(
        device, query, plan, left.schema, right.schema, schema,
        (TableRows(left, orders[0]), TableRows(right, orders[1])),
        options=_chosen(options, query),
    )  # fmt: skip
    return params, supplies


def _require(query: Query, device: Device, is_one: bool) -> None:
    """Raise unless the device, and the inputs, which may be one, are of the kind that is needed."""
    require_pairs(device.manifest)
    require_abilities(query, device.manifest, None if device.is_software_engine else device.uri)
    if query.once and not (is_one and query.time[0] == query.time[1]):
        raise UsageError(
            "pairs='once' is for rows that are joined with themselves by one column of time: give "
            "one table, reader or file as both inputs. Of others, compare a column that is unique: "
            "where='l.id < r.id'."
        )


def _chosen(options: JoinOptions | None, query: Query) -> JoinOptions:
    """Return options that go with the query."""
    chosen = JoinOptions() if options is None else options
    if chosen.newest_of is not None and query.how is not JoinType.INNER:
        raise UsageError(
            f"A join that wants only newest matches leaves pairs out, so it cannot tell which "
            f"rows have none: how must be 'inner', not {query.how.value!r}."
        )
    return replace(chosen, record=True) if chosen.trace else chosen


def require_room(arranged: Arrangement, window: Window, manifest: Manifest) -> None:
    """Raise unless the accelerator can always hold a time-based window over two whole tables.

    Raises
    ------
    CapacityError
        If the window outgrows the capacity. The error names the first row that finds no room.
    """
    if isinstance(window, CountWindow):
        return
    needs = []
    for side, times, rows in zip(Side, arranged.times, arranged.rows, strict=True):
        needed, first = largest_window(times, int(window.lifespan), manifest.capacity)
        if first is not None:
            needs.append((int(times[first]), side, int(rows[first]), needed))
    if needs:
        _, side, row, _ = min(needs)
        raise outgrown(manifest, side_label(side), max(need[3] for need in needs), row)
