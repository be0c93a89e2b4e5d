# SPDX-License-Identifier: Apache-2.0
"""Settings of the run of a pipeline."""

from dataclasses import dataclass, field

from host.operators import CopyCounters
from host.runtime import Governor

__all__ = ["Settings"]


@dataclass(frozen=True)
class Settings:
    """Settings of the run of a pipeline.

    Parameters
    ----------
    threads : int
        Number of threads for the parts of a splittable source; 1 runs sequentially, without
        threads.
    fuse : bool
        Whether neighbouring stateless operations are fused into one pass.
    rows : int
        Largest number of rows in a batch.
    buffer_rows : int
        Capacity of a buffer between two streams, in rows.
    governor : Governor
        Governor of threads and staging buffers.
    counters : CopyCounters
        Counters of batches and copies.
    """

    threads: int = 1
    fuse: bool = True
    rows: int = 1 << 16
    buffer_rows: int = 1 << 17
    governor: Governor = field(default_factory=Governor)
    counters: CopyCounters = field(default_factory=CopyCounters)
