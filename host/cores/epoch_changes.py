# SPDX-License-Identifier: Apache-2.0
"""The exact places at which epochs take effect among the tuples that are staged."""

from collections.abc import Callable, Generator, Iterator
from dataclasses import replace

import numpy as np

from host.cores.epoch_rules import EpochRules
from host.cores.failed_cores import NewTurns
from host.cores.free_lists import FreeLists
from host.encode import EncodingPlan
from host.hardware.storage_segments import SEGMENTS
from host.query.epochs import Epoch, EpochSchedule, ListedEpochs
from host.query.segments import Segment
from host.tuples.intake import NEVER, Arrived, SideTuples

__all__ = ["EpochChanges"]


class EpochChanges:
    """Keeps epochs until their gamma has passed, and cuts the tuples of an execution there.

    An epoch takes effect right before the first tuple that has passed its gamma. If the ingress
    has no free list of cores at that place (:class:`~host.cores.free_lists.FreeLists`), the epoch
    waits for one. Of several epochs whose gamma has passed, the last one takes effect, as in
    STRETCH, and the others never do. No pair depends on where an epoch takes effect.

    Parameters
    ----------
    schedule : EpochSchedule
        What decides the epochs.
    plan : EncodingPlan
        Window and times of the join.
    floor : callable
        See :meth:`host.tuples.intake.Intake.floor`.
    rules : EpochRules
        What numbers epochs and refuses them.
    lists : int
        See :class:`~host.cores.free_lists.FreeLists`.

    Attributes
    ----------
    begun : list of Segment
        The segments of the epochs that have taken effect.
    epochs : list of Epoch
        The epochs that have taken effect: ``after`` is the exact place, ``number`` the number.
    superseded : list of Epoch
        Epochs that never took effect, because a later one had passed its gamma as well.
    """

    def __init__(
        self,
        schedule: EpochSchedule,
        plan: EncodingPlan,
        floor: Callable[[int], int],
        rules: EpochRules,
        *,
        lists: int = SEGMENTS,
    ) -> None:
        self._schedule, self._plan, self._floor, self._rules = schedule, plan, floor, rules
        self._lists = FreeLists(plan.window, lists)
        self._coming: Epoch | None = None  # its gamma has not passed
        self._due: Epoch | None = None  # its gamma has passed; it waits for a list
        self._asked = -1  # place of the last question
        self.begun: list[Segment] = []
        self.epochs: list[Epoch] = []
        self.superseded: list[Epoch] = []

    def cut(self, arrived: Arrived) -> Iterator[Arrived | Segment]:
        """Yield the tuples, and between them the segment of each epoch that takes effect there.

        Raises
        ------
        EpochError
            If an epoch is refused; all tuples before that place have been yielded.
        """
        while arrived.count:
            self._ask()
            passed, free = self._passed(arrived), self._lists.place(arrived)
            if self._due is None or (passed is not None and (free is None or passed <= free)):
                if passed is None:
                    break
                arrived = yield from self._advance(arrived, passed)
                if self._due is not None:
                    self.superseded.append(self._due)
                self._due, self._coming = self._coming, None
            elif free is not None:
                arrived = yield from self._advance(arrived, free)
                yield self._begin(self._due)
                self._due = None
            else:
                break
        yield from self._advance(arrived, arrived.count)

    def go_on(self, turns: NewTurns) -> None:
        """Take note of the segment that follows a failure, behind all tuples so far.

        It lasts until the next epoch, whose cores that have failed are left out.
        """
        self._rules.go_on(turns, self._lists.counts)
        self._lists.go_on(turns)

    def _advance(self, arrived: Arrived, count: int) -> Generator[Arrived, None, Arrived]:
        """Yield and count the first tuples; return those behind them."""
        first, rest = arrived.split(count)
        if first.count:
            self._lists.count(first)
            yield first
        return rest

    def _begin(self, epoch: Epoch) -> Segment:
        """Return the segment of an epoch that takes effect here."""
        epoch = self._rules.begin(epoch, self._lists.counts)
        self._lists.begin()
        segment = Segment(self._lists.staged, epoch.cores)
        self.begun.append(segment)
        self.epochs.append(replace(epoch, after=self._lists.staged))
        return segment

    def _ask(self) -> None:
        """Ask for the epoch that comes next, unless it is known."""
        place = self._lists.staged
        # A list ends. Any other schedule could answer with the place at hand for ever.
        fresh = isinstance(self._schedule, ListedEpochs) or self._asked < place
        if self._coming is None and fresh:
            self._asked = place
            epoch = self._schedule.next(place)
            self._coming = None if epoch is None else self._rules.admit(epoch, place)

    def _passed(self, arrived: Arrived) -> int | None:
        """Return the first tuple that has passed the gamma of the next epoch; None if none."""
        epoch = self._coming
        if epoch is None:
            return None
        place = max(0, epoch.after - self._lists.staged)
        if epoch.beyond is not None:
            gamma = self._floor(self._plan.times.ticks(epoch.beyond))
            later = [
                int(tuples.places[first])
                for tuples in arrived.sides.values()
                if (first := self._later(tuples, gamma)) < len(tuples.places)
            ]
            place = max(place, min(later, default=arrived.count))
        return place if place < arrived.count else None

    @staticmethod
    def _later(tuples: SideTuples, gamma: int) -> int:
        """Return the first of a side's tuples whose timestamp is greater than gamma."""
        if gamma < 0:
            return 0
        return int(np.searchsorted(tuples.times, np.uint64(min(gamma, NEVER)), side="right"))
