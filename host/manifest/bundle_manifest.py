# SPDX-License-Identifier: Apache-2.0
"""What the manifests of all bundles have, and how they are read."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
import json
from pathlib import Path
import shlex
from typing import Any, Self

from host.errors import ForeignManifestError, MissingManifestError, StaleManifestError
from host.installation import command
from host.manifest.identity import digest
from host.manifest.parts import Counter, ExternalMemory, RoutedClock
from host.manifest.word_layout import Word

__all__ = ["BundleManifest", "read_document", "shared_parts"]


@dataclass(frozen=True, eq=False, kw_only=True)
class BundleManifest(ABC):
    """Description of one accelerator, whatever it computes; read it with :meth:`load`.

    Attributes
    ----------
    kit, hash : str
        Version of the generator, and hash that identifies the accelerator.
    parameters : mapping
        Parameters of the generation.
    input_word, result_word : Word
        Layouts of the words.
    input_kinds, result_kinds, operations : mapping of str to int
        Values of the fields ``kind`` and ``control.op``. Of the operations, only those that the
        accelerator executes.
    counters : tuple of Counter
        Performance counters.
    files, tools : mapping of str to str
        File names of the bundle's parts, and versions of the tools that made it.
    memory : ExternalMemory or None
        The memories that windows are in; None if they are on the chip.
    clock : RoutedClock or None
        Routed clock; None if neither the accelerator nor a twin was routed.
    result_ports : tuple of str
        Ports that results leave by.
    path : Path or None
        Folder of the manifest file; None if the manifest was not read from a file.
    values : mapping
        The whole JSON document.
    """

    kit: str
    hash: str
    parameters: Mapping[str, Any]
    input_word: Word
    result_word: Word
    input_kinds: Mapping[str, int]
    result_kinds: Mapping[str, int]
    operations: Mapping[str, int]
    counters: tuple[Counter, ...]
    files: Mapping[str, str]
    tools: Mapping[str, str]
    memory: ExternalMemory | None = None
    clock: RoutedClock | None = None
    result_ports: tuple[str, ...] = ("o",)
    path: Path | None = None
    values: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def load(cls, path: str | Path, *, verify: bool = True) -> Self:
        """Read a bundle's manifest.

        Parameters
        ----------
        path : path-like
            Folder of the bundle, or path of a manifest file.
        verify : bool
            Whether to check that the hash agrees with the manifest and the bundle's Verilog.

        Raises
        ------
        MissingManifestError, ForeignManifestError, StaleManifestError
            If the bundle cannot be used.
        """
        values, folder = read_document(path)
        manifest = cls.from_dict(values, path=folder, name=str(path))
        if verify:
            manifest._verify(str(path))
        return manifest

    @classmethod
    @abstractmethod
    def from_dict(cls, values: Any, *, path: Path | None = None, name: str = "manifest") -> Self:
        """Read a manifest from its JSON document.

        Raises
        ------
        ForeignManifestError
            If the document is not a manifest of this kind, or has another format.
        """

    @property
    def cores(self) -> int:
        """Number of cores."""
        return int(self.parameters["cores"])

    def _verify(self, name: str) -> None:
        verilog = ""
        if "verilog" in self.files:
            assert self.path is not None
            try:
                verilog = (self.path / self.files["verilog"]).read_text(encoding="utf-8")
            except OSError as error:
                raise MissingManifestError(
                    name, f"lacks its Verilog, {self.files['verilog']!r}; generate it again"
                ) from error
        if digest(self.values, verilog) != self.hash:
            raise StaleManifestError(
                name,
                "was changed after it was generated (manifest and Verilog do not match the hash); "
                "generate it again",
            )


def shared_parts(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a :class:`BundleManifest` from a JSON document.

    Raises
    ------
    KeyError, TypeError, AttributeError
        If the document is incomplete.
    """
    return {
        "kit": values["kit"],
        "hash": values["hash"],
        "parameters": values["parameters"],
        "input_word": Word.from_dict(values["input_word"]),
        "result_word": Word.from_dict(values["result_word"]),
        "input_kinds": values["input_kinds"],
        "result_kinds": values["result_kinds"],
        "operations": values["operations"],
        "counters": tuple(Counter(**counter) for counter in values["counters"]),
        "files": values["files"],
        "tools": values.get("tools", {}),
        "clock": RoutedClock(**values["clock"]) if "clock" in values else None,
        "values": values,
    }


def read_document(path: str | Path) -> tuple[Any, Path]:
    """Return the JSON document of a bundle's manifest, and the bundle's folder.

    Raises
    ------
    MissingManifestError, ForeignManifestError
        If there is no such file, or if it holds no JSON.
    """
    place = Path(path)
    file = place / "manifest.json" if place.is_dir() or not place.suffix else place
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise MissingManifestError(
            path,
            f"has no readable manifest ({error.strerror or error}); generate the bundle, with "
            f"its simulator library, by "
            f"`{command(f'sim build --preset demo --output {shlex.quote(str(place))}')}`",
        ) from error
    except UnicodeDecodeError as error:
        raise ForeignManifestError(path, "has a manifest that is no text") from error
    try:
        values = json.loads(text)
    except ValueError as error:
        raise ForeignManifestError(path, f"has a manifest that is no JSON ({error})") from error
    return values, file.parent
