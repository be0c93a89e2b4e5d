# SPDX-License-Identifier: Apache-2.0
"""The ingress of aggregates: prepared tuples, and the clock of their panes."""

from amaranth import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from hdl.expressions import lower
from hdl.local_reset import LEAST_CYCLES, reset_nearby
from hdl.streams.registers import StreamRegister

from .accumulator import SerialDivider
from .aggregate_parameters import lifted_value
from .words import (
    AggregateControl,
    AggregateKind,
    CoreKind,
    WindowFields,
    aggregate_word,
    core_tuple,
    core_word,
    faults_layout,
    lifted_layout,
)

__all__ = ["AggregateIngress", "PaneClock", "TuplePreparation", "prepared_word"]


def keyed_layout(parameters):
    """Return the layout of a tuple with its keys as numbers, which differ where ``has`` is set."""
    count = parameters.tuple_keys
    return data.StructLayout(
        {
            "has": count,
            "keys": data.ArrayLayout(unsigned(parameters.key_bits), count),
            "lifted": lifted_layout(parameters),
        }
    )


def staged_word(parameters, tuple_layout):
    """Return the layout of a word between two stages, with a tuple of that layout.

    ``time`` is the time of a tuple, or the operand of a control word.
    """
    return data.StructLayout(
        {
            "kind": AggregateKind,
            "op": AggregateControl,
            "time": unsigned(parameters.timestamp_bits + 1),
            "tuple": tuple_layout,
        }
    )


def prepared_word(parameters):
    """Return the layout of a prepared word.

    ``exceeds``: a key of the tuple is beyond the capacity; ``key`` is the first such key.
    """
    placed = {name: field.shape for name, field in core_tuple(parameters)}
    beyond = {"exceeds": 1, "key": unsigned(parameters.key_bits)}
    return staged_word(parameters, data.StructLayout({**placed, **beyond}))


