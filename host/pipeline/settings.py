# SPDX-License-Identifier: Apache-2.0
"""How a pipeline is run."""

from dataclasses import dataclass, field

from host.operators import CopyCounters
from host.runtime import Governor

__all__ = ["Settings"]


@dataclass(frozen=True)
class Settings:
    """How a pipeline is run.

    Parameters
    ----------
    threads : int
        Threads for the parts of a splittable source; one: sequentially, without any thread.
    fuse : bool
        Whether neighbouring stateless operations are one pass.
    rows : int
        Most rows of a batch.
    buffer_rows : int
        Rows of a buffer between two streams.
    governor : Governor
        Shares out threads and staging buffers.
    counters : CopyCounters
        Where batches and copies are counted.
    """

    threads: int = 1
    fuse: bool = True
    rows: int = 1 << 16
    buffer_rows: int = 1 << 17
    governor: Governor = field(default_factory=Governor)
    counters: CopyCounters = field(default_factory=CopyCounters)
