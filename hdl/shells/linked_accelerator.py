# SPDX-License-Identifier: Apache-2.0
"""An accelerator behind a link: what the shells for byte streams have in common."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.architecture import make_accelerator
from hdl.link.endpoint import BoardEndpoint
from hdl.link.settings import SLOT_BYTES, LinkSettings
from hdl.result_ports import result_ports
from hdl.words.inputs import input_word
from hdl.words.results import result_word

from .external_memory import refuse_external_windows
from .mark_watch import WordWatch
from .registers import ShellRegisters, hash_number
from .reset_stretch import ResetStretch

__all__ = ["LinkedAccelerator", "shell_link_settings"]

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
    if parameters.engine == "aggregate":
        raise ValueError(
            f"A link carries the words of joins, and operator {parameters.operator.name!r} is an "
            f"aggregate: take the AXI shell (--shell axi)"
        )


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
                f"result_streams={parameters.result_streams!r}"
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
