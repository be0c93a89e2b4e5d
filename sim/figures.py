# SPDX-License-Identifier: Apache-2.0
"""The measured figures of the kit: one function each, in a registry; ``python -m sim figures``."""

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

__all__ = ["FIGURES", "Figure", "figure", "measure"]


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
        JSON file: a list of objects with the keys name, value, unit, goal, met.
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
        value = round(entry.function(report), 6)
        row = {"name": name, "value": value, "unit": entry.unit, "goal": entry.goal}
        rows.append({**row, "met": entry.met(value)})
        met = "yes" if rows[-1]["met"] else "NO"
        print(f"{name:32} {value:12.4g}  {entry.unit:16} {entry.goal:14} {met}", flush=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    temporary.replace(path)
    return rows


#: What the figures of the scan are measured on: 16 cores, one lane, groups of eight probes.
SCAN = PRESETS["paper"].with_(probes=8)


class ScanRun:
    """:data:`SCAN` with full windows, fed as fast as it takes words.

    Both windows are filled first. Few pairs match, so that what is measured is the scan.
    """

    def __init__(self, report):
        bundle = Path("build") / "figures" / "scan"
        write_bundle(SCAN, bundle)
        build_library(bundle, report=report)
        self.device = SimulatedDevice(bundle)
        manifest = self.device.manifest
        self.codec = WordCodec(manifest)
        self.generator = np.random.default_rng(1)
        self.results = np.zeros((1 << 14, manifest.result_word.columns), np.uint64)
        self.send(self.configuration(manifest), marks=2)
        report("figures: filling the windows")
        self.send(self.tuples(2 * manifest.capacity))

    def configuration(self, manifest):
        """Return the words of the paper's band of 10 in both fields, windows of full capacity.

        Stars come with every full group of probes.
        """
        words = [self.codec.pack_control("PRECISION", 0, manifest.probes)]
        for index, _ in enumerate(manifest.keys):
            words.append(self.codec.pack_control("BOUND_LOW", index, -10))
            words.append(self.codec.pack_control("BOUND_HIGH", index, 10))
        return np.concatenate(words)

    def tuples(self, count):
        """Return tuples of both sides in turn, fields uniform in 1 .. 10,000."""
        keys = {
            key.name: self.generator.integers(1, 10_001, count) for key in self.device.manifest.keys
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

    def measure(self, count):
        """Return seconds and counter differences of ``count`` more tuples."""
        words, before = self.tuples(count), self.device.counters()
        start = time.perf_counter()
        self.send(words)
        seconds = time.perf_counter() - start
        after = self.device.counters()
        return seconds, {name: after[name] - before[name] for name in after}


#: The run behind the figures of the scan, made once.
_runs = []


def scan_run(report):
    """Return the one :class:`ScanRun`."""
    if not _runs:
        _runs.append(ScanRun(report))
    return _runs[0]


@figure("scan.sim_comparisons_per_s", unit="comparisons/s", goal=">= 1.5e7")
def sim_comparisons_per_s(report):
    """Comparisons that the simulator library makes per second of wall-clock time.

    16 cores, one lane, eight probes, full windows, one thread; the median of nine runs.
    """
    run, rates = scan_run(report), []
    for _ in range(9):
        seconds, counts = run.measure(4000)
        rates.append(counts["comparisons"] / seconds)
    return statistics.median(rates)


@figure("scan.cycle_efficiency", unit="of 1", goal=">= 0.98")
def cycle_efficiency(report):
    """Useful comparisons by comparators and cycles, counted in hardware, with full windows."""
    run = scan_run(report)
    _, counts = run.measure(8000)
    comparators = 2 * SCAN.cores * SCAN.lanes * SCAN.probes
    return counts["comparisons"] / (comparators * counts["cycles"])


@figure("scan.model_build_s_64", unit="s", goal="< 120")
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
