# SPDX-License-Identifier: Apache-2.0
"""What a join of known size will take, before it runs."""

from dataclasses import dataclass
import math

from host.cost_model.circuit import Circuit
from host.cost_model.latency import idle_processing_latency
from host.cost_model.throughput import cycles_per_tuple
from host.cost_model.workload import Workload
from host.manifest import Manifest
from host.query.ordering import Ordering

__all__ = [
    "JoinSize",
    "describe_latency",
    "estimated_cycles",
    "expected_load",
    "mean_of_last",
]


@dataclass(frozen=True)
class JoinSize:
    """The size of one join on one device.

    Parameters
    ----------
    rows : (float, float)
        Tuples of R and of S.
    windows : (float, float)
        Tuples of R, and of S, in the window when a tuple of the other side comes, on average.
    """

    rows: tuple[float, float]
    windows: tuple[float, float]

    def shared(self, devices: int) -> "JoinSize":
        """Return the part of each of several devices, each of which has its own keys."""
        left, right = self.rows
        left_window, right_window = self.windows
        return JoinSize(
            (left / devices, right / devices), (left_window / devices, right_window / devices)
        )


def mean_of_last(size: float, rows: float) -> float:
    """Return how many of the last ``size`` of ``rows`` there are on average as they come."""
    return rows / 2 if rows < size else size - size * size / (2 * rows)


def expected_load(manifest: Manifest, size: JoinSize, ordering: Ordering | None = None) -> Workload:
    """Return the workload of a join in which few tuples match.

    Parameters
    ----------
    ordering : Ordering, optional
        Of the query. The host restores the strict order inside groups, so for an ``outer`` one,
        which is the default, the accelerator is asked for full groups.
    """
    strict = ordering is None or ordering.period == 1
    return Workload(
        windows=size.windows,
        share=size.rows[0] / (sum(size.rows) or 1),
        period=manifest.probes if ordering is None or strict else ordering.period,
        entries=0.0,
    )


def estimated_cycles(manifest: Manifest, size: JoinSize, ordering: Ordering | None = None) -> int:
    """Estimate the cycles of a join at the least: what it takes if few tuples match."""
    load = expected_load(manifest, size, ordering)
    return math.ceil(sum(size.rows) * cycles_per_tuple(Circuit.of(manifest), load))


def describe_latency(manifest: Manifest, windows: tuple[float, float]) -> str:
    """Say how long a tuple's results take on an idle accelerator, and what that consists of."""
    circuit = Circuit.of(manifest)
    load = Workload(windows=windows, share=1.0 if circuit.reduces else 0.5)
    total = idle_processing_latency(circuit, load)
    way_in = circuit.ingress + circuit.distribution
    way_out = circuit.gathering + circuit.combiner
    searched = total - way_in - way_out
    return (
        f"{total:,.0f} cycles from a tuple to its last result while nothing else is under way: "
        f"{way_in} to the cores, {searched:,.0f} in them, {way_out} to the output"
    )
