# SPDX-License-Identifier: Apache-2.0
"""A device behind a bus: registers in the address space, words by DMA (``docs/axi.md``)."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
import errno
from importlib import import_module
import mmap
import os
from pathlib import Path
from queue import SimpleQueue
import select
import stat
import threading
import time
from typing import Any, Protocol
import weakref

import numpy as np

from host.arrays import UInt64s
from host.devices.contract import require_bundle, uri_options
from host.devices.linked import (
    CONTROL,
    COUNTERS,
    ID,
    MAGIC,
    MAJOR,
    MANIFEST_HASH,
    SNAPSHOT,
    VERSION,
    RemoteDevice,
)
from host.errors import DeviceError, unusable_uri
from host.protocol.manifest import Manifest, load_join_manifest

__all__ = [
    "Bus",
    "BusDevice",
    "CharacterDevices",
    "Copies",
    "DmaChannel",
    "Overlay",
    "open_bus",
    "open_overlay",
]

#: Bits of CONTROL and STATUS, and a register, which only a bus has.
RESET, ENABLE, RESETTING, STATUS = 1 << 0, 1 << 8, 1 << 3, 0x044
#: Bytes of the registers.
REGISTER_BYTES = 0x1000
#: Most bytes of one transfer of input words.
TRANSFER_BYTES = 1 << 17
#: Longest time, in seconds, for a command to be done.
COMMAND_SECONDS = 10.0


class DmaChannel(Protocol):
    """One direction of a DMA, with one transfer at a time."""

    def start(self, rows: UInt64s) -> None:
        """Begin to send the rows of a C-contiguous array, or to fill them up to a packet's end."""

    def finished(self) -> int | None:
        """Return the bytes that the transfer moved; None while it runs.

        Raises
        ------
        DeviceError
            If it failed.
        """


class Bus(ABC):
    """A way to the registers and the DMA of a shell.

    Attributes
    ----------
    sender, receiver : DmaChannel
        Input words to the shell, and results from it.
    most_bytes : int
        Most bytes of one transfer.
    """

    sender: DmaChannel
    receiver: DmaChannel
    most_bytes: int = TRANSFER_BYTES

    @abstractmethod
    def read(self, address: int) -> int:
        """Return a register of 32 bits."""

    @abstractmethod
    def write(self, address: int, value: int) -> None:
        """Write a register of 32 bits."""

    def allocate(self, shape: tuple[int, int]) -> UInt64s:
        """Return an array that the DMA can reach; its contents are undefined."""
        return np.empty(shape, np.uint64)

    def reaches(self, rows: UInt64s) -> bool:
        """Return whether the DMA can reach an array where it is."""
        del rows
        return True

    @abstractmethod
    def wait(self, seconds: float) -> None:
        """Return when a transfer has ended, or after so many seconds, or sooner."""

    @abstractmethod
    def close(self) -> None:
        """Release the bus; closing it again has no effect."""


@dataclass
class Copies:
    """Words that the driver of a bus has copied on their way.

    Attributes
    ----------
    words : int
        Input words that were copied into a buffer of the DMA. There are none if a word has as many
        64-bit numbers at the pins as in memory, and stands where the DMA can reach it.
    results : int
        Result words that were copied from a buffer of the DMA. All are, because a DMA must have a
        buffer before its host knows where it wants the results.
    """

    words: int = 0
    results: int = 0


