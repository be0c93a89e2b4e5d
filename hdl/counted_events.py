# SPDX-License-Identifier: Apache-2.0
"""The events of an accelerator that its counters count."""

from functools import reduce
from operator import add

from amaranth import *

from .counters import CounterBank
from .words.results import ResultKind

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
    parameters, ingress = accelerator.parameters, accelerator.ingress
    i, o = accelerator.i, accelerator.o
    m.submodules.counters = counters = CounterBank(parameters)
    emitted = o.valid & o.ready
    word = o.payload
    results = [word.one, word.two] if parameters.tuples_per_word == 2 else [word]
    m.d.comb += [
        counters.activity.eq(activity.o),
        counters.accepted.eq(ingress.accepted),
        counters.disorder.eq(ingress.disorder),
        counters.illegal.eq(ingress.illegal),
        counters.ingress.eq(Cat(i.valid & i.ready, i.valid & ~i.ready)),
        counters.output.eq(Cat(emitted, o.valid & ~o.ready)),
        counters.kinds.eq(
            Cat(
                reduce(add, (emitted & (result.kind == kind) for result in results))
                for kind in (ResultKind.PAIR, ResultKind.STAR, ResultKind.MARK)
            )
        ),
        counters.address.eq(accelerator.counter_addr),
        accelerator.counter_data.eq(counters.data),
    ]
    if parameters.parity:
        m.d.comb += counters.fails.eq(Cat(gate.fails for gate in accelerator.gates))
