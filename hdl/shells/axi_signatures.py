# SPDX-License-Identifier: Apache-2.0
"""Signatures of AXI4-Lite and AXI4-Stream, with the names that AXI gives to their signals."""

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.registers.bus import ADDRESS_BITS, DATA_BITS

__all__ = ["OKAY", "SLVERR", "AxiLite", "AxiStream"]

#: Responses of AXI: done, and refused.
OKAY, SLVERR = 0, 2


class AxiLite(wiring.Signature):
    """AXI4-Lite with 32 bits of data, as the master sees it."""

    def __init__(self):
        super().__init__(
            {
                "awaddr": Out(ADDRESS_BITS),
                "awprot": Out(3),
                "awvalid": Out(1),
                "awready": In(1),
                "wdata": Out(DATA_BITS),
                "wstrb": Out(DATA_BITS // 8),
                "wvalid": Out(1),
                "wready": In(1),
                "bresp": In(2),
                "bvalid": In(1),
                "bready": Out(1),
                "araddr": Out(ADDRESS_BITS),
                "arprot": Out(3),
                "arvalid": Out(1),
                "arready": In(1),
                "rdata": In(DATA_BITS),
                "rresp": In(2),
                "rvalid": In(1),
                "rready": Out(1),
            }
        )


class AxiStream(wiring.Signature):
    """AXI4-Stream with data in whole bytes, as the master sees it.

    Parameters
    ----------
    size : int
        Bytes of ``tdata``.
    """

    def __init__(self, size):
        self.size = size
        super().__init__(
            {
                "tdata": Out(8 * size),
                "tkeep": Out(size),
                "tlast": Out(1),
                "tvalid": Out(1),
                "tready": In(1),
            }
        )
