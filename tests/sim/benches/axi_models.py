# SPDX-License-Identifier: Apache-2.0
"""Drivers of the AXI shell that were not written by us: those of cocotbext-axi."""

from random import Random
import warnings

from cocotb.triggers import with_timeout

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of cocotb 2, up to cocotbext-axi 0.1.28
    from cocotbext.axi import (
        AxiLiteBus,
        AxiLiteMaster,
        AxiStreamBus,
        AxiStreamFrame,
        AxiStreamSink,
        AxiStreamSource,
    )

__all__ = ["registers", "sink", "source"]

#: Nanoseconds that an access to a register may take.
PATIENCE = 200_000


def paused(probability, seed):
    """Yield whether a channel pauses in a cycle."""
    random = Random(seed)
    while True:
        yield random.random() < probability


def stream(model, dut, name, pauses, seed):
    """Return the ``model`` of one side of a stream, which pauses at random."""
    bus = AxiStreamBus.from_prefix(dut, name)
    made = model(bus, dut.aclk, dut.aresetn, reset_active_level=False)
    made.set_pause_generator(paused(pauses, f"{name} {seed}"))
    return made


class Source:
    """Input of words, which go in packets up to the next ``last``."""

    def __init__(self, model):
        self.model, self.words, self.keeps = model, [], []

    async def send(self, word, keep, last):
        """Queue a word; with ``last``, all that were queued go out."""
        size = keep.bit_length()
        self.words.append(word.to_bytes(size, "little"))
        self.keeps += [keep >> n & 1 for n in range(size)]
        if last:
            await self.model.send(AxiStreamFrame(b"".join(self.words), self.keeps))
            self.words, self.keeps = [], []


class Sink:
    """Output of words, which come when their packet has ended."""

    def __init__(self, model, size):
        self.model, self.size, self.beats, self.deadline = model, size, [], 0

    async def take(self):
        """Return data, ``keep`` and ``last`` of the next word."""
        if not self.beats:
            receiving = self.model.recv(compact=False)
            frame = await with_timeout(receiving, 10 * self.deadline, "ns")
            count = len(frame.tdata) // self.size
            for n in range(count):
                part = slice(n * self.size, (n + 1) * self.size)
                keep = sum(bit << place for place, bit in enumerate(frame.tkeep[part]))
                word = int.from_bytes(bytes(frame.tdata[part]), "little")
                self.beats.append((word, keep, n == count - 1))
        return self.beats.pop(0)


class Registers:
    """Master of the registers."""

    def __init__(self, model):
        self.model = model

    def give_up(self):
        """Do nothing: the model sees the reset itself, and gives up what was under way."""

    async def read(self, address):
        """Return value and response of a register."""
        answer = await with_timeout(self.model.read(address, 4), PATIENCE, "ns")
        return int.from_bytes(answer.data, "little"), int(answer.resp)

    async def write(self, address, value):
        """Write a register; return the response."""
        data = value.to_bytes(4, "little")
        return int((await with_timeout(self.model.write(address, data), PATIENCE, "ns")).resp)


def source(dut, name, *, pauses, seed, clock):
    """Return the driver of an input; as :func:`sim.benches.axi_drivers.source`."""
    return Source(stream(AxiStreamSource, dut, name, pauses, seed))


def sink(dut, name, *, pauses, seed, clock):
    """Return the driver of an output; as :func:`sim.benches.axi_drivers.sink`."""
    size = len(getattr(dut, f"{name}_tkeep"))
    return Sink(stream(AxiStreamSink, dut, name, pauses, seed), size)


def registers(dut, clk, resetn, *, pauses, seed):
    """Return the master of the registers; all five channels pause at random."""
    bus = AxiLiteBus.from_prefix(dut, "s_axi")
    model = AxiLiteMaster(bus, clk, resetn, reset_active_level=False)
    for side, names in ((model.write_if, ("aw", "w", "b")), (model.read_if, ("ar", "r"))):
        for name in names:
            channel = getattr(side, f"{name}_channel")
            channel.set_pause_generator(paused(pauses, f"{name} {seed}"))
    return Registers(model)
