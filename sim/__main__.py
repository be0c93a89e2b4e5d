# SPDX-License-Identifier: Apache-2.0
"""``python -m sim``: build simulator libraries, simulate boards and netlists, run the benches."""

import argparse
import json
from pathlib import Path
import shlex
import sys

from hdl.fpga.reports import ONE_IN, describe
from hdl.installation import CommandParser
from hdl.options import add_parameter_options, parameters_from
from hdl.parameters import JoinParameters
from host.devices.bundles import library_folder, prepare_folder
from host.errors import JoinError

from .board.card import add_command as add_card
from .board.commands import add_command as add_board
from .board.trial import add_command as add_trial
from .netlist.commands import add_command as add_netlist

__all__ = ["main"]


#: Commands that are elsewhere now, by their names.
MOVED = {
    name: f"python -m bench {name}"
    for name in ("calibrate", "epochs", "experiments", "figures", "model")
} | {"soak": "python -m tests.soak"}


def say(text):
    """Report progress on stderr, so that stdout holds only what the command prints."""
    print(f"sim: {text}", file=sys.stderr, flush=True)


def build(options):
    """Build the simulator library of a bundle; with ``--output``, generate the bundle first."""
    from .verilated.library import build_library

    if (options.bundle is None) == (options.output is None):
        raise ValueError("Give either a BUNDLE that exists, or --output DIR and what to generate")
    described = parameters_from(options, aggregates=True)
    if options.bundle is not None and described != JoinParameters.of():
        raise ValueError("A BUNDLE that exists has its parameters; give --output DIR for others")
    prepare_folder(library_folder())
    if options.output is not None:
        from hdl.bundle import write_bundle

        write_bundle(described, options.output)
    print(build_library(options.bundle or options.output, plain=options.plain, report=say))
    return 0


def bench(options):
    """Run the cocotb benches."""
    from .benches.runner import run_aggregate_bench, run_benches
    from .benches.shapes import SHAPES

    described = parameters_from(options)
    shapes = SHAPES if described == JoinParameters.of() else {"chosen": described}
    run_benches(shapes, waves=options.waves, seed=options.seed, tuples=options.tuples)
    if shapes is SHAPES:
        from hdl.aggregate.aggregate_parameters import AGGREGATE_PRESETS

        from .benches.axi_runner import run_axi_benches

        run_axi_benches(waves=options.waves)
        tiny = AGGREGATE_PRESETS["tiny-aggregate"]
        run_aggregate_bench(tiny, name="tiny-aggregate", waves=options.waves, seed=options.seed)
    return 0


def saturate(options):
    """Count the events of an accelerator with full windows; write them for the routing reports."""
    from hdl.fpga.provenance import commit

    from .benches.saturated_run import saturate as count

    parameters = parameters_from(options)
    records = count(parameters, say, matches=options.one_in or [ONE_IN], window=options.window)
    for record in records:
        share = record.get("cycle_efficiency")
        print(f"{'-' if share is None else format(share, '.4f'):>6}  {describe(record)}")
    measurement = {
        "parameters": parameters.words(),
        "commit": commit(),
        "command": shlex.join(["python", "-m", "sim", *options.arguments]),
        "runs": records,
    }
    path = Path(options.output or Path("build") / "saturated" / f"{options.preset or 'other'}.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(measurement, indent=2) + "\n", encoding="utf-8")
    print(path)
    return 0


def parser(prog="python -m sim"):
    """Return the parser of the command line."""
    top = CommandParser(prog=prog, description=__doc__.partition(": ")[2])
    commands = top.add_subparsers(metavar="COMMAND", required=True)

    command = commands.add_parser(
        "build",
        help="build the simulator library of a bundle",
        description="Build the simulator library of a bundle, or replace a damaged one. "
        "Libraries are kept in $SPLITJOIN_CACHE/libraries; by default, in build/libraries of a "
        "checkout that can be written, else in the user's cache folder.",
        example="--preset demo-index --sub-window 262144 --output build/bundles/large",
    )
    command.add_argument("bundle", nargs="?", metavar="BUNDLE", help="folder of a bundle")
    library = command.add_argument_group("library")
    library.add_argument("--output", metavar="DIR", help="generate the bundle there first")
    # For those who change the rewriter: compile the Verilog unchanged.
    command.add_argument("--plain", action="store_true", help=argparse.SUPPRESS)
    add_parameter_options(command)
    command.set_defaults(run=build)

    command = commands.add_parser(
        "bench", help="run the cocotb benches under Verilator, AXI too", example="--preset tiny"
    )
    run = command.add_argument_group("run")
    run.add_argument("--waves", action="store_true", help="keep waves (also WAVES=1)")
    run.add_argument("--seed", type=int, metavar="N", help="seed of tuples and stalls")
    run.add_argument("--tuples", type=int, default=400, metavar="N", help="tuples per scenario")
    add_parameter_options(command)
    command.set_defaults(run=bench)

    command = commands.add_parser(
        "saturate", help="count cycles, pairs, results under load, for the routing reports",
        example="--preset tiny",
    )  # fmt: skip
    load = command.add_argument_group("load")
    load.add_argument(
        "--one-in", type=int, action="append", metavar="N",
        help=f"let one pair in N match; several times: a run for each; default: {ONE_IN}",
    )  # fmt: skip
    load.add_argument("--window", type=int, metavar="N", help="tuples per side; default: all")
    load.add_argument("--output", metavar="FILE", help="default: build/saturated/PRESET.json")
    add_parameter_options(command)
    command.set_defaults(run=saturate)

    add_board(commands, say)
    add_card(commands, say)
    add_trial(commands, say)
    add_netlist(commands, say)

    return top


def main(arguments=None, *, prog="python -m sim"):
    """Run the command line; return the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments and arguments[0] in MOVED:
        moved = f"`{MOVED[arguments[0]]}`, in a checkout of the kit"
        print(f"{prog}: Command {arguments[0]!r} is {moved}", file=sys.stderr)
        return 2
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
