# SPDX-License-Identifier: Apache-2.0
"""The whole accelerator against the reference join, result by result."""

from amaranth.hdl import ClockDomain, Module, Value
from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
import pytest

from hdl.accelerator import Accelerator
from hdl.manifest import describe
from hdl.parameters import JoinParameters, KeyField
from hdl.parts import words_of
from hdl.words.inputs import input_word
from hdl.words.results import ResultKind, result_word
from host.protocol.codecs import WordCodec
from host.protocol.manifest import Manifest
from sim.scenarios import (
    Scenario,
    assert_right,
    expected_results,
    make_scenario,
    random_scenario,
)
from tests.hdl.input_words import control_word, integer, tuple_word
from tests.hdl.stream_bench import StreamBench
from tests.host.small_bundles import write_manifest

ENGINES = words_of(JoinParameters)["engine"]
#: As long as reset lasts, at the least.
RESET_CYCLES = 16


def nearby(r, s):
    """A custom predicate."""
    return ((r.x - s.x) * (r.x - s.x) <= 4) & (r.x != s.x)


def as_integers(words):
    """Rows of 64-bit numbers as integers."""
    return [sum(int(value) << 64 * n for n, value in enumerate(row)) for row in words]


def as_rows(integers, columns):
    """Integers as rows of 64-bit numbers."""
    mask = (1 << 64) - 1
    rows = [[value >> 64 * n & mask for n in range(columns)] for value in integers]
    return np.array(rows, np.uint64).reshape(-1, columns)


def as_results(parameters, integers):
    """The results in words, one row each."""
    manifest = Manifest.from_dict(describe(parameters, "", verilog_file=""))
    words = as_rows(integers, manifest.result_word.columns)
    return WordCodec(manifest).split_words(words)[0]


def results_in(parameters, word):
    """How many results a word, an integer, has."""
    if parameters.engine.tuples_per_word == 1:
        return 1
    return 1 + (result_word(parameters).from_bits(word).two.kind != ResultKind.NONE)


def answer(parameters, scenario, count, *, stalls=0.0, seed=0):
    """Run the scenario through the circuit; return ``count`` results or more."""
    dut = Accelerator(parameters)
    bench = StreamBench(dut, deadline=60_000, stalls=stalls, seed=seed)
    bench.source(dut.i, as_integers(scenario.words))
    received = bench.sink(dut.o, count, weight=lambda word: results_in(parameters, word))
    bench.run(extra_cycles=20)
    return as_results(parameters, received)


def check(parameters, seed, folder, *, stalls=0.0, **options):
    """The circuit gives the results of the software device."""
    path = write_manifest(parameters, folder)
    manifest = Manifest.load(path)
    scenario = random_scenario(manifest, seed, **options)
    expected = expected_results(path, scenario)
    received = answer(parameters, scenario, len(expected), stalls=stalls, seed=seed)
    assert_right(path, scenario, received, expected=expected)


@st.composite
def small_parameters(draw, engine):
    """Strategy for accelerators of every shape."""
    probes = draw(st.sampled_from([1, 1, 2, 3, 5]))
    own = {"lanes": draw(st.sampled_from([1, 1, 2, 3]))}
    if engine == "index":
        own = {"bucket_bits": draw(st.sampled_from([None, 1, 3, 6]))}
    comparator = draw(st.sampled_from(["band", "band", "equality"]))
    if engine == "scan":
        few = [1, 3, 7] if comparator == "equality" else [4, 5, 11]
        own["digest_bits"] = draw(st.sampled_from([None, *few]))
    if engine == "scan" and own["lanes"] != 3:
        own["rounds"] = draw(st.booleans())
    return JoinParameters.of(
        cores=draw(st.sampled_from([1, 2, 3, 4, 5])),
        sub_window=draw(st.sampled_from([1, 2, 5, 8, 13])),
        keys=draw(
            st.sampled_from(
                [
                    (KeyField(name="x", bits=8),),
                    (KeyField(name="x", bits=7), KeyField(name="y", bits=5, signed=False)),
                ]
            )
        ),
        timestamp_bits=draw(st.sampled_from([0, 16])),
        probes=probes,
        fan_out=draw(st.sampled_from([2, 3, 4])),
        fan_in=draw(st.sampled_from([2, 3, 4])),
        probe_bits=draw(st.sampled_from([3, 5])),
        comparator=comparator,
        engine=engine,
        tuples_per_word=draw(st.sampled_from([1, 2])) if engine == "index" else 1,
        **own,
    )


