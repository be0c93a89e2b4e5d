# SPDX-License-Identifier: Apache-2.0
"""Shows frames to components as the receiver shows them."""

__all__ = ["show"]


async def show(ctx, port, content, *, good=True, gap=10, each=lambda: None):
    """Show a frame, with the four bytes of a checksum behind it, a byte in each cycle.

    Parameters
    ----------
    ctx : simulator context
    port : ReceivedFrame
        An input of the component.
    content : bytes
    good : bool
        The frame is correct.
    gap : int
        Cycles after its end.
    each : callable
        Called in each cycle after ``good`` or ``bad``, before the clock edge.
    """
    for index, byte in enumerate(content + b"\xaa\x55\x01\x80"):
        ctx.set(port.strobe, 1)
        ctx.set(port.byte, byte)
        ctx.set(port.index, index)
        await ctx.tick()
    ctx.set(port.strobe, 0)
    await ctx.tick()
    ctx.set(port.good if good else port.bad, 1)
    for n in range(gap):
        each()
        await ctx.tick()
        if n == 0:
            ctx.set(port.good, 0)
            ctx.set(port.bad, 0)
