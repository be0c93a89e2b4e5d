# SPDX-License-Identifier: Apache-2.0
"""The commands ``cost``, ``depth``, ``route`` and ``reports`` of ``python -m hdl``."""

import argparse
import json
import os
from pathlib import Path
import shlex

from hdl.installation import sibling_command
from hdl.options import add_parameter_options, parameters_from
from hdl.parameters import JoinParameters

from .devices import DEVICES, LARGE_DEVICES, SPEEDS, find_device
from .tools import VARIABLES

__all__ = ["add_commands"]

DEVICE = "lfe5u-85f"


def cost(options):
    """Print the cost of an accelerator, or an estimate for a device that is not routed here."""
    large = LARGE_DEVICES.get(options.device.lower())
    if large is not None:
        return print_estimate(options, large)
    device = find_device(options.device)
    parameters = parameters_from(options, aggregates=True)
    from .cost import cost_report, cost_table
    from .reports import design_name

    folder = Path("build/cost") / design_name(parameters, options.preset)
    report = cost_report(parameters, device, folder=folder, preset=options.preset)
    print(json.dumps(report, indent=2) if options.json else cost_table(report))
    return 0


def print_estimate(options, device):
    """Print how large an accelerator can be on a large device."""
    parameters = parameters_from(options)
    from .cost import estimate, estimate_text
    from .reports import design_name

    folder = Path("build/estimate") / design_name(parameters, options.preset)
    report = estimate(
        parameters, device, folder=folder, mhz=options.assumed_mhz, usable=options.usable
    )
    print(json.dumps(report, indent=2) if options.json else estimate_text(report))
    return 0


def depth(options):
    """Print the logic depth of an accelerator."""
    device = find_device(options.device)
    parameters = parameters_from(options, aggregates=True)
    from .depth import depth_report, depth_table
    from .reports import design_name

    folder = Path("build/depth") / (
        design_name(parameters, options.preset) + merged_suffix(options.inputs)
    )
    report = depth_report(
        parameters, device, folder=folder, preset=options.preset, inputs=options.inputs
    )
    print(json.dumps(report, indent=2) if options.json else depth_table(report, limit=options.rows))
    return 0


def merged_suffix(inputs):
    """Return what the name of a design ends with if so many inputs are merged in front of it."""
    return f"-{inputs}-inputs" if inputs > 1 else ""


def read(path):
    """Return the contents of a JSON file."""
    return json.loads(Path(path).read_text(encoding="utf-8"))


def typed(arguments):
    """Return the command line, including the environment variables that select other tools."""
    named = [
        f"{variable}={shlex.quote(Path(os.environ[variable]).name)}"
        for variable in VARIABLES.values()
        if os.environ.get(variable)
    ]
    return " ".join([*named, shlex.join(["python", "-m", "hdl", *arguments])])


def route(options):
    """Place and route an accelerator, and write the report."""
    device = find_device(options.device)
    parameters = parameters_from(options, aggregates=True)
    if options.seeds < 1:
        raise ValueError(f"Option --seeds must be at least 1, not {options.seeds}")
    if options.jobs < 1:
        raise ValueError(f"Option --jobs must be at least 1, not {options.jobs}")
    from .reports import design_name, of_parameters, write_report
    from .route import Target
    from .route import route as run

    design = design_name(parameters, options.preset) + merged_suffix(options.inputs)
    name = f"{design}-{device.name}-grade{options.speed}"
    written = Path(options.output) / f"{name}.json"
    earlier = None
    if options.add and written.exists():
        earlier = read(written)
    measured = options.measured and of_parameters(read(options.measured), parameters)
    report = run(
        parameters,
        Target(
            device=device,
            speed=options.speed,
            frequency=options.frequency,
            deadline=60 * options.deadline,
        ),
        seeds=range(options.seed, options.seed + options.seeds),
        folder=Path("build/route") / name,
        jobs=options.jobs,
        inputs=options.inputs,
        preset=options.preset,
        measured=measured,
        command=typed(options.arguments),
        earlier=earlier,
    )
    paths = write_report(report, options.output, name)
    size = f", {report['comparators']} comparators" if "comparators" in report else ""
    print(f"{report['fmax_mhz']} MHz{size}: {paths[1]}")
    return 0


