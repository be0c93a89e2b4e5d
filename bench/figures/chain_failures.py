# SPDX-License-Identifier: Apache-2.0
"""A chain of cores of which one stops: how many tuples still get to the others."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import connect, flipped

from bench.handshake import HANDSHAKE, LOW_LATENCY
from bench.handshake.accelerator import ChainAccelerator
from hdl.parameters import JoinParameters, KeyField
from hdl.words.inputs import Control, InputKind, input_word
from sim.link.simulation import simulate

from .registry import Result, figure

__all__ = ["StoppableCore", "received"]

#: What a core is told beside its lanes.
INPUTS = ("position", "last", "reset")


class StoppableCore(wiring.Component):
    """A core of a chain that takes and sends nothing while ``stopped`` is high.

    Latency, throughput: those of the core.

    Parameters
    ----------
    core : HandshakeCore or ExpeditedCore
    """

    def __init__(self, core):
        self.core, self.latency, self.stopped = core, core.latency, Signal()
        super().__init__(core.signature)

    def elaborate(self, platform):
        m = Module()
        m.submodules.core = core = self.core
        arriving = [(self.r_i, core.r_i), (self.s_i, core.s_i)]
        leaving = [(self.r_o, core.r_o), (self.s_o, core.s_o)]
        leaving += zip(self.results, core.results, strict=True)
        for outside, inside in arriving:
            connect(m, flipped(outside), inside)
        for outside, inside in leaving:
            connect(m, inside, flipped(outside))
        m.d.comb += [getattr(core, name).eq(getattr(self, name)) for name in INPUTS]
        m.d.comb += self.taken.eq(core.taken)
        for side in range(2):
            m.d.comb += self.activity[side].eq(core.activity[side])
            if "held_i" in self.signature.members:
                m.d.comb += [
                    core.held_i[side].eq(self.held_i[side]),
                    self.held_o[side].eq(core.held_o[side]),
                ]
        with m.If(self.stopped):  # later assignments win
            m.d.comb += [
                *(outside.ready.eq(0) for outside, _ in arriving),
                *(inside.valid.eq(0) for _, inside in arriving),
                *(outside.valid.eq(0) for outside, _ in leaving),
                *(inside.ready.eq(0) for _, inside in leaving),
            ]
        return m


def received(architecture, cores, stopping, *, sub_window=8):
    """Return the words that each core takes of R's and of S's lane after one has stopped.

    Parameters
    ----------
    architecture : str
        One of the chains.
    cores : int
        Number of cores.
    stopping : int or None
        The core that stops when both windows are full. Then tuples are offered for as long as it
        takes to fill the windows again.
    sub_window : int
        Tuples of a side in a core.

    Returns
    -------
    list of (int, int)
        For each core, of R and of S.
    """
    parameters = JoinParameters.of(
        cores=cores, sub_window=sub_window, keys=(KeyField(name="x", bits=8),),
        comparator="equality", architecture=architecture, fan_in=2,
    )  # fmt: skip
    dut = ChainAccelerator(parameters)
    cores_of = dut.chain.cores
    core = cores_of[stopping or 0] = StoppableCore(cores_of[stopping or 0])
    layout, capacity = input_word(parameters), parameters.capacity
    taken = [[0, 0] for _ in range(cores)]

    def window(side):
        operands = {"op": Control.WINDOW, "index": side, "value": capacity}
        return layout.const({"kind": InputKind.CONTROL, "body": {"control": operands}})

    def tuples(count):
        for number in range(count):
            kind = InputKind.S if number % 2 else InputKind.R
            yield layout.const({"kind": kind, "body": {"tuple": {"key": {"x": number % 200}}}})

    async def bench(ctx):
        ctx.set(dut.o.ready, 1)
        ctx.set(dut.i.valid, 1)
        for word in (window(0), window(1), *tuples(4 * capacity)):
            ctx.set(dut.i.payload, word)
            await ctx.tick().until(dut.i.ready)
        ctx.set(core.stopped, stopping is not None)
        words = Cat(each.taken for each in cores_of)
        following = tuples(2 * capacity)
        ctx.set(dut.i.payload, next(following))
        for _ in range(cycles):
            *_, ready, bits = await ctx.tick().sample(dut.i.ready, words)
            for place in range(2 * cores):
                taken[place // 2][place % 2] += bits >> place & 1
            if ready:
                ctx.set(dut.i.payload, next(following, layout.const({"kind": InputKind.R})))

    # A tuple takes as many cycles as a core keeps tuples, and some for the coordinator.
    cycles = 2 * capacity * (sub_window + 8)
    simulate(dut, bench, deadline=5 * cycles)
    return [tuple(one) for one in taken]


@figure("failure.chain_words", unit="words", goal="<= 16")
def chain_words(report):
    """Words that any core of a handshake chain still takes after one of eight cores has stopped.

    Either chain, with windows of 64 tuples that have been filled twice; core 4 stops, and tuples
    are offered in every cycle for the time of a window. The most of either lane. Of SplitJoin with
    gates, the other cores go on (``failure.lost_pairs_exact``).
    """
    notes, most = [], 0
    for architecture in (HANDSHAKE, LOW_LATENCY):
        report(architecture)
        words = received(architecture, 8, 4)
        most = max(most, *(count for core in words for count in core))
        notes.append(f"{architecture}, words of R and S by core: {words}")
    return Result(most, notes=tuple(notes))
