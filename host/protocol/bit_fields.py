# SPDX-License-Identifier: Apache-2.0
"""Fields of words: any number of bits at any position in a row of 64-bit numbers."""

import numpy as np
import numpy.typing as npt

from host.arrays import Array, UInt64s
from host.errors import UsageError
from host.protocol.manifest import WordField

__all__ = [
    "mask",
    "pack_field",
    "require_fits",
    "shifted_rows",
    "unpack_field",
]


def mask(bits: int) -> np.uint64:
    """Return a 64-bit number whose lowest ``bits`` bits are set."""
    return np.uint64((1 << bits) - 1)


def require_fits(place: WordField, value: int, what: str) -> int:
    """Return ``value`` if a field can hold it.

    Raises
    ------
    UsageError
        Otherwise; ``what`` names the operand.
    """
    least = -(1 << place.bits - 1) if place.signed else 0
    most = (1 << place.bits - place.signed) - 1
    if not least <= value <= most:
        raise UsageError(
            f"{what} must be between {least} and {most}, not {value}: words of this accelerator "
            f"have {place.bits} bits for it. Choose a value in this range, or generate an "
            f"accelerator with wider words."
        )
    return value


def pack_field(words: UInt64s, place: WordField, values: npt.ArrayLike) -> None:
    """Write ``values`` into one field of all ``words``; the field must be zero before.

    A value that does not fit loses its upper bits and does not change neighbouring fields.
    """
    if place.bits == 0:
        return
    if place.bits > 64:
        raise ValueError(f"A field of {place.bits} bits does not come from a column")
    array = np.asarray(values)
    unsigned = array.astype(np.uint64 if array.dtype.kind == "u" else np.int64, copy=False)
    unsigned = unsigned.view(np.uint64)
    if place.bits < 64:
        unsigned = unsigned & mask(place.bits)
    column, shift = divmod(place.offset, 64)
    words[:, column] |= unsigned << np.uint64(shift) if shift else unsigned
    if shift + place.bits > 64:
        words[:, column + 1] |= unsigned >> np.uint64(64 - shift)


def unpack_field(words: UInt64s, place: WordField) -> Array:
    """Return one field of all ``words`` as int64, or as uint64 for an unsigned field of 64 bits."""
    if place.bits == 0:
        return np.zeros(len(words), dtype=np.int64)
    if place.bits > 64:
        raise ValueError(f"A field of {place.bits} bits does not fit a column")
    column, shift = divmod(place.offset, 64)
    values = words[:, column] >> np.uint64(shift)
    if shift + place.bits > 64:
        values |= words[:, column + 1] << np.uint64(64 - shift)
    if not place.signed:
        values = values & mask(place.bits) if place.bits < 64 else values
        return values if place.bits == 64 else values.view(np.int64)
    spare = 64 - place.bits
    return (values << np.uint64(spare)).view(np.int64) >> np.int64(spare)


def shifted_rows(rows: UInt64s, by: int, bits: int) -> UInt64s:
    """Return rows of ``bits`` bits with the contents of ``rows`` shifted up by ``by`` bits.

    A negative ``by`` shifts them down. Bits that leave the row are lost.
    """
    moved = np.zeros((len(rows), max(1, -(-bits // 64))), np.uint64)
    offset, shift = divmod(by, 64)
    for column in range(rows.shape[1]):
        parts = [(column + offset, rows[:, column] << np.uint64(shift))]
        if shift:
            parts.append((column + offset + 1, rows[:, column] >> np.uint64(64 - shift)))
        for at, part in parts:
            if 0 <= at < moved.shape[1]:
                moved[:, at] |= part
    if bits % 64:
        moved[:, -1] &= mask(bits % 64)
    return moved
