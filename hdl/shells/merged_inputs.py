# SPDX-License-Identifier: Apache-2.0
"""Several inputs in front of an accelerator: marks of time, and their merge."""

from functools import reduce
from operator import or_

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.ecp5 import is_below
from hdl.families.choice import family_of
from hdl.families.family import is_mark
from hdl.scalegate.gate import COUNTER_BITS, DEADLINE_BITS, ScaleGate
from hdl.scalegate.words import GateKind, gate_word, source_word
from hdl.words.operands import clamped_time
from hdl.words.results import results_of

__all__ = [
    "MARK_BITS",
    "KeptWatermark",
    "MarkWatch",
    "MergedInputs",
    "SourceWords",
    "SpokenWatermarks",
    "WordWatch",
]


class KeptWatermark(wiring.Component):
    """Let a watermark of a source leave a ScaleGate before the barrier behind it.

    A gate says a watermark when no tuple is ready, and drops it if a barrier is faster. So whether
    the words behind the gate get to know the watermark would depend on the timing. A barrier, or a
    LEAVE, that follows a WATERMARK therefore gets a word in front of it: a tuple of time zero whose
    body is a control word. It is late, so the gate sends it at its place in the order, with the
    latest time that the source has shown.

    ``o`` depends on ``i`` in the same cycle.

    Latency: 0 cycles. Throughput: 1 word per cycle, and one cycle more for a barrier or LEAVE
    behind a WATERMARK.

    Parameters
    ----------
    layout : data.StructLayout
        :func:`hdl.scalegate.words.source_word`; the body of a BARRIER or LEAVE is a control word.

    Members
    -------
    i : In(stream.Signature(layout))
    o : Out(stream.Signature(layout))
    """

    def __init__(self, layout):
        self.layout = layout
        self.latency = 0
        super().__init__({"i": In(stream.Signature(layout)), "o": Out(stream.Signature(layout))})

    def elaborate(self, platform):
        m = Module()
        word = self.i.payload
        owed, ends, speaks = Signal(), Signal(), Signal()
        m.d.comb += [
            ends.eq((word.kind == GateKind.BARRIER) | (word.kind == GateKind.LEAVE)),
            speaks.eq(owed & ends),
            self.o.payload.eq(word),
            self.o.valid.eq(self.i.valid),
            self.i.ready.eq(self.o.ready & ~speaks),
        ]
        with m.If(speaks):
            m.d.comb += [self.o.payload.kind.eq(GateKind.TUPLE), self.o.payload.time.eq(0)]
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += owed.eq(word.kind == GateKind.WATERMARK)
        return m


#: Bits of the number of marks that are owed. Far fewer control words fit into an accelerator.
MARK_BITS = 16


class MarkWatch(wiring.Component):
    """Count the marks that are owed at each result port.

    Latency: 1 cycle to ``owed`` and to ``complete``. Throughput: 1 event of each kind per cycle.

    Parameters
    ----------
    ports : int
        Number of result ports.

    Members
    -------
    asked : In(1)
        A control word that is answered with a mark was taken.
    given : In(ports)
        A mark left by this port.
    owed : Out(1)
        Some port owes a mark.
    complete : Out(1)
        High for one cycle when a mark has left by all ports.
    """

    def __init__(self, ports):
        self.ports = ports
        self.latency = 1
        super().__init__({"asked": In(1), "given": In(ports), "owed": Out(1), "complete": Out(1)})

    def elaborate(self, platform):
        m = Module()
        counts = [Signal(MARK_BITS, name=f"owed_{n}") for n in range(self.ports)]
        most = Signal(MARK_BITS)  # marks that are not complete
        rest = [count - self.given[n] for n, count in enumerate(counts)]
        left = reduce(lambda a, b: Mux(a > b, a, b), (value[:MARK_BITS] for value in rest))
        m.d.sync += [
            *(count.eq(value + self.asked) for count, value in zip(counts, rest, strict=True)),
            most.eq(left + self.asked),
            self.complete.eq(left != most),
        ]
        m.d.comb += self.owed.eq(most != 0)
        return m


