# SPDX-License-Identifier: Apache-2.0
"""The keys of a tuple that belong to a core, one after the other."""

from amaranth import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from .words import target_layout

__all__ = ["TargetChoice"]


class TargetChoice(wiring.Component):
    """Find the targets of a tuple in this core, the first one first.

    The tuple stays at the input until ``last``. A tuple without a target here takes one cycle.

    Latency: 0 cycles. Throughput: 1 target per cycle.

    Parameters
    ----------
    parameters : AggregateParameters
        Parameters of the accelerator.

    Members
    -------
    position : In(range(parameters.cores))
        Number of the core.
    present : In(1)
        ``targets`` are those of a tuple.
    targets : In(data.ArrayLayout(target_layout(parameters), parameters.tuple_keys))
    found : Out(1)
        ``row`` is a row of this core.
    row : Out(range(parameters.rows))
    last : Out(1)
        No target of this core is left after this cycle; it does not depend on ``present``.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 0
        targets = data.ArrayLayout(target_layout(parameters), parameters.tuple_keys)
        super().__init__(
            {
                "position": In(range(max(2, parameters.cores))),
                "present": In(1),
                "targets": In(targets),
                "found": Out(1),
                "row": Out(range(parameters.rows)),
                "last": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        count = self.parameters.tuple_keys
        mine, served = Signal(count), Signal(count)
        m.d.comb += [
            *(
                mine[n].eq(
                    self.targets[n].valid & ~served[n] & (self.targets[n].core == self.position)
                )
                for n in range(count)
            ),
            self.found.eq(self.present & mine.any()),
            # Without its lowest one, nothing is left.
            self.last.eq((mine & (mine - 1)[:count]) == 0),
        ]
        for n in reversed(range(count)):
            with m.If(mine[n]):
                m.d.comb += self.row.eq(self.targets[n].row)
        if count > 1:
            with m.If(self.present):
                m.d.sync += served.eq(Mux(self.last, 0, served | (mine & -mine)))
        return m
