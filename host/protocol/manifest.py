# SPDX-License-Identifier: Apache-2.0
"""The manifest: everything that host code knows about one generated accelerator."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
import hashlib
import json
from pathlib import Path
import shlex
from typing import Any, ClassVar, Self, cast

from host.errors import ManifestError
from host.installation import command

__all__ = [
    "AGGREGATE_FORMAT",
    "AggregateManifest",
    "BundleManifest",
    "Chain",
    "Counter",
    "Digests",
    "ExternalMemory",
    "FORMAT",
    "Index",
    "JoinAggregateManifest",
    "KeyField",
    "MATCHES_FORMAT",
    "Manifest",
    "RoutedClock",
    "SECOND",
    "Storage",
    "Word",
    "WordField",
    "digest",
    "join_manifest",
    "load_join_manifest",
    "load_manifest",
    "read_document",
    "shared_parts",
]

# Layouts of words, and the compared fields.

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

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Word":
        """Read a layout from its part of a manifest."""
        fields = {name: WordField(**place) for name, place in values["fields"].items()}
        return cls(values["bits"], fields)

    def __getitem__(self, name: str) -> WordField:
        return self.fields[name]

    def number(self, values: Mapping[str, int]) -> int:
        """Return the word with these values in its fields; they lose the bits that do not fit."""
        found = 0
        for name, value in values.items():
            place = self.fields[name]
            found |= (value & ((1 << place.bits) - 1)) << place.offset
        return found


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


# Parts of a manifest: storage, engine, chain, counters and routed clock.


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

    @property
    def has_grid(self) -> bool:
        """Whether fields can have bits of the bucket number: where not, all of them are hashed."""
        return self.coordinate["hashed"].bits > 0


@dataclass(frozen=True)
class ExternalMemory:
    """The memories that windows are in: one behind each port, which regions have in their order.

    Each has so many ``bytes``, is read in beats of ``beat_bytes``, of which ``key_bytes`` are keys,
    and hides so many cycles of ``latency``.
    """

    ports: tuple[str, ...]
    bytes: int
    beat_bytes: int
    key_bytes: float
    burst_beats: int
    latency: int


@dataclass(frozen=True)
class Digests:
    """The digests of a band: bits of each of their parts, and layout of CELL values."""

    parts: tuple[int, ...]
    cell: Word


@dataclass(frozen=True)
class Chain:
    """Properties of an accelerator whose cores are a chain.

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


# The hash that identifies an accelerator.

#: Parts of a manifest that its hash does not cover.
_UNHASHED = ("hash", "tools", "clock", "shells")


def digest(values: Mapping[str, Any], verilog: str) -> str:
    """Return the hash that a manifest with these ``values`` must contain.

    The hash covers the manifest without ``hash``, ``tools``, ``clock`` and ``shells``, as JSON with
    sorted keys and no spaces, then a zero byte, then the Verilog.
    """
    rest = {name: value for name, value in values.items() if name not in _UNHASHED}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(f"{text}\0{verilog}".encode()).hexdigest()


