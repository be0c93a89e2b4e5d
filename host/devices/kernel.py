# SPDX-License-Identifier: Apache-2.0
"""An accelerator as a kernel of Vitis, over XRT's Python binding (``docs/guide-dma.md``)."""

from importlib import import_module
from pathlib import Path
import threading
from typing import Any

import numpy as np

from host.arrays import UInt64s
from host.devices.contract import Device, Exchange, Stamps, check_words, require_bundle, uri_options
from host.errors import DeviceError, unusable_uri
from host.protocol.manifest import Manifest, load_join_manifest

__all__ = ["KernelDevice", "open_kernel"]

#: Name of the kernel, and numbers of its arguments that are buffers.
KERNEL, WORDS, RESULTS = "splitjoin_kernel", 0, 2
#: Beats of the header in front of the results, and places in it (``hdl/shells/vitis_kernel.py``).
HEADER_BEATS, FIRST_COUNTER, FIRST_HASH = 32, 1, 16
#: Words and results of a run at the most.
RUN_WORDS, RUN_RESULTS = 1 << 14, 1 << 14
#: Cycles of a run at the most, and the milliseconds in which it must end.
RUN_CYCLES, RUN_MILLISECONDS = 1 << 20, 10_000


class KernelDevice(Device):
    """An accelerator that XRT runs; an exchange is a run of the kernel.

    Opening resets the accelerator. Words and results are copied between arrays and the buffers of
    XRT, once each. Stamps and cycles are zero, because the kernel does not tell them.

    Parameters
    ----------
    uri : str
        What the device was opened with.
    bundle : Path
        Folder of the bundle.
    xclbin : str
        File with the kernel.
    xrt : module
        ``pyxrt``.
    number : int
        Number of the card.

    Raises
    ------
    ManifestError
        If the bundle cannot be used.
    DeviceError
        If the kernel is not the bundle's.
    """

    def __init__(self, uri: str, bundle: Path, xclbin: str, xrt: Any, number: int = 0) -> None:
        self.uri = uri
        self.manifest: Manifest = load_join_manifest(bundle)
        self._running = threading.RLock()
        self._xrt: Any = xrt
        device = xrt.device(number)
        identifier = device.load_xclbin(xrt.xclbin(xclbin))
        self._kernel = xrt.kernel(device, identifier, KERNEL)
        self._words, self._sent = self._buffer(device, WORDS, self.manifest.input_word.columns)
        self._results, self._got = self._buffer(
            device, RESULTS, self.manifest.result_word.columns, HEADER_BEATS
        )
        self._run(0, 0, 1, restart=True)
        parts = self._got[FIRST_HASH : FIRST_HASH + 4, 0]
        board = b"".join(int(part).to_bytes(8, "little") for part in parts).hex()
        remedy = "name the bundle that the kernel was made from"
        require_bundle(uri, board, self.manifest.hash, remedy=remedy)

    def _buffer(
        self, device: Any, argument: int, columns: int, more: int = 0
    ) -> tuple[Any, UInt64s]:
        """Return a buffer for an argument, and its rows in this process."""
        wide = 1 << (columns - 1).bit_length()
        rows = more + (RUN_RESULTS if more else RUN_WORDS)
        group = self._kernel.group_id(argument)
        buffer = self._xrt.bo(device, rows * wide * 8, self._xrt.bo.normal, group)
        mapped = np.frombuffer(buffer.map(), np.uint64).reshape(rows, wide)
        return buffer, mapped

    def exchange(
        self,
        words: UInt64s,
        results: UInt64s,
        *,
        cycles: int,
        stamps: Stamps | None = None,
    ) -> Exchange:
        """See :meth:`Device.exchange`."""
        check_words(self.manifest, words, results)
        with self._running:
            self._opened()
            some = words[:RUN_WORDS]
            self._sent[: len(some), : some.shape[1]] = some
            self._sent[: len(some), some.shape[1] :] = 0
            room = min(len(results), RUN_RESULTS)
            accepted, produced = self._run(len(some), room, max(0, min(cycles, RUN_CYCLES)))
            rows = self._got[HEADER_BEATS : HEADER_BEATS + produced]
            results[:produced] = rows[:, : results.shape[1]]
        return Exchange.uncounted(accepted, produced, stamps)

    def counters(self) -> dict[str, int]:
        """Return the performance counters, which the kernel writes after each run."""
        with self._running:
            self._opened()
            self._run(0, 0, 0)
            return {
                counter.name: int(self._got[FIRST_COUNTER + counter.address, 0])
                for counter in self.manifest.counters
            }

    def close(self) -> None:
        """Release the buffers; closing it again has no effect."""
        with self._running:
            self._xrt = None

    def _opened(self) -> None:
        if self._xrt is None:
            raise DeviceError(f"Device {self.uri!r} is closed.")

    def _run(self, count: int, room: int, cycles: int, *, restart: bool = False) -> tuple[int, int]:
        """Run the kernel; return how many words it has accepted and how many results stored."""
        way = self._xrt.xclBOSyncDirection
        if count:
            size = self._sent[:count].nbytes
            self._words.sync(way.XCL_BO_SYNC_BO_TO_DEVICE, size, 0)
        run = self._kernel(self._words, count, self._results, room, cycles, int(restart))
        state = run.wait(RUN_MILLISECONDS)
        if "COMPLETED" not in str(state):
            raise DeviceError(
                f"Device {self.uri!r} has not ended a run within {RUN_MILLISECONDS / 1000:g} s "
                f"({state}); reset the card (xbutil reset), and open the device again."
            )
        header = self._got[:HEADER_BEATS].nbytes
        self._results.sync(way.XCL_BO_SYNC_BO_FROM_DEVICE, header, 0)
        status = int(self._got[0, 0])
        if status >> 31 & 1:
            raise DeviceError(
                f"The memory of device {self.uri!r} has answered with an error; words may be "
                f"lost, so open the device again and run the join again."
            )
        produced = status & (1 << 31) - 1
        if produced:
            size = self._got[:produced].nbytes
            self._results.sync(way.XCL_BO_SYNC_BO_FROM_DEVICE, size, header)
        return status >> 32, produced


def open_kernel(uri: str) -> KernelDevice:
    """Open ``xrt:FILE.xclbin?bundle=DIR``; the option ``card=N`` is the number of the card.

    Raises
    ------
    UsageError
        If the URI lacks something, or the package pyxrt is missing.
    ManifestError, DeviceError
        As of :class:`KernelDevice`.
    """
    place, options = uri_options(uri, {"bundle", "card"})
    card = options.get("card", "0")
    if not place or not card.isdecimal():
        raise unusable_uri(uri, "lacks its xclbin, or has a card that is no number")
    try:
        xrt = import_module("pyxrt")
    except ImportError as error:
        raise unusable_uri(
            uri, f"needs the package pyxrt, which comes with XRT ({error})"
        ) from error
    return KernelDevice(uri, Path(options["bundle"]), place, xrt, int(card))
