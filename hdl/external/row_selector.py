# SPDX-License-Identifier: Apache-2.0
"""Puts rows that were read from memory and rows that were copied in the order of the pass."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.streams.pointer_queue import PointerQueue

from .layouts import row_bits, run_layout
from .row_queue import RowQueue

__all__ = ["RowSelector", "row_source"]


def row_source(parameters):
    """Return the signature of a queue of rows, as it offers them.

    ``filled`` says that a row is at hand, ``take`` takes it, and ``row`` shows it
    :attr:`RowQueue.LATENCY` cycles later.
    """
    return wiring.Signature({"filled": Out(1), "take": In(1), "row": Out(row_bits(parameters))})


class RowSelector(wiring.Component):
    """Take rows from one of two queues, run by run.

    Latency: 0 cycles from the queue whose turn it is to ``o``; 2 from ``run`` to the turn of the
    first run. Throughput: 1 row per cycle, also from one run to the next.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.
    runs : int
        Runs that can wait, a power of two.

    Members
    -------
    run : In(1)
        ``rows`` follow after the runs before.
    rows : In(run_layout(parameters))
    run_room : Out(1)
        Two more runs can be taken; from a register.
    read, copied : In(row_source(parameters))
        Rows that were read from memory, and rows that were copied.
    o : Out(row_source(parameters))
    """

    def __init__(self, parameters, *, runs):
        self.parameters = parameters
        self.runs = runs
        self.latency = 0
        super().__init__(
            {
                "run": In(1),
                "rows": In(run_layout(parameters)),
                "run_room": Out(1),
                "read": In(row_source(parameters)),
                "copied": In(row_source(parameters)),
                "o": Out(row_source(parameters)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.runs = runs = PointerQueue(self.rows.shape(), depth=self.runs, reserve=2)
        current = Signal(self.rows.shape())
        begun = Signal()  # the current run has rows left
        free = Signal()  # the next run becomes the current one, if there is any
        m.d.comb += [
            runs.add.eq(self.run),
            runs.last.eq(self.rows),
            self.run_room.eq(runs.room),
            self.o.filled.eq(begun & Mux(current.copied, self.copied.filled, self.read.filled)),
            self.copied.take.eq(self.o.take & current.copied),
            self.read.take.eq(self.o.take & ~current.copied),
            free.eq(~begun | (self.o.take & (current.more == 0))),
            runs.take.eq(free & runs.filled),
        ]
        with m.If(free):
            m.d.sync += [begun.eq(runs.filled), current.eq(runs.first)]
        with m.Elif(self.o.take):
            m.d.sync += current.more.eq(current.more - 1)
        was_copied = Signal(RowQueue.LATENCY)  # the row was taken from the copied ones
        m.d.sync += was_copied.eq(Cat(current.copied, was_copied))
        m.d.comb += self.o.row.eq(Mux(was_copied[-1], self.copied.row, self.read.row))
        return m
