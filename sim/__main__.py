# SPDX-License-Identifier: Apache-2.0
"""``python -m sim``: build simulator libraries, simulate boards, run the benches, measure."""

import argparse
from importlib import import_module
import json
from pathlib import Path
import shlex
import sys

from hdl.fpga.rates import ONE_IN, describe
from hdl.options import add_parameter_options, parameters_from
from hdl.parameters import JoinParameters
from host.devices.bundles import library_folder, prepare_folder
from host.errors import JoinError

from .board.commands import add_command as add_board
from .epochs.commands import add_command as add_epochs
from .experiments.commands import add_command as add_experiments
from .netlist.commands import add_command as add_netlist

__all__ = ["main"]


#: Modules of :mod:`sim.figures` that register figures, in the order of their rows.
MODULES = (
    "scan", "routed", "routed_scans", "index", "skew", "direct", "host_runtime", "pipelines",
    "benches", "soak", "netlist", "formal", "mutation", "cost_model", "evaluation", "ports",
    "segments", "failures", "shells", "link", "scalegate", "chip_cost", "board", "fast_link",
    "external", "epochs", "elastic", "aggregate", "aggregate_tables", "join_aggregate", "texts",
    "asof", "peers",
)  # fmt: skip


def say(text):
    """Report progress on stderr, so that stdout holds only what the command prints."""
    print(f"sim: {text}", file=sys.stderr, flush=True)


def build(options):
    """Build the simulator library of a bundle; with ``--output``, generate the bundle first."""
    from .verilated.library import build_library

    if (options.bundle is None) == (options.output is None):
        raise ValueError("Give either a BUNDLE that exists, or --output DIR and what to generate")
    described = parameters_from(options, aggregates=True)
    if options.bundle is not None and described != JoinParameters():
        raise ValueError("A BUNDLE that exists has its parameters; give --output DIR for others")
    prepare_folder(library_folder())
    if options.output is not None:
        from hdl.bundle import write_bundle

        write_bundle(described, options.output)
    print(build_library(options.bundle or options.output, plain=options.plain, report=say))
    return 0


def bench(options):
    """Run the cocotb benches."""
    from .benches.runner import run_benches
    from .benches.shapes import SHAPES

    described = parameters_from(options)
    shapes = SHAPES if described == JoinParameters() else {"chosen": described}
    run_benches(shapes, waves=options.waves, seed=options.seed, tuples=options.tuples)
    if shapes is SHAPES:
        from hdl.aggregate.presets import AGGREGATE_PRESETS

        from .benches.aggregate_runner import run_aggregate_bench
        from .benches.axi_runner import run_axi_benches

        run_axi_benches(waves=options.waves)
        tiny = AGGREGATE_PRESETS["tiny-aggregate"]
        run_aggregate_bench(tiny, name="tiny-aggregate", waves=options.waves, seed=options.seed)
    return 0


