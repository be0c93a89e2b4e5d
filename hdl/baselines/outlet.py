# SPDX-License-Identifier: Apache-2.0
"""The next tuple of a core to be sent on, read from its ring ahead of time."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.memory.key_column import KeyColumn
from hdl.words.prepared import stored_layout

__all__ = ["Outlet"]


class Outlet(wiring.Component):
    """Keep the oldest tuple of a ring in a register, so that it can be sent on at once.

    That takes one reading of the ring for each tuple, for which a pass stands still.

    Latency: 3 cycles from ``fetch`` to ``valid``. Throughput: a tuple in 4 cycles.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.

    Members
    -------
    readable : In(1)
        There is a tuple that can be read.
    leaves : In(1)
        It is sent on, or has expired.
    fetch : Out(1)
        It is read.
    fetched : In
        What was read two cycles ago.
    valid : Out(1)
        ``key`` is that of the oldest tuple.
    key : Out
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = KeyColumn.LATENCY + 1
        key = stored_layout(parameters)
        super().__init__(
            {
                "readable": In(1),
                "leaves": In(1),
                "fetch": Out(1),
                "fetched": In(key),
                "valid": Out(1),
                "key": Out(key),
            }
        )

    def elaborate(self, platform):
        m = Module()
        under_way = Signal(KeyColumn.LATENCY)
        key = Signal(self.key.shape(), reset_less=True)
        m.d.comb += [
            self.fetch.eq(self.readable & ~self.valid & ~under_way.any()),
            self.key.eq(key),
        ]
        m.d.sync += under_way.eq(Cat(self.fetch, under_way))
        with m.If(under_way[-1]):
            m.d.sync += [key.eq(self.fetched), self.valid.eq(1)]
        with m.If(self.leaves):
            m.d.sync += [under_way.eq(0), self.valid.eq(0)]
        return m
