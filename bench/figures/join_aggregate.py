# SPDX-License-Identifier: Apache-2.0
"""What a left row costs whose matches leave as one word, beside the same join that sends pairs."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hdl.bundle import write_bundle
from hdl.parameters import JoinParameters, KeyField
from host.devices.simulated import SimulatedDevice
from host.devices.software import SoftwareDevice
from host.errors import DeviceError
from host.protocol.codecs import codec_of
from host.protocol.configuration import MARKS, configuration
from host.query.ordering import Ordering
from host.reference.arrivals import Side
from host.reference.predicate import Bounds
from host.reference.window import CountWindow
from sim.verilated.library import build_library

from .registry import Result, figure

__all__ = ["LeftRows", "Workload", "left_rows"]

#: The accelerator; without values, it is the same join that sends pairs.
SHAPE = JoinParameters.of(
    cores=4, sub_window=1024, keys=(KeyField(name="x", bits=32),), lanes=4, probes=8, value_bits=32
)
#: Most cycles of a run per input word, beyond which something hangs.
MOST_CYCLES = 1024


@dataclass(frozen=True)
class Workload:
    """A band join of left rows with a full window of right rows, one of either after the other.

    Parameters
    ----------
    window : int
        Right rows in the window.
    rows : int
        Left rows, and right rows that come meanwhile.
    matches : int
        Expected number of matches of a left row.
    """

    window: int
    rows: int
    matches: int

    #: Values within a band of ``matches`` expected matches, for a uniform key.
    WIDTH = 1001

    def words(self, codec):
        """Return the words that set the query and fill the window, and those of the run."""
        generator = np.random.default_rng(46)
        span = self.WIDTH * self.window // self.matches
        bound = self.WIDTH // 2
        setting = configuration(
            codec.manifest,
            {"x": Bounds(-bound, bound)},
            CountWindow(self.window),
            Ordering.none(),
            newest_of=Side.S,  # left rows are not kept for right ones to find them
        )
        sides = np.concatenate(
            [np.ones(self.window, np.uint8), np.tile(np.array([0, 1], np.uint8), self.rows)]
        )
        keys = {"x": generator.integers(0, span, len(sides))}
        half = 1 << 31
        values = generator.integers(-half, half, len(sides))
        has_values = "value" in codec.manifest.input_word.fields
        tuples = codec.pack_tuples(sides, keys, value=values if has_values else None)
        flush = codec.pack_control("FLUSH")
        first = np.concatenate([setting, tuples[: self.window], flush])
        return first, np.concatenate([tuples[self.window :], flush])


@dataclass(frozen=True)
class LeftRows:
    """Counts of a run, from the counters of the hardware.

    Parameters
    ----------
    words, results, cycles : float
        Result words, results beside stars and marks, and clock cycles, per left row.
    """

    words: float
    results: float
    cycles: float


def left_rows(parameters, workload, *, name, report):
    """Run a workload, check every result by the software device, and return counts per left row.

    Parameters
    ----------
    parameters : JoinParameters
        A join aggregate, or a join that sends pairs.
    workload : Workload
    name : str
        Name of the bundle's folder.
    report : callable
        Receives lines about the progress.
    """
    bundle = Path("build") / "figures" / name
    write_bundle(parameters, bundle)
    build_library(bundle, report=report)
    with SimulatedDevice(bundle) as device, SoftwareDevice(bundle) as model:
        first, run = workload.words(codec_of(device.manifest))
        exchanged(device, first, MARKS + 1)
        exchanged(model, first, MARKS + 1)
        before = device.counters()
        found = exchanged(device, run, 1)
        after = device.counters()
        wanted = exchanged(model, run, 1)
    # Without stars, the order of pairs depends on when cores find them.
    if not parameters.is_aggregated:
        found, wanted = (words[np.lexsort(words.T)] for words in (found, wanted))
    if not np.array_equal(found, wanted):
        raise AssertionError(f"the results of {name} are not those of the reference join")
    counted = {counter: after[counter] - before[counter] for counter in after}
    rows = counted["tuples_r"]
    return LeftRows(
        counted["output_busy"] / rows, counted["results"] / rows, counted["cycles"] / rows
    )


def exchanged(device, words, marks):
    """Send words; return the results up to the mark that answers the last of them."""
    codec = codec_of(device.manifest)
    room = np.zeros((1 << 16, device.manifest.result_word.columns), np.uint64)
    arrived, left = [], MOST_CYCLES * len(words)
    while marks:
        done = device.exchange(words, room, cycles=1 << 20)
        words, left = words[done.accepted :], left - done.cycles
        arrived.append(room[: done.produced].copy())
        marks -= int(codec.marks(arrived[-1]).sum())
        if left < 0:
            raise DeviceError(f"Device {device.uri!r} sent no mark; counters {device.counters()}")
    return np.concatenate(arrived)


def compare(shape, workload, *, report):
    """Return the counts of a join aggregate, and those of the same join that sends pairs."""
    return (
        left_rows(shape, workload, name="join-aggregate", report=report),
        left_rows(shape.with_(value_bits=0), workload, name="join-of-pairs", report=report),
    )


@figure("join_aggregate.results_words", unit="words/left row", goal="<= 1.01")
def results_words(report):
    """Result words per left row of a join aggregate, with about 100 matches per row.

    Four cores of 1,024 tuples, four lanes, eight probes; a band over a 32-bit key, a full window of
    4,096 right rows, and a left and a right row by turns. No stars but that of the end, which
    counts. Every word is checked by the reference join. The same join that sends pairs keeps one
    left row, so that right rows find next to nothing.
    """
    workload = Workload(window=SHAPE.capacity, rows=4000, matches=100)
    values, pairs = compare(SHAPE, workload, report=report)
    note = (
        f"{values.cycles:.1f} cycles per left row; the same join that sends pairs takes "
        f"{pairs.cycles:.1f}, with {pairs.results:.1f} pairs"
    )
    return Result(
        values.words,
        notes=(note,),
        details={
            "cycles_per_left_row": round(values.cycles, 3),
            "pairs_cycles_per_left_row": round(pairs.cycles, 3),
            "pairs_per_left_row": round(pairs.results, 3),
        },
    )
