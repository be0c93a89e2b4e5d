# SPDX-License-Identifier: Apache-2.0
"""Whole chains against the reference join: pairs between two marks, as sets; cycles."""

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
import pytest

from bench.handshake import HANDSHAKE, LOW_LATENCY, Handshake
from bench.handshake.accelerator import ChainAccelerator
from hdl.families.choice import make_accelerator
from hdl.manifest import describe
from hdl.parameters import JoinParameters, KeyField
from hdl.words.results import ResultKind, result_word
from host.protocol.manifest import Manifest
from sim.scenarios.chain_answers import read_chain
from tests.bench.handshake.programs import Program, random_program
from tests.hdl.stream_bench import StreamBench
from tests.hdl.test_accelerator import as_integers, as_rows

CHAINS = (HANDSHAKE, LOW_LATENCY)
#: The same with numbers of tuples that wrap around.
handshake_12, low_latency_12 = (Handshake(expedited=n, ordinal_bits=12) for n in (False, True))
SHORT = {HANDSHAKE: f"{__name__}:handshake_12", LOW_LATENCY: f"{__name__}:low_latency_12"}
X8 = (KeyField(name="x", bits=8),)
MIXED = (KeyField(name="x", bits=7), KeyField(name="y", bits=5, signed=False))


def manifest_of(parameters):
    return Manifest.from_dict(describe(parameters, "", verilog_file=""))


def answer(parameters, program, *, stalls=0.0, seed=0, sent=None, emitted=None):
    """Run a program until its last mark; return the result words."""
    dut = make_accelerator(parameters)
    assert isinstance(dut, ChainAccelerator)
    layout = result_word(parameters)
    bench = StreamBench(dut, deadline=8_000, stalls=stalls, seed=seed)
    bench.source(dut.i, as_integers(program.packed()), stamps=sent)
    received = bench.sink(
        dut.o,
        len(program.answer.pairs),
        weight=lambda word: layout.from_bits(word).kind == ResultKind.MARK,
        stamps=emitted,
    )
    bench.run(extra_cycles=40)
    return as_rows(received, program.manifest.result_word.columns)


def check(parameters, program, **options):
    results = answer(parameters, program, **options)
    assert read_chain(program.manifest, results) == (program.answer, [])


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("architecture", "cores", "timestamp_bits"),
    [
        *[(HANDSHAKE, 2, 16), (LOW_LATENCY, 3, 0)],
        *(
            pytest.param(architecture, *shape, marks=pytest.mark.long)
            for architecture in CHAINS
            for shape in [(1, 0), (1, 16), (2, 0), (3, 16), (4, 0), (5, 16), (8, 0)]
        ),
        pytest.param(HANDSHAKE, 3, 0, marks=pytest.mark.long),
    ],
)
def test_any_number_of_cores(architecture, cores, timestamp_bits):
    parameters = JoinParameters.of(
        cores=cores, sub_window=3, keys=X8, timestamp_bits=timestamp_bits, fan_in=2,
        architecture=architecture,
    )  # fmt: skip
    program = random_program(
        manifest_of(parameters), cores, tuples=24, blocks=1, timed=timestamp_bits > 0
    )
    check(parameters, program, stalls=0.2, seed=cores)


@pytest.mark.long
@pytest.mark.parametrize("architecture", CHAINS)
@settings(max_examples=10)
@given(data=st.data(), seed=st.integers(0, 2**32), stalls=st.sampled_from([0.0, 0.2, 0.6]))
def test_random_chains_answer_like_the_reference(architecture, data, seed, stalls):
    parameters = JoinParameters.of(
        cores=data.draw(st.sampled_from([1, 2, 3, 4, 5])),
        sub_window=data.draw(st.sampled_from([1, 2, 5, 8])),
        keys=data.draw(st.sampled_from([X8, MIXED])),
        comparator=data.draw(st.sampled_from(["band", "equality"])),
        timestamp_bits=data.draw(st.sampled_from([0, 16])),
        fan_in=data.draw(st.sampled_from([2, 4])),
        architecture=data.draw(st.sampled_from([architecture, SHORT[architecture]])),
    )
    manifest = manifest_of(parameters)
    timed = parameters.timestamp_bits > 0
    check(parameters, random_program(manifest, seed, timed=timed), stalls=stalls, seed=seed)


