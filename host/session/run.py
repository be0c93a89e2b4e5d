# SPDX-License-Identifier: Apache-2.0
"""One execution of a join, by whatever finds its pairs; and the one in software."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
import time
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from host.devices.software import SoftwareDevice
from host.engine.software import Found, SoftwareEngine, Tuples
from host.reference.arrivals import Side, UInt64s
from host.reference.types import JoinType
from host.runtime import Buffer, Columns
from host.session.intake import Arrived
from host.session.params import JoinParams, Progress
from host.session.records import Measured
from host.session.results import Completion, Delivery
from host.session.rows import Rows

if TYPE_CHECKING:
    from host.columns.conditions import BoundCondition

__all__ = ["Run", "SoftwareRun"]


def holding(recheck: "BoundCondition", pairs: Columns, rows: tuple[Rows, Rows]) -> Columns:
    """Return the pairs for which a term, or a condition, holds."""
    if not pairs.num_rows:
        return pairs
    columns = [
        [of_side.take(pairs[name], slice(place, place + 1))[0] for place in places]
        for of_side, name, places in zip(rows, ("left", "right"), recheck.places, strict=True)
    ]
    kept = recheck.holds(*columns)
    return pairs if kept.all() else pairs.take(np.flatnonzero(kept))


class Run(ABC):
    """One execution of a join, by a device or in software, up to results whose turn it is.

    Parameters
    ----------
    params : JoinParams
        What is executed.
    inputs : sequence of Buffer
        Where the rows come from.

    Attributes
    ----------
    measured : Measured
        What is measured.
    delivery : Delivery
        Results whose turn it is.
    done : bool
        Whether all results have been found.
    """

    #: Whether pairs are found in the strict order.
    in_order = False

    def __init__(self, params: JoinParams, inputs: Sequence[Buffer[pa.RecordBatch]]) -> None:
        self._params, how = params, params.query.how
        self._completion: Completion | None = None  # finds the one-sided rows, if any are asked for
        if how is not JoinType.INNER:
            self._completion = Completion(how, params.plan.window, params.first_arrival)
        tell = None if self._completion is None else self._completion.take
        self._intake = params.intake(inputs, tell)
        self.measured = Measured(staged=self._intake.counters)
        self.delivery = Delivery(params, self._completion, in_order=self.in_order)
        self.done = False
        self._pairs = 0

    @abstractmethod
    def advance(self) -> int | None:
        """Go on by a bounded amount of work; return the rows moved, None if input is missing."""

    def reached(self) -> tuple[tuple[int, int], ...]:
        """Return the oldest row of each side that a later one can meet, and the next row of it."""
        return tuple((self._oldest(side), self._intake.next_row(side)) for side in Side)

    @abstractmethod
    def abandon(self) -> None:
        """End the execution, wherever it stands."""

    @property
    @abstractmethod
    def _complete(self) -> int:
        """Number of first arrivals whose results can be handed on."""

    @abstractmethod
    def _oldest(self, side: Side) -> int:
        """Return a lower bound of the rows of a side that a later pair can refer to."""

    def _checked(self, parts: list[Columns]) -> list[Columns]:
        """Return the pairs for which the terms hold that their finder has checked roughly."""
        if self._params.query.once:
            # Both sides are one input, whose rows have the same numbers on either.
            found = (np.flatnonzero(pairs["left"] < pairs["right"]) for pairs in parts)
            parts = [pairs.take(first) for pairs, first in zip(parts, found, strict=True)]
        for recheck in self._params.rechecks:
            parts = [holding(recheck, pairs, self._params.rows) for pairs in parts]
        return parts

    def _owned(self, parts: list[Columns]) -> list[Columns]:
        """Take note of pairs that were found; return those that belong to the result."""
        if self._completion is not None:
            for pairs in parts:
                self._completion.mark(pairs)
        if not self._params.query.how.has_pairs:
            return []
        owned = (self._intake.owned(pairs) for pairs in parts)
        return [pairs for pairs in owned if pairs.num_rows]

    def _deliver(self, parts: list[Columns]) -> None:
        """Queue the results whose turn it is; release rows that no later result can refer to."""
        self._pairs += sum(pairs.num_rows for pairs in parts)
        self.delivery.push(parts, self._complete, self._intake.reached, done=self.done)
        self.delivery.allow({side: self._oldest(side) for side in Side})

    def _report(self) -> None:
        """Tell how far the execution has come, if somebody wants to know."""
        if self._params.options.report is not None:
            progress = Progress(self._complete, self._pairs, self.measured.cycles)
            self._params.options.report(progress)


# In software.

#: Arrivals of the first block, so that a reader that wants a few results need not wait for many.
FIRST_BLOCK = 1 << 13
#: Most arrivals of later blocks, and of two buffers, unless the windows hold more: a block costs as
#: much as they do.
BLOCK = 1 << 18

_SIGN = np.uint64(1 << 63)


class SoftwareRun(Run):
    """One execution with :class:`~host.engine.software.SoftwareEngine`, in blocks of arrivals.

    Pairs are in the strict order, whatever the query's ordering allows. There is no clock, so no
    cycles are measured.

    Parameters
    ----------
    params, inputs
        See :class:`~host.session.execution.Run`.
    """

    in_order = True

    def __init__(self, params: JoinParams, inputs: Sequence[Buffer[pa.RecordBatch]]) -> None:
        super().__init__(params, inputs)
        fields = params.plan.fields
        self._names = [field.name for field in fields]
        signed = {key.name: key.signed for key in params.device.manifest.keys}
        self._signed = [signed[name] for name in self._names]
        self._most_block = min(BLOCK, 2 * params.options.buffer_rows)
        self._intake.most_rows = max(1, self._most_block // 2)
        self._engine = SoftwareEngine([field.bounds for field in fields], params.plan.window)
        self._waiting: dict[Side, list[Tuples]] = {side: [] for side in Side}
        self._gathered = 0  # arrivals that wait for their block
        self._arrivals = self._answered = params.first_arrival
        self._compared = 0
        self._block = FIRST_BLOCK
        self._answers: Iterator[Found] = iter(())
        none = np.zeros(0, np.uint64)
        self._none = Tuples([none] * len(fields), none, none.view(np.int64), none.view(np.int64))

    def advance(self) -> int | None:
        began = time.monotonic()
        found = next(self._answers, None)
        took = time.monotonic() - began  # the host does nothing else meanwhile
        self.measured.seconds += took
        self.measured.waited += took
        if found is not None:
            return self._answer(found)
        while self._gathered < max(self._block, min(self._engine.held, 64 * self._block)):
            arrived = self._intake.take()
            if arrived is not None and arrived.count:
                self._gather(arrived)
            elif arrived is not None:
                self._deliver([])
                if self.delivery.ready:
                    return 1
            elif self._intake.at_end or (self._params.options.eager and self._gathered):
                break
            else:
                return None
        if not self._gathered:
            self.done = True
            self._deliver([])
            return 0
        sides = {side: Tuples.joined([*parts, self._none]) for side, parts in self._waiting.items()}
        for parts in self._waiting.values():
            parts.clear()
        self._block = min(4 * max(self._block, self._gathered), self._most_block)
        self._gathered = 0
        self._answers = self._engine.push(sides)
        self._count({"tuples_r": len(sides[Side.R]), "tuples_s": len(sides[Side.S])})
        return 1

    def _count(self, increases: dict[str, int]) -> None:
        """Let the device's counters show what was done."""
        device = self._params.device
        if isinstance(device, SoftwareDevice):
            device.count(increases)

    def _gather(self, arrived: Arrived) -> None:
        """Add arrivals to the block."""
        for side, tuples in arrived.sides.items():
            batch, part = tuples.batch, slice(tuples.begin, tuples.end)
            fields: list[UInt64s] = []
            for name, signed in zip(self._names, self._signed, strict=True):
                values = batch.keys[name].block(part)
                fields.append(values ^ _SIGN if signed else values)
            self._waiting[side].append(
                Tuples(
                    fields,
                    tuples.times,
                    tuples.places + self._arrivals,
                    batch.row_numbers(tuples.begin, tuples.end),
                    None if batch.valid is None else batch.valid[part],
                )
            )
        self._arrivals += arrived.count
        self._gathered += arrived.count
        if self._completion is not None:
            self._completion.stage(arrived)

    def _answer(self, found: Found) -> int:
        """Queue the results of a block, or of a part of one."""
        pairs = Columns({"probe": found.place, "left": found.left, "right": found.right})
        parts = self._checked([pairs])
        self._answered = found.complete
        compared, self._compared = self._engine.compared - self._compared, self._engine.compared
        self._count({"comparisons": compared, "results": parts[0].num_rows})
        parts = self._owned(parts)
        if self._completion is None:
            parts = [Columns({name: own[name] for name in ("left", "right")}) for own in parts]
        self._deliver(parts)
        self._report()
        return 1 + len(found.place)

    @property
    def _complete(self) -> int:
        return self._answered

    def _oldest(self, side: Side) -> int:
        oldest = self._engine.oldest(side)
        if oldest is not None:
            return oldest
        parts = self._waiting[side]
        return int(parts[0].rows[0]) if parts else self._intake.next_row(side)

    def abandon(self) -> None:
        self._answers = iter(())
