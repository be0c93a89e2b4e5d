# SPDX-License-Identifier: Apache-2.0
"""Parameters of a join accelerator, and the fields of its keys.

A :class:`JoinParameters` determines the generated accelerator completely, and the manifest of a
bundle repeats it. Components take the few values that they need. Top-level components take the
whole object.
"""

from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace

from amaranth.utils import ceil_log2

from .parameter_checks import MEMORY, check_key_field, check_parameters, require
from .predicates.own import own_predicate

__all__ = ["JoinParameters", "KeyField", "low_latency_slack"]


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
        check_key_field(self)


#: Default of ``tag_bits``: a host may send 16 million tuples before it looks at a result.
TAG_BITS = 24
#: Rows of a handshake join's ring beyond the sub-window. Tests and the soak found it to be enough.
HANDSHAKE_SLACK = 14
#: Rows of those on the chip that do not count for the bursts to external memory.
RECENT_MARGIN = 24


def low_latency_slack(cores):
    """Return the ring rows beyond the sub-window that a low-latency handshake join needs.

    With so many, no core ever waits for a word that expires a tuple, in either lane:

    - A tuple enters its lane when the other lane's words before it have been taken where they
      enter. So when it is taken anywhere, the words that expire all tuples beyond one window of its
      side are in the chain, or have passed.
    - Between the core where they enter and one that is ``n`` cores on, there are at most ``4 * n``
      of them: each link holds two words in the register where it begins, and two where it ends. So
      a core has seen at most ``capacity + 4 * (cores - 1)`` tuples of a side that it has not seen
      expire.
    - Their numbers are consecutive, and every ``cores``-th of them is kept here. That makes at most
      ``sub_window + 4 - 4 // cores`` rows.
    - A core takes words while fewer than ``ring_rows - 9`` rows are in use
      (:data:`hdl.baselines.layouts.RING_RESERVE`), and :attr:`JoinParameters.ring_rows` has three
      rows beside the slack.

    Parameters
    ----------
    cores : int
    """
    return 4 - 4 // cores + 9 - 3 + 1


@dataclass(frozen=True, kw_only=True)
class JoinParameters:
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
        (:func:`hdl.comparison.comparator.split_key`), that of a band consists of cell numbers
        (:mod:`hdl.words.cells`).
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
        ``"splitjoin"``, or one of the joins that it is compared with, in which the cores are a
        chain: ``"handshake"`` or ``"low-latency-handshake"`` (:mod:`hdl.baselines`). These scan
        with one comparator per core and side, and their results name tuples by their numbers.
    rounds : bool
        Whether a scan can send the results of a probe in rounds of stored tuples, with a star after
        each round (INNER). It needs a number of lanes that is a power of two.
    tag_bits : int or None
        Width of these numbers, for a chain only; by default :data:`TAG_BITS`.
    failure_cycles : int
        Cycles without a sign of life after which a core counts as failed
        (:class:`hdl.failures.core_gate.CoreGate`), at least :func:`hdl.silence.longest_silence`.
        Zero, the default, leaves out the gates of cores: then the accelerator notices no failure,
        and no core can be masked.
    result_streams : int
        Number of ports that results leave by: 1, or 2 for a port of each side's probes. With 2,
        each port takes a result word per cycle, and nothing is fixed of the order between them but
        their marks (:mod:`hdl.result_ports`). Not for a chain.
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
        tuple (:class:`hdl.clock_request.ClockRequest`).
    value_bits : int
        Width of the signed value that a join aggregate stores beside each key of S. Tuples of R
        only probe, and in place of its pairs, each leaves count, sum, least and greatest of the
        values that it matches (:mod:`hdl.join_aggregate`). Zero, the default, is a join. Only for a
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
    architecture: str = "splitjoin"
    tag_bits: int | None = None
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
    def is_chain(self):
        """Whether the cores are a chain through which tuples flow, as in a handshake join."""
        return self.architecture != "splitjoin"

    @property
    def is_aggregated(self):
        """Whether the matches of each tuple of R leave as one word, a join aggregate."""
        return self.value_bits > 0

    @property
    def regions(self):
        """Number of regions: each core has one per side, or only the left one."""
        return self.cores if self.is_aggregated else 2 * self.cores

    @property
    def is_external(self):
        """Whether keys are in external memory."""
        return self.store == "external"

    @property
    def has_gates(self):
        """Whether every core has a gate, which masks it and notices that it fails."""
        return self.failure_cycles > 0

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
        """The same accelerator as a pass sees it.

        If there are digests, they are the keys, and they are compared for equality. Those of a band
        are prepared for that (:mod:`hdl.words.cells`).
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
        """Least number of ring slots per region beyond the sub-window.

        They let tuples be stored while probes wait for their group to fill: the span of the group
        must survive these stores. Slots for three groups keep both regions of a core busy. A probe
        of an index is under way for longer than it takes to send the next one, so an index has more
        slots. A chain has rows for tuples whose expiry is still on its way
        (:func:`low_latency_slack`).
        """
        if self.architecture == "low-latency-handshake":
            return low_latency_slack(self.cores)
        if self.is_chain:
            return HANDSHAKE_SLACK
        under_way = 32 if self.engine == "index" else 0
        return -(-(3 * self.probes + under_way) // self.cores) + 1

    @property
    def ring_rows(self):
        """Rows of a region's ring, a power of two; each row holds :attr:`lanes` keys.

        There are rows for the window and the slack, one row for a window that begins inside a row,
        and two rows that let a region notice early that its ring is full. A ring in external memory
        is at least as long as what the chip holds of it.
        """
        rows = 1 << ceil_log2(-(-(self.sub_window + self.slack) // self.lanes) + 3)
        return max(rows, self.recent_rows) if self.is_external else rows

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

        Those of chains are there for a chain only, ``rounds`` only if there are any,
        ``failure_cycles`` if cores have gates, ``parity`` if there is any, ``store`` and those of
        the memory if it is external, ``clock_requests`` if there are such ports,
        ``result_streams`` if there are two, ``value_bits`` for a join aggregate, and ``where`` if
        a predicate says in a text what it means.
        """
        values = asdict(self)
        if not self.rounds:
            del values["rounds"]
        if not self.has_gates:
            del values["failure_cycles"]
        if self.result_streams == 1:
            del values["result_streams"]
        if not self.parity:
            del values["parity"]
        if not self.clock_requests:
            del values["clock_requests"]
        if not self.is_aggregated:
            del values["value_bits"]
        if not self.is_external:
            for name in MEMORY:
                del values[name]
        if not self.is_chain:
            del values["architecture"], values["tag_bits"]
        if self.predicate is not None:
            with suppress(ValueError):  # its module is not here
                values["where"] = own_predicate(self).where
        if values["where"] is None:
            del values["where"]
        return values

    @classmethod
    def from_dict(cls, values):
        """Return the parameters that :meth:`to_dict` has converted.

        Raises
        ------
        ValueError
            If a parameter is unknown to this version of the kit, or if some contradict one another.
        """
        unknown = sorted(values.keys() - {field.name for field in fields(cls)})
        require(not unknown, f"This version of the kit has no parameters {unknown!r}")
        keys = tuple(KeyField(**key) for key in values["keys"])
        return cls(**{**values, "keys": keys})

    def with_(self, **changes):
        """Return a copy with ``changes``, validated again."""
        return replace(self, **changes)
