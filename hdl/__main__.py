# SPDX-License-Identifier: Apache-2.0
"""``python -m hdl``: generate and lint accelerators, report size and logic depth, route."""

import argparse
from pathlib import Path
import sys
import warnings

from amaranth._toolchain.yosys import YosysError
from amaranth.hdl import UnusedElaboratable

from .aggregate.aggregate_parameters import AGGREGATE_PRESETS, AggregateParameters
from .boards.commands import add_commands as add_boards
from .fpga.commands import add_commands
from .installation import CommandParser
from .options import add_parameter_options, parameters_from
from .packaging.commands import add_commands as add_packaging
from .presets import PRESETS
from .shells.axi import add_axi_options, axi_options_from
from .shells.names import SHELLS, shell_top

__all__ = ["main"]


def generate(options):
    """Write a bundle."""
    parameters = parameters_from(options, aggregates=True)
    from .bundle import write_bundle

    shells = options.shell or ()
    axi = axi_options_from(options, has_shell="axi" in shells)
    manifest = write_bundle(parameters, options.output, shells=shells, axi=axi)
    print(f"{options.output}: {summary(parameters)}, hash {manifest['hash'][:12]}")
    return 0


def presets(options):
    """List the presets."""
    for name, parameters in (PRESETS | AGGREGATE_PRESETS).items():
        print(f"{name:8} {summary(parameters)}")
    return 0


def lint(options):
    """Lint the Verilog of a bundle and of its shells, or of packages."""
    from .bundle import VERILOG
    from .packaging.files import packages_in
    from .verilog.lint import lint as findings

    verilog = Path(options.bundle) / VERILOG
    tops = {file: findings(file, top=top) for file, top in packages_in(options.bundle).items()}
    if not tops and not verilog.is_file():
        raise ValueError(
            f"Folder {options.bundle!r} has no {VERILOG}, and no package; `generate` and `package` "
            f"write them"
        )
    if not tops:
        tops[verilog] = findings(verilog)
        for shell in map(shell_top, SHELLS):
            file = verilog.with_name(f"{shell}.v")
            if file.is_file():
                tops[file] = findings(file, verilog, top=shell)
    for file, text in tops.items():
        print(text or f"{file}: clean", end="" if text else "\n")
    return 1 if any(tops.values()) else 0


def counted(number, noun):
    """Return a number with its noun."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def timed(parameters):
    """Return what is said of timestamps."""
    bits = parameters.timestamp_bits
    return f"timestamps of {bits} bits" if bits else "no timestamps"


def summary(parameters):
    """Describe parameters in one line."""
    cores = counted(parameters.cores, "core")
    if isinstance(parameters, AggregateParameters):
        return (
            f"{cores}, operator {parameters.operator.name} for {parameters.keys:,} keys, "
            f"{counted(parameters.panes, 'pane')}, {timed(parameters)}"
            + f"; sends reductions: {parameters.operator.unsent} are left to who reads the results"
            * bool(parameters.operator.unsent)
        )
    keys = " ".join(
        f"{key.name}:{key.bits}{'' if key.signed else ':unsigned'}" for key in parameters.keys
    )
    engine = parameters.engine
    return (
        f"{engine.fixed['engine']}, {cores} x {counted(parameters.window.sub_window, 'tuple')}, "
        f"{counted(engine.lanes, 'lane')}, {counted(engine.probes, 'probe')}, "
        f"{parameters.predicate.kind} on {keys}, {timed(parameters)}"
        + f", digests of {engine.digest_bits} bits" * bool(engine.digest_bits)
        + f", aggregated values of {engine.value_bits} bits" * parameters.is_aggregated
    )


def parser(prog="python -m hdl"):
    """Return the parser of the command line."""
    top = CommandParser(prog=prog, description=__doc__.partition(": ")[2])
    commands = top.add_subparsers(metavar="COMMAND", required=True)
    command = commands.add_parser(
        "generate", help="write a bundle: Verilog and manifest",
        example="--preset tiny --shell axi --output build/tiny",
    )  # fmt: skip
    bundle = command.add_argument_group("bundle")
    bundle.add_argument("--output", required=True, metavar="DIR", help="folder of the bundle")
    bundle.add_argument(
        "--shell", action="append", choices=SHELLS, metavar="SHELL",
        help="also write a shell around the accelerator, with its registers as C header, SystemRDL "
        "and Markdown: axi (AXI4-Stream, AXI4-Lite; docs/axi.md)",
    )  # fmt: skip
    add_axi_options(command)
    add_parameter_options(command)
    command.set_defaults(run=generate)
    command = commands.add_parser("presets", help="list the named configurations", example="")
    command.set_defaults(run=presets)
    command = commands.add_parser(
        "lint", help="check the Verilog of a bundle or package with Verilator", example="build/tiny"
    )
    command.add_argument("bundle", metavar="DIR", help="its folder")
    command.set_defaults(run=lint)
    add_packaging(commands)
    add_commands(commands)
    add_boards(commands)
    return top


def main(arguments=None, *, prog="python -m hdl"):
    """Run the command line; return the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["prove"]:
        moved = "`python -m formal`, in a checkout of the kit"
        print(f"{prog}: Command 'prove' is {moved}", file=sys.stderr)
        return 2
    options = parser(prog).parse_args(arguments, argparse.Namespace(arguments=arguments))
    try:
        return options.run(options)
    except (ValueError, OSError, YosysError) as error:
        # A design that was left half-made would be complained of, a line for each component.
        warnings.simplefilter("ignore", UnusedElaboratable)
        print(f"{prog}: {error}", file=sys.stderr)
        return 2 if isinstance(error, ValueError) else 1


if __name__ == "__main__":
    sys.exit(main())
