# SPDX-License-Identifier: Apache-2.0
"""An AXI shell with an accelerator in it, and what drives its pins."""

import hashlib

import numpy as np

from hdl.families.choice import family_of
from hdl.registers.table import shell_table
from hdl.shells.axi import AxiOptions, AxiShell, master_name, slave_names
from tests.hdl.input_words import integer
from tests.hdl.shells.axi_bench import AxiBench
from tests.hdl.shells.lite_master import LiteMaster

__all__ = ["HASH", "Shell", "integers", "rows"]

HASH = hashlib.sha256(b"a manifest").hexdigest()


class Shell:
    """A shell with what drives it, in Amaranth's simulator."""

    def __init__(
        self, parameters, *, options=None, pauses=0.0, seed=0, deadline=20_000, bus_period=None
    ):
        self.parameters = parameters
        options = AxiOptions() if options is None else options
        self.dut = AxiShell(parameters, digest=HASH, options=options, is_whole=True)
        self.bench = AxiBench(
            self.dut, pauses=pauses, seed=seed, deadline=deadline, bus_period=bus_period
        )
        self.master = LiteMaster(self.bench, self.dut.s_axi)
        merged = options.merged(parameters)
        self.table = shell_table(parameters, merged=merged)
        self.family = family_of(parameters)
        names = map(master_name, self.family.result_ports)
        self.inputs = [getattr(self.dut, name) for name in slave_names(merged)]
        self.outputs = [getattr(self.dut, name) for name in names]

    async def reset(self, ctx):
        """Reset for one cycle, which is as long as AXI asks for at the least."""
        ctx.set(self.dut.aresetn, 0)
        await self.bench.tick(ctx)
        ctx.set(self.dut.aresetn, 1)
        if self.bench.lite_domain != self.bench.domain:
            await ctx.tick(self.bench.lite_domain)
            ctx.set(self.dut.s_axi_aresetn, 1)

    async def send(self, ctx, words, keep=None, axis=None):
        axis = self.inputs[0] if axis is None else axis
        keep = (1 << axis.signature.size) - 1 if keep is None else keep
        for word in words:
            pairs = (axis.tdata, word), (axis.tkeep, keep)
            await self.bench.send(ctx, axis.tvalid, axis.tready, *pairs)

    def senders(self, inputs):
        """Return a process for each input, which sends its words; the first one resets the shell.

        Parameters
        ----------
        inputs : sequence of sequences of int
            Words of each input.
        """

        def sender(number):
            async def process(ctx):
                if number:
                    await self.bench.tick(ctx).repeat(20)
                else:
                    await self.reset(ctx)
                await self.send(ctx, inputs[number], axis=self.inputs[number])

            return process

        return [sender(number) for number in range(len(inputs))]

    async def take(self, ctx, marks, output=None):
        """Return result words up to the last one of some packets."""
        axis = output or self.outputs[0]
        words = []
        while marks:
            signals = axis.tdata, axis.tkeep, axis.tlast
            word, keep, last = await self.bench.take(ctx, axis.tvalid, axis.tready, *signals)
            assert keep == (1 << axis.signature.size) - 1
            words.append(word)
            marks -= last
        return words

    async def read(self, ctx, name):
        value, refused = await self.master.read(ctx, self.table[name].address)
        assert not refused
        return value

    async def write(self, ctx, name, value):
        assert not await self.master.write(ctx, self.table[name].address, value)

    async def field(self, ctx, name, field):
        value = await self.read(ctx, name)
        (one,) = (one for one in self.table[name].fields if one.name == field)
        return (value & one.mask) >> one.offset

    def word(self, value):
        return integer(self.family.input_word, value)


def integers(words):
    return [sum(int(value) << 64 * n for n, value in enumerate(row)) for row in words]


def rows(words, columns):
    mask = (1 << 64) - 1
    found = [[value >> 64 * n & mask for n in range(columns)] for value in words]
    return np.array(found, np.uint64).reshape(-1, columns)
