# SPDX-License-Identifier: Apache-2.0
"""A line that damages some of the bytes it carries."""

import random

__all__ = ["Noise"]


class Noise:
    """Noise model of a line: flips, drops, doubles and inserts bytes, each at ``rate / 4``.

    Parameters
    ----------
    rate : float
        Share of the bytes that are damaged.
    seed : int
        Of the damage.

    Attributes
    ----------
    damaged : int
        Bytes that were damaged.
    """

    def __init__(self, rate, seed):
        self.rate = rate
        self.random = random.Random(seed)
        self.damaged = 0

    def __call__(self, data):
        """Return what becomes of ``data`` on the line."""
        if not self.rate:
            return data
        out = bytearray()
        for byte in data:
            if self.random.random() >= self.rate:
                out.append(byte)
                continue
            self.damaged += 1
            kind = self.random.randrange(4)
            if kind == 0:
                out.append(byte ^ 1 << self.random.randrange(8))
            elif kind == 2:
                out += bytes((byte, byte))
            elif kind == 3:
                out += bytes((self.random.randrange(256), byte))
        return bytes(out)
