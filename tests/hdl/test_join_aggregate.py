# SPDX-License-Identifier: Apache-2.0
"""Whole join aggregates against the model of the host, word by word."""

from itertools import pairwise, product

from amaranth.hdl import Value
import numpy as np
import pytest

from hdl import reducing as engine
from hdl.__main__ import main
from hdl.accelerator import JoinAggregateAccelerator
from hdl.words.inputs import input_word
from hdl.words.results import result_word
from hdl.words.values import MatchKind
from host.protocol.manifest import JoinAggregateManifest
from sim.scenarios import assert_right, expected_results, random_scenario
from tests.hdl.hostile_column import HostileColumn
from tests.hdl.input_words import control_word, integer, tuple_word
from tests.hdl.matches.match_words import match_parameters
from tests.hdl.stream_bench import StreamBench
from tests.host.small_bundles import write_manifest


def as_integers(words):
    """Rows of 64-bit numbers as integers."""
    return [sum(int(value) << 64 * n for n, value in enumerate(row)) for row in words]


def as_rows(integers, columns):
    """Integers as rows of 64-bit numbers."""
    mask = (1 << 64) - 1
    rows = [[value >> 64 * n & mask for n in range(columns)] for value in integers]
    return np.array(rows, np.uint64).reshape(-1, columns)


def check(parameters, seed, folder, *, stalls=0.0, **options):
    """The circuit gives the results of the model."""
    path = write_manifest(parameters, folder)
    manifest = JoinAggregateManifest.load(path)
    scenario = random_scenario(manifest, seed, **options)
    expected = expected_results(path, scenario)
    dut = JoinAggregateAccelerator(parameters)
    bench = StreamBench(dut, deadline=60_000, stalls=stalls, seed=seed)
    bench.source(dut.i, as_integers(scenario.words))
    received = bench.sink(dut.o, len(expected))
    bench.run(extra_cycles=60)
    words = as_rows(received, manifest.result_word.columns)
    assert_right(path, scenario, words, expected=expected)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("cores", "probes", "lanes", "stalls"),
    [
        (1, 1, 1, 0.0),
        (2, 2, 3, 0.3),
        (3, 5, 2, 0.3),
        (4, 3, 1, 0.0),
        *(
            pytest.param(*case, marks=pytest.mark.long)
            for case in product([1, 2, 3, 4, 5], [1, 2, 3, 5], [1, 2, 3], [0.0, 0.3])
        ),
    ],
)
def test_every_tuple_of_r_gets_the_reductions_of_its_matches(
    cores, probes, lanes, stalls, tmp_path
):
    parameters = match_parameters(
        cores=cores, probes=probes, lanes=lanes, sub_window=1 + 3 * lanes, fan_in=2 + cores % 3,
        fan_out=2, timestamp_bits=16 * (cores % 2), value_bits=1 + 7 * (probes % 3),
        comparator="equality" if lanes == 3 else "band",
    )  # fmt: skip
    seed = 1000 * cores + 100 * probes + lanes
    check(parameters, seed, tmp_path, stalls=stalls, tuples=30, segments=2)


@pytest.mark.parametrize("period", [0, pytest.param(8, marks=pytest.mark.long)])
def test_the_order_of_values_does_not_depend_on_stars(period, tmp_path):
    parameters = match_parameters(cores=3, probes=3, lanes=2, fan_in=2, timestamp_bits=16)
    check(parameters, 5, tmp_path, stalls=0.2, period=period, tuples=30)


def test_a_window_that_outgrows_the_cores_is_told_and_so_are_disorder_and_illegal_words(tmp_path):
    parameters = match_parameters(cores=2, probes=2, sub_window=3, timestamp_bits=16)
    check(parameters, 2, tmp_path, overflow=True, tuples=20, segments=2)
    for index, words, fault in [
        (0, [control_word("LIFESPAN", 1, 99), *[tuple_word(1, {"x": 0}, n) for n in range(9)]],
         {"overflow": 2}),
        (1, [tuple_word(1, {"x": 0}, 5), tuple_word(0, {"x": 0}, 4)], {"disorder": 1}),
        (2, [control_word("BOUND_LOW", 3, 0)], {"illegal": 1}),
    ]:  # fmt: skip
        received, _, _ = run_words(parameters, [*words, control_word("FLUSH")], 1, seed=index)
        told = received[0].body.punctuation
        expected = {"overflow": 0, "disorder": 0, "illegal": 0, **fault}
        assert {name: told[name] for name in expected} == expected


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("window", "illegal"),
    [(None, 1), (("WINDOW", 0, 3), 1), (("WINDOW", 0, 2), 0), (("LIFESPAN", 0, 9), 0)],
)
def test_a_count_based_window_of_r_counts_for_segments_though_nothing_of_it_is_stored(
    window, illegal
):
    """The third segment behind the first tuple of R comes too early, unless that has left."""
    parameters = match_parameters(cores=2, probes=2, sub_window=3, timestamp_bits=16)
    words = [control_word(*window)] if window else []
    for _ in range(3):
        words += [tuple_word(0, {"x": 0}), control_word("CORE", 0, 1), control_word("SEGMENT")]
    received, _, _ = run_words(parameters, [*words, control_word("FLUSH")], 3 + 3 + 1)
    assert received[-1].body.punctuation.illegal == illegal


