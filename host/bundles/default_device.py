# SPDX-License-Identifier: Apache-2.0
"""Choose the simulated accelerator for a query that names no device."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from host.bundles.store import default_bundle, find_bundles
from host.device.simulator_library import is_usable
from host.hardware.engine_choice import suitable_engine
from host.manifest import Manifest
from host.query.join_query import JoinQuery
from host.reference.window import CountWindow

__all__ = ["DefaultDevice", "default_device"]


@dataclass(frozen=True)
class DefaultDevice:
    """A simulated accelerator, and the reason for its choice.

    Parameters
    ----------
    bundle : Path
        Folder of the bundle.
    reason : str
        Reason for the choice, for an explanation.
    """

    bundle: Path
    reason: str

    @property
    def uri(self) -> str:
        """URI of the device."""
        return f"sim:{self.bundle}"


def default_device(
    query: JoinQuery, *, tuples: int = 0, build: bool = False, directory: Path | None = None
) -> DefaultDevice:
    """Choose the smallest bundle of the suitable engine that can serve a query.

    The default bundle is chosen if its window and its key fields suffice; it is built when it is
    first needed. Otherwise, a bundle on this machine is chosen. If none of them suffices, one is
    built if ``build`` allows it. Otherwise, the default bundle is returned, and planning the query
    on it raises the error that says what to do.

    Parameters
    ----------
    query : JoinQuery
        The join.
    tuples : int
        Largest number of tuples of a side in the window, if known. Ignored for a count-based
        window, whose size is known.
    build : bool
        Whether to build a larger bundle if necessary.
    directory : Path, optional
        Folder of the bundles.

    Raises
    ------
    MissingToolError, BuildError
        If a bundle must be built and cannot be.
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
    """The requirements of a query, in addition to a bundle that is like ``model``."""

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
        """Return the builder's options that override those of the preset."""
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
