# SPDX-License-Identifier: Apache-2.0
"""The command ``board`` of ``python -m sim``."""

from pathlib import Path
import signal

from hdl.boards.table import BOARDS, find_board
from hdl.bundle import write_bundle
from hdl.options import add_parameter_options, parameters_from
from hdl.presets import PRESETS

__all__ = ["add_command"]

#: Baud rates that systems know, the slowest first. One of them stands in the URI of the device.
BAUD_RATES = (1200, 2400, 4800, 9600, 19200, 38400, 57600, 115200, 230400, 500000, 1000000)


def simulated_baud(bytes_per_second):
    """Return the greatest of :data:`BAUD_RATES` that the simulated line is as fast as.

    A host derives its timeouts from the baud rate. With the rate of the board, it would send
    everything twice to a simulation that is slower.
    """
    return max((b for b in BAUD_RATES if b <= 10 * bytes_per_second), default=BAUD_RATES[0])


def board(options, report):
    """Serve a simulated board until the command is interrupted."""
    from .board import SimulatedBoard
    from .library import build_board
    from .ports import PseudoTerminal, TcpPort
    from .server import BoardServer, line_rate

    found = find_board(options.board.lower())
    if found.ethernet is not None:
        raise ValueError(
            f"{found.name} has Ethernet, which has no byte stream to serve; simulate a board with "
            f"a UART: {', '.join(name for name, b in BOARDS.items() if b.ethernet is None)}"
        )
    preset = options.preset or found.preset
    parameters = parameters_from(options) if options.preset else PRESETS[preset]
    folder = Path(options.output or Path("build") / "boards" / f"{found.name}-{preset}")
    manifest = write_bundle(parameters, folder / "bundle")
    library = build_board(found, parameters, digest=manifest["hash"], report=report)
    port = PseudoTerminal(options.pty or folder / "tty") if options.tcp is None else (
        TcpPort(options.tcp)
    )  # fmt: skip
    simulated = SimulatedBoard(library, seed=options.seed)
    try:
        server = BoardServer(
            simulated, port, damage=options.damage, seed=options.seed, unplug=options.unplug
        )
        rate = line_rate(simulated, divisor=found.divisor)
        report(f"{found.title}: {rate:,.0f} bytes/s each way, {found.baud // 10:,} on the board")
        baud = simulated_baud(rate)
        bundle = (folder / "bundle").absolute()
        print(f"{port.place}?baud={baud}&bundle={bundle}", flush=True)
        # An interrupt ends the loop between two slices, so that nothing is left behind.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: server.end())
        server.run()
        report(
            f"{simulated.cycle:,} cycles, {simulated.bytes_in:,} bytes in, "
            f"{simulated.bytes_out:,} out, {server.damaged:,} damaged, "
            f"{server.unplugged} times unplugged"
        )
    finally:
        simulated.close()
    return 0


def add_command(commands, report):
    """Add the command to the subparsers ``commands``; ``report`` receives its progress."""
    command = commands.add_parser(
        "board",
        help="serve a simulated board at a pseudo-terminal or a TCP port",
        description="Simulate the circuit that goes into a board's bitstream, with its UART at the "
        "pins, and print the URI by which a host opens it. It runs until it is interrupted.",
    )
    command.add_argument("board", metavar="BOARD", help=f"{', '.join(BOARDS)}")
    place = command.add_mutually_exclusive_group()
    place.add_argument(
        "--pty", nargs="?", metavar="PATH",
        help="serve at a pseudo-terminal (the default); PATH becomes a link to it",
    )  # fmt: skip
    place.add_argument(
        "--tcp", nargs="?", type=int, const=0, metavar="PORT",
        help="serve at this TCP port of this machine; without PORT, at any that is free",
    )  # fmt: skip
    command.add_argument(
        "--damage", type=float, default=0.0, metavar="SHARE",
        help="share of bytes that are flipped, lost, doubled or inserted, each way, such as 0.01",
    )  # fmt: skip
    command.add_argument(
        "--unplug", type=int, metavar="BYTES",
        help="unplug the board for half a second each time that so many bytes have passed",
    )  # fmt: skip
    command.add_argument(
        "--seed",
        type=int,
        default=1,
        metavar="N",
        help="of the damage and of registers at power-on",
    )
    command.add_argument("--output", metavar="DIR", help="default: build/boards/BOARD-PRESET")
    add_parameter_options(command)
    command.set_defaults(run=lambda options: board(options, report))
