# SPDX-License-Identifier: Apache-2.0
"""What the index engine does with probes that arrive, and with what it is told of its keys."""

from amaranth import *

from hdl.engine import at_hand
from hdl.words.inputs import Control

__all__ = ["keep_distinct", "keep_probes"]


def keep_probes(m, engine, table):
    """Keep the probes of an engine in a :class:`ProbeTable`, with the span that they see."""
    probe = table.probe
    prepared, _, seen = at_hand(engine)
    m.d.comb += [
        table.add.eq(engine.probe),
        probe.criterion.eq(prepared.criterion),
        *(
            probe[name].eq(prepared[name])
            for name in ("bucket", "cells")
            if name in probe.shape().members
        ),
        probe.tail.eq(seen.tail.row),
        probe.size.eq(seen.head.row - seen.tail.row),
        table.tail.eq(engine.span.tail.row),
        table.close.eq(engine.close),
        table.ending.eq(engine.ending),
    ]


def keep_distinct(m, engine, walker):
    """Remember whether the keys that an engine stores are distinct, and tell its walker."""
    distinct = Signal()
    own = (engine.control.op == Control.DISTINCT) & (engine.control.index == 1)
    m.d.comb += walker.distinct.eq(distinct)
    with m.If(engine.configure & own):
        m.d.sync += distinct.eq(engine.control.value[0])