@pytest.mark.parametrize("engine", ENGINES)
@settings(max_examples=1)
@given(data=st.data(), seed=st.integers(0, 2**32), stalls=st.sampled_from([0.0, 0.2, 0.6]))
def test_random_accelerators_answer_like_the_reference(
    tmp_path_factory, engine, data, seed, stalls
):
    parameters = data.draw(small_parameters(engine))
    check(parameters, seed, tmp_path_factory.mktemp("bundle"), stalls=stalls)


@pytest.mark.long
@pytest.mark.parametrize("engine", ENGINES)
@settings(max_examples=12)
@given(data=st.data(), seed=st.integers(0, 2**32), stalls=st.sampled_from([0.0, 0.2, 0.6]))
def test_many_random_accelerators_answer_like_the_reference(
    tmp_path_factory, engine, data, seed, stalls
):
    parameters = data.draw(small_parameters(engine))
    check(parameters, seed, tmp_path_factory.mktemp("bundle"), stalls=stalls)


@pytest.mark.parametrize("engine", ["scan", pytest.param("index", marks=pytest.mark.long)])
@settings(max_examples=1)
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_without_order_the_results_between_two_stars_are_the_same_set(
    tmp_path_factory, engine, data, seed
):
    parameters = data.draw(small_parameters(engine))
    check(parameters, seed, tmp_path_factory.mktemp("bundle"), stalls=0.3, period=0)


