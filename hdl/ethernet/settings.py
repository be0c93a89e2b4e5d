# SPDX-License-Identifier: Apache-2.0
"""Addresses of a board in its network, and what can be chosen of its datagrams."""

from dataclasses import dataclass
import ipaddress
import re

from .frames import DATAGRAM_BYTES

__all__ = ["EthernetSettings"]


@dataclass(frozen=True, kw_only=True)
class EthernetSettings:
    """Addresses and buffers of a board behind Ethernet.

    Parameters
    ----------
    mac : str
        The board's own address. The default is locally administered, and belongs to no vendor.
        Boards in one network need different ones.
    ip : str
        The board's IPv4 address.
    port : int
        UDP port that the board listens at and sends from.
    idle_cycles : int
        Cycles at 125 MHz without a byte to send after which a datagram is closed that is not full.
    receive_bytes : int
        Bytes that were received and not read yet, a power of two of at least 2,048. A datagram for
        which there is no room is lost.

    Raises
    ------
    ValueError
        If an address is none that a board can have, or a number is out of range.
    """

    mac: str = "02:00:00:53:4a:01"
    ip: str = "192.168.1.50"
    port: int = 21322
    idle_cycles: int = 250
    receive_bytes: int = 8192

    def __post_init__(self):
        if not re.fullmatch("[0-9a-f]{2}(:[0-9a-f]{2}){5}", self.mac.lower()):
            raise ValueError(
                f"Address of a board must be six bytes such as 02:00:00:53:4a:01, not {self.mac!r}"
            )
        if self.mac_bytes[0] & 1 or not any(self.mac_bytes):
            raise ValueError(
                f"Address of a board must be one of a single device, whose first byte is even, not "
                f"{self.mac!r}"
            )
        address = ipaddress.IPv4Address(self.ip)
        if address.is_multicast or address.is_loopback or address.is_reserved or not int(address):
            raise ValueError(f"IPv4 address of a board must be one of a device, not {self.ip!r}")
        if not 1 <= self.port <= 0xFFFF:
            raise ValueError(f"UDP port must be 1 to 65535, not {self.port!r}")
        if self.idle_cycles < 1:
            raise ValueError(f"A datagram must wait at least one cycle, not {self.idle_cycles!r}")
        size = self.receive_bytes
        if size < 2 * DATAGRAM_BYTES or size & (size - 1):
            raise ValueError(
                f"Buffer of received bytes must be a power of two of at least "
                f"{2 * DATAGRAM_BYTES} bytes, not {size!r}"
            )

    @property
    def mac_bytes(self):
        """Return the bytes of the address, in the order in which they are sent."""
        return bytes.fromhex(self.mac.replace(":", ""))

    @property
    def ip_bytes(self):
        """Return the bytes of the IPv4 address, in the order in which they are sent."""
        return ipaddress.IPv4Address(self.ip).packed

    @property
    def port_bytes(self):
        """Return the bytes of the port, in the order in which they are sent."""
        return self.port.to_bytes(2, "big")
