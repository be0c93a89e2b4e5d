# SPDX-License-Identifier: Apache-2.0
"""Cycles per tuple of a busy accelerator: the slowest of its parts, by name."""

from collections.abc import Mapping
import math

from host.cost_model.chance import mean_of_larger, mean_overflow
from host.cost_model.circuit import Circuit
from host.cost_model.latency import mean_walk
from host.cost_model.workload import Workload

__all__ = ["bottleneck", "cycles_per_tuple", "limits", "rows_of_pass"]

#: Cycles that a group without walks is under way in an index, after it was taken.
TAKEN = 17.5
#: Keys near a range for each key in it, in each field of a band with digests: a range has more than
#: half as many values as a cell, or as many, and meets two cells. This is the mean over ranges.
NEAR = 2.9
#: Pairs of a region that wait for the stars of the cores before it, before its scan stops.
ROOM = 17.25


def limits(circuit: Circuit, load: Workload) -> Mapping[str, float]:
    """Return the cycles per tuple that each part of an accelerator takes, by what it does."""
    found = {"input words": _words(circuit, load)}
    if circuit.reduces:
        found |= _reducing(circuit, load)
    elif circuit.engine == "scan":
        passes = [_pass(circuit, load, side) for side in (0, 1)]
        found["passes"] = _both(circuit, load, passes)
        if circuit.digest_bits is not None:
            found["verified candidates"] = _verifying(circuit, load, passes)
        if load.ordered(circuit):
            found["waiting for stars"] = _waiting(circuit, load, passes)
    else:
        found |= _index(circuit, load)
    found["results"] = _results(circuit, load)
    return found


def cycles_per_tuple(circuit: Circuit, load: Workload) -> float:
    """Return the cycles for each tuple of either side when there is always one to take."""
    return max(limits(circuit, load).values())


def bottleneck(circuit: Circuit, load: Workload) -> str:
    """Return the name of what limits the throughput."""
    found = limits(circuit, load)
    return max(found, key=lambda name: found[name])


def rows_of_pass(circuit: Circuit, load: Workload, side: int) -> float:
    """Return the rows that a pass of probes of ``side`` reads in a core: the paper's w over lanes.

    From the oldest key that its first probe sees to the newest one that its last probe sees. The
    oldest one is in any lane of its row.
    """
    own = load.share_of(side)
    between = (1 - own) / own if own and load.burst == 1 else 0.0
    keys = load.windows[1 - side] + (load.group(circuit, side) - 1) * between
    return max(1.0, (keys / circuit.cores + circuit.lanes - 1) / circuit.lanes)


def _words(circuit: Circuit, load: Workload) -> float:
    """A cycle for each word; two tuples share one where those of different sides follow."""
    if circuit.per_word == 1 or circuit.engine == "scan":
        return 1.0
    return max(load.share, 1 - load.share) if load.burst == 1 else 1 - 0.5 / load.burst


def _pass(circuit: Circuit, load: Workload, side: int) -> float:
    """Cycles of a pass: its rows, or the words that bring the next group and one cycle or two."""
    own, group = load.share_of(side), load.group(circuit, side)
    if not own:
        return 0.0
    alone = own >= 1 or load.burst > 1
    words = group if alone else group / own
    return max(rows_of_pass(circuit, load, side), words + (2 if alone else 1))


