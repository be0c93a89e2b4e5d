# SPDX-License-Identifier: Apache-2.0
"""The AXI shell around an aggregate, against windows by their definition."""

import pytest

from hdl.aggregate.accelerator import AggregateAccelerator
from hdl.aggregate.words import AggregateControl
from hdl.registers.table import MAGIC
from hdl.shells.axi import AxiOptions, AxiShell
from hdl.shells.linked_accelerator import LinkedAccelerator, shell_link_settings
from tests.hdl.aggregate.aggregate_words import control_word, tuple_word
from tests.hdl.aggregate.core_program import decoded
from tests.hdl.aggregate.input_program import InputProgram
from tests.hdl.aggregate.operators import aggregate_parameters, operator
from tests.hdl.shells.shell_bench import HASH, Shell

SUMS = operator("sum", "max", size=6, advance=2)
SMALL = aggregate_parameters(operator("sum", size=8, advance=4), keys=10)


def numbers(program):
    """Return the words of a program as integers."""
    return [word.as_value().value for word in program.words]


def answers(shell, words, marks):
    """Return the results of words, up to the last one of some packets."""
    found = []

    async def send(ctx):
        await shell.reset(ctx)
        await shell.send(ctx, words)

    async def take(ctx):
        found.extend(await shell.take(ctx, marks))

    shell.bench.run(send, take)
    return decoded(shell.parameters, found)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("cores", "pauses"),
    [(1, 0.4), (3, 0.3), pytest.param(3, 0.0, marks=pytest.mark.long)],
)
def test_windows_are_those_of_the_definition(cores, pauses):
    parameters = aggregate_parameters(SUMS, cores=cores, fan_in=2)
    program = InputProgram(SUMS, parameters)
    program.random_tuples(f"{cores} {pauses}", 40)
    program.flush()
    program.clear(pane=3, size=3, advance=1)
    program.random_tuples(cores, 20)
    program.flush()
    shell = Shell(parameters, pauses=pauses, seed=cores)
    found = answers(shell, numbers(program), program.expected.count("mark"))
    assert found == program.expected
    assert len(found) > 40


def word(op, value=0):
    return control_word(SMALL, op, value)


def add(time, item, v=1):
    return tuple_word(SMALL, time, item=item, v=v)


CLEAR, FLUSH, WATERMARK = (AggregateControl[name] for name in ("CLEAR", "FLUSH", "WATERMARK"))


def test_registers_tell_what_the_shell_is_and_does():
    shell = Shell(SMALL)

    async def program(ctx):
        await shell.reset(ctx)
        assert await shell.read(ctx, "ID") == MAGIC
        for name, value in (("CORES", 1), ("TIMESTAMPS", 1), ("AGGREGATE", 1)):
            assert await shell.field(ctx, "ENGINE", name) == value
        assert await shell.field(ctx, "WORDS", "INPUT_PORTS") == 1
        await shell.write(ctx, "INTERRUPT_ENABLE", 1)
        assert await shell.read(ctx, "STATUS") == 0
        await shell.send(ctx, [word(FLUSH)])
        await shell.bench.tick(ctx).repeat(80)
        assert ctx.get(shell.dut.interrupt)
        # The mark has left the accelerator, but nobody has taken it at the pins.
        assert await shell.read(ctx, "STATUS") == 4
        assert decoded(SMALL, await shell.take(ctx, 1)) == ["mark"]
        await shell.send(ctx, [add(1, 3), add(2, 3), word(WATERMARK, 4), word(FLUSH)])
        assert decoded(SMALL, await shell.take(ctx, 1)) == [(4, 3, (2,)), (4, None, ()), "mark"]
        assert await shell.read(ctx, "STATUS") == 0
        await shell.send(ctx, [add(2, 3), word(FLUSH)])  # the pane of this tuple has ended
        assert await shell.field(ctx, "STATUS", "BUSY")
        await shell.take(ctx, 1)
        await shell.write(ctx, "CONTROL", 1 << 8 | 2)
        counted = {
            name: await shell.read(ctx, f"{name}_LO")
            for name in ("TUPLES", "PANES", "RESULTS", "STARS", "MARKS", "INGRESS_BUSY")
        }
        assert counted == {
            "TUPLES": 2, "PANES": 1, "RESULTS": 1, "STARS": 1, "MARKS": 3, "INGRESS_BUSY": 7,
        }  # fmt: skip
        assert 0 < await shell.read(ctx, "CYCLES_LO") < shell.bench.cycle
        assert await shell.master.read(ctx, 0x80) == (0, True)

    shell.bench.run(program)


