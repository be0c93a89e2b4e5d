# SPDX-License-Identifier: Apache-2.0
"""Latencies of an accelerator under load: an idle one's, and what a tuple waits for."""

from collections.abc import Mapping

from host.cost_model.circuit import Circuit
from host.cost_model.latency import (
    idle_processing_latency,
    idle_visiting_latency,
    rows_of_probe,
)
from host.cost_model.throughput import cycles_per_tuple
from host.cost_model.workload import IDLE, Workload

__all__ = ["processing_latency", "processing_terms", "visiting_latency"]


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
    if circuit.engine == "index":
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
    if saturated and (circuit.engine == "index" or load.burst > 1):
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
        terms["queue"] = circuit.words_ahead(size, cycles) * cycles + scans + after - idle
    return terms
