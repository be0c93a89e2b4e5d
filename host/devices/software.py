# SPDX-License-Identifier: Apache-2.0
"""The device that needs no hardware: the software engine's, or a model of a bundle's."""

import atexit
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import cached_property
from importlib import import_module
from importlib.resources import as_file, files
from pathlib import Path
from typing import Protocol, TypeVar

from host.arrays import UInt64s
from host.devices.contract import Device, Exchange, Stamps, check_words
from host.errors import (
    AcceleratorLimitError,
    DeviceError,
    JoinError,
    ManifestError,
    MissingToolError,
    UsageError,
)
from host.protocol.manifest import Manifest, load_join_manifest
from host.reference.predicate import load_predicate

__all__ = [
    "MODEL",
    "SOFTWARE_MANIFEST",
    "SoftwareDevice",
    "on_device_or_software",
]

Result = TypeVar("Result")

# If the package is in an archive, the manifest is a temporary file until the process ends.
_unpacked = ExitStack()
atexit.register(_unpacked.close)
#: Manifest of the accelerator that ``software:`` stands for: one core without a practical limit.
SOFTWARE_MANIFEST: Path = _unpacked.enter_context(as_file(files("host.devices") / "software.json"))

#: Module with the model of accelerators, which comes with the simulator, not with the host.
MODEL = "sim.model.device"


class _Model(Protocol):
    """What the model of an accelerator does; see :class:`sim.model.device.DeviceModel`."""

    @property
    def counters(self) -> Mapping[str, int]: ...

    def fail(self, core: int) -> None: ...

    def exchange(self, words: UInt64s, results: UInt64s) -> tuple[int, int]: ...


class SoftwareDevice(Device):
    """Answers without hardware: rows by the software engine, words as a bundle's hardware would.

    A join gives its rows to the software engine, and tells by :meth:`count` what it has done. Words
    are answered by a model, which is made when the first ones come. The device has no clock:
    ``cycles`` and all stamps are zero.

    Parameters
    ----------
    bundle : path-like or Manifest
        Folder of the bundle, or path of the manifest file, or the manifest itself.
    uri : str, optional
        URI of the device in messages.

    Raises
    ------
    UsageError
        If the accelerator has a predicate of its own that cannot be imported.
    """

    def __init__(self, bundle: str | Path | Manifest, *, uri: str | None = None) -> None:
        if isinstance(bundle, Manifest):
            self.manifest, place = bundle, bundle.path or ""
        else:
            self.manifest, place = load_join_manifest(bundle), bundle
        self.uri = f"software:{place}" if uri is None else uri
        if self.manifest.chain is not None:
            raise ManifestError(
                place,
                f"is a {self.manifest.chain.architecture} join, which has no model in software; "
                f"open it by `sim:`, or another bundle",
            )
        if self.manifest.predicate is not None and self.manifest.where is None:
            load_predicate(self.manifest.predicate)  # one that cannot be imported is told of here
        self._closed = False
        self._joined: Counter[str] = Counter()

    @cached_property
    def _model(self) -> _Model:
        """The model of the accelerator."""
        try:
            module = import_module(MODEL)
        except ModuleNotFoundError as error:
            raise MissingToolError(
                f"The model of accelerators (module {MODEL})",
                f"to answer words that are sent to {self.uri!r}",
                "install the kit, whose package 'sim' has it, or use 'sim:BUNDLE' or a board",
            ) from error
        model: _Model = module.DeviceModel(self.manifest)
        return model

    def exchange(
        self,
        words: UInt64s,
        results: UInt64s,
        *,
        cycles: int,
        stamps: Stamps | None = None,
    ) -> Exchange:
        """Offer ``words`` and collect ``results``; see :meth:`Device.exchange`."""
        self._require_open()
        check_words(self.manifest, words, results)
        accepted, produced = self._model.exchange(words, results)
        return Exchange.uncounted(accepted, produced, stamps)

    def fail(self, core: int) -> None:
        """Let a core of the model fail."""
        self._model.fail(core)

    def counters(self) -> dict[str, int]:
        """Return the counters; counters of cycles are zero."""
        self._require_open()
        known = self._model.counters if "_model" in vars(self) else {}
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
        vars(self).pop("_model", None)

    def _require_open(self) -> None:
        if self._closed:
            raise DeviceError(f"Device {self.uri!r} is closed.")


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
    AcceleratorLimitError
        If the device refuses the rows, and there is no software, or it does not take them either.
    """
    try:
        return run(device)
    except AcceleratorLimitError as error:
        if software is None:
            raise
        refusal = error
    tell(refusal)
    try:
        return run(software())
    except UsageError:  # the device's error is the one that helps
        raise refusal from None
