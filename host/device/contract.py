# SPDX-License-Identifier: Apache-2.0
"""The contract of every device: offer input words, collect result words, never block."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from types import TracebackType
from typing import NamedTuple, Protocol, Self

import numpy as np

from host.errors import DeviceError
from host.manifest import BundleManifest, Manifest
from host.reference.exact import UInt64s

__all__ = ["Device", "Exchange", "Stamps", "WordDevice", "check_words"]


class Exchange(NamedTuple):
    """Result of one call of :meth:`Device.exchange`.

    Attributes
    ----------
    accepted, produced : int
        Number of input words taken from the front of ``words``, and of result words put at the
        front of ``results``.
    cycles : int
        Number of clock cycles run; zero for a device without a clock.
    """

    accepted: int
    produced: int
    cycles: int


@dataclass(frozen=True)
class Stamps:
    """Arrays into which :meth:`Device.exchange` writes the cycle of every transfer.

    Parameters
    ----------
    accepted, produced : array of uint64
        Arrays at least as long as ``words`` and ``results``. Cycles count since the device was
        opened.
    """

    accepted: UInt64s
    produced: UInt64s

    @classmethod
    def for_arrays(cls, words: UInt64s, results: UInt64s) -> "Stamps":
        """Return stamps for exchanges of these arrays."""
        return cls(np.zeros(len(words), np.uint64), np.zeros(len(results), np.uint64))


class WordDevice(Protocol):
    """What every accelerator is driven by, whatever it computes; see :class:`Device`."""

    uri: str

    def exchange(
        self, words: UInt64s, results: UInt64s, *, cycles: int, stamps: Stamps | None = None
    ) -> Exchange:
        """Offer words and collect results, without blocking."""

    def counters(self) -> dict[str, int]:
        """Return the performance counters."""

    def close(self) -> None:
        """Release the device."""


class Device(ABC):
    """An open accelerator; a context manager that closes the device.

    Attributes
    ----------
    uri : str
        URI that the device was opened with.
    manifest : Manifest
        Description of the accelerator.
    is_software_engine : bool
        Whether :class:`host.engine.software.SoftwareEngine` answers joins, so that no words are
        made for them.
    """

    uri: str
    manifest: Manifest
    is_software_engine: bool = False

    @abstractmethod
    def exchange(
        self,
        words: UInt64s,
        results: UInt64s,
        *,
        cycles: int,
        stamps: Stamps | None = None,
    ) -> Exchange:
        """Offer ``words`` in order and collect result words in order, without blocking.

        Returns when ``cycles`` clock cycles have run, when ``results`` is full, or when the last
        result is a MARK. A caller calls it in a loop, with a deadline of its own.

        Parameters
        ----------
        words : array of uint64, (n, ceil(input bits / 64)), C-contiguous
            Input words; n may be zero.
        results : array of uint64, (m, ceil(result bits / 64)), C-contiguous, writable
            Room for result words; m may be zero.
        cycles : int
            Largest number of clock cycles to run; ignored by a device without a clock.
        stamps : Stamps, optional
            Receives the cycle in which each word was accepted and each result emitted.

        Raises
        ------
        DeviceError
            If the device is closed or broken.
        """

    @abstractmethod
    def counters(self) -> dict[str, int]:
        """Return the performance counters, by their names in the manifest."""

    @abstractmethod
    def close(self) -> None:
        """Release the device; closing it again has no effect.

        Closing does not wait forever. If another thread is inside a call that does not return,
        closing raises after some seconds.

        Raises
        ------
        DeviceError
            If another thread is still inside a call.
        """

    def close_after(self, error: BaseException | None) -> None:
        """Close the device after work that ended with ``error``, or without one.

        An error raised by closing is added to ``error`` as a note, because ``error`` came first.
        """
        try:
            self.close()
        except DeviceError as refusal:
            if error is None:
                raise
            error.add_note(str(refusal))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close_after(error)


def check_words(manifest: BundleManifest, words: UInt64s, results: UInt64s) -> None:
    """Raise :exc:`~host.errors.DeviceError` unless both arrays have the shape of the contract."""
    for name, array, word in [
        ("words", words, manifest.input_word),
        ("results", results, manifest.result_word),
    ]:
        if (
            array.dtype != np.uint64
            or array.ndim != 2
            or array.shape[1] != word.columns
            or not array.flags.c_contiguous
        ):
            raise DeviceError(
                f"Array {name!r} must be C-contiguous uint64 of shape (n, {word.columns}), not "
                f"{array.dtype} of shape {array.shape}."
            )
    if not results.flags.writeable:
        raise DeviceError("Array 'results' must be writable.")
