# SPDX-License-Identifier: Apache-2.0
"""Parameters of a join accelerator, and the fields of its keys.

A :class:`JoinParameters` determines the generated accelerator completely, and the manifest of a
bundle repeats it. Components take the few values that they need. Top-level components take the
whole object.
"""

from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
import re

from amaranth.utils import ceil_log2

from .arrangement import SPLITJOIN, arrangement_named
from .engine import require
from .external.engine import ExternalEngine
from .parts import COMPARATORS, ENGINES, STORES, engines_named, rule_of
from .predicates.own import own_predicate

__all__ = ["JoinParameters", "KeyField", "Parameters"]

#: Values of parameters that name a kind of part.
CHOICES = {
    "comparator": COMPARATORS, "engine": ENGINES, "store": STORES,
    "tuples_per_word": (1, 2), "result_streams": (1, 2),
    "rounds": (False, True), "parity": (False, True), "clock_requests": (False, True),
}  # fmt: skip
#: Parameters that a manifest leaves out at their defaults.
OPTIONAL = (
    "rounds", "failure_cycles", "result_streams", "parity", "clock_requests", "value_bits", "where",
    "architecture",
)  # fmt: skip
#: Parameters of windows in external memory.
MEMORY = ("store", *ExternalEngine.own)
#: Least values of parameters that are integers.
LEAST = {
    "cores": 1,
    "sub_window": 1,
    "lanes": 1,
    "probes": 1,
    "fan_out": 2,
    "fan_in": 2,
    "probe_bits": 0,
    "failure_cycles": 0,
    "memory_width": 8,
    "memory_burst": 1,
    "memory_latency": 0,
    "value_bits": 0,
}


@dataclass(frozen=True, kw_only=True)
class KeyField:
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
            re.fullmatch(r"[a-z][a-z0-9_]*", self.name),
            f"Key field name must be a lower-case identifier, not {self.name!r}",
        )
        require(
            1 <= self.bits <= 64,
            f"Key field {self.name!r} must have 1 to 64 bits, not {self.bits}",
        )


#: Cycles on the way through the registers of a core.
WAY = 32
#: Rows of those on the chip that do not count for the bursts to external memory.
RECENT_MARGIN = 24


class Parameters(ABC):
    """What the parameters of every accelerator are, a frozen dataclass."""

    #: See :attr:`hdl.arrangement.Arrangement.rings`.
    rings = None

    @classmethod
    def from_dict(cls, values):
        """Return the parameters that ``to_dict`` has converted.

        Raises
        ------
        ValueError
            If a parameter is unknown to this version of the kit, or if some contradict one another.
        """
        unknown = sorted(values.keys() - {field.name for field in fields(cls)})
        require(not unknown, f"This version of the kit has no parameters {unknown!r}")
        return cls(**{**values, **cls.parts_from(values)})

    @classmethod
    @abstractmethod
    def parts_from(cls, values):
        """Return the parameters that are objects, by name, from JSON-compatible values."""

    @abstractmethod
    def require_join(self, what, remedy):
        """Raise :exc:`ValueError` unless the accelerator is a join, which ``what`` is for."""

    def with_(self, **changes):
        """Return a copy with ``changes``, validated again."""
        return replace(self, **changes)


