# SPDX-License-Identifier: Apache-2.0
"""Shells of accelerators whose windows are in external memory."""

import pytest

from hdl.bundle import write_bundle
from hdl.memory.axi4 import BaseAddress
from hdl.parameters import JoinParameters, KeyField
from hdl.shells.uart_shell import UartShell
from hdl.verilog.lint import lint
from host.protocol.codecs import WordCodec
from host.protocol.manifest import Manifest
from sim.scenarios import assert_right, expected_results, random_scenario
from tests.hdl.axi_memory import AxiMemory
from tests.hdl.shells.shell_bench import Shell, integers, rows
from tests.host.small_bundles import write_manifest

EXTERNAL = JoinParameters.of(cores=1, store="external", memory_width=32, memory_burst=4)


def test_a_uart_shell_has_no_ports_for_external_memory():
    with pytest.raises(ValueError, match="A UART shell has no ports for the external memory"):
        UartShell(EXTERNAL, digest="0" * 64, divisor=4)


@pytest.mark.long
@pytest.mark.parametrize(
    "wait", [47, *(pytest.param(wait, marks=pytest.mark.long) for wait in (1, 40, 61))]
)
def test_a_reset_in_the_middle_of_transactions_leaves_none_behind(tmp_path, wait):
    """The memories see whole bursts, and what they answer late is nobody's row."""
    parameters = EXTERNAL.with_(
        sub_window=40, keys=(KeyField(name="x", bits=6),), memory_width=8, probes=2
    )
    path = write_manifest(parameters, tmp_path)
    scenario = random_scenario(Manifest.load(path), 11, tuples=150)
    expected = expected_results(path, scenario)
    shell = Shell(parameters, seed=wait, deadline=30_000)
    memories = [AxiMemory(axi, latency=90, stalls=0.2, seed=wait + n)
                for n, axi in enumerate(shell.dut.m_axi)]  # fmt: skip
    for memory in memories:
        memory.attach(shell.bench.simulator, shell.bench.domain)
    words, found, reset = integers(scenario.words), [], []

    async def program(ctx):
        await shell.reset(ctx)
        await shell.send(ctx, words[: len(words) // 2])
        await shell.bench.tick(ctx).repeat(wait)
        assert any(memory.is_busy for memory in memories)
        reset.append("begins")
        await shell.write(ctx, "CONTROL", 1 << 8 | 1)
        assert await shell.field(ctx, "STATUS", "RESETTING")
        while await shell.field(ctx, "STATUS", "RESETTING"):
            pass
        assert not any(memory.is_busy for memory in memories)
        reset.append("ends")
        await shell.send(ctx, words)

    async def take(ctx):
        axis = shell.outputs[0]
        while len(reset) < 2:  # results from before the reset
            ctx.set(axis.tready, 1)
            await shell.bench.tick(ctx)
        for _ in range(4):  # those that were in the output register
            await shell.bench.tick(ctx)
        ctx.set(axis.tready, 0)
        found.extend(await shell.take(ctx, scenario.marks))

    shell.bench.run(program, take)
    manifest = Manifest.load(path)
    results = WordCodec(manifest).split_words(rows(found, manifest.result_word.columns))[0]
    assert_right(path, scenario, results, expected=expected)


@pytest.mark.few(2)
@pytest.mark.parametrize("high", [False, True])
@pytest.mark.parametrize("cores", [1, 3])
def test_one_memory_serves_all_regions_from_the_base_address_on(tmp_path, cores, high):
    """What one region stores, no other one overwrites, and all of it is where the base says."""
    parameters = EXTERNAL.with_(
        cores=cores, sub_window=12, keys=(KeyField(name="x", bits=6),), memory_width=8, probes=2
    )
    place = BaseAddress.of(parameters)
    room = 1 << place.least_bit
    base = (1 << 64) - room if high else 5 * room
    path = write_manifest(parameters, tmp_path)
    scenario = random_scenario(Manifest.load(path), 11, tuples=150)
    shell, content, found = Shell(parameters, deadline=30_000), {}, []
    for axi in shell.dut.m_axi:
        AxiMemory(axi, latency=9, content=content).attach(shell.bench.simulator, shell.bench.domain)

    async def program(ctx):
        await shell.reset(ctx)
        asked = base + room - 1  # what lies below the room of all regions is ignored
        await shell.write(ctx, "MEMORY_BASE_LO", asked % (1 << 32))
        await shell.write(ctx, "MEMORY_BASE_HI", asked >> 32)
        low, high = [await shell.read(ctx, f"MEMORY_BASE_{half}") for half in ("LO", "HI")]
        assert high << 32 | low == base
        await shell.send(ctx, integers(scenario.words))

    async def take(ctx):
        found.extend(await shell.take(ctx, scenario.marks))

    shell.bench.run(program, take)
    manifest = Manifest.load(path)
    results = WordCodec(manifest).split_words(rows(found, manifest.result_word.columns))[0]
    assert_right(path, scenario, results, expected=expected_results(path, scenario))
    each = parameters.ring_rows * parameters.engine.memory_width // 8
    assert {(address - base) // each for address in content} == set(range(2 * cores))


def test_a_base_address_needs_room_for_all_regions():
    with pytest.raises(ValueError, match="64 bits"):
        EXTERNAL.with_(sub_window=1 << 62)


@pytest.mark.long
def test_the_files_of_an_axi_shell_have_the_memory_ports(tmp_path):
    manifest = write_bundle(EXTERNAL, tmp_path / "bundle", shells=["axi"])
    ports = {port["name"]: port for port in manifest["shells"]["axi"]["ports"]}
    assert ports["m_axi_1_rdata"]["bits"] == 32
    assert ports["m_axi_0_araddr"]["direction"] == "out"
    assert not lint(tmp_path / "bundle" / "splitjoin_axi.v", tmp_path / "bundle" / "splitjoin.v",
                    top="splitjoin_axi")  # fmt: skip
