# SPDX-License-Identifier: Apache-2.0
"""The software device: it computes an accelerator's results with the reference join."""

import atexit
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from importlib.resources import as_file, files
from pathlib import Path
from typing import TypeVar

import numpy as np

from host.device.contract import Device, Exchange, Stamps, check_words
from host.device.matches_model import MatchesModel
from host.device.model import AcceleratorModel
from host.errors import (
    AcceleratorLimitError,
    DeviceError,
    ForeignManifestError,
    JoinError,
    KeyRangeError,
    UsageError,
    WindowOverflowError,
)
from host.manifest import JoinAggregateManifest, Manifest, load_join_manifest
from host.reference.exact import UInt64s
from host.reference.predicate import load_predicate
from host.words import codec_of, unpack_field

__all__ = ["REFUSALS", "SOFTWARE_MANIFEST", "SoftwareDevice", "on_device_or_software"]

Result = TypeVar("Result")

REFUSALS = (AcceleratorLimitError, KeyRangeError, WindowOverflowError)
"""What a device raises for a query or for rows that are too large for it."""

# If the package is in an archive, the manifest is a temporary file until the process ends.
_unpacked = ExitStack()
atexit.register(_unpacked.close)
#: Manifest of the accelerator that ``software:`` stands for: one core without a practical limit.
SOFTWARE_MANIFEST: Path = _unpacked.enter_context(as_file(files("host.device") / "software.json"))

#: Least number of tuples joined at once, used after a control word, and the largest number.
FEWEST, MOST = 1 << 10, 1 << 16
#: Number of results of a batch above which the next batch of tuples is smaller.
MANY = 1 << 18


class SoftwareDevice(Device):
    """Computes the results of a bundle's hardware with the reference join.

    The results and their order equal those of the hardware while the period of the stars is at most
    ``probes``. With a longer period, the pairs between two stars may come in another order. After
    an overflow or disorder, stars and marks report the error as in hardware, and the pairs, which
    are then unreliable, can differ. The device has no clock: ``cycles`` and all stamps are zero.

    Parameters
    ----------
    bundle : path-like or Manifest
        Folder of the bundle, or path of the manifest file, or the manifest itself.
    uri : str, optional
        URI of the device in messages.
    """

    def __init__(self, bundle: str | Path | Manifest, *, uri: str | None = None) -> None:
        if isinstance(bundle, Manifest):
            self.manifest, place = bundle, bundle.path or ""
        else:
            self.manifest, place = load_join_manifest(bundle), bundle
        self.uri = f"software:{place}" if uri is None else uri
        if self.manifest.chain is not None:
            raise ForeignManifestError(
                place,
                f"is a {self.manifest.chain.architecture} join, which has no model in software; "
                f"open it by `sim:`, or another bundle",
            )
        reference = self.manifest.predicate
        custom = None if reference is None else load_predicate(reference)
        self._codec = codec_of(self.manifest)
        is_aggregate = isinstance(self.manifest, JoinAggregateManifest)
        self._model = (MatchesModel if is_aggregate else AcceleratorModel)(self.manifest, custom)
        self._waiting = np.zeros((0, self.manifest.result_word.columns), np.uint64)
        self._batch = FEWEST
        self._closed = False
        self._joined: Counter[str] = Counter()

    def exchange(
        self,
        words: UInt64s,
        results: UInt64s,
        *,
        cycles: int,
        stamps: Stamps | None = None,
    ) -> Exchange:
        """Offer ``words`` and collect ``results``; see :meth:`Device.exchange`."""
        if self._closed:
            raise DeviceError(f"Device {self.uri!r} is closed.")
        check_words(self.manifest, words, results)
        kinds = unpack_field(words, self.manifest.input_word["kind"])
        legal = self._codec.legal(words)
        alone = np.flatnonzero((kinds == self.manifest.input_kinds["CONTROL"]) | ~legal)
        accepted, produced = 0, 0
        while True:
            delivered, marked = self._deliver(results[produced:])
            produced += delivered
            if marked or produced == len(results) or accepted == len(words):
                break
            at = int(np.searchsorted(alone, accepted))
            until = int(alone[at]) if at < len(alone) else len(words)
            if until == accepted:
                self._batch = FEWEST
                if legal[accepted]:
                    control = self._codec.unpack_control(words[accepted])
                    self._waiting = self._codec.join_results(self._model.control(*control))
                else:
                    self._model.drop_illegal()
                accepted += 1
            else:
                until = min(until, accepted + self._batch)
                self._waiting = self._tuples(words[accepted:until])
                accepted = until
        if stamps is not None:
            stamps.accepted[:accepted] = 0
            stamps.produced[:produced] = 0
        return Exchange(accepted, produced, 0)

    def fail(self, core: int) -> None:
        """Let a core fail, as :meth:`host.device.model.AcceleratorModel.fail` does."""
        self._model.fail(core)

    def counters(self) -> dict[str, int]:
        """Return the counters; counters of cycles are zero."""
        if self._closed:
            raise DeviceError(f"Device {self.uri!r} is closed.")
        known = self._model.counters
        return {
            counter.name: known.get(counter.name, 0) + self._joined[counter.name]
            for counter in self.manifest.counters
        }

    def count(self, increases: Mapping[str, int]) -> None:
        """Add to the counters what the software engine has done for a join on this device."""
        for name, increase in increases.items():
            self._joined[name] += increase

    def close(self) -> None:
        """Close the device and drop all waiting results."""
        self._closed = True
        self._waiting = self._waiting[:0]

    def _tuples(self, words: UInt64s) -> UInt64s:
        """Join tuples, and adapt the size of the next batch to the number of results."""
        answers = self._model.tuples(*self._codec.unpack_tuples(words))
        if len(answers) > MANY:
            self._batch = max(1, self._batch // 4)
        elif len(answers) < MANY // 4:
            self._batch = min(MOST, self._batch * 2)
        return self._codec.join_results(answers)

    def _deliver(self, results: UInt64s) -> tuple[int, bool]:
        """Deliver waiting results; return their number, and whether the last one is a mark."""
        # Only the last waiting word can be a mark, because each control word is executed alone.
        count = min(len(results), len(self._waiting))
        results[:count] = self._waiting[:count]
        self._waiting = self._waiting[count:]
        kind = unpack_field(results[count - 1 : count], self.manifest.result_word["kind"])
        return count, count > 0 and int(kind[0]) == self._codec.mark


def on_device_or_software(
    run: Callable[[Device], Result],
    device: Device,
    software: Callable[[], Device] | None,
    tell: Callable[[JoinError], None],
) -> Result:
    """Return what ``run`` returns of a device, or of software if the device refuses its rows.

    This is what happens wherever a device cannot hold the times, the values or the window of rows
    that are at hand: all of them are given to ``run`` once more.

    Parameters
    ----------
    run : callable
        Does the work with a device; what it has done when it raises must not count.
    device : Device
        The device.
    software : callable or None
        Opens a software device; None: a refusal is an error.
    tell : callable
        Told the refusal, before ``run`` gets software.

    Raises
    ------
    AcceleratorLimitError, KeyRangeError, WindowOverflowError
        If the device refuses the rows, and there is no software, or it does not take them either.
    """
    try:
        return run(device)
    except REFUSALS as error:
        if software is None:
            raise
        refusal = error
    tell(refusal)
    try:
        return run(software())
    except UsageError:  # the device's error is the one that helps
        raise refusal from None
