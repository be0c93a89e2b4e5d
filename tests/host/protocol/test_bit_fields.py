# SPDX-License-Identifier: Apache-2.0
"""Fields of words against Python's own numbers, which have as many bits as they need."""

import random

import numpy as np
import pytest

from host.protocol.bit_fields import mask, pack_field, shifted_rows, unpack_field
from host.protocol.manifest import WordField

ROWS = 5


def numbers(words):
    """Return rows of 64-bit numbers as numbers, little end first."""
    return [sum(int(part) << 64 * at for at, part in enumerate(row)) for row in words]


def words_of(values, columns):
    parts = [[value >> 64 * at & (1 << 64) - 1 for at in range(columns)] for value in values]
    return np.array(parts, np.uint64).reshape(-1, columns)


@pytest.mark.parametrize("columns", [1, 2, 3])
@pytest.mark.parametrize("bits", [1, 2, 7, 31, 63, 64])
@pytest.mark.parametrize("signed", [False, True])
def test_a_field_is_put_and_read_at_any_place(columns, bits, signed):
    rng = random.Random(bits)
    field = (1 << bits) - 1
    for offset in range(64 * columns - bits + 1):
        place = WordField(offset=offset, bits=bits, signed=signed)
        around = [rng.getrandbits(64 * columns) & ~(field << offset) for _ in range(ROWS)]
        values = [rng.getrandbits(64) for _ in range(ROWS)]  # with bits that do not fit
        words = words_of(around, columns)
        kind = rng.choice([np.uint64, np.int64])
        pack_field(words, place, np.array(values, np.uint64).astype(kind))
        want = [value & field for value in values]
        assert numbers(words) == [a | v << offset for a, v in zip(around, want, strict=True)]
        found = unpack_field(words, place)
        assert found.dtype == (np.uint64 if bits == 64 and not signed else np.int64)
        if signed:
            want = [value - (value >> bits - 1 << bits) for value in want]
        assert found.tolist() == want


@pytest.mark.parametrize("values", [[-1], [255], True, 3])
@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int64, None])
def test_values_of_any_type_and_one_for_all_rows_are_taken(values, kind):
    number = values if isinstance(values, int) else values[0]
    if kind is not None and not np.iinfo(kind).min <= number <= np.iinfo(kind).max:
        return
    words = np.zeros((ROWS, 2), np.uint64)
    pack_field(words, WordField(offset=60, bits=64, signed=True), np.array(values, kind))
    assert numbers(words) == [(number & (1 << 64) - 1) << 60] * ROWS


def test_no_bits_hold_zero_and_more_than_a_column_is_refused():
    words = np.ones((ROWS, 1), np.uint64)
    nothing = WordField(offset=64, bits=0, signed=False)
    pack_field(words, nothing, np.arange(ROWS))
    assert words.tolist() == [[1]] * ROWS
    found = unpack_field(words, nothing)
    assert (found.tolist(), found.dtype) == ([0] * ROWS, np.int64)
    wide = WordField(offset=0, bits=65, signed=False)
    with pytest.raises(ValueError, match=r"^A field of 65 bits does not come from a column$"):
        pack_field(words, wide, np.arange(ROWS))
    with pytest.raises(ValueError, match=r"^A field of 65 bits does not fit a column$"):
        unpack_field(words, wide)
    assert [int(mask(bits)) for bits in (0, 1, 5, 63, 64)] == [0, 1, 31, 2**63 - 1, 2**64 - 1]


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_rows_move_up_and_down_and_lose_what_leaves_them(columns):
    rng = random.Random(columns)
    values = [rng.getrandbits(64 * columns) for _ in range(ROWS)]
    for bits in (1, 63, 64, 65, 100, 128, 150, 192):
        for by in (0, 1, -1, 63, 64, -64, 65, -65, 100, -100, 128, -130, 200, -200):
            moved = shifted_rows(words_of(values, columns), by, bits)
            assert moved.shape == (ROWS, -(-bits // 64))
            assert moved.dtype == np.uint64
            want = [value << by if by >= 0 else value >> -by for value in values]
            assert numbers(moved) == [value & (1 << bits) - 1 for value in want]
    assert shifted_rows(words_of(values, columns), 0, 0).shape == (ROWS, 1)
