# SPDX-License-Identifier: Apache-2.0
"""Whole accelerators whose results leave by two ports."""

from functools import partial

from amaranth.hdl import ClockDomain, Module, Value
from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
import pytest

from hdl.accelerator import Accelerator
from hdl.counters import COUNTERS, CounterBank
from hdl.parameters import JoinParameters, KeyField
from hdl.words.results import ResultKind, result_ports, result_word, results_per_cycle
from host.protocol.codecs import WordCodec
from host.protocol.manifest import Manifest
from sim.scenarios import Scenario, assert_right, expected_results, random_scenario
from sim.scenarios.ports import merge_ports
from tests.hdl.counter_reader import counters_at_the_end
from tests.hdl.stream_bench import StreamBench
from tests.hdl.test_accelerator import (
    RESET_CYCLES,
    as_integers,
    as_results,
    results_in,
    small_parameters,
)
from tests.host.small_bundles import write_manifest

X8 = (KeyField(name="x", bits=8),)


def marks_in(parameters, word):
    """How many marks a word, an integer, has."""
    result = result_word(parameters).from_bits(word)
    return int((result.one if "two" in result.shape().members else result).kind == ResultKind.MARK)


def answer(parameters, scenario, *, stalls=0.0, seed=0, begin=(0, 0)):
    """Run the scenario through the circuit; return the results of both ports as one sequence.

    Nothing is taken from a port before its cycle of ``begin``.
    """
    dut = Accelerator(parameters)
    bench = StreamBench(dut, deadline=60_000, stalls=stalls, seed=seed)
    bench.source(dut.i, as_integers(scenario.words))
    ports = [
        bench.sink(
            getattr(dut, name), scenario.marks, begin=first,
            weight=lambda word: marks_in(parameters, word),
        )
        for name, first in zip(result_ports(parameters), begin, strict=True)
    ]  # fmt: skip
    bench.run(extra_cycles=20)
    return [as_results(parameters, words) for words in ports]


def check(parameters, seed, folder, *, stalls=0.0, begin=(0, 0), **options):
    """The circuit gives the results of the software device, each side by its port."""
    parameters = parameters.with_(result_streams=2)
    path = write_manifest(parameters, folder)
    manifest = Manifest.load(path)
    codec = WordCodec(manifest)
    scenario = random_scenario(manifest, seed, **options)
    ports = answer(parameters, scenario, stalls=stalls, seed=seed, begin=begin)
    for side, results in enumerate(ports):
        fields = codec.unpack_results(results)
        assert (fields.side[fields.kind != codec.mark] == side).all()
        others = fields.overflow >> side & 1  # the window of its own side
        assert not others.any()
    assert_right(path, scenario, merge_ports(codec, *ports))


@pytest.mark.parametrize("engine", ["scan", pytest.param("index", marks=pytest.mark.long)])
@settings(max_examples=1)
@given(data=st.data(), seed=st.integers(0, 2**32), stalls=st.sampled_from([0.0, 0.2, 0.6]))
def test_random_accelerators_answer_like_the_reference(
    tmp_path_factory, engine, data, seed, stalls
):
    parameters = data.draw(small_parameters(engine))
    check(parameters, seed, tmp_path_factory.mktemp("bundle"), stalls=stalls)


@pytest.mark.long
@settings(max_examples=1)
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_without_order_the_results_between_two_stars_are_the_same_set(tmp_path_factory, data, seed):
    parameters = data.draw(small_parameters("scan"))
    check(parameters, seed, tmp_path_factory.mktemp("bundle"), stalls=0.3, period=0)


