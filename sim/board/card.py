# SPDX-License-Identifier: Apache-2.0
"""A simulated card: a bundle's AXI shell with a DMA at its streams and a host at its registers.

:class:`CardServer` puts it behind files of the kind that Xilinx' driver XDMA makes for a real card.
"""

import ctypes
import mmap
import os
from pathlib import Path
import select
import signal
import threading

import numpy as np

from hdl.registers.bus import ADDRESS_BITS
from hdl.registers.table import COUNTERS_ADDRESS
from hdl.shells.axi import AXI_TOP
from host.errors import DeviceError
from host.protocol.manifest import load_manifest
from sim.verilated.library import part_of
from sim.verilated.model import Harness

from .library import build_pins
from .pace import SLICE, Pace

__all__ = ["CardServer", "SimulatedCard", "add_command", "build_card"]

HARNESS = Path(__file__).with_name("card_harness.cpp")
#: Bytes of the registers of a shell.
REGISTER_BYTES = 1 << ADDRESS_BITS
#: Results that one call of the library collects at the most, and that wait for a host.
ROOM = 1 << 12
#: Bytes that are read from a host at once.
READ_BYTES = 1 << 16


class _Done(ctypes.Structure):
    """Result of one call of ``card_run``."""

    _fields_ = [(name, ctypes.c_uint64) for name in ("taken", "made", "ended")]