@pytest.mark.long
@pytest.mark.parametrize("engine", ["scan", "index"])
def test_precision_zero_sends_no_star_but_where_a_control_word_closes_groups(tmp_path, engine):
    """The index of a probe wraps many times, and no group of 3 probes is open at the end."""
    parameters = JoinParameters.of(
        cores=3, sub_window=5, keys=(KeyField(name="x", bits=4),), engine=engine, probes=3,
        probe_bits=2,
    )  # fmt: skip
    path = write_manifest(parameters, tmp_path)
    codec = WordCodec(Manifest.load(path))
    tuples = codec.pack_tuples(np.arange(96) % 2, {"x": np.arange(96) // 7 % 4})
    words = [codec.pack_control("PRECISION", 0, 0), tuples, codec.pack_control("FLUSH")]
    scenario = Scenario(np.concatenate([np.atleast_2d(some) for some in words]), marks=2, free=True)
    expected = expected_results(path, scenario)
    received = answer(parameters, scenario, len(expected), stalls=0.3)
    assert_right(path, scenario, received, expected=expected)
    results = codec.unpack_results(received)
    assert (results.kind == codec.pair).sum() > 300
    stars = np.flatnonzero(results.kind == codec.star)
    assert results.side[stars].tolist() == [0, 1]
    assert len(results.kind) - 1 - stars[-1] < 60  # FLUSH came behind nearly all pairs


@pytest.mark.long
@pytest.mark.parametrize(
    ("shape", "scenario"),
    [
        pytest.param({"cores": 1, "lanes": 1}, "rounds", marks=pytest.mark.long),
        # The driver's tests have rounds of such an accelerator, in Verilator.
        pytest.param(
            {"cores": 3, "lanes": 2, "fan_in": 2, "probes": 2},
            "rounds in time",
            marks=pytest.mark.long,
        ),
        pytest.param(
            {"cores": 4, "lanes": 4, "fan_in": 3},
            "longer rounds",
            marks=pytest.mark.long,
        ),
        ({"cores": 2, "lanes": 2, "comparator": "equality", "digest_bits": 3}, "rounds in time"),
    ],
)
def test_results_come_in_rounds_of_stored_tuples(tmp_path, shape, scenario):
    """Every star of a round is in its place, under random stalls."""
    parameters = JoinParameters.of(
        sub_window=9, keys=(KeyField(name="x", bits=8),), timestamp_bits=16, rounds=True, **shape
    )
    path = write_manifest(parameters, tmp_path)
    wanted = make_scenario(Manifest.load(path), scenario, tuples=120, seed=3)
    expected = expected_results(path, wanted)
    received = answer(parameters, wanted, len(expected), stalls=0.3)
    assert_right(path, wanted, received, expected=expected)
    results = WordCodec(Manifest.load(path)).unpack_results(received)
    assert results.inner.sum() > 100
    assert not (results.inner & (results.overflow > 0)).any()


@pytest.mark.parametrize(
    ("cores", "timestamp_bits"),
    [
        *[(1, 16), (2, 0)],
        *(
            pytest.param(*shape, marks=pytest.mark.long)
            for shape in [(2, 16), (3, 16), (4, 0), (7, 0), (7, 16)]
        ),
    ],
)
def test_any_number_of_cores(tmp_path, cores, timestamp_bits):
    parameters = JoinParameters.of(
        cores=cores,
        sub_window=4,
        keys=(KeyField(name="x", bits=8),),
        timestamp_bits=timestamp_bits,
        fan_in=2,
    )
    check(parameters, cores, tmp_path, stalls=0.2, segments=2)


@pytest.mark.parametrize(
    ("cores", "probes", "period", "timestamp_bits"),
    [
        # The driver's tests have such an index in Verilator.
        *(
            pytest.param(*s, marks=pytest.mark.long)
            for s in [(1, 3, 0, 16), (2, 2, 2, 0), (2, 1, 1, 0)]
        ),
        *(pytest.param(*s, marks=pytest.mark.long) for s in [(3, 2, 2, 16), (5, 3, 3, 0)]),
    ],
)
def test_two_tuples_in_a_word_through_an_index(tmp_path, cores, probes, period, timestamp_bits):
    """Every precision: no order, strict order, a star per group of several."""
    parameters = JoinParameters.of(
        cores=cores, sub_window=4, keys=(KeyField(name="x", bits=8),), fan_in=2, probe_bits=4,
        timestamp_bits=timestamp_bits, probes=probes, engine="index", tuples_per_word=2,
    )  # fmt: skip
    check(parameters, cores, tmp_path, stalls=0.2, segments=2, period=period)


@pytest.mark.long
def test_a_custom_predicate(tmp_path):
    parameters = JoinParameters.of(
        cores=3,
        sub_window=8,
        keys=(KeyField(name="x", bits=8),),
        comparator="custom",
        predicate="tests.hdl.test_accelerator:nearby",
    )
    check(parameters, 5, tmp_path, tuples=150, segments=2)


def errors_in(parameters, words, count):
    """Send words; return (kind, side, overflow, disorder) of every star and mark."""
    dut = Accelerator(parameters)
    bench = StreamBench(dut, deadline=5_000)
    bench.source(dut.i, [integer(input_word(parameters), word) for word in words])
    received = bench.sink(dut.o, count)
    bench.run()
    found = []
    for word in received:
        word = result_word(parameters).from_bits(word)
        flags = word.body.punctuation
        if word.kind.name != "PAIR":
            found.append((word.kind.name, word.side, flags.overflow, flags.disorder))
    return found


def test_overflow_names_the_side_from_the_next_star_of_its_probes_until_clear():
    parameters = JoinParameters.of(
        cores=2, sub_window=2, keys=(KeyField(name="x", bits=4),), timestamp_bits=8
    )
    words = [
        control_word("LIFESPAN", 0, 9),
        control_word("LIFESPAN", 1, 9),
        control_word("BOUND_LOW", 0, 9),  # nothing matches
        *(tuple_word(1, {"x": 0}, 1) for _ in range(4)),
        tuple_word(0, {"x": 1}, 1),
        tuple_word(1, {"x": 0}, 2),  # the fifth S while four live
        tuple_word(0, {"x": 1}, 3),
        control_word("FLUSH"),
        control_word("CLEAR"),
        control_word("FLUSH"),
    ]
    assert errors_in(parameters, words, 10) == [
        *[("STAR", 1, 0, 0)] * 4,
        ("STAR", 0, 0, 0),
        ("STAR", 1, 0, 0),
        ("STAR", 0, 2, 0),
        ("MARK", 0, 2, 0),
        ("MARK", 0, 2, 0),
        ("MARK", 0, 0, 0),
    ]


@pytest.mark.long
@pytest.mark.parametrize("engine", ENGINES)
def test_pairs_mean_something_again_once_the_window_that_overflowed_is_emptied(engine):
    """Every word that empties it will do, though stars tell of the overflow until CLEAR."""
    parameters = JoinParameters.of(
        cores=2, sub_window=2, keys=(KeyField(name="x", bits=4),), timestamp_bits=8, engine=engine
    )
    empties = [("WINDOW", 1, 4), ("LIFESPAN", 1, 99), ("CLEAR", 0, 0)]
    if engine == "index":
        empties += [("COORDINATE", 0, 0), ("DISTINCT", 1, 0)]
    words, results, told = [], 0, [0]
    for op in empties:
        words += [control_word("LIFESPAN", 1, 99), control_word("CLEAR")]
        words += [tuple_word(1, {"x": 0}, 1)] * 7 + [control_word(*op), control_word("FLUSH")]
        words += [*[tuple_word(1, {"x": 1}, 2)] * 3, tuple_word(0, {"x": 1}, 3)]
        words.append(control_word("FLUSH"))
        results += 11 + 3 + 3 + (op[0] == "CLEAR")  # a star for every tuple, pairs, marks
        told += [2, 0, 0, 0] if op[0] == "CLEAR" else [2, 2, 2]  # then the next CLEAR's mark
    dut = Accelerator(parameters)
    bench = StreamBench(dut, deadline=5_000)
    bench.source(dut.i, [integer(input_word(parameters), word) for word in words])
    received = bench.sink(dut.o, results)
    bench.run(extra_cycles=20)
    found = [result_word(parameters).from_bits(word) for word in received]
    pairs = [word.body.pair for word in found if word.kind == ResultKind.PAIR]
    stored = [(pair.core, pair.row) for pair in pairs]
    assert [sorted(stored[n : n + 3]) for n in range(0, len(stored), 3)] == [
        [(0, 0), (0, 1), (1, 0)]
    ] * len(empties)
    over = [word.body.punctuation.overflow for word in found if word.kind == ResultKind.MARK]
    assert over == told[:-1]


@pytest.mark.long
def test_an_overflow_stands_in_every_star_and_mark_until_clear(tmp_path):
    """No other word forgets it, whatever it does to the windows; in the software device neither."""
    parameters = JoinParameters.of(
        cores=2, sub_window=2, keys=(KeyField(name="x", bits=4),), timestamp_bits=8,
        engine="index",
    )  # fmt: skip
    controls = [
        ("BOUND_LOW", 0, 9), ("COORDINATE", 0, 0), ("DISTINCT", 0, 0), ("DISTINCT", 1, 1),
        ("WINDOW", 0, 2), ("WINDOW", 1, 2), ("LIFESPAN", 0, 9), ("LIFESPAN", 1, 9),
        ("PRECISION", 0, 1), ("FLUSH", 0, 0),
    ]  # fmt: skip
    words = [
        control_word("BOUND_LOW", 0, 9),  # nothing matches
        control_word("LIFESPAN", 1, 9),
        *(tuple_word(1, {"x": 0}, 1) for _ in range(5)),
    ]
    expected = [("STAR", 1, 0, 0)] * 5
    for op, index, value in controls:
        words += [control_word(op, index, value), *(tuple_word(n, {"x": 1}, 1) for n in range(2))]
        expected += [("MARK", 0, 2, 0)] * (op in ("PRECISION", "FLUSH"))
        expected += [("STAR", 0, 2, 0), ("STAR", 1, 0, 0)]
    words += [control_word("CLEAR"), tuple_word(0, {"x": 1}, 1), control_word("FLUSH")]
    expected += [("MARK", 0, 2, 0), ("STAR", 0, 0, 0), ("MARK", 0, 0, 0)]
    assert errors_in(parameters, words, len(expected)) == expected

    path = write_manifest(parameters, tmp_path)
    manifest = Manifest.load(path)
    rows = as_rows(
        [integer(input_word(parameters), word) for word in words], manifest.input_word.columns
    )
    answers = expected_results(path, Scenario(rows, marks=0))
    fields = WordCodec(manifest).unpack_results(answers)
    names = {code: name for name, code in manifest.result_kinds.items()}
    columns = (fields.side, fields.overflow, fields.disorder)
    assert [
        (names[kind], *map(int, rest)) for kind, *rest in zip(fields.kind, *columns, strict=True)
    ] == expected


@pytest.mark.long
def test_disorder_is_in_the_marks_until_clear():
    parameters = JoinParameters.of(
        cores=1, sub_window=4, keys=(KeyField(name="x", bits=4),), timestamp_bits=8
    )
    words = [
        tuple_word(0, {"x": 1}, 5),
        tuple_word(1, {"x": 1}, 4),
        control_word("FLUSH"),
        control_word("CLEAR"),
        tuple_word(1, {"x": 1}, 4),
        control_word("FLUSH"),
    ]
    assert errors_in(parameters, words, 5) == [
        ("STAR", 0, 0, 0),
        ("MARK", 0, 0, 1),
        ("MARK", 0, 0, 1),
        ("STAR", 1, 0, 0),
        ("MARK", 0, 0, 0),
    ]


def star_latency(parameters, rows):
    """Cycles from a lone probe to its star, with ``rows`` rows of S in every core."""
    dut = Accelerator(parameters)
    bench = StreamBench(dut, deadline=5_000)
    stored = rows * parameters.cores * parameters.engine.lanes
    words = [tuple_word(1, {"x": 0}) for _ in range(stored)]
    words = [control_word("BOUND_LOW", 0, 9), *words, tuple_word(0, {"x": 1})]
    sent, taken = [], []
    bench.source(
        dut.i,
        [integer(input_word(parameters), word) for word in words[:-1]],
        stamps=[],
    )

    async def late_probe(ctx):
        while bench._pending > 1 or bench.cycle < 20 + 3 * len(words):
            await ctx.tick()
        payload = integer(input_word(parameters), words[-1])
        ctx.set(Value.cast(dut.i.payload), payload)
        ctx.set(dut.i.valid, 1)
        sent.append(bench.cycle)
        await ctx.tick().until(dut.i.ready)
        ctx.set(dut.i.valid, 0)

    bench.simulator.add_testbench(late_probe, background=True)
    bench.sink(dut.o, stored + 1, stamps=taken)
    bench.run()
    return taken[-1] - sent[0]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("cores", "rows", "lanes"),
    [
        *[(1, 1, 3), (2, 2, 1)],
        *(
            pytest.param(cores, *shape, marks=pytest.mark.long)
            for cores in (1, 2, 3, 7)
            for shape in [(1, 1), (2, 1), (2, 3), (10, 1), (10, 3)]
            if (cores, shape) != (2, (2, 1))
        ),
    ],
)
def test_latency_is_that_of_equation_5(cores, rows, lanes):
    parameters = JoinParameters.of(
        cores=cores, sub_window=32, keys=(KeyField(name="x", bits=4),), lanes=lanes, fan_in=2
    )
    whole = Accelerator(parameters).latency
    assert star_latency(parameters, rows) == whole + rows
    digests = parameters.with_(comparator="equality", digest_bits=2)
    assert Accelerator(digests).latency == whole + 6
    if cores > 1:
        assert star_latency(digests, rows) == whole + 6 + rows
    cells = parameters.with_(digest_bits=5)
    assert Accelerator(cells).latency == whole + 10
    if cores > 1:
        assert star_latency(cells, rows) == whole + 10 + rows


@pytest.mark.long
def test_more_cores_than_reset_reaches_before_a_word_are_refused():
    parameters = JoinParameters.of(cores=1025, sub_window=8, keys=(KeyField(name="x", bits=8),))
    with pytest.raises(ValueError, match=r"Reset takes 7 cycles to 1025 cores, and a word"):
        Accelerator(parameters)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("worked", "options"),
    [
        (12, {"cores": 1}),
        pytest.param(90, {"cores": 5}, marks=pytest.mark.long),
        pytest.param(40, {"cores": 16}, marks=pytest.mark.long),
        pytest.param(60, {"cores": 2, "engine": "index"}, marks=pytest.mark.long),
        (70, {"cores": 2, "lanes": 2, "comparator": "equality", "digest_bits": 3}),
        pytest.param(70, {"cores": 2, "lanes": 2, "digest_bits": 3}, marks=pytest.mark.long),
        pytest.param(70, {"cores": 2, "timestamp_bits": 8}, marks=pytest.mark.long),
        pytest.param(
            50, {"cores": 2, "engine": "index", "tuples_per_word": 2}, marks=pytest.mark.long
        ),
    ],
)
def test_reset_forgets_whatever_was_under_way(tmp_path, worked, options):
    parameters = JoinParameters.of(
        sub_window=8, keys=(KeyField(name="x", bits=8),), fan_in=2, **options
    )
    path = write_manifest(parameters, tmp_path)
    codec = WordCodec(Manifest.load(path))
    generator, count = np.random.default_rng(worked), 24
    sides = generator.integers(0, 2, count).astype(np.uint8)
    tuples = codec.pack_tuples(sides, {"x": generator.integers(0, 4, count)}, np.arange(count))
    scenario = Scenario(np.concatenate([tuples, codec.pack_control("FLUSH")]), marks=1)
    expected = expected_results(path, scenario)
    words = as_integers(scenario.words)
    # What they configure is forgotten: nothing after reset configures anything.
    window = "LIFESPAN" if parameters.timestamp_bits else "WINDOW"
    before = [codec.pack_control("PRECISION", 0, 3)]
    before += [codec.pack_control(window, side, 2) for side in range(2)]
    worked_on = as_integers(np.concatenate(before)) + words

    m = Module()
    m.domains.sync = sync = ClockDomain()
    m.submodules.dut = dut = Accelerator(parameters)
    bench = StreamBench(m, deadline=60_000)
    received = []

    async def send(ctx):
        sent = 0
        for cycle in range(worked + RESET_CYCLES):
            ctx.set(sync.rst, cycle >= worked)
            ctx.set(dut.i.valid, cycle < worked)
            ctx.set(dut.i.payload.as_value(), worked_on[sent % len(worked_on)])
            ctx.set(dut.o.ready, cycle % 2)
            *_, taken = await ctx.tick().sample(dut.i.ready)
            sent += taken and cycle < worked
        ctx.set(sync.rst, 0)
        ctx.set(dut.o.ready, 1)
        for word in words:
            ctx.set(dut.i.valid, 1)
            ctx.set(dut.i.payload.as_value(), word)
            while not (await ctx.tick().sample(dut.i.ready))[-1]:
                pass
        ctx.set(dut.i.valid, 0)

    async def receive(ctx):
        payload = Value.cast(dut.o.payload)
        for _ in range(worked + RESET_CYCLES):
            await ctx.tick()
        while sum(results_in(parameters, word) for word in received) < len(expected):
            *_, valid, value = await ctx.tick().sample(dut.o.valid & dut.o.ready, payload)
            if valid:
                received.append(value)
        bench.done()

    bench.simulator.add_testbench(send, background=True)
    bench.spawn(receive)
    bench.run(extra_cycles=50)
    rows = as_results(parameters, received)
    assert_right(path, scenario, rows, expected=expected)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("cores", "engine", "options", "stalls"),
    [
        (1, "scan", {}, 0.3),
        (2, "scan", {"timestamp_bits": 16}, 0.0),
        *(
            pytest.param(*case, marks=pytest.mark.long)
            for case in [
                (3, "scan", {"probes": 2, "lanes": 2, "fan_out": 2}, 0.3),
                (4, "scan", {"digest_bits": 3, "comparator": "equality"}, 0),
                (3, "index", {"tuples_per_word": 2}, 0.3),
                (5, "index", {"timestamp_bits": 16}, 0.3),
            ]
        ),
    ],
)
def test_masked_cores_answer_nothing_from_the_word_on(tmp_path, cores, engine, options, stalls):
    parameters = JoinParameters.of(
        cores=cores,
        sub_window=4,
        keys=(KeyField(name="x", bits=8),),
        fan_in=2,
        probe_bits=4,
        engine=engine,
        **options,
    )
    parameters = parameters.with_(failure_cycles=parameters.longest_silence)
    check(parameters, cores, tmp_path, stalls=stalls, segments=3)
