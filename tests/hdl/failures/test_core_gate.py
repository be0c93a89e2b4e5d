# SPDX-License-Identifier: Apache-2.0
"""Cores that fail in a whole accelerator: no hang, and never a silent loss."""

import random

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
import numpy as np
import pytest

from hdl.accelerator import Accelerator
from hdl.failures.core_gate import CoreGate
from hdl.join_core import JoinCore
from hdl.parameters import JoinParameters, KeyField
from hdl.words.prepared import region_word
from hdl.words.results import ResultKind, node_result, result_word
from host.protocol.codecs import WordCodec
from host.protocol.manifest import Manifest
from sim.scenarios import Scenario, expected_results
from tests.hdl.faulty_core import Fault, FaultyCore, with_faulty_core
from tests.hdl.input_words import control_word, integer, region_values, tuple_word
from tests.hdl.stream_bench import StreamBench
from tests.hdl.test_accelerator import as_integers, as_results
from tests.host.small_bundles import FLUSH, configuration, pack, random_tuples, write_manifest


def gated(**options):
    """Return parameters of an accelerator whose cores have gates, with the shortest deadline."""
    chosen = {"sub_window": 5, "keys": (KeyField(name="x", bits=8),), "fan_in": 2, "fan_out": 2}
    parameters = JoinParameters.of(**{**chosen, **options})
    return parameters.with_(failure_cycles=parameters.longest_silence)


def groups_of(manifest, results):
    """Return, for each star and mark, whether and which core failed, and the pairs before it.

    Pairs are separated into those of each core.
    """
    codec = WordCodec(manifest)
    fields = codec.unpack_results(results)
    stops, pairs = [], {}
    for n in range(len(fields)):
        if fields.kind[n] == codec.pair:
            own = pairs.setdefault(int(fields.core[n]), [])
            own.append(tuple(int(column[n]) for column in (fields.side, fields.probe, fields.row)))
            continue
        fault = int(fields.failed_core[n]) if fields.failed[n] else None
        stops.append(((int(fields.kind[n]), int(fields.side[n])), fault, pairs))
        pairs = {}
    assert not pairs
    return stops


def run(parameters, words, core, fault, moment, count, *, stalls=0.0, seed=0, deadline=60_000):
    """Send words while a core gets a fault after so many cycles; return the results.

    They end with the star or mark that makes ``count`` of them.
    """
    dut = Accelerator(parameters)
    faulty = with_faulty_core(dut, core)
    bench = StreamBench(dut, deadline=deadline, stalls=stalls, seed=seed)

    async def break_core(ctx):
        await ctx.tick().repeat(moment)
        ctx.set(faulty.fault, fault)

    bench.simulator.add_testbench(break_core, background=True)
    bench.source(dut.i, as_integers(words))
    received = bench.sink(dut.o, count, weight=lambda word: stops_in(parameters, word))
    bench.run(extra_cycles=60)
    return as_results(parameters, received)


def stops_in(parameters, word):
    """Return the number of stars and marks in a result word."""
    parts = result_word(parameters).from_bits(word)
    results = [parts] if parameters.engine.tuples_per_word == 1 else [parts.one, parts.two]
    return sum(part.kind in (ResultKind.STAR, ResultKind.MARK) for part in results)


def compare(manifest, words, expected, received, core):
    """Check every group; return how many were told to lack results of the core."""
    wanted, found = groups_of(manifest, expected), groups_of(manifest, received)
    assert [stop for stop, _, _ in found] == [stop for stop, _, _ in wanted]
    told = []
    for (_, fault, pairs), (_, _, right) in zip(found, wanted, strict=True):
        told.append(fault is not None)
        assert fault in (None, core)
        for number in range(manifest.storage.cores):
            mine, all_of_mine = pairs.get(number, []), right.get(number, [])
            if number == core and fault is not None:
                assert set(mine) <= set(all_of_mine)
            else:
                assert sorted(mine) == sorted(all_of_mine)
    return told


