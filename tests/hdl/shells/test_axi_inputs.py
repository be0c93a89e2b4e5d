# SPDX-License-Identifier: Apache-2.0
"""The AXI shell with several inputs, in Amaranth's simulator."""

import pytest

from hdl.families.choice import family_of
from hdl.parameters import JoinParameters, KeyField
from hdl.shells.axi import AxiOptions, AxiShell
from hdl.words.inputs import SourceOrder
from host.protocol.codecs import WordCodec
from host.protocol.manifest import Manifest
from sim.scenarios import assert_right, expected_results, merged_inputs, random_scenario
from tests.hdl.input_words import control_word, tuple_word
from tests.hdl.shells.shell_bench import Shell, integers, rows
from tests.hdl.shells.source_orders import order
from tests.host.small_bundles import write_manifest

PARAMETERS = JoinParameters.of(
    cores=1, sub_window=2, keys=(KeyField(name="x", bits=8),), timestamp_bits=9, probe_bits=3
)
TWO = AxiOptions(inputs=2)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "options", [TWO, pytest.param(AxiOptions(inputs=3, r_inputs=2), id="three")]
)
def test_inputs_give_the_answer_of_their_merge(tmp_path, options):
    parameters = PARAMETERS.with_(sub_window=5)
    path = write_manifest(parameters, tmp_path)
    manifest = Manifest.load(path)
    scenario, inputs = merged_inputs(
        manifest,
        random_scenario(manifest, 11, tuples=16),
        sides=family_of(parameters).inputs(options.inputs, options.r_inputs).sides,
    )
    expected = expected_results(path, scenario)
    shell = Shell(parameters, options=options, pauses=0.4, seed=12)
    found = []

    async def take(ctx):
        found.extend(await shell.take(ctx, scenario.marks))

    shell.bench.run(*shell.senders([integers(words) for words in inputs]), take)
    results = WordCodec(manifest).split_words(rows(found, manifest.result_word.columns))[0]
    assert_right(path, scenario, results, expected=expected)


def words(shell, side, *times):
    return [shell.word(tuple_word(side, {"x": 3}, time)) for time in times]


def test_an_input_that_stalls_is_counted_and_excluded():
    shell = Shell(PARAMETERS, options=TWO)
    flush = shell.word(control_word("FLUSH"))
    r, s = shell.inputs

    async def program(ctx):
        await shell.reset(ctx)
        await shell.send(ctx, words(shell, 0, 3, 5), axis=r)
        await shell.bench.tick(ctx).repeat(50)
        assert await shell.read(ctx, "STALLS_S") > 40
        assert await shell.read(ctx, "STALLS_R") == 0
        assert await shell.field(ctx, "STATUS", "INPUT_WAITING")
        assert await shell.read(ctx, "ERRORS") == 0
        await shell.write(ctx, "STALL_DEADLINE", 10)
        await shell.bench.tick(ctx).repeat(20)
        assert await shell.read(ctx, "ERRORS") == 1 << 10
        # S comes back, with a tuple that is too old, and brings its control word.
        await shell.send(ctx, [*words(shell, 1, 2, 9), flush], axis=s)
        await shell.send(ctx, [*words(shell, 0, 7), flush], axis=r)
        taken = await shell.take(ctx, 1)
        assert taken[-1] & 3 == 2
        # The accelerator told of the disorder as well.
        assert await shell.read(ctx, "ERRORS") == 1 << 10 | 1 << 8 | 1 << 1
        await shell.write(ctx, "ERRORS", (1 << 13) - 1)
        assert await shell.read(ctx, "ERRORS") == 0

    shell.bench.run(program)


@pytest.mark.parametrize("how", ["register", pytest.param("word", marks=pytest.mark.long)])
def test_an_input_is_excluded_on_demand(how):
    shell = Shell(PARAMETERS, options=TWO)
    s = shell.inputs[1]
    exclude = order(PARAMETERS, SourceOrder.EXCLUDE.value)

    async def program(ctx):
        await shell.reset(ctx)
        await shell.send(ctx, words(shell, 1, 3), axis=s)
        if how == "word":
            await shell.send(ctx, [exclude], axis=s)
        else:
            await shell.write(ctx, "CONTROL", 1 << 8 | 1 << 2)
        await shell.bench.tick(ctx).repeat(20)
        assert await shell.read(ctx, "ERRORS") == 1 << 9
        flush = shell.word(control_word("FLUSH"))
        # A barrier waits for the inputs that are there.
        await shell.send(ctx, [flush], axis=s)
        assert len(await shell.take(ctx, 1)) == 2

    shell.bench.run(program)


