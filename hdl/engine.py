# SPDX-License-Identifier: Apache-2.0
"""What every engine is. The seed leaves the join algorithm of a core open."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

from amaranth import *
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from .memory.axi4 import memory_members
from .parts import FLAG, AtLeast, Part, option, require
from .predicates.rule import Rule
from .words.inputs import control_layout
from .words.prepared import (
    activity_layout,
    ending_layout,
    pointer_layout,
    prepared_layout,
    span_layout,
)
from .words.results import ResultKind, node_result

__all__ = [
    "RESULTS",
    "Gates",
    "OnChip",
    "ResultStreams",
    "Search",
    "at_hand",
    "engine_members",
    "keep_from",
    "require_values",
]

#: Titles of options.
RESULTS, CORES = "results", "failing and idle cores"
#: Bits of a probe index that suit most hosts.
USUAL_PROBE_BITS = 8
#: Why most engines lack numbers that others have.
IS_EXTERNAL = "it is for windows in external memory; set store='external'"
IS_CUSTOM = "a predicate of one's own goes with comparator 'custom', and only with it"

ResultStreams = option(
    "1, or 2 for results of R's and of S's probes on ports of their own", (1, 2), group=RESULTS
)


def engine_members(parameters):
    """Return the members of every engine.

    ``soon`` : Out(1)
        A probe, or the end of a group, can be taken two cycles later. In between, the region
        accepts the word.
    ``occupied`` : Out(1)
        A tuple that is stored now might overwrite a key that a probe still needs; from a register.
    ``idle`` : Out(1)
        No probe of a closed group is still being compared.
    ``prepared`` : In
        The tuple that is stored, or that probes, in this cycle. If ``parameters.side_by_side``, two
        tuples: ``probe`` and ``store``.
    ``store`` : In(1)
        Store the tuple at ``span.head``.
    ``probe`` : In(1)
        Probe with the tuple, which sees ``span``.
    ``span`` : In(span_layout(parameters))
    ``seen`` : In(span_layout(parameters))
        If ``parameters.side_by_side``: the span that the probe sees, instead of ``span``.
    ``second``, ``stop`` : In
        The row after the first row that holds keys of ``span``, and the row after the last such
        row.
    ``close`` : In(1)
        The group ends, with the probe of this cycle if there is one.
    ``ending`` : In(ending_layout(parameters))
        What follows the group that closes. Its ``count`` is ignored.
    ``configure`` : In(1)
        Execute ``control``; only while ``idle``, and with an empty window.
    ``control`` : In(control_layout(parameters))
    ``results`` : Out(stream.Signature(node_result(parameters, 0)))
    ``activity`` : Out(activity_layout(parameters))
    ``m_axi`` : Out(memory_port(parameters))
        The external memory of an engine that has one.
    """
    row = pointer_layout(parameters)["row"].shape
    prepared, paired = prepared_layout(parameters), {}
    if parameters.side_by_side:
        prepared = data.StructLayout({"probe": prepared, "store": prepared})
        paired = {"seen": In(span_layout(parameters))}
    return {
        "soon": Out(1),
        "occupied": Out(1),
        "idle": Out(1),
        "prepared": In(prepared),
        "store": In(1),
        "probe": In(1),
        "span": In(span_layout(parameters)),
        **paired,
        "second": In(row),
        "stop": In(row),
        "close": In(1),
        "ending": In(ending_layout(parameters)),
        "configure": In(1),
        "control": In(control_layout(parameters)),
        "results": Out(stream.Signature(node_result(parameters, 0))),
        "activity": Out(activity_layout(parameters)),
        **memory_members(parameters),
    }


def at_hand(engine):
    """Return the tuple that probes in this cycle, the one that is stored, and the probe's span."""
    prepared = engine.prepared
    if engine.parameters.side_by_side:
        return prepared.probe, prepared.store, engine.seen
    return prepared, prepared, engine.span