# What the manifests of all bundles have, and how they are read.


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

    #: Format numbers that this class reads, and what to do about a bundle of another one.
    formats: ClassVar[tuple[int, ...]] = ()
    remedy: ClassVar[str] = "generate it again, or use a bundle of another kind"

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
        ManifestError
            If the bundle cannot be used.
        """
        values, folder = read_document(path)
        manifest = cls.from_dict(values, path=folder, name=str(path))
        if verify:
            manifest._verify(str(path))
        return manifest

    @classmethod
    def from_dict(cls, values: Any, *, path: Path | None = None, name: str = "manifest") -> Self:
        """Read a manifest from its JSON document.

        Raises
        ------
        ManifestError
            If the document is not a manifest of this kind, or has another format.
        """
        if not isinstance(values, dict) or "format" not in values:
            raise ManifestError(name, "has a manifest that is none of this kit")
        if values["format"] not in cls.formats:
            known = " and ".join(map(str, cls.formats))
            raise ManifestError(
                name,
                f"has a manifest of format {values['format']!r}, this kit reads {known} here; "
                f"{cls.remedy}",
            )
        try:
            return cls(**shared_parts(values), **cls._own_parts(values), path=path)
        except (KeyError, TypeError, AttributeError) as error:
            raise ManifestError(
                name, f"has an incomplete manifest ({error!r}); generate it again"
            ) from error

    @classmethod
    @abstractmethod
    def _own_parts(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments that not every kind of manifest has; it may raise as the shared."""

    @property
    @abstractmethod
    def cores(self) -> int:
        """Number of cores."""

    def _verify(self, name: str) -> None:
        verilog = ""
        if "verilog" in self.files:
            assert self.path is not None
            try:
                verilog = (self.path / self.files["verilog"]).read_text(encoding="utf-8")
            except OSError as error:
                raise ManifestError(
                    name, f"lacks its Verilog, {self.files['verilog']!r}; generate it again"
                ) from error
        if digest(self.values, verilog) != self.hash:
            raise ManifestError(
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


def _values(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a part: an object in it is the layout of a word, a list a tuple."""
    kinds: Mapping[type, Callable[[Any], Any]] = {dict: Word.from_dict, list: tuple}
    return {name: kinds.get(type(value), lambda one: one)(value) for name, value in part.items()}


def read_document(path: str | Path) -> tuple[Any, Path]:
    """Return the JSON document of a bundle's manifest, and the bundle's folder.

    Raises
    ------
    ManifestError
        If there is no such file, or if it holds no JSON.
    """
    place = Path(path)
    file = place / "manifest.json" if place.is_dir() or not place.suffix else place
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise ManifestError(
            path,
            f"has no readable manifest ({error.strerror or error}); generate the bundle, with "
            f"its simulator library, by "
            f"`{command(f'sim build --preset demo --output {shlex.quote(str(place))}')}`",
        ) from error
    except UnicodeDecodeError as error:
        raise ManifestError(path, "has a manifest that is no text") from error
    try:
        values = json.loads(text)
    except ValueError as error:
        raise ManifestError(path, f"has a manifest that is no JSON ({error})") from error
    return values, file.parent


# The manifest of an accelerator of joins as a whole.

#: Format number of the manifests that this version reads.
FORMAT = 8


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

    formats: ClassVar[tuple[int, ...]] = (FORMAT,)

    indices: Mapping[str, int]
    storage: Storage
    index: Index | None = None
    digests: Digests | None = None
    chain: Chain | None = None

    @classmethod
    def _own_parts(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        kinds: dict[str, Any] = {
            "index": Index,
            "digests": Digests,
            "chain": Chain,
            "memory": ExternalMemory,
        }
        # What every query asks of the tree is there, or the manifest is incomplete.
        _ = values["parameters"]["engine"]["predicate"]["kind"], values["parameters"]["keys"]
        storage = dict(values["storage"])
        gather = storage.pop("gather")
        return {
            "indices": values["indices"],
            "storage": Storage(**storage, **{f"gather_{name}": n for name, n in gather.items()}),
            "result_ports": tuple(values["result_ports"]),
            **{
                name: kind(**_values(values[name]))
                for name, kind in kinds.items()
                if name in values
            },
        }

    @property
    def cores(self) -> int:
        """Number of cores."""
        return self.storage.cores

    @property
    def _engine(self) -> Mapping[str, Any]:
        """The engine in the tree of parts that the accelerator was generated from."""
        return cast(Mapping[str, Any], self.parameters["engine"])

    @property
    def tuples_per_word(self) -> int:
        """Largest number of tuples in an input word and of results in a result word: 1 or 2."""
        return int(self._engine.get("tuples_per_word", 1))

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
    def kind(self) -> tuple[str, str, str | None]:
        """What two accelerators have in common that find the same kind of pairs in the same way."""
        return self.engine, self.comparator, self.where

    @property
    def keeps_stored_order(self) -> bool:
        """Whether the pairs of a probe come in the order of the stored tuples."""
        return self.index is None

    @property
    def has_grid(self) -> bool:
        """Whether keys can be arranged in a grid of buckets, whose cells suit the bounds."""
        return self.index is not None and self.index.has_grid

    @property
    def probes(self) -> int:
        """Number of probes in a full group."""
        return int(self._engine["probes"])

    @property
    def digest_bits(self) -> int | None:
        """Width of the digests that passes compare; None if they compare whole keys."""
        return cast(int | None, self._engine.get("digest_bits"))

    @property
    def probe_bits(self) -> int:
        """Width of a result's probe index in bits."""
        return 0 if self.chain else self.result_word["probe"].bits

    @property
    def comparator(self) -> str:
        """Kind of the comparator: ``"band"``, ``"equality"`` or ``"custom"``."""
        return str(self._engine["predicate"]["kind"])

    @property
    def bounded(self) -> tuple[KeyField, ...]:
        """The fields whose differences are compared with bounds, which control words set."""
        return self.keys if self.comparator == "band" else ()

    @property
    def is_fixed(self) -> bool:
        """Whether the generated circuit alone says which keys match: it knows no terms."""
        return self.comparator == "custom"

    @property
    def predicate(self) -> str | None:
        """Predicate of a custom comparator as ``"module:function"``; else None."""
        reference = self._engine["predicate"].get("predicate")
        return None if reference is None else str(reference)

    @property
    def where(self) -> str | None:
        """What a custom comparator finds: a condition on the key fields of two tuples, or None.

        See :class:`host.query.conditions.Condition`; ``l`` is the tuple of R, ``r`` that of S.
        """
        where = self._engine["predicate"].get("where")
        return None if where is None else str(where)


# The manifest of a join aggregate, an accelerator that reduces the matches of each left row.

#: Format number of the manifests of join aggregates that this version reads.
MATCHES_FORMAT = 9


@dataclass(frozen=True, eq=False, kw_only=True)
class JoinAggregateManifest(Manifest):
    """Description of one join aggregate; read it with :meth:`load`.

    Tuples of S are stored and have a ``value`` beside their key; tuples of R only probe. In the
    result word, ``value.count``, ``value.total``, ``value.least`` and ``value.most`` are what the
    matches of a tuple of R are reduced to, and ``value.probe`` is its number since the last star.
    """

    formats: ClassVar[tuple[int, ...]] = (MATCHES_FORMAT,)

    @property
    def probe_bits(self) -> int:
        """Width of a result's probe index in bits."""
        return self.result_word["value.probe"].bits

    @property
    def value_bits(self) -> int:
        """Width of the signed value beside a stored key."""
        return self.input_word["value"].bits


# The manifest of an accelerator of windowed aggregates.

#: Format number of the manifests of aggregates that this version reads.
AGGREGATE_FORMAT = 6


@dataclass(frozen=True, eq=False, kw_only=True)
class AggregateManifest(BundleManifest):
    """Description of one accelerator of windowed aggregates; read it with :meth:`load`.

    In the input word, a field of a tuple is ``tuple.NAME``. In the result word, a value of a window
    is ``window.NAME``, with the name of its reduction.

    Attributes
    ----------
    operator : mapping
        Document of the operator, as :mod:`host.operators.windowed` reads it.
    keys, panes : int
        Capacity of keys; largest number of panes in a window.
    slides_by : mapping of str to str
        For each reduction, ``"delta"`` or ``"panes"``: how its windows move on.
    """

    operator: Mapping[str, Any]
    keys: int
    panes: int
    slides_by: Mapping[str, str]

    formats: ClassVar[tuple[int, ...]] = (AGGREGATE_FORMAT,)
    remedy: ClassVar[str] = f"generate it by `{command('hdl generate --operator MODULE:NAME')}`"

    @classmethod
    def _own_parts(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        names = ("keys", "panes", "slides_by")
        operator = values["parameters"]["operator"]
        return {"operator": operator, **{name: values["aggregate"][name] for name in names}}

    @property
    def cores(self) -> int:
        """Number of cores."""
        return int(self.parameters["cores"])


# Reads the manifest of any bundle.

#: Kinds of manifests by their formats, but for those of joins.
_KINDS: dict[Any, type[BundleManifest]] = {
    AGGREGATE_FORMAT: AggregateManifest,
    MATCHES_FORMAT: JoinAggregateManifest,
}


def load_manifest(path: str | Path) -> BundleManifest:
    """Return the manifest of a bundle, whatever its accelerator computes.

    Raises
    ------
    ManifestError
        If the bundle cannot be used.
    """
    values, _ = read_document(path)
    format_ = values.get("format") if isinstance(values, dict) else None
    return _KINDS.get(format_, Manifest).load(path)


def load_join_manifest(path: str | Path) -> Manifest:
    """Return the manifest of a bundle that joins: one of pairs, or of aggregates of matches.

    Raises
    ------
    ManifestError
        If the bundle cannot be used.
    """
    values, _ = read_document(path)
    return _kind_of_join(values).load(path)


def join_manifest(values: Any, *, name: str) -> Manifest:
    """Return the manifest of an accelerator that joins, from its document.

    Parameters
    ----------
    values : JSON value
        The document.
    name : str
        What to call it in errors.

    Raises
    ------
    ManifestError
        If the accelerator cannot be used.
    """
    return _kind_of_join(values).from_dict(values, name=name)


def _kind_of_join(values: Any) -> type[Manifest]:
    is_aggregate = isinstance(values, dict) and values.get("format") == MATCHES_FORMAT
    return JoinAggregateManifest if is_aggregate else Manifest
