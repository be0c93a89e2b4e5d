# SPDX-License-Identifier: Apache-2.0
"""Gathering the results of a chain, which come in no order."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.local_reset import reset_nearby
from hdl.streams.registers import StreamRegister, flagged_register
from hdl.tree import leaf_beside, tree_levels

from .layouts import chain_result

__all__ = ["FreeMerger", "FreeMergerTree"]


def port_flags(port):
    """Return what a merger wants to know of the word at a port, if there is one."""
    return {
        "pair": port.valid & ~port.payload.mark,
        "mark": port.valid & port.payload.mark,
    }


class FreeMerger(wiring.Component):
    """Pass on the pair of the lowest port that has one; merge marks when all ports show one.

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


class FreeMergerTree(wiring.Component):
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
        self.parameters = parameters
        self.leaves = 2 * parameters.cores
        self.latency = 2 * len(tree_levels(self.leaves, parameters.fan_in))
        result = stream.Signature(chain_result(parameters))
        super().__init__(
            {
                "i": In(result).array(self.leaves),
                "o": Out(result),
                "resets": In(1).array(parameters.cores),
            }
        )

    def elaborate(self, platform):
        m = Module()
        arity = self.parameters.fan_in
        children = [flipped(i) for i in self.i]
        for level, count in enumerate(tree_levels(self.leaves, arity)):
            parents = []
            for n in range(count):
                group = children[n * arity : (n + 1) * arity]
                merger = FreeMerger(self.parameters, ports=len(group))
                m.submodules[f"merger_{level}_{n}"] = merger
                nearest = leaf_beside(level, n, arity=arity, leaves=self.leaves)
                m.d.comb += merger.reset.eq(self.resets[nearest // 2])
                for i, child in zip(merger.i, group, strict=True):
                    connect(m, child, i)
                parents.append(merger.o)
            children = parents
        (root,) = children
        connect(m, root, flipped(self.o))
        return m
