# SPDX-License-Identifier: Apache-2.0
"""A network that loses, damages and doubles some of the frames that it carries."""

import random

__all__ = ["FrameNoise"]

#: Bytes of the preamble, which no damage makes a frame unreadable.
PREAMBLE = 8


class FrameNoise:
    """Noise model of a network: loses, damages and doubles frames, each at ``rate / 3``.

    Parameters
    ----------
    rate : float
        Share of the frames that this happens to.
    seed : int
        Of the noise.

    Attributes
    ----------
    lost, damaged, doubled : int
        Frames so far.
    """

    def __init__(self, rate, seed):
        if not 0 <= rate <= 1:
            raise ValueError(f"Share of the frames must be 0 to 1, not {rate!r}")
        self.rate = rate
        self.random = random.Random(seed)
        self.lost = self.damaged = self.doubled = 0

    def __call__(self, line):
        """Return the frames that become of one, each as it passes the line."""
        if self.random.random() >= self.rate:
            return [line]
        kind = self.random.randrange(3)
        if kind == 0:
            self.lost += 1
            return []
        if kind == 1:
            self.damaged += 1
            changed = bytearray(line)
            changed[self.random.randrange(PREAMBLE, len(line))] ^= 1 << self.random.randrange(8)
            return [bytes(changed)]
        self.doubled += 1
        return [line, line]
