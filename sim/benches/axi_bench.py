# SPDX-License-Identifier: Apache-2.0
"""The AXI shell with its clocks and drivers, as the scenarios of its bench see it."""

from importlib import import_module
from math import gcd
from random import Random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge

from host.protocol.manifest import load_manifest
from sim.benches.settings import SETTINGS

__all__ = ["MANIFEST", "PAUSES", "REGISTERS", "SIDES", "SLAVES", "TWO_CLOCKS", "Bench"]

MANIFEST = load_manifest(SETTINGS["bundle"]) if SETTINGS else None
SHELL = MANIFEST.values["shells"]["axi"] if MANIFEST else {}
REGISTERS = {register["name"]: register for register in SHELL.get("registers", ())}
SLAVES = [name for name in SHELL.get("streams", ()) if name.startswith("s_axis")]
#: Side of each input that is merged.
SIDES = [int(name.startswith("s_axis_s")) for name in SLAVES]
MASTERS = [name for name in SHELL.get("streams", ()) if name not in SLAVES]
#: Whether the registers have a clock of their own.
TWO_CLOCKS = SHELL.get("options", {}).get("bus_clock") == "separate"
#: Probabilities of a pause: of the input, of the outputs, of the registers' master.
PAUSES = {"none": (0.0, 0.0, 0.0), "all": (0.3, 0.3, 0.3), "output": (0.0, 0.7, 0.5)}
#: Nanoseconds of a cycle of the streams, and the least and most of one of the registers' own clock.
PERIOD, BUS_PERIODS = 10, (3, 80)


class Clocked:
    """Counts clock cycles."""

    def __init__(self, dut):
        self.dut, self.cycle = dut, 0

    async def run(self):
        while True:
            await FallingEdge(self.dut.aclk)
            self.cycle += 1


class Bench:
    """Test bench of an AXI shell: the shell with its clocks, drivers and monitors.

    Drivers are those of :mod:`sim.benches.axi_drivers`, or of the module that the settings name.

    Parameters
    ----------
    dut : handle
        The shell.
    pauses : str
        One of :data:`PAUSES`.
    """

    def __init__(self, dut, pauses="none"):
        self.dut = dut
        self.clock = Clocked(dut)
        self.random = Random(f"{pauses} {SETTINGS['seed']}")
        self.bus_period = self.random.choice(
            [cycle for cycle in range(*BUS_PERIODS) if gcd(cycle, PERIOD) == 1]
        )
        self.bus_clk = dut.s_axi_aclk if TWO_CLOCKS else dut.aclk
        self.bus_resetn = dut.s_axi_aresetn if TWO_CLOCKS else dut.aresetn
        drivers = import_module(SETTINGS.get("drivers") or "sim.benches.axi_drivers")
        into, out, lite = PAUSES[pauses]
        options = {"seed": SETTINGS["seed"], "clock": self.clock}
        self.sources = [drivers.source(dut, name, pauses=into, **options) for name in SLAVES]
        self.sinks = [drivers.sink(dut, name, pauses=out, **options) for name in MASTERS]
        self.lite = drivers.registers(
            dut, self.bus_clk, self.bus_resetn, pauses=lite, seed=SETTINGS["seed"]
        )

    async def start(self):
        """Start the clocks and reset the shell for one cycle, the least that AXI allows."""
        self.dut.aresetn.value = 0
        Clock(self.dut.aclk, PERIOD, unit="ns").start()
        if TWO_CLOCKS:
            high = self.bus_period // 2
            Clock(self.bus_clk, self.bus_period, unit="ns", period_high=high).start()
            cocotb.start_soon(self.reset_bus())
        cocotb.start_soon(self.clock.run())
        await FallingEdge(self.dut.aclk)
        await FallingEdge(self.dut.aclk)
        self.dut.aresetn.value = 1

    async def reset_bus(self):
        """Reset the side of the registers, if it has a clock of its own, as shortly as it may be.

        An access that is under way is given up.
        """
        self.bus_resetn.value = 0
        self.lite.give_up()
        await FallingEdge(self.bus_clk)
        await FallingEdge(self.bus_clk)
        self.bus_resetn.value = 1

    async def send(self, source, words):
        """Send words to an input. Bits above them are anything, ``tlast`` also before the end."""
        size, bits = SHELL["streams"][SLAVES[0]]["bytes"], MANIFEST.input_word.bits
        for n, word in enumerate(words, 1):
            above = self.random.getrandbits(8 * size) >> bits << bits
            last = self.random.getrandbits(1) | (n == len(words))
            await source.send(word | above, (1 << size) - 1, last)

    def sending(self, inputs):
        """Start to send the words of every input; return the tasks."""
        pairs = zip(self.sources, inputs, strict=True)
        return [cocotb.start_soon(self.send(source, words)) for source, words in pairs]

    def all_inputs(self, words):
        """Return what the inputs bring of control words, which come at each of them."""
        return [words] * len(self.sources)

    def last_taken(self):
        """Return the cycle in which the latest word was taken; of no word the first cycle."""
        return max(source.stamps[-1] for source in self.sources if source.stamps)

    async def receive(self, sink, packets):
        """Return the words of some packets."""
        words = []
        while packets:
            word, keep, last = await sink.take()
            assert keep == (1 << SHELL["streams"][MASTERS[0]]["bytes"]) - 1
            words.append(word)
            packets -= last
        return words

    async def read(self, name):
        """Return the value of a register."""
        value, response = await self.lite.read(REGISTERS[name]["address"])
        assert response == 0
        return value

    async def count(self, name):
        """Return a counter as of the last snapshot."""
        return await self.read(f"{name}_LO") | await self.read(f"{name}_HI") << 32

    async def write(self, name, value):
        """Write a register."""
        assert await self.lite.write(REGISTERS[name]["address"], value) == 0