FAULTY = {
    "ILLEGAL": [word(6)],
    "DISORDER": [word(WATERMARK, 9), add(1, 3)],
    "CAPACITY": [add(1, 12)],
    "RANGE": [add(n % 4, 3, 127) for n in range(70)],
}


@pytest.mark.few(1)
@pytest.mark.parametrize("fault", FAULTY)
def test_faults_are_kept_in_errors_until_they_are_cleared(fault):
    parameters = SMALL.with_(pane_bits=14) if fault == "RANGE" else SMALL
    shell = Shell(parameters)
    bit = shell.table["ERRORS"].fields[list(FAULTY).index(fault)]
    assert bit.name == fault

    async def program(ctx):
        await shell.reset(ctx)
        await shell.write(ctx, "INTERRUPT_ENABLE", 2)
        await shell.send(ctx, [*FAULTY[fault], word(WATERMARK, 40), word(FLUSH)])
        await shell.take(ctx, 1)
        assert await shell.read(ctx, "ERRORS") == bit.mask
        assert ctx.get(shell.dut.interrupt)
        await shell.send(ctx, [word(CLEAR)])
        await shell.take(ctx, 1)
        await shell.write(ctx, "ERRORS", bit.mask)
        await shell.send(ctx, [word(FLUSH)])
        await shell.take(ctx, 1)
        assert await shell.read(ctx, "ERRORS") == 0
        assert not ctx.get(shell.dut.interrupt)

    shell.bench.run(program)


def test_a_reset_by_register_forgets_tuples_and_faults():
    shell = Shell(SMALL)

    async def program(ctx):
        await shell.reset(ctx)
        await shell.send(ctx, [add(1, 3), add(1, 12), word(FLUSH)])
        await shell.write(ctx, "CONTROL", 1 << 8 | 1)
        assert await shell.field(ctx, "STATUS", "RESETTING")
        assert await shell.read(ctx, "TUPLES_LO") == 0  # waits for the end of reset
        assert not await shell.field(ctx, "STATUS", "BUSY")
        await shell.send(ctx, [add(5, 2, 7), word(WATERMARK, 8), word(FLUSH)])
        assert decoded(SMALL, await shell.take(ctx, 1)) == [(8, 2, (7,)), (8, None, ()), "mark"]

    shell.bench.run(program)


def test_a_tuple_per_cycle_and_two_cycles_more_to_a_window():
    shell = Shell(SMALL)
    axis, out = shell.dut.s_axis, shell.dut.m_axis
    entered, left = [], []

    async def look(ctx):
        signals = (axis.tvalid & axis.tready, out.tvalid & out.tready)
        async for _, _, enters, leaves in shell.bench.tick(ctx).sample(*signals):
            now = shell.bench.cycle
            entered.extend([now] * enters)
            left.extend([now] * leaves)

    async def program(ctx):
        await shell.reset(ctx)
        await shell.send(ctx, [word(FLUSH)])
        await shell.take(ctx, 1)
        await shell.bench.tick(ctx)
        entered.clear()
        left.clear()
        tuples = [add(n // 25, n % 10) for n in range(100)]  # of one pane
        for n in [*tuples, add(4, 1)]:
            ctx.set(axis.tdata, n)
            ctx.set(axis.tkeep, ~0)
            ctx.set(axis.tvalid, 1)
            await shell.bench.tick(ctx).until(axis.tready)
        ctx.set(axis.tvalid, 0)
        ctx.set(out.tready, 1)
        await shell.bench.tick(ctx).repeat(150)

    shell.bench.run(program, background=[look])
    assert entered == list(range(entered[0], entered[0] + 101))
    assert len(left) == 11
    assert left[0] - entered[-1] == AggregateAccelerator(SMALL).latency + shell.dut.latency


def test_what_a_shell_cannot_be_is_refused():
    with pytest.raises(ValueError, match=r"none of its inputs is R's: leave out .* which is 1"):
        AxiShell(SMALL, digest=HASH, options=AxiOptions(inputs=2, r_inputs=1))
    with pytest.raises(ValueError, match="A link carries the words of joins, and operator 'small'"):
        shell_link_settings(SMALL, digest=HASH, byte_cycles=1)
    with pytest.raises(ValueError, match="A link carries the words of joins, and operator 'small'"):
        LinkedAccelerator(SMALL, digest=HASH, settings=None, shell="A tin can")