@pytest.mark.few(1)
@pytest.mark.parametrize("architecture", CHAINS)
def test_windows_of_one_tuple_and_bursts_of_a_side(architecture):
    """Tuples expire while they are still on their way."""
    parameters = JoinParameters.of(
        cores=2, sub_window=4, keys=X8, comparator="equality", architecture=architecture
    )
    program = Program(manifest_of(parameters))
    for side in range(2):
        program.control("WINDOW", side, 1)
    sides = [0] * 7 + [1] * 7 + [0, 1] * 5 + [1, 1, 0] * 3
    program.tuples(sides, [[0]] * len(sides), [0] * len(sides))
    program.control("FLUSH")
    program.tuples([1, 0, 1], [[0]] * 3, [0] * 3)
    program.control("FLUSH")
    check(parameters, program)


def alternating(manifest, count):
    """A program of ``count`` tuples of each side in turn, no two of which match but by ``x``."""
    program = Program(manifest)
    sides = [n % 2 for n in range(2 * count)]
    program.tuples(sides, [[n // 2 % 100] for n in range(2 * count)], [0] * 2 * count)
    return program


@pytest.mark.few(1)
@pytest.mark.parametrize("architecture", CHAINS)
def test_a_tuple_of_each_side_takes_as_many_cycles_as_a_core_has_rows(architecture):
    """And one more to read a tuple that is sent on, or one for each tuple that is crossed."""
    rows, cores = 16, 2
    parameters = JoinParameters.of(
        cores=cores, sub_window=rows, keys=X8, comparator="equality", architecture=architecture
    )
    program, sent = alternating(manifest_of(parameters), 5 * rows * cores // 2), []
    program.control("FLUSH")
    results = answer(parameters, program, sent=sent)
    assert read_chain(program.manifest, results) == (program.answer, [])
    steady = np.array(sent[:-1])[-2 * rows * cores :]  # windows are full; queues may still fill
    cycles = (steady[-1] - steady[0]) / (len(steady) - 1) * 2
    assert rows - 1 <= cycles <= rows + 2


@pytest.mark.few(1)
@pytest.mark.parametrize("home", [0, 2])
def test_the_latency_to_a_home_is_the_sum_of_the_stated_ones(home):
    """In the low-latency handshake join R passes the cores behind the other tuple's home."""
    cores = 3
    parameters = JoinParameters.of(
        cores=cores, sub_window=4, keys=X8, fan_in=2, comparator="equality", architecture=CHAINS[1]
    )
    dut = ChainAccelerator(parameters)
    bench = StreamBench(dut, deadline=400)
    program, emitted, accepted = Program(manifest_of(parameters)), [], []
    keys = [*range(home + 1), home]  # of S, then the one of R that matches the last one
    program.tuples([1] * (home + 1) + [0], [[key] for key in keys], [0] * len(keys))
    *stored, probe = as_integers(program.packed())
    bench.source(dut.i, stored)
    bench.sink(dut.o, 1, stamps=emitted)

    async def late_probe(ctx):
        await ctx.tick().repeat(100)
        ctx.set(dut.i.payload.as_value(), probe)
        ctx.set(dut.i.valid, 1)
        accepted.append(bench.cycle)
        await ctx.tick().until(dut.i.ready)
        ctx.set(dut.i.valid, 0)

    bench.simulator.add_testbench(late_probe, background=True)
    bench.run()
    assert emitted[0] - accepted[0] == dut.visiting_latency(cores - 1 - home)


def test_splitjoin_is_no_chain():
    with pytest.raises(ValueError, match="Architecture 'splitjoin' is no chain of cores"):
        ChainAccelerator(JoinParameters.of())
