# SPDX-License-Identifier: Apache-2.0
"""Build the circuit of a board, with a UART around its pins, as a shared object."""

from pathlib import Path

from hdl.verilog.conversion import to_netlist
from host.bundles.cache import library_folder, prepare_folder
from sim.verilated.library import cached, cached_runtime, key_of
from sim.verilated.model import Harness, compile_model, simulated_text
from sim.verilated.toolchain import Heartbeat, find_toolchain

from .pins import BoardPins

__all__ = ["build_board"]

TOP = "splitjoin_board"
HARNESS = Path(__file__).with_name("harness.cpp")


def build_board(board, parameters, *, digest, report=lambda text: None):
    """Build the library of a board, or take it from the cache of :mod:`sim.verilated.library`.

    Parameters
    ----------
    board : Board
        The board.
    parameters : JoinParameters
        Parameters of the accelerator.
    digest : str
        Hash of the bundle's manifest, which the board tells its host.
    report : callable
        Receives lines of text about the progress.

    Returns
    -------
    Path
        The shared object, for :class:`sim.board.board.SimulatedBoard`.

    Raises
    ------
    MissingToolError
        If Verilator or the compiler is not installed.
    CacheError
        If the cache cannot be written.
    BuildError
        If a tool fails.
    """
    netlist = to_netlist(BoardPins(board, parameters, digest=digest), name=TOP)[1]
    harness = Harness(HARNESS, TOP, {"DIVISOR": board.divisor})
    tools, what = find_toolchain(), f"{board.name} (cores: {parameters.cores})"

    def make(place, log):
        report(f"{what}: building the simulated board")
        runtime = cached_runtime(tools, what=what, report=report)
        return compile_model(
            tools, simulated_text(netlist, top=TOP), harness, runtime, place,
            what=what, log=log, heartbeat=Heartbeat(report),
        )  # fmt: skip

    prepare_folder(library_folder())
    return cached(f"board-{key_of(tools, harness, netlist)}.so", make, report=report)
