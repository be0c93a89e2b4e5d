# SPDX-License-Identifier: Apache-2.0
"""The manifest as a whole."""

from collections.abc import Mapping
from dataclasses import dataclass, field
import json
from pathlib import Path
import shlex
from typing import Any

from host.errors import ForeignManifestError, MissingManifestError, StaleManifestError
from host.manifest.identity import digest
from host.manifest.parts import (
    Chain,
    Counter,
    Digests,
    ExternalMemory,
    Index,
    RoutedClock,
    Storage,
)
from host.manifest.word_layout import SECOND, KeyField, Word

__all__ = ["FORMAT", "PORTS_FORMAT", "Manifest"]

#: Format number of the manifests that this version reads, and of those with two result ports.
FORMAT = 4
PORTS_FORMAT = 5


@dataclass(frozen=True, eq=False)
class Manifest:
    """Description of one accelerator; read it with :meth:`load`.

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
    indices : mapping of str to int
        Number of indices of each operation; a greater or equal index is illegal.
    storage : Storage
        The storage rule.
    counters : tuple of Counter
        Performance counters.
    files, tools : mapping of str to str
        File names of the bundle's parts, and versions of the tools that made it.
    index : Index or None
        Layout of the buckets; None if the engine is not an index.
    digests : Digests or None
        Layout of the digests of a band; None if there are none.
    memory : ExternalMemory or None
        The memories that windows are in; None if they are on the chip.
    chain : Chain or None
        Description of a handshake join; None if the accelerator is a SplitJoin.
    clock : RoutedClock or None
        Routed clock; None if neither the accelerator nor a twin was routed.
    result_ports : tuple of str
        Ports that results leave by: one, or that of R's probes and that of S's probes.
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
    indices: Mapping[str, int]
    storage: Storage
    counters: tuple[Counter, ...]
    files: Mapping[str, str]
    tools: Mapping[str, str]
    index: Index | None = None
    digests: Digests | None = None
    chain: Chain | None = None
    memory: ExternalMemory | None = None
    clock: RoutedClock | None = None
    result_ports: tuple[str, ...] = ("o",)
    path: Path | None = None
    values: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def load(cls, path: str | Path, *, verify: bool = True) -> "Manifest":
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
        place = Path(path)
        file = place / "manifest.json" if place.is_dir() or not place.suffix else place
        try:
            text = file.read_text(encoding="utf-8")
        except OSError as error:
            raise MissingManifestError(
                path,
                f"has no readable manifest ({error.strerror or error}); generate the bundle, with "
                f"its simulator library, by "
                f"`python -m sim build --preset demo --output {shlex.quote(str(place))}`",
            ) from error
        except UnicodeDecodeError as error:
            raise ForeignManifestError(path, "has a manifest that is no text") from error
        try:
            values = json.loads(text)
        except ValueError as error:
            raise ForeignManifestError(path, f"has a manifest that is no JSON ({error})") from error
        manifest = cls.from_dict(values, path=file.parent, name=str(path))
        if verify:
            manifest._verify(str(path))
        return manifest

    @classmethod
    def from_dict(
        cls, values: Any, *, path: Path | None = None, name: str = "manifest"
    ) -> "Manifest":
        """Read a manifest from its JSON document.

        Raises
        ------
        ForeignManifestError
            If the document is not a manifest, or has another format.
        """
        if not isinstance(values, dict) or "format" not in values:
            raise ForeignManifestError(name, "has a manifest that is none of this kit")
        if values["format"] not in (FORMAT, PORTS_FORMAT):
            raise ForeignManifestError(
                name,
                f"has a manifest of format {values['format']!r}, this kit reads {FORMAT} and "
                f"{PORTS_FORMAT}; generate it again",
            )
        try:
            return cls(
                kit=values["kit"],
                hash=values["hash"],
                parameters=values["parameters"],
                input_word=Word.from_dict(values["input_word"]),
                result_word=Word.from_dict(values["result_word"]),
                input_kinds=values["input_kinds"],
                result_kinds=values["result_kinds"],
                operations=values["operations"],
                indices=values["indices"],
                storage=Storage.from_dict(values["storage"]),
                counters=tuple(Counter(**counter) for counter in values["counters"]),
                files=values["files"],
                tools=values.get("tools", {}),
                index=Index.from_dict(values["index"]) if "index" in values else None,
                digests=Digests.from_dict(values["digests"]) if "digests" in values else None,
                chain=Chain.from_dict(values["chain"]) if "chain" in values else None,
                memory=ExternalMemory.from_dict(values["memory"]) if "memory" in values else None,
                clock=RoutedClock(**values["clock"]) if "clock" in values else None,
                result_ports=_result_ports(values),
                path=path,
                values=values,
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ForeignManifestError(
                name, f"has an incomplete manifest ({error!r}); generate it again"
            ) from error

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

    @property
    def tuples_per_word(self) -> int:
        """Largest number of tuples in an input word and of results in a result word: 1 or 2."""
        return int(self.parameters["tuples_per_word"])

    @property
    def result(self) -> Word:
        """Layout of one result, which is that of the first result in a result word."""
        fields = self.result_word.fields
        first = {name: at for name, at in fields.items() if not name.startswith(SECOND)}
        second = fields.get(f"{SECOND}kind")
        return Word(self.result_word.bits if second is None else second.offset, first)

    @property
    def keys(self) -> tuple[KeyField, ...]:
        """The compared fields, in the order of their indices in control words."""
        return tuple(
            KeyField(key["name"], key["bits"], key["signed"]) for key in self.parameters["keys"]
        )

    @property
    def timestamp_bits(self) -> int:
        """Width of the unsigned timestamp; zero if there are no time-based windows."""
        return self.input_word["timestamp"].bits

    @property
    def capacity(self) -> int:
        """Number of tuples of one side that all cores together hold."""
        return self.storage.capacity

    @property
    def engine(self) -> str:
        """Kind of the engine: ``"scan"`` or ``"index"``."""
        return "scan" if self.index is None else "index"

    @property
    def probes(self) -> int:
        """Number of probes in a full group."""
        return int(self.parameters["probes"])

    @property
    def probe_bits(self) -> int:
        """Width of a result's probe index in bits."""
        return 0 if self.chain else self.result_word["probe"].bits

    @property
    def comparator(self) -> str:
        """Kind of the comparator: ``"band"``, ``"equality"`` or ``"custom"``."""
        return str(self.parameters["comparator"])

    @property
    def predicate(self) -> str | None:
        """Predicate of a custom comparator as ``"module:function"``; else None."""
        reference = self.parameters.get("predicate")
        return None if reference is None else str(reference)


def _result_ports(values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the result ports; those of the later format are in the manifest, which needs them."""
    return tuple(values["result_ports"]) if values["format"] == PORTS_FORMAT else ("o",)
