# SPDX-License-Identifier: Apache-2.0
"""The manifest of an accelerator of joins as a whole."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from host.errors import ForeignManifestError
from host.manifest.bundle_manifest import BundleManifest, shared_parts
from host.manifest.parts import Chain, Digests, ExternalMemory, Index, Storage
from host.manifest.word_layout import SECOND, KeyField, Word

__all__ = ["FORMAT", "PORTS_FORMAT", "Manifest"]

#: Format number of the manifests that this version reads, and of those with two result ports.
FORMAT = 4
PORTS_FORMAT = 5


@dataclass(frozen=True, eq=False, kw_only=True)
class Manifest(BundleManifest):
    """Description of one accelerator of joins; read it with :meth:`load`.

    Attributes
    ----------
    indices : mapping of str to int
        Number of indices of each operation; a greater or equal index is illegal.
    storage : Storage
        The storage rule.
    index : Index or None
        Layout of the buckets; None if the engine is not an index.
    digests : Digests or None
        Layout of the digests of a band; None if there are none.
    chain : Chain or None
        Description of a handshake join; None if the accelerator is a SplitJoin.
    """

    #: Format numbers that this class reads.
    formats: ClassVar[tuple[int, ...]] = (FORMAT, PORTS_FORMAT)

    indices: Mapping[str, int]
    storage: Storage
    index: Index | None = None
    digests: Digests | None = None
    chain: Chain | None = None

    @classmethod
    def from_dict(cls, values: Any, *, path: Path | None = None, name: str = "manifest") -> Self:
        """Read a manifest from its JSON document.

        Raises
        ------
        ForeignManifestError
            If the document is not a manifest, or has another format.
        """
        if not isinstance(values, dict) or "format" not in values:
            raise ForeignManifestError(name, "has a manifest that is none of this kit")
        if values["format"] not in cls.formats:
            known = " and ".join(map(str, cls.formats))
            raise ForeignManifestError(
                name,
                f"has a manifest of format {values['format']!r}, this kit reads {known} here; "
                f"generate it again, or use a bundle of another kind",
            )
        try:
            return cls(
                **shared_parts(values),
                indices=values["indices"],
                storage=Storage.from_dict(values["storage"]),
                index=Index.from_dict(values["index"]) if "index" in values else None,
                digests=Digests.from_dict(values["digests"]) if "digests" in values else None,
                chain=Chain.from_dict(values["chain"]) if "chain" in values else None,
                memory=ExternalMemory.from_dict(values["memory"]) if "memory" in values else None,
                result_ports=_result_ports(values),
                path=path,
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ForeignManifestError(
                name, f"has an incomplete manifest ({error!r}); generate it again"
            ) from error

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
