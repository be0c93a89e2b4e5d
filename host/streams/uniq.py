# SPDX-License-Identifier: Apache-2.0
"""Remove duplicates from sorted input: the example of the ExecStream guide (seed 002)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from host.errors import DuplicateKeyError, UsageError
from host.runtime import ConduitExecStream, ConduitParams, Quantum, StreamResult
from host.streams.sort_keys import Bools, falls, key_columns, repeats

__all__ = ["Uniq", "UniqParams"]


@dataclass(frozen=True)
class UniqParams(ConduitParams):
    """Parameters of :class:`Uniq`.

    Parameters
    ----------
    by : sequence of str, optional
        Columns that are compared; by default all.
    fail_on_duplicate : bool
        Whether a duplicate is an error instead of being left out.
    """

    by: Sequence[str] | None = None
    fail_on_duplicate: bool = False


class Uniq(ConduitExecStream[UniqParams, pa.RecordBatch, pa.RecordBatch]):
    """Stream that passes on the first of equal neighbours; its input is sorted by the columns.

    ``execute`` raises :exc:`~host.errors.DuplicateKeyError` at a duplicate if ``fail_on_duplicate``
    is set. The duplicate has then been consumed, so that the next execution continues behind it.
    ``execute`` raises :exc:`~host.errors.UsageError` if the input is not sorted.
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self._last: pa.RecordBatch | None = None  # the last row, as a batch

    def prepare(self, params: UniqParams) -> None:
        super().prepare(params)
        self._by = params.by
        self._fail = params.fail_on_duplicate

    def open(self, restart: bool = False) -> None:
        super().open(restart)
        self._last = None
        self._row = 0

    def execute(self, quantum: Quantum) -> StreamResult:
        done = 0
        while done < quantum.rows:
            result = self.precheck_conduit_buffers()
            if result is not StreamResult.YIELD:
                return result
            done += self._pass_on(min(self.output.provide(), quantum.rows))
        return StreamResult.QUANTUM_EXPIRED

    def _pass_on(self, most: int) -> int:
        """Take up to ``most`` rows; return how many were taken."""
        batch = self.input.access()
        part = batch.slice(0, most)
        by = key_columns(part.schema, self._by)
        fresh = self._fresh(part, by)
        taken = part.num_rows
        if self._fail and not fresh.all():
            taken = int(np.argmin(fresh)) + 1
        self.output.produce(_kept(part.slice(0, taken), fresh[:taken]))
        self._last = part.slice(taken - 1, 1)
        self._row += taken
        self.input.consume(taken)
        if self._fail and not fresh[taken - 1]:
            row = part.slice(taken - 1, 1).select(list(by)).to_pylist()[0]
            raise DuplicateKeyError(row, self._row - 1)
        return taken

    def _fresh(self, part: pa.RecordBatch, by: Sequence[str]) -> Bools:
        """Return whether each row differs from the row before it."""
        keys = part.select(list(by))
        seen = [] if self._last is None else [self._last.select(list(by))]
        rows = pa.concat_batches([*seen, keys])
        down = falls(rows, by)
        if down.any():
            at = int(np.argmax(down))
            earlier, later = rows.slice(at, 2).to_pylist()
            raise UsageError(
                f"The input of {self.name!r} is not sorted by {', '.join(by)}: row "
                f"{self._row + at + 1 - len(seen)} (the first is 0) has {later} after {earlier}; "
                f"sort it first."
            )
        fresh = ~repeats(rows, by)
        return fresh if seen else np.concatenate([[True], fresh])

    def close_impl(self) -> None:
        self._last = None


def _kept(rows: pa.RecordBatch, mask: Bools) -> pa.RecordBatch:
    return rows if mask.all() else rows.filter(pa.array(mask))
