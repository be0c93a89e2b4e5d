# SPDX-License-Identifier: Apache-2.0
"""What the accelerator as a stream is prepared with, and what it reports."""

from collections.abc import Callable
from dataclasses import dataclass, field

from host.device import Device
from host.encode import EncodingPlan
from host.encode.recheck import Recheck
from host.join_type import JoinType
from host.ordering import Ordering
from host.runtime import ConfluenceParams
from host.streams.row_store import Rows
from host.streams.tagged_intake import TaggedLayout
from host.streams.watch import Deadline

__all__ = ["AcceleratorJoinParams", "Progress"]


@dataclass(frozen=True)
class Progress:
    """What has passed the device so far."""

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
        How rows become tuples, the bounds and the window.
    rows : tuple of Rows
        Where the rows of either side are kept as long as a pair can mean them.
    rechecks : tuple of Recheck
        Terms of which the device finds all pairs and others.
    layout : TaggedLayout or None
        Of the batches, if both sides come in one input; else there are two inputs.
    how : JoinType
        Which results are wanted.
    ordering : Ordering
        Of the results; strict order is restored from full groups, at full speed.
    distinct : tuple of bool
        Whether a probe can match one row at most of the left side, and of the right side.
    trace : bool
        Whether to take the cycles in which words came and went.
    deadline : Deadline
        When to give up.
    report : callable or None
        Is called with a :class:`Progress` now and then.
    is_cut : callable or None
        See :class:`~host.streams.device_join.JoinOptions`.
    result_words, chunk_cycles, low_water : int
        Result words and clock cycles of one exchange; words below which more input is wanted.
    """

    device: Device
    plan: EncodingPlan
    rows: tuple[Rows, Rows]
    rechecks: tuple[Recheck, ...] = ()
    layout: TaggedLayout | None = None
    how: JoinType = JoinType.INNER
    ordering: Ordering = field(default_factory=Ordering.outer)
    distinct: tuple[bool, bool] = (False, False)
    trace: bool = False
    deadline: Deadline = field(default_factory=Deadline)
    report: Callable[[Progress], None] | None = None
    is_cut: Callable[[], bool] | None = None
    result_words: int = 1 << 16
    chunk_cycles: int = 1 << 16
    low_water: int = 1 << 12

    @property
    def strict(self) -> bool:
        """Whether pairs leave by the later tuple, then by the earlier one."""
        return self.ordering.period == 1

    @property
    def precision(self) -> Ordering:
        """What the accelerator is set to."""
        return Ordering(self.device.manifest.probes) if self.strict else self.ordering
