# SPDX-License-Identifier: Apache-2.0
"""What frames of Ethernet consist of, and how components hand them on."""

from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

__all__ = [
    "ARP_BYTES",
    "DATAGRAM_BYTES",
    "ETHERNET_BYTES",
    "FCS_BYTES",
    "GAP_BYTES",
    "HEADER_BYTES",
    "IPV4_BYTES",
    "LEAST_BYTES",
    "LONGEST_BYTES",
    "NUMBER_BYTES",
    "PREAMBLE",
    "PREAMBLE_BYTES",
    "SFD",
    "UDP_BYTES",
    "FrameByte",
    "GmiiSignature",
    "ReceivedFrame",
]

#: Byte of the preamble, number of such bytes, and the byte between them and the frame.
PREAMBLE, PREAMBLE_BYTES, SFD = 0x55, 7, 0xD5
#: Bytes of the checksum at the end of a frame, and of the gap between two frames.
FCS_BYTES, GAP_BYTES = 4, 12
#: Bytes of a frame without its checksum: at the least, and at the most.
LEAST_BYTES, LONGEST_BYTES = 60, 1514
#: Bytes of the headers: of Ethernet, of IPv4 without options, of UDP; and of a message of ARP.
ETHERNET_BYTES, IPV4_BYTES, UDP_BYTES, ARP_BYTES = 14, 20, 8, 28
#: Bytes of a datagram's number, and most bytes of the byte stream behind it (``docs/link.md``).
NUMBER_BYTES, DATAGRAM_BYTES = 4, 1024
#: Bytes of a frame before the byte stream.
HEADER_BYTES = ETHERNET_BYTES + IPV4_BYTES + UDP_BYTES + NUMBER_BYTES


class FrameByte(data.Struct):
    """A byte of a frame that is to be sent, from the destination's address on."""

    #: The byte.
    byte: 8
    #: It is the last one before the padding and the checksum, which are added later.
    last: 1


class ReceivedFrame(wiring.Signature):
    """A frame while it is received, as its receiver sees it.

    Each byte is shown once, before it is known whether the frame is correct. At least four cycles
    pass from ``good`` or ``bad`` to the first byte of the next frame.

    Members
    -------
    byte : Out(8)
        A byte between preamble and end, the four bytes of the checksum among them.
    index : Out(range(1519))
        Its place; 0 is the first byte of the destination's address. It stays behind the last byte.
    strobe : Out(1)
        There is a byte.
    good, bad : Out(1)
        The frame has ended, and was correct or not; high for one cycle.
    """

    def __init__(self):
        super().__init__(
            {
                "byte": Out(8),
                "index": Out(range(LONGEST_BYTES + FCS_BYTES + 1)),
                "strobe": Out(1),
                "good": Out(1),
                "bad": Out(1),
            }
        )


class GmiiSignature(wiring.Signature):
    """The interface between a MAC and its PHY, one byte per cycle, as the MAC sees it.

    Members
    -------
    rx_data : In(8)
    rx_valid : In(1)
        A frame or its preamble is received.
    rx_error : In(1)
        The PHY could not read this byte.
    tx_data : Out(8)
    tx_enable : Out(1)
        A frame or its preamble is sent.
    tx_error : Out(1)
        The byte is damaged on purpose, so that the other side drops the frame.
    """

    def __init__(self):
        super().__init__(
            {
                "rx_data": In(8),
                "rx_valid": In(1),
                "rx_error": In(1),
                "tx_data": Out(8),
                "tx_enable": Out(1),
                "tx_error": Out(1),
            }
        )