def reports(options):
    """List the published reports, and write their Markdown again."""
    from .reports import earlier_design, of_parameters, published, routed_parameters, write_report

    measured = [read(path) for path in options.measured]
    for path, report in published(options.output).items():
        earlier = earlier_design(report)
        parameters = routed_parameters(report)
        for each in measured:
            if JoinParameters.of(**each["parameters"]) != parameters:
                continue
            if earlier is not None:
                raise ValueError(
                    f"The report {path} is of an earlier design ({earlier}): what is measured now "
                    "does not belong to it; route it again"
                )
            report["measured"] = of_parameters(each, parameters)
        write_report(report, path.parent, path.stem, earlier)
        locked = any(router["locked"] for router in report["routers"])
        print(
            f"{path.stem}: {report['fmax_mhz']} MHz, "
            f"{'of today' if earlier is None else f'of an earlier design ({earlier})'}, "
            f"{'with' if locked else 'without'} a seed of the locked package",
            flush=True,
        )
    return 0


def add_device_options(command):
    """Add the options that all commands share; return the group of those about the device."""
    group = command.add_argument_group("device")
    group.add_argument(
        "--device", default=DEVICE, metavar="NAME",
        help=f"one of {', '.join(DEVICES)}; default: {DEVICE}",
    )  # fmt: skip
    add_parameter_options(command)
    return group


def add_inputs_option(group):
    """Add the option for the merge in front of the accelerator."""
    group.add_argument(
        "--inputs", type=int, default=1, metavar="N",
        help="put the merge of so many inputs in front of the accelerator (docs/scalegate.md)",
    )  # fmt: skip


def add_output_option(group):
    """Add the option for the folder of the reports."""
    group.add_argument(
        "--output", default="docs/routing", metavar="DIR", help="default: docs/routing"
    )


def add_commands(commands):
    """Add the commands to the subparsers ``commands``."""
    command = commands.add_parser(
        "cost", help="LUTs, registers and block RAMs by component",
        description="Synthesize an accelerator, and count what each of its components takes. "
        f"With --device {', '.join(LARGE_DEVICES)}: an estimate of how many cores fit, "
        "from Yosys' cells; nothing is placed or routed.",
        example="--preset tiny",
    )  # fmt: skip
    group = add_device_options(command)
    group.add_argument(
        "--assumed-mhz", type=float, default=250.0, metavar="MHZ",
        help="clock of an estimate, which is assumed, not routed; default: 250",
    )  # fmt: skip
    group.add_argument(
        "--usable", type=float, default=0.7, metavar="SHARE",
        help="share of each resource that an estimate fills; default: 0.7",
    )  # fmt: skip
    group.add_argument("--json", action="store_true", help="print JSON instead of a table")
    command.set_defaults(run=cost)

    command = commands.add_parser(
        "depth", help="LUTs between registers, deepest paths first", example="--preset tiny"
    )
    group = add_device_options(command)
    add_inputs_option(group)
    group.add_argument("--json", action="store_true", help="print JSON instead of a table")
    group.add_argument("--rows", type=int, default=25, metavar="N", help="default: 25")
    command.set_defaults(run=depth)

    command = commands.add_parser(
        "route", help="place and route; report clock and utilization",
        example="--preset tiny --frequency 100 --output build/routing",
    )  # fmt: skip
    group = add_device_options(command)
    group.add_argument("--speed", type=int, choices=SPEEDS, default=8, help="grade; default: 8")
    group.add_argument(
        "--frequency", type=float, default=200.0, metavar="MHZ", help="to aim at; default: 200"
    )
    add_inputs_option(group)
    run = command.add_argument_group("run")
    run.add_argument("--seed", type=int, default=1, metavar="N", help="of nextpnr; default: 1")
    run.add_argument(
        "--seeds", type=int, default=1, metavar="N",
        help="route with so many seeds, from --seed on; the slowest counts",
    )  # fmt: skip
    run.add_argument(
        "--jobs", type=int, default=1, metavar="N",
        help="seeds to route at the same time, 1 to 3 GB each; default: 1",
    )  # fmt: skip
    run.add_argument(
        "--deadline", type=float, default=120.0, metavar="MINUTES",
        help="for one run of nextpnr; default: 120",
    )  # fmt: skip
    report = command.add_argument_group("report")
    add_output_option(report)
    # For those who change the kit: add the seeds to the report of the same design that is there;
    # take the rates from what `sim saturate` counted of the same parameters.
    command.add_argument("--add", action="store_true", help=argparse.SUPPRESS)
    command.add_argument("--measured", metavar="FILE", help=argparse.SUPPRESS)
    command.set_defaults(run=route)

    command = commands.add_parser(
        "reports", help="list the routing reports, mark those of an earlier design", example=""
    )
    command.add_argument(
        "--measured", action="append", default=[], metavar="FILE",
        help=f"put what `{sibling_command(command, 'sim saturate')}` counted into the reports of "
        "the same parameters",
    )  # fmt: skip
    add_output_option(command)
    command.set_defaults(run=reports)
