# SPDX-License-Identifier: Apache-2.0
"""The whole AXI shell in Amaranth's simulator, against the reference join."""

import pytest

from hdl.local_reset import LEAST_CYCLES
from hdl.parameters import JoinParameters, KeyField
from hdl.registers.table import MAGIC, VERSION
from host.protocol.codecs import WordCodec
from host.protocol.manifest import Manifest
from sim.scenarios import assert_right, expected_results, random_scenario
from sim.scenarios.ports import merge_ports
from tests.hdl.input_words import control_word, tuple_word
from tests.hdl.shells.shell_bench import HASH, Shell, integers, rows
from tests.host.small_bundles import write_manifest

ONE = JoinParameters.of(
    cores=2, sub_window=5, keys=(KeyField(name="x", bits=8),), timestamp_bits=9, probe_bits=3
)
#: For what does not depend on the engine.
SMALL = ONE.with_(cores=1, sub_window=2)
TWO = ONE.with_(cores=1, engine="index", tuples_per_word=2, result_streams=2)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("parameters", "pauses"),
    [pytest.param(ONE, 0.0, marks=pytest.mark.long), (ONE, 0.5), (TWO, 0.3)],
)
def test_results_are_those_of_the_reference_join(tmp_path, parameters, pauses):
    path = write_manifest(parameters, tmp_path)
    manifest = Manifest.load(path)
    scenario = random_scenario(manifest, 11, tuples=30)
    expected = expected_results(path, scenario)
    shell = Shell(parameters, pauses=pauses, seed=12)
    found = {}

    async def send(ctx):
        await shell.reset(ctx)
        await shell.send(ctx, integers(scenario.words))

    def take(n):
        async def process(ctx):
            found[n] = await shell.take(ctx, scenario.marks, shell.outputs[n])

        return process

    shell.bench.run(send, *(take(n) for n in range(len(shell.outputs))))
    codec = WordCodec(manifest)
    columns = manifest.result_word.columns
    ports = [codec.split_words(rows(found[n], columns))[0] for n in sorted(found)]
    results = ports[0] if len(ports) == 1 else merge_ports(codec, *ports)
    assert_right(path, scenario, results, expected=expected)


def test_registers_tell_what_the_shell_is_and_does():
    shell = Shell(SMALL)
    flush = shell.word(control_word("FLUSH"))

    async def program(ctx):
        dut, bench = shell.dut, shell.bench
        await shell.reset(ctx)
        assert await shell.read(ctx, "ID") == MAGIC
        assert await shell.read(ctx, "VERSION") == VERSION[0] << 16 | VERSION[1]
        assert await shell.field(ctx, "WORDS", "INPUT_BYTES") == dut.s_axis.signature.size
        digest = b"".join(
            [(await shell.read(ctx, f"MANIFEST_HASH_{n}")).to_bytes(4, "little") for n in range(8)]
        )
        assert digest.hex() == HASH
        assert await shell.master.read(ctx, 0x80) == (0, True)
        assert await shell.master.write(ctx, 0, 1)

        await shell.write(ctx, "INTERRUPT_ENABLE", 1)
        assert await shell.read(ctx, "STATUS") == 0
        await shell.send(ctx, [shell.word(tuple_word(0, {"x": 3}, 1)), flush])
        await shell.bench.tick(ctx).repeat(80)
        assert ctx.get(dut.interrupt)
        # The mark has left the accelerator, but nobody has taken it at the pins.
        assert await shell.read(ctx, "STATUS") == 4
        assert len(await shell.take(ctx, 1)) == 2
        assert await shell.read(ctx, "STATUS") == 0
        assert await shell.read(ctx, "INTERRUPT_STATUS") == 1
        await shell.write(ctx, "INTERRUPT_STATUS", 1)
        assert not ctx.get(dut.interrupt)
        assert await shell.read(ctx, "ERRORS") == 0

        await shell.write(ctx, "CONTROL", 1 << 8 | 2)
        counted = {
            name: await shell.read(ctx, f"{name}_LO") for name in ("TUPLES_R", "STARS", "MARKS")
        }
        assert counted == {"TUPLES_R": 1, "STARS": 1, "MARKS": 1}
        cycles = await shell.read(ctx, "CYCLES_LO")
        assert 0 < cycles < bench.cycle
        assert await shell.read(ctx, "CYCLES_HI") == 0
        assert await shell.read(ctx, "CYCLES_LO") == cycles

    shell.bench.run(program)