@dataclass(frozen=True, kw_only=True)
class JoinParameters(Parameters):
    """What is fixed when an accelerator is generated. Control words set everything else.

    Parameters
    ----------
    cores : int
        Number of join cores, at least one.
    sub_window : int
        Tuples of one side that a core can hold. The capacity of a window is ``cores * sub_window``.
    keys : tuple of KeyField
        Compared fields, at least one.
    timestamp_bits : int
        Width of the unsigned timestamp. Zero leaves time-based windows out.
    comparator : str
        ``"band"`` (bounds set at run time), ``"equality"`` (all fields equal; smaller) or
        ``"custom"`` (``predicate`` or ``where``).
    predicate : str or None
        ``"module:name"`` of a custom ``predicate(r, s)``, or of a
        :class:`hdl.predicates.own.Predicate`.
    where : str or None
        Text of a predicate of one's own over ``l.field`` of R's tuple and ``r.field`` of S's, such
        as ``"abs(l.x - r.x) <= 3 and l.city != r.city"``.
    engine : str
        ``"scan"`` reads every key of the window, and works with any predicate. ``"index"`` reads
        only the buckets that can hold matches, and needs another comparator than ``"custom"``.
    lanes : int
        Keys that a region reads each cycle; one for an index.
    probes : int
        Probes in a full group. A scan compares all of them with every key that it reads.
    digest_bits : int or None
        Width of the digest of a key. A pass compares digests, and then compares the whole keys
        whose digests agree. That takes fewer cells and wires. By default, a pass compares whole
        keys. Only for a scan. The digest of an equality is a remainder
        (:func:`hdl.predicates.equality.split_key`), that of a band consists of cell numbers
        (:mod:`hdl.predicates.cells`).
    bucket_bits : int
        An index has ``2 ** bucket_bits`` buckets. By default, it has as many buckets as a core's
        window has tuples, rounded up to a power of two.
    fan_out : int
        Largest number of children of a distribution tree node (the seed's *b*).
    fan_in : int
        Largest number of ports of a merger (the seed's *c*).
    probe_bits : int
        Width of a result's probe index. A star comes at least every ``2 ** probe_bits`` probes,
        unless PRECISION 0 asks for no stars; then the index wraps.
    tuples_per_word : int
        Largest number of tuples in an input word, and number of results in a result word: 1, or 2
        with an index. With 2, a word can hold one tuple of each side.
    architecture : str
        ``"splitjoin"``, or ``"module:name"`` of an :class:`hdl.arrangement.Arrangement` of one's
        own, as are those of the joins that SplitJoin is compared with.
    rounds : bool
        Whether a scan can send the results of a probe in rounds of stored tuples, with a star after
        each round (INNER). It needs a number of lanes that is a power of two.
    failure_cycles : int
        Cycles without a sign of life after which a core counts as failed
        (:class:`hdl.failures.core_gate.CoreGate`), at least :attr:`longest_silence`.
        Zero, the default, leaves out the gates of cores: then the accelerator notices no failure,
        and no core can be masked.
    result_streams : int
        Number of ports that results leave by: 1, or 2 for a port of each side's probes. With 2,
        each port takes a result word per cycle, and nothing is fixed of the order between them but
        their marks (:mod:`hdl.words.results`).
    store : str
        Where the keys of a scan are: ``"chip"``, or ``"external"`` for a memory that each region
        reaches through an AXI4 port (:mod:`hdl.external`). Timestamps stay on the chip.
    memory_width : int
        Bits of a beat of that memory, as AXI allows them: a power of two from 8 to 1024. A beat
        holds a row, so it has room for ``lanes`` keys.
    memory_burst : int
        Beats of a whole burst, a power of two. A burst has at most 256 beats and 4096 bytes.
    memory_latency : int
        Cycles from the request of a burst to its first beat that must not slow a pass down. So many
        rows can be outstanding.
    parity : bool
        Whether the memories of stored tuples have parity bits
        (:class:`hdl.memory.columns.ParityColumn`), so that a core that reads a flipped bit
        counts as failed. It needs ``failure_cycles``.
    clock_requests : bool
        Whether ports tell of every core whether its clock may be stopped, and whether it holds no
        tuple (:class:`hdl.join_core.ClockRequest`).
    value_bits : int
        Width of the signed value that a join aggregate stores beside each key of S. Tuples of R
        only probe, and in place of its pairs, each leaves count, sum, least and greatest of the
        values that it matches (:mod:`hdl.accelerator`). Zero, the default, is a join. Only for a
        scan of whole keys.
    """

    cores: int = 4
    sub_window: int = 256
    keys: tuple[KeyField, ...] = (KeyField(name="x", bits=32),)
    timestamp_bits: int = 0
    comparator: str = "band"
    predicate: str | None = None
    lanes: int = 1
    probes: int = 1
    fan_out: int = 4
    fan_in: int = 4
    probe_bits: int = 8
    engine: str = "scan"
    bucket_bits: int | None = None
    digest_bits: int | None = None
    tuples_per_word: int = 1
    architecture: str = SPLITJOIN
    rounds: bool = False
    failure_cycles: int = 0
    result_streams: int = 1
    parity: bool = False
    store: str = "chip"
    memory_width: int = 512
    memory_burst: int = 16
    memory_latency: int = 64
    clock_requests: bool = False
    value_bits: int = 0
    where: str | None = None

    def __post_init__(self):
        if self.predicate is not None and self.where is not None:
            # A manifest repeats what the predicate says of itself.
            require(
                self.where == own_predicate(self).where,
                f"Predicate {self.predicate!r} says itself what it means; leave 'where' out",
            )
            object.__setattr__(self, "where", None)
        check_parameters(self)

    @property
    def rule(self):
        """The predicate: everything that differs with the comparator, and with digests."""
        return rule_of(self)

    @property
    def search(self):
        """The engine of a region, a class: everything that differs with engine and store."""
        return engines_named(self)[0]

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
        return self.value_bits > 0

    @property
    def regions(self):
        """Number of regions: each core has one per side, or only the left one."""
        return self.cores if self.is_aggregated else 2 * self.cores

    @property
    def comparators(self):
        """Number of comparators of all regions."""
        return self.regions * self.search.comparators(self)

    @property
    def computes(self):
        """What a report says of the accelerator: its predicate and its comparators."""
        return {"predicate": self.comparator, "comparators": self.comparators}

    @property
    def has_gates(self):
        """Whether every core has a gate, which masks it and notices that it fails."""
        return self.failure_cycles > 0

    @property
    def key_bits(self):
        """Bits of all fields of a key together."""
        return sum(key.bits for key in self.keys)

    @property
    def scanned(self):
        """The same accelerator as a pass sees it.

        If there are digests, they are the keys, and they are compared for equality. Those of a band
        are prepared for that (:mod:`hdl.predicates.cells`).
        """
        if self.digest_bits is None:
            return self
        digest = KeyField(name="digest", bits=self.digest_bits, signed=False)
        return self.with_(keys=(digest,), digest_bits=None, comparator="equality")

    @property
    def whole(self):
        """The same accelerator without digests."""
        return self.with_(digest_bits=None)

    @property
    def side_by_side(self):
        """Whether a region takes both tuples of a word at once: one to store, one to probe with."""
        return self.tuples_per_word == 2

    @property
    def lane(self):
        """The same accelerator with one tuple per word.

        It describes what happens to each of two tuples in a word.
        """
        return self.with_(tuples_per_word=1)

    @property
    def capacity(self):
        """Tuples of one side that all cores together can hold."""
        return self.cores * self.sub_window

    @property
    def bucket_width(self):
        """Bits of a bucket number: ``bucket_bits``, or by default what suits the sub-window."""
        if self.bucket_bits is not None:
            return self.bucket_bits
        return max(1, ceil_log2(self.sub_window))

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
        expired = self.ring_rows * self.lanes if self.timestamp_bits else 0
        return self.search.most_work(self) + expired + WAY

    @property
    def ring_rows(self):
        """Rows of a region's ring, a power of two; each row holds :attr:`lanes` keys.

        There are rows for the window and the slack, one row for a window that begins inside a row,
        and two rows that let a region notice early that its ring is full. A ring in external memory
        is at least as long as what the chip holds of it.
        """
        rows = 1 << ceil_log2(-(-(self.sub_window + self.slack) // self.lanes) + 3)
        return max(rows, self.search.least_rows(self))

    @property
    def recent_rows(self):
        """Rows that the chip holds of a ring in external memory, a power of two.

        There are rows for two bursts, those that are stored while the first one is written, and
        some in which a region notices that stores have to wait
        (:data:`hdl.external.rows.MARGIN`).
        """
        meanwhile = -(-self.memory_latency // self.lanes)
        return 1 << ceil_log2(2 * self.memory_burst + meanwhile + RECENT_MARGIN)

    def to_dict(self):
        """Return the parameters as JSON-compatible values.

        Those of :data:`OPTIONAL` are left out at their defaults, and those of the memory if windows
        are on the chip. ``where`` is there if a predicate says in a text what it means.
        """
        values = asdict(self)
        if self.predicate is not None:
            with suppress(ValueError):  # its module is not here
                values["where"] = own_predicate(self).where
        defaults = {field.name: field.default for field in fields(self)}
        absent = [name for name in OPTIONAL if values[name] == defaults[name]]
        absent += () if self.search.has_memory else MEMORY
        return {name: value for name, value in values.items() if name not in absent}

    @classmethod
    def parts_from(cls, values):
        """Return the key fields."""
        return {"keys": tuple(KeyField(**key) for key in values["keys"])}

    def require_join(self, what, remedy):
        """Raise nothing, because it is one."""


def check_parameters(parameters):
    """Raise :exc:`ValueError` unless an accelerator can have these parameters.

    Parameters
    ----------
    parameters : JoinParameters
    """
    check_numbers(parameters)
    check_keys(parameters.keys)
    check_choices(parameters)
    for engine in engines_named(parameters):
        engine.check(parameters)
    parameters.arrangement.check(parameters)
    if parameters.rounds:
        check_rounds(parameters)
    if parameters.failure_cycles:
        check_failures(parameters)
    require(
        parameters.failure_cycles or not parameters.parity,
        "Parameter 'parity' needs 'failure_cycles', not 0: a core that reads a flipped bit counts"
        " as failed, and only a core with a gate can fail; set 'failure_cycles' to at least"
        f" {parameters.longest_silence}",
    )
    require(
        parameters.probes <= 1 << parameters.probe_bits,
        f"A group of {parameters.probes} probes needs a probe index of"
        f" {ceil_log2(parameters.probes)} bits, not {parameters.probe_bits}",
    )


def check_numbers(parameters):
    """Check the parameters that are numbers, each by itself."""
    for name, least in LEAST.items():
        value = getattr(parameters, name)
        require(
            isinstance(value, int) and value >= least,
            f"Parameter {name!r} must be an integer of at least {least}, not {value!r}",
        )
    require(
        0 <= parameters.timestamp_bits <= 64,
        f"Parameter 'timestamp_bits' must be 0 to 64, not {parameters.timestamp_bits!r}",
    )


def check_keys(keys):
    """Check that there are key fields, and that no two fields of a tuple have the same name."""
    require(len(keys) >= 1, "Parameter 'keys' must name at least one field")
    names = [key.name for key in keys]
    require(len(set(names)) == len(names), f"Key field names must differ, not {names!r}")
    require(not {"timestamp"} & set(names), "Key field name 'timestamp' is taken by the timestamp")


def check_choices(parameters):
    """Check what is one of a few kinds, and the predicate."""
    for name, choices in CHOICES.items():
        value = getattr(parameters, name)
        require(
            value in choices and isinstance(value, type(choices[0])),
            f"Parameter {name!r} must be one of {choices!r}, not {value!r}",
        )
    parameters.rule.check(parameters)
    for name in () if parameters.search.has_memory else ExternalEngine.own:
        default = type(parameters).__dataclass_fields__[name].default
        require(
            getattr(parameters, name) == default,
            f"Parameter {name!r} is for windows in external memory, not for store 'chip'; set"
            " store='external'",
        )


def check_rounds(parameters):
    """Check that the engine can send results in rounds."""
    require(
        parameters.search.has_rounds,
        "Parameter 'rounds' is for a scan: an index meets stored tuples in another order",
    )
    require(
        not parameters.lanes & (parameters.lanes - 1),
        f"Parameter 'rounds' needs 'lanes' to be a power of two, not {parameters.lanes}",
    )


def check_failures(parameters):
    """Check that a core which works is never taken for one that has failed."""
    least = parameters.longest_silence
    require(
        parameters.failure_cycles >= least,
        f"Parameter 'failure_cycles' must be at least {least}, for so long a core of this shape may"
        f" show nothing while it works, not {parameters.failure_cycles}",
    )
