# SPDX-License-Identifier: Apache-2.0
"""Latencies of an accelerator under load, in cycles, from the terms of its cost model.

The host estimates a join by the cycles of a tuple and the latency of a lone one
(:mod:`host.protocol.cost_model`). The waits of tuples for one another are for figures.
"""

from collections.abc import Mapping

from host.protocol.cost_model import (
    IDLE,
    Circuit,
    Workload,
    cycles_per_tuple,
    drain,
    idle_processing_latency,
    mean_walk,
    rows_of_probe,
)

__all__ = [
    "idle_visiting_latency",
    "processing_latency",
    "processing_terms",
    "visiting_latency",
]


def idle_visiting_latency(circuit: Circuit, load: Workload, group: float = 1) -> float:
    """Return the cycles from the last tuple of a ``group`` to a pair of it, all else being idle.

    Equation 6 ends with the comparison; here the way out is counted too. ``w / 2 * T_probe`` holds
    for pairs of the first core. Where order is kept, those of all others wait for its star, which
    comes after ``w * T_probe`` (T_wait).
    """
    fixed = circuit.fixed + drain(circuit, load, group) / 2
    if is_index(circuit):
        return fixed + _visiting_walk(circuit, load, group)
    first = 1 / circuit.cores if load.ordered(circuit) else 1.0
    cycles = 0.0
    for side in (0, 1):
        rows = rows_of_probe(circuit, load.windows[1 - side])
        cycles += load.share_of(side) * (first * (rows + 1) / 2 + (1 - first) * rows)
    return fixed + circuit.T_ROW * cycles


def is_index(circuit: Circuit) -> bool:
    """Return whether the paper's equation 6 and its waits have the terms of walks."""
    return circuit.engine == "index"


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


def processing_latency(circuit: Circuit, load: Workload) -> float | None:
    """Return the mean cycles from a tuple's arrival to its star; None if the model has no answer.

    It has none for an index that gets tuples faster than it takes them, and for such bursts.
    """
    terms = processing_terms(circuit, load)
    return None if terms is None else sum(terms.values())


def visiting_latency(circuit: Circuit, load: Workload) -> float | None:
    """Return the mean cycles from the arrival of a pair's later tuple to the pair, likewise."""
    terms = processing_terms(circuit, load)
    if terms is None:
        return None
    group = 1 if load.interval == IDLE else load.mean_group(circuit)
    waits = terms["group"] + terms["queue"] + _order_wait(circuit, load)
    return waits + idle_visiting_latency(circuit, load, group)


def _order_wait(circuit: Circuit, load: Workload) -> float:
    """T_order: how long pairs of the first core wait for the star of the other side's group.

    The combiner keeps the order in which groups closed. With sides in turn, a group of S closes one
    tuple after that of R, and R's next group a whole group later; so many cycles after the other
    side's star, pairs need not wait. Those of other cores wait for their own side's stars anyway.
    With two ports no side waits for the other one.
    """
    if load.interval == IDLE or not load.ordered(circuit) or circuit.ports == 2:
        return 0.0
    interval = max(load.interval, cycles_per_tuple(circuit, load))
    wait, group = 0.0, load.mean_group(circuit)
    if is_index(circuit):
        star = idle_processing_latency(circuit, load, group)
        pair = idle_visiting_latency(circuit, load, group)
        return (1 - load.share) * max(0.0, star - interval - pair)
    for side, tuples in ((0, 2 * group - 1), (1, 1)):
        rows = rows_of_probe(circuit, load.windows[1 - side])
        kept = max(0.0, rows - tuples * interval)
        wait += load.share_of(side) * kept**2 / (2 * rows) / circuit.cores
    return wait


def processing_terms(circuit: Circuit, load: Workload) -> Mapping[str, float] | None:
    """Return the parts of the processing latency by name.

    ``idle`` is that of a lone tuple. ``group`` is the time until its group is full, ``star`` from
    then on until the last group before the star is, ``queue`` what a tuple waits for behind others.
    """
    cycles = cycles_per_tuple(circuit, load)
    size = 1 if load.interval == IDLE else load.mean_group(circuit)
    idle = idle_processing_latency(circuit, load, size)
    terms = {"idle": idle, "group": 0.0, "star": 0.0, "queue": 0.0}
    if load.interval == IDLE:
        return terms
    saturated = load.interval <= cycles
    if saturated and (is_index(circuit) or load.burst > 1):
        return None
    interval = max(load.interval, cycles)
    for side in (0, 1):
        group = load.group(circuit, side)
        # Of one side's tuples, in a burst every one, otherwise one of so many.
        between = interval * (load.share_of(side) if load.burst >= group else 1.0)
        terms["group"] += (group - 1) / 2 * between
        terms["star"] += max(0.0, load.period - group) / 2 * between
    if saturated:
        # All registers are full. Words leave them as fast as groups are scanned, and groups fill at
        # once: a group waits for the scan of the one before it, and then for its own.
        after = circuit.fixed - circuit.ingress - circuit.distribution - circuit.timed - 4
        scans = 4 * size * cycles - (size + 3)
        terms["group"] = 0.0
        terms["queue"] = _words_ahead(circuit, size, cycles) * cycles + scans + after - idle
    return terms


def _words_ahead(circuit: Circuit, group: float, cycles: float) -> float:
    """Return the tuples between a word's acceptance and its region, under full load.

    Fourteen in the queue behind the preparation, and half of the three that were under way when
    it had no more room, if a group is larger than that. Two in each stream register that
    stands still, one in each that moves: those of the input, the accepted word, the
    distribution and the region, and two more with timestamps.

    Parameters
    ----------
    group : float
        Probes of a group.
    cycles : float
        For each tuple.
    """
    registers = 3 + circuit.distribution + 2 * circuit.timed
    overshoot = 1.5 if group > 2 else 0.0
    return 14 + overshoot + registers * (2 - 1 / cycles)
