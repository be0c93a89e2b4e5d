# SPDX-License-Identifier: Apache-2.0
"""How the rows of both inputs lie in time, told by few of their times: what ranges are cut by.

Of each batch as many times are kept as tell its quantiles closely. They stand for equal shares of
the batch, so that those of all batches, each with its weight, tell the quantiles of all rows.
"""

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["SUMMARY", "OrderSummary", "splitjoin_order_summary"]

Int64s = npt.NDArray[np.int64]

SUMMARY = "left_rows bigint, right_rows bigint, least bigint, times binary"
"""Columns of a summary, for Spark; a row tells of a batch."""

_TIMES = 512
"""Times that are kept of a batch, at most."""


class OrderSummary:
    """The times of all rows, by the summaries of their batches.

    Parameters
    ----------
    batches : iterable of RecordBatch
        Rows of :func:`splitjoin_order_summary`.

    Attributes
    ----------
    rows : (int, int)
        Of the left and of the right input.
    least, greatest : int
        Of all times; zero without rows.
    """

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        times: list[Int64s] = [np.zeros(0, np.int64)]
        weights: list[npt.NDArray[np.float64]] = [np.zeros(0)]
        rows = [0, 0]
        least: list[int] = []
        for row in (row for batch in batches for row in batch.to_pylist()):
            kept = np.frombuffer(row["times"], np.int64)
            counts = row["left_rows"], row["right_rows"]
            rows = [total + count for total, count in zip(rows, counts, strict=True)]
            least.append(row["least"])
            times.append(kept)
            weights.append(np.full(len(kept), sum(counts) / len(kept)))
        at = np.concatenate(times)
        order = np.argsort(at, kind="stable")
        self._times = at[order]
        self._reached = np.cumsum(np.concatenate(weights)[order])
        self.rows = rows[0], rows[1]
        self.least = min(least, default=0)
        self.greatest = int(self._times[-1]) if len(self._times) else 0

    def quantiles(self, shares: int) -> tuple[int, ...]:
        """Return the times up to and with which 1, 2, … of so many equal shares of the rows lie."""
        if not len(self._times):
            return (0,) * (shares - 1)
        # A weight that is no whole number must not push the sum beyond a share that it reaches.
        wanted = sum(self.rows) * (np.arange(1, shares) / shares) * (1 - 1e-12)
        found = np.searchsorted(self._reached, wanted)
        return tuple(self._times[np.minimum(found, len(self._times) - 1)].tolist())


def splitjoin_order_summary(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Summarize the columns ``side`` and ``time``; for ``mapInArrow``, which shows the name."""
    for batch in batches:
        known = batch.filter(batch.column("time").is_valid())
        count = known.num_rows
        if not count:
            continue
        times = np.sort(known.column("time").to_numpy())
        left = pc.equal(known.column("side"), 0).true_count
        kept = min(count, _TIMES)
        ends = -(-count * np.arange(1, kept + 1) // kept) - 1
        yield pa.record_batch(
            {
                "left_rows": pa.array([left], pa.int64()),
                "right_rows": pa.array([count - left], pa.int64()),
                "least": pa.array([int(times[0])], pa.int64()),
                "times": pa.array([times[ends].tobytes()], pa.binary()),
            }
        )
