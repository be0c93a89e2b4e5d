# SPDX-License-Identifier: Apache-2.0
"""Software that looks at the registers of a shell while its streams run."""

import cocotb
from cocotb.triggers import FallingEdge

from hdl.shells.axi_streams import SLVERR
from sim.benches.axi_bench import MANIFEST, REGISTERS, TWO_CLOCKS

__all__ = ["RegisterReader"]

#: CONTROL.ENABLE, and with CONTROL.SNAPSHOT.
ENABLE, SNAPSHOT = 1 << 8, 1 << 8 | 2
#: Addresses behind which there is no register.
NOWHERE = (0x010, 0x0FC, 0xFFC)


def constants():
    """Return the registers that always show the same number, with it."""
    digest = bytes.fromhex(MANIFEST.hash)
    known = {f"MANIFEST_HASH_{n}": digest[4 * n : 4 * n + 4] for n in range(len(digest) // 4)}
    known = {name: int.from_bytes(part, "little") for name, part in known.items()}
    for name, register in REGISTERS.items():
        fields = register["fields"]
        if all(field["access"] == "ro" and field["reset"] is not None for field in fields):
            known[name] = sum(field["reset"] << field["offset"] for field in fields)
    return known


class RegisterReader:
    """Random register traffic: reads, writes and resets until it is stopped, and checks answers.

    Parameters
    ----------
    bench : Bench
        The shell, whose clocks run.
    """

    def __init__(self, bench):
        self.bench, self.random = bench, bench.random
        self.constants = constants()
        self.counted = dict.fromkeys(("CYCLES", "INGRESS_BUSY", "MARKS"), 0)
        self.enabled = 0
        self.stopped = False

    def stop(self):
        """End :meth:`run` behind what it is doing."""
        self.stopped = True

    async def run(self):
        """Read every register that does not change once, and then do one thing after the other."""
        if TWO_CLOCKS:
            while not self.bench.bus_resetn.value:
                await FallingEdge(self.bench.bus_clk)
        for name in self.constants:
            await self.read_constant(name)
        steps = [self.snapshot, self.keep, self.miss, self.look]
        if TWO_CLOCKS:
            steps.append(self.reset)
        while not self.stopped:
            await self.random.choice(steps)()
        await self.bench.write("INTERRUPT_ENABLE", 0)

    async def read_constant(self, name):
        """Read a register that does not change."""
        assert await self.bench.read(name) == self.constants[name], name

    async def snapshot(self):
        """Copy the counters: they never fall, and both halves are of one moment."""
        await self.bench.write("CONTROL", SNAPSHOT)
        for name, before in self.counted.items():
            self.counted[name] = await self.bench.count(name)
            assert before <= self.counted[name] <= self.bench.clock.cycle, name

    async def keep(self):
        """Write a register, and read it and one that is beside it."""
        assert await self.bench.read("INTERRUPT_ENABLE") == self.enabled
        self.enabled = self.random.getrandbits(2)
        await self.bench.write("INTERRUPT_ENABLE", self.enabled)
        assert await self.bench.read("INTERRUPT_ENABLE") == self.enabled
        assert await self.bench.read("CONTROL") == ENABLE

    async def miss(self):
        """Access an address without a register, which is refused."""
        address = self.random.choice(NOWHERE)
        if self.random.getrandbits(1):
            assert (await self.bench.lite.read(address))[1] == SLVERR
        else:
            assert await self.bench.lite.write(address, self.random.getrandbits(32)) == SLVERR

    async def look(self):
        """Read registers that change as they like, and one that does not."""
        await self.bench.read("STATUS")
        await self.bench.read("ERRORS")
        await self.read_constant(self.random.choice(list(self.constants)))

    async def reset(self):
        """Reset the side of the bus in the middle of a read; registers keep their values."""
        name = self.random.choice(list(self.constants))
        reading = cocotb.start_soon(self.bench.read(name))
        for _ in range(self.random.randrange(1, 20)):
            await FallingEdge(self.bench.bus_clk)
        reading.cancel()
        await self.bench.reset_bus()
        await self.keep()
