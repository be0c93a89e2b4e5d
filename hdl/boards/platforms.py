# SPDX-License-Identifier: Apache-2.0
"""Pins of boards that amaranth-boards does not have."""

from amaranth.build import Attrs, Clock, Pins, PinsN, Resource, Subsignal, TemplatedPlatform
from amaranth.vendor import LatticePlatform

__all__ = ["CrossLinkNxEvnPlatform", "GateMateEvbPlatform"]


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


class GateMateEvbPlatform(TemplatedPlatform):
    """Olimex's GateMateA1-EVB: its oscillator, the UART to its RP2040, and an LED.

    Amaranth has no platform for GateMate. This one writes the design and its pins; clocks and
    buffers are inferred by Yosys.
    """

    toolchain = "Peppercorn"
    device = "CCGM1A1"
    default_clk = "clk10"
    required_tools = ("yosys", "nextpnr-himbaechel", "gmpack")
    resources = (
        Resource("clk10", 0, Pins("IO_SB_A8", dir="i"), Clock(10e6)),
        Resource(
            "uart", 0, Subsignal("rx", Pins("IO_SA_A6", dir="i")),
            Subsignal("tx", Pins("IO_SA_B6", dir="o")),
        ),
        Resource("led", 0, PinsN("IO_SB_B6", dir="o")),
    )  # fmt: skip
    connectors = ()
    file_templates = {
        **TemplatedPlatform.build_script_templates,
        "{{name}}.il": "{{emit_rtlil()}}",
        "{{name}}.ccf": """
            {% for port, pin, attrs in platform.iter_port_constraints_bits() -%}
                Net "{{port}}" Loc = "{{pin}}";
            {% endfor %}
        """,
    }
    command_templates = ()
