# SPDX-License-Identifier: Apache-2.0
"""The top of a board with its pins as ports, for a simulator."""

from types import SimpleNamespace

from amaranth import *
from amaranth.lib import io, wiring
from amaranth.lib.wiring import In, Out

from hdl.boards.top import BoardTop

__all__ = ["BoardPins"]


class PinPlatform:
    """The pins that a board's top requests, as signals; there are no primitives of a device.

    Parameters
    ----------
    pins : dict of str to object
        What is requested, by name.
    """

    device = None

    def __init__(self, pins):
        self.pins = pins

    def request(self, name, number, *, dir):
        """Return the only resource of this name, for buffers that the top makes itself."""
        assert (number, dir) == (0, "-"), "a simulated board has one resource of a name"
        return self.pins[name]


class BoardPins(wiring.Component):
    """The top that goes into a board's bitstream, with ports in place of the board's pins.

    Latency, throughput: those of :class:`hdl.shells.uart_shell.UartShell`.

    Parameters
    ----------
    board : Board
        The board.
    parameters : JoinParameters
        Parameters of the accelerator.
    digest : str
        Hash of the bundle's manifest, 64 hexadecimal digits.

    Members
    -------
    rx : In(1)
    tx : Out(1)
        The UART; high while idle.
    led : Out(1)
        A session has begun.
    """

    def __init__(self, board, parameters, *, digest):
        self.top = BoardTop(board, parameters, digest=digest)
        super().__init__({"rx": In(1, init=1), "tx": Out(1), "led": Out(1)})

    def elaborate(self, platform):
        m = Module()
        rx = io.SimulationPort("i", 1, name="rx")
        tx = io.SimulationPort("o", 1, name="tx")
        led = io.SimulationPort("o", 1, name="led")
        pins = PinPlatform({"uart": SimpleNamespace(rx=rx, tx=tx), "led": led})
        m.submodules.top = Fragment.get(self.top, pins)
        m.d.comb += [rx.i.eq(self.rx), self.tx.eq(tx.o), self.led.eq(led.o)]
        return m
