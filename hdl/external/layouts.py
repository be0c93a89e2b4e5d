# SPDX-License-Identifier: Apache-2.0
"""Addresses and layouts of rows in external memory."""

from amaranth import *
from amaranth.lib import data
from amaranth.utils import ceil_log2

from hdl.words.prepared import stored_layout
from hdl.words.spans import pointer_layout

__all__ = ["burst_layout", "drive_address", "pass_layout", "row_bits", "run_layout"]


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


#: Rows of the recent ones that are copied in one go.
COPIES = 8


def row_bits(parameters):
    """Return the number of bits of a beat that hold keys; the others are zero."""
    return parameters.lanes * Shape.cast(stored_layout(parameters)).width


def row_pointer(parameters):
    """Return the shape of the number of a row, with a wrap bit."""
    return pointer_layout(parameters)["row"].shape


def pass_layout(parameters):
    """Layout of the rows of a pass: from ``first`` up to the one before ``stop``.

    An ``empty`` pass has one row, of which no key matters; its ``stop`` may be anything.
    """
    row = row_pointer(parameters)
    return data.StructLayout({"first": row, "stop": row, "empty": 1})


def burst_layout(parameters):
    """Layout of a burst of reads: its first row, and its number of rows less one."""
    return data.StructLayout(
        {"row": row_pointer(parameters), "more": ceil_log2(parameters.memory_burst)}
    )


def run_layout(parameters):
    """Layout of a run of rows from one source: read from memory, or ``copied``; less one."""
    longest = max(parameters.memory_burst, COPIES)
    return data.StructLayout({"copied": 1, "more": ceil_log2(longest)})
