# SPDX-License-Identifier: Apache-2.0
"""The top modules of boards, and their clocks."""

from fractions import Fraction

from amaranth import *
from amaranth.lib import io, wiring
from amaranth.lib.cdc import ResetSynchronizer
from amaranth.lib.wiring import In, Out, connect

from hdl.ethernet.phy import Rgmii
from hdl.shells.linked_accelerator import EthernetShell
from hdl.shells.uart_shell import UartShell

__all__ = ["ETHERNET_MHZ", "BoardTop", "EthernetTop", "Pll", "pll_divisors"]


#: Divisors go up to this.
MOST = 128
#: Frequencies in MHz that the oscillator of the PLL, and its phase detector, can have.
OSCILLATOR_MHZ = (400, 800)
DETECTOR_MHZ = (10, 400)


def pll_divisors(source_mhz, mhz):
    """Return the divisors of a PLL: of its input, of its feedback and of its output.

    Raises
    ------
    ValueError
        If no divisors give exactly this clock.
    """
    ratio = Fraction(mhz).limit_denominator(1000) / Fraction(source_mhz).limit_denominator(1000)
    source, feedback = ratio.denominator, ratio.numerator
    fitting = [
        output for output in range(1, MOST + 1)
        if OSCILLATOR_MHZ[0] <= output * mhz <= OSCILLATOR_MHZ[1]
    ]  # fmt: skip
    detector = source_mhz / source
    in_range = DETECTOR_MHZ[0] <= detector <= DETECTOR_MHZ[1]
    if not fitting or not in_range or max(source, feedback) > MOST:
        raise ValueError(
            f"A PLL cannot make a clock of {mhz:g} MHz from one of {source_mhz:g} MHz; choose "
            "another clock, whose ratio has small numbers"
        )
    # In the middle of the range, the oscillator is farthest from both limits.
    middle = sum(OSCILLATOR_MHZ) / 2
    return source, feedback, min(fitting, key=lambda output: abs(output * mhz - middle))


class Pll(wiring.Component):
    """Phase-locked loop: make a clock from another one.

    Latency, throughput: not applicable. The clock is not to be used before ``locked``.

    Parameters
    ----------
    source_mhz, mhz : float
        Frequencies of both.

    Members
    -------
    source : In(1)
    clock : Out(1)
    locked : Out(1)
    """

    def __init__(self, source_mhz, mhz):
        self.source_mhz, self.mhz = source_mhz, mhz
        self.divisors = pll_divisors(source_mhz, mhz)
        super().__init__({"source": In(1), "clock": Out(1), "locked": Out(1)})

    def elaborate(self, platform):
        m = Module()
        source, feedback, output = self.divisors
        m.submodules.cell = Instance(
            "EHXPLLL",
            p_CLKI_DIV=source, p_CLKFB_DIV=feedback, p_CLKOP_DIV=output, p_FEEDBK_PATH="CLKOP",
            p_CLKOP_ENABLE="ENABLED", p_CLKOP_CPHASE=output - 1, p_CLKOP_FPHASE=0,
            a_FREQUENCY_PIN_CLKI=str(self.source_mhz), a_FREQUENCY_PIN_CLKOP=str(self.mhz),
            a_ICP_CURRENT="12", a_LPF_RESISTOR="8",
            i_CLKI=self.source, i_CLKFB=self.clock, i_RST=Const(0), i_STDBY=Const(0),
            i_PHASESEL0=Const(0), i_PHASESEL1=Const(0), i_PHASEDIR=Const(1), i_PHASESTEP=Const(1),
            i_PHASELOADREG=Const(1), i_PLLWAKESYNC=Const(0), i_ENCLKOP=Const(0),
            o_CLKOP=self.clock, o_LOCK=self.locked,
        )  # fmt: skip
        return m


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


#: Clock of a PHY at a gigabit per second, a byte per cycle.
ETHERNET_MHZ = 125
#: Cycles for which the PHY is reset: 10 ms at 50 MHz and more.
PHY_RESET_CYCLES = 1 << 20


class EthernetTop(Elaboratable):
    """Connect a :class:`hdl.shells.linked_accelerator.EthernetShell` to the pins of a board.

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
