# SPDX-License-Identifier: Apache-2.0
"""Address channels of AXI4: where a row lies in memory."""

from amaranth import *
from amaranth.utils import ceil_log2

__all__ = ["drive_address"]

#: Type of a burst whose addresses rise from beat to beat.
INCREMENTAL = 1


def drive_address(m, parameters, axi, channel, burst):
    """Drive an address channel, but for its handshake.

    Row ``n`` of the ring lies at ``n`` times the bytes of a beat. A burst never crosses a multiple
    of ``memory_burst`` rows, and so no boundary of 4 KiB either.

    Parameters
    ----------
    m : Module
    parameters : JoinParameters
        Parameters of the accelerator.
    axi : interface
        Members of a :func:`hdl.memory.axi4.memory_port`.
    channel : str
        ``"aw"`` or ``"ar"``.
    burst : View
        Its layout is :func:`hdl.external.layouts.burst_layout`.
    """
    size = ceil_log2(parameters.memory_width // 8)
    m.d.comb += [
        getattr(axi, f"{channel}addr").eq(Cat(Const(0, size), burst.row)),
        getattr(axi, f"{channel}len").eq(burst.more),
        getattr(axi, f"{channel}size").eq(size),
        getattr(axi, f"{channel}burst").eq(INCREMENTAL),
    ]
