# SPDX-License-Identifier: Apache-2.0
"""The bus between whoever reads and writes registers and the register file."""

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["ADDRESS_BITS", "DATA_BITS", "RegisterBus"]

#: Bits of the byte address of a register.
ADDRESS_BITS = 12
#: Bits of a register.
DATA_BITS = 32


class RegisterBus(wiring.Signature):
    """One access to one register at a time, as its initiator sees it.

    The initiator raises ``read`` or ``write``, never both, and holds the request with ``address``,
    ``data`` and ``strobe`` unchanged up to and including the cycle in which ``done`` is high
    (``data`` and ``strobe`` of a read mean nothing, and may change).
    ``done`` is high for that one cycle. A request that is still there in the next cycle is another
    one. ``done`` may come in the first cycle of a request, or after any number of cycles.

    Members
    -------
    address : Out(12)
        Byte address of the register, a multiple of four.
    read, write : Out(1)
        A request.
    data : Out(32)
        Value to be written.
    strobe : Out(4)
        Which bytes of ``data`` are written.
    answer : In(32)
        Value that was read; valid with ``done`` of a read.
    done : In(1)
        The request has been answered.
    refused : In(1)
        Valid with ``done``. There is no register at this address, or it cannot be written, and
        nothing has happened.
    """

    def __init__(self):
        super().__init__(
            {
                "address": Out(ADDRESS_BITS),
                "read": Out(1),
                "write": Out(1),
                "data": Out(DATA_BITS),
                "strobe": Out(DATA_BITS // 8),
                "answer": In(DATA_BITS),
                "done": In(1),
                "refused": In(1),
            }
        )
