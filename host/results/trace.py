# SPDX-License-Identifier: Apache-2.0
"""Compute latencies from the cycles in which tuples and results were transferred."""

import numpy as np
import numpy.typing as npt

from host.reference.exact import UInt64s
from host.results.decoder import StarLatency
from host.runtime import Columns
from host.tuples.side_log import SideLog

__all__ = ["Trace"]

Int64s = npt.NDArray[np.int64]


class Trace:
    """Collects the time stamps of one execution.

    Parameters
    ----------
    foreign : int
        Number of tuples of another execution that come before the first one.
    """

    def __init__(self, foreign: int) -> None:
        self._foreign = foreign
        self._accepts = SideLog()
        self._arrivals: list[Int64s] = []
        self._cycles: list[Int64s] = []

    def accept(self, cycles: UInt64s) -> None:
        """Record the cycles in which the next tuples were accepted."""
        foreign = min(self._foreign, len(cycles))
        self._foreign -= foreign
        self._accepts.append(Columns({"cycle": cycles[foreign:].astype(np.int64)}))

    def pairs(self, pairs: Columns) -> Columns:
        """Add the column ``latency``: cycles from the later tuple's acceptance to the emission."""
        emitted = pairs["emitted"].astype(np.int64)
        latency = emitted - self._accepts.read("cycle", pairs["probe"])
        return Columns({**pairs.arrays, "emitted": emitted, "latency": latency})

    def stars(self, stars: StarLatency) -> None:
        """Record the latencies of completed probes."""
        if len(stars.arrival):
            began = self._accepts.read("cycle", stars.arrival)
            self._arrivals.append(stars.arrival)
            self._cycles.append(stars.cycles - began)

    def forget(self, arrivals: int) -> None:
        """Forget the first ``arrivals`` tuples, whose results are complete."""
        self._accepts.forget(arrivals)

    @property
    def processing(self) -> Int64s:
        """Processing latencies of all completed probes in the order of arrival, in cycles."""
        if not self._arrivals:
            return np.zeros(0, np.int64)
        order = np.argsort(np.concatenate(self._arrivals), kind="stable")
        return np.concatenate(self._cycles)[order]
