# SPDX-License-Identifier: Apache-2.0
"""Latencies of an idle accelerator: equations 5 and 6, and the terms that they leave out."""

import math

from host.cost_model.chance import mean_of_largest
from host.cost_model.circuit import Circuit
from host.cost_model.workload import Workload

__all__ = [
    "idle_processing_latency",
    "idle_visiting_latency",
    "mean_walk",
    "rows_of_probe",
]


def rows_of_probe(circuit: Circuit, window: float) -> float:
    """Return the rows that a lone probe reads in the core where it reads most: w over lanes.

    Keys lie row by row over all lanes of all cores, and the oldest one is anywhere in its row.
    """
    return max(1.0, (window + circuit.columns - 1) / circuit.columns)


def mean_walk(circuit: Circuit, load: Workload, cores: int, group: float) -> float:
    """Return the cycles that a group of an index spends on its further visits and on walks.

    ``w * T_probe`` of equation 5. The longest walk of all probes in all of ``cores`` counts.
    """
    entries = load.entries / circuit.cores
    walks = max(1, round(cores * group))
    begins = 1 - math.exp(-entries * walks)
    longest = mean_of_largest(entries, walks)
    return group * load.visits - 1 + circuit.setting_out * begins + circuit.T_ENTRY * longest


def idle_processing_latency(circuit: Circuit, load: Workload, group: float = 1) -> float:
    """Return the cycles from a tuple that closes its ``group`` to its star, all else being idle.

    Equation 5, ``T_link * log_b k + w * T_probe + T_link * log_c k``, and the cycles of ingress,
    region and combiner. Mean of both sides.
    """
    fixed = circuit.fixed + _drain(circuit, load, group)
    if circuit.engine == "index":
        return fixed + mean_walk(circuit, load, circuit.cores, group)
    return fixed + circuit.T_ROW * sum(
        load.share_of(side) * rows_of_probe(circuit, load.windows[1 - side]) for side in (0, 1)
    )


def idle_visiting_latency(circuit: Circuit, load: Workload, group: float = 1) -> float:
    """Return the cycles from the last tuple of a ``group`` to a pair of it, all else being idle.

    Equation 6 ends with the comparison; here the way out is counted too. ``w / 2 * T_probe`` holds
    for pairs of the first core. Where order is kept, those of all others wait for its star, which
    comes after ``w * T_probe`` (T_wait).
    """
    fixed = circuit.fixed + _drain(circuit, load, group) / 2
    if circuit.engine == "index":
        return fixed + _visiting_walk(circuit, load, group)
    first = 1 / circuit.cores if load.ordered(circuit) else 1.0
    cycles = 0.0
    for side in (0, 1):
        rows = rows_of_probe(circuit, load.windows[1 - side])
        cycles += load.share_of(side) * (first * (rows + 1) / 2 + (1 - first) * rows)
    return fixed + circuit.T_ROW * cycles


def _visiting_walk(circuit: Circuit, load: Workload, group: float) -> float:
    """Return the cycles up to a pair: those of its own walk, or of longer ones of cores before it.

    Half of the other entries in the bucket come before the pair's, which leaves two cycles earlier
    than a star would.
    """
    before = load.entries / circuit.cores / 2
    visits = (group + 1) / 2 * load.visits - 1
    own = visits + circuit.setting_out + circuit.T_ENTRY * (1 + before) - 2
    if not load.ordered(circuit):
        return own
    waits = [mean_walk(circuit, load, cores, group) for cores in range(1, circuit.cores)]
    return (own + sum(max(own, wait) for wait in waits)) / circuit.cores


def _drain(circuit: Circuit, load: Workload, group: float) -> float:
    """T_drain: pairs of all cores but the first leave one by one after the first one's star.

    In an index the star of any core may be the last, so it is half of them.
    """
    if not load.ordered(circuit):
        return 0.0
    behind = 1 - 1 / circuit.cores
    if circuit.engine == "index":
        behind /= 2
    return load.matches * group * behind / circuit.per_word
