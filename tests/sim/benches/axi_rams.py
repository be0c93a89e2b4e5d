# SPDX-License-Identifier: Apache-2.0
"""Memories that were not written by us behind the ports of an accelerator, in cocotb."""

import random
import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of cocotb 2, up to cocotbext-axi 0.1.28
    from cocotbext.axi import AxiBus, AxiRam

__all__ = ["attach"]

#: Most cycles that a channel pauses at a time: the latency of a memory changes as much.
LONGEST = 60


def pauses(seed):
    """Yield whether a channel pauses: not at all for some time, then at random or for long."""
    generator = random.Random(seed)
    while True:
        yield from [False] * generator.randrange(40)
        yield from [True] * generator.randrange(LONGEST)
        yield from (generator.random() < 0.5 for _ in range(generator.randrange(40)))


def attach(dut, manifest, seed):
    """Put a memory of cocotbext-axi behind each port; all five channels pause at random."""
    for port in manifest.memory.ports:
        ram = AxiRam(AxiBus.from_prefix(dut, port), dut.clk, dut.rst, size=manifest.memory.bytes)
        for side, names in ((ram.write_if, ("aw", "w", "b")), (ram.read_if, ("ar", "r"))):
            for name in names:
                channel = getattr(side, f"{name}_channel")
                channel.set_pause_generator(pauses(f"{port} {name} {seed}"))
