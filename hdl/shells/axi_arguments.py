# SPDX-License-Identifier: Apache-2.0
"""Command-line options about the AXI shell."""

from .axi_options import BUS_CLOCKS, AxiOptions
from .pin_names import PIN_NAMES

__all__ = ["add_axi_options", "axi_options_from"]

#: Names of the parsed options, and the fields of :class:`AxiOptions` that they set.
FIELDS = {
    "axi_inputs": "inputs",
    "axi_r_inputs": "r_inputs",
    "bus_clock": "bus_clock",
    "names": "names",
}


def add_axi_options(command):
    """Add the options to the parser of a command."""
    command.add_argument(
        "--axi-inputs", type=int, metavar="N",
        help="inputs of the AXI shell: 1, 2 for R and S by themselves, or up to 64 for several "
        "sources of a side, or of an aggregate's tuples; all are merged by timestamp",
    )  # fmt: skip
    command.add_argument(
        "--axi-r-inputs", type=int, metavar="N",
        help="how many of the inputs of a join are R's; default: half of them, rounded down",
    )  # fmt: skip
    command.add_argument(
        "--bus-clock", choices=BUS_CLOCKS,
        help="whether the registers of the AXI shell have a clock of their own",
    )  # fmt: skip
    command.add_argument(
        "--names", choices=PIN_NAMES, help="names of the AXI shell's pins; vitis: of an RTL kernel"
    )


def axi_options_from(options, *, has_shell):
    """Return the :class:`AxiOptions` of a parsed command line.

    Raises
    ------
    ValueError
        If there are any although no AXI shell was asked for.
    """
    given = {field: getattr(options, name) for name, field in FIELDS.items()}
    axi = {field: value for field, value in given.items() if value is not None}
    if axi and not has_shell:
        raise ValueError("Options of the AXI shell need --shell axi")
    return AxiOptions(**axi)
