# SPDX-License-Identifier: Apache-2.0
"""What docs/axi.md says of words, registers and cycles is so."""

from pathlib import Path
import re

import pytest

from hdl.manifest import describe
from hdl.presets import PRESETS
from hdl.registers.file import CounterSnapshot
from hdl.registers.table import MAGIC
from hdl.shells.axi import AxiOptions, AxiShell
from hdl.shells.axi_streams import AxiLiteSlave
from hdl.shells.bus_crossing import PATIENCE, BusCrossing
from tests.hdl.shells.test_axi import HASH, Shell

TINY = PRESETS["tiny"]


@pytest.fixture(scope="module")
def guide():
    return (Path(__file__).parents[3] / "docs" / "axi.md").read_text()


def words_of(guide, name):
    text = re.search(rf"<!-- words: {name} -->\n```text\n(.*?)```", guide, re.DOTALL)[1]
    return [(int(line.split()[0], 16), "(tlast)" in line) for line in text.splitlines()]


def test_the_first_transfer_is_what_comes_out(guide):
    shell = Shell(TINY)
    sent, expected = words_of(guide, "in"), words_of(guide, "out")
    found = []

    async def send(ctx):
        await shell.reset(ctx)
        await shell.send(ctx, [word for word, _ in sent])

    async def take(ctx):
        axis = shell.dut.m_axis
        signals = axis.tdata, axis.tlast
        for _ in expected:
            found.append(await shell.bench.take(ctx, axis.tvalid, axis.tready, *signals))

    shell.bench.run(send, take)
    assert found == [[word, int(last)] for word, last in expected]


def test_sizes_and_identity_are_those_of_the_guide(guide):
    manifest = describe(TINY, "", verilog_file="splitjoin.v")
    for word in ("input_word", "result_word"):
        assert f"has {manifest[word]['bits']} bits" in guide
    assert f"`0x{MAGIC:08X}`" in guide


def test_cycles_are_those_of_the_guide(guide):
    parity = TINY.with_(failure_cycles=TINY.longest_silence, parity=True)
    assert f"at most {CounterSnapshot(parity).latency} cycles" in guide
    assert f"| cycles from a read request to its answer | {AxiLiteSlave().latency} |" in guide
    assert AxiShell(TINY, digest=HASH).latency == 2
    assert AxiShell(TINY, digest=HASH, options=AxiOptions(inputs=2)).latency == 8
    assert "| … with two inputs | 7 and 1 |" in guide
    assert AxiShell(TINY, digest=HASH, options=AxiOptions(inputs=8)).latency == 14
    assert "| … with eight inputs | 13 and 1 |" in guide
    crossing = BusCrossing()
    assert f"{crossing.bus_latency} cycles of `s_axi_aclk` and {crossing.latency} of" in guide
    assert f"SLVERR after {PATIENCE:,} cycles" in guide
    assert "in front of the accelerator, and behind it | 1 and 1 |" in guide
