# SPDX-License-Identifier: Apache-2.0
"""A join core with a fault that a test switches on; the circuit of the core is the real one."""

from amaranth import *
from amaranth.lib import enum, wiring
from amaranth.lib.wiring import connect, flipped

from hdl.join_core import JoinCore

__all__ = ["FaultyCore", "Fault", "with_faulty_core"]


class Fault(enum.Enum, shape=3):
    """What is wrong with a core."""

    NONE = 0
    #: It takes no words, and shows no results.
    DEAD = 1
    #: It takes no words.
    REFUSES = 2
    #: It takes all words, and shows no results.
    SILENT = 3
    #: One of its regions shows no results.
    LEFT_SILENT = 4
    RIGHT_SILENT = 5
    #: It loses the words that it takes.
    LOSES_WORDS = 6
    #: It shows marks that nobody asked for.
    BABBLES = 7


class FaultyCore(wiring.Component):
    """A :class:`hdl.join_core.JoinCore` whose ports a ``fault`` disturbs.

    Latency: that of the core. Throughput: that of the core.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.core = JoinCore(parameters)
        self.latency = self.core.latency
        self.fault = Signal(Fault)
        super().__init__(self.core.signature)

    def elaborate(self, platform):
        m = Module()
        m.submodules.core = core = self.core
        connect(m, flipped(self.words), core.words)
        m.d.comb += [core.position.eq(self.position), core.reset.eq(self.reset)]
        fault = Value.cast(self.fault)
        silent = [
            fault.matches(Fault.DEAD, Fault.SILENT, own)
            for own in (Fault.LEFT_SILENT, Fault.RIGHT_SILENT)
        ]
        for n in range(2):
            connect(m, core.results[n], flipped(self.results[n]))
            m.d.comb += self.activity[n].eq(core.activity[n])
        # Later assignments win.
        with m.If(fault.matches(Fault.DEAD, Fault.REFUSES)):
            m.d.comb += [core.words.valid.eq(0), self.words.ready.eq(0)]
        with m.If(fault == Fault.LOSES_WORDS.value):
            m.d.comb += [core.words.valid.eq(0), self.words.ready.eq(1)]
        for n in range(2):
            with m.If(silent[n]):
                m.d.comb += [self.results[n].valid.eq(0), core.results[n].ready.eq(0)]
            with m.If(fault == Fault.BABBLES.value):
                m.d.comb += [self.results[n].valid.eq(1), self.results[n].payload.kind.eq(2)]
        return m


def with_faulty_core(accelerator, number):
    """Give an accelerator a :class:`FaultyCore` before it is elaborated; return that core."""
    faulty = FaultyCore(accelerator.parameters)
    accelerator.cores[number] = faulty
    return faulty
