# SPDX-License-Identifier: Apache-2.0
"""One simulated accelerator under three loads: what it takes, by its counters and its stamps."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from hdl.bundle import write_bundle
from hdl.parameters import JoinParameters
from host.devices import Stamps
from host.devices.simulated import SimulatedDevice
from host.errors import DeviceTimeoutError, ManifestError
from host.protocol.bit_fields import unpack_field
from host.protocol.codecs import WordCodec
from host.protocol.configuration import configuration
from host.protocol.manifest import Manifest
from host.query.ordering import Ordering
from host.reference.predicate import Bounds
from host.reference.window import CountWindow
from sim.verilated.library import build_library

__all__ = ["Condition", "Measured", "ModelRun"]

#: Result words that one exchange has room for.
ROOM = 1 << 14
#: Tuples that fill an accelerator before anything is counted, and 8 for each probe of a group.
WARM = 160
#: Cycles without a word in or out after which a run has failed.
SILENCE = 1 << 18


@dataclass(frozen=True)
class Condition:
    """What an accelerator is measured under.

    Parameters
    ----------
    window : int
        Tuples of each side, all of which are there from the first counted tuple on.
    period : int
        Probes from star to star.
    burst : int
        Tuples of a side in a row.
    interval : int or None
        Cycles from one tuple to the next; zero as fast as the accelerator takes them; None so
        slowly that the accelerator is idle when a tuple comes.
    values : int
        How many values a key has, all of them equally often.
    """

    window: int
    period: int = 1
    burst: int = 1
    interval: int | None = 0
    values: int = 1 << 14


@dataclass(frozen=True)
class Measured:
    """What was counted of so many tuples of both sides.

    Parameters
    ----------
    tuples, cycles : int
        Tuples accepted, and clock cycles, by the hardware counters.
    results, entries : int
        Pairs, and rows or entries that regions read, likewise.
    processing, visiting : float or None
        Mean cycles from the acceptance of a tuple to its star, and to a pair of it.
    """

    tuples: int
    cycles: int
    results: int
    entries: int
    processing: float | None
    visiting: float | None


@dataclass
class Traffic:
    """What went in and out: of each exchange, when, and how many stars and marks there were.

    Parameters
    ----------
    accepted : list of array
        Cycle of each tuple.
    produced : list of tuple of array
        Kind, side, probe and cycle of each result.
    stars, marks : int
        Results of these kinds.
    silence : int
        Cycles since a word went in or out.
    """

    accepted: list = field(default_factory=list)
    produced: list = field(default_factory=list)
    stars: int = 0
    marks: int = 0
    silence: int = 0


def is_of(bundle, parameters):
    """Whether there is a bundle of these parameters; to write a large one takes a minute."""
    try:
        return JoinParameters.from_dict(Manifest.load(bundle).parameters) == parameters
    except (ManifestError, ValueError):
        return False


class ModelRun:
    """A simulated accelerator whose cycles are counted.

    Parameters
    ----------
    parameters : JoinParameters
        With comparator ``"band"`` or ``"equality"``; keys match that are equal.
    folder : path-like
        Where its bundle goes.
    report : callable
        Receives lines about the progress.
    """

    def __init__(self, parameters, folder, report):
        self.parameters = parameters
        bundle = Path(folder)
        if not is_of(bundle, parameters):
            write_bundle(parameters, bundle)
        build_library(bundle, report=report)
        self.device = SimulatedDevice(bundle)
        self.manifest = self.device.manifest
        self.codec = WordCodec(self.manifest)
        self.results = np.zeros((ROOM, self.manifest.result_word.columns), np.uint64)

    def close(self):
        """Let go of the device."""
        self.device.close()

    def measure(self, condition, tuples):
        """Return what tuples take once the windows are full.

        Parameters
        ----------
        condition : Condition
            The windows are filled anew.
        tuples : int
            Of both sides together, at the least.
        """
        self.generator, self.sent = np.random.default_rng(1), 0
        names = [key.name for key in self.manifest.keys]
        words = configuration(
            self.manifest, dict.fromkeys(names, Bounds(0, 0)), CountWindow(condition.window),
            Ordering(condition.period),
        )  # fmt: skip
        self.send(words, marks=2)
        fill = self.words(condition, 2 * condition.window)
        self.send(np.concatenate([fill, self.codec.pack_control("FLUSH")]), marks=1)
        first = self.sent
        lead = 0 if condition.interval is None else WARM + 8 * self.manifest.probes
        words = self.words(condition, lead + tuples)
        traffic = Traffic()
        if condition.interval == 0:
            counts = self.saturated(words, lead, traffic)
        else:
            counts = self.spaced(condition, words, traffic)
        sides = np.arange(first, self.sent) // condition.burst % 2
        return Measured(
            counts["tuples_r"] + counts["tuples_s"],
            counts["cycles"],
            counts["results"],
            counts["region_busy"],
            *self.latencies(condition, sides, lead, traffic),
        )

    def words(self, condition, count):
        """Return the words of the next tuples: whole periods of both sides, ``count`` at least."""
        whole = 2 * int(np.lcm(condition.period, condition.burst))
        count = -(-count // whole) * whole
        sides = np.arange(self.sent, self.sent + count) // condition.burst % 2
        keys = {
            key.name: self.generator.integers(0, condition.values, count)
            for key in self.manifest.keys
        }
        self.sent += count
        return self.codec.pack_tuples(sides, keys)

    def send(self, words, *, marks):
        """Send words as fast as they are taken, and wait for these marks."""
        traffic = Traffic()
        while traffic.marks < marks:
            words = words[self.exchange(words, 1 << 14, traffic) :]

    def saturated(self, words, lead, traffic):
        """Send words as fast as they are taken; return what was counted while there were some.

        The first ``lead`` tuples fill the accelerator; others keep it busy to the end.
        """
        total, counts = len(words), []
        lead //= self.manifest.tuples_per_word
        for bound in (lead, total - min(lead, (total - lead) // 4)):
            while total - len(words) < bound:
                words = words[self.exchange(words, 64, traffic) :]
            counts.append(self.device.counters())
        words = np.concatenate([words, self.codec.pack_control("FLUSH")])
        while not traffic.marks:
            words = words[self.exchange(words, 1 << 14, traffic) :]
        return {name: counts[1][name] - counts[0][name] for name in counts[0]}

    def spaced(self, condition, words, traffic):
        """Send a word every ``interval`` cycles, or whenever the accelerator is idle."""
        before = self.device.counters()
        for n, word in enumerate(words):
            waiting = word[np.newaxis]
            if condition.interval is None:
                while traffic.stars <= n or len(waiting):
                    waiting = waiting[self.exchange(waiting, 64, traffic) :]
            else:
                end = self.device.cycle + condition.interval
                while len(waiting) or self.device.cycle < end:
                    left = max(1, end - self.device.cycle)
                    waiting = waiting[self.exchange(waiting, left, traffic) :]
        after = self.device.counters()
        flush = self.codec.pack_control("FLUSH")
        while not traffic.marks:
            flush = flush[self.exchange(flush, 1 << 14, traffic) :]
        return {name: after[name] - before[name] for name in before}

    def exchange(self, words, cycles, traffic):
        """Exchange words with the device; return how many it took.

        Raises
        ------
        DeviceTimeoutError
            If nothing has come out of it for a long time.
        """
        stamps = Stamps.for_arrays(words, self.results)
        done = self.device.exchange(words, self.results, cycles=cycles, stamps=stamps)
        results, produced = self.codec.split_words(
            self.results[: done.produced].copy(), stamps.produced[: done.produced]
        )
        held = self.tuples_in(words[: done.accepted])
        traffic.accepted.append(np.repeat(stamps.accepted[: done.accepted], held))
        fields = self.codec.unpack_results(results)
        traffic.produced.append((fields.kind, fields.side, fields.probe, produced))
        traffic.stars += int((fields.kind == self.codec.star).sum())
        traffic.marks += int((fields.kind == self.codec.mark).sum())
        traffic.silence = 0 if done.accepted or done.produced else traffic.silence + done.cycles
        if traffic.silence > SILENCE:
            raise DeviceTimeoutError(
                self.device.uri, f"{traffic.silence} cycles", self.device.counters()
            )
        return done.accepted

    def tuples_in(self, words):
        """Return how many tuples each word holds."""
        kinds = self.manifest.input_kinds
        kind = unpack_field(words, self.manifest.input_word["kind"])
        return (kind != kinds["CONTROL"]) + 1 * (kind == kinds.get("BOTH"))

    def latencies(self, condition, sides, lead, traffic):
        """Return the mean processing and visiting latency of the tuples after ``lead`` of them."""
        accepted = np.concatenate(traffic.accepted).astype(np.int64)
        columns = (np.concatenate(column) for column in zip(*traffic.produced, strict=True))
        kind, side, probe, produced = (column.astype(np.int64) for column in columns)
        processing, visiting = [], []
        for own in range(2):
            came = accepted[np.flatnonzero(sides == own)]
            of_side = (side == own) & (kind != self.codec.mark)
            star = (kind == self.codec.star)[of_side]
            completed = (np.cumsum(star) - star) * condition.period
            stamp, place = produced[of_side], probe[of_side]
            pairs = completed[~star] + place[~star]
            ended = np.repeat(stamp[star], condition.period)
            settled = lead // 2
            processing.append((ended - came)[settled:])
            visiting.append((stamp[~star] - came[pairs])[pairs >= settled])
        visiting = np.concatenate(visiting)
        return (
            float(np.concatenate(processing).mean()),
            float(visiting.mean()) if len(visiting) else None,
        )