class WordWatch(wiring.Component):
    """Look at every word that enters or leaves an accelerator.

    Latency: 2 cycles to faults, 3 cycles to ``busy`` and ``mark``. Throughput: 1 word per cycle in
    and one out of every port.

    Parameters
    ----------
    parameters : JoinParameters or AggregateParameters
        Parameters of the accelerator.

    Members
    -------
    i : In(family.input_word)
    enters : In(1)
        The input word is transferred.
    o : In(family.result_word).array(ports)
    leaves : In(ports)
        The result words are transferred.
    busy : Out(1)
        A mark is owed.
    mark : Out(1)
        High for one cycle when a mark has left by all ports.
    faults : Out(len(family.faults))
        High for one cycle when a star or mark tells of a fault.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 2
        self._family = family = family_of(parameters)
        ports = len(family.result_ports)
        super().__init__(
            {
                "i": In(family.input_word),
                "enters": In(1),
                "o": In(family.result_word).array(ports),
                "leaves": In(ports),
                "busy": Out(1),
                "mark": Out(1),
                "faults": Out(len(family.faults)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.marks = marks = MarkWatch(len(self.o))
        family = self._family
        asks = family.is_answered(self.i.body.control)
        m.d.sync += marks.asked.eq(self.enters & family.is_control(self.i) & asks)
        found = []
        for n, word in enumerate(self.o):
            held = Signal(word.shape(), reset_less=True, name=f"result_{n}")
            left = Signal(name=f"left_{n}")
            m.d.sync += [held.eq(word), left.eq(self.leaves[n])]
            m.d.sync += marks.given[n].eq(left & is_mark(held))
            found += [self.faults_of(result, left) for result in results_of(held)]
        m.d.sync += self.faults.eq(reduce(or_, found))
        m.d.comb += [self.busy.eq(marks.owed), self.mark.eq(marks.complete)]
        return m

    def faults_of(self, result, left):
        """Return the faults that a result tells of, if it leaves."""
        kinds, silent = result.kind.shape(), self._family.silent(result)
        speaks = left & ((result.kind == kinds.STAR) | (result.kind == kinds.MARK))
        if silent is not None:
            speaks &= ~silent
        flags = self._family.told_faults(result)
        return flags & speaks.replicate(len(flags))


class SpokenWatermarks(wiring.Component):
    """Turn the words of a ScaleGate into input words of an accelerator that takes watermarks.

    A tuple and a control word go on as they are. What the gate says of watermarks, and what
    :class:`hdl.shells.merged_inputs.KeptWatermark` has put among the tuples, become words that say
    a watermark. In front of a late tuple comes a watermark of its place, so whether the accelerator
    still takes the tuple does not depend on the timing.

    Time is forgotten by the control word that lets the accelerator forget it, and by no other one.
    A tuple is *late* if it is below what has been reached since then, also if a barrier has let the
    gate begin again at zero.

    ``o`` depends on ``i`` in the same cycle.

    Latency: 0 cycles. Throughput: 1 word per cycle; a late tuple takes two.

    Parameters
    ----------
    parameters : AggregateParameters
        Parameters of the accelerator.
    sources : int
        Sources of the gate.

    Members
    -------
    i : In(stream.Signature(gate_word(family.time_bits, family.input_word, sources=sources)))
    o : Out(stream.Signature(family.input_word))
    late : Out(sources)
        A source has sent a late tuple; high for one cycle, from registers.
    """

    def __init__(self, parameters, *, sources):
        self.parameters = parameters
        self.sources = sources
        self.latency = 0
        self._family = family = family_of(parameters)
        layout = gate_word(family.time_bits, family.input_word, sources=sources)
        super().__init__(
            {
                "i": In(stream.Signature(layout)),
                "o": Out(stream.Signature(family.input_word)),
                "late": Out(sources),
            }
        )

    def elaborate(self, platform):
        m = Module()
        family, word, o = self._family, self.i.payload, self.o
        told = Signal()  # the watermark in front of a late tuple has gone on
        is_tuple, speaks, ends = Signal(), Signal(), Signal()
        late_first = Signal()  # a late tuple waits for that watermark
        taken = self.i.valid & self.i.ready
        m.d.comb += [
            is_tuple.eq((word.kind == GateKind.TUPLE) & ~family.is_control(word.body)),
            late_first.eq(is_tuple & word.late & ~told),
            speaks.eq(
                late_first
                | (word.kind == GateKind.WATERMARK)
                | ((word.kind == GateKind.TUPLE) & ~is_tuple)
            ),
            ends.eq(word.kind == GateKind.LEAVE),
            o.valid.eq(self.i.valid & ~ends),
            self.i.ready.eq(ends | (o.ready & ~late_first)),
        ]
        with m.If(speaks):
            m.d.comb += family.say_watermark(o.payload, word.time)
        with m.Else():
            m.d.comb += o.payload.eq(word.body)
        with m.If(o.valid & o.ready):
            m.d.sync += told.eq(late_first)
        self.elaborate_late(m, word, taken, is_tuple)
        return m

    def elaborate_late(self, m, word, taken, is_tuple):
        """Remember what has been reached, and tell of the source of a tuple below it."""
        reached, below = Signal.like(word.time), Signal()
        m.d.comb += below.eq(is_below(m, word.time, reached))
        with m.If(taken):
            with m.Switch(word.kind):
                with m.Case(GateKind.TUPLE, GateKind.WATERMARK):
                    with m.If(~below):
                        m.d.sync += reached.eq(word.time)
                with m.Case(GateKind.BARRIER):
                    with m.If(self._family.forgets_time(word.body.body.control)):
                        m.d.sync += reached.eq(0)
        late = taken & is_tuple & (word.late | below)
        m.d.sync += self.late.eq(
            late.replicate(self.sources) & Cat(word.source == n for n in range(self.sources))
        )


class SourceWords(wiring.Component):
    """Turn the words of an input into words of a source of a ScaleGate.

    A tuple goes on with its timestamp. A control word of the accelerator becomes a barrier, so it
    waits until all other inputs bring the same one. Control words that are meant for the merge are
    orders (:meth:`hdl.families.family.Family.is_order`): a watermark and a departure go on as such,
    and an order to exclude an input, or one that does not exist, ends here. A watermark below all
    times says nothing, and one beyond them stands for the last time.

    ``wrong`` tells of a tuple of another side, of an order that does not exist, and of one to
    exclude an input that does not exist. A tuple of the wrong side goes on all the same.

    ``o`` depends on ``i`` in the same cycle.

    Latency: 0 cycles. Throughput: 1 word per cycle.

    Parameters
    ----------
    parameters : JoinParameters or AggregateParameters
        Parameters of the accelerator, which has timestamps and one tuple in a word.
    sides : sequence of int
        Side whose tuples come at each input (:class:`hdl.families.family.InputNames`).
    number : int
        Number of this input.

    Members
    -------
    i : In(stream.Signature(family.input_word))
    o : Out(stream.Signature(source_word(family.time_bits, family.input_word)))
    exclude : Out(len(sides))
        The inputs that are to be excluded; high for one cycle.
    wrong : Out(1)
        High for one cycle.
    """

    def __init__(self, parameters, *, sides, number):
        self.parameters = parameters
        self.sides = tuple(sides)
        self.number = number
        self.latency = 0
        self._family = family_of(parameters)
        layout = self._family.input_word
        super().__init__(
            {
                "i": In(stream.Signature(layout)),
                "o": Out(stream.Signature(source_word(self._family.time_bits, layout))),
                "exclude": Out(len(self.sides)),
                "wrong": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        family, word, control = self._family, self.i.payload, self.i.payload.body.control
        leaves, names_input = family.leaves(control), family.excludes(control)
        taken = Signal()  # the word ends here
        is_control, is_order, known, excludes = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            is_control.eq(family.is_control(word)),
            is_order.eq(is_control & family.is_order(control)),
            known.eq(family.is_known(control)),
            taken.eq(is_order & (names_input | ~known)),
            self.o.valid.eq(self.i.valid & ~taken),
            self.i.ready.eq(self.o.ready | taken),
            self.o.payload.body.eq(word),
            self.o.payload.time.eq(word.body.tuple.timestamp),
            excludes.eq(self.i.valid & is_order & names_input),
            self.exclude.eq(self.named(control.value) & excludes.replicate(len(self.sides))),
        ]
        with m.If(is_order):
            m.d.comb += [
                self.o.payload.kind.eq(Mux(leaves, GateKind.LEAVE, GateKind.WATERMARK)),
                self.o.payload.time.eq(clamped_time(control.value, self._family.time_bits)),
            ]
        with m.Elif(is_control):
            m.d.comb += self.o.payload.kind.eq(GateKind.BARRIER)
        with m.Else():
            m.d.comb += self.o.payload.kind.eq(GateKind.TUPLE)
        other = ~is_control & (word.kind.as_value() != self.sides[self.number])
        nobody = excludes & ~self.named(control.value).any()
        m.d.comb += self.wrong.eq(
            self.i.valid & self.i.ready & (other | (is_order & ~known) | nobody)
        )
        return m

    def named(self, value):
        """Return a bit for each input, of which the one that ``value`` names is set.

        Of one input for each side, it is the other one, whatever the value.
        """
        if self.sides == (0, 1):
            return C(1 << (1 - self.number), 2)
        return Cat(value == n for n in range(len(self.sides)))


class MergedInputs(wiring.Component):
    """Merge the words of several inputs in front of an accelerator with a ScaleGate.

    A control word of the accelerator comes at all inputs, and goes on once. What the words say to
    the merge is in :class:`hdl.shells.merged_inputs.SourceWords`. An accelerator that takes
    watermarks gets those of the gate (:class:`hdl.shells.merged_inputs.SpokenWatermarks`).

    A reset lasts two cycles at least.

    Latency: that of the gate, 6 cycles with two inputs and 12 with eight; an order to exclude an
    input takes two cycles to the gate. Throughput: 1 word per cycle.

    Parameters
    ----------
    parameters : JoinParameters or AggregateParameters
        Parameters of the accelerator.
    inputs, r_inputs
        See :meth:`hdl.families.family.Family.inputs`; at least two inputs.

    Attributes
    ----------
    sides : tuple of int
        Side whose tuples come at each input: 0 for R, 1 for S; all 0 for an aggregate.

    Members
    -------
    i : In(stream.Signature(family.input_word)).array(inputs)
        Of a join: words of R's inputs, then words of S's inputs.
    o : Out(stream.Signature(family.input_word))
    exclude : In(inputs)
        Exclude these inputs now, if they stall.
    deadline : In(DEADLINE_BITS)
        Stalled cycles after which an input is excluded; zero for never.
    stalls : Out(COUNTER_BITS).array(inputs)
        Cycles in which each input was waited for; they wrap.
    late, excluded : Out(inputs)
        An input has sent a late tuple, was excluded; high for one cycle or more.
    differ : Out(1)
        The inputs brought different control words; high for one cycle or more.
    wrong : Out(1)
        An input brought a tuple of the other side, or an order that does not exist; likewise.
    waits : Out(1)
        Two cycles ago a word was in the merge.
    """

    def __init__(self, parameters, *, inputs=2, r_inputs=None):
        self._family = family = family_of(parameters)
        self.sides = family.inputs(inputs, r_inputs).sides
        if inputs < 2:
            raise ValueError(f"A merge needs at least two inputs, not {inputs!r}")
        self.parameters = parameters
        layout = family.input_word
        self._gate = ScaleGate(family.time_bits, layout, sources=inputs)
        self.latency = self._gate.latency
        self._speech = None
        if family.takes_watermarks:
            self._speech = SpokenWatermarks(parameters, sources=inputs)
        super().__init__(
            {
                "i": In(stream.Signature(layout)).array(inputs),
                "o": Out(stream.Signature(layout)),
                "exclude": In(inputs),
                "deadline": In(DEADLINE_BITS),
                "stalls": Out(COUNTER_BITS).array(inputs),
                "late": Out(inputs),
                "excluded": Out(inputs),
                "differ": Out(1),
                "wrong": Out(1),
                "waits": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.gate = gate = self._gate
        words = [
            SourceWords(self.parameters, sides=self.sides, number=number)
            for number in range(len(self.sides))
        ]
        for number, (source, i) in enumerate(zip(words, self.i, strict=True)):
            m.submodules[f"words_{number}"] = source
            connect(m, flipped(i), source.i)
            said = source.o
            if self._speech is not None:
                m.submodules[f"kept_{number}"] = kept = KeptWatermark(said.payload.shape())
                connect(m, said, kept.i)
                said = kept.o
            connect(m, said, gate.i[number])
        # What the words of all inputs say meets here, so it is in registers before it does.
        orders = [Signal.like(self.exclude, name=f"orders_{n}") for n in range(len(words))]
        ordered, wrong = Signal.like(self.exclude), Signal(len(words))
        m.d.sync += [
            *(mine.eq(source.exclude) for mine, source in zip(orders, words, strict=True)),
            ordered.eq(reduce(or_, orders)),
            wrong.eq(Cat(source.wrong for source in words)),
        ]
        m.d.comb += [
            gate.exclude.eq(self.exclude | ordered),
            gate.deadline.eq(self.deadline),
            gate.forget.eq(1),  # whoever looks at the faults remembers them
            self.late.eq(gate.late if self._speech is None else self._speech.late),
            self.excluded.eq(gate.excluded),
            self.differ.eq(gate.differ),
            self.waits.eq(gate.waits),
            self.wrong.eq(wrong.any()),
            *(mine.eq(theirs) for mine, theirs in zip(self.stalls, gate.stalls, strict=True)),
        ]
        self.elaborate_exit(m, gate)
        return m

    def elaborate_exit(self, m, gate):
        """Lead what leaves the gate to the accelerator, as far as it is a word of it."""
        if self._speech is not None:
            m.submodules.speech = self._speech
            connect(m, gate.o, self._speech.i)
            connect(m, self._speech.o, flipped(self.o))
            return
        merged = gate.o.payload
        passes = (merged.kind == GateKind.TUPLE) | (merged.kind == GateKind.BARRIER)
        m.d.comb += [
            self.o.payload.eq(merged.body),
            self.o.valid.eq(gate.o.valid & passes),
            gate.o.ready.eq(self.o.ready | ~passes),
        ]
