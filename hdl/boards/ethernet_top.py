# SPDX-License-Identifier: Apache-2.0
"""What is in the device of a board with Ethernet: an accelerator behind datagrams of UDP."""

from amaranth import *
from amaranth.lib import io
from amaranth.lib.cdc import ResetSynchronizer
from amaranth.lib.wiring import connect

from hdl.ethernet.rgmii import Rgmii
from hdl.shells.ethernet_shell import EthernetShell

from .pll import Pll

__all__ = ["ETHERNET_MHZ", "EthernetTop"]

#: Clock of a PHY at a gigabit per second, a byte per cycle.
ETHERNET_MHZ = 125
#: Cycles for which the PHY is reset: 10 ms at 50 MHz and more.
PHY_RESET_CYCLES = 1 << 20


class EthernetTop(Elaboratable):
    """Connect a :class:`hdl.shells.ethernet_shell.EthernetShell` to the pins of a board.

    A PLL makes the clock of the link and of the accelerator from that of the board's oscillator.
    The clock of the PHY is that of the port. The PHY is reset for a while, and keeps the settings
    that its pins select. The green LED shows that a host has begun a session.

    Parameters
    ----------
    board : Board
        The board, with Ethernet.
    parameters : JoinParameters
        Parameters of the accelerator.
    digest : str
        Hash of the bundle's manifest, 64 hexadecimal digits.
    """

    def __init__(self, board, parameters, *, digest):
        self.board = board
        self.shell = EthernetShell(parameters, digest=digest, ethernet=board.ethernet)

    def elaborate(self, platform):
        m = Module()
        m.domains.sync, m.domains.ethernet = ClockDomain("sync"), ClockDomain("ethernet")
        m.submodules.shell = shell = self.shell
        pads = platform.request("eth_rgmii", 0, dir="-")
        m.submodules.rgmii = rgmii = Rgmii(pads)
        connect(m, shell.gmii, rgmii.gmii)
        m.d.comb += ClockSignal("ethernet").eq(rgmii.clock)
        platform.add_clock_constraint(pads.rx_clk.io, ETHERNET_MHZ * 1e6)
        self.elaborate_clock(m, platform)
        left = Signal(range(PHY_RESET_CYCLES), init=PHY_RESET_CYCLES - 1)
        m.d.sync += left.eq(left - left.any())
        light = platform.request("rgb_led", 0, dir="-").g
        for name, port, value in [
            ("phy_reset", pads.rst, left.any()),
            ("mdc", pads.mdc, 0),
            ("led", light, shell.open),
        ]:
            m.submodules[name] = pin = io.Buffer("o", port)
            m.d.comb += pin.o.eq(value)
        return m

    def elaborate_clock(self, m, platform):
        """Make the clock of the link, and reset both domains until it is stable."""
        board = self.board
        for name, wanted in (
            ("oscillator", platform.default_clk),
            ("button", platform.default_rst),
        ):
            m.submodules[name] = io.Buffer("i", platform.request(wanted, 0, dir="-"))
        m.submodules.pll = pll = Pll(board.oscillator_mhz, board.mhz)
        m.d.comb += [
            pll.source.eq(m.submodules.oscillator.i),
            ClockSignal("sync").eq(pll.clock),
        ]
        off = ~pll.locked | m.submodules.button.i
        for domain in ("sync", "ethernet"):
            m.submodules[f"{domain}_reset"] = ResetSynchronizer(off, domain=domain)
