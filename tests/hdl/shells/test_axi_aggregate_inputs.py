# SPDX-License-Identifier: Apache-2.0
"""The AXI shell of an aggregate with several inputs, against windows by their definition."""

import pytest

from hdl.aggregate.accelerator import AggregateAccelerator
from hdl.aggregate.words import AggregateControl, SourceControl
from hdl.shells.axi import AxiOptions, AxiShell
from tests.hdl.aggregate.aggregate_words import control_word, tuple_word
from tests.hdl.aggregate.core_program import decoded
from tests.hdl.aggregate.operators import aggregate_parameters, operator
from tests.hdl.aggregate.source_program import SourceProgram
from tests.hdl.shells.shell_bench import HASH, Shell

SUMS = operator("sum", "max", size=6, advance=2)
SMALL = aggregate_parameters(operator("sum", size=8, advance=4), keys=10)
WATERMARK, FLUSH, CLEAR = (AggregateControl[name] for name in ("WATERMARK", "FLUSH", "CLEAR"))
LATE, EXCLUDED, DIFFERENT, ORDER = (1 << bit for bit in (7, 9, 11, 12))
DISORDER = 1 << 1


def word(op, value=0):
    return control_word(SMALL, op, value)


def add(time, item, v=1):
    return tuple_word(SMALL, time, item=item, v=v)


def run(shell, inputs, marks, *, then=None):
    """Send the words of each input; return the results up to the last one of some marks."""
    found = []

    async def take(ctx):
        found.extend(await shell.take(ctx, marks))
        if then:
            await then(ctx)

    shell.bench.run(*shell.senders(inputs), take)
    return decoded(shell.parameters, found)


@pytest.mark.parametrize(
    ("inputs", "cores", "pauses"),
    [
        (3, 3, 0.2),
        pytest.param(2, 1, 0.4, marks=pytest.mark.long),
        pytest.param(2, 3, 0.0, marks=pytest.mark.long),
        pytest.param(8, 1, 0.3, marks=pytest.mark.long),
        pytest.param(8, 3, 0.0, marks=pytest.mark.long),
    ],
)
def test_windows_are_those_of_all_tuples_in_the_order_of_time(inputs, cores, pauses):
    parameters = aggregate_parameters(SUMS, cores=cores, fan_in=2)
    program = SourceProgram(SUMS, parameters, sources=inputs, seed=f"{inputs} {cores}")
    tuples = 36 // inputs
    program.epoch(tuples=tuples)
    program.mark()  # while windows are open
    program.epoch(tuples=tuples, lateness=0.3)
    program.flush()
    assert program.late
    program.clear(pane=3, size=3, advance=1)
    program.epoch(tuples=tuples)
    program.flush()
    shell = Shell(parameters, options=AxiOptions(inputs=inputs), pauses=pauses, seed=inputs)
    told = {}

    async def then(ctx):
        told["late"] = await shell.read(ctx, "LATE_INPUTS_0")
        told["errors"] = await shell.read(ctx, "ERRORS")

    found = run(shell, program.sent, program.merged.expected.count("mark"), then=then)
    assert found == program.merged.expected
    assert len(found) > 30
    assert told["late"] == sum(1 << source for source in program.late)
    assert told["errors"] & ~DISORDER == LATE


def test_a_window_leaves_when_the_last_source_has_passed_its_boundary():
    shell = Shell(SMALL, options=AxiOptions(inputs=3))
    last, first, second = shell.inputs
    left, entered = [], []

    async def look(ctx):
        axis = shell.outputs[0]
        signals = (axis.tvalid & axis.tready, last.tvalid & last.tready)
        async for _, _, leaves, enters in shell.bench.tick(ctx).sample(*signals):
            left.extend([shell.bench.cycle] * leaves)
            entered.extend([shell.bench.cycle] * enters)

    async def program(ctx):
        await shell.reset(ctx)
        ctx.set(shell.outputs[0].tready, 1)
        await shell.send(ctx, [add(1, 0, 5), add(9, 3)], axis=first)
        await shell.send(ctx, [add(2, 4, 7), word(WATERMARK, 5)], axis=second)
        await shell.send(ctx, [word(WATERMARK, 3)], axis=last)
        await shell.bench.tick(ctx).repeat(100)
        assert left == []  # the last source may still send what is below 4
        await shell.send(ctx, [word(WATERMARK, 4)], axis=last)
        await shell.bench.tick(ctx).repeat(100)
        await shell.write(ctx, "CONTROL", 1 << 8 | 2)
        # Two values and a star, although no tuple and no control word comes.
        assert await shell.read(ctx, "RESULTS_LO") == 2
        assert await shell.read(ctx, "STARS_LO") == 1
        assert await shell.read(ctx, "TUPLES_LO") == 2  # that of time 9 waits

    shell.bench.run(program, background=[look])
    assert len(left) == 3
    assert left[0] - entered[-1] == AggregateAccelerator(SMALL).latency + shell.dut.latency


@pytest.mark.long
def test_what_sources_have_promised_is_answered_before_a_mark_and_before_they_leave():
    inputs = [
        [add(1, 3, 5), word(WATERMARK, 9), word(FLUSH)],
        [add(2, 4, 7), word(WATERMARK, 8), word(SourceControl.LEAVE)],
        [word(WATERMARK, 30), word(FLUSH)],
    ]
    window = [(4, 3, (5,)), (4, 4, (7,)), (4, None, ()), (8, 3, (5,)), (8, 4, (7,)), (8, None, ())]
    for seed, pauses in enumerate((0.0, 0.6, 0.6)):
        shell = Shell(SMALL, options=AxiOptions(inputs=3), pauses=pauses, seed=seed)
        assert run(shell, inputs, 1) == [*window, "mark"]


