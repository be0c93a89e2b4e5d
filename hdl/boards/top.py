# SPDX-License-Identifier: Apache-2.0
"""What is in the device of a board: an accelerator behind the board's UART."""

from amaranth import *
from amaranth.lib import io

from hdl.shells.uart_shell import UartShell

__all__ = ["BoardTop"]


class BoardTop(Elaboratable):
    """Connect a :class:`hdl.shells.uart_shell.UartShell` to the pins of a board.

    The clock is that of the board's oscillator. The first LED shows that a host has begun a
    session.

    Parameters
    ----------
    board : Board
        The board.
    parameters : JoinParameters
        Parameters of the accelerator.
    digest : str
        Hash of the bundle's manifest, 64 hexadecimal digits.
    """

    def __init__(self, board, parameters, *, digest):
        self.shell = UartShell(
            parameters, digest=digest, divisor=board.divisor, receive_slots=board.slots,
            send_slots=board.slots,
        )  # fmt: skip

    def elaborate(self, platform):
        m = Module()
        m.submodules.shell = shell = self.shell
        uart, led = (platform.request(name, 0, dir="-") for name in ("uart", "led"))
        m.submodules.rx = rx = io.Buffer("i", uart.rx)
        m.submodules.tx = tx = io.Buffer("o", uart.tx)
        m.submodules.led = opened = io.Buffer("o", led)
        m.d.comb += [shell.rx.eq(rx.i), tx.o.eq(shell.tx), opened.o.eq(shell.open)]
        return m
