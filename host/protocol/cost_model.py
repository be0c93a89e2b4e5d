# SPDX-License-Identifier: Apache-2.0
"""The analytical model: cycles and latencies of an accelerator, from its manifest alone."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
import math
from typing import ClassVar

from host.protocol.manifest import JoinAggregateManifest, Manifest
from host.query.ordering import Ordering
from host.query.queries import Query
from host.reference.window import CountWindow

__all__ = [
    "Circuit",
    "IDLE",
    "JoinSize",
    "SATURATED",
    "Search",
    "Workload",
    "bottleneck",
    "cycles_per_tuple",
    "describe_latency",
    "drain",
    "estimated_cycles",
    "expected_load",
    "idle_processing_latency",
    "levels",
    "limits",
    "match_passes",
    "mean_of_larger",
    "mean_of_largest",
    "mean_of_last",
    "mean_overflow",
    "mean_walk",
    "rows_of_pass",
    "rows_of_probe",
]

# Means of what varies from pass to pass and from core to core.


def levels(leaves: int, arity: int) -> int:
    """Return the levels of nodes above so many leaves: the paper's logarithm, rounded up.

    A tree that is not full has as many levels as the next full one. Zero for a single leaf.
    """
    count = 0
    while leaves > 1:
        leaves, count = -(-leaves // arity), count + 1
    return count


def mean_of_larger(level: float, mean: float, deviation: float) -> float:
    """Return the mean of the larger one of ``level`` and a normal variable."""
    if deviation <= 0:
        return max(level, mean)
    z = (mean - level) / deviation
    density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    below = (1 + math.erf(z / math.sqrt(2))) / 2
    return level + deviation * (density + z * below)


def mean_overflow(count: float, room: float) -> tuple[float, float]:
    """Return mean and deviation of how much a Poisson variable is above ``room``."""
    deviation = math.sqrt(count)
    if not deviation:
        return 0.0, 0.0
    mean = mean_of_larger(0.0, count - room, deviation)
    below = (1 + math.erf((count - room) / deviation / math.sqrt(2))) / 2
    square = (count - room) * mean + count * below
    return mean, math.sqrt(max(0.0, square - mean**2))


def mean_of_largest(mean: float, count: int) -> float:
    """Return the mean of the largest of ``count`` Poisson variables."""
    if mean <= 0:
        return 0.0
    total, term, at_most = 0.0, math.exp(-mean), math.exp(-mean)
    for n in range(1, math.ceil(mean + 10 * math.sqrt(mean) + 20)):
        total += 1 - at_most**count
        term *= mean / n
        at_most = min(1.0, at_most + term)
    return total


# What the paper's terms are in one accelerator, in clock cycles.


@dataclass(frozen=True, kw_only=True)
class Circuit:
    """An accelerator as the cost model sees it; made :meth:`of` its manifest.

    ``tests/host/protocol/test_circuit.py`` holds the cycles against the components of `hdl`.

    Parameters
    ----------
    engine : str
        ``"scan"`` or ``"index"``.
    cores, fan_out, fan_in : int
        The paper's k, b and c.
    lanes, probes : int
        Keys that a region reads in a cycle, and probes of a full group.
    slack : int
        Tuples that a core can store beyond its sub-window; a group ends when ``cores * slack``
        tuples of the other side came after its first probe.
    digest_bits : int or None
        Bits that a pass compares, if these are digests.
    digest_parts : int
        Parts of the digests of a band, each made of the cells of a field; zero for an equality.
    per_word : int
        Tuples that an input word, and results that a result word, can hold.
    timed : bool
        Whether there are timestamps.
    ports : int
        Ports that results leave by: one, or one for the probes of each side.
    reduces : bool
        Whether only R probes, and a word for each probe leaves in place of its pairs.
    ingress, region, combiner : int
        Cycles outside the trees, those of a region without its rows or walks: the paper's terms
        leave them out. With two ports, ``combiner`` is the exit of a side; where matches are
        reduced, it is the only exit.
    """

    engine: str
    cores: int
    fan_out: int
    fan_in: int
    lanes: int
    probes: int
    slack: int
    digest_bits: int | None
    digest_parts: int
    per_word: int
    timed: bool
    ports: int
    reduces: bool
    ingress: int
    region: int
    combiner: int

    #: T_link, T_CL in the paper: a node has a register at its input and one at every output.
    T_LINK = 2
    #: T_probe, T_P in the paper, of a scan: a row of ``lanes`` keys in a cycle.
    T_ROW = 1
    #: … and of an index: a walk returns to its chain every five cycles.
    T_ENTRY = 5

    @classmethod
    def of(cls, manifest: Manifest) -> "Circuit":
        """Return the terms of the accelerator that a manifest describes."""
        storage = manifest.storage
        timed = bool(manifest.timestamp_bits)
        reduces = isinstance(manifest, JoinAggregateManifest)
        preparation, region = _SEARCHES[manifest.engine].stages(manifest, reduces=reduces)
        return cls(
            engine=manifest.engine,
            cores=storage.cores,
            fan_out=int(manifest.parameters["fan_out"]),
            fan_in=storage.gather_arity,
            lanes=storage.lanes,
            probes=manifest.probes,
            slack=storage.slack,
            digest_bits=manifest.digest_bits,
            digest_parts=0 if manifest.digests is None else len(manifest.digests.parts),
            per_word=manifest.tuples_per_word,
            timed=timed,
            ports=len(manifest.result_ports),
            reduces=reduces,
            ingress=6 + timed + preparation,  # two registers, four stages
            region=region + timed,
            combiner=1 if reduces or len(manifest.result_ports) == 2 else 2,
        )

    @property
    def search(self) -> "Search":
        """The search of a region: every term that depends on the engine."""
        return _SEARCHES[self.engine]

    @property
    def speed(self) -> str:
        """What a region compares in a cycle."""
        return self.search.speed(self)

    @property
    def distribution(self) -> int:
        """``T_link * log_b k`` of equation 5; a single core has one register instead of a tree."""
        return self.T_LINK * levels(self.cores, self.fan_out) or 1

    @property
    def gathering(self) -> int:
        """``T_link * log_c k`` of equation 5; nothing is gathered from a single core."""
        return self.T_LINK * levels(self.cores, self.fan_in)

    @property
    def fixed(self) -> int:
        """Cycles from a tuple that closes its group to its star, without rows and walks."""
        return self.ingress + self.distribution + self.region + self.gathering + self.combiner

    @property
    def setting_out(self) -> int:
        """Cycles from a visit of an index to the first read of its walk, and back from the last."""
        return 4 if self.per_word == 2 else 3

    @property
    def columns(self) -> int:
        """Keys that all cores together read in a cycle for each side."""
        return self.cores * self.lanes

    @property
    def groups_under_way(self) -> int:
        """Groups of an index whose results are kept apart, as :mod:`hdl.index.layouts` has it."""
        most = 32 if self.per_word == 2 else 8
        return min(most, 1 << (128 // min(64, self.probes)).bit_length() - 1)


# What an accelerator is given to do, as far as its cycles depend on it.

#: ``interval`` of tuples that find the accelerator idle, and of such that it never waits for.
IDLE, SATURATED = math.inf, 0.0


@dataclass(frozen=True, kw_only=True)
class Workload:
    """Windows, rates, matches and order of one join.

    Parameters
    ----------
    windows : (float, float)
        Tuples of R, and of S, in the window when a tuple of the other side comes, on average.
    interval : float
        Cycles from one tuple of either side to the next: :data:`IDLE`, :data:`SATURATED`, or
        something between.
    share : float
        Which part of the tuples is of R.
    burst : int
        Tuples of a side that come in a row; one if the sides come in turn.
    period : int
        Probes of a side from star to star; zero for none.
    matches : float
        Pairs that a probe finds on average.
    visits, entries : float
        Of an index: buckets that a probe visits, neighbouring ones counted as one, and entries
        that it reads in all cores together.
    """

    windows: tuple[float, float]
    interval: float = SATURATED
    share: float = 0.5
    burst: int = 1
    period: int = 1
    matches: float = 0.0
    visits: float = 1.0
    entries: float = 1.0

    def share_of(self, side: int) -> float:
        """Return which part of the tuples is of a side."""
        return (1 - self.share) if side else self.share

    def ordered(self, circuit: Circuit) -> bool:
        """Whether every group ends with a star, so that cores and sides leave in order."""
        return 1 <= self.period <= circuit.probes

    def group(self, circuit: Circuit, side: int) -> float:
        """Return how many probes a group of ``side`` has.

        It ends early when ``cores * slack`` tuples of the other side came after its first probe.
        """
        full = min(circuit.probes, self.period or circuit.probes)
        own = self.share_of(side)
        if own >= 1 or self.burst > 1:
            return full
        early = circuit.cores * circuit.slack * own / (1 - own) + 1
        return max(1.0, min(full, early))

    def mean_group(self, circuit: Circuit) -> float:
        """Return how many probes the group of a tuple has, on average."""
        return sum(self.share_of(side) * self.group(circuit, side) for side in (0, 1))

    def stars(self, circuit: Circuit, side: int) -> float:
        """Return the stars for each probe of ``side``."""
        if self.ordered(circuit):
            return 1 / self.group(circuit, side)
        return 1 / self.period if self.period else 0.0


# Latencies of an idle accelerator: equations 5 and 6, and the terms that they leave out.


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
    fixed = circuit.fixed + drain(circuit, load, group)
    return fixed + circuit.search.cycles(circuit, load, group)


def drain(circuit: Circuit, load: Workload, group: float) -> float:
    """T_drain: pairs of all cores but the first leave one by one after the first one's star.

    In an index the star of any core may be the last, so it is half of them.
    """
    if not load.ordered(circuit):
        return 0.0
    behind = circuit.search.behind * (1 - 1 / circuit.cores)
    return load.matches * group * behind / circuit.per_word


# Cycles per tuple of a busy accelerator: the slowest of its parts, by name.

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
    found |= (_reducing if circuit.reduces else circuit.search.limits)(circuit, load)
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
    if circuit.per_word == 1:
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


class Search:
    """The search of a region: what the model knows of an engine, here of one that scans."""

    #: Which part of the pairs of later cores leaves after the first star.
    behind: ClassVar[float] = 1.0

    def stages(self, manifest: Manifest, *, reduces: bool) -> tuple[int, int]:
        """Return the stages that prepare a tuple for it, and the cycles of an empty region."""
        cells, digests = manifest.digests is not None, manifest.digest_bits
        lanes = 3 if manifest.storage.lanes > 1 else 0
        return 3 * cells, 11 + lanes + (0 if digests is None else 6) + cells + 3 * reduces

    def speed(self, circuit: Circuit) -> str:
        """Return what a region compares in a cycle."""
        return f"{circuit.lanes} keys x {circuit.probes} probes"

    def cycles(self, circuit: Circuit, load: Workload, group: float) -> float:
        """Return the cycles that a group spends on rows or walks while nothing else goes on."""
        return circuit.T_ROW * sum(
            load.share_of(side) * rows_of_probe(circuit, load.windows[1 - side]) for side in (0, 1)
        )

    def limits(self, circuit: Circuit, load: Workload) -> Mapping[str, float]:
        """Return the cycles per tuple that each part of the search takes, by what it does.

        Passes, and what those of digests and those that keep an order wait for.
        """
        passes = [_pass(circuit, load, side) for side in (0, 1)]
        found = {"passes": _both(circuit, load, passes)}
        if circuit.digest_bits is not None:
            found["verified candidates"] = _verifying(circuit, load, passes)
        if load.ordered(circuit):
            found["waiting for stars"] = _waiting(circuit, load, passes)
        return found


class _Index(Search):
    behind = 0.5

    def stages(self, manifest: Manifest, *, reduces: bool) -> tuple[int, int]:
        return (5, 21) if manifest.has_grid else (3, 20)

    def speed(self, circuit: Circuit) -> str:
        return "an index, one entry"

    def cycles(self, circuit: Circuit, load: Workload, group: float) -> float:
        return mean_walk(circuit, load, circuit.cores, group)

    def limits(self, circuit: Circuit, load: Workload) -> Mapping[str, float]:
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


_SEARCHES: Mapping[str, Search] = {"scan": Search(), "index": _Index()}


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


# Latencies of an accelerator under load: an idle one's, and what a tuple waits for.


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


# Which passes a join aggregate takes for the matches of left rows, before they run.


def match_passes(query: Query, size: JoinSize) -> tuple[int, JoinSize]:
    """Return the passes over the rows for one aggregated column, and the size of each.

    A left row is sent behind all of its right rows, later ones included
    (:mod:`host.operators.matches`). Over a window of time it meets the right rows of two windows in
    one pass. A window of rows takes a pass for the earlier right rows, and one for the later ones.

    Parameters
    ----------
    query : Query
        Which rows match.
    size : JoinSize
        Of the join; ``windows`` are the rows before a row.
    """
    if isinstance(query.window, CountWindow):
        return 2, size
    left, right = size.windows
    return 1, replace(size, windows=(left, 2 * right))