SHAPES = {
    "one": {"cores": 1},
    "two": {"cores": 2, "probes": 2},
    "three": {"cores": 3, "lanes": 2, "timestamp_bits": 10},
    "five": {"cores": 5, "probes": 3, "fan_out": 3},
    "index": {"cores": 2, "engine": "index", "bucket_bits": 1, "tuples_per_word": 2},
}
FAULTS = [fault for fault in Fault if fault is not Fault.NONE]
#: Of more than one core, and of one core in all other ways.
SEVERAL = {"three": Fault.LEFT_SILENT, "two": Fault.RIGHT_SILENT}
#: An index may be silent for long, and many cores take long to simulate.
LONG = [
    *(("one", fault) for fault in SEVERAL.values()),
    *(("three", fault) for fault in FAULTS if fault is not SEVERAL["three"]),
    ("five", Fault.REFUSES),
    ("two", Fault.DEAD),
    *(("index", fault) for fault in (Fault.DEAD, Fault.RIGHT_SILENT)),
]
CASES = [
    *(("one", fault) for fault in FAULTS if fault not in SEVERAL.values()),
    ("two", SEVERAL["two"]),
    *(pytest.param(*case, marks=pytest.mark.long) for case in LONG),
    *(pytest.param(*case, marks=pytest.mark.long) for case in SEVERAL.items() if case[0] != "two"),
]


@pytest.mark.few(1)
@pytest.mark.parametrize(("shape", "fault"), CASES)
def test_every_group_of_a_failed_core_is_told_until_the_core_is_masked(tmp_path, shape, fault):
    seed = list(SHAPES).index(shape) * 10 + fault.value
    rng, generator = np.random.default_rng(seed), random.Random(seed)
    parameters = gated(**SHAPES[shape])
    core = generator.randrange(parameters.cores)
    path = write_manifest(parameters, tmp_path / "bundle")
    manifest = Manifest.load(path)
    # The cores that are left have room for the window, though their shares are uneven.
    size = max(1, parameters.cores - 1) * parameters.window.sub_window - 2
    setup = configuration(parameters, windows=[("WINDOW", size)] * 2)
    tuples = random_tuples(parameters, rng, 60)
    live = [n for n in range(parameters.cores) if n != core] or [0]
    cut = 40
    before = pack(manifest, [*setup, *tuples[:cut]])
    order = [("MASK", 0, core), *(("CORE", 0, n) for n in live), ("SEGMENT", 0, 0)]
    after = pack(manifest, [*order, *tuples[cut:], FLUSH])
    words = np.concatenate([before, after])
    expected = expected_results(path, Scenario(words, marks=3))
    received = run(
        parameters, words, core, fault, generator.randrange(20, 70),
        len(groups_of(manifest, expected)), stalls=0.2 * (seed % 2), seed=seed,
        deadline=20_000 + 12 * CoreGate(parameters).limit,
    )  # fmt: skip
    told = compare(manifest, words, expected, received, core)
    # From a side's first group that lacks something on, each one does, up to the word MASK.
    assert any(told)
    kinds = [kind for kind, _, _ in groups_of(manifest, received)]
    star = ResultKind.STAR.value
    for side in range(2):
        own = [flag for flag, kind in zip(told, kinds, strict=True) if kind == (star, side)]
        begins = [n for n, flag in enumerate(own) if flag and not (n and own[n - 1])]
        assert len(begins) <= 1
    assert not told[-1]


def test_words_of_a_core_that_does_not_exist_have_no_effect(tmp_path):
    """A group of two probes goes on behind them; one of a core that exists ends it."""
    parameters = gated(cores=2, probes=2)
    path = write_manifest(parameters, tmp_path / "bundle")
    manifest = Manifest.load(path)
    steps = [*configuration(parameters, windows=[("WINDOW", 5)] * 2), ("PRECISION", 0, 2)]
    probe = ("R", {"x": 1}, 0)
    for op in ("MASK", "UNMASK"):
        for core in (2, 7, -1):
            steps += [probe, (op, 0, core), probe]
    steps += [probe, ("UNMASK", 0, 0), probe, ("MASK", 0, 1), probe, FLUSH]
    words = pack(manifest, steps)
    expected = expected_results(path, Scenario(words, marks=4))
    stops = [stop for stop, _, _ in groups_of(manifest, expected)]
    assert len(stops) == 3 + 6 + 3 + 1
    received = run(parameters, words, 0, Fault.NONE, 1, len(stops))
    assert [stop for stop, _, _ in groups_of(manifest, received)] == stops


