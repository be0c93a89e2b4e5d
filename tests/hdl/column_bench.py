# SPDX-License-Identifier: Apache-2.0
"""A memory that is read and written in every cycle, against a plain list of rows."""

import random

from tests.hdl.ecp5 import simulate

__all__ = ["exercise_column"]


def exercise_column(dut, platform, *, width, depth, late=False, cycles=250):
    """Write and read random rows; every row that is read must be the one that was written last.

    Parameters
    ----------
    dut : Component
        With the members and the ``latency`` of a :class:`hdl.memory.columns.KeyColumn`.
    platform : object
        What the component is elaborated for.
    width, depth : int
        Bits of a row that are used; rows.
    late : bool
        A row is written a cycle late.
    cycles : int
        Length of the simulation. A row is read in every cycle, and written in most.
    """
    generator = random.Random(f"{width} {depth} {late}")
    places = [0, depth - 1, *(generator.randrange(depth) for _ in range(12))]
    place = generator.choice(places)
    rows, compared = {}, 0
    arriving = [None] * late  # places and rows on their way to the memory
    expected = [None] * dut.latency

    async def bench(ctx):
        nonlocal place, compared
        for _ in range(cycles):
            due = expected.pop(0)
            if due is not None:
                assert ctx.get(dut.data) == due
                compared += 1
            # A row is often read right after it was written, or while it is.
            address = generator.choice([place, *places])
            place, row = generator.choice([place, *places]), generator.getrandbits(width)
            write = generator.random() < 0.6
            ctx.set(dut.write, write)
            ctx.set(dut.place, place)
            ctx.set(dut.row, row)
            ctx.set(dut.address, address)
            arriving.append((place, row) if write else None)
            written = arriving.pop(0)
            # A row that is written while it is read may show any value.
            hit = written is not None and written[0] == address
            expected.append(None if hit else rows.get(address))
            if written is not None:
                rows[written[0]] = written[1]
            await ctx.tick()

    simulate(dut, platform, bench)
    assert compared > cycles // 4
