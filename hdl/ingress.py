# SPDX-License-Identifier: Apache-2.0
"""The root of the distribution tree: checks the order of time, closes groups, places stars."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from .index.cells import CellPreparation
from .layouts import Control, InputKind, input_word, region_word
from .plain_schedule import PlainSchedule
from .preparation import ProbePreparation
from .streams import clocked, stream_stage

__all__ = ["GroupSchedule", "Ingress"]


class GroupSchedule(wiring.Component):
    """When one side's group of probes ends, and when a star follows it (RAP, section 5).

    A group ends with its ``probes``-th probe, with the last probe before a star, or when
    ``cores * slack`` tuples of the other side came since it began: then no region may store more
    of them while the group still waits. While the order of cores matters (not ``free``) every group
    ends with a star.

    Latency: 0 cycles. Throughput: 1 tuple per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.

    Members
    -------
    period : In
        Probes from star to star, at least one; while a control word that ends everything is at
        hand, the period that follows it.
    single : In(1)
        It is one.
    free : In(1)
        The period in force is longer than a group.
    probe : In(1)
        A probe of this side is at hand.
    other : In(1)
        A tuple of the other side is at hand.
    finish : In(1)
        A control word that ends everything is at hand.
    close, star : Out(1)
        The group ends with the word at hand; … and is followed by a star.
    advance : In(1)
        The word at hand is taken.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 0
        super().__init__(
            {
                "period": In(parameters.probe_bits + 1),
                "single": In(1),
                "free": In(1),
                "probe": In(1),
                "other": In(1),
                "finish": In(1),
                "close": Out(1),
                "star": Out(1),
                "advance": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        probes = self.parameters.probes
        limit = self.parameters.cores * self.parameters.slack
        # Every counter has a flag that says, from a register, whether it is about to end.
        grouped = Signal(range(probes + 1))  # probes in the open group
        begun = Signal()  # … there are any
        filled = Signal(init=probes == 1)  # … all but one
        passed = Signal(range(limit + 1))  # tuples of the other side since it began
        exhausted = Signal(init=limit == 1)  # … all but one
        left = Signal(self.parameters.probe_bits + 1, init=1)  # probes to the next star
        due = Signal(init=1)  # … one
        unstarred = Signal()  # there were probes since the last star

        m.d.comb += [
            self.close.eq(
                self.finish | (self.probe & (due | filled)) | (self.other & begun & exhausted)
            ),
            self.star.eq(
                Mux(self.finish, unstarred, (self.probe & due) | (self.close & ~self.free))
            ),
        ]
        with m.If(self.advance):
            with m.If(self.star | self.finish):
                m.d.sync += [left.eq(self.period), due.eq(self.single), unstarred.eq(0)]
            with m.Elif(self.probe):
                m.d.sync += [left.eq(left - 1), due.eq(left == 2), unstarred.eq(1)]
            with m.If(self.close):
                m.d.sync += [
                    Cat(grouped, begun, passed).eq(0),
                    filled.eq(probes == 1),
                    exhausted.eq(limit == 1),
                ]
            with m.Elif(self.probe):
                m.d.sync += [grouped.eq(grouped + 1), begun.eq(1), filled.eq(grouped == probes - 2)]
            with m.Elif(self.other & begun):
                m.d.sync += [passed.eq(passed + 1), exhausted.eq(passed == limit - 2)]
        return m


class Ingress(wiring.Component):
    """Annotate every input word with what all regions must agree on.

    Groups are closed here, once, so that every region closes the same ones. The sides whose group
    ends with a star are told to the :class:`hdl.order_queue.OrderQueue` of the combiner, in the
    order in which they closed.
    A tuple whose timestamp is below its predecessor's raises ``disorder``; it and all tuples after
    it are dropped until CLEAR, while control words still pass, carrying the error. Tuples leave
    prepared for the comparison (:class:`hdl.preparation.ProbePreparation`) and, with an index, for
    looking up buckets (:class:`hdl.index.cells.CellPreparation`).

    Latency: :attr:`latency` cycles: 4, and those of the latter; 1 if not ``pipelined``. Throughput:
    1 tuple per cycle; a control word takes 2, and 1 if not ``pipelined``.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.

    Members
    -------
    i : In(stream.Signature(input_word(parameters)))
    o : Out(stream.Signature(region_word(parameters)))
    closing : Out(1)
        The sides in ``closing_sides`` get their next star; from a register, if ``pipelined``.
    closing_sides : Out(2)
        Bit 0 for R, bit 1 for S; if both, R comes first.
    room : In(1)
        There is room for as many ``closing`` as may be in flight.
    accepted : Out(2)
        A tuple of side R (bit 0) or S (bit 1) was sent on in the cycle before; in this one, if not
        ``pipelined``.
    disorder : Out(1)
        Time went backwards since the last CLEAR.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self._preparation = ProbePreparation(parameters)
        self._cells = CellPreparation(parameters) if parameters.engine == "index" else None
        self.latency = parameters.pipelined + self._preparation.latency
        self.latency += self._cells.latency if self._cells else 0
        super().__init__(
            {
                "i": In(stream.Signature(input_word(parameters))),
                "o": Out(stream.Signature(region_word(parameters))),
                "closing": Out(1),
                "closing_sides": Out(2),
                "room": In(1),
                "accepted": Out(2),
                "disorder": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.input = register = stream_stage(
            input_word(self.parameters),
            pipelined=self.parameters.pipelined,
            early=["kind", "body"],
        )
        m.submodules.preparation = preparation = self._preparation
        connect(m, flipped(self.i), register.i)
        if self._cells:
            m.submodules.cells = cells = self._cells
            connect(m, preparation.o, cells.i)
            connect(m, cells.o, flipped(self.o))
        else:
            connect(m, preparation.o, flipped(self.o))

        words, output = register.o, preparation.i
        kind = words.payload.kind
        control = words.payload.body.control
        is_control = words.valid & (kind == InputKind.CONTROL)
        is_side = [words.valid & (kind == side) for side in (InputKind.R, InputKind.S)]
        drop = self.elaborate_time(m, words)
        settled = Const(1)  # what a control word at hand asks for is known
        advance = Signal()
        if self.parameters.pipelined:
            seen = Signal()  # the word at hand has been there for a cycle
            settled = ~is_control | seen
            m.d.sync += seen.eq(words.valid & ~words.ready)
        m.d.comb += [
            words.ready.eq(output.ready & self.room & settled),
            advance.eq(words.valid & words.ready & ~drop),
            output.valid.eq(words.valid & self.room & settled & ~drop),
            output.payload.word.eq(words.payload),
            output.payload.disorder.eq(self.disorder),
        ]
        stage = clocked(m, pipelined=self.parameters.pipelined)
        stage += [self.accepted[n].eq(advance & is_side[n]) for n in range(2)]
        finish = is_control & ends_groups(control)
        self.elaborate_groups(m, output, is_side, finish, advance)
        with m.If(advance & is_control & (control.op == Control.CLEAR)):
            m.d.sync += self.disorder.eq(0)
        return m

    def elaborate_time(self, m, words):
        """Watch the timestamps; return whether the word at hand is dropped."""
        drop = Signal()
        if not self.parameters.timestamp_bits:
            return drop
        newest = Signal(self.parameters.timestamp_bits)
        timestamp = words.payload.body.tuple.timestamp
        with m.If(words.payload.kind == InputKind.CONTROL):
            with m.If(words.valid & words.ready & (words.payload.body.control.op == Control.CLEAR)):
                m.d.sync += newest.eq(0)
        with m.Else():
            m.d.comb += drop.eq(self.disorder | (timestamp < newest))
            with m.If(words.valid & words.ready):
                m.d.sync += [newest.eq(timestamp), self.disorder.eq(drop)]
        return drop

    def elaborate_groups(self, m, output, is_side, finish, advance):
        """Decide which groups the word at hand closes, and tell the combiner."""
        bits = self.parameters.probe_bits
        control = output.payload.word.body.control
        longest = 1 << bits
        period = Signal(bits + 1, init=1)
        single = Signal(init=1)
        free = Signal()
        set_precision = finish & (control.op == Control.PRECISION)

        # What a control word at hand asks for, from a register: so control words take 2 cycles.
        wanted = Signal(bits + 1)
        pipelined = self.parameters.pipelined
        stage = clocked(m, pipelined=pipelined)
        stage += wanted.eq(
            Mux((control.value <= 0) | (control.value > longest), longest, control.value)
        )
        next_period = Mux(set_precision, wanted, period)
        next_single = Mux(set_precision, wanted == 1, single)
        next_free = Mux(set_precision, wanted > self.parameters.probes, free)
        if not pipelined:
            next_free = next_period > self.parameters.probes
            m.d.comb += free.eq(period > self.parameters.probes)
        m.d.comb += output.payload.free.eq(next_free)
        with m.If(advance):
            m.d.sync += period.eq(next_period)
            if pipelined:
                m.d.sync += [single.eq(next_single), free.eq(next_free)]

        for side in range(2):
            kind = GroupSchedule if pipelined else PlainSchedule
            m.submodules[f"schedule_{side}"] = schedule = kind(self.parameters)
            m.d.comb += schedule.period.eq(next_period if pipelined else period)
            if pipelined:
                m.d.comb += schedule.single.eq(next_single)
            m.d.comb += [
                schedule.free.eq(free),
                schedule.probe.eq(is_side[side]),
                schedule.other.eq(is_side[1 - side]),
                schedule.finish.eq(finish),
                schedule.advance.eq(advance),
                output.payload.close[side].eq(schedule.close),
                output.payload.star[side].eq(schedule.star),
            ]
        stage += [
            self.closing_sides.eq(output.payload.star),
            self.closing.eq(advance & ~free & output.payload.star.any()),
        ]


def ends_groups(control):
    """Does this control word close the groups of both sides?"""
    return ~control.op.as_value().matches(Control.BOUND_LOW, Control.BOUND_HIGH)