def test_a_late_tuple_counts_while_its_pane_is_open_and_its_source_is_named():
    shell = Shell(SMALL, options=AxiOptions(inputs=2))
    first, second = shell.inputs

    async def told(ctx):
        """Let all inputs bring FLUSH; return what is told, and clear it."""
        for axis in shell.inputs:
            await shell.send(ctx, [word(FLUSH)], axis=axis)
        results = decoded(SMALL, await shell.take(ctx, 1))
        found = await shell.read(ctx, "ERRORS"), await shell.read(ctx, "LATE_INPUTS_0")
        for name in ("ERRORS", "LATE_INPUTS_0"):
            await shell.write(ctx, name, (1 << 13) - 1 if name == "ERRORS" else 3)
        return results, *found

    async def program(ctx):
        await shell.reset(ctx)
        # The pane from 0 to 4 is open: the tuple of time 1 comes late, and counts.
        await shell.send(ctx, [add(3, 1, 5), add(1, 1, 6)], axis=first)
        await shell.send(ctx, [add(3, 1, 1)], axis=second)
        assert await told(ctx) == (["mark"], LATE, 0b01)
        # Behind FLUSH, what has been reached is still 3.
        await shell.send(ctx, [add(2, 1, 10)], axis=second)
        assert await told(ctx) == (["mark"], LATE, 0b10)
        # The pane ends by what both say; the tuple of time 2 is dropped.
        await shell.send(ctx, [word(WATERMARK, 6), add(2, 1, 100)], axis=second)
        await shell.send(ctx, [word(WATERMARK, 7)], axis=first)
        window = [(4, 1, (22,)), (4, None, ())]
        assert await told(ctx) == ([*window, "mark"], LATE | DISORDER, 0b10)
        # CLEAR forgets times.
        for axis in shell.inputs:
            await shell.send(ctx, [word(CLEAR)], axis=axis)
        await shell.take(ctx, 1)
        await shell.write(ctx, "ERRORS", DISORDER)
        await shell.send(ctx, [add(0, 1)], axis=second)
        assert await told(ctx) == (["mark"], 0, 0)

    shell.bench.run(program)


def test_a_silent_source_is_counted_and_excluded_by_word_register_or_deadline():
    shell = Shell(SMALL, options=AxiOptions(inputs=3))
    first, second, third = shell.inputs

    async def tuples(ctx):
        await shell.bench.tick(ctx).repeat(30)
        await shell.write(ctx, "CONTROL", 1 << 8 | 2)
        return await shell.read(ctx, "TUPLES_LO")

    async def program(ctx):
        await shell.reset(ctx)
        assert await shell.field(ctx, "WORDS", "INPUT_PORTS") == 3
        await shell.send(ctx, [add(1, 3), add(9, 3)], axis=first)
        assert await tuples(ctx) == 0
        assert await shell.field(ctx, "STATUS", "INPUT_WAITING")
        assert await shell.read(ctx, "STALLS_IN0") == 0
        assert await shell.read(ctx, "STALLS_IN1") + await shell.read(ctx, "STALLS_IN2") > 20
        await shell.send(ctx, [word(SourceControl.EXCLUDE, 1)], axis=first)
        assert await tuples(ctx) == 0
        assert await shell.read(ctx, "EXCLUDED_INPUTS_0") == 0b010
        await shell.write(ctx, "EXCLUDE_INPUTS_0", 0b100)
        assert await tuples(ctx) == 2
        assert await shell.read(ctx, "EXCLUDED_INPUTS_0") == 0b110
        assert await shell.read(ctx, "ERRORS") == EXCLUDED
        # Both come back, behind what has been reached, and one falls silent again.
        await shell.send(ctx, [add(2, 3), add(12, 3)], axis=second)
        await shell.send(ctx, [word(WATERMARK, 20)], axis=third)
        await shell.write(ctx, "STALL_DEADLINE", 40)
        await shell.send(ctx, [add(30, 3)], axis=first)
        await shell.bench.tick(ctx).repeat(160)
        assert await tuples(ctx) == 4
        assert await shell.read(ctx, "LATE_INPUTS_0") == 0b010
        assert await shell.read(ctx, "EXCLUDED_INPUTS_0") == 0b110
        assert await shell.read(ctx, "ERRORS") == EXCLUDED | LATE

    shell.bench.run(program)


def test_different_control_words_and_orders_about_no_input_are_told():
    shell = Shell(SMALL, options=AxiOptions(inputs=2))
    first, second = shell.inputs

    async def program(ctx):
        await shell.reset(ctx)
        await shell.send(ctx, [word(SourceControl.EXCLUDE, 2), word(FLUSH)], axis=first)
        await shell.send(ctx, [word(CLEAR)], axis=second)
        await shell.take(ctx, 1)
        assert await shell.read(ctx, "ERRORS") == ORDER | DIFFERENT

    shell.bench.run(program)


@pytest.mark.parametrize("inputs", [0, 65])
def test_a_shell_has_up_to_64_inputs(inputs):
    with pytest.raises(ValueError, match=f"A shell has 1 to 64 inputs, not {inputs}"):
        AxiShell(SMALL, digest=HASH, options=AxiOptions(inputs=inputs))
