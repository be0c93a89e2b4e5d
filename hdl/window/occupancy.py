# SPDX-License-Identifier: Apache-2.0
"""How many keys a region holds: whether there is room for another."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Occupancy"]


class Occupancy(wiring.Component):
    """Count keys that come and leave; say whether there are ``sub_window`` of them, or none.

    Latency: 1 cycle. Throughput: a key that comes and one that leaves per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Of the accelerator.

    Members
    -------
    restart : In(1)
        There is none from here on. Reset does the same, of two cycles at least.
    comes, leaves : In(1)
        A key comes; the oldest one leaves.
    full, vacant : Out(1)
        There are ``sub_window`` keys; there is none. From registers.
    """

    def __init__(self, parameters):
        self.parameters = parameters
        self.latency = 1
        super().__init__(
            {
                "restart": In(1),
                "comes": In(1),
                "leaves": In(1),
                "full": Out(1),
                "vacant": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        most = self.parameters.sub_window
        # Keys, but for one that came or left in the cycle before.
        held = Signal(range(most + 1), reset_less=True)
        came, left, full, vacant = (
            Signal(reset_less=True, name=name) for name in ("came", "left", "is_full", "is_vacant")
        )
        more, fewer = self.comes & ~self.leaves, ~self.comes & self.leaves
        m.d.comb += [self.full.eq(full), self.vacant.eq(vacant)]
        m.d.sync += [
            came.eq(more & ~self.restart),
            left.eq(fewer & ~self.restart),
            held.eq(held + Mux(left, -1, came)),
        ]

        def are_held(number):
            """Say whether at least so many keys are held now: in a carry chain of registers."""
            difference = Signal(signed(len(held) + 2))
            m.d.comb += difference.eq(
                held + Mux(left, -1 - number, Mux(came, 1 - number, Const(-number)))
            )
            return difference >= 0

        with m.If(more):
            m.d.sync += [full.eq(are_held(most - 1)), vacant.eq(0)]
        with m.If(fewer):
            m.d.sync += [full.eq(0), vacant.eq(~are_held(2))]
        with m.If(self.restart):
            m.d.sync += [Cat(held, full).eq(0), vacant.eq(1)]
        return m
