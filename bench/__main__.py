# SPDX-License-Identifier: Apache-2.0
"""``python -m bench``: measure the figures of the documents, and draw the paper's evaluation."""

import argparse
from importlib import import_module
from pathlib import Path
import sys

from hdl.installation import CommandParser
from host.errors import JoinError

from .epochs import add_command as add_epochs
from .experiments.commands import add_command as add_experiments
from .files import add_command as add_files

__all__ = ["main"]


#: Modules of :mod:`bench.figures` that register figures, in the order of their rows.
MODULES = (
    "saturated", "routed", "speed", "host", "verification", "cost_model", "evaluation", "epochs",
    "circuits", "links", "crossing", "aggregates", "joins", "peers",
)  # fmt: skip


def say(text):
    """Report progress on stderr, so that stdout holds only what the command prints."""
    print(f"bench: {text}", file=sys.stderr, flush=True)


def calibrate(options):
    """Print how fast this machine runs the calibration kernel."""
    from .figures.calibration import REFERENCE, kernel_speed

    for name, wall in (("CPU time of one core", False), ("wall-clock time of all cores", True)):
        speeds = [kernel_speed(wall=wall) for _ in range(5)]
        print(f"{name}: {min(speeds):,.0f} to {max(speeds):,.0f} cycles/s")
    print(f"reference: {REFERENCE:,.0f} cycles/s")
    return 0


def model(options):
    """Hold the cost model against the hardware counters; print the largest errors as a table."""
    from .figures.cost_model import ACCELERATORS, sweep, table, worst

    names = options.names or list(ACCELERATORS)
    unknown = [name for name in names if name not in ACCELERATORS]
    if unknown:
        choices = ", ".join(map(repr, ACCELERATORS))
        raise ValueError(f"Accelerator must be one of {choices}, not {unknown[0]!r}")
    rows = sweep(names, Path(options.output), say)
    print(table(rows))
    print(f"worst: {worst(rows):.1%}; where results are many: {worst(rows, crowded=True):.1%}")
    return 0


def figures(options):
    """Measure and print the figures."""
    for module in MODULES:  # each module registers its figures when it is imported
        import_module(f"bench.figures.{module}")
    from .figures.registry import FIGURES, measure

    names = options.names or list(FIGURES)
    unknown = [name for name in names if name not in FIGURES]
    if unknown:
        raise ValueError(f"Figure must be one of {', '.join(FIGURES)}, not {unknown[0]!r}")
    measure(names, Path(options.output), report=say)
    return 0


def parser(prog="python -m bench"):
    """Return the parser of the command line."""
    top = CommandParser(prog=prog, description=__doc__.partition(": ")[2])
    commands = top.add_subparsers(metavar="COMMAND", required=True)
    add_experiments(commands)
    add_epochs(commands, say)
    add_files(commands, say)

    command = commands.add_parser(
        "calibrate", help="print how fast this machine is, beside the reference of timed figures",
        example="",
    )  # fmt: skip
    command.set_defaults(run=calibrate)

    command = commands.add_parser(
        "model", help="hold the cost model against the hardware counters",
        description="Simulate accelerators of 1 to 64 cores, idle and busy, and write what the "
        "hardware counters say beside the cost model (host/protocol/cost_model.py). Rows that the "
        "file has are kept: begin anew with another file. All libraries take 10 minutes of CPU "
        "time.",
        example="1",
    )  # fmt: skip
    command.add_argument("names", nargs="*", metavar="ACCELERATOR", help="default: all")
    command.add_argument(
        "--output", default="build/model/model.csv", metavar="FILE", help="default: %(default)s"
    )
    command.set_defaults(run=model)

    command = commands.add_parser(
        "figures", help="measure; print a row per figure", example="scan.cycle_efficiency"
    )
    command.add_argument("names", nargs="*", metavar="FIGURE", help="default: all")
    command.add_argument(
        "--output", default="build/bench/figures.json", metavar="FILE", help="default: %(default)s"
    )
    command.set_defaults(run=figures)
    return top


def main(arguments=None, *, prog="python -m bench"):
    """Run the command line; return the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    options = parser(prog).parse_args(arguments, argparse.Namespace(arguments=arguments))
    try:
        return options.run(options)
    except JoinError as error:
        print(f"{prog}: {error}", file=sys.stderr)
        return error.exit_code
    except (ValueError, OSError) as error:
        print(f"{prog}: {error}", file=sys.stderr)
        return 2 if isinstance(error, ValueError) else 1


if __name__ == "__main__":
    sys.exit(main())