class GatedCore(wiring.Component):
    """A core behind its gate."""

    def __init__(self, parameters):
        self.gate, self.core = CoreGate(parameters), FaultyCore(parameters)
        words, results = region_word(parameters), node_result(parameters, 0)
        super().__init__(
            {
                "words": In(stream.Signature(words)),
                "results": Out(stream.Signature(results)).array(2),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.gate, m.submodules.core = gate, core = self.gate, self.core
        connect(m, flipped(self.words), gate.words)
        connect(m, gate.core_words, core.words)
        m.d.comb += [gate.position.eq(1), core.position.eq(1), core.reset.eq(gate.core_reset)]
        for n in range(2):
            connect(m, core.results[n], gate.core_results[n])
            connect(m, gate.results[n], flipped(self.results[n]))
        return m


def gated_words(parameters, script):
    """Return region words: control words that close all groups, and probes of R with a star."""
    words = []
    for step in script:
        if step == "R":
            values = region_values(parameters, tuple_word(0, {"x": 0}), close=1, star=1)
        else:
            values = region_values(parameters, control_word(*step), close=3)
        words.append(integer(region_word(parameters), values))
    return words


def run_gated(parameters, script, *, fault=Fault.NONE, stars, marks):
    """Run a core behind its gate; return stamps of words and of results, and the results of R."""
    dut = GatedCore(parameters)
    bench = StreamBench(dut, deadline=3_000)
    sent, taken = [], []

    async def break_core(ctx):
        ctx.set(dut.core.fault, fault)

    bench.simulator.add_testbench(break_core, background=True)
    bench.source(dut.words, gated_words(parameters, script), stamps=sent)
    received = bench.sink(dut.results[0], stars + marks, stamps=taken)
    bench.sink(dut.results[1], marks)
    bench.run()
    layout = node_result(parameters, 0)
    return sent, taken, [layout.from_bits(word) for word in received]


@pytest.mark.few(1)
@pytest.mark.parametrize("shape", ["one", "two"])
def test_a_gate_adds_no_cycle_and_takes_a_word_in_every_cycle(shape):
    parameters = gated(**{**SHAPES[shape], "cores": 3})
    gate = CoreGate(parameters)
    assert gate.latency == 0
    sent, taken, _ = run_gated(parameters, ["R"], stars=1, marks=0)
    # An empty span takes a cycle.
    assert taken[0] - sent[0] == JoinCore(parameters).latency + gate.latency + 1
    script = [("MASK", 0, 1), *["R"] * 100]
    sent, taken, _ = run_gated(parameters, script, stars=100, marks=0)
    assert sent[-1] - sent[1] == taken[-1] - taken[0] == 99


def test_a_failure_is_told_within_the_limit():
    parameters = gated(cores=3)
    gate = CoreGate(parameters)
    # The word is offered from the first cycle on.
    _, taken, stops = run_gated(parameters, ["R"], fault=Fault.DEAD, stars=1, marks=0)
    assert parameters.engine.gates.failure_cycles <= taken[0] <= gate.limit + 3
    assert stops[0].body.punctuation.failed == 1


@pytest.mark.few(1)
@pytest.mark.parametrize("fault", [Fault.NONE, Fault.DEAD])
def test_a_core_takes_part_again_once_it_is_reset(fault):
    parameters = gated(cores=3)
    gate = CoreGate(parameters)
    script = [("MASK", 0, 1), "R", ("UNMASK", 0, 1), ("UNMASK", 0, 2), ("FLUSH", 0, 0)]
    sent, _, stops = run_gated(parameters, script, fault=fault, stars=1, marks=1)
    if fault is Fault.NONE:  # the gate waits for nothing but the reset
        assert gate.revival <= sent[3] - sent[2] <= gate.revival + 3
    # A reset does not help a dead core, which fails again.
    assert [stop.body.punctuation.failed for stop in stops] == [0, int(fault is Fault.DEAD)]
