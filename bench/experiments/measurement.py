# SPDX-License-Identifier: Apache-2.0
"""Measure one point: hardware counters, and stamps of what went in and came out."""

from dataclasses import dataclass, field, replace

import numpy as np

from host.devices import Stamps
from host.devices.simulated import SimulatedDevice
from host.errors import DeviceTimeoutError
from host.protocol.codecs import WordCodec
from host.protocol.configuration import MARKS, configuration, round_size
from host.reference.predicate import Bounds
from host.reference.window import CountWindow, TimeWindow

from .latency import latencies

__all__ = ["METHOD", "Filled", "measure", "measure_filled"]

#: Raise this when points are measured in another way: what is stored is then measured anew.
METHOD = 5
#: Result words that one exchange has room for.
ROOM = 1 << 14
#: Cycles of one exchange under load; a measurement ends up to so many cycles late.
CHUNK = 256
#: Cycles without a word in or out after which a run has failed.
SILENCE = 1 << 20
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

    loads: tuple

    @property
    def accelerator(self):
        """Name of the accelerator of all loads."""
        return self.loads[0].accelerator


@dataclass
class Traffic:
    """When each tuple arrived and was accepted, and all results with their cycles.

    ``arrived`` has the tuples that came at a pace, by their number.
    """

    arrived: dict = field(default_factory=dict)
    accepted: list = field(default_factory=list)
    results: list = field(default_factory=list)
    produced: list = field(default_factory=list)
    silence: int = 0


class Run:
    """An open accelerator, and what has gone through it."""

    def __init__(self, bundle, point):
        self.point = point
        self.device = SimulatedDevice(bundle)
        self.manifest = self.device.manifest
        self.codec = WordCodec(self.manifest)
        self.room = np.zeros((ROOM, self.manifest.result_word.columns), np.uint64)
        self.generator, self.sent, self.traffic = np.random.default_rng(1), 0, Traffic()

    def configure(self):
        """Set bounds, windows and precision."""
        point = self.point
        bound = Bounds(-max(0, point.width), max(0, point.width))
        bounds = {key.name: bound for key in self.manifest.bounded}
        window = TimeWindow(point.window - 1) if point.timed else CountWindow(point.window)
        words = configuration(self.manifest, bounds, window, point.ordering)
        marks = 0
        while marks < MARKS or len(words):
            done = self.exchange(words, CHUNK)
            words = words[done:]
            if self.traffic.results:
                marks += int(self.codec.marks(self.traffic.results[-1]).sum())
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
            self.traffic.accepted.pop()  # they are no tuples

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
        arrived, paced = accepted.copy(), self.traffic.arrived
        arrived[list(paced)] = list(paced.values())
        found = latencies(self.codec, self.manifest, self.traffic, arrived, period, (start, end))
        return {
            "tuples_counted": tuples,
            "cycles": counts["cycles"],
            "cycles_per_tuple": pace_of(accepted[accepted >= start]),
            **{f"{name}_per_tuple": counts[name] / tuples for name in COUNTED},
            "ingress_stalled_share": counts["ingress_stalled"] / counts["cycles"],
            **found,
        }

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

    def exchange(self, words, cycles):
        """Exchange words with the device; return how many it accepted.

        Raises
        ------
        DeviceTimeoutError
            If nothing has gone in or come out for a long time.
        """
        stamps, traffic = Stamps.for_arrays(words, self.room), self.traffic
        done = self.device.exchange(words, self.room, cycles=cycles, stamps=stamps)
        traffic.accepted.append(stamps.accepted[: done.accepted].astype(np.int64))
        traffic.results.append(self.room[: done.produced].copy())
        traffic.produced.append(stamps.produced[: done.produced].astype(np.int64))
        traffic.silence = 0 if done.accepted or done.produced else traffic.silence + done.cycles
        if traffic.silence > SILENCE:
            counters = self.device.counters()
            raise DeviceTimeoutError(self.device.uri, f"{traffic.silence} cycles", counters)
        return done.accepted

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
            self.traffic.arrived[begin + n] = self.device.cycle
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


def measure(manifest, point):
    """Return what was counted at one point, as JSON-compatible values.

    The windows are full before anything is counted, and the accelerator has the same load before
    and after the counted interval. A latency is that of all pairs, or stars, of the interval.

    Parameters
    ----------
    manifest : Manifest
        Of a bundle whose library is built.
    point : Point
        What to measure.
    """
    return measure_filled(manifest, Filled((point,)))[0]


def measure_filled(manifest, filled):
    """Return what was counted under each load, as :func:`measure` does for one.

    Latencies of loads behind one with another period are unknown, as probes are then not numbered
    from the first one on.
    """
    first, found, periods = filled.loads[0], [], set()
    run = Run(manifest.path, first)
    with run.device:
        run.configure()
        run.saturate(2 * first.window)
        for point in filled.loads:
            if found:
                run.change(point)
            periods.add(point.period)
            found.append(run.counted(point, point.period if len(periods) == 1 else 0))
    return found
