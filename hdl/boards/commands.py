# SPDX-License-Identifier: Apache-2.0
"""The commands ``boards`` and ``bitstream`` of ``python -m hdl``."""

from dataclasses import replace
from pathlib import Path

from hdl.options import add_parameter_options, parameters_from
from hdl.presets import PRESETS

from .table import BOARDS, find_board

__all__ = ["add_commands"]


def boards(options):
    """List the boards."""
    for board in BOARDS.values():
        print(
            f"{board.name:13} {board.mhz:g} MHz, preset {board.preset}: {board.title}; {board.line}"
        )
    return 0


def addressed(board, options):
    """Return a board with the addresses that the options name.

    Raises
    ------
    ValueError
        If an address is none that a board can have, or the board has no Ethernet.
    """
    names = ("mac", "ip", "port")
    chosen = {name: value for name in names if (value := getattr(options, name)) is not None}
    if chosen and board.ethernet is None:
        raise ValueError(
            f"Option --{next(iter(chosen))} is for a board with Ethernet, and {board.name} has a "
            "UART"
        )
    return replace(board, ethernet=replace(board.ethernet, **chosen)) if chosen else board


def bitstream(options):
    """Make a bitstream."""
    from .bitstream import make_bitstream

    board = addressed(find_board(options.board), options)
    preset = options.preset or board.preset
    parameters = parameters_from(options) if options.preset else PRESETS[preset]
    folder = Path(options.output or Path("build") / "bitstreams" / f"{board.name}-{preset}")
    report = make_bitstream(board, parameters, folder, preset=preset, seed=options.seed)
    used = ", ".join(
        f"{name} {n['used'] / n['available']:.0%}" for name, n in report["resources"].items()
    )
    print(f"{folder / report['bitstream']}: {report['fmax_mhz']} of {board.mhz} MHz, {used}")
    print(f"Load it: {report['load']}")
    print(f"Open it: {board.uri(folder / 'bundle')}")
    return 0


def add_commands(commands):
    """Add the commands to a parser's subparsers."""
    command = commands.add_parser(
        "boards", help="list the boards, and the preset of each", example=""
    )
    command.set_defaults(run=boards)
    command = commands.add_parser(
        "bitstream", help="make the bitstream of a board", example="--board ulx3s-12f"
    )
    group = command.add_argument_group("board")
    group.add_argument("--board", required=True, metavar="NAME", help=f"{', '.join(BOARDS)}")
    group.add_argument("--output", metavar="DIR", help="default: build/bitstreams/BOARD-PRESET")
    group.add_argument("--seed", type=int, default=1, help="of nextpnr")
    group.add_argument("--mac", help="address of a board in Ethernet; boards need different ones")
    group.add_argument("--ip", help="IPv4 address of a board with Ethernet")
    group.add_argument("--port", type=int, help="UDP port of a board with Ethernet")
    add_parameter_options(command)
    command.set_defaults(run=bitstream)
