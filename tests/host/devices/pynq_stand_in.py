# SPDX-License-Identifier: Apache-2.0
"""A stand-in of the package pynq, whose overlay is a simulated card.

It has what :class:`host.devices.bus.Overlay` uses, by the source of PYNQ 3 and the AXI DMA's
document PG021: registers of the DMA, its channels, and memory that a cache stands in front of, so
that data which nobody flushed or invalidated are not seen. The package itself runs on its boards
only. cocotbpynq 0.2.0 has neither ``idle`` nor ``transferred`` of a channel, and no cache.
"""

import numpy as np

__all__ = ["Overlay", "allocate"]

#: Bits of the control and status registers of a channel.
RUN, RESET = 1 << 0, 1 << 2
HALTED, IDLE, INTERNAL_ERROR = 1 << 0, 1 << 1, 1 << 4
#: Cycles of the card between two looks at the DMA.
CYCLES = 400


class Buffer(np.ndarray):
    """An array in memory of the device, as a processor sees it through its cache."""

    def __array_finalize__(self, whole):
        self.dram = None  # a slice is not to be given to the DMA

    def flush(self):
        """Write the cache to the memory."""
        self.dram[:] = np.asarray(self)

    def invalidate(self):
        """Read the memory again."""
        np.asarray(self)[:] = self.dram


def allocate(shape, dtype="u4"):
    """Return a :class:`Buffer`; neither it nor the memory behind it is cleared."""
    buffer = np.random.default_rng(1).integers(0, 1 << 63, shape, dtype).view(Buffer)
    buffer.dram = ~np.asarray(buffer)
    return buffer


class Channel:
    """One direction of the DMA in simple mode."""

    def __init__(self, engine, offset, *, sends):
        self.engine, self.offset, self.sends = engine, offset, sends
        self.control, self.status = 0, HALTED
        self.transferred = self.length = self.done = 0
        self.rows = self.buffer = None
        self.first = True
        self.start()

    def start(self):
        """Let it run, as after each reset."""
        self.control, self.status, self.first = RUN, self.status & ~HALTED, True

    def stop(self):
        """Halt; one that waits for data never would."""
        assert self.rows is None, "a channel that has a transfer does not stop"
        self.control, self.status = 0, self.status | HALTED

    @property
    def running(self):
        """Whether it is not halted."""
        return not self.status & HALTED

    @property
    def idle(self):
        """Whether a transfer has ended; time passes."""
        self.engine.step()
        return bool(self.status & IDLE)

    @property
    def error(self):
        """Whether it has failed."""
        return bool(self.status & INTERNAL_ERROR)

    def transfer(self, array, start=0, nbytes=0):
        """Begin a transfer."""
        nbytes = nbytes or array.nbytes - start
        if not self.running:
            raise RuntimeError("DMA channel not started")
        if not self.status & IDLE and not self.first:
            raise RuntimeError("DMA channel not idle")
        if nbytes > self.engine.buffer_max_size:
            raise ValueError("Transfer size exceeds the maximum DMA buffer size")
        columns = self.engine.card.words if self.sends else self.engine.card.results
        if start % (8 * columns) or nbytes % (8 * columns):
            raise RuntimeError("DMA does not support unaligned transfers")
        assert nbytes < self.engine.buffer_max_size, "the length register would hold zero"
        assert start + nbytes <= array.nbytes
        if self.sends:
            array.flush()
        memory = array.dram.reshape(-1)[start // 8 : (start + nbytes) // 8]
        self.rows, self.done = memory.reshape(-1, columns), 0
        self.transferred = self.length = 0
        self.status, self.first, self.buffer = self.status & ~IDLE, False, array

    def end(self, *, error=0):
        """End the transfer."""
        self.length, self.rows = self.done * self.rows.shape[1] * 8, None
        self.status |= error | (HALTED if error else IDLE)

    def wait(self):
        """Wait for the end of a transfer, and make its data visible."""
        if not self.running:
            raise RuntimeError("DMA channel not started")
        while not self.idle:
            assert not self.error
        if not self.sends:
            self.buffer.invalidate()
        self.transferred = self.length


class Engine:
    """The AXI DMA in front of a card."""

    def __init__(self, card, most):
        self.card, self.buffer_max_size, self.mmio = card, most, self
        self.sendchannel = Channel(self, 0x00, sends=True)
        self.recvchannel = Channel(self, 0x30, sends=False)

    def step(self):
        """Let time pass."""
        send, receive = self.sendchannel, self.recvchannel
        words = np.zeros((0, self.card.words), np.uint64)
        if send.rows is not None:
            words = send.rows[send.done :]
        room = len(receive.rows) - receive.done if receive.rows is not None else 0
        taken, made, ended = self.card.run(words, room=room, cycles=CYCLES)
        if send.rows is not None:
            send.done += taken
            if send.done == len(send.rows):
                send.end()
        if receive.rows is not None:
            receive.rows[receive.done : receive.done + len(made)] = made
            receive.done += len(made)
            if ended:
                receive.end()
            elif receive.done == len(receive.rows):
                receive.end(error=INTERNAL_ERROR)  # the packet goes on

    def read(self, offset):
        """Return a register of the DMA."""
        assert offset == 0, "the only one that the driver reads"
        return self.sendchannel.control

    def write(self, offset, value):
        """Reset the DMA, both channels of it."""
        assert (offset, value) == (0, RESET), "the only one that the driver writes"
        self.sendchannel.__init__(self, 0x00, sends=True)
        self.recvchannel.__init__(self, 0x30, sends=False)
        for channel in (self.sendchannel, self.recvchannel):
            channel.control, channel.status = 0, HALTED


class Registers:
    """The accelerator in the overlay."""

    def __init__(self, card):
        self.mmio = self
        self._card = card

    def read(self, offset):
        """Return a register."""
        return self._card.read(offset)

    def write(self, offset, value):
        """Write a register."""
        assert self._card.write(offset, value) == 0


class Overlay:
    """An overlay with the parts of the guide, around a card."""

    def __init__(self, card, most):
        self.axi_dma_0, self.splitjoin_axi_0 = Engine(card, most), Registers(card)
        self.ip_dict = {"axi_dma_0": {}, "splitjoin_axi_0": {}, "processing_system7_0": {}}
