# SPDX-License-Identifier: Apache-2.0
"""Joins under load: accelerators by name, points, and what counters and stamps say of each."""

from dataclasses import dataclass, replace

import numpy as np

from bench.handshake import HANDSHAKE, LOW_LATENCY
from bench.simulated import StampedRun, Traffic
from hdl.parameters import JoinParameters, KeyField
from host.protocol.bit_fields import unpack_field
from host.protocol.configuration import MARKS, configuration, round_size
from host.query.ordering import Ordering
from host.reference.predicate import Bounds
from host.reference.window import CountWindow, TimeWindow

__all__ = [
    "ACCELERATORS", "ARCHITECTURES", "CORES", "HEDGE", "HEDGE_BITS", "PAPER", "Filled", "Point",
]  # fmt: skip

#: Short names of the architectures, as in the figures.
ARCHITECTURES = {"sj": "splitjoin", "llhj": LOW_LATENCY, "hj": HANDSHAKE}
#: Numbers of join cores of the figures over cores.
CORES = (2, 4, 8, 16, 32)
#: Number of join cores of the paper's largest machine.
PAPER = 28
XY16 = tuple(KeyField(name=name, bits=16) for name in "xy")


def compared(architecture, cores):
    """Return what the three joins have in common: one comparator per core and side."""
    return JoinParameters.of(
        cores=cores, sub_window=2048, keys=XY16, timestamp_bits=24, fan_out=2, fan_in=2,
        architecture=architecture,
    )  # fmt: skip


def band(**changes):
    """Return an accelerator of four cores with lanes and probes of a preset, or fewer."""
    return JoinParameters.of(
        **{"cores": 4, "sub_window": 512, "keys": XY16, "fan_in": 2, **changes}
    )  # fmt: skip


def engine(**changes):
    """Return an accelerator of four cores, to compare engines, lanes, probes and digests."""
    return JoinParameters.of(
        **{
            "cores": 4, "sub_window": 1024, "fan_out": 2, "fan_in": 2,
            "keys": (KeyField(name="x", bits=32),), "comparator": "equality", **changes,
        }
    )  # fmt: skip


#: A hedge as a condition on two rows (:func:`bench.experiments.elastic.trades`), and the bits of
#: its fields, all of them without a sign.
HEDGE = (
    "l.rises != r.rises and 100 * l.size <= 105 * r.size and 100 * r.size <= 105 * l.size "
    "and l.company != r.company"
)
HEDGE_BITS = {"rises": 1, "size": 17, "company": 6}

#: All accelerators: ``sj-32`` is SplitJoin with 32 cores.
ACCELERATORS = {
    f"{short}-{cores}": compared(architecture, cores)
    for short, architecture in ARCHITECTURES.items()
    for cores in (*CORES, PAPER)
} | {
    # A join of hedges, which are no band.
    "hedge-8": compared("splitjoin", 8).with_(
        keys=tuple(
            KeyField(name=name, bits=bits, signed=False) for name, bits in HEDGE_BITS.items()
        ),
        comparator="custom",
        where=HEDGE,
    ),
    # The paper's cores with sub-windows of the least size that it draws in Figure 19.
    "sj-28-large": compared("splitjoin", PAPER).with_(sub_window=4096),
    "llhj-28-large": compared(LOW_LATENCY, PAPER).with_(sub_window=4096),
    "rounds-28-large": compared("splitjoin", PAPER).with_(sub_window=4096, rounds=True),
    "rounds-8": compared("splitjoin", 8).with_(rounds=True),
    "rounds-8x4": compared("splitjoin", 8).with_(rounds=True, lanes=4),
    "rounds-8-ports": compared("splitjoin", 8).with_(rounds=True, result_streams=2),
    "scan-1x1": engine(),
    "scan-1x4": engine(probes=4),
    "scan-1x16": engine(probes=16),
    "scan-4x1": engine(lanes=4),
    "scan-4x4": engine(lanes=4, probes=4),
    "digest-4x4": engine(lanes=4, probes=4, digest_bits=12),
    "index": engine(engine="index", probes=4, probe_bits=10),
    "band-4x4": band(lanes=4, probes=4),
    "band-digest-4x4": band(lanes=4, probes=4, digest_bits=16),
    # As `ecp5-band` and `ecp5-band-digest`, which are as large as the same device allows.
    "band-26x2": band(lanes=26, probes=2),
    "band-digest-15x14": band(lanes=15, probes=14, digest_bits=16),
}


