# SPDX-License-Identifier: Apache-2.0
"""Runs the words of sources through a ScaleGate."""

from sim.model.scale_gate import GateWordKind
from tests.hdl.scalegate.gate_words import expected, send, words
from tests.hdl.stream_bench import StreamBench

__all__ = ["KEPT", "is_kept", "run", "run_timed"]

#: Kinds of words that leave whatever the timing.
KEPT = (GateWordKind.TUPLE, GateWordKind.BARRIER)


def is_kept(dut):
    """Return a function that tells whether a word of the output, as a number, is a kept one."""
    layout = dut.o.payload.shape()
    return lambda bits: GateWordKind(layout.from_bits(bits).kind.value) in KEPT


def run(dut, sources, *, stalls=0.0, seed=0, beside=()):
    """Run until all that the reference expects has left; return every word that leaves.

    ``beside`` are testbenches that run as long.
    """
    bench = StreamBench(dut, deadline=20_000, stalls=stalls, seed=seed)
    layout = dut.i[0].payload.shape()
    for i, source in zip(dut.i, sources, strict=True):
        bench.source(i, [send(layout, word) for word in source])
    for process in beside:
        bench.simulator.add_testbench(process, background=True)
    received = bench.sink(dut.o, len(expected(sources)), weight=is_kept(dut))
    bench.run(extra_cycles=4 * dut.latency)
    return words(dut.o.payload.shape(), received)


def run_timed(dut, timetables, *, cycles, beside=()):
    """Run for some cycles, without stalls at the output.

    Each source has pairs of a word and the cycle in which it is offered, or later, when the word
    before it has been taken. ``beside`` are functions that get the bench and return testbenches.

    Returns
    -------
    received : list
        The words that leave, without watermarks and such.
    stamps : list of list of int
        The cycles in which the words of each source are taken.
    """
    bench = StreamBench(dut, deadline=cycles + 1)
    layout = dut.i[0].payload.shape()
    stamps = [[] for _ in timetables]

    def source(i, timetable, taken):
        async def process(ctx):
            for word, at in timetable:
                while bench.cycle < at:
                    await ctx.tick()
                ctx.set(i.payload, send(layout, word))
                ctx.set(i.valid, 1)
                await ctx.tick().until(i.ready)
                taken.append(bench.cycle - 1)
                ctx.set(i.valid, 0)

        return process

    async def end(ctx):
        await ctx.tick().repeat(cycles)
        bench.done()

    parts = zip(dut.i, timetables, stamps, strict=True)
    for process in [*(source(*part) for part in parts), *(some(bench) for some in beside)]:
        bench.simulator.add_testbench(process, background=True)
    received = bench.sink(dut.o, 0)
    bench.spawn(end)
    bench.run(extra_cycles=1)
    assert [len(taken) for taken in stamps] == [len(timetable) for timetable in timetables]
    return [word for word in words(dut.o.payload.shape(), received) if word.kind in KEPT], stamps