def saturate(options):
    """Count the events of an accelerator with full windows; write them for the routing reports."""
    from hdl.fpga.provenance import commit

    from .figures.saturated_run import saturate as count

    parameters = parameters_from(options)
    records = count(parameters, say, matches=options.one_in or [ONE_IN], window=options.window)
    for record in records:
        share = record.get("cycle_efficiency")
        print(f"{'-' if share is None else format(share, '.4f'):>6}  {describe(record)}")
    measurement = {
        "parameters": parameters.to_dict(),
        "commit": commit(),
        "command": shlex.join(["python", "-m", "sim", *options.arguments]),
        "runs": records,
    }
    path = Path(options.output or Path("build") / "saturated" / f"{options.preset or 'other'}.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(measurement, indent=2) + "\n", encoding="utf-8")
    print(path)
    return 0


def calibrate(options):
    """Print how fast this machine runs the calibration kernel."""
    from .figures.calibration import REFERENCE, kernel_speed

    for name, wall in (("CPU time of one core", False), ("wall-clock time of all cores", True)):
        speeds = [kernel_speed(wall=wall) for _ in range(5)]
        print(f"{name}: {min(speeds):,.0f} to {max(speeds):,.0f} cycles/s")
    print(f"reference: {REFERENCE:,.0f} cycles/s")
    return 0


def soak(options):
    """Run the soak test, or repeat one case of it; return 1 if anything differs from the model."""
    from .soak.commands import replay, run

    if options.case is not None:
        if options.seed is None:
            raise ValueError("A case belongs to a seed: give --seed S as well")
        return replay(options.seed, options.case, say)
    return run(
        seed=options.seed, minutes=options.minutes, shapes=options.shapes,
        recorded=options.record, report=say,
    )  # fmt: skip


def model(options):
    """Hold the cost model against the hardware counters; print the largest errors as a table."""
    from .figures.model_sweep import ACCELERATORS, sweep, table, worst

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
        import_module(f"sim.figures.{module}")
    from .figures.registry import FIGURES, measure

    names = options.names or list(FIGURES)
    unknown = [name for name in names if name not in FIGURES]
    if unknown:
        raise ValueError(f"Figure must be one of {', '.join(FIGURES)}, not {unknown[0]!r}")
    measure(names, Path(options.output), report=say)
    return 0


def parser(prog="python -m sim"):
    """Return the parser of the command line."""
    top = argparse.ArgumentParser(prog=prog, description=__doc__.partition(": ")[2])
    commands = top.add_subparsers(metavar="COMMAND", required=True)

    command = commands.add_parser(
        "build",
        help="build the simulator library of a bundle",
        description="Build the simulator library of a bundle, or replace a damaged one. "
        "Libraries are kept in $SPLITJOIN_CACHE/libraries; by default, in build/libraries of a "
        "checkout that can be written, else in the user's cache folder.",
    )
    command.add_argument("bundle", nargs="?", metavar="BUNDLE", help="folder of a bundle")
    command.add_argument("--output", metavar="DIR", help="generate the bundle there first")
    command.add_argument(
        "--plain", action="store_true", help="compile its Verilog unchanged, for a slower library"
    )
    add_parameter_options(command)
    command.set_defaults(run=build)

    command = commands.add_parser("bench", help="run the cocotb benches under Verilator, AXI too")
    add_parameter_options(command)
    command.add_argument("--waves", action="store_true", help="keep waves (also WAVES=1)")
    command.add_argument("--seed", type=int, metavar="N", help="seed of tuples and stalls")
    command.add_argument("--tuples", type=int, default=400, metavar="N", help="tuples per scenario")
    command.set_defaults(run=bench)

    command = commands.add_parser(
        "saturate", help="count cycles, pairs, results under load, for the routing reports"
    )
    add_parameter_options(command)
    command.add_argument(
        "--one-in", type=int, action="append", metavar="N",
        help=f"let one pair in N match; several times: a run for each; default: {ONE_IN}",
    )  # fmt: skip
    command.add_argument("--window", type=int, metavar="N", help="tuples per side; default: all")
    command.add_argument("--output", metavar="FILE", help="default: build/saturated/PRESET.json")
    command.set_defaults(run=saturate)

    add_board(commands, say)
    add_netlist(commands, say)
    add_experiments(commands)
    add_epochs(commands, say)

    command = commands.add_parser(
        "calibrate", help="print how fast this machine is, beside the reference of timed figures"
    )
    command.set_defaults(run=calibrate)

    command = commands.add_parser(
        "soak", help="run random programs on random accelerators, and compare with a model",
        description="Run random programs of input words on random accelerators, and compare what "
        "comes out with a model that is written from docs/architecture.md alone.",
    )  # fmt: skip
    command.add_argument("--minutes", type=float, default=5, metavar="N", help="default: 5")
    command.add_argument("--seed", type=int, metavar="S", help="default: a new one")
    command.add_argument(
        "--shapes", type=int, metavar="N", help="accelerators to build; default: one a minute"
    )
    command.add_argument("--case", metavar="N.M", help="run only program M of shape N, shrunk")
    command.add_argument("--record", action="store_true", help="add the run to docs/soak.md")
    command.set_defaults(run=soak)

    command = commands.add_parser(
        "model", help="hold the cost model against the hardware counters",
        description="Simulate accelerators of 1 to 64 cores, idle and busy, and write what the "
        "hardware counters say beside the cost model (host/protocol/cost_model.py). Rows that the "
        "file has are kept: begin anew with another file. All libraries take 10 minutes of CPU "
        "time.",
    )  # fmt: skip
    command.add_argument("names", nargs="*", metavar="ACCELERATOR", help="default: all")
    command.add_argument("--output", default="build/model/model.csv", metavar="FILE")
    command.set_defaults(run=model)

    command = commands.add_parser("figures", help="measure; print a row per figure")
    command.add_argument("names", nargs="*", metavar="FIGURE", help="default: all")
    command.add_argument("--output", default="build/bench/figures.json", metavar="FILE")
    command.set_defaults(run=figures)
    return top


def main(arguments=None, *, prog="python -m sim"):
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
