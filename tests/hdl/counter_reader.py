# SPDX-License-Identifier: Apache-2.0
"""Read the counters of an accelerator under test once nothing is under way in it any more."""

from amaranth.hdl import Value

from hdl.counters import CounterBank, counters_of

__all__ = ["counters_at_the_end"]


def counters_at_the_end(bench, dut, *, rest=10):
    """Let a bench read all counters at its end; return the dict that they will be in, by name.

    Parameters
    ----------
    bench : StreamBench
        Its other sources and sinks are done before.
    dut : Accelerator
        The accelerator.
    rest : int
        Cycles between the end of those and the first counter.
    """
    found = {}

    async def read(ctx):
        while bench._pending > 1:
            await ctx.tick()
        await ctx.tick().repeat(rest)
        for counter in counters_of(dut.parameters):
            ctx.set(dut.counter_addr, counter.address)
            await ctx.tick().repeat(CounterBank(dut.parameters).latency)
            found[counter.name] = ctx.get(Value.cast(dut.counter_data))
        bench.done()

    bench.spawn(read)
    return found
