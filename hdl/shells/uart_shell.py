# SPDX-License-Identifier: Apache-2.0
"""An accelerator behind a UART, for boards: two pins carry words and registers."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect

from .linked_accelerator import LinkedAccelerator, shell_link_settings
from .uart import UartReceiver, UartTransmitter

__all__ = ["UartShell", "uart_link_settings"]

#: Bits that a UART sends for a byte.
UART_BITS = 10


def uart_link_settings(parameters, *, digest, divisor, **changes):
    """Return settings of a link over a UART, with times that follow from the baud rate.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    digest : str
        Hash of the bundle's manifest, 64 hexadecimal digits.
    divisor : int
        Clock cycles per bit.
    changes
        Other parameters of :func:`hdl.shells.linked_accelerator.shell_link_settings`.
    """
    return shell_link_settings(
        parameters, digest=digest, byte_cycles=UART_BITS * divisor, **changes
    )


class UartShell(wiring.Component):
    """An accelerator whose words and registers pass a UART.

    When a host begins a session, the accelerator is reset for 16 cycles, in which no word passes.
    The registers are those of the AXI shell.

    Latency: that of the accelerator, of the link and of the bytes on the line. Throughput: that of
    the line; at its best 0.95 of the line carries words, both ways at once (``docs/link.md``).

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator, with one result stream.
    digest : str
        Hash of the bundle's manifest, 64 hexadecimal digits.
    divisor : int
        Clock cycles per bit, at least 4.
    options
        Other parameters of :func:`uart_link_settings`.

    Members
    -------
    rx : In(1)
    tx : Out(1)
        Pins, high while idle.
    open : Out(1)
        A session has begun.
    interrupt : Out(1)
    """

    def __init__(self, parameters, *, digest, divisor, **options):
        self.parameters = parameters
        self.divisor = divisor
        self.settings = uart_link_settings(parameters, digest=digest, divisor=divisor, **options)
        self._inside = LinkedAccelerator(
            parameters, digest=digest, settings=self.settings, shell="A UART shell"
        )
        self._receiver = UartReceiver(divisor=divisor)
        self._transmitter = UartTransmitter(divisor=divisor)
        super().__init__(
            {"rx": In(1, init=1), "tx": Out(1, init=1), "open": Out(1), "interrupt": Out(1)}
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.receiver, m.submodules.transmitter = self._receiver, self._transmitter
        m.submodules.inside = inside = self._inside
        connect(m, self._receiver.o, inside.i)
        connect(m, inside.o, self._transmitter.i)
        m.d.comb += [
            self._receiver.pin.eq(self.rx),
            self.tx.eq(self._transmitter.pin),
            self.open.eq(inside.open),
            self.interrupt.eq(inside.interrupt),
        ]
        return m