@dataclass(frozen=True)
class Point:
    """What is measured; two equal points on the same circuit give the same numbers.

    The sides alternate, and the values of every field are uniform in 1 .. 10,000, as in the paper.

    Parameters
    ----------
    accelerator : str
        Name in :data:`ACCELERATORS`.
    window : int
        Tuples of each side in the window.
    timed : bool
        Whether the window is time-based; a tick then passes from one pair of tuples to the next.
    period : int
        Probes of a side per star; 1 is the strict outer order, 0 sends no stars. Chains of cores
        have no stars.
    interval : int
        Cycles from one tuple to the next; 0 offers tuples as fast as they are accepted.
    width : int
        Two tuples match if every field differs by at most this much; -1 asks for equality.
    tuples : int
        Tuples of both sides that are counted once the windows are full.
    values : int
        Number of different values of a field.
    skew : float
        Exponent of a Zipf distribution of the values; 0 for uniform values.
    rounds : int
        Stored tuples of a core per round of an inner order in hardware; 0 for no rounds.
    """

    accelerator: str
    window: int
    timed: bool = False
    period: int = 1
    interval: int = 0
    width: int = 158
    tuples: int = 400
    values: int = 10_000
    skew: float = 0.0
    rounds: int = 0

    store = "points.jsonl"

    @property
    def parameters(self):
        """Parameters of the accelerator."""
        return ACCELERATORS[self.accelerator]

    @property
    def ordering(self):
        """The ordering precision that the accelerator is set to."""
        if self.rounds:
            return Ordering.inner(self.rounds, in_hardware=True)
        return Ordering(self.period)

    def measure(self, manifest):
        """Return what was counted, as JSON-compatible values.

        The windows are full before anything is counted, and the accelerator has the same load
        before and after the counted interval. A latency is that of all pairs, or stars, of the
        interval.

        Parameters
        ----------
        manifest : Manifest
            Of a bundle whose library is built.
        """
        return Filled((self,)).measure(manifest)[0]


#: Cycles of one exchange under load; a measurement ends up to so many cycles late.
CHUNK = 256
#: Share of the counted tuples that comes before them, under the same load.
LEAD = 0.25
#: What loads of one fill may differ in.
LOAD = dict.fromkeys(("period", "interval", "width", "tuples", "rounds"), 0)
COUNTED = ("results", "stars", "comparisons", "region_busy", "region_stalled", "output_busy")


@dataclass(frozen=True)
class Filled:
    """Windows that are filled once, and the loads that are measured on them one after another.

    Filling a window takes its square in comparisons, and most of the time where it is large.

    Parameters
    ----------
    loads : tuple of Point
        Points that differ in band, period, rounds, interval and number of tuples only. The windows
        are filled under the band of the first one.
    """

    loads: tuple[Point, ...]

    store = "filled.jsonl"

    @property
    def accelerator(self):
        """Name of the accelerator of all loads."""
        return self.loads[0].accelerator

    @property
    def parameters(self):
        """Parameters of the accelerator."""
        return self.loads[0].parameters

    def measure(self, manifest):
        """Return what was counted under each load, as :meth:`Point.measure` does for one.

        Latencies of loads behind one with another period are unknown, as probes are then not
        numbered from the first one on.
        """
        first, found, periods = self.loads[0], [], set()
        run = Run(manifest.path, first)
        with run.device:
            run.configure()
            run.saturate(2 * first.window)
            for point in self.loads:
                if found:
                    run.change(point)
                periods.add(point.period)
                found.append(run.counted(point, point.period if len(periods) == 1 else 0))
        return found


