# SPDX-License-Identifier: Apache-2.0
"""Copies of an accelerator's counters, from which both halves of a counter are read."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hdl.counters import COUNTER_BITS, COUNTER_LATENCY
from hdl.families.choice import family_of

from .bus import ADDRESS_BITS, DATA_BITS
from .shell_table import COUNTERS_ADDRESS

__all__ = ["CounterSnapshot"]


class CounterSnapshot(wiring.Component):
    """Copy the counters of an accelerator one after the other, and let both halves be read.

    A counter takes 48 bits and a register 32, so two reads of a counter that counts would not fit
    together. Copies do. They are made one after the other, so the n-th counter is copied n cycles
    later than the first one. ``ready`` is low from ``start`` on until all have been copied, and
    nothing is read then. The first copies are made when the reset of the accelerator ends.

    Latency: :attr:`latency` cycles from ``start`` to ``ready``; 1 cycle from ``address`` to
    ``data``. Throughput: 1 register per cycle.

    Parameters
    ----------
    parameters : JoinParameters or AggregateParameters
        Parameters of the accelerator.

    Members
    -------
    start : In(1)
        Make new copies. Ignored while copies are made.
    resetting : In(1)
        The accelerator is being reset. Copies are made when it no longer is.
    ready : Out(1)
        The copies can be read.
    address : In(12)
        Byte address of the half that is read (:data:`COUNTERS_ADDRESS`).
    data : Out(32)
        The half whose address was there in the cycle before.
    counter_addr : Out
        Address of the counter that is copied.
    counter_data : In(48)
        Value of the counter whose address was there two cycles before.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        family = family_of(parameters)
        self.depth = 1 << family.counter_address_bits
        self._last = family.counters[-1].address
        self.latency = self._last + 1 + COUNTER_LATENCY + 1
        super().__init__(
            {
                "start": In(1),
                "resetting": In(1),
                "ready": Out(1),
                "address": In(ADDRESS_BITS),
                "data": Out(DATA_BITS),
                "counter_addr": Out(family.counter_address_bits),
                "counter_data": In(COUNTER_BITS),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.copies = copies = Memory(shape=COUNTER_BITS, depth=self.depth, init=[])
        written, read = copies.write_port(), copies.read_port()
        # Counts through the counters, and the cycles until the last one has come.
        step = Signal(range(self.latency + 1))
        running = Signal(init=1)
        with m.If(self.resetting):
            m.d.sync += [running.eq(1), step.eq(0)]
        with m.Elif(running):
            m.d.sync += [step.eq(step + 1), running.eq(step != self.latency - 2)]
        with m.Else():
            m.d.sync += [running.eq(self.start), step.eq(0)]
        m.d.comb += [
            self.ready.eq(~running & ~self.resetting & ~self.start),
            self.counter_addr.eq(step),
            written.addr.eq(step - COUNTER_LATENCY),
            written.en.eq(running & (step >= COUNTER_LATENCY)),
            written.data.eq(self.counter_data),
        ]
        index = (self.address - COUNTERS_ADDRESS)[2:]
        upper = Signal()
        m.d.sync += upper.eq(index[0])
        m.d.comb += read.addr.eq(index[1:])
        halves = Cat(read.data, Const(0, 2 * DATA_BITS - COUNTER_BITS))
        m.d.comb += self.data.eq(halves.word_select(upper, DATA_BITS))
        return m
