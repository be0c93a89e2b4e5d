# SPDX-License-Identifier: Apache-2.0
"""The memory of keys, inferred and built of primitives."""

import re

from amaranth.back import rtlil
import pytest

from hdl.fpga.devices import DEVICES
from hdl.memory.columns import KeyColumn
from hdl.verilog.conversion import to_verilog
from tests.halves import half
from tests.hdl.column_bench import exercise_column
from tests.hdl.ecp5 import ECP5


@pytest.mark.few(12)
@pytest.mark.parametrize(
    ("late", "width", "depth"),
    half(
        [False, True],
        [
            (1, 2),
            (2, 4),
            (3, 16),
            (36, 512),
            (50, 8),
            (18, 1024),
            (13, 1024),
            (9, 2048),
            (5, 4096),
            (3, 8192),
            (2, 16384),
            (3, 32768),
        ],
    ),
)
def test_a_row_reads_as_it_was_written_after_the_latency(platform, width, depth, late):
    dut = KeyColumn(width=width, depth=depth, late=late)
    assert dut.latency == KeyColumn.LATENCY == 2
    exercise_column(dut, platform, width=width, depth=depth, late=late)


@pytest.mark.parametrize(
    ("width", "depth", "blocks"),
    [
        (1, 2, 1),
        (36, 512, 1),
        (37, 512, 2),
        (64, 512, 2),
        (128, 256, 4),
        (18, 1024, 1),
        (32, 1024, 2),
        (64, 2048, 8),
        (5, 4096, 2),
        (3, 8192, 2),
        (7, 16384, 7),
        (3, 32768, 0),  # more rows than one block has bits: left to the synthesis
    ],
)
def test_on_an_ecp5_a_column_is_as_few_block_rams_as_its_bits_need(width, depth, blocks):
    text = rtlil.convert(KeyColumn(width=width, depth=depth), platform=ECP5())
    assert len(re.findall(r"cell \\DP16KD ", text)) == blocks
    assert text.count('parameter \\REGMODE_B "OUTREG"') == blocks
    assert ("memory width" in text) == (blocks == 0)


@pytest.mark.parametrize("late", [False, True])
def test_without_a_platform_there_are_no_primitives(late):
    verilog = to_verilog(KeyColumn(width=8, depth=16, late=late))
    assert "DP16KD" not in verilog
    assert ("<= write;" in verilog) == late  # it comes out of a register


def test_primitives_reach_the_verilog():
    verilog = to_verilog(KeyColumn(width=108, depth=16), platform=DEVICES["lfe5u-85f"])
    assert verilog.count("DP16KD") == 1  # three blocks share a module
    assert '.REGMODE_B("OUTREG")' in verilog
    assert len(re.findall(r"^  block_ram block_\d", verilog, re.MULTILINE)) == 3


def test_every_block_of_a_late_memory_has_registers_of_its_own():
    """They are of a component that synthesis keeps apart, so they are not merged into one."""
    device = DEVICES["lfe5u-85f"]
    late = to_verilog(KeyColumn(width=3, depth=1 << 14, late=True), platform=device)
    assert len(re.findall(r"late_block_ram\w* block_\d \(", late)) == 3
    assert "near" in re.search(r"module late_block_ram.*?endmodule", late, re.DOTALL)[0]
    assert "near" not in to_verilog(KeyColumn(width=3, depth=1 << 14), platform=device)


def test_the_last_block_of_a_late_memory_has_registers_for_the_bits_in_use():
    device = DEVICES["lfe5u-85f"]
    verilog = to_verilog(KeyColumn(width=40, depth=64, late=True), platform=device)
    body = re.search(r"module late_block_ram_2.*?endmodule", verilog, re.DOTALL)[0]
    assert "reg [3:0] near_row" in body
