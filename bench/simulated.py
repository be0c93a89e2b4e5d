# SPDX-License-Identifier: Apache-2.0
"""Simulated accelerators to be measured, and the cycles in which words go in and come out."""

from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
import time
from typing import NamedTuple

import numpy as np

from hdl.bundle import write_bundle
from host.devices import Stamps
from host.devices.simulated import SimulatedAggregate, SimulatedDevice
from host.errors import DeviceError, DeviceTimeoutError
from host.protocol.bit_fields import unpack_field
from host.protocol.codecs import AggregateCodec, WordCodec
from sim.verilated.library import build_library

__all__ = ["Aggregated", "StampedRun", "Traffic", "aggregated", "built"]

#: Folder of the bundles of figures.
FOLDER = Path("build") / "figures"
#: Result words that one exchange has room for.
ROOM = 1 << 14
#: Cycles without a word in or out after which a run has failed.
SILENCE = 1 << 20


def built(parameters, name, report, *, folder=FOLDER):
    """Return a bundle of an accelerator, with its simulator library; both are made if necessary.

    Parameters
    ----------
    parameters : JoinParameters or AggregateParameters
        The accelerator.
    name : str
        Name of the bundle in ``folder``.
    report : callable
        Receives lines about the progress.
    folder : Path
        Where bundles are.
    """
    bundle = folder / name
    write_bundle(parameters, bundle)
    build_library(bundle, report=report)
    return bundle


@dataclass
class Traffic:
    """What has gone through an accelerator, exchange by exchange.

    Parameters
    ----------
    accepted : list of array of int64
        Cycle in which each tuple was accepted.
    results, produced : list of array
        Results as words, and the cycle in which each left.
    stars, marks : int
        How many of them are stars and marks.
    silence : int
        Cycles since a word went in or out.
    """

    accepted: list = field(default_factory=list)
    results: list = field(default_factory=list)
    produced: list = field(default_factory=list)
    stars: int = 0
    marks: int = 0
    silence: int = 0


class StampedRun:
    """A simulated join that notes when each tuple was accepted, and when each result left.

    Parameters
    ----------
    bundle : path-like
        Bundle of the accelerator, whose library is built.

    Attributes
    ----------
    device, manifest, codec
        The open device, its manifest, and the codec of its words.
    generator : numpy.random.Generator
        Source of all keys.
    sent : int
        Number of tuples that :attr:`generator` has made words of.
    traffic : Traffic
        What has gone through; put another one there to forget it.
    """

    def __init__(self, bundle):
        self.device = SimulatedDevice(bundle)
        self.manifest = self.device.manifest
        self.codec = WordCodec(self.manifest)
        self.room = np.zeros((ROOM, self.manifest.result_word.columns), np.uint64)
        self.generator, self.sent, self.traffic = np.random.default_rng(1), 0, Traffic()

    def exchange(self, words, cycles):
        """Exchange words with the device; return how many it accepted.

        Raises
        ------
        DeviceTimeoutError
            If nothing has gone in or come out for a long time.
        """
        stamps, traffic, codec = Stamps.for_arrays(words, self.room), self.traffic, self.codec
        done = self.device.exchange(words, self.room, cycles=cycles, stamps=stamps)
        results, produced = codec.split_words(
            self.room[: done.produced].copy(), stamps.produced[: done.produced].astype(np.int64)
        )
        accepted = stamps.accepted[: done.accepted].astype(np.int64)
        traffic.accepted.append(np.repeat(accepted, self.tuples_in(words[: done.accepted])))
        traffic.results.append(results)
        traffic.produced.append(produced)
        traffic.stars += int((unpack_field(results, codec.result["kind"]) == codec.star).sum())
        traffic.marks += int(codec.marks(results).sum())
        traffic.silence = 0 if done.accepted or done.produced else traffic.silence + done.cycles
        if traffic.silence > SILENCE:
            counters = self.device.counters()
            raise DeviceTimeoutError(self.device.uri, f"{traffic.silence} cycles", counters)
        return done.accepted

    def tuples_in(self, words):
        """Return how many tuples each word holds."""
        kinds = self.manifest.input_kinds
        kind = unpack_field(words, self.manifest.input_word["kind"])
        return (kind != kinds["CONTROL"]) + 1 * (kind == kinds.get("BOTH"))

    def send(self, words, *, marks, cycles):
        """Send words as fast as they are taken, and wait until this many marks have come."""
        self.traffic = Traffic()
        while self.traffic.marks < marks or len(words):
            words = words[self.exchange(words, cycles) :]

    def waits(self, arrived, period):
        """Yield, for each side, how long its tuples waited for their pairs, and for their stars.

        Parameters
        ----------
        arrived : sequence of array
            For each side, the cycles of its tuples.
        period : int
            Probes of a side per star.

        Yields
        ------
        pairs, stars : tuple of array
            By pair, the number of the tuple that found it, the cycle in which the pair left, and
            the cycles since the tuple arrived. The same of each tuple and its star.
        """
        produced = np.concatenate(self.traffic.produced)
        fields = self.codec.unpack_results(np.concatenate(self.traffic.results))
        for side, came in enumerate(arrived):
            # The star of a round leaves its probe open.
            own = (fields.side == side) & (fields.kind != self.codec.mark) & ~fields.inner
            stamp, is_star = produced[own], fields.kind[own] == self.codec.star
            before = (np.cumsum(is_star) - is_star) * period
            found = (before + fields.probe[own])[~is_star]
            ended = (before[is_star][:, None] + np.arange(period)).ravel()
            pairs, stars = stamp[~is_star], np.repeat(stamp[is_star], period)
            yield (found, pairs, pairs - came[found]), (ended, stars, stars - came[ended])


