# SPDX-License-Identifier: Apache-2.0
"""The events of an accelerator that its counters count."""

from functools import reduce
from operator import add

from amaranth import *
from amaranth.utils import bits_for

from .counters import CounterBank
from .result_ports import result_ports, results_per_cycle
from .words.results import result_kinds

__all__ = ["count_events"]


def count_events(m, accelerator, activity):
    """Add the counters of an accelerator to its module, and make them readable at its ports.

    Parameters
    ----------
    m : Module
        Module of the accelerator.
    accelerator : Component
        With ``parameters``, an ``ingress``, and the ports of :class:`hdl.accelerator.Accelerator`.
    activity : ActivityTree
        Sums what the regions report.
    """
    parameters, ingress, i = accelerator.parameters, accelerator.ingress, accelerator.i
    outputs = [getattr(accelerator, name) for name in result_ports(parameters)]
    m.submodules.counters = counters = CounterBank(parameters)
    leaving = [o.valid & o.ready for o in outputs]
    bits = bits_for(results_per_cycle(parameters))

    def emitted(kind, ports):
        """Return how many results of a kind leave by some ports in this cycle."""
        results = [(leaving[n], result) for n in ports for result in results_of(outputs[n])]
        return resized(reduce(add, (leaves & (one.kind == kind) for leaves, one in results)), bits)

    every = range(len(outputs))
    result, star, mark = result_kinds(parameters)
    m.d.comb += [
        counters.activity.eq(activity.o),
        counters.accepted.eq(ingress.accepted),
        counters.disorder.eq(ingress.disorder),
        counters.illegal.eq(ingress.illegal),
        counters.ingress.eq(Cat(i.valid & i.ready, i.valid & ~i.ready)),
        counters.output.eq(
            Cat(reduce(add, leaving), reduce(add, (o.valid & ~o.ready for o in outputs)))
        ),
        counters.kinds.eq(
            Cat(
                emitted(result, every),
                emitted(star, every),
                emitted(mark, every[:1]),  # every mark leaves by all ports
            )
        ),
        counters.address.eq(accelerator.counter_addr),
        accelerator.counter_data.eq(counters.data),
    ]
    if parameters.parity:
        m.d.comb += counters.fails.eq(Cat(gate.fails for gate in accelerator.gates))


def results_of(port):
    """Return the results in the word at a port."""
    word = port.payload
    return [word.one, word.two] if "two" in word.shape().members else [word]


def resized(value, bits):
    """Return the lowest bits of a value, or the value with zeros above it."""
    return value[:bits] if len(value) >= bits else Cat(value, Const(0, bits - len(value)))
