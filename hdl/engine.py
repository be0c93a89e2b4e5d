# SPDX-License-Identifier: Apache-2.0
"""What an engine is to its region: the seed leaves the join algorithm inside a core open."""

from amaranth import *
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from .words.inputs import control_layout
from .words.prepared import prepared_layout
from .words.results import node_result
from .words.spans import activity_layout, ending_layout, pointer_layout, span_layout

__all__ = ["at_hand", "engine_members", "keep_from"]


def engine_members(parameters):
    """Return the members of every engine.

    ``soon`` : Out(1)
        From the next cycle on, a probe, or the end of a group, can be taken in two cycles' time.
    ``occupied`` : Out(1)
        A tuple that is stored now might overwrite one that a probe still needs; from a register.
    ``idle`` : Out(1)
        No closed group has probes that are still compared.
    ``prepared`` : In
        The tuple that is stored, or probes, in this cycle. Where tuples go side by side, one of
        each: ``probe`` and ``store``.
    ``store`` : In(1)
        It belongs at ``span.head``.
    ``probe`` : In(1)
        It is a probe that sees ``span``.
    ``span`` : In(span_layout(parameters))
    ``seen`` : In(span_layout(parameters))
        Where tuples go side by side, the span that the probe sees in place of ``span``.
    ``second``, ``stop`` : In
        The row after the first one of ``span``, and after the last one.
    ``close`` : In(1)
        The group ends, with the probe of this cycle if there is one.
    ``ending`` : In(ending_layout(parameters))
        What follows the group that closes; its ``count`` is ignored.
    ``configure`` : In(1)
        Execute ``control``; only while ``idle``, and with an empty window.
    ``control`` : In(control_layout(parameters))
    ``results`` : Out(stream.Signature(node_result(parameters, 0)))
    ``activity`` : Out(activity_layout(parameters))
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
    }


def at_hand(engine):
    """Return what probes and what is stored in this cycle, and the span that the probe sees."""
    prepared = engine.prepared
    if engine.parameters.side_by_side:
        return prepared.probe, prepared.store, engine.seen
    return prepared, prepared, engine.span


def keep_from(m, engine, row):
    """Drive ``occupied`` of an engine whose ring must be kept from ``row`` on, with wrap bit.

    It takes two cycles from a store, and meanwhile another one may be under way: so two rows early.
    Three from ``row``: while that moves on, the ring seems fuller than it is. When the window is
    emptied both ends jump, and nothing has to be kept.
    """
    head = engine.span.head.row
    oldest, early = (Signal.like(head, reset_less=True, name=name) for name in ("oldest", "early"))
    m.d.sync += [
        oldest.eq(row),
        early.eq(oldest - 2),
        engine.occupied.eq((head - early)[len(head) - 1]),
    ]
