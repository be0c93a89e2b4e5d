# SPDX-License-Identifier: Apache-2.0
"""Memories that are written a cycle late, out of registers beside every block."""

import random
import re

import pytest

from hdl.fpga.devices import DEVICES
from hdl.memory.block_ram import BlockRAM, LateBlockRAM
from hdl.memory.key_column import KeyColumn
from hdl.verilog.conversion import to_verilog
from tests.hdl.cycles import each_cycle


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize(("width", "depth"), [(1, 2), (7, 8), (36, 16)])
def test_a_row_is_there_a_cycle_later_if_it_is_written_late(width, depth, late):
    generator = random.Random(width)
    dut = KeyColumn(width=width, depth=depth, late=late)
    rows, waiting, expected = {}, [], []

    def steps(put, get):
        for _ in range(300):
            if len(expected) == KeyColumn.LATENCY:
                due = expected.pop(0)
                assert due is None or get("data") == due
            write = generator.random() < 0.5
            place, row = generator.randrange(depth), generator.randrange(1 << width)
            address = generator.randrange(depth)
            put(write=write, place=place, row=row, address=address)
            waiting.append((place, row) if write else None)
            written = waiting.pop(0) if len(waiting) > late else None
            hit = written is not None and written[0] == address
            expected.append(None if hit else rows.get(address))
            if written is not None:
                rows[written[0]] = written[1]
            yield

    each_cycle(dut, steps)


def test_every_block_of_a_late_memory_has_registers_of_its_own():
    """They are of a component that synthesis keeps apart, so they are not merged into one."""
    device = DEVICES["lfe5u-85f"]
    late = to_verilog(KeyColumn(width=3, depth=1 << 14, late=True), platform=device)
    assert len(re.findall(r"late_block_ram\w* block_\d \(", late)) == 3
    assert "near" in re.search(r"module late_block_ram.*?endmodule", late, re.DOTALL)[0]
    assert "near" not in to_verilog(KeyColumn(width=3, depth=1 << 14), platform=device)


def test_a_row_need_not_fill_the_block():
    device = DEVICES["lfe5u-85f"]
    verilog = to_verilog(KeyColumn(width=40, depth=64, late=True), platform=device)
    body = re.search(r"module late_block_ram_2.*?endmodule", verilog, re.DOTALL)[0]
    assert "reg [3:0] near_row" in body


def test_it_is_read_as_late_as_any_other():
    assert (
        LateBlockRAM(depth=512, width=7).latency == BlockRAM(depth=512).latency == KeyColumn.LATENCY
    )
    assert LateBlockRAM(depth=512, width=7).width == BlockRAM(depth=512).width == 36
