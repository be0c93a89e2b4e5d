# SPDX-License-Identifier: Apache-2.0
"""AXI4 ports to an external memory, with the names that AXI gives to their signals."""

from dataclasses import dataclass

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

__all__ = [
    "ADDRESS_BITS",
    "OKAY",
    "Axi4",
    "BaseAddress",
    "memory_members",
    "memory_port",
    "shared_port",
]

#: Response of AXI to a transaction that was done.
OKAY = 0

LENGTH_BITS = 8
SIZE_BITS = 3
BURST_BITS = 2
RESPONSE_BITS = 2


class Axi4(wiring.Signature):
    """AXI4 as a master sees it, which sends all transactions under one identifier.

    There are no signals for locks, quality of service, regions and users, whose defaults suit every
    memory. All bursts are incremental, and every beat is as wide as the port.

    Parameters
    ----------
    address_bits : int
        Width of a byte address.
    data_bits : int
        Width of a beat.
    """

    def __init__(self, *, address_bits, data_bits):
        self.address_bits = address_bits
        self.data_bits = data_bits
        super().__init__(
            {
                **self.address_members("aw"),
                "wdata": Out(data_bits),
                "wstrb": Out(data_bits // 8),
                "wlast": Out(1),
                "wvalid": Out(1),
                "wready": In(1),
                "bid": In(1),
                "bresp": In(RESPONSE_BITS),
                "bvalid": In(1),
                "bready": Out(1),
                **self.address_members("ar"),
                "rid": In(1),
                "rdata": In(data_bits),
                "rresp": In(RESPONSE_BITS),
                "rlast": In(1),
                "rvalid": In(1),
                "rready": Out(1),
            }
        )

    def address_members(self, channel):
        """Return the members of an address channel, ``aw`` or ``ar``."""
        return {
            f"{channel}id": Out(1),
            f"{channel}addr": Out(self.address_bits),
            f"{channel}len": Out(LENGTH_BITS),
            f"{channel}size": Out(SIZE_BITS),
            f"{channel}burst": Out(BURST_BITS),
            f"{channel}valid": Out(1),
            f"{channel}ready": In(1),
        }


def memory_port(parameters):
    """Return the signature of a region's port to its external memory.

    The addresses of a port begin at zero, and reach as far as the region's ring.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator, whose ``store`` is external.
    """
    beat_bytes = parameters.engine.memory_width // 8
    return Axi4(
        address_bits=ceil_log2(parameters.ring_rows * beat_bytes),
        data_bits=parameters.engine.memory_width,
    )


#: Bits of an address of the memory that all regions share.
ADDRESS_BITS = 64


def shared_port(parameters):
    """Return the signature of a region's port to the memory that all regions share.

    Its addresses are those of the whole memory, as :class:`BaseAddress` composes them.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator, whose ``store`` is external.
    """
    return Axi4(address_bits=ADDRESS_BITS, data_bits=parameters.engine.memory_width)


@dataclass(frozen=True)
class BaseAddress:
    """The base address of the memory that all regions share: what each bit of an address says.

    From the lowest bit on, an address has the byte in the region's ring, the number of the region,
    and the base. So no address takes an adder, and a base is a multiple of the room of all regions.

    Parameters
    ----------
    ring_bits : int
        Bits of a byte address in the ring of a region.
    region_bits : int
        Bits of the number of a region.
    """

    ring_bits: int
    region_bits: int

    @classmethod
    def of(cls, parameters):
        """Return that of an accelerator; None if its windows are on the chip."""
        if not parameters.engine.has_memory:
            return None
        ring_bits = memory_port(parameters).address_bits
        return cls(ring_bits, ceil_log2(2 * parameters.cores))

    @property
    def least_bit(self):
        """Lowest bit of the base. Those below are zero."""
        return self.ring_bits + self.region_bits

    @property
    def bits(self):
        """Number of bits of the base."""
        return ADDRESS_BITS - self.least_bit

    def above_ring(self, region, base):
        """Return the bits of an address of a region above that in its ring, from the base's."""
        return Cat(Const(region, self.region_bits), base)


def memory_members(parameters, regions=None, *, port=memory_port):
    """Return the member ``m_axi`` of a component whose windows are in external memory.

    There is no such member if windows are on the chip.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    regions : int or None
        Number of regions that the component has, for an array of so many ports; None for one port.
    port : callable
        :func:`memory_port` or :func:`shared_port`.
    """
    if not parameters.engine.has_memory:
        return {}
    member = Out(port(parameters))
    return {"m_axi": member if regions is None else member.array(regions)}
