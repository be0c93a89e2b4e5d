# SPDX-License-Identifier: Apache-2.0
"""Frames for tests of the circuit, made by the codec in Python."""

import random

from host.devices.link import Frame, Kind, encode_frame

__all__ = ["SESSION", "random_frames"]

SESSION = 0x89ABCDEF


def random_frames(count, seed, *, longest=247):
    """Return frames of all kinds and lengths, with many zeros, and their bytes in a session."""
    rng = random.Random(seed)
    frames = []
    for n in range(count):
        kind = Kind.DATA if n % 3 else rng.choice(list(Kind))
        size = rng.choice([0, 1, 2, 5, longest, rng.randrange(longest)])
        values = [0, 1, 255, rng.randrange(256)] if n % 2 else range(256)
        payload = bytes(rng.choice(values) for _ in range(size))
        frames.append(Frame(kind, rng.randrange(256), payload))
    return frames, [encode_frame(frame, SESSION) for frame in frames]
