# SPDX-License-Identifier: Apache-2.0
"""The comparison of a row of a segment, or of a tuple that is met, with the tuple that passes."""

from amaranth import *

from hdl.comparison.comparator import Comparator
from hdl.streams.delay import delayed
from hdl.words.prepared import criterion_layout

__all__ = ["compare_row"]


def compare_row(m, segment, stages, key, passing):
    """Compare the row that was read; return what belongs to it a cycle later, and its match.

    Parameters
    ----------
    m : Module
        Module of the segment. The comparator becomes its submodule ``comparator``.
    segment : Segment
    stages : list of dict of str to Value
        What belongs to the row in each cycle from its turn on, the last one beside ``key``.
    key : Value
        What was read.
    passing : dict of str to Signal
        What belongs to the tuple that passes.

    Returns
    -------
    dict of str to Signal, Value
    """
    row = stages[-1]
    counts = row["real"]
    if segment.limited:
        inside = Signal(reset_less=True)
        m.d.sync += inside.eq((stages[1]["tag"] - stages[1]["limit"])[: len(segment.pass_.tag)][-1])
        counts = row["real"] & inside
    row = {**row, "counts": counts, "passing": passing["tag"]}
    criterion = passing["criterion"]
    if segment.meets:
        row, key, criterion = meet(m, segment, row, key, passing, inside)
    m.submodules.comparator = comparator = Comparator(segment.parameters, probe_side=segment.side)
    m.d.comb += Value.cast(comparator.key).eq(key)
    offset = 0
    for name, field in criterion_layout(segment.parameters):
        m.d.comb += Value.cast(getattr(comparator.criterion, name)).eq(
            criterion[offset : offset + field.width]
        )
        offset += field.width
    compared = {name: row[name] for name in ("step", "mark", "counts", "tag", "passing")}
    return delayed(m, compared, "compared", flags=("step",)), comparator.match


def meet(m, segment, row, key, passing, inside):
    """Put the key of a tuple that is met in the place of what was read from the ring.

    It counts if nobody else compares the two: if the one that came first has not reached its core
    when the other one passes there. One that came later also has to be in time.
    """
    tag = segment.pass_.tag
    m.d.comb += segment.met_place.eq(row["tag"])
    late = (passing["tag"] - segment.met_oldest)[: len(tag)][-1]  # the one that passes expired
    counts = Mux(inside, segment.met_homeless, passing["homeless"] & ~late)
    later = {
        **{name: row[name] for name in ("step", "mark", "tag", "passing")},
        "counts": row["real"] & Mux(row["meeting"], counts, inside),
        "key": Mux(row["meeting"], Value.cast(segment.met_key), key),
        "criterion": passing["criterion"],
    }
    later = delayed(m, later, "met", flags=("step",))
    return later, later["key"], later["criterion"]