def build_card(bundle, *, report=lambda text: None):
    """Compile the shell and the accelerator of a bundle, or take the library from the cache.

    Parameters
    ----------
    bundle : path-like
        Folder that ``python -m hdl generate --shell axi --axi-packet N`` wrote.
    report : callable
        Receives lines of text about the progress.

    Returns
    -------
    Path
        The shared object.

    Raises
    ------
    DeviceError
        If the shell is missing, or has other pins than a simulated card.
    MissingToolError, FailureError, BuildError
        As of :func:`sim.board.library.build_board`.
    """
    manifest = load_manifest(bundle)
    shell = manifest.values.get("shells", {}).get("axi")
    options = {"packet": 0, **(shell or {}).get("options", {})}
    for holds, rule in [
        (options["packet"], "packets; generate it with `--shell axi --axi-packet 256`"),
        (options.get("names") == "axi", "pins with the names of AXI; leave out --names"),
        (options.get("bus_clock") == "shared", "one clock; leave out --bus-clock"),
        (options.get("inputs") == 1, "one input; leave out --axi-inputs"),
        (len(manifest.result_ports) == 1, "one result port; leave out --result-streams"),
        (manifest.memory is None, "its windows on the chip; leave out --store"),
    ]:
        if not holds:
            raise DeviceError(f"Bundle {str(bundle)!r} needs a shell with {rule}.")
    text = "\n".join(
        [
            (manifest.path / shell["files"]["verilog"]).read_text(encoding="utf-8"),
            part_of(manifest, "verilog"),
        ]
    )
    sizes = {stream["word"]: stream["bytes"] // 8 for stream in shell["streams"].values()}
    macros = {"INPUT_WORDS": sizes["input_word"], "RESULT_WORDS": sizes["result_word"]}
    what = f"{Path(bundle).name} behind its AXI shell"
    return build_pins(
        text, Harness(HARNESS, AXI_TOP, macros), lambda: text, what=what, report=report
    )


class SimulatedCard:
    """Simulation of an AXI shell, clocked by calls of :meth:`run`, :meth:`read` and :meth:`write`.

    Parameters
    ----------
    bundle : path-like
        See :func:`build_card`.
    seed : int
        Of the pauses; if it is not zero, registers that no reset sets start with random values.
    stall_in, stall_out : int
        Number of cycles out of 256 in which the DMA offers no word, and takes no result.
    report : callable
        Receives lines of text about the progress of the build.

    Attributes
    ----------
    words, results : int
        64-bit numbers of an input word and of a result word at the pins.
    registers : list of dict
        What the manifest says of the registers.
    """

    def __init__(self, bundle, *, seed=0, stall_in=0, stall_out=0, report=lambda text: None):
        library = ctypes.CDLL(str(build_card(bundle, report=report)))
        pointer, number, small = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32
        for name, result, arguments in [
            ("create", pointer, [number, small, small]),
            ("destroy", None, [pointer]),
            ("cycle", number, [pointer]),
            ("write", small, [pointer, small, small]),
            ("read", small, [pointer, small, pointer]),
            ("run", None, [pointer, pointer, number, pointer, number, number, pointer]),
        ]:
            function = getattr(library, f"card_{name}")
            function.restype, function.argtypes = result, arguments
        shell = load_manifest(bundle).values["shells"]["axi"]
        sizes = {stream["word"]: stream["bytes"] // 8 for stream in shell["streams"].values()}
        self.words, self.results = sizes["input_word"], sizes["result_word"]
        self.registers = shell["registers"]
        self._library = library
        self._card = library.card_create(seed, stall_in, stall_out)

    def write(self, address, value):
        """Write a register; return the response of AXI, 0 if it was done."""
        return self._library.card_write(self._card, address, value)

    def read(self, address):
        """Return the value of a register.

        Raises
        ------
        DeviceError
            If the shell refuses.
        """
        value = ctypes.c_uint32()
        response = self._library.card_read(self._card, address, ctypes.byref(value))
        if response:
            raise DeviceError(f"Register {address:#x} answered {response}.")
        return value.value

    def run(self, words, *, room=ROOM, cycles=SLICE):
        """Let cycles pass in which words are offered and results taken.

        Parameters
        ----------
        words : array of uint64, (n, words)
            A word that was not taken must be the first one of the next call.
        room : int
            Results that are taken at the most; zero for none.
        cycles : int
            Most cycles to run; fewer pass behind a result that ends a packet.

        Returns
        -------
        (int, array of uint64, bool)
            Number of words taken, the results, and whether the last one ended a packet.
        """
        words = np.ascontiguousarray(words, np.uint64)
        results, done = np.zeros((room, self.results), np.uint64), _Done()
        self._library.card_run(
            self._card, words.ctypes.data, len(words), results.ctypes.data, room, cycles,
            ctypes.byref(done),
        )  # fmt: skip
        return done.taken, results[: done.made], bool(done.ended)

    @property
    def cycle(self):
        """Cycles since the reset."""
        return self._library.card_cycle(self._card)

    def close(self):
        """Free the circuit; closing it again has no effect."""
        card, self._card = self._card, None
        if card is not None:
            self._library.card_destroy(card)


class CardServer:
    """Serve a card to a host program through three files, as XDMA has them.

    ``NAME_h2c_0`` takes input words and ``NAME_c2h_0`` gives results: named pipes. ``NAME_user`` is
    a file with the registers, which a host maps into its memory. The server copies what a host has
    changed there to the shell, and what the shell shows back to the file: a host sees each effect
    of a write to CONTROL before CONTROL shows the end of the command. Bits that are cleared by
    writing ones (ERRORS, INTERRUPT_STATUS) cannot be cleared in this way.

    Parameters
    ----------
    card : SimulatedCard
        The card.
    place : path-like
        NAME, in a folder that exists. The files are removed at the end.
    """

    def __init__(self, card, place):
        self.card, self.place = card, Path(os.path.abspath(place))
        self._ended = threading.Event()
        self._paths = [Path(f"{self.place}{end}") for end in ("_h2c_0", "_c2h_0", "_user")]
        for path in self._paths[:2]:
            path.unlink(missing_ok=True)
            os.mkfifo(path)
        with self._paths[2].open("w+b") as file:
            file.truncate(REGISTER_BYTES)
            self._memory = np.frombuffer(mmap.mmap(file.fileno(), REGISTER_BYTES), "<u4")
        # Opened for both directions, a pipe stays when a host goes.
        self._in, self._out = (os.open(path, os.O_RDWR | os.O_NONBLOCK) for path in self._paths[:2])
        fields = {each["address"]: each["fields"] for each in card.registers}
        self._commands = [
            address for address, own in fields.items() if any(f["access"] == "rw" for f in own)
        ]
        self._shown = [address for address in fields if address not in self._commands]
        self._shadow = {}
        self._refresh(self._shown + self._commands)

    @property
    def uri(self):
        """What a URI of a device begins with, before ``?bundle=``."""
        return f"axi:{self.place}"

    def end(self):
        """Let :meth:`run` return soon."""
        self._ended.set()

    def run(self):
        """Serve until :meth:`end` is called."""
        incoming, outgoing, pace = b"", b"", Pace()
        size = 8 * self.card.words
        try:
            while not self._ended.is_set():
                self._serve_registers()
                received = self._receive(pace.wait) if len(incoming) < READ_BYTES else b""
                incoming += received
                whole = len(incoming) // size * size
                words = np.frombuffer(incoming[:whole], np.uint64).reshape(-1, self.card.words)
                room = max(0, ROOM - len(outgoing) // (8 * self.card.results))
                taken, made, _ = self.card.run(words, room=room)
                incoming = incoming[taken * size :]
                outgoing = self._send(outgoing + made.tobytes())
                pace.see(bool(received or len(made) or incoming))
        finally:
            os.close(self._in)
            os.close(self._out)
            for path in self._paths:
                path.unlink(missing_ok=True)

    def _receive(self, seconds):
        if not select.select([self._in], [], [], seconds)[0]:
            return b""
        return os.read(self._in, READ_BYTES)

    def _send(self, data):
        """Write what there is room for; return the rest."""
        try:
            return data[os.write(self._out, data) :] if data else data
        except BlockingIOError:
            return data

    def _refresh(self, addresses):
        for address in addresses:
            self._memory[address // 4] = self._shadow[address] = self.card.read(address)

    def _serve_registers(self):
        """Pass on what the host has written, and show what has changed."""
        for address in self._commands:
            value = int(self._memory[address // 4])
            if value != self._shadow[address]:
                self.card.write(address, value)
                self._refresh([*self._shown, address])
        self._refresh(address for address in self._shown if address < COUNTERS_ADDRESS)


def card(options, report):
    """Serve a simulated card until the command is interrupted."""
    place = Path(options.output or Path("build") / "card" / Path(options.bundle).name)
    place.parent.mkdir(parents=True, exist_ok=True)
    simulated = SimulatedCard(
        options.bundle, seed=options.seed, stall_in=options.stalls, stall_out=options.stalls,
        report=report,
    )  # fmt: skip
    try:
        server = CardServer(simulated, place)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: server.end())
        print(f"{server.uri}?bundle={Path(options.bundle).absolute()}", flush=True)
        server.run()
        report(f"{simulated.cycle:,} cycles")
    finally:
        simulated.close()
    return 0


def add_command(commands, report):
    """Add the command to the subparsers ``commands``; ``report`` receives its progress."""
    command = commands.add_parser(
        "card",
        help="serve a bundle's AXI shell as files like those of the driver XDMA",
        description="Simulate the AXI shell of a bundle behind a DMA, and print the URI by which a "
        "host opens it. It runs until it is interrupted.",
        example="build/dma",
    )
    command.add_argument("bundle", metavar="BUNDLE", help="folder of a bundle with --axi-packet")
    command.add_argument("--output", metavar="NAME", help="how the names of the files begin")
    command.add_argument(
        "--stalls", type=int, default=0, metavar="N",
        help="cycles out of 256 in which the DMA pauses, each way",
    )  # fmt: skip
    command.add_argument("--seed", type=int, default=1, metavar="N", help="of the pauses")
    command.set_defaults(run=lambda options: card(options, report))
