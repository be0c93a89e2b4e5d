# SPDX-License-Identifier: Apache-2.0
import random

from amaranth import *
import pytest

from hdl.memory.read_ahead import ReadAhead
from tests.halves import half
from tests.hdl.cycles import each_cycle
from tests.hdl.hostile_column import HostileColumn


class Ring(Elaboratable):
    """A memory that is read ahead."""

    def __init__(self, depth):
        self.ahead = ahead = ReadAhead(unsigned(8), depth=depth)
        self.column = column = HostileColumn(width=8, depth=depth)
        self.write, self.place, self.row = column.write, column.place, column.row
        self.head = ahead.head
        self.filled, self.first, self.take = ahead.filled, ahead.first, ahead.take

    def elaborate(self, platform):
        m = Module()
        m.submodules.ahead = self.ahead
        m.submodules.column = self.column
        m.d.comb += [
            self.column.address.eq(self.ahead.address),
            self.ahead.row.eq(self.column.data),
        ]
        return m


@pytest.mark.few(2)
@pytest.mark.parametrize(("depth", "pace"), half([1, 2, 8, 32], [0.3, 1.0]))
def test_rows_are_read_in_order_and_at_once(depth, pace):
    generator = random.Random(depth)
    dut = Ring(depth)

    def steps(put, get):
        rows = []  # row, and the cycle from which it could be read
        taken = 0
        for cycle in range(1_500):
            waiting = taken < len(rows) and cycle >= rows[taken][1] + dut.ahead.latency
            if waiting or get("filled"):
                assert get("filled")
                assert get("first") == rows[taken][0]
            take = get("filled") and generator.random() < pace
            room = len(rows) - taken < depth
            write = room and generator.random() < pace
            put(take=take, write=write, head=len(rows) % (2 * depth))
            put(place=len(rows) % depth, row=generator.randrange(256))
            if write:
                rows.append((get("row"), cycle + 1))
            yield
            taken += take
        assert taken > 150

    each_cycle(dut, steps)


def test_a_row_a_cycle_is_read():
    dut = Ring(32)

    def steps(put, get):
        for n in range(200):
            put(write=1, place=n % 32, row=n % 256, head=n % 64, take=get("filled"))
            if n > dut.ahead.latency:
                assert get("filled")
                assert get("first") == n - dut.ahead.latency - 1
            yield

    each_cycle(dut, steps)
