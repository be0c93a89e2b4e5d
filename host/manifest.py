# SPDX-License-Identifier: Apache-2.0
"""The manifest: everything that host code knows about one generated accelerator."""

from collections.abc import Mapping
from dataclasses import dataclass, field
import hashlib
import json
from pathlib import Path
import shlex
from typing import Any

from host.errors import ForeignManifestError, MissingManifestError, StaleManifestError

__all__ = [
    "FORMAT",
    "Chain",
    "Counter",
    "Index",
    "KeyField",
    "Manifest",
    "RoutedClock",
    "Storage",
    "Word",
    "WordField",
    "digest",
]

#: Format number of the manifests that this version reads, and of those with two result ports.
FORMAT = 4
PORTS_FORMAT = 5

#: Prefix of the names of fields that belong to the second result in a word.
SECOND = "two."


@dataclass(frozen=True)
class WordField:
    """Place of a field in a word; zero bits wide if the accelerator lacks the field."""

    offset: int
    bits: int
    signed: bool = False


@dataclass(frozen=True)
class Word:
    """Layout of an input or result word."""

    bits: int
    fields: Mapping[str, WordField]

    @property
    def columns(self) -> int:
        """Number of 64-bit numbers that hold one word."""
        return max(1, -(-self.bits // 64))

    def __getitem__(self, name: str) -> WordField:
        return self.fields[name]


@dataclass(frozen=True)
class KeyField:
    """A compared field: its name, width in bits and signedness, and the range of its integers."""

    name: str
    bits: int
    signed: bool = True

    @property
    def low(self) -> int:
        """Smallest value."""
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def high(self) -> int:
        """Largest value."""
        return (1 << (self.bits - 1)) - 1 if self.signed else (1 << self.bits) - 1


@dataclass(frozen=True)
class Storage:
    """The storage rule of the cores, and the encoding of a core in a result."""

    cores: int
    sub_window: int
    lanes: int
    ring_rows: int
    slack: int
    gather_arity: int
    gather_digit_bits: int
    gather_levels: int

    @property
    def capacity(self) -> int:
        """Number of tuples of one side that all cores together hold."""
        return self.cores * self.sub_window


@dataclass(frozen=True)
class Index:
    """The buckets of an index engine: bits of their numbers, and layout of COORDINATE values."""

    bucket_bits: int
    coordinate: Word


@dataclass(frozen=True)
class Digests:
    """The digests of a band: bits of each of their parts, and layout of CELL values."""

    parts: tuple[int, ...]
    cell: Word


@dataclass(frozen=True)
class Chain:
    """What an accelerator whose cores are a chain answers differently from SplitJoin.

    Parameters
    ----------
    architecture : str
        ``"handshake"`` or ``"low-latency-handshake"``.
    ordinal_bits : int
        Width of the numbers that its pairs name tuples by.
    order : str
        ``"none"``: pairs come in no order and without stars, up to the mark.
    emptied_by : tuple of str
        Operations that empty both windows, after all pairs in them have been found.
    """

    architecture: str
    ordinal_bits: int
    order: str
    emptied_by: tuple[str, ...]


@dataclass(frozen=True)
class Counter:
    """A performance counter."""

    name: str
    address: int
    bits: int
    description: str = ""


@dataclass(frozen=True)
class RoutedClock:
    """The clock that the accelerator, or its twin, has on a device after place and route.

    Parameters
    ----------
    preset : str
        The preset that was routed.
    twin : bool
        Whether the accelerator is not that preset itself but its stand-in for simulation.
    capacity : int
        Number of tuples of one side that the preset holds.
    device, speed : str, int
        The device and its speed grade.
    mhz : float
        Clock of the slowest seed in MHz.
    report : str
        Path of the routing report in the kit's checkout.
    earlier_design : str or None
        The earlier design that the report describes; None if the report describes the design of
        the kit that generated the bundle.
    """

    preset: str
    twin: bool
    capacity: int
    device: str
    speed: int
    mhz: float
    report: str
    earlier_design: str | None = None


#: Parts of a manifest that its hash does not cover.
_UNHASHED = ("hash", "tools", "clock")


def digest(values: Mapping[str, Any], verilog: str) -> str:
    """Return the hash that a manifest with these ``values`` must contain.

    The hash covers the manifest without ``hash``, ``tools`` and ``clock``, as JSON with sorted keys
    and no spaces, then a zero byte, then the Verilog.
    """
    rest = {name: value for name, value in values.items() if name not in _UNHASHED}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(f"{text}\0{verilog}".encode()).hexdigest()


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
                input_word=_word(values["input_word"]),
                result_word=_word(values["result_word"]),
                input_kinds=values["input_kinds"],
                result_kinds=values["result_kinds"],
                operations=values["operations"],
                indices=values["indices"],
                storage=_storage(values["storage"]),
                counters=tuple(Counter(**counter) for counter in values["counters"]),
                files=values["files"],
                tools=values.get("tools", {}),
                index=_index(values["index"]) if "index" in values else None,
                digests=_digests(values["digests"]) if "digests" in values else None,
                chain=_chain(values["chain"]) if "chain" in values else None,
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


def _word(values: Mapping[str, Any]) -> Word:
    fields = {name: WordField(**place) for name, place in values["fields"].items()}
    return Word(values["bits"], fields)


def _index(values: Mapping[str, Any]) -> Index:
    return Index(values["bucket_bits"], _word(values["coordinate"]))


def _digests(values: Mapping[str, Any]) -> Digests:
    return Digests(tuple(values["parts"]), _word(values["cell"]))


def _chain(values: Mapping[str, Any]) -> Chain:
    return Chain(**{**values, "emptied_by": tuple(values["emptied_by"])})


def _result_ports(values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the result ports; those of the later format are in the manifest, which needs them."""
    return tuple(values["result_ports"]) if values["format"] == PORTS_FORMAT else ("o",)


def _storage(values: Mapping[str, Any]) -> Storage:
    gather = values["gather"]
    return Storage(
        cores=values["cores"],
        sub_window=values["sub_window"],
        lanes=values["lanes"],
        ring_rows=values["ring_rows"],
        slack=values["slack"],
        gather_arity=gather["arity"],
        gather_digit_bits=gather["digit_bits"],
        gather_levels=gather["levels"],
    )
