# SPDX-License-Identifier: Apache-2.0
import random

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
import pytest

from bench.handshake import LOW_LATENCY
from bench.handshake.layouts import RING_RESERVE, place_shape, ring_room
from hdl.parameters import JoinParameters
from tests.hdl.cycles import each_cycle


class Ring(wiring.Component):
    """A head and what is kept of a ring, and whether it has room."""

    def __init__(self, parameters):
        self.parameters = parameters
        place = place_shape(parameters)
        super().__init__({"head": In(place), "kept": In(place), "room": Out(1)})

    def elaborate(self, platform):
        m = Module()
        room = ring_room(m, self.parameters, self.head, self.kept, "room_r")
        m.d.comb += self.room.eq(room)
        return m


def parameters_of(sub_window):
    return JoinParameters.of(cores=3, sub_window=sub_window, architecture=LOW_LATENCY)


@pytest.mark.parametrize("sub_window", [1, 2, 3, 4, 15, 16])
def test_room_is_that_of_a_cycle_ago_and_ends_before_the_reserve(sub_window):
    """Every distance that a ring can have, also while ``kept`` is ahead of the head."""
    parameters = parameters_of(sub_window)
    rows, generator = parameters.ring_rows, random.Random(sub_window)
    distances = list(range(1 - RING_RESERVE, rows + 1))
    generator.shuffle(distances)

    def steps(put, get):
        assert get("room")  # after reset the ring is empty
        before = 0
        for used in distances:
            kept = generator.randrange(2 * rows)
            put(kept=kept, head=(kept + used) % (2 * rows))
            assert get("room") == (before < rows - RING_RESERVE)
            before = used
            yield
        assert get("room") == (before < rows - RING_RESERVE)

    each_cycle(Ring(parameters), steps)
