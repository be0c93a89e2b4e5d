# SPDX-License-Identifier: Apache-2.0
"""An accelerator behind Ethernet, for boards: datagrams of UDP carry words and registers."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import Out, connect, flipped

from hdl.ethernet.frames import GmiiSignature
from hdl.ethernet.port import EthernetPort
from hdl.ethernet.settings import EthernetSettings
from hdl.streams.crossing import StreamCrossing

from .linked_accelerator import LinkedAccelerator, shell_link_settings

__all__ = ["EthernetShell", "ethernet_link_settings"]

#: Frames that there is room for, and frames that are sent without an acknowledgement. A window of
#: 8 kB hides 150 us of the host's delay at 50 MHz.
SLOTS = 32


def ethernet_link_settings(parameters, *, digest, **changes):
    """Return settings of a link over Ethernet, whose line is never slower than the link.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    digest : str
        Hash of the bundle's manifest, 64 hexadecimal digits.
    changes
        Other parameters of :func:`hdl.shells.linked_accelerator.shell_link_settings`.
    """
    slots = {"receive_slots": SLOTS, "send_slots": SLOTS}
    return shell_link_settings(parameters, digest=digest, byte_cycles=1, **{**slots, **changes})


class EthernetShell(wiring.Component):
    """An accelerator whose words and registers pass datagrams of UDP.

    The link and the accelerator have the clock domain ``sync``, the port of Ethernet has the clock
    domain ``ethernet`` of 125 MHz, which is that of the PHY. Both domains are reset together. When
    a host begins a session, the accelerator is reset for 16 cycles, in which no word passes.

    Latency: that of the accelerator, of the link and of :class:`hdl.ethernet.port.EthernetPort`.
    Throughput: 1 byte per cycle of the slower clock, of which 0.95 at the best carry words, both
    ways at once (``docs/link.md``).

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator, with one result stream.
    digest : str
        Hash of the bundle's manifest, 64 hexadecimal digits.
    ethernet : EthernetSettings
        Addresses and buffers.
    options
        Other parameters of :func:`ethernet_link_settings`.

    Members
    -------
    gmii : Out(GmiiSignature())
        The PHY, in the domain ``ethernet``.
    open : Out(1)
        A session has begun.
    interrupt : Out(1)
    """

    def __init__(self, parameters, *, digest, ethernet=None, **options):
        self.parameters = parameters
        self.ethernet = EthernetSettings() if ethernet is None else ethernet
        self.settings = ethernet_link_settings(parameters, digest=digest, **options)
        self._inside = LinkedAccelerator(
            parameters, digest=digest, settings=self.settings, shell="An Ethernet shell"
        )
        super().__init__({"gmii": Out(GmiiSignature()), "open": Out(1), "interrupt": Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.inside = inside = self._inside
        port = EthernetPort(self.ethernet)
        m.submodules.port = DomainRenamer("ethernet")(port)
        m.submodules.incoming = incoming = StreamCrossing(8, i_domain="ethernet", o_domain="sync")
        m.submodules.outgoing = outgoing = StreamCrossing(8, i_domain="sync", o_domain="ethernet")
        connect(m, port.gmii, flipped(self.gmii))
        connect(m, port.o, incoming.i)
        connect(m, incoming.o, inside.i)
        connect(m, inside.o, outgoing.i)
        connect(m, outgoing.o, port.i)
        m.d.comb += [self.open.eq(inside.open), self.interrupt.eq(inside.interrupt)]
        return m
