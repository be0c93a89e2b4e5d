# SPDX-License-Identifier: Apache-2.0
"""Pass table: the probes of all passes that are not verified yet."""

from amaranth import *
from amaranth.lib import data, memory, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from hdl.memory.key_column import KeyColumn
from hdl.words.spans import pointer_layout

from .layouts import verified_probe_layout

__all__ = ["PassTable", "pass_reading"]


def pass_reading(parameters):
    """Return the signature through which a table of passes is read, as seen from the table.

    ``first`` : Out
        First row of the pass that is read; undefined until the pass has begun.
    ``count`` : Out
        Number of its probes; undefined until the pass has begun.
    ``number`` : In
        Index of the probe to read.
    ``probe`` : Out(verified_probe_layout(parameters))
        That probe, after the latency of the table.
    ``following`` : In(1)
        From the next cycle on, the next pass is read. Only if the current one has begun.
    ``ended`` : In(1)
        The oldest pass is verified: all its probes have been read out of the table.
    """
    return wiring.Signature(
        {
            "first": Out(pointer_layout(parameters)["row"].shape),
            "count": Out(range(parameters.probes + 1)),
            "number": In(ceil_log2(parameters.probes)),
            "probe": Out(verified_probe_layout(parameters)),
            "following": In(1),
            "ended": In(1),
        }
    )


class PassTable(wiring.Component):
    """Keep key and span of every probe until its pass is verified.

    Passes are verified in the order in which they begin, so the table is a ring of passes. It
    holds, from old to new: the passes from the oldest one to the one that is being read, whose
    probes may still be on their way out of the table; the passes that began after it; and the group
    that is being collected.

    Latency: 1 cycle from writing to reading, :attr:`latency` from ``reading.number`` to
    ``reading.probe``. Throughput: 1 probe written and 1 read, 1 pass begun and 1 ended, per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator; with digests.
    delay : int
        Cycles by which reading is delayed, so that a probe arrives together with the key.

    Members
    -------
    add : In(1)
        Write ``probe``, which has this ``number`` in the group that is being collected.
    number : In
    probe : In(verified_probe_layout(parameters))
    began : In(1)
        The pass of the collected group begins: it has ``count`` probes, and its first row is
        ``first``. Probes added from the next cycle on belong to the next group. Only while there is
        ``room``.
    first, count : In
    room : Out(1)
        Fewer than ``PASSES - 1`` passes are pending. From a register: a pass that begins counts
        from the next cycle on, and one that ends is still counted in the next cycle.
    pending : Out(1)
        A pass has begun and has not ended.
    oldest : Out
        First row of the oldest pending pass; only while ``pending``.
    reading : Out(pass_reading(parameters))
    """

    #: Number of passes: the depth of a distributed RAM, and close to the number of rows that can
    #: wait in a match queue.
    PASSES = 16

    def __init__(self, parameters, *, delay):
        self.parameters = parameters
        self.delay = delay
        self.latency = delay + KeyColumn.LATENCY
        row = pointer_layout(parameters)["row"].shape
        count = range(parameters.probes + 1)
        super().__init__(
            {
                "add": In(1),
                "number": In(ceil_log2(parameters.probes)),
                "probe": In(verified_probe_layout(parameters)),
                "began": In(1),
                "first": In(row),
                "count": In(count),
                "room": Out(1, init=1),
                "pending": Out(1),
                "oldest": Out(row),
                "reading": Out(pass_reading(parameters)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        reading = self.reading
        collecting, read, oldest = (
            Signal(range(self.PASSES), name=name) for name in ("collecting", "read", "oldest")
        )
        under_way = (collecting - oldest)[: len(oldest)]
        m.d.comb += self.pending.eq(under_way != 0)
        m.d.sync += [
            collecting.eq(collecting + self.began),
            read.eq(read + reading.following),
            oldest.eq(oldest + reading.ended),
            # A pass that ends in this cycle makes room in the cycle after the next. Both cases are
            # computed before it is known whether a pass begins.
            self.room.eq(Mux(self.began, under_way < self.PASSES - 2, under_way < self.PASSES - 1)),
        ]
        self.elaborate_probes(m, collecting, read)

        ends = data.StructLayout({"first": self.first.shape(), "count": self.count.shape()})
        m.submodules.ends = passes = memory.Memory(shape=ends, depth=self.PASSES, init=[])
        write = passes.write_port()
        of_oldest, of_read = (passes.read_port(domain="comb") for _ in range(2))
        m.d.comb += [
            write.addr.eq(collecting),
            write.en.eq(self.began),
            write.data.first.eq(self.first),
            write.data.count.eq(self.count),
            of_oldest.addr.eq(oldest),
            self.oldest.eq(of_oldest.data.first),
            of_read.addr.eq(read),
            reading.first.eq(of_read.data.first),
            reading.count.eq(of_read.data.count),
        ]
        return m

    def elaborate_probes(self, m, collecting, read):
        """Write a probe of the group being collected; read one of the pass being read."""
        address = Cat(self.reading.number, read)
        for cycle in range(self.delay):
            later = Signal.like(address, name=f"address_{cycle + 1}", reset_less=True)
            m.d.sync += later.eq(address)
            address = later
        m.submodules.probes = probes = KeyColumn(
            width=len(Value.cast(self.probe)), depth=1 << len(address)
        )
        m.d.comb += [
            probes.write.eq(self.add),
            probes.place.eq(Cat(self.number, collecting)),
            probes.row.eq(self.probe),
            probes.address.eq(address),
            Value.cast(self.reading.probe).eq(probes.data),
        ]
