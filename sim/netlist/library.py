# SPDX-License-Identifier: Apache-2.0
"""Build a simulator library of the netlist that nextpnr gets, with the interface of any bundle.

The netlist and the library are kept in the cache of :mod:`sim.verilated.library`, named by a hash
of what they are made from.
"""

import json
from pathlib import Path

from hdl.bundle import write_bundle
from hdl.fpga import floorplan, route, synthesis
from hdl.fpga import shell as opened_shell
from hdl.fpga.devices import find_device
from hdl.fpga.provenance import identify, routed_verilog
from hdl.fpga.route import placed_netlist
from hdl.fpga.shell import open_shell
from hdl.fpga.tools import YOSYS
from host.devices.simulated import LIBRARY
from host.files.atomic import publish
from host.protocol.manifest import Manifest
from sim.verilated.library import cached, cached_runtime, hash_of, made_with
from sim.verilated.model import accelerator_harness, compile_model, recipe, runtime_recipe
from sim.verilated.toolchain import Heartbeat, find_toolchain

from .cells import cell_models
from .text import netlist_text

__all__ = ["build_netlist_library", "netlist_of"]

DEVICE = "lfe5u-85f"
TOP = "splitjoin"
#: Source files that decide a netlist, besides the Verilog, and its library, besides the netlist.
FLOW = [Path(module.__file__) for module in (synthesis, floorplan, route)] + [synthesis.RESETS]
HERE = [Path(opened_shell.__file__), *(Path(__file__).with_name(n) for n in ("text.py",))]
#: Undriven bits, registers without a reset and memories start with random values. A netlist becomes
#: one large function, which is cut because compilers would take minutes for it.
FLAGS = [
    "-O3", "--x-assign", "unique", "--x-initial", "unique", "--no-assert", "--no-timing",
    "--output-split", "0", "--output-split-cfuncs", "400", "-Wno-fatal", "-Wno-lint", "-Wno-style",
    "-Wno-SPECIFYIGN", "-Wno-INITIALDLY", "--quiet",
]  # fmt: skip
LEVELS = ("-O1", "-O0")


def netlist_of(parameters, *, report=lambda text: None):
    """Return the netlist that ``python -m hdl route`` gives to nextpnr, from the cache if possible.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    report : callable
        Receives lines about the progress.

    Returns
    -------
    dict
        Netlist in Yosys' JSON format: the accelerator in its routing shell.
    """
    device = find_device(DEVICE)
    verilog = routed_verilog(parameters, device)
    flow = [path.read_text(encoding="utf-8") for path in FLOW]
    key = hash_of([verilog, device.name, identify(YOSYS).version, *flow])

    def make(place, log):
        report(f"synthesizing {parameters.engine.kind} {parameters.predicate.kind}")
        return placed_netlist(verilog, parameters, device, folder=place)[0]

    path = cached(f"netlist-{key}.json", make, report=report)
    return json.loads(path.read_text(encoding="utf-8"))


def build_netlist_library(netlist, parameters, bundle, *, models=None, report=lambda text: None):
    """Build the simulator library of a netlist, and put it into the bundle of its accelerator.

    The bundle can then be opened like any other. ``python -m sim build`` restores the library of
    its own Verilog.

    Parameters
    ----------
    netlist : dict
        Result of :func:`netlist_of`, possibly changed by a test. Its shell is opened in place.
    parameters : JoinParameters
        Parameters of the accelerator.
    bundle : path-like
        Folder of the accelerator's bundle, which is written if it does not exist.
    models : str, optional
        Verilog of the cells; by default :func:`sim.netlist.cells.cell_models`.
    report : callable
        Receives lines about the progress.

    Returns
    -------
    Path
        The library in the bundle.

    Raises
    ------
    ToolError, MissingToolError
        If Yosys, Verilator or the compiler is missing or fails.
    BuildError
        If the library cannot be built.
    """
    bundle = Path(bundle).absolute()
    write_bundle(parameters, bundle)
    harness, tools = accelerator_harness(Manifest.load(bundle)), find_toolchain()
    models = models or cell_models()
    open_shell(netlist, parameters, name=TOP)
    parts = [json.dumps(netlist), *recipe(harness), *runtime_recipe(), *made_with(tools)]
    own = [path.read_text(encoding="utf-8") for path in HERE]
    key = hash_of([*parts, *own, models, *FLAGS, *LEVELS])
    what = f"{bundle.name} (netlist)"

    def make(place, log):
        report(f"{what}: building the simulator library")
        text = netlist_text(netlist, models, top=TOP, folder=place)
        return compile_model(
            tools, text, harness, cached_runtime(tools, what=what, report=report), place,
            what=what, log=log, heartbeat=Heartbeat(report), verilator_flags=FLAGS, levels=LEVELS,
        )  # fmt: skip

    publish(cached(f"netlist-{key}.so", make, report=report), bundle / LIBRARY)
    return bundle / LIBRARY
