# SPDX-License-Identifier: Apache-2.0
"""The commands ``boards`` and ``bitstream`` of ``python -m hdl``."""

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


def bitstream(options):
    """Make a bitstream."""
    from .bitstream import make_bitstream

    board = find_board(options.board)
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
    command = commands.add_parser("boards", help="list the boards, and the preset of each")
    command.set_defaults(run=boards)
    command = commands.add_parser("bitstream", help="make the bitstream of a board")
    command.add_argument("--board", required=True, metavar="NAME", help=f"{', '.join(BOARDS)}")
    command.add_argument("--output", metavar="DIR", help="default: build/bitstreams/BOARD-PRESET")
    command.add_argument("--seed", type=int, default=1, help="of nextpnr")
    add_parameter_options(command)
    command.set_defaults(run=bitstream)
