# SPDX-License-Identifier: Apache-2.0
"""An accelerator under load: full windows, and words as fast as it takes them."""

from contextlib import closing
from pathlib import Path
import time

import numpy as np

from hdl.bundle import write_bundle
from hdl.fpga.rates import counted, describe
from host.device.simulated import SimulatedDevice
from host.errors import DeviceTimeoutError
from host.ordering import Ordering
from host.predicate import Bounds
from host.streams.configuration import configuration
from host.window import CountWindow
from host.words import WordCodec
from sim.verilated.library import build_library

__all__ = ["FREQUENT", "RARE", "SaturatedRun", "saturate", "tuples"]

#: Bounds of a band in two fields, both uniform in 1 .. 10,000, by how many keys match one probe:
#: the paper's one in 250,000, and one in 1,000.
RARE, FREQUENT = 10, 158
#: Tuples that an index is counted with at the least: it takes one in a cycle or two.
LEAST = 1 << 14
#: How many values a field of a band has.
SPREAD = 10_000
#: Cycles without a word in or out after which a run has failed.
SILENCE = 1 << 20


def band_width(one_in, fields):
    """Return the bound of a band in so many fields, of which about one pair in ``one_in`` is."""
    return round((SPREAD / one_in ** (1 / fields) - 1) / 2)


def tuples(counts):
    """Return the tuples of both sides in differences of the hardware counters."""
    return counts["tuples_r"] + counts["tuples_s"]


class SaturatedRun:
    """An accelerator with full windows, fed as fast as it takes words.

    Tuples of both sides come in turn, ``burst`` of each, which is one at first. Begin with
    :meth:`bound` or :meth:`ask`, which fill the windows.

    Parameters
    ----------
    parameters : JoinParameters
        With comparator ``"band"`` or ``"equality"``.
    report : callable
        Receives lines about the progress.
    window : int or None
        Tuples per side; all that the accelerator holds if None.
    values : int or None
        How many values a field has; by default 10,000 for a band, 250,000 for an equality.
    period : int or None
        Probes from star to star; by default a full group.
    draw : callable or None
        Given a generator of random numbers and a count, returns so many values of each field, by
        its name; by default they are uniform.
    """

    def __init__(self, parameters, report, *, window=None, values=None, period=None, draw=None):
        self.parameters = parameters
        shape = f"{parameters.engine}-{parameters.comparator}-{parameters.cores}x"
        shape += f"{parameters.sub_window}-{parameters.lanes}x{parameters.probes}"
        shape += f"-{parameters.bucket_bits}" if parameters.bucket_bits else ""
        shape += f"-digest{parameters.digest_bits}" if parameters.digest_bits else ""
        shape += "-two" if parameters.tuples_per_word == 2 else ""
        bundle = Path("build") / "figures" / shape
        write_bundle(parameters, bundle)
        build_library(bundle, report=report)
        self.device = SimulatedDevice(bundle)
        self.manifest = self.device.manifest
        self.burst = 1
        self.codec = WordCodec(self.manifest)
        self.generator = np.random.default_rng(1)
        self.results = np.zeros((1 << 14, self.manifest.result_word.columns), np.uint64)
        self.window = CountWindow(window or self.manifest.capacity)
        self.ordering = Ordering(period or self.manifest.probes)
        self.draw = draw or self.uniform
        self.values = values or (SPREAD if parameters.comparator == "band" else 250_000)

    def close(self):
        """Let go of the device."""
        self.device.close()

    def bound(self, width):
        """Let tuples match that differ by at most ``width`` in every field; fill the windows."""
        band = self.parameters.comparator == "band"
        names = [key.name for key in self.manifest.keys] if band else []
        self.ask(dict.fromkeys(names, Bounds(-width, width)))

    def ask(self, bounds, spreads=None):
        """Let tuples match whose fields are within ``bounds``; fill the windows.

        What is known of the values, ``spreads``, is as for
        :func:`host.streams.configuration.configuration`.
        """
        words = configuration(
            self.manifest, bounds, self.window, self.ordering, spreads=spreads or {}
        )
        self.send(words, marks=3)
        self.send(self.tuples(2 * self.window.size))

    def order(self, period):
        """Let a star come every ``period`` probes of a side; the windows stay as they are."""
        self.ordering = Ordering(period)
        self.send(self.codec.pack_control("PRECISION", 0, period), marks=2)

    def uniform(self, generator, count):
        """Return values of all fields that are uniform in 1 .. ``values``."""
        return {
            key.name: generator.integers(1, self.values + 1, count) for key in self.manifest.keys
        }

    def tuples(self, count):
        """Return tuples of both sides in turn, ``burst`` of each."""
        sides = np.arange(count) // self.burst % 2
        return self.codec.pack_tuples(sides, self.draw(self.generator, count))

    def send(self, words, *, marks=1):
        """Send ``words`` and FLUSH; take what comes, up to the last of ``marks`` marks.

        Raises
        ------
        DeviceTimeoutError
            If the accelerator neither accepts nor produces anything for 2**20 cycles.
        """
        words = np.concatenate([words, self.codec.pack_control("FLUSH")])
        while marks:
            done = self.device.exchange(words, self.results, cycles=SILENCE)
            if not (done.accepted or done.produced):
                raise DeviceTimeoutError(
                    self.device.uri, f"{done.cycles} cycles", self.device.counters()
                )
            words = words[done.accepted :]
            marks -= int(self.codec.marks(self.results[: done.produced]).sum())

    def measure(self, tuples):
        """Return seconds of CPU time and counter differences of so many more tuples."""
        words = self.tuples(tuples)
        before = self.device.counters()
        start = time.process_time()
        self.send(words)
        seconds = time.process_time() - start
        after = self.device.counters()
        return seconds, {name: after[name] - before[name] for name in after}


def saturate(parameters, report, *, matches, window=None, passes=200):
    """Count what an accelerator does under load; return a record for each condition.

    Each rate of matches is counted with full groups, and with groups of one beside it: the strict
    outer order, in which every probe has a pass of its own.

    Parameters
    ----------
    parameters : JoinParameters
        With comparator ``"band"`` or ``"equality"``.
    report : callable
        Receives lines about the progress.
    matches : sequence of int
        About one pair in so many matches, one run for each.
    window : int or None
        Tuples per side; all that the accelerator holds if None.
    passes : int
        Groups of each side that are counted.
    """
    records = []
    band = parameters.comparator == "band"
    with closing(SaturatedRun(parameters, report, window=window)) as run:
        for one_in in matches:
            run.values = SPREAD if band else one_in
            run.ordering = Ordering(parameters.probes)
            run.bound(band_width(one_in, len(parameters.keys)) if band else 0)
            for precision in sorted({parameters.probes, 1}, reverse=True):
                run.order(precision)
                least = LEAST if parameters.engine == "index" else 0
                _, counts = run.measure(max(least, 2 * passes * precision))
                record = counted(
                    parameters, counts,
                    precision=precision, window=run.window.size, one_in=one_in,
                )  # fmt: skip
                report(f"saturate: {describe(record)}: {record['counters']}")
                records.append(record)
    return records
