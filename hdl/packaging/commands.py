# SPDX-License-Identifier: Apache-2.0
"""The commands ``package`` and ``kernel`` of ``python -m hdl``."""

from hdl.options import add_parameter_options, parameters_from
from hdl.shells.axi import add_axi_options, axi_options_from
from hdl.shells.names import SHELLS

from .headers import DEFAULT_PREFIX, PackageNames

__all__ = ["add_commands"]


def package(options):
    """Write a package."""
    names = PackageNames(options.module_prefix)
    parameters = parameters_from(options, aggregates=True)
    axi = axi_options_from(options, has_shell=options.shell == "axi")
    from .files import write_package

    paths = write_package(
        parameters, options.output, names, shell=options.shell, bench=options.bench, axi=axi
    )
    print(f"{options.output}: top module {names.top(options.shell)}")
    for path in paths:
        print(f"  {path.name}")
    return 0


def kernel(options):
    """Write a kernel of Vitis."""
    from .vitis import write_kernel

    for path in write_kernel(parameters_from(options, aggregates=True), options.output):
        print(path)
    return 0


def add_commands(commands):
    """Add the commands to a parser's subparsers."""
    command = commands.add_parser(
        "kernel", help="write an RTL kernel of Vitis, with kernel.xml and Tcl for package_xo",
        example="--preset tiny --output build/kernel",
    )  # fmt: skip
    group = command.add_argument_group("kernel")
    group.add_argument("--output", required=True, metavar="DIR", help="folder of the kernel")
    add_parameter_options(command)
    command.set_defaults(run=kernel)
    command = commands.add_parser(
        "package", help="write one Verilog file for another design, with headers and a test bench",
        example="--preset tiny --shell axi --module-prefix trades_ --output build/trades",
    )  # fmt: skip
    group = command.add_argument_group("package")
    group.add_argument("--output", required=True, metavar="DIR", help="folder of the package")
    group.add_argument(
        "--shell", choices=SHELLS, help="shell around the accelerator; default: none, bare streams"
    )
    group.add_argument(
        "--module-prefix", default=DEFAULT_PREFIX, metavar="PREFIX",
        help=f"what the names of all modules and files begin with; default: {DEFAULT_PREFIX}",
    )  # fmt: skip
    group.add_argument(
        "--no-bench", action="store_false", dest="bench",
        help="no test bench; a predicate of your own, or an aggregate, has none",
    )  # fmt: skip
    add_axi_options(command)
    add_parameter_options(command)
    command.set_defaults(run=package)
