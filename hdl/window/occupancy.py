# SPDX-License-Identifier: Apache-2.0
"""Whether a region has room for another key."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Occupancy"]


class Occupancy(wiring.Component):
    """Count the keys of a region, and say whether there are ``sub_window`` of them or none.

    Latency: 1 cycle. Throughput: 1 key that comes and 1 key that leaves per cycle.

    Parameters
    ----------
    parameters : JoinParameters
        Parameters of the accelerator.

    Members
    -------
    restart : In(1)
        Start with no key. A reset of at least two cycles has the same effect.
    comes, leaves : In(1)
        A key comes; the oldest key leaves.
    full, vacant : Out(1)
        The region holds ``sub_window`` keys; it holds none. Both come from registers.
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
        # Number of keys. A key that came or left in the previous cycle is not counted yet.
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
            """Return whether at least ``number`` keys are held now, by one carry chain."""
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
