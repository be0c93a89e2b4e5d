# SPDX-License-Identifier: Apache-2.0
"""The contract of every device: offer input words, collect result words, never block."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from types import TracebackType
from typing import NamedTuple, Self

import numpy as np

from host.errors import DeviceError
from host.exact import UInt64s
from host.manifest import Manifest

__all__ = ["Device", "Exchange", "Stamps", "check_words"]


class Exchange(NamedTuple):
    """What one call of :meth:`Device.exchange` did.

    Attributes
    ----------
    accepted, produced : int
        Input words taken from the front of ``words``, result words put at the front of
        ``results``.
    cycles : int
        Clock cycles run; zero for a device without a clock.
    """

    accepted: int
    produced: int
    cycles: int


@dataclass(frozen=True)
class Stamps:
    """Where :meth:`Device.exchange` writes the cycle of every transfer.

    Parameters
    ----------
    accepted, produced : array of uint64
        At least as long as ``words`` and ``results``. Cycles count since the device was opened.
    """

    accepted: UInt64s
    produced: UInt64s

    @classmethod
    def for_arrays(cls, words: UInt64s, results: UInt64s) -> "Stamps":
        """Return stamps that fit these arrays."""
        return cls(np.zeros(len(words), np.uint64), np.zeros(len(results), np.uint64))


class Device(ABC):
    """An opened accelerator; a context manager that closes itself.

    Attributes
    ----------
    uri : str
        What it was opened as.
    manifest : Manifest
        Its description.
    """

    uri: str
    manifest: Manifest

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

        Returns when it has run ``cycles`` clock cycles, when ``results`` is full, or when the last
        result is a MARK. A caller loops, with a deadline of its own.

        Parameters
        ----------
        words : array of uint64, (n, ceil(input bits / 64)), C-contiguous
            Input words; n may be zero.
        results : array of uint64, (m, ceil(result bits / 64)), C-contiguous, writable
            Room for result words; m may be zero.
        cycles : int
            Most clock cycles to run; a device without a clock ignores it.
        stamps : Stamps, optional
            Receives the cycle in which each word was accepted and each result emitted.

        Raises
        ------
        DeviceError
            If the device is closed or broken.
        """

    @abstractmethod
    def counters(self) -> dict[str, int]:
        """Return the performance counters by the names that the manifest gives them."""

    @abstractmethod
    def close(self) -> None:
        """Release the device; closing it again does nothing.

        Closing does not wait for ever: where another thread is inside a call that does not return,
        it raises after some seconds.

        Raises
        ------
        DeviceError
            If the device is still at work.
        """

    def close_after(self, error: BaseException | None) -> None:
        """Close the device at the end of work that ended with ``error``, or well.

        What closing raises is added to the error as a note, for the error came first.
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


def check_words(manifest: Manifest, words: UInt64s, results: UInt64s) -> None:
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
