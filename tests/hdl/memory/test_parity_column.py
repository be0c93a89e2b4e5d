# SPDX-License-Identifier: Apache-2.0
"""A memory with parity: what it reads, and which flipped bits it tells."""

import random
import re

from amaranth.back import rtlil
from hypothesis import given, settings
from hypothesis import strategies as st
import pytest

from hdl.memory.columns import PART_BITS, KeyColumn, ParityColumn, parity_width, stored_column
from hdl.parameters import JoinParameters
from hdl.verilog.conversion import to_netlist, to_verilog
from tests.halves import half
from tests.hdl.column_bench import exercise_column
from tests.hdl.ecp5 import ECP5, simulate
from tests.hdl.flipping_column import flip_columns


@pytest.mark.few(6)
@pytest.mark.parametrize(
    ("late", "width", "depth", "part"),
    half([False, True], [(1, 2, 1), (2, 4, 1), (3, 4, 2), (4, 8, 32), (33, 16, 32), (50, 8, 5)]),
)
def test_a_row_reads_as_it_was_written_after_the_latency(platform, width, depth, part, late):
    dut = ParityColumn(width=width, depth=depth, part=part, late=late)
    assert dut.latency == KeyColumn.LATENCY
    exercise_column(dut, platform, width=width, depth=depth, late=late)


@pytest.mark.parametrize("late", [False, True])
def test_nothing_is_told_of_rows_that_are_as_they_were_written(platform, late):
    """Rows that were never written, and rows that are written while they are read, count too."""
    dut, generator = ParityColumn(width=7, depth=4, part=3, late=late), random.Random(late)

    async def bench(ctx):
        ctx.set(dut.checked, 1)
        for _ in range(300):
            ctx.set(dut.write, generator.randrange(2))
            ctx.set(dut.place, generator.randrange(4))
            ctx.set(dut.address, generator.randrange(4))
            ctx.set(dut.row, generator.getrandbits(7))
            await ctx.tick()
            assert not ctx.get(dut.wrong)

    simulate(dut, platform, bench)


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_an_odd_number_of_flips_in_a_part_is_told(data):
    width, part = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 9))
    late = data.draw(st.booleans())
    bits = width + parity_width(width, part)
    dut = ParityColumn(width=width, depth=4, part=part, late=late)
    generator = random.Random(data.draw(st.integers(0, 999)))
    with pytest.MonkeyPatch.context() as monkeypatch:
        columns = flip_columns(monkeypatch)

        def is_wrong(flips):
            row, parity = flips & (1 << width) - 1, flips >> width
            return any(
                (row >> part * n & (1 << part) - 1).bit_count() % 2 != parity >> n & 1
                for n in range(parity_width(width, part))
            )

        async def bench(ctx):
            (column,) = columns
            reads, near = [], (0, 0)
            for cycle in range(60):
                write, place = generator.randrange(2), generator.randrange(4)
                address, checked = generator.randrange(4), generator.randrange(4) > 0
                # The row that was read two cycles ago is at the output.
                flips = generator.choice(
                    [0, 1 << generator.randrange(bits), generator.getrandbits(bits)]
                )
                ctx.set(column.flips, flips)
                for name, value in {
                    "write": write, "place": place, "address": address, "checked": checked,
                    "row": generator.getrandbits(width),
                }.items():  # fmt: skip
                    ctx.set(getattr(dut, name), value)
                near, now = (write, place), near if late else (write, place)
                reads.append(checked and now != (1, address))
                await ctx.tick()
                if cycle >= dut.latency:
                    assert ctx.get(dut.wrong) == (reads[-1 - dut.latency] and is_wrong(flips))

        simulate(dut, None, bench)


@pytest.mark.parametrize(
    ("width", "depth", "part", "blocks"), [(32, 512, 16, 1), (64, 512, 32, 2), (8, 2048, 8, 1)]
)
def test_parity_takes_the_bits_of_a_block_that_are_left(width, depth, part, blocks):
    text = rtlil.convert(ParityColumn(width=width, depth=depth, part=part), platform=ECP5())
    assert len(re.findall(r"cell \\DP16KD ", text)) == blocks


def test_at_most_32_bits_share_a_parity_bit():
    assert [parity_width(width) for width in (1, PART_BITS, PART_BITS + 1, 100)] == [1, 1, 2, 4]
    assert parity_width(64, 64) == 2


def test_only_an_accelerator_with_parity_has_it():
    parameters = JoinParameters.of()
    assert isinstance(stored_column(parameters, width=3, depth=4), KeyColumn)
    parameters = parameters.with_(failure_cycles=parameters.longest_silence, parity=True)
    assert isinstance(stored_column(parameters, width=3, depth=4, late=True), ParityColumn)


def test_the_memory_begins_with_zeros_in_verilog_and_in_the_netlist():
    verilog, netlist = to_netlist(ParityColumn(width=6, depth=8))
    assert "initial for (zeroed_row = 0; zeroed_row < 8; zeroed_row = zeroed_row + 4'h1)" in verilog
    assert "zeroed[zeroed_row[2:0]] = 7'h0;" in verilog
    assert '"INIT":"0"' in netlist
    plain, netlist = to_netlist(KeyColumn(width=6, depth=8))
    assert "initial for" not in plain
    assert '"INIT":"x"' in netlist
    assert "initial for" not in to_verilog(KeyColumn(width=6, depth=8))
