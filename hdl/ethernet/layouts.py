# SPDX-License-Identifier: Apache-2.0
"""Layouts of what components for Ethernet tell each other."""

from amaranth.lib import data

__all__ = ["Peer", "network_bytes"]


class Peer(data.Struct):
    """Who datagrams come from and go to."""

    #: UDP port.
    port: 16
    #: IPv4 address.
    ip: 32
    #: Address in Ethernet.
    mac: 48


def network_bytes(value):
    """Return the bytes of a number or field as it is sent, the highest byte first."""
    return [value.word_select(n, 8) for n in reversed(range(len(value) // 8))]
