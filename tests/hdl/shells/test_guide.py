# SPDX-License-Identifier: Apache-2.0
"""What docs/axi.md says of words, registers and cycles is so."""

from pathlib import Path
import re

import pytest

from hdl.families.family import input_names
from hdl.manifest import describe
from hdl.presets import PRESETS
from hdl.registers.file import CounterSnapshot
from hdl.registers.table import MAGIC, shell_table
from hdl.shells.axi import AxiOptions, AxiShell
from hdl.shells.axi_streams import AxiLiteSlave
from hdl.shells.bus_crossing import PATIENCE, BusCrossing
from hdl.silence import longest_silence
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


def test_fields_are_where_the_guide_has_them(guide):
    manifest = describe(TINY, "", verilog_file="splitjoin.v")
    rows = re.findall(r"^\| ((?:`[\w.]+`(?:, )?)+) \| ([\d:, ]+) \|", guide, re.MULTILINE)
    stated = {"input_word": {}, "result_word": {}}
    for names, places in rows:
        for name, place in zip(re.findall(r"`([\w.]+)`", names), places.split(", "), strict=True):
            top, _, bottom = place.strip().partition(":")
            word = "input_word" if name not in stated["input_word"] else "result_word"
            if name in manifest["result_word"]["fields"] and name != "kind":
                word = "result_word"
            stated[word][name] = (int(bottom or top), int(top) - int(bottom or top) + 1)
    for word, fields in stated.items():
        actual = {
            name: (field["offset"], field["bits"])
            for name, field in manifest[word]["fields"].items()
            if field["bits"]
        }
        assert fields == actual, word
        assert f"has {manifest[word]['bits']} bits" in guide


def test_registers_are_where_the_guide_has_them(guide):
    # Two inputs have all registers of one input, and their merge's; many have masks in addition.
    table = shell_table(TINY.with_(cores=512, clock_requests=True), merged=("R", "S"))
    many = shell_table(TINY, merged=input_names(64))
    rows = re.findall(r"^\| (0x\d+[0-9A-Fx, to]*) \| ([A-Z_0-9, to]+) \|", guide, re.MULTILINE)
    stated = {}
    for addresses, names in rows:
        if " to " in addresses:
            first, _, last = names.partition(" to ")
            names = f"{first} to {first.rpartition('_')[0]}_{last}"
        for address, name in zip(
            re.split(", | to ", addresses), re.split(", | to ", names), strict=True
        ):
            stated[name.strip()] = int(address, 16)
    names = {register.name for register in table.registers}
    actual = {name: (table if name in names else many)[name].address for name in stated}
    assert actual == stated
    assert many["STALLS_S31"].address == 0x400 + 4 * 63
    assert {"ID", "CONTROL", "ERRORS", "INTERRUPT_STATUS", "MANIFEST_HASH_7"} <= set(stated)
    assert f"`0x{MAGIC:08X}`" in guide
    assert table["CYCLES_LO"].address == 0x100


def test_cycles_are_those_of_the_guide(guide):
    parity = TINY.with_(failure_cycles=longest_silence(TINY), parity=True)
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
