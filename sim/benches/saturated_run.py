# SPDX-License-Identifier: Apache-2.0
"""Run an accelerator under load: with full windows, and words as fast as it accepts them."""

from contextlib import closing
from pathlib import Path
import time

import numpy as np

from hdl.bundle import write_bundle
from hdl.fpga.reports import counted, describe, design_name
from host.devices.simulated import SimulatedDevice
from host.errors import DeviceTimeoutError
from host.protocol.codecs import WordCodec
from host.protocol.configuration import configuration
from host.query.ordering import Ordering
from host.reference.predicate import Bounds
from host.reference.window import CountWindow
from sim.verilated.library import build_library

__all__ = ["FREQUENT", "RARE", "SaturatedRun", "saturate", "tuples"]

#: Bounds of a band in two fields that are uniform in 1 .. 10,000, for two match rates: the paper's
#: one pair in 250,000, and one pair in 1,000.
RARE, FREQUENT = 10, 158
#: Least number of cycles in which an accelerator is counted. Counting begins and ends with an empty
#: pipeline, and the 100 to 200 cycles that fill and drain it are at most 0.2 % of so many.
CYCLES = 1 << 17
#: Number of different values in a field of a band.
SPREAD = 10_000
#: Cycles without a word in or out after which a run has failed.
SILENCE = 1 << 20


def band_width(one_in, fields):
    """Return the bound of a band in ``fields`` fields that about one pair in ``one_in`` matches."""
    return round((SPREAD / one_in ** (1 / fields) - 1) / 2)


def tuples(counts):
    """Return the number of tuples of both sides, from differences of the hardware counters."""
    return counts["tuples_r"] + counts["tuples_s"]


class SaturatedRun:
    """An accelerator with full windows that receives words as fast as it accepts them.

    Tuples of the sides alternate in runs of ``burst`` tuples, at first of one. Call :meth:`bound`
    or :meth:`ask` first; they fill the windows.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator, with comparator ``"band"`` or ``"equality"``.
    report : callable
        Receives lines about the progress.
    window : int or None
        Tuples per side; the capacity of the accelerator if None.
    values : int or None
        Number of different values in a field; by default 10,000 for a band, 250,000 for an
        equality.
    period : int or None
        Probes per star; by default a full group.
    draw : callable or None
        Called with a random generator and a count; returns an array of ``count`` values for each
        field, by the field's name. By default, values are uniform.
    memory : MemoryPace or None
        How long external memories take; by default, what the accelerator hides.
    """

    def __init__(
        self, parameters, report, *, window=None, values=None, period=None, draw=None, memory=None
    ):
        self.parameters = parameters
        bundle = Path("build") / "figures" / design_name(parameters, None)
        write_bundle(parameters, bundle)
        build_library(bundle, report=report)
        self.device = SimulatedDevice(bundle, memory=memory)
        self.manifest = self.device.manifest
        self.burst = 1
        self.codec = WordCodec(self.manifest)
        self.generator = np.random.default_rng(1)
        self.results = np.zeros((1 << 14, self.manifest.result_word.columns), np.uint64)
        self.window = CountWindow(window or self.manifest.capacity)
        self.ordering = Ordering(period or self.manifest.probes)
        self.draw = draw or self.uniform
        self.values = values or (SPREAD if parameters.bounded else 250_000)

    def close(self):
        """Close the device."""
        self.device.close()

    def bound(self, width):
        """Match tuples that differ by at most ``width`` in every field; fill the windows."""
        names = [key.name for key in self.manifest.bounded]
        self.ask(dict.fromkeys(names, Bounds(-width, width)))

    def ask(self, bounds, spreads=None):
        """Match tuples whose differences are within ``bounds``; fill the windows.

        ``spreads`` describes the values of the fields, as for
        :func:`host.protocol.configuration.configuration`.
        """
        words = configuration(
            self.manifest, bounds, self.window, self.ordering, spreads=spreads or {}
        )
        self.send(words, marks=3)
        self.send(self.tuples(2 * self.window.size))

    def order(self, period):
        """Emit a star every ``period`` probes of a side; the windows keep their contents."""
        self.ordering = Ordering(period)
        self.send(self.codec.pack_control("PRECISION", 0, period), marks=2)

    def uniform(self, generator, count):
        """Return values for all fields that are uniform in 1 .. ``values``."""
        return {
            key.name: generator.integers(1, self.values + 1, count) for key in self.manifest.keys
        }

    def tuples(self, count):
        """Return the words of tuples whose sides alternate in runs of ``burst``."""
        sides = np.arange(count) // self.burst % 2
        return self.codec.pack_tuples(sides, self.draw(self.generator, count))

    def send(self, words, *, marks=1):
        """Send ``words`` and FLUSH; receive results up to the last of ``marks`` marks.

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
        """Send ``tuples`` more tuples; return the seconds of CPU time and counter differences."""
        words = self.tuples(tuples)
        before = self.device.counters()
        start = time.process_time()
        self.send(words)
        seconds = time.process_time() - start
        after = self.device.counters()
        return seconds, {name: after[name] - before[name] for name in after}

    def record(self, one_in, *, cycles=CYCLES):
        """Count events in at least ``cycles`` cycles; return their record.

        ``one_in`` says in the record how often pairs match.
        """
        conditions = {"precision": self.ordering.period, "window": self.window.size}
        _, counts = self.measure(
            self.parameters.engine.busy_tuples(self.parameters, **conditions, cycles=cycles)
        )
        return counted(self.parameters, counts, **conditions, one_in=one_in)


def saturate(parameters, report, *, matches, window=None, cycles=CYCLES):
    """Count the events of an accelerator under load; return a record for each condition.

    Each match rate is measured twice: with full groups, and with groups of one. Groups of one give
    the strict outer order, in which every probe has a pass of its own.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator, with comparator ``"band"`` or ``"equality"``.
    report : callable
        Receives lines about the progress.
    matches : sequence of int
        Match rates: for each number n, a run in which about one pair in n matches.
    window : int or None
        Tuples per side; the capacity of the accelerator if None.
    cycles : int
        Least number of cycles in which the accelerator is counted.
    """
    records = []
    band = parameters.bounded
    with closing(SaturatedRun(parameters, report, window=window)) as run:
        for one_in in matches:
            run.values = SPREAD if band else one_in
            run.ordering = Ordering(parameters.engine.probes)
            run.bound(band_width(one_in, len(parameters.keys)) if band else 0)
            for precision in sorted({parameters.engine.probes, 1}, reverse=True):
                run.order(precision)
                record = run.record(one_in, cycles=cycles)
                report(f"saturate: {describe(record)}: {record['counters']}")
                records.append(record)
    return records
