# SPDX-License-Identifier: Apache-2.0
"""A join as a tree of frozen parts, each with what makes sense in its place.

What belongs to one kind of part is a field of that kind only, and numbers have the values that suit
most others. So nearly every tree that can be written is an accelerator;
:class:`~hdl.parameters.JoinParameters`, which have every value, refuse the few others.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, get_type_hints

from .engine import require
from .external.engine import MOST_LATENCY
from .parameters import JoinParameters, KeyField

__all__ = [
    "Band",
    "DigestScan",
    "Equality",
    "ExternalScan",
    "Gates",
    "Index",
    "Join",
    "Lanes",
    "Own",
    "Part",
    "ReducingScan",
    "Rounds",
    "Scan",
    "Window",
]

Count = Annotated[int, range(1, 1 << 30)]
Arity = Annotated[int, range(2, 1 << 30)]
OneOrTwo = Annotated[int, (1, 2)]


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part of a join: its fields are parts, or have the names of parameters.

    The annotation of a number has its values.
    """

    #: Parameters that say which kind of part it is.
    fixed: ClassVar[Mapping[str, Any]] = {}

    def __post_init__(self):
        for name, hint in get_type_hints(type(self), include_extras=True).items():
            value = getattr(self, name)
            for allowed in getattr(hint, "__metadata__", ()):
                require(value in allowed, f"{name!r} must be one of {allowed}, not {value!r}")

    @property
    def values(self):
        """The parameters that the part and its parts set, by name."""
        found = dict(self.fixed)
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Part):
                found |= value.values
            elif value is not None:
                found[field.name] = value
        return found

    def completed(self, parameters):
        """Return the parameters of a tree with what follows from those of its other parts."""
        return parameters


@dataclass(frozen=True, kw_only=True)
class Window(Part):
    """Windows of both sides."""

    cores: Count = 4
    sub_window: Count = 256
    timestamp_bits: Annotated[int, range(65)] = 0


@dataclass(frozen=True, kw_only=True)
class Band(Part):
    """Differences of all fields are within bounds, which are set at run time."""

    fixed = {"comparator": "band"}


@dataclass(frozen=True, kw_only=True)
class Equality(Part):
    """All fields are equal."""

    fixed = {"comparator": "equality"}


@dataclass(frozen=True, kw_only=True)
class Own(Part):
    """A predicate of one's own, by its text."""

    fixed = {"comparator": "custom"}
    where: str


@dataclass(frozen=True, kw_only=True)
class Lanes(Part):
    """Keys that a region reads in a cycle."""

    lanes: Count = 1


@dataclass(frozen=True, kw_only=True)
class Rounds(Lanes):
    """The same, so many that results can be sent in rounds."""

    fixed = {"rounds": True}
    lanes: Annotated[int, tuple(1 << bits for bits in range(11))] = 1


@dataclass(frozen=True, kw_only=True)
class Gates(Part):
    """Gates of all cores, which wait so many cycles beyond the longest silence of a core."""

    margin: Annotated[int, range(1 << 30)] = 0
    parity: bool = False

    @property
    def values(self):
        return {}

    def completed(self, parameters):
        cycles = parameters.longest_silence + self.margin
        return parameters.with_(failure_cycles=cycles, parity=self.parity)


@dataclass(frozen=True, kw_only=True)
class Probing(Part):
    """What every engine of a SplitJoin has: groups of probes, whose numbers any group fits."""

    probes: Annotated[int, range(1, 257)] = 1
    probe_bits: Annotated[int, range(8, 25)] = 8


@dataclass(frozen=True, kw_only=True)
class OnChip(Probing):
    """What an engine with windows on the chip has besides."""

    gates: Gates | None = None
    clock_requests: bool = False
    result_streams: OneOrTwo = 1

    def completed(self, parameters):
        return parameters if self.gates is None else self.gates.completed(parameters)


@dataclass(frozen=True, kw_only=True)
class Scan(OnChip):
    """A scan of whole keys."""

    predicate: Band | Equality | Own
    read: Lanes | Rounds = Lanes()


@dataclass(frozen=True, kw_only=True)
class DigestScan(OnChip):
    """A scan of digests, with whole keys beside them; fewer bits tell too few keys apart."""

    predicate: Band | Equality
    read: Lanes | Rounds = Lanes()
    digest_bits: Annotated[int, range(6, 25)]


@dataclass(frozen=True, kw_only=True)
class ExternalScan(Probing):
    """A scan of external memory, whose beats are rows of as many keys as they hold."""

    fixed = {"store": "external"}
    predicate: Band | Equality | Own
    memory_width: Annotated[int, (256, 512, 1024)] = 512
    memory_burst: Annotated[int, (1, 2, 4, 8, 16, 32)] = 16
    memory_latency: Annotated[int, range(MOST_LATENCY + 1)] = 64
    result_streams: OneOrTwo = 1
    rounds: bool = False

    def completed(self, parameters):
        lanes = self.memory_width // parameters.key_bits
        return parameters.with_(lanes=1 << lanes.bit_length() - 1 if self.rounds else lanes)


@dataclass(frozen=True, kw_only=True)
class ReducingScan(Probing):
    """A scan that reduces the values of the matches of each tuple of R."""

    predicate: Band | Equality | Own
    read: Lanes = Lanes()
    value_bits: Annotated[int, range(1, 64)]


@dataclass(frozen=True, kw_only=True)
class Index(OnChip):
    """An index, which reads the buckets of keys that may match."""

    fixed = {"engine": "index"}
    predicate: Band | Equality
    bucket_bits: Annotated[int, range(1, 25)]
    tuples_per_word: OneOrTwo = 1


@dataclass(frozen=True, kw_only=True)
class Join(Part):
    """A join of two streams, the root of a tree."""

    keys: tuple[KeyField, ...] = (KeyField(name="x", bits=32),)
    window: Window = Window()
    engine: Scan | DigestScan | ExternalScan | ReducingScan | Index
    fan_out: Arity = 4
    fan_in: Arity = 4

    @property
    def parameters(self):
        """The :class:`~hdl.parameters.JoinParameters` of the tree.

        Raises
        ------
        ValueError
            If sizes do not go together.
        """
        return self.engine.completed(JoinParameters(**self.values))
