# SPDX-License-Identifier: Apache-2.0
"""Accumulation of the values of a pane, and division of their sums."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.memory.columns import KeyColumn

from .aggregate_parameters import combined, exceeds, partial_shape
from .words import entry_layout, lifted_layout

__all__ = ["PaneAccumulator", "SerialDivider"]


#: Cycles from a tuple to the memory's row, to its operand, and to its write.
READ, OPERAND, WRITE = KeyColumn.LATENCY, KeyColumn.LATENCY + 1, KeyColumn.LATENCY + 2


class PaneAccumulator(wiring.Component):
    """Add tuples to the entries of their keys, in one bank, while the other bank is scanned.

    A tuple reads the entry of its key, is combined with it, and the entry is written back. The
    entry is written :data:`WRITE` cycles after it was read, so the up to :data:`WRITE` tuples
    before a tuple may have changed the entry in the meantime. Whichever of these has the same key
    and came last gives its result in place of what the memory holds. The one right before it gives
    it directly to the combination, the others a cycle earlier. So the loop that closes in every
    cycle has one combination and one multiplexer in it.

    A bank that is ``scanned`` belongs to the scan. No tuple may enter it, and none of those before
    may be under way: the last one needs :attr:`settling` cycles.

    Latency: :attr:`latency` cycles from a tuple to its entry. Throughput: 1 tuple per cycle,
    whatever the keys.

    Parameters
    ----------
    parameters : AggregateParameters
        Parameters of the accelerator.

    Attributes
    ----------
    settling : int
        Cycles after a tuple until a scan of its bank sees its entry.

    Members
    -------
    add : In(1)
        Add a tuple in this cycle.
    bank : In(1)
    row : In(range(parameters.rows))
    lifted : In(lifted_layout(parameters))
    exceeded : Out(1)
        A reduction of a key needed more bits than it has; of that bank and row, in this cycle.
    exceeded_bank, exceeded_row : Out(1), Out(range(parameters.rows))
    scanned : In(2)
        One bit per bank.
    scan_row : In(range(parameters.rows))
        Row to read in the scanned bank.
    entry : Out(entry_layout(parameters))
        That row, :attr:`latency_of_scan` cycles later. Of two scanned banks, that of the first.
    clear : In(2)
        Forget the entry of ``clear_row``; only in a scanned bank.
    clear_row : In(range(parameters.rows))
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = WRITE + 1
        self.latency_of_scan = READ
        self.settling = WRITE + 1
        row = range(parameters.rows)
        super().__init__(
            {
                "add": In(1),
                "bank": In(1),
                "row": In(row),
                "lifted": In(lifted_layout(parameters)),
                "exceeded": Out(1),
                "exceeded_bank": Out(1),
                "exceeded_row": Out(row),
                "scanned": In(2),
                "scan_row": In(row),
                "entry": Out(entry_layout(parameters)),
                "clear": In(2),
                "clear_row": In(row),
            }
        )

    def elaborate(self, platform):
        m = Module()
        entry = entry_layout(self.parameters)
        stages = self.elaborate_stages(m)
        result = Signal(entry, reset_less=True)
        found = self.elaborate_banks(m, stages[READ]["bank"], stages[WRITE], result)
        # Results of the tuples that are 2, 3 and 4 cycles ahead of the one whose row is read.
        earlier = [result]
        for n in range(WRITE - 2):
            earlier.append(Signal(entry, reset_less=True, name=f"result_{n}"))
            m.d.sync += earlier[-1].eq(earlier[-2])
        operand = Signal(entry, reset_less=True)
        same = stages[READ]["same"]
        chosen = found
        for n in reversed(range(len(earlier))):
            chosen = Mux(same[n + 1], Value.cast(earlier[n]), chosen)
        with m.If(stages[READ]["add"]):
            m.d.sync += Value.cast(operand).eq(chosen)
        self.elaborate_combination(m, stages[OPERAND], operand, result)
        return m

    def elaborate_stages(self, m):
        """Let a tuple pass the pipeline; return what is known of it after each number of cycles.

        Bit ``d - 1`` of ``same`` says whether the tuple ``d`` cycles ahead has the same entry.
        """
        place = Cat(self.row, self.bank)
        stages = [{"add": self.add, "bank": self.bank, "row": self.row, "lifted": self.lifted}]
        for n in range(WRITE):
            before = stages[-1]
            names = ("bank", "row") if n >= OPERAND else ("bank", "row", "lifted", "same")
            now = {
                name: Signal.like(before.get(name, Signal(WRITE)), name=f"{name}_{n}")
                for name in names
            }
            now["add"] = Signal(name=f"add_{n}")
            m.d.sync += now["add"].eq(before["add"])
            with m.If(before["add"]):
                m.d.sync += [now[name].eq(before[name]) for name in names if name in before]
            stages.append(now)
        same = [stage["add"] & (Cat(stage["row"], stage["bank"]) == place) for stage in stages[1:]]
        with m.If(self.add):
            m.d.sync += stages[1]["same"].eq(Cat(same))
        return stages

    def elaborate_banks(self, m, read_bank, written, result):
        """Connect both banks; return the entry that the tuple in the read stage finds."""
        entry = entry_layout(self.parameters)
        rows = []
        for n in range(2):
            bank = KeyColumn(width=entry.size, depth=self.parameters.rows)
            m.submodules[f"bank_{n}"] = bank
            kept = Signal(entry, name=f"kept_{n}")
            m.d.comb += [
                kept.eq(result),
                kept.touched.eq(~self.clear[n]),
                bank.address.eq(Mux(self.scanned[n], self.scan_row, self.row)),
                bank.write.eq(self.clear[n] | (written["add"] & (written["bank"] == n))),
                bank.place.eq(Mux(self.clear[n], self.clear_row, written["row"])),
                bank.row.eq(kept),
            ]
            rows.append(bank.data)
        m.d.comb += self.entry.eq(Mux(self.scanned[0], rows[0], rows[1]))
        return Mux(read_bank, rows[1], rows[0])

    def elaborate_combination(self, m, stage, operand, result):
        """Combine a tuple with its operand, or with the result of the tuple right before it."""
        before = Signal(operand.shape())
        exceeded = Signal()
        m.d.comb += before.eq(Mux(stage["same"][0], Value.cast(result), Value.cast(operand)))
        with m.If(stage["add"]):
            m.d.sync += result.touched.eq(1)
            for rule in self.parameters.operator.reductions:
                shape = partial_shape(self.parameters, rule)
                first = stage["lifted"][rule.name]
                whole = combined(rule, before.partial[rule.name], first)
                chosen = Mux(before.touched, whole, first)
                reduced = Signal(chosen.shape(), name=f"reduced_{rule.name}")
                m.d.comb += reduced.eq(chosen)
                m.d.sync += result.partial[rule.name].eq(reduced)
                with m.If(exceeds(reduced, shape)):
                    m.d.comb += exceeded.eq(1)
        m.d.sync += self.exceeded.eq(exceeded)
        with m.If(stage["add"]):
            m.d.sync += [
                self.exceeded_bank.eq(stage["bank"]),
                self.exceeded_row.eq(stage["row"]),
            ]


