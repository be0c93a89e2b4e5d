# SPDX-License-Identifier: Apache-2.0
"""Parameters and progress reports of the accelerator stream, and the rules for its epochs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import pyarrow as pa

from host.columns import EncodingPlan
from host.columns.fields import Recheck
from host.devices import Device
from host.devices.waiting import Deadline
from host.errors import UsageError
from host.query.cores import (
    Controller,
    Epochs,
    EpochSchedule,
    ListedEpochs,
    ListedSegments,
    SegmentSchedule,
)
from host.query.ordering import Ordering
from host.query.queries import OnFailure
from host.reference.arrivals import Side
from host.reference.types import JoinType
from host.runtime import Buffer, ConfluenceParams
from host.session.control import NoteDecision, control_of
from host.session.cores import EpochRules
from host.session.intake import Intake, PairedIntake, TaggedIntake, TaggedLayout, TakeRows
from host.session.rows import Rows

__all__ = [
    "AcceleratorJoinParams",
    "Progress",
    "require_epochs",
]

# Parameters and progress reports of the accelerator stream.


@dataclass(frozen=True)
class Progress:
    """Tuples whose results are complete, pairs so far, and cycles of the device."""

    tuples: int
    pairs: int
    cycles: int


@dataclass(frozen=True)
class AcceleratorJoinParams(ConfluenceParams):
    """Parameters of :class:`AcceleratorJoin`.

    Parameters
    ----------
    device : Device
        An open device; the stream does not close it.
    plan : EncodingPlan
        Encoding of rows as tuples, with the bounds and the window.
    rows : tuple of Rows
        Stores that keep the rows of either side as long as a pair can refer to them.
    rechecks : tuple of Recheck
        Terms for which the device finds all pairs, and possibly others.
    layout : TaggedLayout or None
        Layout of the batches if both sides come in one input; None for two inputs.
    how : JoinType
        Type of the join.
    on_failure : OnFailure
        What to do when a core fails.
    ordering : Ordering
        Ordering of the results. Strict order is restored from full groups, at full speed, unless
        the accelerator sends it in rounds. An adaptive one is that of
        :class:`~host.session.control.AdaptivePrecision`.
    distinct : tuple of bool
        Whether a probe can match at most one row of the left side, and of the right side.
    newest_of : Side or None
        The side of whose window only the newest match of each row is wanted; see
        :class:`~host.session.device_join.PreparedJoin`.
    trace : bool
        Whether to record the cycles in which words are transferred.
    deadline : Deadline
        Longest time without progress of the device.
    report : callable or None
        Called with a :class:`Progress` from time to time.
    elastic : Controller or None
        What chooses how many cores store.
    is_cut, segments, epochs, note_decision, pace
        See :class:`~host.session.device_join.JoinOptions`.
    result_words, chunk_cycles, low_water : int
        Largest number of result words and of clock cycles in one exchange, and the number of
        waiting words below which more input is staged. Fewer result words if the governor grants
        fewer buffers.
    staged_words : int
        Words in each of the two areas of input words: those of an exchange, those that are staged
        meanwhile, and a batch of either side before these are known to be enough. Fewer if the
        governor grants fewer buffers.
    """

    device: Device
    plan: EncodingPlan
    rows: tuple[Rows, Rows]
    rechecks: tuple[Recheck, ...] = ()
    layout: TaggedLayout | None = None
    how: JoinType = JoinType.INNER
    on_failure: OnFailure = OnFailure.RAISE
    ordering: Ordering = field(default_factory=Ordering.outer)
    distinct: tuple[bool, bool] = (False, False)
    newest_of: Side | None = None
    trace: bool = False
    deadline: Deadline = field(default_factory=Deadline)
    report: Callable[[Progress], None] | None = None
    is_cut: Callable[[], bool] | None = None
    segments: SegmentSchedule | Sequence[tuple[int, Sequence[int]]] = ()
    epochs: Epochs = ()
    elastic: Controller | None = None
    note_decision: NoteDecision | None = None
    pace: Fraction | float | None = None
    result_words: int = 1 << 16
    staged_words: int = 3 << 16
    chunk_cycles: int = 1 << 16
    low_water: int = 1 << 12

    def intake(self, inputs: Sequence[Buffer[pa.RecordBatch]], tell: TakeRows | None) -> Intake:
        """Return what takes the rows from the inputs; ``tell`` is called with all rows of them."""
        manifest = self.device.manifest
        if self.layout is None:
            return PairedIntake(inputs, self.plan, self.rows, manifest, tell)
        return TaggedIntake(inputs, self.plan, self.rows, manifest, self.layout, tell)

    @property
    def strict(self) -> bool:
        """Whether pairs are ordered by their later tuple, then by their earlier one.

        A join that goes on after a failure holds pairs back until their star in any case.
        """
        return self.ordering.period == 1 or self.survives

    @property
    def survives(self) -> bool:
        """Whether the join goes on after the failure of a core."""
        return self.on_failure is not OnFailure.RAISE

    @property
    def in_rounds(self) -> bool:
        """Whether the accelerator sends the results of a probe in rounds."""
        return self.ordering.in_hardware and "INNER" in self.device.manifest.operations

    @property
    def adapts(self) -> bool:
        """Whether the period is chosen while the accelerator runs; a chain of cores has none."""
        return self.ordering.hold is not None and self.device.manifest.chain is None

    @property
    def schedule(self) -> SegmentSchedule:
        """The segments of an execution; those of a list begin anew with each execution."""
        if isinstance(self.segments, Sequence):
            return ListedSegments(self.segments)
        return self.segments

    @property
    def epoch_schedule(self) -> EpochSchedule:
        """The epochs of an execution; those of a list begin anew with each execution."""
        return ListedEpochs(self.epochs) if isinstance(self.epochs, Sequence) else self.epochs

    @property
    def precision(self) -> Ordering:
        """The ordering precision that the accelerator is set to, at first if it adapts."""
        if self.in_rounds:
            return self.ordering
        if self.strict:
            return Ordering(self.device.manifest.probes)
        if self.ordering.hold is not None:
            return Ordering(control_of(self.ordering, self.device.manifest).period)
        if self.ordering.period == 0:
            # Without stars the index of a probe wraps, and no bound on the probes under way tells
            # how often it has. The longest period keeps every index unambiguous.
            return Ordering(1 << self.device.manifest.probe_bits)
        return self.ordering


# Whether a join can have the epochs that are asked for.


def require_epochs(params: AcceleratorJoinParams) -> None:
    """Raise an error if a join cannot have the epochs that are asked for.

    Raises
    ------
    UsageError
        If segments are asked for as well, or if an epoch begins beyond a value that the order
        column cannot hold.
    EpochError
        If a listed epoch cannot take effect.
    """
    if params.epochs == ():
        return
    if params.segments != ():
        raise UsageError(
            "A join has either epochs or segments, not both: an epoch is a segment; give epochs."
        )
    schedule = params.epoch_schedule
    if not isinstance(schedule, ListedEpochs):
        return
    rules = EpochRules(params.device, params.plan.window)
    for epoch in schedule.epochs:
        if epoch.beyond is not None:
            params.plan.times.ticks(epoch.beyond)
        rules.admit(epoch)
