# SPDX-License-Identifier: Apache-2.0
"""Generate a bundle with its AXI shell, build the shell's bench with cocotb and run it."""

import json

from hdl.aggregate.aggregate_parameters import AGGREGATE_PRESETS
from hdl.bundle import VERILOG
from hdl.families.choice import family_of, make_accelerator
from hdl.packaging.one_file import packaged_ports
from hdl.presets import PRESETS
from hdl.shells.axi import AXI_TOP, AxiOptions
from hdl.verilog.conversion import TOP
from sim.benches.runner import (
    BenchRunner,
    build_bench,
    run_scenarios,
    write_bench,
    write_checks,
)

__all__ = ["AXI_SHAPES", "run_axi_bench", "run_axi_benches"]

#: The accelerators of the AXI benches and the options of their shells: one result port and two, one
#: tuple in a word and two, one input and several, one clock and two, joins and aggregates.
AXI_SHAPES = {
    "axi": (PRESETS["tiny"], AxiOptions()),
    "axi of two ports": (
        PRESETS["tiny"].with_(cores=1, engine="index", tuples_per_word=2, result_streams=2),
        AxiOptions(),
    ),
    "axi of two inputs": (PRESETS["tiny"], AxiOptions(inputs=2)),
    "axi of five inputs": (PRESETS["tiny"], AxiOptions(inputs=5)),
    "axi of two clocks": (PRESETS["tiny"], AxiOptions(bus_clock="separate")),
    "axi of a join aggregate": (PRESETS["tiny-join-aggregate"], AxiOptions()),
    "axi of an aggregate": (AGGREGATE_PRESETS["tiny-aggregate"], AxiOptions()),
    "axi of an aggregate of four inputs": (
        AGGREGATE_PRESETS["tiny-aggregate"],
        AxiOptions(inputs=4, bus_clock="separate"),
    ),
}


def run_axi_bench(
    parameters, *, name, options=None, waves=False, seed=1, tuples=100, folder=None, drivers=None
):
    """Build and run the bench of an accelerator's AXI shell.

    Parameters
    ----------
    parameters, name, waves, tuples, folder
        See :func:`sim.benches.runner.run_bench`.
    options : AxiOptions or None
        What the shell looks like from outside.
    seed : int
        Seed of tuples, pauses and the ratio of two clocks.
    drivers : str, optional
        Module with the drivers, by default :mod:`sim.benches.axi_drivers`. Others cannot tell the
        cycles of words, so nothing is measured with them.

    Returns
    -------
    dict of str to float
        Words per cycle ``in`` and ``out``, and cycles that the shell adds ``before`` and ``behind``
        the accelerator; of an aggregate, ``in`` only. Empty with other ``drivers``.

    Raises
    ------
    BuildError, FailureError
        If the bench cannot be built, or if a scenario fails.
    """
    bundle, build, manifest = write_bench(
        parameters, name=name, folder=folder, waves=waves, seed=seed, shells=["axi"], axi=options
    )
    shell = manifest["shells"]["axi"]
    ports = {
        AXI_TOP: shell["ports"],
        TOP: packaged_ports(make_accelerator(parameters), None),
    }
    pins = AxiOptions() if options is None else options
    checks = write_checks(build, AXI_TOP, shell["ports"], manifest, "axi", pins)
    sources = [bundle / shell["files"]["verilog"], bundle / VERILOG, checks]
    runner = BenchRunner()
    build_bench(runner, name, build, waves, sources=sources, ports=ports, top=AXI_TOP)
    measured = build / "measured.json"
    measured.unlink(missing_ok=True)
    settings = {
        "bundle": str(bundle), "seed": seed, "tuples": tuples, "coverage": str(measured),
        "drivers": drivers,
    }  # fmt: skip
    side = "axi_aggregate" if family_of(parameters).takes_watermarks else "axi_shell"
    ran = run_scenarios(
        runner, name, settings, build, waves, module=f"sim.benches.{side}", top=AXI_TOP
    )
    print(f"bench {name}: {ran} scenarios passed (seed {seed})", flush=True)
    return json.loads(measured.read_text()) if drivers is None else {}


def run_axi_benches(**options):
    """Run the benches of all :data:`AXI_SHAPES`, with options of :func:`run_axi_bench`."""
    for name, (parameters, pins) in AXI_SHAPES.items():
        run_axi_bench(parameters, name=name, options=pins, **options)
