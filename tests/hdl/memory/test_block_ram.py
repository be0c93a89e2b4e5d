# SPDX-License-Identifier: Apache-2.0
"""The primitive of an ECP5, with what Yosys says of its pins in its place."""

import pytest

from hdl.memory import columns as block_ram
from hdl.memory.columns import BlockRAM, KeyColumn, LateBlockRAM, fits, widest_word
from tests.hdl.column_bench import exercise_column
from tests.hdl.ecp5 import DP16KD, simulate

#: Rows, and how wide they are at the most.
SHAPES = [
    (1, 36), (2, 36), (512, 36), (513, 18), (1024, 18), (2048, 9), (4096, 4), (8192, 2), (16384, 1)
]  # fmt: skip


@pytest.fixture(autouse=True)
def modelled(monkeypatch):
    monkeypatch.setattr(block_ram, "Instance", DP16KD)


@pytest.mark.parametrize(("depth", "word"), SHAPES)
def test_a_block_is_as_wide_as_its_rows_allow(depth, word):
    assert fits(depth)
    assert widest_word(depth) == BlockRAM(depth=depth).width == word
    assert LateBlockRAM(depth=depth, width=1).width == word


def test_too_many_rows_for_a_block_go_bit_by_bit():
    assert not fits(16385)
    assert widest_word(16385) == 1


@pytest.mark.few(5)
@pytest.mark.parametrize(("depth", "word"), SHAPES)
def test_a_row_reads_as_it_was_written_after_the_latency(depth, word):
    dut = BlockRAM(depth=depth)
    assert dut.latency == KeyColumn.LATENCY == 2
    exercise_column(dut, None, width=word, depth=depth)


@pytest.mark.parametrize(
    ("depth", "used"),
    [(16, 1), (512, 2), (512, 7), (512, 36), (1024, 18), (1024, 3), (4096, 3), (16384, 1)],
)
def test_a_late_block_writes_a_cycle_later_and_reads_as_early(depth, used):
    dut = LateBlockRAM(depth=depth, width=used)
    assert dut.latency == BlockRAM(depth=depth).latency
    exercise_column(dut, None, width=used, depth=depth, late=True)


def test_bits_that_a_late_block_does_not_use_are_zero():
    dut = LateBlockRAM(depth=512, width=7)

    async def bench(ctx):
        ctx.set(dut.write, 1)
        ctx.set(dut.row, (1 << 36) - 1)
        await ctx.tick()
        ctx.set(dut.write, 0)
        await ctx.tick()  # in this cycle the row is written
        await ctx.tick().repeat(dut.latency)
        assert ctx.get(dut.data) == (1 << 7) - 1

    simulate(dut, None, bench)
