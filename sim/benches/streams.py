# SPDX-License-Identifier: Apache-2.0
"""cocotb drivers of payload/valid/ready streams, with random stalls and a check of the rules."""

import random

from cocotb.triggers import FallingEdge, ReadOnly, RisingEdge
import numpy as np

__all__ = ["STALLS", "StreamSink", "StreamSource", "integers", "reset", "rows"]

#: Probability, per cycle, that a word is withheld and that a result is not taken.
STALLS = {"none": (0.0, 0.0), "input": (0.7, 0.0), "output": (0.0, 0.7), "both": (0.3, 0.3)}


async def reset(dut):
    """Reset an accelerator whose clock runs."""
    dut.counter_addr.value = 0
    dut.rst.value = 1
    for _ in range(16):  # docs/architecture.md, section 4
        await FallingEdge(dut.clk)
    dut.rst.value = 0


def integers(words):
    """Return each row of 64-bit numbers as one integer, the first number lowest."""
    return [int.from_bytes(row.astype("<u8").tobytes(), "little") for row in words]


def rows(words, columns):
    """Return integers as rows of 64-bit numbers; the inverse of :func:`integers`."""
    mask = (1 << 64) - 1
    numbers = [[word >> 64 * n & mask for n in range(columns)] for word in words]
    return np.array(numbers, np.uint64).reshape(-1, columns)


class StreamSource:
    """Driver that offers words on an input stream of the device under test.

    It changes signals after the falling edge of the clock, so that nothing races with the rising
    edge.

    Parameters
    ----------
    dut : handle
        Module with the signals ``{name}_payload``, ``{name}_valid``, ``{name}_ready``.
    name : str
        Name of the stream.
    stalls : float
        Probability that no word is offered in a cycle. An offered word stays until it is taken.
    seed : int
        Seed of the stalls.

    Attributes
    ----------
    withheld, refused : int
        Cycles in which no word was offered, and cycles in which an offered word was not taken.
    waits : list of set of str
        For each word that was taken, what it waited for: ``"withheld"``, ``"refused"``, or both.
    """

    def __init__(self, dut, name, *, stalls=0.0, seed=0):
        self.clk = dut.clk
        self.payload, self.valid, self.ready = (
            getattr(dut, f"{name}_{part}") for part in ("payload", "valid", "ready")
        )
        self.stalls = stalls
        self.random = random.Random(f"source {seed}")
        self.withheld = self.refused = 0
        self.waits = []
        self.valid.value = 0

    async def send(self, words):
        """Send integers, in order."""
        for word in words:
            waits = set()
            while self.random.random() < self.stalls:
                self.withheld += 1
                waits.add("withheld")
                await FallingEdge(self.clk)
            self.payload.value = word
            self.valid.value = 1
            taken = False
            while not taken:
                await ReadOnly()  # the value that the rising edge will see
                taken = bool(self.ready.value)
                if not taken:
                    self.refused += 1
                    waits.add("refused")
                await FallingEdge(self.clk)
            self.valid.value = 0
            self.waits.append(waits)


class StreamSink:
    """Monitor that takes words from an output stream and checks that its producer keeps the rules.

    A word that is valid and not taken must stay valid and unchanged.

    Parameters
    ----------
    dut, name, stalls, seed
        As for :class:`StreamSource`. ``stalls`` is the probability that ``ready`` is low in a
        cycle.

    Attributes
    ----------
    untaken : int
        Cycles in which a word was valid and not taken.
    """

    def __init__(self, dut, name, *, stalls=0.0, seed=0):
        self.clk = dut.clk
        self.payload, self.valid, self.ready = (
            getattr(dut, f"{name}_{part}") for part in ("payload", "valid", "ready")
        )
        self.stalls = stalls
        self.random = random.Random(f"sink {seed}")
        self.cycle = self.untaken = 0
        self.ready.value = 0

    async def receive(self, last, deadline):
        """Return the words up to the one for which ``last(word)`` holds.

        Raises
        ------
        TimeoutError
            If the last word has not been received within ``deadline`` cycles.
        AssertionError
            If the producer withdraws or changes a word.
        """
        words, shown = [], None
        for _ in range(deadline):
            self.cycle += 1
            ready = self.random.random() >= self.stalls
            self.ready.value = ready
            await ReadOnly()
            valid, word = bool(self.valid.value), None
            if valid:
                word = self.payload.value.to_unsigned()
            if shown is not None:
                assert valid, f"cycle {self.cycle}: word {shown:#x} was withdrawn"
                assert word == shown, f"cycle {self.cycle}: word {shown:#x} became {word:#x}"
            shown = word if valid and not ready else None
            self.untaken += shown is not None
            await RisingEdge(self.clk)
            await FallingEdge(self.clk)
            if valid and ready:
                words.append(word)
                if last(word):
                    self.ready.value = 0
                    return words
        raise TimeoutError(f"No end within {deadline} cycles; {len(words)} words came")