class SerialDivider(wiring.Component):
    """Divide two unsigned numbers; the divisor must not be zero.

    Latency: ``width + 1`` cycles from ``start`` to ``done``. Throughput: 1 division in as many.

    Parameters
    ----------
    width : int
        Bits of both numbers.

    Members
    -------
    start : In(1)
        Begin with ``dividend`` and ``divisor``, which must hold until ``done``. A division that is
        under way is forgotten.
    dividend, divisor : In(width)
    done : Out(1)
        ``quotient`` and ``remainder`` are there, in one cycle.
    quotient, remainder : Out(width)
    """

    def __init__(self, width):
        if width < 1:
            raise ValueError(f"A divider must have at least one bit, not {width!r}")
        self.width = width
        self.latency = width + 1
        super().__init__(
            {
                "start": In(1),
                "dividend": In(width),
                "divisor": In(width),
                "done": Out(1),
                "quotient": Out(width),
                "remainder": Out(width),
            }
        )

    def elaborate(self, platform):
        m = Module()
        left = Signal(range(self.width + 1))
        # The remainder moves up from the quotient's upper end, bit by bit.
        shifted = Cat(self.quotient[-1], self.remainder)
        rest = Signal(signed(self.width + 2))
        m.d.comb += rest.eq(shifted - self.divisor)
        m.d.sync += self.done.eq(left == 1)
        with m.If(left != 0):
            fits = ~rest[-1]
            m.d.sync += [
                left.eq(left - 1),
                self.quotient.eq(Cat(fits, self.quotient)),
                self.remainder.eq(Mux(fits, rest, shifted)),
            ]
        with m.If(self.start):
            m.d.sync += [
                left.eq(self.width),
                self.done.eq(0),
                self.quotient.eq(self.dividend),
                self.remainder.eq(0),
            ]
        return m
