# SPDX-License-Identifier: Apache-2.0
"""The software engine as what executes a join: arrivals in, pairs of row numbers out."""

from collections.abc import Iterator
import time

import numpy as np

from host.devices.software import SoftwareDevice
from host.engine.software import Found, SoftwareEngine, Tuples
from host.reference.arrivals import Side, UInt64s
from host.runtime import Columns
from host.session.execution import holding
from host.session.intake import Arrived, Intake
from host.session.params import JoinParams, Progress
from host.session.records import Measured
from host.session.results import Completion, Delivery

__all__ = [
    "SoftwareRun",
]

#: Arrivals of the first block, so that a reader that wants a few results need not wait for many.
FIRST_BLOCK = 1 << 13
#: Arrivals of later blocks, unless the windows hold more: a block costs as much as they do.
BLOCK = 1 << 17

_SIGN = np.uint64(1 << 63)


class SoftwareRun:
    """One execution with :class:`~host.engine.software.SoftwareEngine`, in blocks of arrivals.

    Pairs are in the strict order, whatever the query's ordering allows. There is no clock, so no
    cycles are measured.

    Parameters
    ----------
    params : JoinParams
        What is executed.
    intake : Intake
        Where the tuples come from.
    completion : Completion or None
        What finds the one-sided rows; None if only pairs are asked for.
    measured : Measured
        What is filled in.

    Attributes
    ----------
    delivery : Delivery
        Results whose turn it is.
    done : bool
        Whether all results have been found.
    """

    def __init__(
        self,
        params: JoinParams,
        intake: Intake,
        completion: Completion | None,
        measured: Measured,
    ) -> None:
        self._params, self._intake, self._completion = params, intake, completion
        self._measured = measured
        fields = params.plan.fields
        self._names = [field.name for field in fields]
        signed = {key.name: key.signed for key in params.device.manifest.keys}
        self._signed = [signed[name] for name in self._names]
        self._engine = SoftwareEngine([field.bounds for field in fields], params.plan.window)
        self.delivery = Delivery(params, completion, in_order=True)
        self.done = False
        self._waiting: dict[Side, list[Tuples]] = {side: [] for side in Side}
        self._gathered = 0  # arrivals that wait for their block
        self._arrivals = self._complete = params.first_arrival
        self._pairs = 0
        self._compared = 0
        self._block = FIRST_BLOCK
        self._answers: Iterator[Found] = iter(())
        none = np.zeros(0, np.uint64)
        self._none = Tuples([none] * len(fields), none, none.view(np.int64), none.view(np.int64))

    def advance(self) -> int | None:
        """Go on by a bounded amount of work; return the rows moved, None if input is missing."""
        began = time.monotonic()
        found = next(self._answers, None)
        took = time.monotonic() - began  # the host does nothing else meanwhile
        self._measured.seconds += took
        self._measured.waited += took
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
            elif self._intake.at_end:
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
        self._gathered, self._block = 0, min(2 * self._block, BLOCK)
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
        params = self._params
        pairs = Columns({"probe": found.place, "left": found.left, "right": found.right})
        for recheck in params.rechecks:
            pairs = holding(recheck, pairs, params.rows)
        self._complete = found.complete
        compared, self._compared = self._engine.compared - self._compared, self._engine.compared
        self._count({"comparisons": compared, "results": pairs.num_rows})
        if self._completion is not None:
            self._completion.mark(pairs)
        parts = []
        if params.query.how.has_pairs and pairs.num_rows:
            pairs = self._intake.owned(pairs)
            self._pairs += pairs.num_rows
            if self._completion is None:
                pairs = Columns({name: pairs[name] for name in ("left", "right")})
            parts = [pairs] if pairs.num_rows else []
        self._deliver(parts)
        if params.options.report is not None:
            params.options.report(Progress(self._complete, self._pairs, 0))
        return 1 + len(found.place)

    def _deliver(self, parts: list[Columns]) -> None:
        """Queue the results whose turn it is; release rows that no later result can refer to."""
        self.delivery.push(parts, self._complete, self._intake.reached, done=self.done)
        self.delivery.allow({side: self._oldest(side) for side in Side})

    def _oldest(self, side: Side) -> int:
        """Return a lower bound of the rows of a side that a later pair can refer to."""
        oldest = self._engine.oldest(side)
        if oldest is not None:
            return oldest
        parts = self._waiting[side]
        return int(parts[0].rows[0]) if parts else self._intake.next_row(side)

    def abandon(self) -> None:
        """End the execution, wherever it stands."""
        self._answers = iter(())
