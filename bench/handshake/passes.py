# SPDX-License-Identifier: Apache-2.0
"""Passes of a core over its window: preparation, rows and their comparison."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.ingress.preparation import ProbePreparation, unsigned_key
from hdl.predicates.rule import Comparator
from hdl.streams.registers import delayed
from hdl.words.inputs import InputKind, bounds_layout, control_layout
from hdl.words.prepared import criterion_layout, stored_layout

from .layouts import pass_layout, place_shape

__all__ = ["PassPreparation", "PassRows", "compare_row"]


class PassPreparation(wiring.Component):
    """Prepare the criterion of a tuple, and hand it to a segment together with its pass.

    A band takes the stages that it takes SplitJoin once, at the root; here every core has them for
    each side, as a ring holds keys only. For other comparators the key is the criterion.

    Latency: :attr:`latency` cycles. Throughput: 1 pass per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.
    side : int
        Of the tuples: 0 for R, 1 for S.

    Members
    -------
    push : In(1)
    pass_, key : In
    bound : In(1)
        Set those of ``bounds`` that are one to ``value``.
    bounds, value : In
    pushed : Out(1)
    prepared, criterion : Out
    """

    def __init__(self, parameters, *, side):
        self.parameters = parameters
        self.side = side
        self._is_band = bool(parameters.bounded)
        self._preparation = ProbePreparation(parameters) if self._is_band else None
        self.latency = self._preparation.latency if self._is_band else 1
        super().__init__(
            {
                "push": In(1),
                "pass_": In(pass_layout(parameters)),
                "key": In(stored_layout(parameters)),
                "bound": In(1),
                "bounds": In(bounds_layout(parameters)),
                "value": In(control_layout(parameters)["value"].shape),
                "pushed": Out(1),
                "prepared": Out(pass_layout(parameters)),
                "criterion": Out(criterion_layout(parameters)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        values = {"push": self.push, "pass": Value.cast(self.pass_)}
        if not self._is_band:
            values["key"] = Value.cast(self.key)
        for stage in range(self.latency):
            values = delayed(m, values, f"stage_{stage}", flags=("push",))
        m.d.comb += [
            self.pushed.eq(values["push"]),
            Value.cast(self.prepared).eq(values["pass"]),
        ]
        if self._is_band:
            self.elaborate_preparation(m)
        else:
            m.d.comb += Value.cast(self.criterion).eq(values["key"])
        return m

    def elaborate_preparation(self, m):
        """Send the key, or a bound, through the stages of a probe."""
        m.submodules.preparation = preparation = self._preparation
        scheduled = preparation.i.payload
        word = scheduled.word
        m.d.comb += [
            preparation.i.valid.eq(self.push | self.bound),
            self.criterion.eq(preparation.o.payload.body.tuple.criterion),
        ]
        with m.If(self.bound):
            m.d.comb += [
                word.kind.eq(InputKind.CONTROL),
                word.body.control.value.eq(self.value),
                scheduled.bounds.eq(self.bounds),
            ]
        with m.Else():
            m.d.comb += word.kind.eq(InputKind.S if self.side else InputKind.R)
            for field in self.parameters.keys:
                # A key is stored without its sign; taken away twice, it is there again.
                m.d.comb += Value.cast(word.body.tuple.key[field.name]).eq(
                    unsigned_key(field, self.key[field.name])
                )


class PassRows(wiring.Component):
    """Count the rows of each pass, then the tuples that it meets on their way.

    A pass is taken from the queue while the last row of the one before it has its turn, so passes
    follow each other without an idle cycle.

    Latency: 1 cycle from ``filled`` to the first row's turn. Throughput: 1 row per cycle with
    ``room``.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.
    stride, limited, meets
        See :class:`bench.handshake.segment.Segment`.

    Members
    -------
    filled : In(1)
        A pass waits.
    pass_ : In
    take : Out(1)
        It begins in the next cycle.
    room : In(1)
        A row may be read.
    running, step, begin : Out(1)
        A pass is under way; its row has its turn; it is the first one.
    row : Out
    real : Out(1)
        There is a tuple in it: a pass over nothing has one row without any.
    mark : Out(1)
        The row stands for a mark.
    tag : Out
        Number of the tuple in the row.
    limit : Out
        Only if ``limited``.
    meeting : Out(1)
        It is none of the ring but one that is met; in the cycle of ``step``, with ``meets`` only.
    tail, met_tail : In
        What a pass of a later tuple needs first.
    kept, met_kept : Out
        What is needed first, out of a register.
    """

    def __init__(self, parameters, *, stride=1, limited=False, meets=0):
        self.parameters = parameters
        self.stride = stride
        self.limited = limited
        self.meets = meets
        self.latency = 1
        tag, place = unsigned(parameters.arrangement.ordinal_bits), place_shape(parameters)
        super().__init__(
            {
                "filled": In(1),
                "pass_": In(pass_layout(parameters, limited=limited, meets=meets)),
                "take": Out(1),
                "room": In(1),
                "running": Out(1),
                "step": Out(1),
                "begin": Out(1),
                "row": Out(place),
                "real": Out(1),
                "mark": Out(1),
                "tag": Out(tag),
                "tail": In(place),
                "kept": Out(place),
                **({"limit": Out(tag)} if limited else {}),
                **({"meeting": Out(1), "met_tail": In(tag), "met_kept": Out(tag)} if meets else {}),
            }
        )

    def of_row(self):
        """Return what belongs to the row whose turn it is, by name."""
        names = ["real", "mark", "tag"]
        names += ["limit"] * self.limited + ["meeting"] * (self.meets > 0)
        return {name: getattr(self, name) for name in names}

    def elaborate(self, platform):
        m = Module()
        # Of the pass under way; it counts down the rows that are left, this one among them.
        now = Signal(self.pass_.shape(), reset_less=True)
        fresh = Signal(reset_less=True)
        started = Signal(place_shape(self.parameters), reset_less=True)
        ring = now.rows.any()
        last = ~now.rows[1:].any()
        if self.meets:
            last &= ~now.met[1:].any() & ~(now.rows[0] & now.met[0])
        m.d.comb += [
            self.step.eq(self.running & self.room),
            self.begin.eq(self.step & fresh),
            self.take.eq(self.filled & (~self.running | (self.step & last))),
            self.row.eq(now.first),
            self.real.eq(ring | now.met.any() if self.meets else ring),
            self.mark.eq(now.mark),
            self.tag.eq(now.oldest),
        ]
        if self.limited:
            m.d.comb += self.limit.eq(now.limit)
        with m.If(self.step):
            m.d.sync += [fresh.eq(0), now.first.eq(now.first + 1)]
            self.elaborate_step(m, now, ring)
            with m.If(last):
                m.d.sync += self.running.eq(0)
        with m.If(self.take):
            m.d.sync += [self.running.eq(1), fresh.eq(1), now.eq(self.pass_)]
            m.d.sync += started.eq(self.pass_.first)
            if self.meets:  # a pass that has no rows begins with those that it meets
                with m.If(~self.pass_.rows.any()):
                    m.d.sync += now.oldest.eq(self.pass_.met_first)
        self.elaborate_kept(m, started)
        return m

    def elaborate_step(self, m, now, ring):
        """Go on to the next row, or to the next tuple that is met."""
        if not self.meets:
            m.d.sync += [now.rows.eq(now.rows - 1), now.oldest.eq(now.oldest + self.stride)]
            return
        m.d.comb += self.meeting.eq(~ring)
        with m.If(ring):
            m.d.sync += [now.rows.eq(now.rows - 1), now.oldest.eq(now.oldest + self.stride)]
            with m.If(now.rows == 1):
                m.d.sync += now.oldest.eq(now.met_first)
        with m.Else():
            m.d.sync += [now.met.eq(now.met - 1), now.oldest.eq(now.oldest + 1)]

    def elaborate_kept(self, m, started):
        """Say what passes that are under way or wait need first, or a later one will."""
        waiting = Mux(self.filled, self.pass_.first, self.tail)
        m.d.sync += self.kept.eq(Mux(self.running, started, waiting))
        if self.meets:
            met = Signal.like(self.met_tail, name="met_started", reset_less=True)
            with m.If(self.take):
                m.d.sync += met.eq(self.pass_.met_first)
            waiting = Mux(self.filled, self.pass_.met_first, self.met_tail)
            m.d.sync += self.met_kept.eq(Mux(self.running, met, waiting))


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