def keep_from(m, engine, row, *, crowded=None):
    """Drive ``occupied`` of an engine that must keep its ring from ``row`` on.

    ``row`` has a wrap bit. ``occupied`` follows a store after two cycles, and another store may be
    under way by then. So it rises while two rows are still free. It follows ``row`` after three
    cycles. Until then, the ring merely seems fuller than it is. When the window is emptied, both
    ends jump, but no key has to be kept. It follows ``crowded``, if given, after one cycle: another
    reason for stores to wait.
    """
    head = engine.span.head.row
    oldest, early = (Signal.like(head, reset_less=True, name=name) for name in ("oldest", "early"))
    full = (head - early)[len(head) - 1]
    m.d.sync += [
        oldest.eq(row),
        early.eq(oldest - 2),
        engine.occupied.eq(full if crowded is None else full | crowded),
    ]


@dataclass(frozen=True, kw_only=True)
class Gates(Part):
    """Gates of all cores (:class:`hdl.failures.core_gate.CoreGate`), which notice that one fails.

    Parameters
    ----------
    failure_cycles : int or None
        Cycles without a sign of life after which a core counts as failed, at least
        :attr:`~hdl.parameters.JoinParameters.longest_silence`, which it is by default.
    parity : bool
        Whether the memories of stored tuples have parity bits
        (:class:`hdl.memory.columns.ParityColumn`), so that a core that reads a flipped bit counts
        as failed.
    """

    failure_cycles: option(
        "cycles without a sign of life after which a core has failed; 0: never. Default with "
        "--parity: the least",
        AtLeast(1),
        group=CORES,
    ) = None
    parity: option(
        "check parity bits in the memories of stored tuples; a core that reads a flipped bit "
        "has failed",
        FLAG,
        group=CORES,
    ) = False

    def __post_init__(self):
        require(
            self.failure_cycles != 0,
            "Parameter 'parity' needs gates, which 'failure_cycles' 0 leaves out: a core that reads"
            " a flipped bit counts as failed; leave 'failure_cycles' out",
        )
        super().__post_init__()

    @classmethod
    def is_asked(cls, words):
        return bool(words.get("failure_cycles") or words.get("parity"))

    def completed(self, silence):
        """Return the gates of cores that can show nothing for ``silence`` cycles while they work.

        Raises
        ------
        ValueError
            If a core that works would be taken for one that has failed.
        """
        cycles = silence if self.failure_cycles is None else self.failure_cycles
        require(
            cycles >= silence,
            f"Parameter 'failure_cycles' must be at least {silence}, for so long a core of this"
            f" shape may show nothing while it works, not {cycles}",
        )
        return replace(self, failure_cycles=cycles)


