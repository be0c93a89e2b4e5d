# SPDX-License-Identifier: Apache-2.0
"""The simulator side of the AXI shell's bench; :mod:`sim.benches.axi_runner` runs it."""

import json
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, ReadOnly
import numpy as np

from host.words import WordCodec
from sim.benches.accelerator import MANIFEST, SCENARIOS, SETTINGS, deadline, integers, joined
from sim.benches.axi_drivers import Channel, LiteMaster
from sim.scenarios import assert_right, expected_results, make_scenario

__all__ = []

SHELL = MANIFEST.values["shells"]["axi"] if MANIFEST else {}
REGISTERS = {register["name"]: register for register in SHELL.get("registers", ())}
MASTERS = [name for name in SHELL.get("streams", ()) if name != "s_axis"]
#: Probabilities of a pause: of the input, of the outputs, of the registers' master.
PAUSES = {"none": (0.0, 0.0, 0.0), "all": (0.3, 0.3, 0.3), "output": (0.0, 0.7, 0.5)}
#: Words in a measurement of throughput, and cycles in which a backlog of results leaves.
MEASURED = 256
#: Cycles without a word taken after which the accelerator is full.
FULL = 500
STREAM = ("data", "keep", "last")


class Clocked:
    """Counts clock cycles."""

    def __init__(self, dut):
        self.dut, self.cycle = dut, 0

    async def run(self):
        while True:
            await FallingEdge(self.dut.aclk)
            self.cycle += 1


class Bench:
    """The shell with its drivers."""

    def __init__(self, dut, pauses="none"):
        self.dut = dut
        self.clock = Clocked(dut)
        into, out, lite = PAUSES[pauses]
        seed = SETTINGS["seed"]
        common = {"seed": seed, "clock": self.clock}
        self.source = Channel(dut, "s_axis_t", STREAM, pauses=into, **common)
        self.sinks = [Channel(dut, f"{name}_t", STREAM, pauses=out, **common) for name in MASTERS]
        self.source.valid.value = 0
        for sink in self.sinks:
            sink.ready.value = 0
        self.lite = LiteMaster(dut, pauses=lite, seed=seed)

    async def start(self):
        """Start the clock and reset the shell for one cycle, the least that AXI allows."""
        self.dut.aresetn.value = 0
        Clock(self.dut.aclk, 10, unit="ns").start()
        cocotb.start_soon(self.clock.run())
        await FallingEdge(self.dut.aclk)
        await FallingEdge(self.dut.aclk)
        self.dut.aresetn.value = 1

    async def send(self, words):
        """Send words. Bits above them, and ``tlast``, are anything."""
        size, bits = SHELL["streams"]["s_axis"]["bytes"], MANIFEST.input_word.bits
        for word in words:
            above = self.source.random.getrandbits(8 * size) >> bits << bits
            last = self.source.random.getrandbits(1)
            await self.source.send(word | above, (1 << size) - 1, last)

    async def receive(self, sink, packets):
        """Return the words of some packets."""
        words = []
        while packets:
            word, keep, last = await sink.take()
            assert keep == (1 << len(sink.payload[1])) - 1
            words.append(word)
            packets -= last
        return words

    async def read(self, name):
        """Return the value of a register."""
        value, response = await self.lite.read(REGISTERS[name]["address"])
        assert response == 0
        return value

    async def write(self, name, value):
        """Write a register."""
        assert await self.lite.write(REGISTERS[name]["address"], value) == 0


