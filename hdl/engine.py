# SPDX-License-Identifier: Apache-2.0
"""What every engine is. The seed leaves the join algorithm of a core open."""

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from .memory.axi4 import memory_members
from .words.inputs import control_layout
from .words.prepared import (
    activity_layout,
    ending_layout,
    pointer_layout,
    prepared_layout,
    span_layout,
)
from .words.results import ResultKind, node_result

__all__ = ["Engine", "at_hand", "engine_members", "keep_from", "require", "require_values"]


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


class Engine(wiring.Component):
    """An engine of a region, and what an accelerator with such engines knows of it beforehand.

    Nothing outside of an engine asks which one it is. Methods of the class take the parameters of
    the accelerator. The defaults are those of an engine that reads the whole window.
    """

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
    #: Parameters that only an accelerator with this engine has.
    own: tuple[str, ...] = ()
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

    @classmethod
    def check(cls, parameters):
        """Raise :exc:`ValueError` unless the engine can have these parameters."""

    @classmethod
    def operations(cls, parameters):
        """Return the operations of the engine's own, with the number of legal indices of each."""
        return {}

    @classmethod
    def operands(cls, parameters):
        """Return the layouts of the values of these operations."""
        return []

    @classmethod
    def beside(cls, parameters):
        """Return what is stored of a tuple beside its key."""
        return {}

    @classmethod
    def prepared_members(cls, parameters):
        """Return what the engine is told of a tuple besides its key and its criterion."""
        return {}

    @classmethod
    def preparation(cls, parameters):
        """Return the components that find that out, by name."""
        return {}

    @classmethod
    def described(cls, parameters):
        """Return the engine's own parts of a manifest; a layout stands for its description."""
        return {}

    @classmethod
    def comparators(cls, parameters):
        """Return the number of comparators of a region."""
        return parameters.lanes * parameters.probes

    @classmethod
    def least_rows(cls, parameters):
        """Return the least number of rows of a ring."""
        return 1

    @classmethod
    def busy_tuples(cls, parameters, *, window, precision, cycles):
        """Return how many tuples of both sides keep full windows busy for at least ``cycles``.

        The passes of both sides go on at the same time, each with a row of all lanes per cycle.
        """
        rows = -(-window // (parameters.cores * parameters.lanes))
        return 2 * precision * -(-cycles // rows)


def require(condition, message):
    """Raise :exc:`ValueError` with ``message`` unless ``condition`` holds."""
    if not condition:
        raise ValueError(message)


def require_values(parameters, what, rules):
    """Raise :exc:`ValueError` unless parameters have the values that something needs.

    Parameters
    ----------
    parameters : JoinParameters
    what : str
        What needs them.
    rules : dict of str to (object, str)
        The value of each of these parameters, and the reason.
    """
    for name, (value, reason) in rules.items():
        found = getattr(parameters, name)
        require(
            found == value,
            f"{what} needs parameter {name!r} to be {value!r}, not {found!r}: {reason}",
        )