class TuplePreparation(wiring.Component):
    """Evaluate the operator's expressions of a tuple, and find the core and row of each key.

    The number of a key is that of the bits of its parts, the first part lowest. If two keys of a
    tuple are equal, the later one is left out: the keys of a tuple are a set.

    Key ``k`` is in row ``k // cores`` of core ``k % cores``. If ``cores`` is no power of two, the
    quotient is the upper part of a product with the rounded-up reciprocal, which is exact for keys
    of this width.

    Latency: :attr:`latency` cycles. Throughput: 1 word per cycle.

    Parameters
    ----------
    parameters : AggregateParameters
        Parameters of the accelerator.

    Members
    -------
    i : In(stream.Signature(aggregate_word(parameters)))
    o : Out(stream.Signature(prepared_word(parameters)))
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 3
        super().__init__(
            {
                "i": In(stream.Signature(aggregate_word(parameters))),
                "o": Out(stream.Signature(prepared_word(parameters))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        parameters = self.parameters
        m.submodules.arrival = arrival = StreamRegister(aggregate_word(parameters))
        m.submodules.keyed = keyed = StreamRegister(
            staged_word(parameters, keyed_layout(parameters))
        )
        m.submodules.placed = placed = StreamRegister(prepared_word(parameters))
        connect(m, flipped(self.i), arrival.i)
        connect(m, placed.o, flipped(self.o))
        for here, there in ((arrival.o, keyed.i), (keyed.o, placed.i)):
            m.d.comb += [there.valid.eq(here.valid), here.ready.eq(there.ready)]
        self.elaborate_expressions(m, arrival.o.payload, keyed.i.payload)
        self.elaborate_places(m, keyed.o.payload, placed.i.payload)
        return m

    def elaborate_expressions(self, m, word, keyed):
        """Evaluate the expressions of a tuple."""
        operator, body = self.parameters.operator, word.body
        fields = {field.name: body.tuple[field.name] for field in operator.fields}
        fields["timestamp"] = body.tuple.timestamp
        is_tuple = word.kind == AggregateKind.TUPLE
        m.d.comb += [
            keyed.kind.eq(word.kind),
            keyed.op.eq(body.control.op),
            keyed.time.eq(Mux(is_tuple, body.tuple.timestamp, body.control.value)),
        ]
        for rule in operator.reductions:
            m.d.comb += keyed.tuple.lifted[rule.name].eq(lifted_value(rule, fields))
        if not operator.keys:
            m.d.comb += keyed.tuple.has.eq(1)
        earlier = []
        for n, key in enumerate(operator.keys):
            parts = [
                Signal(field.bits, name=f"key_{n}_{field.name}") for field in operator.key_fields
            ]
            m.d.comb += [
                part.eq(lower(text, fields)) for part, text in zip(parts, key.parts, strict=True)
            ]
            number = Cat(parts)
            has = Const(1, 1) if key.when is None else lower(key.when, fields) != 0
            again = [known & (number == other) for known, other in earlier]
            m.d.comb += [
                keyed.tuple["keys"][n].eq(number),
                keyed.tuple.has[n].eq(has & ~Cat(again).any()),
            ]
            earlier.append((has, number))

    def elaborate_places(self, m, keyed, placed):
        """Find the core and row of every key."""
        m.d.comb += [
            placed.kind.eq(keyed.kind),
            placed.op.eq(keyed.op),
            placed.time.eq(keyed.time),
            placed.tuple.lifted.eq(keyed.tuple.lifted),
        ]
        for n in reversed(range(self.parameters.tuple_keys)):
            key, target = keyed.tuple["keys"][n], placed.tuple.targets[n]
            beyond = key >= self.parameters.keys
            core, row = self.place(m, key, n)
            m.d.comb += [
                target.valid.eq(keyed.tuple.has[n] & ~beyond),
                target.core.eq(core),
                target.row.eq(row),
            ]
            with m.If(keyed.tuple.has[n] & beyond):
                m.d.comb += [placed.tuple.exceeds.eq(1), placed.tuple.key.eq(key)]

    def place(self, m, key, n):
        """Return the core and the row of a key."""
        cores = self.parameters.cores
        digit = ceil_log2(cores)
        if cores == 1 << digit:
            return key[:digit], key[digit:]
        shift = len(key) + digit
        row = Signal(len(key), name=f"quotient_{n}")
        m.d.comb += row.eq((key * Const(-(-(1 << shift) // cores)))[shift:])
        return (key - row * cores)[:digit], row


class PaneClock(wiring.Component):
    """Put a CLOSE between the tuples of two panes, and say which of them end a window.

    A watermark is the time of a tuple or the value of a WATERMARK. A pane ends when a watermark
    reaches its end. As long as some window holds a tuple, or a pane has to leave the cores, there
    is a CLOSE for every pane, also for one without tuples. Otherwise the clock jumps to the pane of
    the watermark, by two divisions. A window without any tuple has no star.

    A tuple whose pane has ended is dropped; ``disorder`` tells of it. A tuple may be below an
    earlier one in the same pane. A key beyond the capacity is dropped, and the other keys of its
    tuple are not; ``capacity`` tells of the first one.

    The first word to the cores is a CLEAR without an answer, as soon as the last core has left
    reset.

    Latency: 2 cycles. Throughput: 1 word per cycle; 2 cycles more for each pane that ends, and
    :attr:`jump` for a jump or a CLEAR.

    Parameters
    ----------
    parameters : AggregateParameters
        Parameters of the accelerator.

    Attributes
    ----------
    jump : int
        Most cycles of a jump over panes without tuples, and of a CLEAR.

    Members
    -------
    i : In(stream.Signature(prepared_word(parameters)))
    o : Out(stream.Signature(core_word(parameters)))
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 2
        self._divider = SerialDivider(parameters.timestamp_bits + 1)
        self.jump = 2 * self._divider.latency + 2
        super().__init__(
            {
                "i": In(stream.Signature(prepared_word(parameters))),
                "o": Out(stream.Signature(core_word(parameters))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.output = output = StreamRegister(core_word(self.parameters))
        m.submodules.divider = self._divider
        m.submodules.fields = self.fields = WindowFields(self.parameters)
        connect(m, output.o, flipped(self.o))
        panes = range(self.parameters.panes + 1)
        # A watermark may be beyond all timestamps, and the end of its pane beyond that.
        time = unsigned(self.parameters.timestamp_bits + 2)
        self.begin, self.end = Signal(time), Signal(time)
        self.slot, self.filled = Signal(panes), Signal(panes)
        # Panes that have to end until no core holds a tuple: one more than those of a window.
        self.live = Signal(range(self.parameters.panes + 2))
        self.phase, self.ending_phase = Signal(panes), Signal(panes)
        self.last_slot, self.last_phase = Signal(panes), Signal(panes)
        m.d.sync += [
            self.last_slot.eq(self.fields.size - 1),
            self.last_phase.eq(self.fields.advance - 1),
        ]
        self.elaborate_arrival(m)
        self.elaborate_faults(m)
        self.elaborate_steps(m, output.i)
        return m

    def elaborate_arrival(self, m):
        """Hold the word at hand, whether its time is beyond or before the open pane, and whether it
        is a tuple for the cores.

        These flags are set when a word comes, and again in a cycle with ``compare``. In a cycle
        with ``taken``, the next word may come.
        """
        flags = dict.fromkeys(("valid", "due", "late", "sends"), 1)
        flags["prepared"] = prepared_word(self.parameters)
        self.word = word = Signal(data.StructLayout(flags), name="at_hand")
        self.taken, self.compare = Signal(), Signal()
        m.d.comb += self.i.ready.eq((self.taken | ~word.valid) & ~self.compare)
        # Each of both words has comparators of its own: choosing one of them first would be the
        # slowest path of the accelerator.
        with m.If(self.compare):
            m.d.sync += self.judge(word.prepared, word)
        with m.Elif(self.i.ready):
            m.d.sync += self.judge(self.i.payload, word)
        with m.If(self.i.ready):
            m.d.sync += [word.valid.eq(self.i.valid), word.prepared.eq(self.i.payload)]

    def judge(self, prepared, word):
        """Return assignments of the flags of the word at hand, which are those of ``prepared``."""
        is_tuple = prepared.kind == AggregateKind.TUPLE
        has_time = is_tuple | (prepared.op == AggregateControl.WATERMARK)
        has_key = Cat(target.valid for target in prepared.tuple.targets).any()
        is_late = prepared.time < self.begin
        return [
            word.due.eq(has_time & (prepared.time >= self.end)),
            word.late.eq(is_late),
            word.sends.eq(is_tuple & has_key & ~is_late),
        ]

    def elaborate_faults(self, m):
        """Remember what was wrong with the words that were taken since CLEAR."""
        self.faults = faults = Signal(faults_layout(self.parameters))
        prepared, taken = self.word.prepared, self.taken
        with m.If(taken & (prepared.kind == AggregateKind.TUPLE)):
            with m.If(self.word.late):
                m.d.sync += faults.disorder.eq(1)
            with m.Elif(prepared.tuple.exceeds & ~faults.capacity):
                m.d.sync += [faults.capacity.eq(1), faults.key.eq(prepared.tuple.key)]
        with m.Elif(taken & ~prepared.op.as_value().matches(*AggregateControl)):
            m.d.sync += faults.illegal.eq(1)
        with m.Elif(taken & (prepared.op == AggregateControl.CLEAR)):
            m.d.sync += faults.eq(0)

    def elaborate_steps(self, m, o):
        """Take one word after the other, and end panes between them."""
        word, divider = self.word, self._divider
        with m.FSM():
            with m.State("RESET"):
                awake = Signal(range(LEAST_CYCLES))
                with m.If(awake != LEAST_CYCLES - 1):
                    m.d.sync += awake.eq(awake + 1)
                with m.Else():
                    self.send_job(m, o, CoreKind.CLEAR, answers=0)
                    with m.If(o.ready):
                        self.start_again(m)
            with m.State("WORD"):
                with m.If(word.valid & word.due):
                    self.elaborate_due(m, o)
                with m.Elif(word.valid & (word.prepared.kind == AggregateKind.TUPLE)):
                    self.elaborate_tuple(m, o)
                with m.Elif(word.valid):
                    self.elaborate_control(m, o)
            with m.State("COMPARE"):
                m.d.comb += self.compare.eq(1)
                m.next = "WORD"
            with m.State("DIVIDE_TIME"):
                m.d.comb += [divider.divisor.eq(self.fields.pane), divider.start.eq(divider.done)]
                m.d.comb += divider.dividend.eq(divider.quotient)
                with m.If(divider.done):
                    m.d.sync += self.begin.eq(word.prepared.time - divider.remainder)
                    m.next = "DIVIDE_PANE"
            with m.State("DIVIDE_PANE"):
                m.d.comb += divider.divisor.eq(self.fields.advance)
                m.d.sync += self.end.eq(self.begin + self.fields.pane)
                with m.If(divider.done):
                    m.d.sync += self.phase.eq(divider.remainder)
                    m.next = "COMPARE"
            with m.State("LOAD"):
                m.d.comb += self.fields.begin.eq(1)
                m.next = "BEGIN"
            with m.State("BEGIN"):
                m.d.comb += [divider.dividend.eq(self.fields.size - 1), divider.start.eq(1)]
                m.d.sync += self.end.eq(self.fields.pane)
                m.next = "DIVIDE_SIZE"
            with m.State("DIVIDE_SIZE"):
                m.d.comb += divider.divisor.eq(self.fields.advance)
                with m.If(divider.done):
                    m.d.sync += self.ending_phase.eq(divider.remainder)
                    m.next = "COMPARE"

    def send_job(self, m, o, kind, *, answers):
        """Send a job, which tells of all faults so far, even if it forgets them."""
        job = o.payload.body.job
        m.d.comb += [
            o.valid.eq(1),
            o.payload.kind.eq(kind),
            job.answers.eq(answers),
            job.faults.eq(self.faults),
        ]

    def start_again(self, m):
        """Begin at time zero, without tuples, with the windows that were set last."""
        m.d.sync += [
            register.eq(0)
            for register in (self.begin, self.slot, self.filled, self.live, self.phase)
        ]
        m.next = "LOAD"

    def elaborate_due(self, m, o):
        """End the open pane, or jump if nothing would come of it."""
        fields, divider, job = self.fields, self._divider, o.payload.body.job
        with m.If(self.live == 0):
            m.d.comb += [divider.start.eq(1), divider.dividend.eq(self.word.prepared.time)]
            m.next = "DIVIDE_TIME"
        with m.Else():
            ends = (self.phase == self.ending_phase) & (self.live > 1)
            self.send_job(m, o, CoreKind.CLOSE, answers=ends)
            m.d.comb += [
                job.boundary.eq(Mux(ends, self.end, 0)),
                job.slot.eq(self.slot),
                job.filled.eq(self.filled),
                job.size.eq(fields.size),
            ]
            with m.If(o.ready):
                m.d.sync += [
                    self.begin.eq(self.end),
                    self.end.eq(self.end + fields.pane),
                    self.slot.eq(Mux(self.slot == self.last_slot, 0, self.slot + 1)),
                    self.filled.eq(self.filled + (self.filled != fields.size)),
                    self.phase.eq(Mux(self.phase == self.last_phase, 0, self.phase + 1)),
                    self.live.eq(self.live - 1),
                ]
                m.next = "COMPARE"

    def elaborate_tuple(self, m, o):
        """Send a tuple to the cores, unless its pane has ended or it has no key."""
        tuple_ = self.word.prepared.tuple
        sent = self.word.sends
        m.d.comb += [
            self.taken.eq(o.ready),
            o.valid.eq(sent),
            o.payload.kind.eq(CoreKind.TUPLE),
            o.payload.body.tuple.targets.eq(tuple_.targets),
            o.payload.body.tuple.lifted.eq(tuple_.lifted),
        ]
        with m.If(sent & o.ready):
            m.d.sync += self.live.eq(self.fields.size + 1)

    def elaborate_control(self, m, o):
        """Execute a control word; one of a watermark has nothing more to do here."""
        with m.Switch(self.word.prepared.op):
            with m.Case(AggregateControl.CLEAR):
                self.send_job(m, o, CoreKind.CLEAR, answers=1)
                m.d.comb += self.taken.eq(o.ready)
                with m.If(o.ready):
                    self.start_again(m)
            with m.Case(AggregateControl.FLUSH):
                self.send_job(m, o, CoreKind.MARK, answers=1)
                m.d.comb += self.taken.eq(o.ready)
            with m.Default():
                m.d.comb += self.taken.eq(1)
                m.d.comb += [
                    self.fields.set.eq(1),
                    self.fields.op.eq(self.word.prepared.op),
                    self.fields.value.eq(self.word.prepared.time),
                ]


class AggregateIngress(wiring.Component):
    """Turn input words into the words of cores, for tuples of non-decreasing panes.

    No word is taken while reset is on its way (:mod:`hdl.local_reset`).

    Latency: :attr:`latency` cycles. Throughput: 1 word per cycle, less what panes take
    (:class:`~hdl.aggregate.ingress.PaneClock`).

    Parameters
    ----------
    parameters : AggregateParameters
        Parameters of the accelerator.

    Members
    -------
    i : In(stream.Signature(aggregate_word(parameters)))
    o : Out(stream.Signature(core_word(parameters)))
    """

    def __init__(self, parameters):
        self.preparation = TuplePreparation(parameters)
        self.clock = PaneClock(parameters)
        self.latency = self.preparation.latency + self.clock.latency
        super().__init__(
            {
                "i": In(stream.Signature(aggregate_word(parameters))),
                "o": Out(stream.Signature(core_word(parameters))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.preparation = preparation = self.preparation
        m.submodules.clock = clock = self.clock
        m.d.comb += [
            preparation.i.payload.eq(self.i.payload),
            preparation.i.valid.eq(self.i.valid),
            # A register that is still in reset would lose the word.
            self.i.ready.eq(preparation.i.ready & ~ResetSignal()),
        ]
        connect(m, preparation.o, clock.i)
        connect(m, clock.o, flipped(self.o))
        return reset_nearby(m, platform)