@pytest.mark.parametrize(
    ("late", "options"),
    [
        ((220, 0), {"probes": 2}),
        pytest.param((0, 160), {"engine": "index", "tuples_per_word": 2}, marks=pytest.mark.long),
    ],
)
def test_a_port_that_is_not_taken_only_makes_the_other_one_wait(tmp_path, late, options):
    parameters = JoinParameters.of(
        cores=2, sub_window=5, keys=X8, fan_in=2, result_streams=2, **options
    )
    path = write_manifest(parameters, tmp_path)
    codec = WordCodec(Manifest.load(path))
    tuples = codec.pack_tuples(np.arange(70) % 2, {"x": np.arange(70) // 3 % 3})
    scenario = Scenario(np.concatenate([tuples, codec.pack_control("FLUSH")]), marks=1)
    ports = answer(parameters, scenario, begin=late)
    assert_right(path, scenario, merge_ports(codec, *ports))


@pytest.mark.long
def test_masked_cores_answer_nothing_from_the_word_on(tmp_path):
    parameters = JoinParameters.of(cores=2, sub_window=4, keys=X8, fan_in=2, probe_bits=4, probes=2)
    parameters = parameters.with_(failure_cycles=parameters.longest_silence)
    check(parameters, 3, tmp_path, stalls=0.2, segments=2)


def test_a_port_that_is_not_taken_is_no_failure(tmp_path):
    """Longer than any core may be silent, nothing is taken from the port of S."""
    parameters = JoinParameters.of(cores=2, sub_window=4, keys=X8, fan_in=2, probe_bits=4)
    least = parameters.longest_silence
    parameters = parameters.with_(failure_cycles=least)
    check(parameters, 8, tmp_path, begin=(0, 5 * least), segments=1, tuples=30)


@pytest.mark.parametrize("tuples_per_word", [1, pytest.param(2, marks=pytest.mark.long)])
def test_counters_count_the_results_of_both_ports(tmp_path, tuples_per_word):
    parameters = JoinParameters.of(
        cores=2,
        sub_window=4,
        keys=X8,
        engine="index",
        tuples_per_word=tuples_per_word,
        result_streams=2,
    )
    manifest = Manifest.load(write_manifest(parameters, tmp_path))
    codec = WordCodec(manifest)
    words = codec.pack_tuples(np.arange(60) % 2, {"x": np.zeros(60, np.int64)})
    words = as_integers(np.concatenate([words, codec.pack_control("FLUSH")]))
    dut = Accelerator(parameters)
    bench = StreamBench(dut, deadline=4_000)
    bench.source(dut.i, words)
    ports = [
        bench.sink(getattr(dut, name), 1, begin=420, weight=lambda word: marks_in(parameters, word))
        for name in result_ports(parameters)
    ]
    found = counters_at_the_end(bench, dut)
    bench.run()
    kinds = np.concatenate(
        [codec.unpack_results(as_results(parameters, words)).kind for words in ports]
    )
    assert found["results"] == np.count_nonzero(kinds == codec.pair) > 200
    assert found["stars"] == np.count_nonzero(kinds == codec.star) == 60
    assert found["marks"] == 1
    assert found["output_busy"] == sum(map(len, ports))
    assert found["output_stalled"] > 700  # both ports, most of the 420 cycles


@pytest.mark.few(1)
@pytest.mark.parametrize("tuples_per_word", [1, 2])
def test_the_bank_counts_as_many_results_as_leave_in_a_cycle(tuples_per_word):
    parameters = JoinParameters.of(
        engine="index", tuples_per_word=tuples_per_word, result_streams=2
    )
    most = results_per_cycle(parameters)
    assert most == 2 * tuples_per_word
    dut = CounterBank(parameters)
    bench = StreamBench(dut, deadline=100)
    addresses = {counter.name: counter.address for counter in COUNTERS}
    bits = most.bit_length()

    async def process(ctx):
        ctx.set(dut.kinds, most | (most - 1) << bits | 1 << 2 * bits)
        ctx.set(dut.output, 2 | 1 << 2)
        await ctx.tick().repeat(5)
        ctx.set(dut.kinds, 0)
        ctx.set(dut.output, 0)
        found = []
        for name in ("results", "stars", "marks", "output_busy", "output_stalled"):
            ctx.set(dut.address, addresses[name])
            await ctx.tick().repeat(dut.latency)
            found.append(ctx.get(dut.data))
        assert found == [5 * most, 5 * (most - 1), 5, 10, 5]
        bench.done()

    bench.spawn(process)
    bench.run()


@pytest.mark.parametrize(
    "options",
    [
        {"cores": 2, "probes": 2},
        *(
            pytest.param({"engine": "index", **more}, marks=pytest.mark.long)
            for more in ({"cores": 3}, {"cores": 2, "tuples_per_word": 2})
        ),
    ],
)
def test_reset_forgets_whatever_was_under_way(tmp_path, options):
    parameters = JoinParameters.of(sub_window=8, keys=X8, fan_in=2, result_streams=2, **options)
    path = write_manifest(parameters, tmp_path)
    codec = WordCodec(Manifest.load(path))
    tuples = codec.pack_tuples(np.arange(24) % 2, {"x": np.arange(24) // 3 % 3})
    scenario = Scenario(np.concatenate([tuples, codec.pack_control("FLUSH")]), marks=1)
    words = as_integers(scenario.words)
    m = Module()
    m.domains.sync = sync = ClockDomain()
    m.submodules.dut = dut = Accelerator(parameters)
    bench = StreamBench(m, deadline=10_000)
    worked, ports = 50, [dut.o_r, dut.o_s]
    received = [[], []]

    async def send(ctx):
        for cycle in range(worked + RESET_CYCLES):
            ctx.set(sync.rst, cycle >= worked)
            ctx.set(dut.i.valid, cycle < worked)
            ctx.set(dut.i.payload.as_value(), words[cycle % len(words)])
            ctx.set(dut.o_r.ready, cycle % 3 == 0)
            ctx.set(dut.o_s.ready, cycle % 2)
            await ctx.tick()
        ctx.set(sync.rst, 0)
        for port in ports:
            ctx.set(port.ready, 1)
        for word in words:
            ctx.set(dut.i.valid, 1)
            ctx.set(dut.i.payload.as_value(), word)
            while not (await ctx.tick().sample(dut.i.ready))[-1]:
                pass
        ctx.set(dut.i.valid, 0)

    async def receive(ctx, port, into):
        for _ in range(worked + RESET_CYCLES):
            await ctx.tick()
        while sum(marks_in(parameters, word) for word in into) < 1:
            taken = port.valid & port.ready
            *_, valid, value = await ctx.tick().sample(taken, Value.cast(port.payload))
            if valid:
                into.append(value)
        bench.done()

    bench.simulator.add_testbench(send, background=True)
    for port, into in zip(ports, received, strict=True):
        bench.spawn(partial(receive, port=port, into=into))
    bench.run(extra_cycles=50)
    results = [as_results(parameters, into) for into in received]
    expected = expected_results(path, scenario)
    assert sum(map(len, results)) == len(expected) + 1
    assert_right(path, scenario, merge_ports(codec, *results), expected=expected)
    assert results_in(parameters, received[0][-1]) == 1  # a mark is alone in its word
