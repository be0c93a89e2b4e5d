# SPDX-License-Identifier: Apache-2.0
"""One execution of a join, by whatever finds its pairs; and the one in software."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
import time
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from host.arrays import UInt64s
from host.devices.software import SoftwareDevice
from host.engine.software import Block, Found, SoftwareEngine, Tuples
from host.reference.arrivals import Side
from host.reference.types import JoinType
from host.runtime import Ahead, Buffer, Columns
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
        self._gathered = 0  # arrivals that wait to be pushed
        self._arrivals = self._answered = params.first_arrival
        self._size = FIRST_BLOCK
        # What was pushed and is not answered, those blocks of it that are not joined yet, and the
        # pairs of the blocks that are being joined.
        self._pushed: deque[dict[Side, Tuples]] = deque()
        self._blocks: Iterator[Block] = iter(())
        self._joined: deque[Generator[Found, None, None] | Ahead[Found]] = deque()
        self._oldest_of: dict[Side, int | None] = dict.fromkeys(Side)  # in the windows
        self._threads = 1 if params.options.eager else params.options.threads
        self._pool = ThreadPoolExecutor(self._threads, "join") if self._threads > 1 else None
        none = np.zeros(0, np.uint64)
        self._none = Tuples([none] * len(fields), none, none.view(np.int64), none.view(np.int64))

    def advance(self) -> int | None:
        while len(self._joined) < self._threads and (block := next(self._blocks, None)) is not None:
            found = self._engine.found(block)
            self._joined.append(found if self._pool is None else Ahead(found, self._pool))
        if len(self._joined) < self._threads:
            if self._gather_block():
                return 1
            if self._gathered or not self._intake.at_end:
                return None
        if self._joined:
            return self._answer()
        self.done = True
        self._deliver([])
        self.abandon()
        return 0

    def _gather_block(self) -> bool:
        """Push a block of arrivals, or queue one-sided rows; return whether there was input."""
        while self._gathered < max(self._size, min(self._engine.held, 64 * self._size)):
            arrived = self._intake.take()
            if arrived is not None and arrived.count:
                self._gather(arrived)
            elif arrived is not None:
                self._deliver([])
                if self.delivery.ready:
                    return True
            elif self._intake.at_end or (self._params.options.eager and self._gathered):
                break
            else:
                return False
        if not self._gathered:
            return False
        sides = {side: Tuples.joined([*parts, self._none]) for side, parts in self._waiting.items()}
        for parts in self._waiting.values():
            parts.clear()
        self._size = min(4 * max(self._size, self._gathered), self._most_block)
        self._gathered = 0
        self._pushed.append(sides)
        self._blocks = self._engine.push(sides)
        self._count({"tuples_r": len(sides[Side.R]), "tuples_s": len(sides[Side.S])})
        return True

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

    def _answer(self) -> int:
        """Queue the next results of the first block that is being joined."""
        began = time.monotonic()
        found = next(self._joined[0], None)
        took = time.monotonic() - began  # the host does nothing else meanwhile
        self.measured.seconds += took
        self.measured.waited += took
        if found is None:
            self._joined.popleft()
            return 1
        pairs = Columns({"probe": found.place, "left": found.left, "right": found.right})
        parts = self._checked([pairs])
        self._answered, self._oldest_of = found.complete, found.oldest
        while self._pushed and _end(self._pushed[0]) <= self._answered:
            self._pushed.popleft()
        self._count({"comparisons": found.compared, "results": parts[0].num_rows})
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
        oldest = self._oldest_of[side]
        if oldest is not None:
            return oldest
        parts = [*(sides[side] for sides in self._pushed), *self._waiting[side]]
        first = next((tuples for tuples in parts if len(tuples)), None)
        return self._intake.next_row(side) if first is None else int(first.rows[0])

    def abandon(self) -> None:
        for found in self._joined:
            found.close()
        self._joined.clear()
        self._blocks = iter(())
        if self._pool is not None:
            self._pool.shutdown()


def _end(sides: dict[Side, Tuples]) -> int:
    """Return the place behind the last arrival."""
    return 1 + max(int(tuples.places[-1]) for tuples in sides.values() if len(tuples))
