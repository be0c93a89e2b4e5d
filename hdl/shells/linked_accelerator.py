# SPDX-License-Identifier: Apache-2.0
"""An accelerator behind a link, over a byte stream or Ethernet."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.ethernet.frames import GmiiSignature
from hdl.ethernet.port import EthernetPort
from hdl.ethernet.settings import EthernetSettings
from hdl.families.choice import make_accelerator
from hdl.link.endpoint import BoardEndpoint
from hdl.link.settings import SLOT_BYTES, LinkSettings
from hdl.streams.queues import StreamCrossing
from hdl.words.inputs import input_word
from hdl.words.results import result_ports, result_word

from .bus_crossing import ResetStretch, refuse_external_windows
from .merged_inputs import WordWatch
from .registers import ShellRegisters, hash_number

__all__ = ["EthernetShell", "LinkedAccelerator", "ethernet_link_settings", "shell_link_settings"]


#: Cycles that a host may take to answer, besides the time on the line: 5 ms at 50 MHz.
HOST_CYCLES = 1 << 18


def shell_link_settings(parameters, *, digest, byte_cycles, host_cycles=HOST_CYCLES, **changes):
    """Return settings of a shell's link, with times that follow from the rate of its line.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    digest : str
        Hash of the bundle's manifest, 64 hexadecimal digits.
    byte_cycles : int
        Clock cycles that a byte takes on the line.
    host_cycles : int
        Cycles that the host may take to answer, besides the time on the line.
    changes
        Other parameters of :class:`hdl.link.settings.LinkSettings`.
    """
    hash_number(digest)
    refuse_aggregates(parameters)
    chosen = LinkSettings(
        input_bits=input_word(parameters).size,
        result_bits=result_word(parameters).size,
        hash=bytes.fromhex(digest),
        **changes,
    )
    window = max(chosen.send_slots, chosen.receive_slots) * SLOT_BYTES * byte_cycles
    times = {
        "timeout_cycles": 2 * window + host_cycles,
        "heartbeat_cycles": window + host_cycles // 2,
    }
    return LinkSettings(**{**vars(chosen), **times, **changes})


def refuse_aggregates(parameters):
    """Raise :exc:`ValueError` for an aggregate, whose words no host sends over a link yet."""
    parameters.require_join("A link carries the words of joins", "take the AXI shell (--shell axi)")


class LinkedAccelerator(wiring.Component):
    """An accelerator whose words and registers pass a link over a byte stream each way.

    When a host begins a session, the accelerator is reset for 16 cycles, in which no word passes.
    The registers are those of the AXI shell.

    Latency: that of the accelerator and of :class:`hdl.link.endpoint.BoardEndpoint`. Throughput: 1
    byte per cycle each way, as that of the endpoint.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator, with one result stream and windows on the chip.
    digest : str
        Hash of the bundle's manifest, 64 hexadecimal digits.
    settings : LinkSettings
        Settings of the link, from :func:`shell_link_settings`.
    shell : str
        What messages call the shell.

    Members
    -------
    i : In(stream.Signature(8, always_ready=True))
        Bytes from the host.
    o : Out(stream.Signature(8))
        Bytes to the host.
    open : Out(1)
        A session has begun.
    interrupt : Out(1)
    """

    def __init__(self, parameters, *, digest, settings, shell):
        refuse_aggregates(parameters)
        if len(result_ports(parameters)) != 1:
            raise ValueError(
                f"{shell} needs an accelerator with one result stream, not "
                f"result_streams={parameters.engine.result_streams!r}"
            )
        refuse_external_windows(parameters, shell)
        self.parameters = parameters
        self.settings = settings
        self._hash = hash_number(digest)
        super().__init__(
            {
                "i": In(stream.Signature(8, always_ready=True)),
                "o": Out(stream.Signature(8)),
                "open": Out(1),
                "interrupt": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.domains.inside = inside = ClockDomain(local=True)
        m.submodules.link = link = BoardEndpoint(self.settings)
        m.submodules.stretch = stretch = ResetStretch()
        m.submodules.registers = registers = ShellRegisters(self.parameters)
        accelerator = DomainRenamer("inside")(make_accelerator(self.parameters))
        m.submodules.accelerator = accelerator
        m.submodules.watch = watch = DomainRenamer("inside")(WordWatch(self.parameters))
        connect(m, flipped(self.i), link.i)
        connect(m, link.o, flipped(self.o))
        connect(m, link.registers, registers.bus)
        m.d.comb += [
            self.open.eq(link.open),
            self.interrupt.eq(registers.interrupt),
            inside.clk.eq(ClockSignal()),
            inside.rst.eq(stretch.reset),
            stretch.restart.eq(registers.restart | link.begin),
            registers.resetting.eq(stretch.reset),
            registers.manifest_hash.eq(self._hash),
            *registers.reading(accelerator),
            registers.busy.eq(watch.busy),
            registers.mark.eq(watch.mark),
            registers.faults.eq(watch.faults),
        ]
        self.elaborate_words(m, link, accelerator, stretch, registers, watch)
        return m

    def elaborate_words(self, m, link, accelerator, stretch, registers, watch):
        """Connect words and results, of which none passes while the accelerator is in reset."""
        opened = Signal()
        words, results = accelerator.i, accelerator.o
        m.d.sync += [
            opened.eq(~stretch.reset & registers.enable & ~registers.restart),
            registers.input_waiting.eq(words.valid & ~words.ready),
            registers.output_waiting.eq(results.valid & ~results.ready),
        ]
        enters, leaves = opened & link.words.valid, ~stretch.reset & results.valid
        m.d.comb += [
            Value.cast(words.payload).eq(link.words.payload),
            words.valid.eq(enters),
            link.words.ready.eq(opened & words.ready),
            link.results.payload.eq(Value.cast(results.payload)),
            link.results.valid.eq(leaves),
            results.ready.eq(~stretch.reset & link.results.ready),
            watch.i.eq(words.payload),
            watch.enters.eq(words.valid & words.ready),
            watch.o[0].eq(results.payload),
            watch.leaves.eq(results.valid & results.ready),
        ]


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

    def clock_of(self, port):
        """Return the name of the clock that a port belongs to, by the names of both."""
        return "ethernet_clk" if port.startswith(("gmii_", "ethernet_")) else "clk"

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
