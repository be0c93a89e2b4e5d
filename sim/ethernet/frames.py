# SPDX-License-Identifier: Apache-2.0
"""Frames of Ethernet as bytes, from the preamble to the checksum: made, and taken apart."""

from dataclasses import dataclass
import zlib

__all__ = [
    "BROADCAST",
    "Address",
    "Datagram",
    "arp_answer",
    "arp_request",
    "checksum",
    "datagram_frame",
    "frame",
    "on_the_line",
    "read_datagram",
    "read_line",
]

BROADCAST = b"\xff" * 6
PREAMBLE = b"\x55" * 7 + b"\xd5"
IPV4, ARP = b"\x08\x00", b"\x08\x06"
LEAST = 60


@dataclass(frozen=True)
class Address:
    """Address of an endpoint: MAC address, IPv4 address, UDP port."""

    mac: bytes
    ip: bytes
    port: int


@dataclass(frozen=True)
class Datagram:
    """Received UDP datagram: source, destination and payload."""

    source: Address
    target: Address
    data: bytes


def checksum(data):
    """Return the Internet checksum of IPv4 and UDP: the complement of the sum of 16-bit words."""
    data += bytes(len(data) % 2)
    total = sum(int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def frame(target, source, kind, payload):
    """Return an Ethernet frame with padding, without preamble and checksum (FCS)."""
    return (target + source + kind + payload).ljust(LEAST, b"\0")


def on_the_line(content):
    """Return an Ethernet frame as it passes the line, with preamble and checksum (FCS)."""
    return PREAMBLE + content + zlib.crc32(content).to_bytes(4, "little")


def read_line(data):
    """Return the frame in what has passed the line without a gap; None if it is damaged."""
    head, start, rest = data.partition(PREAMBLE[-1:])
    content, fcs = rest[:-4], rest[-4:]
    is_whole = bool(start) and not head.strip(PREAMBLE[:1]) and len(content) >= LEAST
    return content if is_whole and zlib.crc32(content).to_bytes(4, "little") == fcs else None


def datagram_frame(source, target, data, *, has_checksum=True, **changes):
    """Return the frame of a datagram from one address to another one.

    Parameters
    ----------
    source, target : Address
    data : bytes
    has_checksum : bool
        The datagram has a checksum of UDP.
    changes : bytes
        Fields of the header of IPv4 with other values: ``version`` (2), ``length`` (2), ``cut``
        (4), ``protocol`` (2), ``options``, and ``udp_length`` (2).
    """
    size = len(data) + 8
    options = changes.get("options", b"")
    udp = source.port.to_bytes(2, "big") + target.port.to_bytes(2, "big")
    udp += changes.get("udp_length", size.to_bytes(2, "big"))
    if has_checksum:
        pseudo = source.ip + target.ip + b"\0\x11" + size.to_bytes(2, "big")
        # A checksum of zero is sent as its other form, for zero says that there is none.
        found = checksum(pseudo + udp + bytes(2) + data) or 0xFFFF
        udp += found.to_bytes(2, "big")
    else:
        udp += bytes(2)
    total = 20 + len(options) + size
    ip = changes.get("version", bytes((0x45 + len(options) // 4, 0)))
    ip += changes.get("length", total.to_bytes(2, "big"))
    ip += changes.get("cut", b"\x12\x34\x40\0") + changes.get("protocol", b"\x40\x11")
    tail = source.ip + target.ip + options
    ip += checksum(ip + bytes(2) + tail).to_bytes(2, "big") + tail
    return frame(target.mac, source.mac, IPV4, ip + udp + data)


def read_datagram(content):
    """Return the datagram in a frame, with all sums and lengths checked; None if there is none."""
    if content[12:14] != IPV4 or content[14] != 0x45 or content[23] != 0x11:
        return None
    ip = content[14:34]
    total, size = (int.from_bytes(content[at : at + 2], "big") for at in (16, 38))
    udp = content[34 : 34 + size]
    assert checksum(ip) == 0
    assert total == size + 20 <= len(content) - 14
    if udp[6:8] != bytes(2):
        pseudo = ip[12:] + b"\0\x11" + size.to_bytes(2, "big")
        assert checksum(pseudo + udp) == 0
    ports = [int.from_bytes(udp[at : at + 2], "big") for at in (0, 2)]
    source = Address(content[6:12], ip[12:16], ports[0])
    target = Address(content[:6], ip[16:], ports[1])
    return Datagram(source, target, udp[8:])


def arp_request(source, ip, *, target=BROADCAST, **changes):
    """Return the ARP request for the address of ``ip``.

    The fields ``kinds`` and ``operation`` may have other values.
    """
    message = changes.get("kinds", b"\0\1\x08\0\6\4") + changes.get("operation", b"\0\1")
    return frame(target, source.mac, ARP, message + source.mac + source.ip + bytes(6) + ip)


def arp_answer(source, target):
    """Return the ARP reply that tells ``target`` the address of ``source``."""
    message = b"\0\1\x08\0\6\4\0\2" + source.mac + source.ip + target.mac + target.ip
    return frame(target.mac, source.mac, ARP, message)