def test_errors_are_kept_until_they_are_cleared():
    shell = Shell(SMALL)
    words = [
        shell.word(tuple_word(0, {"x": 3}, 9)),
        shell.word(tuple_word(1, {"x": 3}, 8)),  # time goes backwards
        shell.word({**control_word("FLUSH"), "kind": 3}),  # no kind of word
        shell.word(control_word("FLUSH")),
    ]
    clear = shell.word(control_word("CLEAR"))

    async def program(ctx):
        await shell.reset(ctx)
        await shell.write(ctx, "INTERRUPT_ENABLE", 2)
        await shell.send(ctx, [clear], keep=1)  # a torn word, which is dropped
        await shell.bench.tick(ctx).repeat(4)
        assert ctx.get(shell.dut.interrupt)
        assert await shell.read(ctx, "ERRORS") == 1 << 6
        await shell.send(ctx, words)
        await shell.take(ctx, 1)
        assert await shell.read(ctx, "ERRORS") == 1 << 6 | 3
        assert await shell.read(ctx, "INTERRUPT_STATUS") == 3
        await shell.send(ctx, [clear, clear])
        await shell.take(ctx, 2)
        await shell.write(ctx, "ERRORS", 1 << 6 | 1)
        assert await shell.read(ctx, "ERRORS") == 2
        assert ctx.get(shell.dut.interrupt)
        await shell.write(ctx, "ERRORS", 2)
        assert await shell.read(ctx, "INTERRUPT_STATUS") == 1
        assert not ctx.get(shell.dut.interrupt)
        await shell.send(ctx, [shell.word(control_word("FLUSH"))])
        await shell.take(ctx, 1)
        assert await shell.read(ctx, "ERRORS") == 0

    shell.bench.run(program)


def test_no_word_is_taken_in_reset_or_while_disabled():
    shell = Shell(SMALL)

    async def program(ctx):
        dut = shell.dut
        await shell.reset(ctx)
        ctx.set(dut.s_axis.tvalid, 1)
        ctx.set(dut.s_axis.tkeep, ~0)
        for _ in range(LEAST_CYCLES):
            assert not ctx.get(dut.s_axis.tready)
            await shell.bench.tick(ctx)
        ctx.set(dut.s_axis.tvalid, 0)
        await shell.bench.tick(ctx).repeat(3)
        assert ctx.get(dut.s_axis.tready)
        await shell.write(ctx, "CONTROL", 0)
        assert not ctx.get(dut.s_axis.tready)
        await shell.write(ctx, "CONTROL", 1 << 8)
        assert ctx.get(dut.s_axis.tready)

    shell.bench.run(program)


def test_a_reset_by_register_forgets_words_but_not_an_offer_or_registers():
    shell = Shell(SMALL)
    tuples = [shell.word(tuple_word(side, {"x": 3}, 1)) for side in (0, 1) * 4]
    flush = shell.word(control_word("FLUSH"))

    async def program(ctx):
        dut = shell.dut
        await shell.reset(ctx)
        await shell.write(ctx, "INTERRUPT_ENABLE", 3)
        await shell.send(ctx, [*tuples, flush])
        await shell.bench.tick(ctx).repeat(80)
        assert await shell.field(ctx, "STATUS", "BUSY")
        offered = ctx.get(dut.m_axis.tdata)
        await shell.write(ctx, "CONTROL", 1 << 8 | 1)
        assert await shell.field(ctx, "STATUS", "RESETTING")
        assert await shell.read(ctx, "TUPLES_R_LO") == 0  # waits for the end of reset
        assert not await shell.field(ctx, "STATUS", "RESETTING")
        assert not await shell.field(ctx, "STATUS", "BUSY")
        assert await shell.read(ctx, "INTERRUPT_ENABLE") == 3
        assert ctx.get(dut.m_axis.tvalid)
        assert ctx.get(dut.m_axis.tdata) == offered
        await shell.send(ctx, [flush])
        # What was offered before, at most two words of the output register, and the mark.
        assert 2 <= len(await shell.take(ctx, 1)) <= 3

    shell.bench.run(program)


@pytest.mark.long
def test_registers_tell_which_cores_need_their_clock_and_which_are_vacant():
    shell = Shell(SMALL.with_(cores=3, clock_requests=True))
    quiet = 200

    async def cores(ctx):
        """Return which cores need their clock and which are vacant, when nothing happens."""
        await shell.bench.tick(ctx).repeat(quiet)
        return [await shell.read(ctx, name) for name in ("CLOCK_REQUEST_0", "VACANT_0")]

    async def program(ctx):
        await shell.reset(ctx)
        assert await shell.field(ctx, "ENGINE", "CLOCK_REQUESTS") == 1
        assert await cores(ctx) == [0, 0b111]
        await shell.send(ctx, [shell.word(tuple_word(0, {"x": 3}, 1))])
        while await shell.read(ctx, "CLOCK_REQUEST_0") != 0b111:
            pass  # the tuple is on its way; all cores are probed by it
        assert await cores(ctx) == [0, 0b110]
        second = [tuple_word(0, {"x": 3}, 2), control_word("FLUSH")]
        await shell.send(ctx, map(shell.word, second))
        await shell.take(ctx, 1)
        assert await cores(ctx) == [0, 0b100]
        await shell.send(ctx, [shell.word(control_word("CLEAR"))])
        await shell.take(ctx, 1)
        assert await cores(ctx) == [0, 0b111]

    shell.bench.run(program)