class Run(StampedRun):
    """An open accelerator that is measured under one load after the other."""

    def __init__(self, bundle, point):
        super().__init__(bundle)
        self.point = point
        self.arrived = {}  # cycles of the tuples that came at a pace, by their number

    def configure(self):
        """Set bounds, windows and precision."""
        point = self.point
        bound = Bounds(-max(0, point.width), max(0, point.width))
        bounds = {key.name: bound for key in self.manifest.bounded}
        window = TimeWindow(point.window - 1) if point.timed else CountWindow(point.window)
        words = configuration(self.manifest, bounds, window, point.ordering)
        self.send(words, marks=MARKS, cycles=CHUNK)
        self.traffic = Traffic()

    def change(self, point):
        """Set bounds and precision of another load, with the windows as they are."""
        if replace(point, **LOAD) != replace(self.point, **LOAD):
            raise ValueError(f"Loads of one fill differ in {', '.join(LOAD)} only, not as {point}")
        self.point, codec = point, self.codec
        words = [
            codec.pack_control(f"BOUND_{end}", index, sign * point.width)
            for index in range(len(self.manifest.keys))
            for end, sign in (("LOW", -1), ("HIGH", 1))
        ]
        ordering = point.ordering
        if ordering.in_hardware:
            size = round_size(self.manifest, ordering.rounds)
            words.append(codec.pack_control("INNER", 0, size))
        else:
            longest = 1 << self.manifest.probe_bits
            words.append(codec.pack_control("PRECISION", 0, min(point.period, longest)))
        words = np.concatenate(words)
        while len(words):
            words = words[self.exchange(words, CHUNK) :]

    def counted(self, point, period):
        """Return what is counted under the load of the point; without latencies if period is 0."""
        if point.interval:
            self.settle()
        self.load(max(16, int(point.tuples * LEAD)))
        start, before = self.device.cycle, self.device.counters()
        self.load(point.tuples)
        end, after = self.device.cycle, self.device.counters()
        counts = {name: after[name] - before[name] for name in after}
        tuples = counts["tuples_r"] + counts["tuples_s"]
        accepted = np.concatenate(self.traffic.accepted)
        arrived = accepted.copy()
        arrived[list(self.arrived)] = list(self.arrived.values())
        return {
            "tuples_counted": tuples,
            "cycles": counts["cycles"],
            "cycles_per_tuple": pace_of(accepted[accepted >= start]),
            **{f"{name}_per_tuple": counts[name] / tuples for name in COUNTED},
            "ingress_stalled_share": counts["ingress_stalled"] / counts["cycles"],
            **self.latencies(arrived, period, start, end),
        }

    def latencies(self, arrived, period, start, end):
        """Return mean, median and greatest latencies in cycles, and how many pairs they are of.

        The visiting latency is from the arrival of the later tuple of a pair to the pair. The
        processing latency is from the arrival of a tuple to its star; a chain of cores has no
        stars, so its processing latency is unknown.

        Parameters
        ----------
        arrived : array of int64
            Cycle of each tuple since CLEAR; sides alternate, and R is first.
        period : int
            Probes of a side per star; without stars, at 0, no result tells which tuple it is of.
        start, end : int
            First and last cycle of the results that count.
        """
        sides = arrived[::2], arrived[1::2]
        if self.manifest.chain is not None:
            results, stamp = map(np.concatenate, (self.traffic.results, self.traffic.produced))
            is_pair = unpack_field(results, self.codec.result["kind"]) == self.codec.pair
            at = np.flatnonzero(is_pair & (stamp >= start) & (stamp <= end))
            r, s = (unpack_field(results[at], self.manifest.result_word[name]) for name in "rs")
            return summary("visiting", stamp[at] - np.maximum(sides[0][r], sides[1][s]))
        if not period:
            return summary("visiting", np.zeros(0)) | summary("processing", np.zeros(0))
        found = {}
        kinds = zip(*self.waits(sides, period), strict=True)
        for name, both in zip(("visiting", "processing"), kinds, strict=True):
            counted = [wait[(stamp >= start) & (stamp <= end)] for _, stamp, wait in both]
            found |= summary(name, np.concatenate(counted))
        return found

    def words(self, count):
        """Return the words of the next tuples, whose sides alternate."""
        numbers = np.arange(self.sent, self.sent + count)
        self.sent += count
        keys = {key.name: self.draw(count) for key in self.manifest.keys}
        times = numbers // 2 if self.manifest.timestamp_bits else None
        return self.codec.pack_tuples(numbers % 2, keys, times)

    def draw(self, count):
        """Return values of a field."""
        point = self.point
        if not point.skew:
            return self.generator.integers(1, point.values + 1, count)
        shares = np.cumsum(np.arange(1, point.values + 1) ** -point.skew)
        return np.searchsorted(shares, self.generator.random(count) * shares[-1]) + 1

    def saturate(self, count, surplus=0):
        """Offer tuples until ``count`` are accepted; ``surplus`` more may be before that ends."""
        words, left = self.words(count + surplus), surplus
        while len(words) > left:
            words = words[self.exchange(words, CHUNK) :]
        self.sent -= len(words)

    def pace(self, count):
        """Offer a tuple every ``interval`` cycles; what is not accepted at once waits in line."""
        words, first = self.words(count), 0
        begin = self.sent - count - 1
        for n in range(1, count + 1):
            self.arrived[begin + n] = self.device.cycle
            first += self.exchange(words[first:n], self.point.interval)
        while first < count:
            first += self.exchange(words[first:], CHUNK)

    def settle(self):
        """Let the accelerator work off the tuples that filled its windows."""
        busy = None
        while busy != (busy := self.device.counters()["region_busy"]):
            self.exchange(self.words(0), 64 + self.point.window)

    def load(self, count):
        """Send ``count`` tuples under the load of the point."""
        if self.point.interval:
            self.pace(count)
        else:
            self.saturate(count, CHUNK)


def pace_of(accepted):
    """Return the mean cycles from one acceptance to the next, over whole bursts.

    An accelerator accepts tuples in bursts. The count is from the first tuple of a burst to the
    first one of another, so that no part of a burst is counted.
    """
    waits = np.diff(accepted)
    first, *_, last = 1 + np.flatnonzero(2 * waits > waits.max())
    return float(accepted[last] - accepted[first]) / int(last - first)


def summary(name, cycles):
    """Return mean, median, greatest and number of some latencies."""
    if not len(cycles):
        return {name: None, f"{name}_count": 0}
    return {
        name: float(cycles.mean()),
        f"{name}_median": float(np.median(cycles)),
        f"{name}_greatest": int(cycles.max()),
        f"{name}_count": len(cycles),
    }
