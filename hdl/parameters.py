# SPDX-License-Identifier: Apache-2.0
"""Parameters of a join accelerator, a tree of parts, and the fields of its keys.

A :class:`JoinParameters` determines the generated accelerator completely, and the manifest of a
bundle repeats it. Components take the few values that they need. Top-level components take the
whole object.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
import re

from amaranth.utils import ceil_log2

from .arrangement import SPLITJOIN, arrangement_named
from .external.engine import ExternalScan
from .index.engine import Index
from .parts import (
    AtLeast,
    Part,
    option,
    options_of,
    require,
    require_known,
    require_mapping,
    words_of,
)
from .reducing import ReducingScan
from .scan.digests import DigestScan
from .scan.engine import Scan

__all__ = ["SHAPE", "JoinParameters", "KeyField", "Parameters", "Window"]


@dataclass(frozen=True, kw_only=True)
class KeyField(Part):
    """One compared field of a tuple.

    Parameters
    ----------
    name : str
        Identifier; also the attribute that a custom ``predicate(r, s)`` reads.
    bits : int
        Width, 1 to 64.
    signed : bool
        Whether the field is in two's complement.
    """

    name: str
    bits: int
    signed: bool = True

    def __post_init__(self):
        require(
            isinstance(self.name, str) and re.fullmatch(r"[a-z][a-z0-9_]*", self.name),
            f"Key field name must be a lower-case identifier, not {self.name!r}",
        )
        require(
            type(self.bits) is int and 1 <= self.bits <= 64,
            f"Key field {self.name!r} must have 1 to 64 bits, not {self.bits!r}",
        )
        require(
            type(self.signed) is bool,
            f"Key field {self.name!r} must be signed or not, True or False, not {self.signed!r}",
        )


#: Cycles on the way through the registers of a core.
WAY = 32
#: Titles of options.
SHAPE, TREES = "accelerator", "trees"


class Parameters(ABC):
    """What the parameters of every accelerator are, a frozen dataclass."""

    #: See :attr:`hdl.arrangement.Arrangement.rings`.
    rings = None

    @classmethod
    @abstractmethod
    def of(cls, **words):
        """Return the parameters that ``words`` describe (:mod:`hdl.parts`).

        Raises
        ------
        ValueError
            If a word is unknown to this version of the kit, or if some contradict one another.
        """

    @abstractmethod
    def words(self):
        """Return the words that :meth:`of` takes, as JSON-compatible values."""

    def to_dict(self):
        """Return the parameters as a manifest has them, JSON-compatible values."""
        return self.words()

    @classmethod
    def from_dict(cls, values):
        """Return the parameters that ``to_dict`` has converted."""
        return cls.of(**values)

    @abstractmethod
    def require_join(self, what, remedy):
        """Raise :exc:`ValueError` unless the accelerator is a join, which ``what`` is for."""

    def with_(self, **changes):
        """Return a copy with other values of some words, validated again."""
        return self.of(**{**self.words(), **changes})


@dataclass(frozen=True, kw_only=True)
class Window(Part):
    """Windows of both sides.

    Parameters
    ----------
    cores : int
        Number of join cores, at least one.
    sub_window : int
        Tuples of one side that a core can hold. The capacity of a window is ``cores * sub_window``.
    timestamp_bits : int
        Width of the unsigned timestamp. Zero leaves time-based windows out.
    """

    cores: option("join cores, any number", AtLeast(1), group=SHAPE) = 4
    sub_window: option("tuples of one side that a core can hold", AtLeast(1), group=SHAPE) = 256
    timestamp_bits: option(
        "width of the timestamp; 0 leaves time-based windows out", range(65), group=SHAPE
    ) = 0


#: Number of children of a node of a tree.
Arity = AtLeast(2)


@dataclass(frozen=True, kw_only=True)
class JoinParameters(Part, Parameters):
    """A join of two streams as a tree of parts: what is fixed when an accelerator is generated.

    Control words set everything else. :meth:`of` makes the tree of its words, the numbers of all
    parts by their names.

    Parameters
    ----------
    window : Window
    keys : tuple of KeyField
        Compared fields, at least one.
    engine : Scan, DigestScan, ReducingScan, ExternalScan or Index
        How a core finds matches, with the predicate.
    fan_out : int
        Largest number of children of a distribution tree node (the seed's *b*).
    fan_in : int
        Largest number of ports of a merger (the seed's *c*).
    architecture : str
        ``"splitjoin"``, or ``"module:name"`` of an :class:`hdl.arrangement.Arrangement` of one's
        own, as are those of the joins that SplitJoin is compared with.

    Raises
    ------
    ValueError
        If sizes of parts do not go together.
    """

    window: Window = Window()
    keys: option(
        "a compared field; give it once per field", metavar="NAME:BITS[:unsigned]", group=SHAPE
    ) = (KeyField(name="x", bits=32),)
    engine: Scan | DigestScan | ReducingScan | ExternalScan | Index
    fan_out: option("children of a distribution tree node", Arity, group=TREES) = 4
    fan_in: option("ports of a merger", Arity, group=TREES) = 4
    architecture: option(
        "an arrangement of your own, or, of a checkout, the joins that SplitJoin is measured "
        "beside: bench.handshake:handshake, bench.handshake:low_latency_handshake. Default: "
        "splitjoin",
        metavar="MODULE:NAME",
        group="cores in another arrangement",
    ) = SPLITJOIN

    def __post_init__(self):
        super().__post_init__()
        check_keys(self.keys)
        given = {name: value for name, value in super().words().items() if value is not None}
        object.__setattr__(self, "_given", given)
        object.__setattr__(self, "engine", self.engine.completed(self))
        self.engine.check(self)
        if self.has_gates:
            gates = self.engine.gates.completed(self.longest_silence)
            object.__setattr__(self, "engine", replace(self.engine, gates=gates))
        self.arrangement.check(self)

    @classmethod
    def of(cls, **words):
        """Return the tree that words describe; parts without a word are the usual ones.

        Parameters
        ----------
        **words
            Numbers of parts by their names, and what chooses their kinds: ``comparator``
            (``"band"``, ``"equality"`` or ``"custom"``), ``engine`` (``"scan"`` or ``"index"``),
            ``store`` (``"chip"`` or ``"external"``) and ``rounds``.

        Raises
        ------
        ValueError
            If a word is unknown to this version of the kit, or if some contradict one another.
        """
        return cls._of(words, words)

    def with_(self, **changes):
        """Return a copy with other values of some words; what followed from others does so anew."""
        return self._of({**self._given, **changes}, changes)

    @classmethod
    def _of(cls, words, named):
        """Return the tree of ``words``, of which only those that are ``named`` must be of use."""
        require_known(words, {*options_of(cls), *words_of(cls)})
        if "keys" in words:
            words = {**words, "keys": key_fields(words["keys"])}
        found = cls.of_words(words)
        left = {name: words[name] for name in words.keys() - found.words().keys()}
        kept = {name for name in left if name in named or hasattr(found.engine, name)}
        found.engine.require_words({name: left[name] for name in kept})
        return found

    def words(self):
        """Return the words that :meth:`of` takes, as JSON-compatible values."""
        return {**super().words(), "keys": [key.to_dict() for key in self.keys]}

    def to_dict(self):
        """Return the tree as JSON-compatible values."""
        return {**super().to_dict(), "keys": [key.to_dict() for key in self.keys]}

    @classmethod
    def from_dict(cls, values):
        """Return the tree that ``to_dict`` has converted."""
        require_mapping(values, cls.__name__)
        keys = {"keys": key_fields(values["keys"])} if "keys" in values else {}
        return super().from_dict({**values, **keys})

    @property
    def cores(self):
        """Number of join cores."""
        return self.window.cores

    @property
    def timestamp_bits(self):
        """Width of the unsigned timestamp; zero if there are no time-based windows."""
        return self.window.timestamp_bits

    @property
    def predicate(self):
        """The predicate, a :class:`~hdl.predicates.rule.Rule`."""
        return self.engine.predicate

    @property
    def rule(self):
        """The rule that a pass decides by: the predicate, or that of its digests."""
        return self.engine.rule

    @property
    def arrangement(self):
        """The :class:`~hdl.arrangement.Arrangement` of the cores: what differs with it."""
        return arrangement_named(self.architecture)

    @property
    def rings(self):
        """Pattern of the memories of cores that are to stand side by side, or None."""
        return self.arrangement.rings

    @property
    def bounded(self):
        """Key fields that have bounds, which are set at run time."""
        return self.rule.bounded(self)

    @property
    def is_aggregated(self):
        """Whether the matches of each tuple of R leave as one word, a join aggregate."""
        return self.engine.value_bits > 0

    @property
    def regions(self):
        """Number of regions: each core has one per side, or only the left one."""
        return self.cores if self.is_aggregated else 2 * self.cores

    @property
    def comparators(self):
        """Number of comparators of all regions."""
        return self.regions * self.engine.comparators

    @property
    def computes(self):
        """What a report says of the accelerator: its predicate and its comparators."""
        return {"predicate": self.predicate.kind, "comparators": self.comparators}

    @property
    def has_gates(self):
        """Whether every core has a gate, which masks it and notices that it fails."""
        return self.engine.gates is not None

    @property
    def key_bits(self):
        """Bits of all fields of a key together."""
        return sum(key.bits for key in self.keys)

    @cached_property
    def scanned(self):
        """The same accelerator as a pass sees it.

        If there are digests, they are the keys, and they are compared for equality. Those of a band
        are prepared for that (:mod:`hdl.predicates.cells`).
        """
        if self.engine.digest_bits is None:
            return self
        digest = KeyField(name="digest", bits=self.engine.digest_bits, signed=False)
        return self.with_(keys=(digest,), digest_bits=None, comparator="equality")

    @cached_property
    def whole(self):
        """The same accelerator without digests."""
        return self.with_(digest_bits=None)

    @property
    def side_by_side(self):
        """Whether a region takes both tuples of a word at once: one to store, one to probe with."""
        return self.engine.tuples_per_word == 2

    @cached_property
    def lane(self):
        """The same accelerator with one tuple per word.

        It describes what happens to each of two tuples in a word.
        """
        return self.with_(tuples_per_word=1)

    @property
    def capacity(self):
        """Tuples of one side that all cores together can hold."""
        return self.cores * self.window.sub_window

    @property
    def slack(self):
        """Least number of ring slots per region beyond the sub-window."""
        return self.arrangement.slack(self)

    @property
    def longest_silence(self):
        """Cycles after which a working core has shown a result or taken a word.

        It is for a core that owes a star, or that is offered a word, while its results are taken. A
        tuple after a long pause expires a whole time-based window, one key per cycle.
        """
        expired = self.ring_rows * self.engine.lanes if self.timestamp_bits else 0
        return self.engine.most_work(self) + expired + WAY

    @property
    def ring_rows(self):
        """Rows of a region's ring, a power of two; each row holds :attr:`lanes` keys.

        There are rows for the window and the slack, one row for a window that begins inside a row,
        and two rows that let a region notice early that its ring is full. A ring in external memory
        is at least as long as what the chip holds of it.
        """
        held = self.window.sub_window + self.slack
        rows = 1 << ceil_log2(-(-held // self.engine.lanes) + 3)
        return max(rows, self.engine.least_rows(self))

    def require_join(self, what, remedy):
        """Raise nothing, because it is one."""


def key_fields(keys):
    """Return key fields, of which some may be JSON-compatible values, as a tuple."""
    wrong = f"Parameter 'keys' must be a list of key fields, not {keys!r}"
    require(isinstance(keys, Sequence) and not isinstance(keys, str), wrong)
    return tuple(key if isinstance(key, KeyField) else KeyField.from_dict(key) for key in keys)


def check_keys(keys):
    """Check that there are key fields, and that no two fields of a tuple have the same name."""
    require(len(keys) >= 1, "Parameter 'keys' must name at least one field")
    names = [key.name for key in keys]
    require(len(set(names)) == len(names), f"Key field names must differ, not {names!r}")
    require(not {"timestamp"} & set(names), "Key field name 'timestamp' is taken by the timestamp")