def run_words(parameters, words, count, *, begin=0, seed=0):
    """Run words; return results, and the cycles in which words were sent and results taken."""
    dut = JoinAggregateAccelerator(parameters)
    bench = StreamBench(dut, deadline=20_000, seed=seed)
    sent, taken = [], []
    payloads = [integer(input_word(parameters), word) for word in words]
    bench.source(dut.i, payloads, stamps=sent)
    received = bench.sink(dut.o, count, stamps=taken, begin=begin)
    bench.run(extra_cycles=40)
    return [result_word(parameters).from_bits(word) for word in received], sent, taken


def values_of(results):
    """Count and total of each value, in order."""
    values = [word.body.value for word in results if word.kind == MatchKind.VALUE]
    return [(value["count"], value.total) for value in values]


@pytest.mark.few(1)
@pytest.mark.parametrize("probes", [1, 3])
def test_a_match_that_waits_keeps_its_value_while_later_tuples_would_take_its_place(
    probes, monkeypatch
):
    """Results are stuck from the beginning, and the ring goes round several times meanwhile."""
    monkeypatch.setattr(engine, "KeyColumn", HostileColumn)
    parameters = match_parameters(cores=1, probes=probes, sub_window=4, value_bits=12)
    words, expected, window = [control_word("PRECISION", 0, 0)], [], []
    for n in range(90):
        words.append(tuple_word(1, {"x": 0}, value=n))
        window = [*window, n][-4:]
        if n % 3 == 2:
            words += [tuple_word(0, {"x": 0})] * probes
            expected += [(len(window), sum(window))] * probes
    words.insert(1, control_word("WINDOW", 1, 4))
    words.append(control_word("FLUSH"))
    results, sent, _ = run_words(parameters, words, len(expected) + 3, begin=300)
    assert values_of(results) == expected
    assert sent[-1] > 300  # stores have waited


@pytest.mark.few(1)
@pytest.mark.parametrize(("cores", "lanes"), [(1, 1), (3, 2)])
def test_latency_is_what_the_accelerator_says(cores, lanes):
    parameters = match_parameters(
        cores=cores, lanes=lanes, sub_window=24, fan_in=2, comparator="equality"
    )
    rows = 5
    stored = rows * cores * lanes
    keys = [1] * (stored - 1) + [0]  # a lane with a match takes a cycle of its own
    words = [*(tuple_word(1, {"x": key}, value=9) for key in keys), tuple_word(0, {"x": 0})]
    payloads = [integer(input_word(parameters), word) for word in words]
    dut = JoinAggregateAccelerator(parameters)
    bench = StreamBench(dut, deadline=500)
    sent, taken = [], []

    async def source(ctx):
        for n, payload in enumerate(payloads):
            while n == stored and bench.cycle < 100:
                await ctx.tick()  # until the accelerator is idle
            ctx.set(Value.cast(dut.i.payload), payload)
            ctx.set(dut.i.valid, 1)
            await ctx.tick().until(dut.i.ready)
            sent.append(bench.cycle - 1)
            ctx.set(dut.i.valid, 0)
        bench.done()

    bench.spawn(source)
    received = bench.sink(dut.o, 2, stamps=taken)
    bench.run()
    assert values_of([result_word(parameters).from_bits(received[0])]) == [(1, 9)]
    assert sent[-1] >= 100
    assert taken[0] - sent[-1] == dut.latency + rows


def test_a_group_takes_as_long_as_its_pass_however_many_match():
    """Twelve rows, all of which match all four probes: 48 pairs per group and core."""
    parameters = match_parameters(cores=2, probes=4, sub_window=12, value_bits=4)
    stored = [tuple_word(1, {"x": 0}, value=1) for _ in range(24)]
    probes = [tuple_word(0, {"x": 0}) for _ in range(80)]
    words = [control_word("PRECISION", 0, 0), *stored, *probes]
    results, _, taken = run_words(parameters, words, 81)
    assert values_of(results) == [(24, 24)] * 80
    passes = pairwise(taken[9::4])  # the first groups were collected while tuples were stored
    assert {after - before for before, after in passes} == {12}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["package"], "sends the aggregates of its matches: write the package with --no-bench"),
        (["generate", "--engine", "index"], "An index needs parameter 'value_bits' to be 0, not 8"),
    ],
)
def test_what_it_lacks_is_told(arguments, message, tmp_path, capsys):
    options = ["--preset", "tiny-join-aggregate", "--output", str(tmp_path / "bundle")]
    assert main([*arguments, *options]) == 2
    assert message in capsys.readouterr().err
