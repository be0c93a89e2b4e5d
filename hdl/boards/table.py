# SPDX-License-Identifier: Apache-2.0
"""The boards that the kit makes bitstreams for, as a flat table."""

from dataclasses import dataclass
from importlib import import_module

from hdl.ethernet.settings import EthernetSettings
from hdl.installation import fpga_tools

__all__ = ["BOARDS", "Board", "find_board"]


@dataclass(frozen=True)
class Board:
    """A board with a UART or an Ethernet port by which a host reaches it.

    Parameters
    ----------
    name : str
        Name on the command line.
    title : str
        Name of the product, with the device on it.
    platform : str
        Class that knows the pins, as ``"module:Class"``: of amaranth-boards, or, by the full name
        of the module, of the kit.
    family : str
        ``"ecp5"``, ``"gowin"``, ``"ice40"``, ``"nexus"`` or ``"gatemate"``: which tools make
        the bitstream.
    mhz : float
        Clock of the accelerator and of the link.
    preset : str
        Preset that fits, and is the default.
    load : str
        Command that loads the bitstream ``{file}`` into the device.
    divisor : int or None
        Clock cycles per bit of the UART.
    ethernet : EthernetSettings or None
        Addresses of a board that has Ethernet in place of a UART.
    oscillator_mhz : float or None
        Clock of the board's oscillator; None for that of the accelerator.
    slots : int
        Frames each way that the link over a UART has room for; a small device has fewer.
    """

    name: str
    title: str
    platform: str
    family: str
    mhz: float
    preset: str
    load: str
    divisor: int | None = None
    ethernet: EthernetSettings | None = None
    oscillator_mhz: float | None = None
    slots: int = 8

    @property
    def baud(self):
        """Bits per second of the UART; None if there is none."""
        return None if self.divisor is None else round(self.mhz * 1e6 / self.divisor)

    @property
    def line(self):
        """What a host reaches the board by, in words."""
        if self.ethernet is None:
            return f"UART, {self.baud:,} baud, 8N1"
        address = self.ethernet
        return f"Ethernet, 1000BASE-T, UDP port {address.port} of {address.ip} ({address.mac})"

    def uri(self, bundle):
        """Return the URI of the board, whose bundle is in the folder ``bundle``."""
        if self.ethernet is None:
            return f"serial:PATH?baud={self.baud}&bundle={bundle}"
        return f"udp:{self.ethernet.ip}:{self.ethernet.port}?bundle={bundle}"

    def make_platform(self):
        """Return the platform of amaranth-boards.

        Raises
        ------
        ImportError
            If amaranth-boards is not installed.
        """
        module, _, name = self.platform.partition(":")
        try:
            full = module if "." in module else f"amaranth_boards.{module}"
            found = getattr(import_module(full), name)
        except ModuleNotFoundError as error:
            raise ImportError(
                f"amaranth-boards is not installed; get it with: {fpga_tools()}"
            ) from error
        return found(**({"toolchain": "Apicula"} if self.family == "gowin" else {}))


def ulx3s(size, preset):
    """Return a Radiona ULX3S with an LFE5U of ``size`` thousand LUTs."""
    return Board(
        f"ulx3s-{size}f", f"Radiona ULX3S, LFE5U-{size}F", f"ulx3s:ULX3S_{size}F_Platform",
        "ecp5", mhz=25, divisor=25, preset=preset, load="openFPGALoader -b ulx3s {file}",
    )  # fmt: skip


def ecpix5(size, preset):
    """Return a LambdaConcept ECPIX-5 with an LFE5UM5G of ``size`` thousand LUTs."""
    return Board(
        f"ecpix5-{size}f", f"LambdaConcept ECPIX-5, LFE5UM5G-{size}F",
        f"ecpix5:ECPIX5{size}Platform", "ecp5", mhz=50, oscillator_mhz=100,
        ethernet=EthernetSettings(), preset=preset, load="openFPGALoader -b ecpix5 {file}",
    )  # fmt: skip


#: All boards by name.
BOARDS = {
    board.name: board
    for board in (
        ulx3s(12, "board-scan"),
        ulx3s(25, "board-scan"),
        ulx3s(45, "board-index"),
        ulx3s(85, "ecp5-default"),
        ecpix5(45, "board-fast"),
        ecpix5(85, "ecp5-default"),
        Board(
            "tang-nano-9k", "Sipeed Tang Nano 9K, GW1NR-9C", "tang_nano_9k:TangNano9kPlatform",
            "gowin", mhz=27, divisor=27, preset="board-small",
            load="openFPGALoader -b tangnano9k {file}", slots=2,
        ),
        Board(
            "ice40-hx8k-evn", "Lattice iCE40HX8K-B-EVN, iCE40HX8K",
            "ice40_hx8k_b_evn:ICE40HX8KBEVNPlatform", "ice40", mhz=12, divisor=12,
            preset="board-small", load="iceprog {file}", slots=2,
        ),
        Board(
            "crosslink-nx-evn", "Lattice CrossLink-NX Evaluation Board, LIFCL-40",
            "hdl.boards.platforms:CrossLinkNxEvnPlatform", "nexus", mhz=12, divisor=12,
            preset="board-small", load="ecpprog -S {file}",
        ),
        Board(
            "gatemate-a1-evb", "Olimex GateMateA1-EVB, CCGM1A1",
            "hdl.boards.platforms:GateMateEvbPlatform", "gatemate", mhz=10, divisor=10,
            preset="board-small", load="openFPGALoader -b olimex_gatemateevb {file}", slots=2,
        ),
    )
}  # fmt: skip


def find_board(name):
    """Return the board of this name.

    Raises
    ------
    ValueError
        If there is no such board.
    """
    if name not in BOARDS:
        raise ValueError(f"There is no board {name!r}; boards are {', '.join(BOARDS)}")
    return BOARDS[name]