class BusDevice(RemoteDevice[Bus]):
    """An accelerator in an AXI shell with ``--axi-packet``, behind a bus.

    Opening resets the accelerator, and drops what an earlier session has left on its way. The
    transfer of accepted words may still be under way when :meth:`exchange` returns.

    Parameters
    ----------
    uri : str
        What the device was opened with.
    bundle : Path
        Folder of the bundle.
    open_bus : callable
        Returns the :class:`Bus`, given the bytes of a result at the pins; called when the bundle
        has been checked.

    Raises
    ------
    ManifestError
        If the bundle cannot be used.
    DeviceError
        If its shell is of another kind, or the device is not the bundle's.

    Attributes
    ----------
    drain_seconds : float
        Time without results after which opening believes that an earlier session has left no more.
    copies : Copies
        Words copied so far.
    """

    drain_seconds = 0.02
    returns_early = True

    def __init__(self, uri: str, bundle: Path, open_bus: Callable[[int], Bus]) -> None:
        super().__init__(uri, load_join_manifest(bundle))
        self.copies = Copies()
        packet, sizes = _shell_of(self.manifest, uri)
        self._sizes = {word: size // 8 for word, size in sizes.items()}  # in 64-bit numbers
        self._connection = bus = open_bus(sizes["result_word"])
        try:
            if packet * sizes["result_word"] > bus.most_bytes:
                raise DeviceError(
                    f"Device {uri!r} has packets of {packet} results, which are "
                    f"{packet * sizes['result_word']} bytes, but its DMA moves {bus.most_bytes} at "
                    f"once; give the DMA a longer length register, or generate the bundle with "
                    f"--axi-packet {bus.most_bytes // sizes['result_word']} or less."
                )
            self._identify(bus)
            self._most = max(1, min(bus.most_bytes, TRANSFER_BYTES) // sizes["input_word"])
            self._staged: UInt64s | None = None
            self._sending: UInt64s | None = None
            # One buffer is filled while the results of the other one are given out.
            self._rooms = [bus.allocate((packet, self._sizes["result_word"])) for _ in range(2)]
            bus.receiver.start(self._rooms[0])
            self._reset(bus)
        except BaseException:
            self.close()
            raise

    def allocate(self, shape: tuple[int, int]) -> UInt64s:
        """See :meth:`Device.allocate`; the DMA reads words in such an array where they stand."""
        with self._running:
            return self._opened().allocate(shape)

    def counters(self) -> dict[str, int]:
        """Return the performance counters, copied at one moment."""
        with self._running:
            bus = self._opened()
            self._command(bus, SNAPSHOT)
            found = {}
            for counter in self.manifest.counters:
                low, high = (bus.read(COUNTERS + 8 * counter.address + at) for at in (0, 4))
                found[counter.name] = low | high << 32
            return found

    def _identify(self, bus: Bus) -> None:
        """Raise :exc:`DeviceError` unless the registers are those of the bundle's shell."""
        magic, version = bus.read(ID), bus.read(VERSION)
        if magic != MAGIC or version >> 16 != MAJOR:
            raise DeviceError(
                f"Device {self.uri!r} shows {magic:#010x} and version {version >> 16} where the "
                f"registers of a shell begin with {MAGIC:#010x} and version {MAJOR}; check that "
                f"the bitstream is loaded, and the address of the registers."
            )
        parts = (bus.read(MANIFEST_HASH + 4 * n) for n in range(8))
        board = b"".join(part.to_bytes(4, "little") for part in parts).hex()
        require_bundle(self.uri, board, self.manifest.hash)

    def _reset(self, bus: Bus) -> None:
        """Reset the accelerator, and drop what was on its way to it and from it.

        Words that a DMA still held are taken by the first reset, and their results dropped. The
        second one undoes what those words did.
        """
        for _ in range(2):
            self._command(bus, RESET)
            self._until(bus, lambda: not bus.read(STATUS) & RESETTING, "the end of the reset")
            quiet = time.monotonic() + self.drain_seconds
            while time.monotonic() < quiet:
                if bus.receiver.finished() is not None:
                    bus.receiver.start(self._rooms[0])
                    quiet = time.monotonic() + self.drain_seconds
                bus.wait(quiet - time.monotonic())

    def _command(self, bus: Bus, bit: int) -> None:
        """Write a command, and wait until it shows no more."""
        bus.write(CONTROL, ENABLE | bit)
        self._until(bus, lambda: not bus.read(CONTROL) & bit, f"the end of command {bit:#x}")

    def _until(self, bus: Bus, condition: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + COMMAND_SECONDS
        while not condition():
            if time.monotonic() > end:
                raise DeviceError(
                    f"Device {self.uri!r} did not show {what} within {COMMAND_SECONDS:g} s; check "
                    f"that the clock of the accelerator runs."
                )
            bus.wait(0.001)

    def _offer(self, connection: Bus, words: UInt64s) -> int:
        """Begin to send words if nothing is being sent; return how many."""
        if self._sending is not None:
            if connection.sender.finished() is None:
                return 0
            self._sending = None
        some = words[: self._most]
        if not len(some):
            return 0
        columns = self._sizes["input_word"]
        if some.shape[1] == columns and connection.reaches(some):
            self._sending = some
        else:
            if self._staged is None:
                self._staged = connection.allocate((self._most, columns))
                self._staged[:] = 0
            self._sending = self._staged[: len(some)]
            self._sending[:, : some.shape[1]] = some
            self.copies.words += len(some)
        connection.sender.start(self._sending)
        return len(some)

    def _arrived(self, connection: Bus) -> UInt64s:
        moved = connection.receiver.finished()
        if moved is None:
            return self._ready
        filled = self._rooms[0]
        self._rooms.reverse()
        connection.receiver.start(self._rooms[0])
        count = moved // (8 * self._sizes["result_word"])
        self.copies.results += count
        return filled[:count, : self.manifest.result_word.columns]

    def _wait(self, connection: Bus, seconds: float) -> bool:
        connection.wait(seconds)
        return False

    def _release(self, connection: Bus) -> None:
        connection.close()


def _shell_of(manifest: Manifest, uri: str) -> tuple[int, Mapping[str, int]]:
    """Return the results of a packet, and the bytes of words at the pins, of a bundle's AXI shell.

    Raises
    ------
    DeviceError
        If it has none, or one that a single DMA cannot serve.
    """
    shell = manifest.values.get("shells", {}).get("axi", {})
    packet = shell.get("options", {}).get("packet", 0)
    streams = shell.get("streams", {}).values()
    if not packet or len(streams) != 2:
        what = "no AXI shell" if not shell else (
            f"a shell with {len(streams)} streams" if packet else "a shell without packets"
        )  # fmt: skip
        raise DeviceError(
            f"Device {uri!r} names a bundle with {what}, but a DMA needs one input, one output and "
            f"packets; generate it with `--shell axi --axi-packet 256`, without --axi-inputs and "
            f"--result-streams."
        )
    return packet, {stream["word"]: stream["bytes"] for stream in streams}


# A card behind Xilinx' driver XDMA, or whatever has such files.

#: What XDMA returns from a read after its parameter c2h_timeout_ms without data: ERESTARTSYS, which
#: has no name outside of a kernel, or a timeout.
NOTHING_CAME = (512, errno.ETIMEDOUT)


class _FileChannel:
    """A DMA channel that is a character device, with a thread that waits in it.

    A read returns at the end of a packet, and a write when all of it has been sent.

    Parameters
    ----------
    path : str
        The file.
    word : int
        Bytes of a word for a file that gives words; zero for one that takes them.
    ended : threading.Event
        Set after each transfer.
    """

    def __init__(self, path: str, word: int, ended: threading.Event) -> None:
        self._path, self._word, self._ended = path, word, ended
        mode = os.stat(path).st_mode
        if not (stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)):  # O_TRUNC would empty a file
            raise OSError(errno.ENODEV, "it is neither a character device nor a pipe")
        # To XDMA, O_TRUNC says that a read ends with a packet; O_NONBLOCK says nothing.
        flags = os.O_RDONLY | os.O_TRUNC if word else os.O_WRONLY
        self._file = os.open(path, flags | os.O_NONBLOCK)
        self._wake, self._woken = os.pipe()
        self._requests: SimpleQueue[memoryview | None] = SimpleQueue()
        self._moved: int | OSError | None = None
        self._closed = False
        threading.Thread(target=self._serve, name=f"DMA {path}", daemon=True).start()

    def start(self, rows: UInt64s) -> None:
        self._moved = None
        self._requests.put(rows.data.cast("B"))

    def finished(self) -> int | None:
        moved = self._moved
        if isinstance(moved, OSError):
            raise DeviceError(
                f"The DMA channel {self._path!r} has failed: {moved}; words may be lost, so open "
                f"the device again and run the join again. If the driver waited too long for the "
                f"card, raise its parameter {'c' if self._word else 'h'}2"
                f"{'h' if self._word else 'c'}_timeout_ms."
            )
        return moved

    def close(self) -> None:
        """Let the thread end when its read or write returns."""
        self._closed = True
        os.close(self._woken)  # which wakes a thread that waits for the file
        self._requests.put(None)

    def _serve(self) -> None:
        try:
            while (view := self._requests.get()) is not None and not self._closed:
                try:
                    self._moved = self._transfer(view)
                except OSError as error:
                    self._moved = error
                self._ended.set()
        finally:
            os.close(self._file)
            os.close(self._wake)

    def _transfer(self, view: memoryview) -> int:
        """Move the bytes of a transfer; return how many."""
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        poll.register(self._file, select.POLLIN if self._word else select.POLLOUT)
        moved = 0
        while moved < len(view):
            poll.poll()
            if self._closed:
                return moved
            try:
                if not self._word:
                    moved += os.write(self._file, view[moved:])
                    continue
                got = os.readv(self._file, [view[moved:]])
            except OSError as error:
                # Of a write that XDMA has given up, nobody knows how much was sent.
                if error.errno != errno.EAGAIN and not (self._word and error.errno in NOTHING_CAME):
                    raise
                continue
            if not got:
                raise ConnectionError("it has ended")
            moved += got
            if not moved % self._word:
                break
        return moved


class CharacterDevices(Bus):
    """Registers in a file that can be mapped, and a DMA channel in each of two other files.

    Parameters
    ----------
    card : str
        How the names of the files begin, as ``/dev/xdma0``: ``_user`` follows for the registers,
        ``_h2c_N`` for input words and ``_c2h_N`` for results.
    channel : int
        N.
    offset : int
        Address of the registers in the first file.
    result_bytes : int
        Bytes of a result.

    Raises
    ------
    OSError
        If a file cannot be opened.
    """

    def __init__(self, card: str, *, channel: int, offset: int, result_bytes: int) -> None:
        self._ended = threading.Event()
        with open(f"{card}_user", "r+b", buffering=0) as file:
            page = offset - offset % mmap.ALLOCATIONGRANULARITY
            end = offset - page + REGISTER_BYTES
            mapped = mmap.mmap(file.fileno(), end, offset=page)
        # Each element is read and written by one access of 32 bits.
        self._registers = np.frombuffer(mapped, "<u4")[(offset - page) // 4 :]
        self._sender = self.sender = _FileChannel(f"{card}_h2c_{channel}", 0, self._ended)
        try:
            self._receiver = self.receiver = _FileChannel(
                f"{card}_c2h_{channel}", result_bytes, self._ended
            )
        except BaseException:
            self._sender.close()
            raise

    def read(self, address: int) -> int:
        return int(self._registers[address // 4])

    def write(self, address: int, value: int) -> None:
        self._registers[address // 4] = value

    def wait(self, seconds: float) -> None:
        self._ended.wait(max(0.0, seconds))
        self._ended.clear()

    def close(self) -> None:
        self._sender.close()
        self._receiver.close()


# A PYNQ overlay: AXI DMA and registers, by the classes of the package pynq.

#: Seconds between two looks at a DMA that tells nobody when it is done.
LOOK_SECONDS = 50e-6
#: Names of the parts of an overlay, unless others are given.
DMA_NAME, REGISTERS_NAME = "axi_dma_0", "splitjoin_axi_0"
#: Control register of the AXI DMA, and its bit that resets both channels (PG021).
DMA_CONTROL, DMA_RESET = 0x00, 1 << 2


class _OverlayChannel:
    """A channel of PYNQ's driver of the AXI DMA.

    Parameters
    ----------
    channel : object
        ``sendchannel`` or ``recvchannel`` of ``pynq.lib.dma.DMA``.
    overlay : Overlay
        What has allocated the arrays of all transfers.
    """

    def __init__(self, channel: Any, overlay: "Overlay") -> None:
        self._channel, self._overlay = channel, overlay

    def start(self, rows: UInt64s) -> None:
        buffer, start = self._overlay.place_of(rows)
        self._channel.transfer(buffer, start=start, nbytes=rows.nbytes)

    def finished(self) -> int | None:
        if self._channel.error:
            raise DeviceError(
                "The AXI DMA of the overlay has halted with an error; words may be lost, so open "
                "the device again and run the join again. A packet that is longer than a buffer "
                "is an error: check that the bitstream is the bundle's."
            )
        if not self._channel.idle:
            return None
        self._channel.wait()  # it has ended: this makes its data visible
        return int(self._channel.transferred)


class Overlay(Bus):
    """Registers and AXI DMA of a PYNQ overlay.

    Parameters
    ----------
    overlay : object
        ``pynq.Overlay``.
    allocate : callable
        ``pynq.allocate``.
    dma, registers : str
        Names of the AXI DMA, in simple mode, and of the accelerator in the block design.

    Raises
    ------
    DeviceError
        If the overlay has no such part.
    """

    def __init__(self, overlay: Any, allocate: Any, *, dma: str, registers: str) -> None:
        for name in (dma, registers):
            if name not in overlay.ip_dict:
                listing = ", ".join(sorted(overlay.ip_dict))
                raise DeviceError(
                    f"The overlay has no part {name!r}, only {listing}; name the AXI DMA and the "
                    f"accelerator by '&dma=NAME&registers=NAME'."
                )
        self._allocate = allocate
        self._buffers: list[tuple[weakref.ref[Any], int, int]] = []
        self._mmio = getattr(overlay, registers).mmio
        engine = getattr(overlay, dma)
        # The length register holds one less than its range.
        self.most_bytes = min(TRANSFER_BYTES, int(engine.buffer_max_size) - 1)
        self._send, self._receive = engine.sendchannel, engine.recvchannel
        self._engine = engine
        self._halt()  # an earlier session may have left a transfer
        for channel in (self._send, self._receive):
            channel.start()
        self.sender, self.receiver = (
            _OverlayChannel(channel, self) for channel in (self._send, self._receive)
        )

    def read(self, address: int) -> int:
        return int(self._mmio.read(address))

    def write(self, address: int, value: int) -> None:
        self._mmio.write(address, value)

    def allocate(self, shape: tuple[int, int]) -> UInt64s:
        buffer = self._allocate(shape=shape, dtype=np.uint64)
        begin = buffer.__array_interface__["data"][0]
        kept = [each for each in self._buffers if each[0]() is not None]
        self._buffers = [*kept, (weakref.ref(buffer), begin, begin + buffer.nbytes)]
        array: UInt64s = buffer
        return array

    def reaches(self, rows: UInt64s) -> bool:
        return self._found(rows) is not None

    def place_of(self, rows: UInt64s) -> tuple[Any, int]:
        """Return the buffer that some rows stand in, and their offset in bytes."""
        found = self._found(rows)
        assert found is not None, "only rows that the DMA reaches are transferred"
        return found

    def _found(self, rows: UInt64s) -> tuple[Any, int] | None:
        address = rows.__array_interface__["data"][0]
        for reference, begin, end in self._buffers:
            buffer = reference()
            if buffer is not None and begin <= address and address + rows.nbytes <= end:
                return buffer, address - begin
        return None

    def wait(self, seconds: float) -> None:
        time.sleep(max(0.0, min(seconds, LOOK_SECONDS)))

    def close(self) -> None:
        self._halt()

    def _halt(self) -> None:
        """Reset the DMA: a channel that waits for data would never stop in another way."""
        self._engine.mmio.write(DMA_CONTROL, DMA_RESET)
        end = time.monotonic() + COMMAND_SECONDS
        while self._engine.mmio.read(DMA_CONTROL) & DMA_RESET:
            if time.monotonic() > end:
                raise DeviceError(
                    f"The AXI DMA of the overlay did not reset within {COMMAND_SECONDS:g} s; check "
                    f"that its clock runs."
                )


def open_overlay(
    overlay: Any,
    bundle: str | Path,
    *,
    allocate: Callable[..., Any] | None = None,
    dma: str = DMA_NAME,
    registers: str = REGISTERS_NAME,
) -> BusDevice:
    """Open the accelerator of a PYNQ overlay that is loaded.

    Parameters
    ----------
    overlay : object
        ``pynq.Overlay``.
    bundle : path-like
        Folder of the bundle.
    allocate : callable, optional
        ``pynq.allocate``, which is the default.
    dma, registers : str
        See :class:`Overlay`.

    Raises
    ------
    ManifestError, DeviceError
        As of :class:`BusDevice`.
    """
    take = import_module("pynq").allocate if allocate is None else allocate
    return BusDevice(
        f"pynq:{getattr(overlay, 'bitfile_name', '')}?bundle={bundle}",
        Path(bundle),
        lambda _: Overlay(overlay, take, dma=dma, registers=registers),
    )


def open_bus(uri: str) -> BusDevice:
    """Open a device behind a bus.

    Parameters
    ----------
    uri : str
        ``axi:CARD?bundle=DIR``, with CARD as ``/dev/xdma0`` (:class:`CharacterDevices`); options
        are ``channel=N`` and ``offset=N``, both 0 unless given. ``pynq:FILE.bit?bundle=DIR``
        (:class:`Overlay`); options are ``dma=NAME`` and ``registers=NAME``, ``axi_dma_0`` and
        ``splitjoin_axi_0`` unless given.

    Raises
    ------
    UsageError
        If the URI lacks something, or the package pynq is missing.
    ManifestError, DeviceError
        As of :class:`BusDevice`.
    """
    numbers = {"channel": "0", "offset": "0"}
    names = {"dma": DMA_NAME, "registers": REGISTERS_NAME}
    given = numbers if uri.startswith("axi:") else names
    place, options = uri_options(uri, {"bundle", *given})
    if not place:
        raise unusable_uri(uri, "lacks its card" if given is numbers else "lacks its bitstream")
    bundle, chosen = Path(options["bundle"]), {**given, **options}

    def over_files(result_bytes: int) -> Bus:
        try:
            found = {name: int(chosen[name], 0) for name in numbers}
        except ValueError as error:
            raise unusable_uri(uri, f"has an option that is no number ({error})") from error
        try:
            return CharacterDevices(place, **found, result_bytes=result_bytes)
        except OSError as error:
            raise DeviceError(
                f"Device {uri!r} cannot be opened: {error}; check that the driver is loaded, that "
                f"the card is programmed, and that this user may open {place}_*."
            ) from error

    def over_overlay(result_bytes: int) -> Bus:
        del result_bytes
        try:
            pynq = import_module("pynq")
        except ImportError as error:
            raise unusable_uri(
                uri, f"needs the package pynq, which a PYNQ board has ({error})"
            ) from error
        return Overlay(
            pynq.Overlay(place), pynq.allocate, dma=chosen["dma"], registers=chosen["registers"]
        )

    return BusDevice(uri, bundle, over_files if given is numbers else over_overlay)
