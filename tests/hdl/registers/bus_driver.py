# SPDX-License-Identifier: Apache-2.0
"""Access to registers over a :class:`hdl.registers.bus.RegisterBus`, in Amaranth's simulator."""

__all__ = ["access"]


async def access(ctx, bus, address, data=None, *, strobe=15, deadline=100):
    """Read a register, or write ``data`` to it; return answer, ``refused`` and cycles it took."""
    ctx.set(bus.address, address)
    ctx.set(bus.read, data is None)
    ctx.set(bus.write, data is not None)
    ctx.set(bus.data, data or 0)
    ctx.set(bus.strobe, strobe)
    for cycles in range(deadline):
        *_, done, refused, answer = await ctx.tick().sample(bus.done, bus.refused, bus.answer)
        if done:
            ctx.set(bus.read, 0)
            ctx.set(bus.write, 0)
            return answer, bool(refused), cycles
    raise TimeoutError(f"No answer at {address:#x} within {deadline} cycles")
