# SPDX-License-Identifier: Apache-2.0
"""``python -m sim netlist``: run netlists and print a table row for each."""

from dataclasses import asdict
import json
from pathlib import Path
import time

from hdl.fpga.provenance import commit
from hdl.fpga.shell import SHELL
from hdl.installation import sibling_command
from hdl.options import add_parameter_options, parameters_from
from hdl.parameters import JoinParameters

from .comparison import compare
from .library import build_netlist_library, netlist_of
from .shapes import SHAPES
from .size import size_of

__all__ = ["RESULTS", "add_command", "run_netlist"]

#: JSON file for the rows.
RESULTS = Path("build") / "netlist" / "netlist.json"
COLUMNS = (
    ("shape", 46), ("LUTs", 6), ("cells", 6), ("RAMs", 12), ("open", 5), ("tuples", 8),
    ("pairs", 9), ("results", 9), ("differences", 11), ("seconds", 8),
)  # fmt: skip


def run_netlist(name, parameters, *, tuples, seed, report):
    """Make, compile and run the netlist of an accelerator; return a row of the table as a dict.

    Parameters
    ----------
    name : str
        Name of the shape.
    parameters : JoinParameters
    tuples : int
        Least number of tuples to send.
    seed : int
        Seed of the first scenario.
    report : callable
        Receives lines about the progress.
    """
    bundle = Path("build") / "netlist" / name.replace(",", "").replace(" ", "-")
    netlist = netlist_of(parameters, report=report)
    size = size_of(netlist, top=SHELL)
    build_netlist_library(netlist, parameters, bundle, report=report)
    begun = time.monotonic()
    done = compare(bundle, tuples=tuples, seed=seed, report=report)
    return {
        "shape": name,
        "parameters": parameters.words(),
        **asdict(size),
        **asdict(done),
        "seed": seed,
        "seconds": round(time.monotonic() - begun, 1),
        "commit": commit(),
    }


def line(values):
    """Return a line of the table, with its first column aligned to the left."""
    (first, width), *others = COLUMNS
    cells = [f"{values[first]:{width}}"]
    return " ".join(cells + [f"{values[name]:>{width}}" for name, width in others])


def shown(row):
    """Return the line of the table that shows a row."""
    rams = "+".join(f"{count}x{width}" for width, count in row["block_rams"].items())
    return line({
        **row, "LUTs": row["luts"], "RAMs": rams or "-", "open": row["open_carries"],
        "seconds": f"{row['seconds']:.0f}",
    })  # fmt: skip


def netlist(options, report):
    """Run one netlist or all; write the rows; return 1 if any result differs, otherwise 0."""
    parameters = parameters_from(options)
    if options.all and parameters != JoinParameters.of():
        raise ValueError("Give either --all or parameters of one accelerator")
    shapes = SHAPES if options.all else {options.preset or "chosen": parameters}
    rows = []
    print(line({name: name for name, _ in COLUMNS}), flush=True)
    path = Path(options.output)
    path.parent.mkdir(parents=True, exist_ok=True)
    for name, each in shapes.items():
        row = run_netlist(name, each, tuples=options.tuples, seed=options.seed, report=report)
        rows.append(row)
        print(shown(row), flush=True)
        path.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    return int(any(row["differences"] for row in rows))


def add_command(commands, report):
    """Add the command to the subparsers ``commands``; ``report`` receives its progress."""
    command = commands.add_parser(
        "netlist",
        help="compare the netlist that nextpnr gets with the software device",
        example="--preset tiny --tuples 1000",
    )
    command.description = (
        f"Synthesize accelerators as `{sibling_command(command, 'hdl route')}` does, simulate "
        "their netlists with models of the ECP5's cells, and compare each result with the software "
        "device."
    )
    run = command.add_argument_group("run")
    run.add_argument("--all", action="store_true", help="all small shapes")
    run.add_argument("--tuples", type=int, default=100_000, metavar="N", help="for each shape")
    run.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the first scenario")
    run.add_argument("--output", default=str(RESULTS), metavar="FILE", help=f"default: {RESULTS}")
    add_parameter_options(command)
    command.set_defaults(run=lambda options: netlist(options, report))
