# SPDX-License-Identifier: Apache-2.0
"""A UART in front of an accelerator."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out, connect

from hdl.crossings import Crossing

from .linked_accelerator import LinkedAccelerator, shell_link_settings

__all__ = ["LEAST_DIVISOR", "UartReceiver", "UartShell", "UartTransmitter", "uart_link_settings"]


#: Least number of clock cycles per bit.
LEAST_DIVISOR = 4


def check_divisor(divisor):
    """Raise :exc:`ValueError` unless the cycles per bit are enough to find the middle of a bit."""
    if divisor < LEAST_DIVISOR:
        raise ValueError(
            f"Divisor of a UART must be at least {LEAST_DIVISOR} cycles per bit, not {divisor!r}; "
            f"choose a slower baud rate or a faster clock"
        )


class UartReceiver(wiring.Component):
    """UART receiver: bytes from a pin.

    A byte begins with the falling edge of its start bit; every bit is sampled in its middle. A byte
    without a stop bit is dropped, and so is a start bit that is not low in its middle. Nobody can
    stop a UART, so bytes that are not taken at once are lost.

    Latency: ``round(9.5 * divisor) + 3`` cycles from the falling edge of the start bit. Throughput:
    1 byte per ``10 * divisor`` cycles, sent by a clock that deviates by up to 2 percent.

    Parameters
    ----------
    divisor : int
        Clock cycles per bit, at least :data:`LEAST_DIVISOR`.

    Members
    -------
    pin : In(1)
        Not synchronized; high while idle.
    o : Out(stream.Signature(8, always_ready=True))
    """

    crossings = (Crossing("level", ("synchronizer/stage0",)),)

    def __init__(self, *, divisor):
        check_divisor(divisor)
        self.divisor = divisor
        super().__init__({"pin": In(1, init=1), "o": Out(stream.Signature(8, always_ready=True))})

    def elaborate(self, platform):
        m = Module()
        pin, before = Signal(init=1), Signal(init=1)
        m.submodules.synchronizer = FFSynchronizer(self.pin, pin, init=1)
        timer = Signal(range(self.divisor))
        left = Signal(range(10))  # bits to come; the last one is the stop bit
        bits = Signal(8)
        m.d.sync += [before.eq(pin), self.o.valid.eq(0)]
        m.d.comb += self.o.payload.eq(bits)
        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += [timer.eq(self.divisor // 2 - 1), left.eq(9)]
                with m.If(before & ~pin):
                    m.next = "START"
            with m.State("START"):
                m.d.sync += timer.eq(timer - 1)
                with m.If(timer == 0):
                    m.d.sync += timer.eq(self.divisor - 1)
                    m.next = "BITS"
                    with m.If(before):
                        m.next = "IDLE"
            with m.State("BITS"):
                m.d.sync += timer.eq(timer - 1)
                with m.If(timer == 0):
                    m.d.sync += [timer.eq(self.divisor - 1), left.eq(left - 1)]
                    with m.If(left == 1):
                        m.d.sync += self.o.valid.eq(before)
                        m.next = "IDLE"
                    with m.Else():
                        m.d.sync += bits.eq(Cat(bits[1:], before))
        return m


class UartTransmitter(wiring.Component):
    """UART transmitter: bytes to a pin, without a gap while there are bytes.

    Latency: 1 cycle from a byte to its start bit. Throughput: 1 byte per ``10 * divisor`` cycles.

    Parameters
    ----------
    divisor : int
        Clock cycles per bit, at least :data:`LEAST_DIVISOR`.

    Members
    -------
    i : In(stream.Signature(8))
    pin : Out(1)
        From a register; high while idle.
    """

    latency = 1

    def __init__(self, *, divisor):
        check_divisor(divisor)
        self.divisor = divisor
        super().__init__({"i": In(stream.Signature(8)), "pin": Out(1, init=1)})

    def elaborate(self, platform):
        m = Module()
        timer = Signal(range(self.divisor))
        left = Signal(range(10))  # bits after the one at the pin
        bits = Signal(9, init=(1 << 9) - 1)
        following = timer == 0  # this bit ends
        m.d.comb += self.i.ready.eq(following & (left == 0))
        with m.If(~following):
            m.d.sync += timer.eq(timer - 1)
        with m.Elif(left != 0):
            m.d.sync += [
                timer.eq(self.divisor - 1),
                left.eq(left - 1),
                Cat(self.pin, bits).eq(Cat(bits, 1)),
            ]
        with m.Elif(self.i.valid):
            m.d.sync += [
                timer.eq(self.divisor - 1),
                left.eq(9),
                self.pin.eq(0),
                bits.eq(Cat(self.i.payload, 1)),
            ]
        return m


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

    def clock_of(self, port):
        """Return the name of the clock that a port belongs to; the line belongs to none."""
        return None if port == "rx" else "clk"

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
