# SPDX-License-Identifier: Apache-2.0
"""The root of the distribution tree: checks the order of time, closes groups, places stars."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from .layouts import Control, InputKind, input_word, region_word
from .streams import StreamRegister

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
    free : In(1)
        The period is longer than a group.
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
        limit = self.parameters.cores * self.parameters.slack
        grouped = Signal(range(self.parameters.probes + 1))  # probes in the open group
        passed = Signal(range(limit + 1))  # tuples of the other side since it began
        left = Signal(self.parameters.probe_bits + 1, init=1)  # probes to the next star
        unstarred = Signal()  # there were probes since the last star

        due = Signal()
        m.d.comb += due.eq(left == 1)
        with m.If(self.finish):
            m.d.comb += [self.close.eq(1), self.star.eq(unstarred)]
        with m.Elif(self.probe):
            m.d.comb += [
                self.close.eq(due | (grouped + 1 == self.parameters.probes)),
                self.star.eq(due | (self.close & ~self.free)),
            ]
        with m.Elif(self.other):
            m.d.comb += [
                self.close.eq((grouped != 0) & (passed + 1 == limit)),
                self.star.eq(self.close & ~self.free),
            ]

        with m.If(self.advance):
            with m.If(self.star | self.finish):
                m.d.sync += [left.eq(self.period), unstarred.eq(0)]
            with m.Elif(self.probe):
                m.d.sync += [left.eq(left - 1), unstarred.eq(1)]
            with m.If(self.close):
                m.d.sync += [grouped.eq(0), passed.eq(0)]
            with m.Elif(self.probe):
                m.d.sync += grouped.eq(grouped + 1)
            with m.Elif(self.other & (grouped != 0)):
                m.d.sync += passed.eq(passed + 1)
        return m


class Ingress(wiring.Component):
    """Annotate every input word with what all regions must agree on.

    Groups are closed here, once, so that every region closes the same ones. The sides whose group
    ends with a star are sent to the combiner through ``order``, in the order in which they closed.
    A tuple whose timestamp is below its predecessor's raises ``disorder``; it and all tuples after
    it are dropped until CLEAR, while control words still pass, carrying the error.

    Latency: 2 cycles. Throughput: 1 word per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.

    Members
    -------
    i : In(stream.Signature(input_word(parameters)))
    o : Out(stream.Signature(region_word(parameters)))
    order : Out(stream.Signature(2))
        Sides (bit 0 for R, bit 1 for S; R first) that get their next star.
    accepted : Out(2)
        A tuple of side R (bit 0) or S (bit 1) was sent on.
    disorder : Out(1)
        Time went backwards since the last CLEAR.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 2
        super().__init__(
            {
                "i": In(stream.Signature(input_word(parameters))),
                "o": Out(stream.Signature(region_word(parameters))),
                "order": Out(stream.Signature(2)),
                "accepted": Out(2),
                "disorder": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.input = input_register = StreamRegister(input_word(self.parameters))
        m.submodules.output = output_register = StreamRegister(region_word(self.parameters))
        connect(m, flipped(self.i), input_register.i)
        connect(m, output_register.o, flipped(self.o))

        words, output = input_register.o, output_register.i
        kind = words.payload.kind
        control = words.payload.body.control
        is_control = words.valid & (kind == InputKind.CONTROL)
        is_side = [words.valid & (kind == side) for side in (InputKind.R, InputKind.S)]
        drop = self.elaborate_time(m, words)
        advance = Signal()
        m.d.comb += [
            words.ready.eq(output.ready & self.order.ready),
            advance.eq(words.valid & words.ready & ~drop),
            output.valid.eq(words.valid & self.order.ready & ~drop),
            output.payload.word.eq(words.payload),
            output.payload.disorder.eq(self.disorder),
            *(self.accepted[n].eq(advance & is_side[n]) for n in range(2)),
        ]
        self.elaborate_groups(m, output, is_side, is_control & ends_groups(control), advance)
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
        free = Signal()

        set_precision = finish & (control.op == Control.PRECISION)
        next_period = Signal.like(period, init=0)
        next_free = Signal()
        m.d.comb += [
            next_period.eq(
                Mux((control.value <= 0) | (control.value > longest), longest, control.value)
            ),
            next_free.eq(next_period > self.parameters.probes),
            output.payload.free.eq(Mux(set_precision, next_free, free)),
        ]
        with m.If(advance & set_precision):
            m.d.sync += [period.eq(next_period), free.eq(next_free)]

        for side in range(2):
            m.submodules[f"schedule_{side}"] = schedule = GroupSchedule(self.parameters)
            m.d.comb += [
                schedule.period.eq(Mux(set_precision, next_period, period)),
                schedule.free.eq(free),
                schedule.probe.eq(is_side[side]),
                schedule.other.eq(is_side[1 - side]),
                schedule.finish.eq(finish),
                schedule.advance.eq(advance),
                output.payload.close[side].eq(schedule.close),
                output.payload.star[side].eq(schedule.star),
            ]
        m.d.comb += [
            self.order.payload.eq(output.payload.star),
            self.order.valid.eq(advance & ~free & output.payload.star.any()),
        ]


def ends_groups(control):
    """Does this control word close the groups of both sides?"""
    return ~control.op.as_value().matches(Control.BOUND_LOW, Control.BOUND_HIGH)
