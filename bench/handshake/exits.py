# SPDX-License-Identifier: Apache-2.0
"""How results leave a chain."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.local_reset import reset_nearby
from hdl.memory.columns import KeyColumn
from hdl.streams.registers import StreamRegister, flagged_register
from hdl.trees.merger import OrderedMergerTree
from hdl.words.prepared import stored_layout
from hdl.words.results import ResultKind, faults_layout, result_word

from .layouts import chain_result

__all__ = ["FreeMerger", "FreeMergerTree", "Outlet", "ResultsExit"]


def port_flags(port):
    """Return what a merger wants to know of the word at a port, if there is one."""
    return {
        "pair": port.valid & ~port.payload.mark,
        "mark": port.valid & port.payload.mark,
    }


class FreeMerger(wiring.Component):
    """Fixed-priority arbiter of pairs; merges marks when all ports show one.

    Like :class:`hdl.trees.merger.Merger` with free order, registers stand at the inputs and at the
    output. No port is kept waiting for ever: while its results are stuck its core takes no tuple,
    and soon no other core has one to take.

    Latency: 2 cycles. Throughput: 1 word per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.
    ports : int
        Number of inputs.

    Members
    -------
    i : In(stream.Signature(chain_result(parameters))).array(ports)
    o : Out(stream.Signature(chain_result(parameters)))
    reset : In(1)
        Of all registers.
    """

    def __init__(self, parameters, *, ports):
        if ports < 1:
            raise ValueError(f"A merger needs at least one port, not {ports!r}")
        self.parameters = parameters
        self.ports = ports
        self.latency = 2
        result = stream.Signature(chain_result(parameters))
        super().__init__({"i": In(result).array(ports), "o": Out(result), "reset": In(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.output = output = StreamRegister(self.o.payload.shape(), early=["mark"])
        connect(m, output.o, flipped(self.o))
        inputs = [
            flagged_register(m, f"port_{n}", i, flags=port_flags) for n, i in enumerate(self.i)
        ]
        pair = Cat(i.payload.pair for i in inputs)
        marks = Signal()
        lowest = pair & ~((pair - 1)[: self.ports])
        chosen = inputs[-1].payload.word
        for i in reversed(inputs[:-1]):
            chosen = Mux(i.payload.pair, i.payload.word, chosen)
        m.d.comb += [
            marks.eq(Cat(i.payload.mark for i in inputs).all()),
            output.i.valid.eq(pair.any() | marks),
            output.i.payload.eq(chosen),
            *(i.ready.eq(output.i.ready & (lowest[n] | marks)) for n, i in enumerate(inputs)),
        ]
        return reset_nearby(m, platform, reset=self.reset)


class FreeMergerTree(OrderedMergerTree):
    """Gather the results of all cores, of both sides.

    Latency: 2 cycles for each of the ``len(tree_levels(2 * cores, fan_in))`` levels. Throughput: 1
    word per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.

    Members
    -------
    i : In(stream.Signature(chain_result(parameters))).array(2 * cores)
    o : Out(stream.Signature(chain_result(parameters)))
    resets : In(1).array(cores)
    """

    def __init__(self, parameters):
        super().__init__(parameters, streams=2)

    def shape(self, level):
        """Return the layout of a word, which is the same on all levels."""
        return chain_result(self.parameters)

    def merger(self, *, level, ports):
        """Return a merger of results."""
        return FreeMerger(self.parameters, ports=ports)


class ResultsExit(wiring.Component):
    """Turn pairs into result words; tell the coordinator of a mark that fences have left.

    The coordinator sends a mark of its own only when no pair can be under way.

    Latency: 2 cycles. Throughput: 1 word per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.

    Members
    -------
    i : In(stream.Signature(chain_result(parameters)))
    settled : Out(1)
        The mark of a fence has come; from a register.
    marks : In(stream.Signature(faults_layout(parameters)))
    o : Out(stream.Signature(result_word(parameters)))
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 2
        super().__init__(
            {
                "i": In(stream.Signature(chain_result(parameters))),
                "settled": Out(1),
                "marks": In(stream.Signature(faults_layout(parameters))),
                "o": Out(stream.Signature(result_word(parameters))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        shape = result_word(self.parameters)
        m.submodules.output = output = StreamRegister(shape, early=["kind"])
        connect(m, output.o, flipped(self.o))
        results = flagged_register(m, "input", self.i, flags=port_flags)
        result, word = results.payload, output.i.payload
        m.d.comb += [
            results.ready.eq(output.i.ready),
            self.marks.ready.eq(output.i.ready & ~result.pair),
            output.i.valid.eq(result.pair | self.marks.valid),
            word.kind.eq(Mux(result.pair, ResultKind.PAIR, ResultKind.MARK)),
            word.side.eq(result.pair & result.word.side),
        ]
        with m.If(result.pair):
            m.d.comb += word.body.pair.eq(result.word.pair)
        with m.Else():
            m.d.comb += [
                word.body.punctuation[name].eq(self.marks.payload[name])
                for name, _ in faults_layout(self.parameters)
            ]
        m.d.sync += self.settled.eq(result.mark & output.i.ready)
        return reset_nearby(m, platform)


class Outlet(wiring.Component):
    """Keep the oldest tuple of a ring in a register, so that it can be sent on at once.

    That takes one reading of the ring for each tuple, for which a pass stands still.

    Latency: 3 cycles from ``fetch`` to ``valid``. Throughput: a tuple in 4 cycles.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.

    Members
    -------
    readable : In(1)
        There is a tuple that can be read.
    leaves : In(1)
        It is sent on, or has expired.
    fetch : Out(1)
        It is read.
    fetched : In
        What was read two cycles ago.
    valid : Out(1)
        ``key`` is that of the oldest tuple.
    key : Out
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = KeyColumn.LATENCY + 1
        key = stored_layout(parameters)
        super().__init__(
            {
                "readable": In(1),
                "leaves": In(1),
                "fetch": Out(1),
                "fetched": In(key),
                "valid": Out(1),
                "key": Out(key),
            }
        )

    def elaborate(self, platform):
        m = Module()
        under_way = Signal(KeyColumn.LATENCY)
        key = Signal(self.key.shape(), reset_less=True)
        m.d.comb += [
            self.fetch.eq(self.readable & ~self.valid & ~under_way.any()),
            self.key.eq(key),
        ]
        m.d.sync += under_way.eq(Cat(self.fetch, under_way))
        with m.If(under_way[-1]):
            m.d.sync += [key.eq(self.fetched), self.valid.eq(1)]
        with m.If(self.leaves):
            m.d.sync += [under_way.eq(0), self.valid.eq(0)]
        return m
