# SPDX-License-Identifier: Apache-2.0
"""The measured figures of the kit: one function each, in a registry; ``python -m sim figures``."""

from contextlib import closing
from dataclasses import dataclass
import json
import os
from pathlib import Path
import statistics
import tempfile
import time

import numpy as np

from hdl.bundle import write_bundle
from hdl.parameters import PRESETS
from host.device.simulated import SimulatedDevice
from host.words import WordCodec

from .library import build_library

__all__ = ["FIGURES", "Figure", "NotMeasured", "figure", "measure"]


class NotMeasured(Exception):
    """A figure lacks what it is computed from; the message says how to get that."""


@dataclass(frozen=True)
class Figure:
    """A figure: how to measure it, and what it should be.

    Parameters
    ----------
    function : callable
        Returns the value; gets a function that reports progress.
    unit : str
        Of the value.
    goal : str
        ``">= 1.5e7"``, ``"< 120"``.
    """

    function: object
    unit: str
    goal: str

    def met(self, value):
        """Does ``value`` reach the goal?"""
        sign, limit = self.goal.split()
        return {">=": value >= float(limit), "<": value < float(limit)}[sign]


#: All figures, by name.
FIGURES = {}


def figure(name, *, unit, goal):
    """Register the decorated function as the figure ``name``."""

    def register(function):
        FIGURES[name] = Figure(function, unit, goal)
        return function

    return register