@dataclass(frozen=True, kw_only=True)
class Search(Part, ABC):
    """The engine of all regions: everything that differs with it is here.

    Nothing outside of an engine asks which one it is. Methods take the parameters of the
    accelerator. The defaults are those of an engine that reads the whole window, in memories on the
    chip, and sends pairs.

    Parameters
    ----------
    predicate : Rule
        Which pairs match.
    probes : int
        Probes in a full group. A scan compares all of them with every key that it reads.
    probe_bits : int or None
        Width of a result's probe index. A star comes at least every ``2 ** probe_bits`` probes,
        unless PRECISION 0 asks for no stars; then the index wraps. By default 8, or more if a group
        needs them.
    """

    #: What an engine has that lacks the field of this name.
    store = "chip"
    lanes = 1
    rounds = parity = clock_requests = False
    tuples_per_word = result_streams = 1
    failure_cycles = value_bits = 0
    digest_bits = None
    gates = None
    reasons = {
        **dict.fromkeys(("memory_width", "memory_burst", "memory_latency"), IS_EXTERNAL),
        **dict.fromkeys(("predicate", "where"), IS_CUSTOM),
        "bucket_bits": "only an index has buckets; set engine='index'",
        "digest_bits": "passes compare whole keys",
    }

    #: The component that stands in every region.
    module: ClassVar[type]
    #: Operations of the engine's own that empty both windows.
    restarts = ()
    #: Probes that can be under way besides those of three groups.
    under_way = 0
    #: Whether the key that is stored of a tuple can also be its criterion.
    own_criterion = False
    #: Whether results can come in rounds of stored tuples.
    has_rounds = True
    #: Whether comparators are many, so that they are made of carry chains.
    chains = True
    #: What the register ENGINE says of it.
    number = 0
    #: Whether synthesis may make wide functions of several LUTs.
    wide_luts = False
    #: Whether windows are in memories behind ports.
    has_memory = False
    #: Counter that the rate of the engine follows from.
    counted = "comparisons"
    #: What that rate counts.
    rate = "comparisons"
    #: Kinds of its results, of which the first one is no punctuation, and what those are.
    kinds, emits = ResultKind, "pairs emitted"
    #: What is counted besides, and the activity of a region that each of these counters adds up.
    counters, events = (), {}

    predicate: Rule
    probes: option(
        "probes in a full group; a scan compares all of them with every key", AtLeast(1)
    ) = 1
    probe_bits: option("width of a result's probe index", AtLeast(0), group=RESULTS) = None

    @property
    def rule(self):
        """The rule that a pass decides by: the predicate, or that of its digests."""
        return self.predicate

    def completed(self, parameters):
        """Return the engine with what follows from other parts of the accelerator."""
        bits = ceil_log2(self.probes)
        given = self.probe_bits
        require(
            given is None or bits <= given,
            f"A group of {self.probes} probes needs a probe index of {bits} bits, not {given}",
        )
        return replace(self, probe_bits=max(USUAL_PROBE_BITS, bits) if given is None else given)

    def check(self, parameters):
        """Raise :exc:`ValueError` unless an accelerator can have the engine."""
        self.rule.check(parameters)

    @abstractmethod
    def most_work(self, parameters):
        """Return the cycles until the star of a word, at the most."""

    def operations(self, parameters):
        """Return the operations of the engine's own, with the number of legal indices of each."""
        return {}

    def operands(self, parameters):
        """Return the layouts of the values of these operations."""
        return []

    def beside(self, parameters):
        """Return what is stored of a tuple beside its key."""
        return {}

    def prepared_members(self, parameters):
        """Return what the engine is told of a tuple besides its key and its criterion."""
        return {}

    def preparation(self, parameters):
        """Return the components that find that out, by name."""
        return {}

    def described(self, parameters):
        """Return the engine's own parts of a manifest; a layout stands for its description."""
        return {}

    @property
    def comparators(self):
        """Number of comparators of a region."""
        return self.lanes * self.probes

    def least_rows(self, parameters):
        """Return the least number of rows of a ring."""
        return 1

    def busy_tuples(self, parameters, *, window, precision, cycles):
        """Return how many tuples of both sides keep full windows busy for at least ``cycles``.

        The passes of both sides go on at the same time, each with a row of all lanes per cycle.
        """
        rows = -(-window // (parameters.cores * self.lanes))
        return 2 * precision * -(-cycles // rows)


@dataclass(frozen=True, kw_only=True)
class OnChip(Search):
    """What every engine has whose windows are on the chip and which sends pairs.

    Parameters
    ----------
    gates : Gates or None
        Gates of cores. Without them, the accelerator notices no failure, and no core can be masked.
    clock_requests : bool
        Whether ports tell of every core whether its clock may be stopped, and whether it holds no
        tuple (:class:`hdl.join_core.ClockRequest`).
    result_streams : int
        Number of ports that results leave by: 1, or 2 for a port of each side's probes. With 2,
        each port takes a result word per cycle, and nothing is fixed of the order between them but
        their marks (:mod:`hdl.words.results`).
    """

    gates: Gates | None = None
    clock_requests: option(
        "ports that tell of each core whether its clock may be stopped", FLAG, group=CORES
    ) = False
    result_streams: ResultStreams = 1

    @property
    def parity(self):
        """Whether memories of stored tuples have parity bits."""
        return self.gates is not None and self.gates.parity


def require_values(parameters, what, rules):
    """Raise :exc:`ValueError` unless parameters have the values that something needs.

    Parameters
    ----------
    parameters : JoinParameters
    what : str
        What needs them.
    rules : dict of str to (object, str)
        The value of each of these words, and the reason.
    """
    words = parameters.words()
    for name, (value, reason) in rules.items():
        found = words.get(name, value)
        require(
            found == value,
            f"{what} needs parameter {name!r} to be {value!r}, not {found!r}: {reason}",
        )
