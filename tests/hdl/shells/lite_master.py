# SPDX-License-Identifier: Apache-2.0
"""A master of AXI4-Lite on an :class:`tests.hdl.shells.axi_bench.AxiBench`."""

__all__ = ["LiteMaster"]

OKAY, SLVERR = 0, 2


class LiteMaster:
    """Reads and writes registers. Each method drives channels of its own."""

    def __init__(self, bench, axi):
        self.bench, self.axi = bench, axi
        self.options = {"domain": bench.lite_domain}

    async def addresses(self, ctx, addresses):
        """Send the addresses of writes."""
        axi = self.axi
        for address in addresses:
            await self.bench.send(
                ctx, axi.awvalid, axi.awready, (axi.awaddr, address), **self.options
            )

    async def words(self, ctx, words):
        """Send data and strobes of writes."""
        axi = self.axi
        for data, strobe in words:
            pairs = (axi.wdata, data), (axi.wstrb, strobe)
            await self.bench.send(ctx, axi.wvalid, axi.wready, *pairs, **self.options)

    async def responses(self, ctx, count):
        """Return the responses to writes."""
        axi = self.axi
        return [
            (await self.bench.take(ctx, axi.bvalid, axi.bready, axi.bresp, **self.options))[0]
            for _ in range(count)
        ]

    async def requests(self, ctx, addresses):
        """Send the addresses of reads."""
        axi = self.axi
        for address in addresses:
            await self.bench.send(
                ctx, axi.arvalid, axi.arready, (axi.araddr, address), **self.options
            )

    async def answers(self, ctx, count):
        """Return data and responses of reads."""
        axi = self.axi
        return [
            await self.bench.take(ctx, axi.rvalid, axi.rready, axi.rdata, axi.rresp, **self.options)
            for _ in range(count)
        ]

    async def read(self, ctx, address):
        """Read one register; return data and whether that was refused."""
        await self.requests(ctx, [address])
        ((data, response),) = await self.answers(ctx, 1)
        assert response in (OKAY, SLVERR)
        return data, response == SLVERR

    async def write(self, ctx, address, data, strobe=15):
        """Write one register; return whether that was refused."""
        await self.addresses(ctx, [address])
        await self.words(ctx, [(data, strobe)])
        (response,) = await self.responses(ctx, 1)
        assert response in (OKAY, SLVERR)
        return response == SLVERR
