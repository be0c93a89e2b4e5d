# SPDX-License-Identifier: Apache-2.0
"""Put the bitstream of a board on trial: read back into logic, simulated at its pins, it joins."""

from contextlib import closing
from pathlib import Path
import re

from hdl.boards.bitstream import device_options, make_bitstream
from hdl.boards.flows import FLOWS
from hdl.boards.table import BOARDS, find_board
from hdl.presets import PRESETS
from sim.verilated.model import Harness

from .board import SimulatedBoard
from .conversation import BoardConversation
from .library import HARNESS, TOP, build_pins
from .unpacked import Bitstream
from .unpacked_ice40 import NAME, unpacked_verilog

__all__ = ["add_command", "build_bitstream", "read_bitstream"]

#: Pins by the port of the harness, from the names that the constraints have.
PORTS = {"clk": "clk", "rx": "uart_0__rx", "tx": "uart_0__tx", "led": "led_0"}
#: Single bits are many small expressions, in files that do not become one function.
FLAGS = [
    "-O3", "-fno-gate", "--x-assign", "fast", "--no-assert", "--no-timing", "--output-split",
    "20000", "--output-split-cfuncs", "400", "-Wno-fatal", "-Wno-lint", "-Wno-style", "--quiet",
]  # fmt: skip
LEVELS = ("-O1", "-O0")


def named(names):
    """Return, by the port of the harness, the one of these names of pins that stands for it."""
    return {
        port: next(name for name in names if name.startswith(start))
        for port, start in PORTS.items()
    }


def pins_of(constraints):
    """Return the pins of the package by the port of the harness.

    Parameters
    ----------
    constraints : str
        The constraints that the bitstream was routed with (``top.cst``).
    """
    found = dict(re.findall(r'IO_LOC "(\w+?)(?:__io)?" (\w+);', constraints))
    return {port: found[name] for port, name in named(found).items()}


def read_gowin(board, folder):
    """Return the logic of a bitstream for a device of Gowin."""
    options = device_options(board, board.make_platform())
    pins = pins_of((folder / "work" / "top.cst").read_text())
    bitstream = Bitstream(folder / f"{board.name}.fs", options["series"], options["part"])
    inputs = {port: pins[port] for port in ("clk", "rx")}
    outputs = {port: pins[port] for port in ("tx", "led")}
    return bitstream.verilog(inputs, outputs, name=TOP)


def read_ice40(board, folder):
    """Return the logic of a bitstream for an iCE40."""
    work = folder / "work"
    logic = unpacked_verilog(folder / f"{board.name}.bin", work / "top.pcf", work)
    ports = named(re.findall(r"\w+", re.search(rf"module {NAME} \((.*)\);", logic)[1]))
    pins = ", ".join(f".{name}({port})" for port, name in ports.items())
    return (
        f"{logic}\nmodule {TOP} (input clk, input rst, input rx, output tx, output led);\n"
        f"  {NAME} device ({pins});\nendmodule\n"
    )


#: Functions that read bitstreams, by the family of the device.
READERS = {"gowin": read_gowin, "ice40": read_ice40}


def read_bitstream(board, folder):
    """Return the logic of the bitstream of a board, as Verilog for the board's harness.

    It has an input ``rst`` without effect: a device begins with the values of its bitstream.

    Parameters
    ----------
    board : Board
        A board with a device of Gowin or an iCE40.
    folder : path-like
        What :func:`hdl.boards.bitstream.make_bitstream` wrote.

    Raises
    ------
    ValueError
        If nothing reads the bitstreams of the board's device.
    UnknownFuses
        If the bitstream has something without a model.
    ToolError
        If a program that reads it is missing or fails.
    """
    if board.family not in READERS:
        known = ", ".join(name for name, each in BOARDS.items() if each.family in READERS)
        raise ValueError(
            f"Bitstreams of {board.title} cannot be read back into logic; those of {known} can"
        )
    return READERS[board.family](board, Path(folder))


def build_bitstream(board, verilog, *, report=lambda text: None):
    """Build the simulator library of a bitstream, or take it from the cache.

    Parameters
    ----------
    board : Board
        The board.
    verilog : str
        Result of :func:`read_bitstream`.
    report : callable
        Receives lines of text about the progress.

    Returns
    -------
    Path
        The shared object, for :class:`sim.board.board.SimulatedBoard`.

    Raises
    ------
    MissingToolError, FailureError, BuildError
        As of :func:`sim.board.library.build_board`.
    """
    return build_pins(
        verilog, Harness(HARNESS, TOP, {"DIVISOR": board.divisor}), lambda: verilog,
        what=f"bitstream of {board.name}", report=report, verilator_flags=FLAGS, levels=LEVELS,
    )  # fmt: skip


def trial(options, report):
    """Make a bitstream if need be, and join with it; return 1 if any result differs."""
    board = find_board(options.board.lower())
    folder = Path(
        options.bitstream or Path("build") / "bitstreams" / f"{board.name}-{board.preset}"
    )
    bitstream = folder / f"{board.name}{Path(FLOWS[board.family].file).suffix}"
    if not bitstream.exists() and board.family in READERS:
        report(f"making the bitstream of {board.name}: minutes")
        make_bitstream(board, PRESETS[board.preset], folder, preset=board.preset)
    verilog = read_bitstream(board, folder)
    library = build_bitstream(board, verilog, report=report)
    with closing(SimulatedBoard(library)) as simulated:
        run = BoardConversation(simulated, board)
        course = run.join(folder / "bundle", options.tuples, seed=options.seed, report=report)
    print(
        f"{board.name}, {bitstream}: {options.tuples:,} tuples, "
        f"{len(course.results) // course.result_bytes:,} results, {course.cycles:,} cycles, "
        f"{course.differences} differences"
    )
    return int(course.differences > 0)


def add_command(commands, report):
    """Add the command to the subparsers ``commands``; ``report`` receives its progress."""
    command = commands.add_parser(
        "trial",
        help="read the bitstream of a board back into logic, and join with it",
        description="Make the bitstream of a board, read it back into logic, simulate that at the "
        "pins of its UART, and compare each result with the reference join. What synthesis, "
        "placement, routing and the writer of the bitstream made is inside what is tested.",
        example="tang-nano-9k --tuples 1000",
    )
    command.add_argument("board", metavar="BOARD", help="such as tang-nano-9k")
    run = command.add_argument_group("run")
    run.add_argument(
        "--bitstream", metavar="DIR",
        help="folder that `hdl bitstream` wrote; default: build/bitstreams/BOARD-PRESET, which is "
        "made if it does not exist",
    )  # fmt: skip
    run.add_argument("--tuples", type=int, default=10_000, metavar="N", help="default: 10,000")
    run.add_argument("--seed", type=int, default=1, metavar="N", help="of the tuples")
    command.set_defaults(run=lambda options: trial(options, report))
