# SPDX-License-Identifier: Apache-2.0
"""Pins of boards that amaranth-boards does not have."""

from amaranth.build import Attrs, Clock, Pins, PinsN, Resource, Subsignal
from amaranth.vendor import LatticePlatform

__all__ = ["CrossLinkNxEvnPlatform"]


class CrossLinkNxEvnPlatform(LatticePlatform):
    """Lattice's CrossLink-NX Evaluation Board: its oscillator, a UART and an LED.

    Port B of the FTDI chip is the UART once 0-ohm resistors are on R15 and R17, and R18 and R19 are
    off (the board's user guide, section 6.2).
    """

    device = "LIFCL-40"
    speed = "9"
    package = "BG400"
    grade = "C"
    default_clk = "clk12"
    resources = (
        Resource("clk12", 0, Pins("L13", dir="i"), Clock(12e6), Attrs(IO_TYPE="LVCMOS33")),
        Resource(
            "uart", 0, Subsignal("rx", Pins("F16", dir="i")), Subsignal("tx", Pins("F18", dir="o")),
            Attrs(IO_TYPE="LVCMOS33"),
        ),
        Resource("led", 0, PinsN("E17", dir="o"), Attrs(IO_TYPE="LVCMOS33")),
    )  # fmt: skip
    connectors = ()
