# SPDX-License-Identifier: Apache-2.0
"""The halo rows of a count-based window as they pass: counted, and cut down to the window."""

import numpy as np
import pyarrow as pa

from host import FailureError
from spark_offload.layout.halos import HaloCounts

__all__ = ["HaloCheck"]

_SIDES = ("left", "right")


class HaloCheck:
    """Passes on the last halo rows of each side, as many as the window holds.

    A task knows from the rows which partition they were sent to; that of the task itself can be
    another one, as in a union with other frames.

    Parameters
    ----------
    counts : HaloCounts
        How many halo rows there must be, and how many of them are needed.
    """

    def __init__(self, counts: HaloCounts) -> None:
        self._counts = counts
        self._part: int | None = None
        self._seen = [0, 0]
        self._complete = False

    def see(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return ``batch`` without the halo rows that no row of the partition meets.

        Raises
        ------
        FailureError
            If there are more or fewer halo rows than were counted when the ranges were cut.
        """
        if self._complete or not batch.num_rows:
            return batch
        if self._part is None:
            self._part = batch.column("part")[0].as_py()
        halo = batch.column("halo").to_numpy(zero_copy_only=False)
        sides = batch.column("side").to_numpy()
        kept = np.ones(batch.num_rows, np.bool_)
        for side in range(len(_SIDES)):
            rows = np.flatnonzero(halo & (sides == side))
            needless = (
                self._wanted(self._counts.sent)[side] - self._wanted(self._counts.needed)[side]
            )
            kept[rows[: max(0, needless - self._seen[side])]] = False
            self._seen[side] += len(rows)
        if not halo.all():
            self._require_all()
        return batch if kept.all() else batch.filter(pa.array(kept))

    def finish(self) -> None:
        """No rows follow; raises like :meth:`see`."""
        if self._part is not None and not self._complete:
            self._require_all()

    def _wanted(self, counts: tuple[tuple[int, int], ...]) -> tuple[int, int]:
        assert self._part is not None  # there is a row, and only ranges are sent rows
        return counts[self._part]

    def _require_all(self) -> None:
        for side, name in enumerate(_SIDES):
            found, expected = self._seen[side], self._wanted(self._counts.sent)[side]
            if found != expected:
                raise FailureError(
                    f"The {name} input changed while it was joined: range {self._part} of the "
                    f"order column has {found:,} rows in its halo, not {expected:,} as counted "
                    f"before; write the input to a table or persist() it, or take partitions=1."
                )
        self._complete = True
