# SPDX-License-Identifier: Apache-2.0
"""A kernel of Vitis in Amaranth's simulator, with memories behind it: a stand-in of pyxrt.

It has what :mod:`host.devices.kernel` uses of XRT's Python binding. A run writes the registers that
``kernel.xml`` names, and waits until ap_done; buffers are copied to the memories and back only when
they are synchronized.
"""

from collections import deque

from amaranth.hdl import ClockDomain, ClockSignal, Module
from amaranth.sim import Simulator
import numpy as np

from hdl.shells.vitis_kernel import ARGUMENTS, VitisKernel
from tests.hdl.axi_memory import AxiMemory

__all__ = ["Xrt"]

#: Cycles that a run may take beside those that it is given.
DEADLINE = 4000
#: Addresses of the first buffer in each memory.
PLACES = (0x4_0000_0000, 0x8_0000_0000)
ENDED = 1 << 1


class Xrt:
    """The module pyxrt, whose only device has a kernel.

    Parameters
    ----------
    parameters, digest
        Of :class:`hdl.shells.vitis_kernel.VitisKernel`.
    stalls : float
        Probability that a channel of a memory pauses in a cycle.
    latency : int
        Cycles of the memories.
    fails : callable
        Whether a burst at an address is answered with an error.
    """

    class xclBOSyncDirection:
        """Directions."""

        XCL_BO_SYNC_BO_TO_DEVICE, XCL_BO_SYNC_BO_FROM_DEVICE = "to", "from"

    def __init__(self, parameters, digest, *, stalls=0.0, latency=7, fails=lambda address: False):
        self.dut = VitisKernel(parameters, digest=digest)
        top = Module()
        top.domains.outside = ClockDomain(reset_less=True)
        top.submodules.dut = self.dut
        top.d.comb += self.dut.ap_clk.eq(ClockSignal("outside"))
        self.simulator = Simulator(top)
        self.simulator.add_clock(1e-6, domain="outside")
        ports = self.dut.m_axi_words, self.dut.m_axi_results
        options = {"stalls": stalls, "latency": latency, "fails": fails}
        self.memories = [AxiMemory(port, seed=n, **options) for n, port in enumerate(ports)]
        for memory in self.memories:
            memory.attach(self.simulator, "outside")
        self.tasks, self.answers, self.cycle = deque(), deque(), 0
        self.free = list(PLACES)
        self.simulator.add_testbench(self.serve, background=True)
        self.do("reset")

    def do(self, *task):
        """Do something in the simulation, and return what it has answered."""
        self.tasks.append(task)
        while not self.answers:
            self.simulator.advance()
        return self.answers.popleft()

    async def serve(self, ctx):
        """Do one task after the other."""
        while True:
            if not self.tasks:
                await ctx.tick("outside")
                continue
            what, *values = self.tasks.popleft()
            self.answers.append(await getattr(self, f"_{what}")(ctx, *values))

    async def _reset(self, ctx):
        await ctx.tick("outside")
        ctx.set(self.dut.ap_rst_n, 1)
        await ctx.tick("outside")

    async def _pass(self, ctx, channel, **payload):
        axi = self.dut.s_axi_control
        for name, value in payload.items():
            ctx.set(getattr(axi, name), value)
        ctx.set(getattr(axi, f"{channel}valid"), 1)
        await ctx.tick("outside").until(getattr(axi, f"{channel}ready"))
        ctx.set(getattr(axi, f"{channel}valid"), 0)

    async def _write(self, ctx, address, value):
        axi = self.dut.s_axi_control
        await self._pass(ctx, "aw", awaddr=address)
        await self._pass(ctx, "w", wdata=value, wstrb=15)
        ctx.set(axi.bready, 1)
        (answer,) = await ctx.tick("outside").sample(axi.bresp).until(axi.bvalid)
        ctx.set(axi.bready, 0)
        return answer

    async def _read(self, ctx, address):
        axi = self.dut.s_axi_control
        await self._pass(ctx, "ar", araddr=address)
        ctx.set(axi.rready, 1)
        value, answer = await ctx.tick("outside").sample(axi.rdata, axi.rresp).until(axi.rvalid)
        ctx.set(axi.rready, 0)
        return value if answer == 0 else None

    async def _run(self, ctx, arguments):
        for (_, address, bits, _), value in zip(ARGUMENTS, arguments, strict=True):
            for n in range(bits // 32):
                assert await self._write(ctx, address + 4 * n, value >> 32 * n & 0xFFFFFFFF) == 0
        await self._write(ctx, 0, 1)
        for _ in range(DEADLINE):
            if await self._read(ctx, 0) & ENDED:
                return True
        raise TimeoutError("the kernel has not ended")

    # What a host program sees.

    def device(self, number):
        """Return the device."""
        assert number == 0
        return self

    def xclbin(self, file):
        """Return what is in a file."""
        return file

    def load_xclbin(self, xclbin):
        """Load it; return its identifier."""
        return xclbin

    def kernel(self, device, identifier, name):
        """Return the kernel."""
        assert (device, name) == (self, "splitjoin_kernel")
        return Kernel(self)

    @property
    def bo(self):
        """What makes buffers, which has their kinds, too."""
        return Buffers(self)


class Buffers:
    """The class of buffers."""

    normal = 0

    def __init__(self, xrt):
        self.xrt = xrt

    def __call__(self, device, size, flags, group):
        assert (device, flags) == (self.xrt, self.normal)
        return Buffer(self.xrt, size, group)


class Kernel:
    """The kernel, which is called with its arguments."""

    def __init__(self, xrt):
        self.xrt = xrt

    def group_id(self, argument):
        """Return the memory of an argument, by its number."""
        return {0: 0, 2: 1}[argument]

    def __call__(self, *arguments):
        values = [each.address if isinstance(each, Buffer) else each for each in arguments]
        return Run(self.xrt, values)


class Run:
    """A run, which takes place when it is waited for."""

    def __init__(self, xrt, values):
        self.xrt, self.values = xrt, values

    def wait(self, milliseconds):
        """Wait for its end; return its state."""
        assert milliseconds > 0
        self.xrt.do("run", self.values)
        return "ERT_CMD_STATE_COMPLETED"


class Buffer:
    """A buffer in the memory of the device, and its copy in the host's."""

    def __init__(self, xrt, size, group):
        self.memory, self.size = xrt.memories[group], size
        self.beat = len(self.memory.axi.wdata) // 8
        self.address = xrt.free[group]
        xrt.free[group] += -(-size // 4096) * 4096
        self.host = bytearray(np.random.default_rng(group).bytes(size))

    def map(self):
        """Return the copy in the host's memory."""
        return memoryview(self.host)

    def sync(self, direction, size, offset):
        """Copy a part to the device, or back."""
        assert size % self.beat == offset % self.beat == 0
        assert offset + size <= self.size
        for at in range(offset, offset + size, self.beat):
            part = slice(at, at + self.beat)
            if direction == "to":
                self.memory._words[self.address + at] = int.from_bytes(self.host[part], "little")
            else:
                word = self.memory.word(self.address + at)
                self.host[part] = word.to_bytes(self.beat, "little")