def test_watermarks_and_departures_let_the_other_input_go_on():
    shell = Shell(PARAMETERS, options=TWO)
    r, s = shell.inputs
    flush = shell.word(control_word("FLUSH"))

    async def program(ctx):
        await shell.reset(ctx)
        await shell.send(ctx, words(shell, 0, 3, 5), axis=r)
        await shell.send(ctx, [order(PARAMETERS, SourceOrder.WATERMARK.value, 4)], axis=s)
        await shell.bench.tick(ctx).repeat(20)
        await shell.write(ctx, "CONTROL", 1 << 8 | 2)
        assert await shell.read(ctx, "TUPLES_R_LO") == 1
        await shell.send(ctx, [order(PARAMETERS, SourceOrder.LEAVE.value)], axis=s)
        await shell.bench.tick(ctx).repeat(20)
        await shell.write(ctx, "CONTROL", 1 << 8 | 2)
        assert await shell.read(ctx, "TUPLES_R_LO") == 2
        await shell.send(ctx, [flush], axis=r)
        await shell.take(ctx, 1)
        assert await shell.read(ctx, "ERRORS") == 0
        assert await shell.read(ctx, "STATUS") == 0

    shell.bench.run(program)


def test_different_control_words_and_words_of_the_wrong_side_are_told():
    shell = Shell(PARAMETERS, options=TWO)
    r, s = shell.inputs
    flush, clear = (shell.word(control_word(name)) for name in ("FLUSH", "CLEAR"))

    async def program(ctx):
        await shell.reset(ctx)
        await shell.send(ctx, [*words(shell, 1, 3), flush], axis=r)
        await shell.send(ctx, [flush], axis=s)
        await shell.take(ctx, 1)
        assert await shell.read(ctx, "ERRORS") == 1 << 12
        await shell.write(ctx, "ERRORS", 1 << 12)
        await shell.send(ctx, [flush], axis=r)
        await shell.send(ctx, [clear], axis=s)
        await shell.take(ctx, 1)
        assert await shell.read(ctx, "ERRORS") == 1 << 11

    shell.bench.run(program)


@pytest.mark.parametrize(
    ("parameters", "options", "message"),
    [
        (PARAMETERS, {"inputs": 65}, "A shell has 1 to 64 inputs, not 65"),
        (PARAMETERS, {"inputs": 0}, "A shell has 1 to 64 inputs, not 0"),
        (PARAMETERS, {"inputs": 4, "r_inputs": 4}, "must be between 1 and 3, not 4"),
        (PARAMETERS, {"r_inputs": 1}, "One input takes the words of both sides"),
        (
            PARAMETERS.with_(timestamp_bits=0),
            {"inputs": 2},
            "2 inputs are merged by timestamp, so 'timestamp_bits' must not be zero",
        ),
        (
            PARAMETERS.with_(engine="index", tuples_per_word=2),
            {"inputs": 3},
            "'tuples_per_word' must be 1, not 2",
        ),
    ],
)
def test_what_cannot_be_merged_is_refused(parameters, options, message):
    with pytest.raises(ValueError, match=message):
        AxiShell(parameters, digest="ab" * 32, options=AxiOptions(**options))


def test_of_several_inputs_each_is_named_counted_and_excluded():
    shell = Shell(PARAMETERS, options=AxiOptions(inputs=3, r_inputs=1))
    r, s0, s1 = shell.inputs
    flush = shell.word(control_word("FLUSH"))

    async def program(ctx):
        await shell.reset(ctx)
        assert await shell.field(ctx, "WORDS", "INPUT_PORTS") == 3
        await shell.send(ctx, words(shell, 0, 3), axis=r)
        await shell.send(ctx, words(shell, 1, 7), axis=s1)
        await shell.bench.tick(ctx).repeat(50)
        assert await shell.read(ctx, "STALLS_S0") > 40
        assert await shell.read(ctx, "STALLS_R") == await shell.read(ctx, "STALLS_S1") == 0
        # S1 knows that S0 is silent.
        await shell.send(ctx, [order(PARAMETERS, SourceOrder.EXCLUDE.value, 1)], axis=s1)
        await shell.bench.tick(ctx).repeat(20)
        assert await shell.read(ctx, "EXCLUDED_INPUTS_0") == 0b010
        assert await shell.field(ctx, "ERRORS", "EXCLUDED_S") == 1
        # S1's tuple still waits for R, until R is excluded too.
        await shell.write(ctx, "EXCLUDE_INPUTS_0", 0b001)
        await shell.bench.tick(ctx).repeat(20)
        assert await shell.read(ctx, "EXCLUDED_INPUTS_0") == 0b011
        # R comes back with a tuple that is too old. When R is there, all bring a control word.
        await shell.send(ctx, [*words(shell, 0, 2), flush], axis=r)
        await shell.bench.tick(ctx).repeat(15)
        for axis in (s0, s1):
            await shell.send(ctx, [flush], axis=axis)
        await shell.take(ctx, 1)
        assert await shell.read(ctx, "LATE_INPUTS_0") == 0b001
        assert await shell.field(ctx, "ERRORS", "LATE_R") == 1
        assert await shell.field(ctx, "ERRORS", "LATE_S") == 0
        for mask in ("LATE_INPUTS_0", "EXCLUDED_INPUTS_0"):
            await shell.write(ctx, mask, 0b111)
            assert await shell.read(ctx, mask) == 0

    shell.bench.run(program)
