# SPDX-License-Identifier: Apache-2.0
"""What is kept of a pass while some of its candidates are still to be verified."""

from amaranth import *
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out

from hdl.layouts import pointer_layout

__all__ = ["PassTable"]


class PassTable(wiring.Component):
    """Keep the rests of the probes, and the first row, of every pass until it is verified.

    Passes are verified in the order in which they are taken, so a place in the table is that of the
    group that is being collected, or of a pass that ``began`` and has not ``ended``.

    Latency: 1 cycle from writing to reading. Throughput: 1 probe, one beginning and one end of a
    pass per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator; with digests.

    Members
    -------
    add_to : In(probes)
        Which probe of the group that is being collected has ``rest``, one-hot.
    rest : In
    began : In(1)
        The pass of that group begins, in row ``first``; what is added from the next cycle on
        belongs to another group. Only while there is ``room``.
    first : In
    ended : In(1)
        The oldest pass is verified.
    room : Out(1)
        From a register.
    pending : Out(1)
        Some pass began and has not ended.
    oldest : Out
        The first row of the oldest such pass.
    rests : Out
        Of its probes.
    """

    #: Places, as many as a distributed RAM has: more than rows wait in a queue of matches.
    PASSES = 16

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 1
        rest = parameters.key_bits - parameters.digest_bits
        row = pointer_layout(parameters)["row"].shape
        super().__init__(
            {
                "add_to": In(parameters.probes),
                "rest": In(rest),
                "began": In(1),
                "first": In(row),
                "ended": In(1),
                "room": Out(1, init=1),
                "pending": Out(1),
                "oldest": Out(row),
                "rests": Out(data.ArrayLayout(rest, parameters.probes)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        collecting, oldest = Signal(range(self.PASSES)), Signal(range(self.PASSES))
        under_way = (collecting - oldest)[: len(oldest)]
        m.d.comb += self.pending.eq(under_way != 0)
        m.d.sync += [
            collecting.eq(collecting + self.began),
            oldest.eq(oldest + self.ended),
            # What ends in this cycle makes room in the one after the next.
            self.room.eq(under_way + self.began < self.PASSES - 1),
        ]
        columns = [("first", self.began, self.first, self.oldest)]
        columns += [
            (f"rest_{n}", self.add_to[n], self.rest, self.rests[n])
            for n in range(self.parameters.probes)
        ]
        for name, enable, value, kept in columns:
            m.submodules[name] = column = memory.Memory(
                shape=value.shape(), depth=self.PASSES, init=[]
            )
            write, read = column.write_port(), column.read_port(domain="comb")
            m.d.comb += [
                write.addr.eq(collecting),
                write.en.eq(enable),
                write.data.eq(value),
                read.addr.eq(oldest),
                kept.eq(read.data),
            ]
        return m
