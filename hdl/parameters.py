# SPDX-License-Identifier: Apache-2.0
"""Parameters of one accelerator: a frozen, validated description.

Everything a generated accelerator is, follows from a :class:`JoinParameters`; the manifest of a
bundle repeats it. Components take the few values they need, tops take the whole object.
"""

from dataclasses import asdict, dataclass, fields, replace
import re

from amaranth.utils import ceil_log2

__all__ = ["ARCHITECTURES", "COMPARATORS", "ENGINES", "JoinParameters", "KeyField"]

ARCHITECTURES = ("splitjoin", "handshake", "low-latency-handshake")
COMPARATORS = ("band", "equality", "custom")
ENGINES = ("scan", "index")

#: Default of ``tag_bits``: a host may send 16 million tuples before it looks at a result.
TAG_BITS = 24
#: Rows of a chain's ring beyond the sub-window (:mod:`hdl.baselines.segment`).
CHAIN_SLACK = 14


def require(condition, message):
    """Raise :exc:`ValueError` with ``message`` unless ``condition`` holds."""
    if not condition:
        raise ValueError(message)


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
        Two's complement if true.
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
            1 <= self.bits <= 64, f"Key field {self.name!r} must have 1 to 64 bits, not {self.bits}"
        )


@dataclass(frozen=True, kw_only=True)
class JoinParameters:
    """What is fixed when an accelerator is generated; all else is set by control words.

    Parameters
    ----------
    cores : int
        Number of join cores, at least one, any number.
    sub_window : int
        Tuples of one side that a core can hold. The capacity of a window is ``cores * sub_window``.
    keys : tuple of KeyField
        Compared fields, at least one.
    timestamp_bits : int
        Width of the unsigned timestamp; zero leaves time-based windows out.
    comparator : str
        ``"band"`` (bounds set at run time), ``"equality"`` (all fields equal; smaller) or
        ``"custom"`` (``predicate``).
    predicate : str or None
        ``"module:function"`` of a custom ``predicate(r, s)``.
    engine : str
        ``"scan"`` (every key of the window is read; any predicate) or ``"index"`` (only the buckets
        that can hold matches are; no custom predicate).
    lanes : int
        Keys that a region reads each cycle; one for an index.
    probes : int
        Probes in a full group. A scan compares all of them with every key that it reads.
    digest_bits : int or None
        A pass compares so many bits of a key, its digest (:func:`hdl.comparison.digest.split_key`),
        and those keys in full afterwards whose digests agree. That takes fewer cells and wires.
        Only for the equality of a scan; by default, a pass compares whole keys.
    bucket_bits : int
        An index has ``2 ** bucket_bits`` buckets; by default, one for every tuple of a core's
        window or up to twice as many.
    fan_out : int
        Children of a distribution tree node (the seed's *b*).
    fan_in : int
        Ports of a merger (the seed's *c*).
    probe_bits : int
        Width of a result's probe index; a star comes every ``2 ** probe_bits`` probes at the least.
    tuples_per_word : int
        Tuples that an input word holds at the most, and results that a result word holds: 1, or 2.
        With 2, a word can carry a tuple of each side.
    architecture : str
        ``"splitjoin"``, or one of the joins that it is compared with, in which the cores are a
        chain: ``"handshake"`` or ``"low-latency-handshake"`` (:mod:`hdl.baselines`). These scan
        with one comparator per core and side, and their results name tuples by their numbers.
    tag_bits : int or None
        Width of these numbers, of a chain only; by default :data:`TAG_BITS`.
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
    architecture: str = "splitjoin"
    tag_bits: int | None = None

    def __post_init__(self):
        for name, least in [
            ("cores", 1),
            ("sub_window", 1),
            ("lanes", 1),
            ("probes", 1),
            ("fan_out", 2),
            ("fan_in", 2),
            ("probe_bits", 0),
        ]:
            value = getattr(self, name)
            require(
                isinstance(value, int) and value >= least,
                f"Parameter {name!r} must be an integer of at least {least}, not {value!r}",
            )
        require(
            0 <= self.timestamp_bits <= 64,
            f"Parameter 'timestamp_bits' must be 0 to 64, not {self.timestamp_bits!r}",
        )
        require(
            self.tuples_per_word in (1, 2),
            f"Parameter 'tuples_per_word' must be 1 or 2, not {self.tuples_per_word!r}",
        )
        require(len(self.keys) >= 1, "Parameter 'keys' must name at least one field")
        names = [key.name for key in self.keys]
        require(len(set(names)) == len(names), f"Key field names must differ, not {names!r}")
        require(
            not {"timestamp"} & set(names), "Key field name 'timestamp' is taken by the timestamp"
        )
        require(
            self.comparator in COMPARATORS,
            f"Parameter 'comparator' must be one of {COMPARATORS!r}, not {self.comparator!r}",
        )
        require(
            (self.comparator == "custom") == (self.predicate is not None),
            "Parameter 'predicate' goes with comparator 'custom', and only with it",
        )
        require(
            self.engine in ENGINES,
            f"Parameter 'engine' must be one of {ENGINES!r}, not {self.engine!r}",
        )
        if self.engine == "index":
            self.check_index()
        if self.digest_bits is not None:
            self.check_digest()
        self.check_architecture()
        require(
            self.probes <= 1 << self.probe_bits,
            f"A group of {self.probes} probes needs a probe index of {ceil_log2(self.probes)} bits,"
            f" not {self.probe_bits}",
        )

    def check_index(self):
        """Raise :exc:`ValueError` if no index can be like that."""
        require(
            self.lanes == 1, f"An index reads one entry a cycle: 'lanes' is 1, not {self.lanes}"
        )
        require(
            self.comparator != "custom",
            "An index needs the comparator 'band' or 'equality'; a custom predicate takes a scan",
        )
        require(
            1 <= self.bucket_width <= 24,
            f"Parameter 'bucket_bits' must be 1 to 24, not {self.bucket_width!r}",
        )

    def check_architecture(self):
        """Raise :exc:`ValueError` if there is no such architecture, or not with these parameters.

        Numbers of tuples are compared modulo ``2 ** tag_bits``: all that are under way at once must
        be within half of that.
        """
        require(
            self.architecture in ARCHITECTURES,
            f"Parameter 'architecture' must be one of {ARCHITECTURES!r}, not {self.architecture!r}",
        )
        if not self.is_chain:
            require(self.tag_bits is None, "Parameter 'tag_bits' is for a chain of cores only")
            return
        plain = {"engine": "scan", "lanes": 1, "probes": 1, "digest_bits": None}
        for name, value in {**plain, "tuples_per_word": 1}.items():
            require(
                getattr(self, name) == value,
                f"Architecture {self.architecture!r} needs parameter {name!r} to be {value!r},"
                f" not {getattr(self, name)!r}",
            )
        least = ceil_log2(4 * self.cores * self.ring_rows)
        require(
            least <= self.ordinal_bits <= 32,
            f"Parameter 'tag_bits' must be {least} to 32 for such windows, not {self.tag_bits!r}",
        )

    def check_digest(self):
        """Raise :exc:`ValueError` if no pass can compare digests of that size."""
        require(
            self.engine == "scan" and self.comparator == "equality",
            "Parameter 'digest_bits' is for the comparator 'equality' of a scan, not for"
            f" {self.comparator!r} of engine {self.engine!r}",
        )
        bits = min(24, self.key_bits - 1)
        require(
            isinstance(self.digest_bits, int) and 1 <= self.digest_bits <= bits,
            f"Parameter 'digest_bits' must be 1 to {bits}, fewer than a key has and at most 24,"
            f" not {self.digest_bits!r}",
        )

    @property
    def is_chain(self):
        """Whether the cores are a chain through which tuples flow, as in a handshake join."""
        return self.architecture != "splitjoin"

    @property
    def ordinal_bits(self):
        """Bits of the number of a tuple in the results of a chain."""
        return TAG_BITS if self.tag_bits is None else self.tag_bits

    @property
    def key_bits(self):
        """Bits of all fields of a key together."""
        return sum(key.bits for key in self.keys)

    @property
    def scanned(self):
        """The same accelerator as a pass sees it: where there are digests, they are the keys."""
        if self.digest_bits is None:
            return self
        digest = KeyField(name="digest", bits=self.digest_bits, signed=False)
        return self.with_(keys=(digest,), digest_bits=None)

    @property
    def side_by_side(self):
        """Whether a region takes both tuples of a word at once: stores one, probes with the other.

        An index does. A scan gets them one after the other, as its passes take longer than that.
        """
        return self.tuples_per_word == 2 and self.engine == "index"

    @property
    def lane(self):
        """The same accelerator with one tuple in a word: what becomes of each of two tuples."""
        return self.with_(tuples_per_word=1)

    @property
    def capacity(self):
        """Tuples of one side that all cores together can hold."""
        return self.cores * self.sub_window

    @property
    def bucket_width(self):
        """Bits of a bucket's number: ``bucket_bits``, or what suits the sub-window."""
        if self.bucket_bits is not None:
            return self.bucket_bits
        return max(1, ceil_log2(self.sub_window))

    @property
    def slack(self):
        """Ring slots per region beyond the sub-window that stores may use at the least.

        Stores pass probes that wait for their group to fill; the group's snapshot of the window
        must survive them. Three groups' worth keeps both regions of a core busy; a probe of an
        index is under way for longer than it takes to send the next. A chain has a fixed number of
        rows for tuples whose expiry is still on its way.
        """
        if self.is_chain:
            return CHAIN_SLACK
        under_way = 32 if self.engine == "index" else 0
        return -(-(3 * self.probes + under_way) // self.cores) + 1

    @property
    def ring_rows(self):
        """Rows of a region's ring, a power of two; each row holds :attr:`lanes` keys.

        Besides window and slack, one row for a window that begins inside a row, and two that let a
        region see early that its ring is full.
        """
        return 1 << ceil_log2(-(-(self.sub_window + self.slack) // self.lanes) + 3)

    def to_dict(self):
        """Return the parameters as JSON-compatible values; those of chains only for a chain."""
        values = asdict(self)
        if not self.is_chain:
            del values["architecture"], values["tag_bits"]
        return values

    @classmethod
    def from_dict(cls, values):
        """Inverse of :meth:`to_dict`.

        Raises
        ------
        ValueError
            If there are others than today's parameters, or some that contradict one another.
        """
        unknown = sorted(values.keys() - {field.name for field in fields(cls)})
        require(not unknown, f"Parameters {unknown!r} are none of this kit's")
        keys = tuple(KeyField(**key) for key in values["keys"])
        return cls(**{**values, "keys": keys})

    def with_(self, **changes):
        """Return a copy with ``changes``, validated again."""
        return replace(self, **changes)
