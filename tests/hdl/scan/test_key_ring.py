# SPDX-License-Identifier: Apache-2.0
"""The memory of a region, inferred and built of primitives."""

import random
import re

from amaranth.back import rtlil
import pytest

from hdl.ecp5 import is_ecp5
from hdl.fpga.devices import DEVICES
from hdl.memory.block_ram import BlockRAM, fits, widest_word
from hdl.parameters import JoinParameters, KeyField
from hdl.scan.key_ring import KeyColumn, KeyRing
from hdl.verilog.conversion import to_verilog
from hdl.words.prepared import stored_layout
from tests.hdl.ecp5 import ECP5, simulate


@pytest.mark.parametrize(
    ("width", "depth"),
    [
        (1, 2), (36, 512), (50, 8), (18, 1024), (13, 1024), (9, 2048), (5, 4096), (3, 8192),
        (2, 16384), (3, 32768),
    ],
)  # fmt: skip
def test_a_column_reads_what_was_written_after_its_latency(platform, width, depth):
    dut = KeyColumn(width=width, depth=depth)
    generator = random.Random(width)
    places = [0, depth - 1, *(generator.randrange(depth) for _ in range(12))]

    async def bench(ctx):
        rows, wanted = {}, []
        for _ in range(250):
            place, row = generator.choice(places), generator.getrandbits(width)
            address, write = generator.choice(places), generator.random() < 0.6
            ctx.set(dut.write, write)
            ctx.set(dut.place, place)
            ctx.set(dut.row, row)
            ctx.set(dut.address, address)
            # A row that is written while it is read may show any value.
            wanted.append(None if write and address == place else rows.get(address))
            if write:
                rows[place] = row
            await ctx.tick()
            if len(wanted) == dut.latency:
                expected = wanted.pop(0)
                assert expected is None or ctx.get(dut.data) == expected

    assert dut.latency == 2
    simulate(dut, platform, bench)


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


def test_without_a_platform_there_are_no_primitives():
    assert "DP16KD" not in to_verilog(KeyColumn(width=8, depth=16))


def test_primitives_reach_the_verilog():
    verilog = to_verilog(KeyColumn(width=108, depth=16), platform=DEVICES["lfe5u-85f"])
    assert verilog.count("DP16KD") == 1  # three blocks share a module
    assert '.REGMODE_B("OUTREG")' in verilog
    assert len(re.findall(r"^  block_ram block_\d", verilog, re.MULTILINE)) == 3


@pytest.mark.parametrize(
    ("device", "answer"),
    [("LFE5U-85F", True), ("lfe5um5g-25f", True), ("iCE40HX8K", False), ("", False)],
)
def test_an_ecp5_is_known_by_the_name_of_its_device(device, answer):
    platform = ECP5()
    platform.device = device
    assert is_ecp5(platform) == answer
    assert not is_ecp5(None)
    assert not is_ecp5(object())


@pytest.mark.parametrize(
    ("depth", "word"),
    [(1, 36), (512, 36), (513, 18), (1024, 18), (2048, 9), (4096, 4), (8192, 2), (16384, 1)],
)
def test_a_block_ram_is_as_wide_as_its_rows_allow(depth, word):
    assert widest_word(depth) == BlockRAM(depth=depth).width == word
    assert fits(depth)
    assert BlockRAM(depth=depth).latency == KeyColumn.LATENCY


def test_too_many_rows_for_a_block_ram_go_bit_by_bit():
    assert not fits(16385)
    assert widest_word(16385) == 1


@pytest.mark.parametrize("lanes", [1, 2, 3, 4])
@pytest.mark.parametrize("bits", [7, 12, 20, 40])
def test_a_row_reads_as_it_was_written_lane_by_lane(platform, lanes, bits):
    parameters = JoinParameters(sub_window=9, lanes=lanes, keys=(KeyField(name="x", bits=bits),))
    dut = KeyRing(parameters, stored_layout(parameters))
    generator = random.Random(lanes)
    depth = parameters.ring_rows
    share = max(1, 36 // bits)  # lanes of a column
    rows = [[None] * lanes for _ in range(depth)]

    async def bench(ctx):
        wanted = []  # rows as they were when they were read
        lane = row = 0
        for _ in range(400):
            store = generator.random() < 0.7
            read = generator.randrange(depth)
            key = generator.getrandbits(bits)
            ctx.set(dut.store, store)
            ctx.set(dut.place, {"lane": lane, "row": row})
            ctx.set(dut.key, {"x": key})
            ctx.set(dut.address, read)
            column = range(lane // share * share, min((lane // share + 1) * share, lanes))
            seen = list(rows[read])
            if store:
                for n in column:  # lanes after the stored one: anything
                    if read == row % depth:
                        seen[n] = None
                    if n >= lane:
                        rows[row % depth][n] = key if n == lane else None
                lane, row = (lane + 1, row) if lane + 1 < lanes else (0, (row + 1) % (2 * depth))
            wanted.append(seen)
            await ctx.tick()
            if len(wanted) == dut.latency:
                for n, expected in enumerate(wanted.pop(0)):
                    assert expected is None or ctx.get(dut.keys[n].x) == expected
        ctx.set(dut.store, 0)
        for row, expected in enumerate(rows):
            ctx.set(dut.address, row)
            await ctx.tick().repeat(dut.latency)
            for n, key in enumerate(expected):
                assert key is None or ctx.get(dut.keys[n].x) == key

    simulate(dut, platform, bench)
