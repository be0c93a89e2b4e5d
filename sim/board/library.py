# SPDX-License-Identifier: Apache-2.0
"""Build the circuit of a board, with the other end of its line at the pins, as a shared object."""

from pathlib import Path

from hdl.boards.top import ETHERNET_MHZ
from hdl.shells.linked_accelerator import EthernetShell
from hdl.verilog.conversion import to_netlist, to_verilog
from sim.verilated.library import cached, cached_runtime, key_of
from sim.verilated.model import Harness, compile_model, simulated_text
from sim.verilated.toolchain import Heartbeat, find_toolchain

from .pins import BoardPins

__all__ = ["build_board", "build_pins"]

TOP = "splitjoin_board"
HARNESS, ETHERNET_HARNESS = (
    Path(__file__).with_name(name) for name in ("harness.cpp", "ethernet_harness.cpp")
)


def uart_board(board, parameters, digest):
    """Return netlist and harness of a board with a UART, and what makes Verilog of the netlist."""
    netlist = to_netlist(BoardPins(board, parameters, digest=digest), name=TOP)[1]
    harness = Harness(HARNESS, TOP, {"DIVISOR": board.divisor})
    return netlist, harness, lambda: simulated_text(netlist, top=TOP)


def ethernet_board(board, parameters, digest):
    """Return the same for a board with Ethernet.

    Its circuit has two clocks, which :mod:`sim.rewriter` does not know, so that it is simulated as
    its Verilog is.
    """
    shell = EthernetShell(parameters, digest=digest, ethernet=board.ethernet)
    verilog = to_verilog(shell, name=TOP)
    periods = {
        "ETHERNET_PS": round(1e6 / ETHERNET_MHZ), "LINK_PS": round(1e6 / board.mhz),
    }  # fmt: skip
    return verilog, Harness(ETHERNET_HARNESS, TOP, periods), lambda: verilog


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
        The shared object, for :class:`sim.board.board.SimulatedBoard`, or for
        :class:`sim.board.ethernet_board.SimulatedEthernetBoard` if the board has Ethernet.

    Raises
    ------
    MissingToolError
        If Verilator or the compiler is not installed.
    FailureError
        If the cache cannot be written.
    BuildError
        If a tool fails.
    """
    kind = uart_board if board.ethernet is None else ethernet_board
    source, harness, text = kind(board, parameters, digest)
    what = f"{board.name} (cores: {parameters.cores})"
    return build_pins(source, harness, text, what=what, report=report)


def build_pins(source, harness, text, *, what, report, **options):
    """Build the library of a circuit with the other end of its line, or take it from the cache.

    Parameters
    ----------
    source : str
        What the circuit is made from.
    harness : Harness
        The other end of the line.
    text : callable
        Returns the Verilog of the circuit.
    what : str
        Name of the build.
    report : callable
        Receives lines of text about the progress.
    **options
        Of :func:`sim.verilated.model.compile_model`: lists and tuples of str.

    Returns
    -------
    Path
        The shared object.

    Raises
    ------
    MissingToolError, FailureError, BuildError
        As of :func:`build_board`.
    """
    tools = find_toolchain()

    def make(place, log):
        report(f"{what}: building the simulated board")
        runtime = cached_runtime(tools, what=what, report=report)
        return compile_model(
            tools, text(), harness, runtime, place,
            what=what, log=log, heartbeat=Heartbeat(report), **options,
        )  # fmt: skip

    key = key_of(
        tools, harness, "\n".join([source, *(" ".join(each) for each in options.values())])
    )
    return cached(f"board-{key}.so", make, report=report)