def _both(circuit: Circuit, load: Workload, passes: list[float]) -> float:
    """Passes of both sides at once; in bursts, those of one side wait for those of the other.

    At the end of a burst a pass is under way, a group is collected and two words wait before the
    region, while the other region of the core gets its first group.
    """
    groups = [load.group(circuit, side) for side in (0, 1)]
    if load.burst == 1:
        return max(load.share_of(side) / groups[side] * passes[side] for side in (0, 1))
    spent = [math.ceil(load.burst / groups[side]) * passes[side] for side in (0, 1)]
    overlap = [(2 + 2 // groups[side]) * passes[side] - 2 * groups[side] for side in (0, 1)]
    return max(*spent, sum(spent) - sum(overlap)) / (2 * load.burst)


def _reducing(circuit: Circuit, load: Workload) -> Mapping[str, float]:
    """Passes of R alone, and a cycle for each key with a match, whichever probes it matches."""
    group, window = load.group(circuit, 0), load.windows[1]
    odds = load.matches / window if window else 0.0
    matched = 1 - (1 - min(1.0, odds)) ** group  # of all keys
    return {
        "passes": load.share / group * _pass(circuit, load, 0),
        "keys with a match": load.share / group * matched * window / circuit.cores,
    }


def _verifying(circuit: Circuit, load: Workload, passes: list[float]) -> float:
    """A cycle for each probe of the group and each candidate; those by chance are among them.

    Candidates of a band are also keys beside a range, in the two cells that it meets.
    """
    assert circuit.digest_bits is not None
    parts, found = circuit.digest_parts, 0.0
    for side in (0, 1):
        group = load.group(circuit, side)
        chance = load.windows[1 - side] / 2 ** (circuit.digest_bits - parts)
        candidates = (NEAR**parts * load.matches + chance) * group / circuit.cores
        cycles = mean_of_larger(passes[side], candidates * group, math.sqrt(candidates) * group)
        found = max(found, load.share_of(side) / group * cycles)
    return found


def _waiting(circuit: Circuit, load: Workload, passes: list[float]) -> float:
    """T_wait: pairs of a core wait for the stars of those before it, in both trees in turn.

    A region goes on with its scan until its queues are full. What is left of its pass is done when
    its turn comes, one region after the other.
    """
    turns = spread = 0.0
    for side in (0, 1):
        group = load.group(circuit, side)
        pairs = load.matches * group / circuit.cores
        mean, deviation = mean_overflow(pairs, ROOM)
        each = group if circuit.digest_bits is not None else passes[side] / max(pairs, 1e-9)
        each *= load.share_of(side) / group  # for each tuple
        turns += circuit.cores * mean * each
        spread += circuit.cores * (deviation * each) ** 2
    return mean_of_larger(_both(circuit, load, passes), turns, math.sqrt(spread))


def _index(circuit: Circuit, load: Workload) -> Mapping[str, float]:
    """Visits and entries, a cycle each in every region; groups that are under way at once."""
    shares = [load.share_of(side) for side in (0, 1)] if load.burst == 1 else [1.0, 1.0]
    of_groups = [share / load.group(circuit, side) for side, share in enumerate(shares)]
    found = {
        "visits": max(shares) * load.visits,
        "entries": max(shares) * load.entries / circuit.cores,
        "groups under way": max(
            _under_way(circuit, load, side, share) for side, share in enumerate(shares)
        ),
    }
    if load.ordered(circuit):  # a cycle between two groups that leave a region
        found["groups leaving a region"] = max(
            share * load.matches / circuit.cores + 2 * groups
            for share, groups in zip(shares, of_groups, strict=True)
        )
    return found


def _under_way(circuit: Circuit, load: Workload, side: int, share: float) -> float:
    """T_group over the groups that may be under way: from one that is taken to its free number.

    A walk waits for a gap among the others, as many of the five as are read on average; as that
    depends on the outcome, the outcome is the root of a quadratic equation.
    """
    group = load.group(circuit, side)
    each = share / group / circuit.groups_under_way
    alone = each * (TAKEN + mean_walk(circuit, load, 1, group))
    others = each * circuit.T_ENTRY * share * load.entries / circuit.cores
    return (alone + math.sqrt(alone**2 + 4 * others)) / 2


def _results(circuit: Circuit, load: Workload) -> float:
    """A cycle for each pair and star, or for two of them; of each side by itself, with two ports.

    Two results that share a word at the port of a side come from its tree one by one. Where matches
    are reduced, a word leaves for each tuple of R, whatever it matches.
    """
    if circuit.reduces:
        return load.share * (1 + load.stars(circuit, 0))
    if circuit.ports == 2:
        return max(
            load.share_of(side) * (load.matches + load.stars(circuit, side)) for side in (0, 1)
        )
    words = load.matches + sum(load.share_of(side) * load.stars(circuit, side) for side in (0, 1))
    return words / circuit.per_word
