# SPDX-License-Identifier: Apache-2.0
"""The gathering tree of an aggregate: values of windows, sorted by boundary, core and key."""

from amaranth import *

from hdl.trees.ordered_merger import OrderedMerger, OrderedMergerTree

from .words import ValueKind, value_result

__all__ = ["ValueMerger", "ValueTree"]


class ValueMerger(OrderedMerger):
    """Merge the results of cores, window by window: those of port 0, then those of port 1, etc.

    The star or mark that the merger emits tells of an overflow of range at any port, and of its
    key, the one at the lowest of these ports. What the ingress knows of faults is at every port.

    Latency: 2 cycles. Throughput: 1 word per cycle. A star takes 1 cycle, whatever the arity.

    Parameters
    ----------
    parameters : AggregateParameters
        Parameters of the accelerator.
    ports : int
        Number of inputs, one to ``parameters.fan_in``.

    Members
    -------
    i : In(stream.Signature(value_result(parameters))).array(ports)
    o : Out(stream.Signature(value_result(parameters)))
    reset : In(1)
        Resets all registers of the merger.
    """

    def __init__(self, parameters, *, ports):
        shape = value_result(parameters)
        super().__init__(
            ports=ports,
            most=parameters.fan_in,
            shape_in=shape,
            shape_out=shape,
            datum=ValueKind.VALUE,
            mark=ValueKind.MARK,
        )

    def elaborate_word(self, m, chosen, words, pair):
        """Choose the value of the lowest port that shows one, or else merge stars or marks."""
        lowest = words[-1]
        for n in reversed(range(self.ports - 1)):
            lowest = Mux(pair[n], words[n], lowest)
        # All stars, and all values between two stars, are of the same window.
        m.d.comb += [
            chosen.kind.eq(Mux(pair.any(), ValueKind.VALUE, words[0].kind)),
            chosen.boundary.eq(words[0].boundary),
        ]
        with m.If(pair.any()):
            value = Signal.like(words[0])
            m.d.comb += [value.eq(lowest), chosen.eq(value)]
        with m.Else():
            faults = [word.body.faults for word in words]
            key = faults[-1].key
            for n in reversed(range(self.ports - 1)):
                key = Mux(faults[n].capacity | faults[n].range, faults[n].key, key)
            m.d.comb += [
                chosen.body.faults.eq(faults[0]),
                chosen.body.faults.range.eq(Cat(fault.range for fault in faults).any()),
                chosen.body.faults.key.eq(key),
            ]


class ValueTree(OrderedMergerTree):
    """Gather the results of all cores: sorted by boundary (Lemma 2), then by core and key.

    Latency: 2 cycles for each of the ``len(tree_levels(cores, fan_in))`` levels; none with a single
    core. Throughput: 1 word per cycle.

    Parameters
    ----------
    parameters : AggregateParameters
        Parameters of the accelerator: ``cores`` inputs, arity ``fan_in``.

    Members
    -------
    i : In(stream.Signature(value_result(parameters))).array(cores)
    o : Out(stream.Signature(value_result(parameters)))
    resets : In(1).array(cores)
        One reset per core, from a :class:`hdl.local_reset.ResetTree`.
    """

    def shape(self, level):
        """Return the layout of a result, the same at every level."""
        return value_result(self.parameters)

    def merger(self, *, level, ports):
        """Return a merger of values."""
        return ValueMerger(self.parameters, ports=ports)
