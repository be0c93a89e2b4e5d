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
    from .library import build_board

    found = find_board(options.board.lower())
    check_place(found, options)
    preset = options.preset or found.preset
    parameters = parameters_from(options) if options.preset else PRESETS[preset]
    folder = Path(options.output or Path("build") / "boards" / f"{found.name}-{preset}")
    manifest = write_bundle(parameters, folder / "bundle")
    library = build_board(found, parameters, digest=manifest["hash"], report=report)
    run = serve_uart if found.ethernet is None else serve_ethernet
    run(found, library, folder, options, report)
    return 0


def check_place(found, options):
    """Raise :exc:`ValueError` if a board cannot be served where the options say."""
    foreign = ["udp"] if found.ethernet is None else ["pty", "tcp", "unplug"]
    wrong = [name for name in foreign if getattr(options, name) is not None]
    if wrong:
        raise ValueError(
            f"Option --{wrong[0]} is not for {found.name}, which has "
            + ("a UART" if found.ethernet is None else "Ethernet; serve it at a UDP port, --udp")
        )


def serve(server, place, rate, folder):
    """Print the URI of a simulated board, and run its server until an interrupt.

    That ends it between two slices: nothing is left behind.
    """
    bundle = (folder / "bundle").absolute()
    print(f"{place}?baud={simulated_baud(rate)}&bundle={bundle}", flush=True)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: server.end())
    server.run()


def serve_uart(found, library, folder, options, report):
    """Serve a board with a UART at a pseudo-terminal or a TCP port."""
    from .board import SimulatedBoard
    from .ports import PseudoTerminal, TcpPort
    from .server import BoardServer, line_rate

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
        serve(server, port.place, rate, folder)
        report(
            f"{simulated.cycle:,} cycles, {simulated.bytes_in:,} bytes in, "
            f"{simulated.bytes_out:,} out, {server.damaged:,} damaged, "
            f"{server.unplugged} times unplugged"
        )
    finally:
        simulated.close()


def serve_ethernet(found, library, folder, options, report):
    """Serve a board with Ethernet at a UDP port."""
    from .ethernet_board import SimulatedEthernetBoard
    from .udp_server import UdpServer

    simulated = SimulatedEthernetBoard(library, seed=options.seed)
    try:
        server = UdpServer(
            simulated, found, number=options.udp or 0, damage=options.damage, seed=options.seed
        )
        rate = server.rate()
        report(f"{found.title}: {rate:,.0f} bytes/s each way, {found.mhz * 1e6:,.0f} on the board")
        serve(server, server.place, rate, folder)
        report(
            f"{simulated.cycle:,} cycles of the PHY, {server.card.frames[0]:,} frames in, "
            f"{server.card.frames[1]:,} out, {server.card.damaged:,} lost, damaged or doubled"
        )
    finally:
        simulated.close()


def add_command(commands, report):
    """Add the command to the subparsers ``commands``; ``report`` receives its progress."""
    command = commands.add_parser(
        "board",
        help="serve a simulated board at a pseudo-terminal, a TCP port or a UDP port",
        description="Simulate the circuit that goes into a board's bitstream, with its UART or its "
        "Ethernet at the pins, and print the URI by which a host opens it. It runs until it is "
        "interrupted.",
        example="ulx3s-12f --tcp --damage 0.01",
    )
    command.add_argument("board", metavar="BOARD", help=f"{', '.join(BOARDS)}")
    line = command.add_argument_group("line")
    place = line.add_mutually_exclusive_group()
    place.add_argument(
        "--pty", nargs="?", const="", metavar="PATH",
        help="serve at a pseudo-terminal (the default); PATH becomes a link to it",
    )  # fmt: skip
    place.add_argument(
        "--udp", nargs="?", type=int, const=0, metavar="PORT",
        help="serve a board with Ethernet at this UDP port of this machine (the default: at any "
        "that is free)",
    )  # fmt: skip
    place.add_argument(
        "--tcp", nargs="?", type=int, const=0, metavar="PORT",
        help="serve at this TCP port of this machine; without PORT, at any that is free",
    )  # fmt: skip
    line.add_argument(
        "--damage", type=float, default=0.0, metavar="SHARE",
        help="share of bytes that are flipped, lost, doubled or inserted, each way, such as 0.01; "
        "with Ethernet of frames that are lost, damaged or doubled",
    )  # fmt: skip
    line.add_argument(
        "--unplug", type=int, metavar="BYTES",
        help="unplug the board for half a second each time that so many bytes have passed",
    )  # fmt: skip
    line.add_argument(
        "--seed", type=int, default=1, metavar="N",
        help="of the damage and of registers at power-on",
    )  # fmt: skip
    line.add_argument("--output", metavar="DIR", help="default: build/boards/BOARD-PRESET")
    add_parameter_options(command)
    command.set_defaults(run=lambda options: board(options, report))