@cocotb.test()
@cocotb.parametrize(scenario=SCENARIOS, pauses=list(PAUSES))
async def shell_joins(dut, scenario, pauses):
    """Every scenario gives the answer of the reference join, while registers are read as well."""
    bench = Bench(dut, pauses)
    made = make_scenario(MANIFEST, scenario, tuples=SETTINGS["tuples"], seed=SETTINGS["seed"])
    expected = expected_results(SETTINGS["bundle"], made)
    await bench.start()
    for channel in (bench.source, *bench.sinks):
        channel.deadline = deadline(made, len(expected))
    sent = cocotb.start_soon(bench.send(integers(made.words)))
    received = [cocotb.start_soon(bench.receive(sink, made.marks)) for sink in bench.sinks]
    digest = [await bench.read(f"MANIFEST_HASH_{n}") for n in range(8)]
    assert b"".join(word.to_bytes(4, "little") for word in digest).hex() == MANIFEST.hash
    await sent
    results = joined([await words for words in received])
    assert_right(SETTINGS["bundle"], made, results, expected=expected)
    await bench.write("CONTROL", 1 << 8 | 2)
    counted = {
        name: await bench.read(f"{name}_LO") | await bench.read(f"{name}_HI") << 32
        for name in ("MARKS", "INGRESS_BUSY", "CYCLES")
    }
    assert counted["MARKS"] == made.marks
    assert counted["INGRESS_BUSY"] == len(made.words)
    assert 0 < counted["CYCLES"] < bench.clock.cycle
    assert await bench.read("STATUS") == 0
    assert await bench.read("INTERRUPT_STATUS") & 1
    assert (await bench.read("ERRORS") != 0) >= made.faulty


def control(name, index=0, value=0):
    """Return a control word as an integer."""
    return integers(WordCodec(MANIFEST).pack_control(name, index, value))[0]


@cocotb.test()
async def shell_is_as_fast_as_stated(dut):
    """Measure words per cycle in and out, and the cycles that the shell adds."""
    bench = Bench(dut)
    await bench.start()
    inner = dut.accelerator.splitjoin
    result = MANIFEST.result_ports[0]
    seen = {}

    async def watch():
        """Note the cycles in which the first word enters and leaves the accelerator."""
        while "out" not in seen:
            await ReadOnly()
            if inner.i_valid.value and inner.i_ready.value:
                seen.setdefault("in", bench.clock.cycle)
            if getattr(inner, f"{result}_valid").value:
                seen.setdefault("out", bench.clock.cycle)
            await FallingEdge(dut.aclk)

    # The shell has taken nothing yet, and the accelerator is idle.
    for _ in range(64):
        await FallingEdge(dut.aclk)
    watching = cocotb.start_soon(watch())
    await bench.send([control("FLUSH")])
    await bench.receive(bench.sinks[0], 1)
    for sink in bench.sinks[1:]:
        await bench.receive(sink, 1)
    await watching
    before = seen["in"] - bench.source.stamps[0]
    behind = bench.sinks[0].stamps[0] - seen["out"]

    # Illegal words are those that the accelerator takes in every cycle, because it drops them.
    bench.source.stamps.clear()
    place = MANIFEST.input_word["control.op"]
    assert 15 not in MANIFEST.operations.values()
    await bench.send([control("FLUSH") | 15 << place.offset] * MEASURED)
    into = (MEASURED - 1) / (bench.source.stamps[-1] - bench.source.stamps[0])
    out = await saturated(bench)
    measured = {"in": into, "out": out, "before": before, "behind": behind}
    Path(SETTINGS["coverage"]).write_text(json.dumps(measured))
    assert into == out == 1
    assert before + behind <= 6


async def saturated(bench):
    """Return words per cycle out of the first port while results wait for it."""
    count = 8 * MEASURED
    fields = {key.name: np.zeros(count, np.int64) for key in MANIFEST.keys}
    times = np.zeros(count, np.uint64)
    words = WordCodec(MANIFEST).pack_tuples(np.arange(count) % 2, fields, times)
    sending = cocotb.start_soon(bench.send(integers(words)))
    # When no word is taken for some time, the accelerator is full of results.
    while bench.clock.cycle - bench.source.stamps[-1] < FULL:
        assert not sending.done()
        await FallingEdge(bench.dut.aclk)

    async def drain(sink):
        while True:
            await sink.take()

    # A port that is not read would stop the other one after some time.
    others = [cocotb.start_soon(drain(sink)) for sink in bench.sinks[1:]]
    sink = bench.sinks[0]
    sink.stamps.clear()
    for _ in range(MEASURED):
        await sink.take()
    for task in (sending, *others):
        task.cancel()
    return (MEASURED - 1) / (sink.stamps[-1] - sink.stamps[0])