class Aggregated(NamedTuple):
    """What a simulated aggregate has made of tuples.

    Parameters
    ----------
    codec : AggregateCodec
        Codec of its words.
    values : dict of str to array
        Fields of the values of all windows, as the manifest names them.
    accepted : array of int64
        Cycle in which each tuple was accepted.
    seconds : float
        Time that the simulation took.
    """

    codec: AggregateCodec
    values: dict[str, np.ndarray]
    accepted: np.ndarray
    seconds: float


def aggregated(bundle, times, columns, *, end, room, most):
    """Send tuples to a simulated aggregate as fast as it takes them; return what it has made.

    Parameters
    ----------
    bundle : path-like
        Bundle of the accelerator, whose library is built.
    times, columns : array, dict of str to array
        Times and fields of the tuples.
    end : int
        Watermark behind the last of them.
    room : int
        Most results.
    most : int
        Most cycles, beyond which something hangs.

    Raises
    ------
    DeviceError
        If the accelerator does not come to its end, or tells of a fault.
    """
    with closing(SimulatedAggregate(bundle)) as device:
        codec = AggregateCodec(device.manifest)
        words = np.concatenate(
            [
                codec.pack_tuples(times, columns),
                codec.pack_control("WATERMARK", value=end),
                codec.pack_control("FLUSH"),
            ]
        )
        results = np.zeros((room, device.manifest.result_word.columns), np.uint64)
        stamps = Stamps.for_arrays(words, results)
        started = time.monotonic()
        done = device.exchange(words, results, cycles=most, stamps=stamps)
        seconds = time.monotonic() - started
    results = results[: done.produced]
    if done.accepted < len(words) or not codec.marks(results[-1:]).all():
        raise DeviceError(
            f"The simulated aggregate took {done.accepted} of {len(words)} words in {done.cycles} "
            f"cycles, and sent no mark"
        )
    codec.check(results)
    is_value = codec.fields(results)["kind"] == codec.manifest.result_kinds["VALUE"]
    accepted = stamps.accepted[: len(times)].astype(np.int64)
    return Aggregated(codec, codec.fields(results[is_value]), accepted, seconds)
