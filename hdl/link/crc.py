# SPDX-License-Identifier: Apache-2.0
"""CRC-32 of zlib and Ethernet, one byte at a time, as exclusive ors."""

from functools import reduce
from operator import xor

from amaranth import *

__all__ = ["CRC_BITS", "RESIDUE", "crc_step", "first_state"]

CRC_BITS = 32
POLYNOMIAL = 0xEDB88320
#: State after a frame with its correct CRC, whatever the frame and the first state.
RESIDUE = 0xDEBB20E3


def advanced(state):
    """Return the state of eight steps later, for a number."""
    for _ in range(8):
        state = state >> 1 ^ POLYNOMIAL * (state & 1)
    return state


#: State of eight steps later for each single bit of a state. The step is linear.
_COLUMNS = [advanced(1 << n) for n in range(CRC_BITS)]


def first_state(session):
    """Return the state before the first byte of a frame of a session."""
    return ~session


def crc_step(state, byte):
    """Return the state after ``byte``. The CRC itself is the complement of the last state.

    Parameters
    ----------
    state : Value, 32 bits
    byte : Value, 8 bits
    """
    mixed = [state[n] ^ byte[n] if n < 8 else state[n] for n in range(CRC_BITS)]
    rows = [
        [mixed[n] for n, column in enumerate(_COLUMNS) if column >> row & 1]
        for row in range(CRC_BITS)
    ]
    return Cat(reduce(xor, row) for row in rows)
