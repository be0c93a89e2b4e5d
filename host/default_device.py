# SPDX-License-Identifier: Apache-2.0
"""Which simulated accelerator a query gets when no device is named."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from host.bundles import default_bundle, find_bundles
from host.device.simulator_library import is_usable
from host.engine_choice import suitable_engine
from host.manifest import Manifest
from host.query import JoinQuery
from host.window import CountWindow

__all__ = ["DefaultDevice", "default_device"]


@dataclass(frozen=True)
class DefaultDevice:
    """A simulated accelerator, and why it.

    Parameters
    ----------
    bundle : Path
        Its folder.
    reason : str
        For an explanation.
    """

    bundle: Path
    reason: str

    @property
    def uri(self) -> str:
        """The device's address."""
        return f"sim:{self.bundle}"


def default_device(
    query: JoinQuery, *, tuples: int = 0, build: bool = False, directory: Path | None = None
) -> DefaultDevice:
    """Choose the smallest bundle of the suitable engine that serves a query.

    That is the default one if its window and its key fields are enough, and is built when it is
    first needed. If they are not, one of the bundles on this machine is taken; if none of these
    serves either, one is built if that is allowed. Otherwise the default one is returned, and
    whoever plans the query on it meets the error that says what to do.

    Parameters
    ----------
    query : JoinQuery
        What is joined.
    tuples : int
        Tuples of a side that its window holds at the most, as far as known; a count-based window
        says itself.
    build : bool
        Whether a larger bundle is built if need be.
    directory : Path, optional
        Where bundles are kept.

    Raises
    ------
    MissingToolError, BuildError
        If a bundle is needed and cannot be built.
    """
    suitable = suitable_engine(query)
    if isinstance(query.window, CountWindow):
        tuples = query.window.size
    default = default_bundle(suitable.engine, directory)
    model = Manifest.load(default)
    needs = _Needs(model, max(tuples, 1), query.least_fields)
    if needs.met_by(model):
        return DefaultDevice(default, suitable.reason)
    others = [
        (manifest.capacity, len(manifest.keys), str(folder))
        for folder, manifest in find_bundles(directory)
        if needs.met_by(manifest) and is_usable(folder)
    ]
    if others:
        smallest = Path(min(others)[2])
        return DefaultDevice(
            smallest, f"{suitable.reason}; {needs}, and this is the smallest that is here"
        )
    if build:
        larger = default_bundle(suitable.engine, directory, options=needs.options())
        return DefaultDevice(larger, f"{suitable.reason}; {needs}, so this was built")
    return DefaultDevice(default, suitable.reason)


@dataclass(frozen=True)
class _Needs:
    """What a query asks of a bundle, besides being like ``model``."""

    model: Manifest
    tuples: int
    fields: int

    def met_by(self, manifest: Manifest) -> bool:
        model = self.model
        return (
            manifest.engine == model.engine
            and manifest.comparator == model.comparator
            and manifest.capacity >= self.tuples
            and len(manifest.keys) >= self.fields
            and manifest.timestamp_bits >= model.timestamp_bits
            and min(key.bits for key in manifest.keys) >= self._key_bits
        )

    @property
    def _key_bits(self) -> int:
        return min(key.bits for key in self.model.keys)

    def options(self) -> Sequence[str]:
        """Return options of the builder, over those of the preset."""
        options: list[str] = []
        if self.tuples > self.model.capacity:
            share = -(-self.tuples // self.model.storage.cores)
            options += ["--sub-window", str(1 << (share - 1).bit_length())]
        if self.fields > len(self.model.keys):
            for number in range(self.fields):
                options += ["--key", f"f{number}:{self._key_bits}"]
        return options

    def __str__(self) -> str:
        wanted = []
        if self.tuples > self.model.capacity:
            wanted.append(f"windows of {self.tuples:,} tuples")
        if self.fields > len(self.model.keys):
            wanted.append(f"{self.fields} key fields")
        return f"{' and '.join(wanted)} are more than the default has"
