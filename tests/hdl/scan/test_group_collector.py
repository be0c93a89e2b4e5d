# SPDX-License-Identifier: Apache-2.0
import random

from amaranth.hdl import Value
from amaranth.sim import Simulator
import pytest

from hdl.parameters import JoinParameters
from hdl.scan.layouts import group_layout
from hdl.scan.serializers import GroupCollector
from hdl.words.prepared import pointer_layout


def collector_parameters(probes):
    """Parameters of a small accelerator."""
    return JoinParameters.of(sub_window=20, lanes=3, probes=probes)


def simulate(dut, body):
    """Run ``body(ctx)``."""
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(body)
    simulator.run()


def random_spans(parameters, generator):
    """Spans that never move back, each with the row after its last."""
    lanes = parameters.engine.lanes
    rows = 1 << pointer_layout(parameters)["row"].width
    tail = head = 0
    while True:
        head += generator.choice([0, 0, 1, 2, 5])
        head = min(head, tail + parameters.window.sub_window)
        yield (
            {"tail": pointer(tail, lanes, rows), "head": pointer(head, lanes, rows)},
            -(-head // lanes) % rows,
        )
        tail += generator.choice([0, 0, 1, 3])
        head = max(head, tail)


def pointer(number, lanes, rows):
    """A ring position by its running number."""
    return {"lane": number % lanes, "row": number // lanes % rows}


def set_probe(ctx, dut, probe, *, close=None):
    """Drive a probe (or None), and the ending of the group if it closes."""
    ctx.set(dut.add, probe is not None)
    if probe is not None:
        ctx.set(dut.span, probe[0])
        ctx.set(dut.second, probe[0]["tail"]["row"] + 1)
        ctx.set(dut.stop, probe[1])
    ctx.set(dut.close, close is not None)
    if close is not None:
        ctx.set(dut.ending, {"count": 0, **close})


@pytest.mark.few(4)
@pytest.mark.parametrize("probes", [1, 2, 3, 5])
@pytest.mark.parametrize("hold", [1, 2, 3])
def test_a_group_says_where_its_pass_begins_and_ends(probes, hold):
    parameters = collector_parameters(probes)
    dut = GroupCollector(parameters, hold=hold)
    generator = random.Random(10 * probes + hold)
    spans = random_spans(parameters, generator)
    rows = 1 << pointer_layout(parameters)["row"].width

    async def bench(ctx):
        for _ in range(60):
            group = [next(spans) for _ in range(generator.randrange(probes + 1))]
            with_last = bool(group) and generator.random() < 0.5  # close with the last probe
            ending = {"star": generator.randrange(2), "mark": generator.randrange(2)}
            for n, probe in enumerate(group):
                assert ctx.get(dut.ready)
                assert ctx.get(dut.count) == n
                set_probe(
                    ctx, dut, probe, close=ending if with_last and probe is group[-1] else None
                )
                assert ctx.get(dut.add_to) == 1 << n
                await ctx.tick()
                set_probe(ctx, dut, None)
                assert ctx.get(dut.add_to) == 0
                if not (with_last and probe is group[-1]):
                    for _ in range(generator.choice([0, 0, 1, 3])):
                        await ctx.tick()
            if not with_last:
                assert not ctx.get(dut.group.valid)
                set_probe(ctx, dut, None, close=ending)
                await ctx.tick()
                set_probe(ctx, dut, None)
            found = ctx.get(dut.group.payload)
            assert ctx.get(dut.count) == found.ending.count == len(group)
            assert (found.ending.star, found.ending.mark) == tuple(ending.values())
            if group:
                first = group[0][0]["tail"]["row"]
                assert found.first == first
                assert found.stop == group[-1][1]
                assert found.second == (first + 1) % rows
                assert found.newest_tail == group[-1][0]["tail"]["row"]
                assert found.oldest_head == group[0][0]["head"]["row"]
            wait = generator.randrange(4)
            for n in range(wait + 1):
                ctx.set(dut.group.ready, n == wait)
                assert ctx.get(dut.group.valid)
                assert ctx.get(Value.cast(dut.group.payload)) == Value.cast(found).value
                assert not ctx.get(dut.ready)
                await ctx.tick()
            ctx.set(dut.group.ready, 0)
            for _ in range(hold - 1):  # the transfer was in the first of these cycles
                assert not ctx.get(dut.ready)
                assert not ctx.get(dut.group.valid)
                await ctx.tick()

    simulate(dut, bench)


@pytest.mark.few(3)
@pytest.mark.parametrize("probes", [1, 2, 4])
@pytest.mark.parametrize("hold", [1, 2, 3])
def test_latency_and_a_probe_per_cycle_but_for_the_cycles_between_groups(probes, hold):
    parameters = collector_parameters(probes)
    dut = GroupCollector(parameters, hold=hold)
    span = ({"tail": {"lane": 0, "row": 0}, "head": {"lane": 0, "row": 3}}, 3)
    added, closed, valid = [], [], []

    async def bench(ctx):
        ctx.set(dut.group.ready, 1)
        count = 0
        for cycle in range(60):
            if ctx.get(dut.group.valid):
                valid.append(cycle)
            set_probe(ctx, dut, None)
            if ctx.get(dut.ready):
                count += 1
                close = {"star": 1} if count % probes == 0 else None
                set_probe(ctx, dut, span, close=close)
                added.append(cycle)
                if close:
                    closed.append(cycle)
            await ctx.tick()

    simulate(dut, bench)
    assert valid == [cycle + dut.latency for cycle in closed][: len(valid)]
    period = probes + hold
    assert added == [n for n in range(60) if n % period < probes]


def test_a_group_must_be_held():
    with pytest.raises(ValueError, match="held for at least one cycle, not 0"):
        GroupCollector(collector_parameters(1), hold=0)


def test_rows_of_a_group_are_as_wide_as_pointers():
    parameters = collector_parameters(2)
    row = pointer_layout(parameters)["row"].width
    layout = group_layout(parameters)
    names = [name for name, _ in layout if name != "ending"]
    assert names == ["first", "second", "stop", "newest_tail", "oldest_head"]
    assert {layout[name].width for name in names} == {row}
