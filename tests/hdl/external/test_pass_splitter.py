# SPDX-License-Identifier: Apache-2.0
"""Where the rows of passes come from, while rows become written and others pause."""

from itertools import pairwise
import random

from hypothesis import given, settings
from hypothesis import strategies as st

from hdl.external.reads import COPIES, PassSplitter, burst_layout, pass_layout, run_layout
from tests.hdl.external.shapes import external_parameters
from tests.hdl.stream_bench import StreamBench


def split(parameters, passes, *, written, stalls=0.0, seed=0, moves=0.0):
    """Split passes; return the runs as (copied, rows), the rows of each as ring positions.

    ``written`` begins there and moves on at random, up to the last row of all passes.
    """
    dut = PassSplitter(parameters)
    bench = StreamBench(dut, deadline=4_000, stalls=stalls, seed=seed)
    generator = random.Random(seed)
    wrap, most = 2 * parameters.ring_rows, max(stop for _, stop, _ in passes)
    bench.source(
        dut.passes,
        [
            pass_layout(parameters).const({"first": first % wrap, "stop": stop % wrap, "empty": e})
            for first, stop, e in passes
        ],
    )
    total = sum(1 if empty else stop - first for first, stop, empty in passes)
    runs, events, seen, cycles = [], [], 0, []

    async def observe(ctx):
        nonlocal seen
        now, held, cycle = written, 0, 0
        while seen < total:
            if now < most and generator.random() < moves:
                now += 1
            ctx.set(dut.written, now % wrap)
            ctx.set(dut.room, held <= COPIES)
            ctx.set(dut.run_room, generator.random() >= stalls)
            ctx.set(dut.blocked, generator.random() < stalls)
            ctx.set(dut.bursts.ready, generator.random() >= stalls)
            if ctx.get(dut.run):
                run = run_layout(parameters).from_bits(ctx.get(dut.rows.as_value()))
                runs.append((run.copied, run.more + 1))
            if ctx.get(dut.bursts.valid) and ctx.get(dut.bursts.ready):
                burst = burst_layout(parameters).from_bits(ctx.get(dut.bursts.payload.as_value()))
                events.append((0, burst.row, burst.more + 1, now))
                seen += burst.more + 1
                cycles.append(cycle)
            if ctx.get(dut.copy):
                events.append((1, ctx.get(dut.address), 1, now))
                seen += 1
                held += 1
            held = max(0, held - (generator.random() < 0.7))
            await ctx.tick()
            cycle += 1
        bench.done()

    bench.spawn(observe)
    bench.run()
    return runs, events, cycles


@settings(max_examples=12)
@given(
    burst=st.sampled_from([1, 2, 4, 16]),
    start=st.integers(0, 200),
    lengths=st.lists(st.integers(1, 60), min_size=1, max_size=4),
    behind=st.integers(0, 30),
    stalls=st.sampled_from([0.0, 0.4]),
    moves=st.sampled_from([0.0, 0.2]),
    seed=st.integers(0, 1 << 16),
)
def test_every_row_comes_once_from_where_it_is(burst, start, lengths, behind, stalls, moves, seed):
    parameters = external_parameters(memory_burst=burst, sub_window=200)
    passes, first = [], start
    for n, length in enumerate(lengths):
        passes.append((first, first + length, int(n % 3 == 2)))
        first += random.Random(seed + n).randrange(length + 1)
    most = max(stop for _, stop, _ in passes)
    written = max(start, most - behind)
    runs, events, _ = split(
        parameters, passes, written=written, stalls=stalls, seed=seed, moves=moves
    )
    rows, wanted = [], []
    ring, recent = 2 * parameters.ring_rows, parameters.engine.recent_rows
    for copied, row, count, now in events:
        for n in range(count):
            rows.append((copied, (row + n) % (recent if copied else ring), now))
        if not copied:
            assert row % burst + count <= burst
    for first_, stop, empty in passes:
        wanted += [(first_, 1)] if empty else [(row, 0) for row in range(first_, stop)]
    assert len(rows) == len(wanted)
    for (copied, place, now), (row, empty) in zip(rows, wanted, strict=True):
        assert place == row % (recent if copied else ring)
        if not copied:
            assert row < now
            assert not empty
        elif not empty:
            # It was not written when its run was decided, and stays among the recent rows.
            assert row >= now - 2 * COPIES - 60 * moves
    flat = [copied for copied, count in runs for _ in range(count)]
    assert flat == [copied for copied, *_ in rows]


def test_a_burst_takes_two_cycles():
    parameters = external_parameters(memory_burst=4, sub_window=200)
    _, events, cycles = split(parameters, [(0, 80, 0)], written=80)
    assert [count for _, _, count, _ in events] == [4] * 20
    assert {b - a for a, b in pairwise(cycles)} == {2}
