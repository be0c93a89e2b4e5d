# SPDX-License-Identifier: Apache-2.0
"""Whether a ring has room, told from registers."""

from amaranth import *

from .layouts import place_shape

__all__ = ["RING_RESERVE", "ring_room"]

#: Rows that are left free: what is stored before a register says that there is no room, and what a
#: pass may need that has not reached its queue.
RING_RESERVE = 9


def ring_room(m, parameters, head, kept, name):
    """Return a register that says whether rows from ``kept`` up to ``head`` leave room."""
    room = Signal(init=1, name=name)
    used = Signal(place_shape(parameters), name=f"{name}_used")
    m.d.comb += used.eq(head - kept)
    # While `kept` runs ahead of a head that waits for tuples that have expired, there is nothing.
    limit = parameters.ring_rows - RING_RESERVE
    m.d.sync += room.eq((used < limit) | (used >= 2 * parameters.ring_rows - RING_RESERVE))
    return room