def measure(names, path, *, report):
    """Measure figures, print a row for each, and write all rows to ``path``.

    Parameters
    ----------
    names : list of str
        Of the figures.
    path : Path
        JSON file: a list of objects with the keys name, value, unit, goal, met. The value of a
        figure that could not be measured is null.
    report : callable
        Receives lines about the progress.

    Returns
    -------
    list of dict
        The rows.
    """
    rows = []
    print(f"{'name':32} {'value':>12}  {'unit':16} {'goal':14} met")
    for name in names:
        entry = FIGURES[name]
        try:
            value = round(entry.function(report), 6)
            text, met = f"{value:12.4g}", entry.met(value)
            outcome = "yes" if met else "NO"
        except NotMeasured as error:
            value, text, met, outcome = None, f"{'-':>12}", False, f"NO: {error}"
        rows.append(
            {"name": name, "value": value, "unit": entry.unit, "goal": entry.goal, "met": met}
        )
        print(f"{name:32} {text}  {entry.unit:16} {entry.goal:14} {outcome}", flush=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    temporary.replace(path)
    return rows


#: The accelerators that the scan is measured on: sixteen cores of 512 keys.
SCAN = PRESETS["paper"].with_(sub_window=512, fan_in=4)
#: Bounds of a band in two fields, both uniform in 1 .. 10,000, by how many keys match one probe:
#: the paper's one in 250,000, and one in 1,000.
RARE, FREQUENT = 10, 158


class ScanRun:
    """An accelerator with full windows, fed as fast as it takes words.

    Stars come with every full group of probes. One key in 250,000 matches a probe, unless
    :meth:`bound` says otherwise.

    Parameters
    ----------
    parameters : JoinParameters
        With the key fields of the preset `paper`, or an equality of one field.
    report : callable
        Receives lines about the progress.
    window : int or None
        Tuples per side; all that the accelerator holds if None.
    """

    def __init__(self, parameters, report, *, window=None):
        self.parameters = parameters
        shape = f"{parameters.comparator}-{parameters.lanes}x{parameters.probes}"
        bundle = Path("build") / "figures" / shape
        write_bundle(parameters, bundle)
        build_library(bundle, report=report)
        self.device = SimulatedDevice(bundle)
        manifest = self.device.manifest
        self.codec = WordCodec(manifest)
        self.generator = np.random.default_rng(1)
        self.results = np.zeros((1 << 14, manifest.result_word.columns), np.uint64)
        self.send(self.codec.pack_control("PRECISION", 0, manifest.probes), marks=2)
        window = window or manifest.capacity
        for side in range(2):
            self.send(self.codec.pack_control("WINDOW", side, window))
        report(f"figures: filling windows of {window:,} tuples")
        self.keys = 250_001
        if parameters.comparator == "band":
            self.keys = 10_001
            self.bound(RARE)
        self.send(self.tuples(2 * window))

    def close(self):
        """Let go of the device."""
        self.device.close()

    def bound(self, width):
        """Let tuples match that differ by at most ``width`` in both fields, from now on."""
        for index, _ in enumerate(self.device.manifest.keys):
            for operation, value in (("BOUND_LOW", -width), ("BOUND_HIGH", width)):
                self.send(self.codec.pack_control(operation, index, value))

    def tuples(self, count):
        """Return tuples of both sides in turn, fields uniform."""
        keys = {
            key.name: self.generator.integers(1, self.keys, count)
            for key in self.device.manifest.keys
        }
        return self.codec.pack_tuples(np.arange(count) % 2, keys)

    def send(self, words, *, marks=1):
        """Send ``words`` and FLUSH; take what comes, up to the last of ``marks`` marks."""
        words = np.concatenate([words, self.codec.pack_control("FLUSH")])
        while marks:
            done = self.device.exchange(words, self.results, cycles=1 << 16)
            words = words[done.accepted :]
            last = self.results[max(done.produced - 1, 0) : done.produced]
            marks -= int((self.codec.unpack_results(last).kind == self.codec.mark).any())

    def measure(self, groups):
        """Return seconds and counter differences of so many more groups of probes per side."""
        words = self.tuples(2 * groups * self.parameters.probes)
        before = self.device.counters()
        start = time.perf_counter()
        self.send(words)
        seconds = time.perf_counter() - start
        after = self.device.counters()
        return seconds, {name: after[name] - before[name] for name in after}


def sim_rate(parameters, report):
    """Return comparisons per second of wall-clock time, the median of nine runs."""
    with closing(ScanRun(parameters, report)) as run:
        rates = []
        for _ in range(9):
            seconds, counts = run.measure(250)
            rates.append(counts["comparisons"] / seconds)
        return statistics.median(rates)


@figure("scan.sim_comparisons_per_s", unit="comparisons/s", goal=">= 2e8")
def sim_comparisons_per_s(report):
    """Comparisons that the simulator library makes per second of wall-clock time.

    16 cores, 4 lanes, 8 probes, full windows, one thread; the median of nine runs.
    """
    return sim_rate(SCAN.with_(sub_window=2000, lanes=4, probes=8), report)


@figure("scan.sim_comparisons_per_s_one_lane", unit="comparisons/s", goal=">= 1.5e7")
def sim_comparisons_per_s_one_lane(report):
    """The same with a single lane and windows of 8,000 tuples."""
    return sim_rate(SCAN.with_(sub_window=500, probes=8), report)


#: What has been measured of the scan: bound and share of useful comparisons.
_efficiencies = []


def efficiencies(report):
    """Return the cycle efficiency of every shape at both match rates, measured once."""
    if not _efficiencies:
        for probes in (1, 4, 8):
            for lanes in (1, 2):
                parameters = SCAN.with_(probes=probes, lanes=lanes)
                with closing(ScanRun(parameters, report)) as run:
                    for bound in (RARE, FREQUENT):
                        run.bound(bound)
                        _, counts = run.measure(200)
                        comparators = 2 * parameters.cores * lanes * probes
                        share = counts["comparisons"] / (comparators * counts["cycles"])
                        report(f"figures: {probes} probes, {lanes} lanes, +-{bound}: {share:.4f}")
                        _efficiencies.append((bound, share))
    return _efficiencies


@figure("scan.cycle_efficiency", unit="of 1", goal=">= 0.99")
def cycle_efficiency(report):
    """Useful comparisons by comparators and cycles, counted in hardware, with full windows.

    16 cores of 512 keys, one match in 250,000; the lowest of 1, 4, 8 probes with 1 and 2 lanes.
    """
    return min(share for bound, share in efficiencies(report) if bound == RARE)


@figure("scan.cycle_efficiency_crowded", unit="of 1", goal=">= 0.9")
def cycle_efficiency_crowded(report):
    """The same with one match in 1,000."""
    return min(share for bound, share in efficiencies(report) if bound == FREQUENT)


#: Where the committed reports of `python -m hdl route` are.
ROUTING = Path("docs") / "routing"
#: Tuples per side of the window that tuples are counted with, and the rate of the paper's FPGA: it
#: joins 5,200 tuples per second with a window of 2**21, that is, with 64 times the comparisons.
WINDOW = 1 << 15
PAPER_TUPLES = 5_200 << 6


def routed_mhz(preset, speed):
    """Return the clock that the committed report of a preset says: its slowest seed's."""
    path = ROUTING / f"{preset}-lfe5u-85f-grade{speed}.json"
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise NotMeasured(
            f"{path} is missing; write it with: make route PRESET={preset} SPEED={speed}"
        ) from error
    if report["parameters"] != json.loads(json.dumps(PRESETS[preset].to_dict())):
        raise NotMeasured(f"{path} is of other parameters than the preset now has; route it again")
    return report["fmax_mhz"]


def routed_rate(preset, counted, report, *, window=None):
    """Return how many of ``counted`` a second the routed accelerator does, with full windows.

    ``counted`` gets the differences of the hardware counters; the clock is that of grade 8.
    """
    mhz = routed_mhz(preset, 8)
    with closing(ScanRun(PRESETS[preset], report, window=window)) as run:
        _, counts = run.measure(40)
        report(f"figures: {preset} at {mhz} MHz: {counted(counts)} in {counts['cycles']} cycles")
        return counted(counts) / counts["cycles"] * mhz * 1e6


def comparisons(counts):
    """Return the comparisons counted."""
    return counts["comparisons"]


def tuples(counts):
    """Return the tuples counted, those of both sides."""
    return counts["tuples_r"] + counts["tuples_s"]


@figure("scan.routed_comparisons_per_s_equality", unit="comparisons/s", goal=">= 1.5e11")
def routed_comparisons_per_s_equality(report):
    """Comparisons of 32-bit keys by an LFE5U-85F: counted in simulation, at the routed clock."""
    return routed_rate("ecp5-equality", comparisons, report)


@figure("scan.routed_comparisons_per_s_band", unit="comparisons/s", goal=">= 5e10")
def routed_comparisons_per_s_band(report):
    """The same for bands in two fields of 16 bits."""
    return routed_rate("ecp5-band", comparisons, report)


@figure("scan.routed_mhz_16_cores", unit="MHz", goal=">= 150")
def routed_mhz_16_cores(report):
    """Clock of the preset `paper`, routed for the slowest speed grade."""
    return routed_mhz("paper", 6)


@figure("scan.tuples_per_s", unit="tuples/s", goal=f">= {PAPER_TUPLES}")
def tuples_per_s(report):
    """Tuples of both sides that the routed `ecp5-band` joins with windows of 2**15 per side.

    The goal is the paper's 5,200 per second at 2**21, scaled to as many comparisons.
    """
    return routed_rate("ecp5-band", tuples, report, window=WINDOW)


@figure("scan.model_build_s_64", unit="s", goal="< 90")
def model_build_s_64(report):
    """Seconds from parameters to a loaded library, 64 cores, everything cold."""
    before = os.environ.get("SPLITJOIN_CACHE")
    with tempfile.TemporaryDirectory(prefix="splitjoin-") as folder:
        os.environ["SPLITJOIN_CACHE"] = str(Path(folder) / "cache")
        try:
            start = time.perf_counter()
            bundle = Path(folder) / "bundle"
            write_bundle(PRESETS["paper"].with_(cores=64), bundle)
            build_library(bundle, report=report)
            SimulatedDevice(bundle).close()
            return time.perf_counter() - start
        finally:
            if before is None:
                del os.environ["SPLITJOIN_CACHE"]
            else:
                os.environ["SPLITJOIN_CACHE"] = before
