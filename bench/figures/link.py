# SPDX-License-Identifier: Apache-2.0
"""What the circuit of a link carries, and what it makes of a line that damages bytes."""

import random

from hdl.link.settings import LinkSettings
from sim.link.line import LineBench

from .registry import Result, figure

__all__ = []

#: Bits of input words and of result words.
INPUT_BITS, RESULT_BITS = 64, 40
#: Bytes of words each way, with a clean line and with a bad one. Amaranth's simulator runs some
#: thousand cycles per second.
CLEAN_BYTES, BAD_BYTES = 12_000, 1_500
#: Share of the bytes that a bad line damages.
DAMAGE = 0.01
CYCLES = 1_000_000


def line(**options):
    """Return both ends with default sizes of frames and windows, and a line between."""
    chosen = LinkSettings(
        input_bits=INPUT_BITS, result_bits=RESULT_BITS, hash=bytes(32),
        timeout_cycles=10_000, heartbeat_cycles=5_000,
    )  # fmt: skip
    return LineBench(chosen, **options)


def random_words(bits, size, seed):
    """Return words that take ``size`` bytes."""
    rng = random.Random(seed)
    return [rng.randrange(1 << bits) for _ in range(size * 8 // bits)]


@figure("link.circuit.efficiency", unit="of 1", goal=">= 0.9")
def efficiency(report):
    """Share of the line that carries words while both directions are full, the worse direction."""
    run = line()
    inputs, outputs = (random_words(bits, CLEAN_BYTES, bits) for bits in (INPUT_BITS, RESULT_BITS))
    found = run.exchange(inputs, outputs, deadline=CYCLES)
    if (found, run.words) != (outputs, inputs):
        raise AssertionError("a clean line must change no word")
    share = CLEAN_BYTES / (run.cycle / run.pace)
    note = f"{CLEAN_BYTES} bytes of words each way; frames of 240 bytes, short ones at first"
    return Result(share, notes=(note,))


@figure("link.circuit.errors_1pct.differences", unit="words", goal="<= 0")
def differences(report):
    """Words that are lost, repeated, changed or out of place where one byte in 100 is damaged."""
    run = line(rate=DAMAGE)
    inputs, outputs = (random_words(bits, BAD_BYTES, bits) for bits in (INPUT_BITS, RESULT_BITS))
    found = run.exchange(inputs, outputs, deadline=CYCLES)
    wrong = sum(a != b for a, b in zip(found, outputs, strict=True))
    wrong += sum(a != b for a, b in zip(run.words, inputs, strict=True))
    damaged = sum(noise.damaged for noise in run.noises)
    note = f"{len(inputs) + len(outputs)} words, {damaged} bytes damaged, {run.cycle} cycles"
    return Result(wrong, notes=(note,))
