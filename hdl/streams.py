# SPDX-License-Identifier: Apache-2.0
"""The registers and forks that data moves through.

========================  =======  ============  ===================  =========
component                 latency  throughput    paths it cuts        registers
========================  =======  ============  ===================  =========
:class:`StreamRegister`   1        1 per cycle   payload, ready       2 payloads
:class:`StreamFork`       0        1 per cycle   none                 1 bit per output
========================  =======  ============  ===================  =========

All follow the four transfer rules of Amaranth streams: a transfer happens when ``valid`` and
``ready`` are both high; a producer holds ``valid`` and ``payload`` until then; ``valid`` does not
wait for ``ready``; ``ready`` may do as it likes.
"""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["StreamRegister"]


class StreamRegister(wiring.Component):
    """A stream register without a combinational path from any input to any output.

    Holds up to two payloads: one at the output, and one that arrived while the output was stuck
    (a skid buffer). Reset empties it.

    Latency: 1 cycle. Throughput: 1 payload per cycle.

    Parameters
    ----------
    shape : shape-like
        Shape of the payload.

    Members
    -------
    i : In(stream.Signature(shape))
    o : Out(stream.Signature(shape))
    """

    def __init__(self, shape):
        self.shape = shape
        self.latency = 1
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform):
        m = Module()

        output = Signal(self.shape, reset_less=True)
        output_valid = Signal()
        spare = Signal(self.shape, reset_less=True)
        spare_valid = Signal()

        m.d.comb += [
            self.i.ready.eq(~spare_valid),
            self.o.valid.eq(output_valid),
            self.o.payload.eq(output),
        ]
        with m.If(~output_valid | self.o.ready):
            m.d.sync += [
                output.eq(Mux(spare_valid, spare, self.i.payload)),
                output_valid.eq(spare_valid | self.i.valid),
                spare_valid.eq(0),
            ]
        with m.Elif(self.i.valid):
            m.d.sync += spare_valid.eq(1)
        with m.If(~spare_valid):  # whether it is needed or not, so that `ready` has less to drive
            m.d.sync += spare.eq(self.i.payload)

        return m
