# SPDX-License-Identifier: Apache-2.0
"""Generate an aggregate, build its bench with cocotb and run it; the side that pytest calls."""

from hdl.bundle import VERILOG
from hdl.families.choice import make_accelerator
from hdl.packaging.one_file import packaged_ports
from hdl.verilog.conversion import TOP
from sim.benches.runner import (
    BenchRunner,
    build_bench,
    chosen,
    run_scenarios,
    stream_ports,
    write_bench,
    write_checks,
)

__all__ = ["run_aggregate_bench"]


def run_aggregate_bench(
    parameters, *, name, waves=False, seed=None, tuples=300, folder=None, deadline=4000
):
    """Build and run the bench of an accelerator of aggregates; return the number of scenarios.

    Parameters
    ----------
    parameters : AggregateParameters
        Parameters of the accelerator, with room for all keys of its operator.
    name, waves, seed, tuples, folder
        As of :func:`sim.benches.runner.run_bench`.
    deadline : int
        Cycles of a scenario beside those of its words, results and panes.

    Raises
    ------
    BuildError
        If the bench cannot be built.
    FailureError
        If a scenario fails.
    """
    waves, seed = chosen(waves, seed)
    bundle, build, manifest = write_bench(
        parameters, name=name, folder=folder, waves=waves, seed=seed
    )
    runner = BenchRunner()
    ports = {TOP: stream_ports(["o"])}
    pins = packaged_ports(make_accelerator(parameters), None)
    sources = [bundle / VERILOG, write_checks(build, TOP, pins, manifest)]
    build_bench(runner, name, build, waves, sources=sources, ports=ports)
    settings = {"bundle": str(bundle), "seed": seed, "tuples": tuples, "deadline": deadline}
    ran = run_scenarios(runner, name, settings, build, waves, module="sim.benches.aggregate")
    print(f"bench {name}: {ran} scenarios passed (seed {seed})", flush=True)
    return ran
