# SPDX-License-Identifier: Apache-2.0
"""Two files that every contestant joins, and the sizes that all queries share."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["Workload"]


@dataclass(frozen=True)
class Workload:
    """Two Parquet files of rows with a time, a key, and two fields for a band.

    A row of either side arrives at every time. The columns are ``t`` (int64, 0, 1, 2, …), ``k``
    (int32, one of ``keys`` values), ``x`` and ``y`` (int32, 1 to 10,000); ``k``, ``x`` and ``y``
    are uniform. The right columns are called ``rt``, ``rk``, ``rx`` and ``ry``.

    Parameters
    ----------
    folder : Path
        Where the files are.
    rows : int
        Rows of each side.
    within : int
        Largest difference in time of a pair.
    reach : int
        Largest difference in ``x`` and in ``y``.
    keys : int
        Number of different keys.
    hot : float
        Share of the rows that have key zero.
    deviation : float, optional
        Standard deviation of ``x`` and ``y``, which are then normal around the middle.
    """

    folder: Path
    rows: int = 200_000
    within: int = 20_000
    reach: int = 10
    keys: int = 1 << 16
    hot: float = 0.0
    deviation: float | None = None

    @property
    def left(self) -> Path:
        return self.folder / "left.parquet"

    @property
    def right(self) -> Path:
        return self.folder / "right.parquet"

    @property
    def span(self) -> int:
        """Width of the spans of time by which a query may cut the rows: no pair is in three."""
        return 2 * (2 * self.within + 1)

    @property
    def is_long(self) -> bool:
        """Whether all time is so long beside the window that a query cut by time is quicker."""
        return self.rows >= 10 * self.span

    def write(self) -> None:
        """Write both files."""
        self.folder.mkdir(parents=True, exist_ok=True)
        generator = np.random.default_rng(26)
        for path, prefix in ((self.left, ""), (self.right, "r")):
            columns = {
                "t": np.arange(self.rows, dtype=np.int64),
                "k": generator.integers(0, self.keys, self.rows, dtype=np.int32),
                "x": generator.integers(1, 10_001, self.rows, dtype=np.int32),
                "y": generator.integers(1, 10_001, self.rows, dtype=np.int32),
            }
            if self.hot:
                columns["k"][generator.random(self.rows) < self.hot] = 0
            for name in "xy" if self.deviation else "":
                values = generator.normal(5_000, self.deviation, self.rows)
                columns[name] = np.clip(values, 1, 10_000).astype(np.int32)
            table = pa.table({f"{prefix}{name}": column for name, column in columns.items()})
            pq.write_table(table, path)
