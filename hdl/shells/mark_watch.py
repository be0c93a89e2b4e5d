# SPDX-License-Identifier: Apache-2.0
"""What a shell sees of the words at an accelerator: owed marks, and faults that results tell of."""

from functools import reduce
from operator import or_

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.families.choice import family_of
from hdl.families.family import is_mark, results_of

__all__ = ["MARK_BITS", "MarkWatch", "WordWatch"]

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
