# SPDX-License-Identifier: Apache-2.0
"""Latencies: the equations of the paper, and those of an accelerator under load.

The six equations of section 6 stand here letter by letter, in any unit of time. In all of them
``k`` is the number of join cores, ``w`` the tuples of one side in a core's sub-window, ``t_link``
the time from one node to the next (T_CL), ``t_probe`` the time to compare a pair (T_P),
``t_monitor`` the time to watch for races in a handshake join (T_ML) and ``t_collect`` the time to
collect results (T_Col). :mod:`host.protocol.cost_model` fills in an accelerator's terms.

The host estimates a join by the cycles of a tuple and the latency of a lone one. The waits of
tuples for one another, in cycles, are for figures.
"""

from collections.abc import Iterable, Mapping, Sequence

from host.protocol.cost_model import (
    IDLE,
    Circuit,
    Workload,
    cycles_per_tuple,
    drain,
    idle_processing_latency,
    levels,
    mean_walk,
    rows_of_probe,
)

__all__ = [
    "equation_1", "equation_2", "equation_3", "equation_4", "equation_5", "equation_6",
    "idle_visiting_latency", "processing_latency", "processing_terms", "visiting_latency",
]  # fmt: skip


def equation_1(
    k: int, w: float, *, t_link: float, t_monitor: float, t_probe: float, t_collect: float
) -> float:
    """Equation 1: processing latency of the low-latency handshake join, a chain of cores."""
    return t_link + (k - 1) * (t_link + t_monitor) + w * t_probe + t_collect


def equation_2(k: int, w: float, *, t_link: float, t_monitor: float, t_probe: float) -> float:
    """Equation 2: mean visiting latency of the low-latency handshake join."""
    return t_link + (k - 1) / 2 * (t_link + t_monitor) + w / 2 * t_probe


def equation_3(
    links: Iterable[Sequence[float]], w: float, t_probes: Iterable[float], t_collect: float
) -> float:
    """Equation 3: processing latency of SplitJoin, whose slowest core counts.

    Parameters
    ----------
    links : iterable of sequence of float
        For each core, the time that a tuple takes on each link of its path.
    w : float
        Tuples that a probe meets in a core.
    t_probes : iterable of float
        For each core, the time to compare a pair.
    t_collect : float
        Time to collect the results of all cores.
    """
    cores = zip(links, t_probes, strict=True)
    return max(sum(path) + w * t_probe for path, t_probe in cores) + t_collect


def equation_4(
    k: int, b: int, w: float, *, t_links: Sequence[float], t_probes: Sequence[float],
    t_collect: float,
) -> float:  # fmt: skip
    """Equation 4: the same where the links of a path take equally long, one time for each core."""
    depth = levels(k, b)
    return equation_3(([t_link] * depth for t_link in t_links), w, t_probes, t_collect)


def equation_5(k: int, b: int, c: int, w: float, *, t_link: float, t_probe: float) -> float:
    """Equation 5: the same with equal cores and links, and a gathering tree of arity ``c``."""
    return t_link * levels(k, b) + w * t_probe + t_link * levels(k, c)


def equation_6(k: int, b: int, w: float, *, t_link: float, t_probe: float) -> float:
    """Equation 6: mean visiting latency of SplitJoin, up to the comparison of the pair."""
    return t_link * levels(k, b) + w / 2 * t_probe


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
