# SPDX-License-Identifier: Apache-2.0
"""Key fields of all kinds, and strategies for keys and bounds."""

from hypothesis import strategies as st

from hdl.parameters import KeyField
from tests.hdl.input_words import least

__all__ = ["FIELD_SETS", "bounds", "keys"]

#: Signed and unsigned, one bit to all of them, in one group of comparisons and in several.
FIELD_SETS = {
    "one": (KeyField(name="a", bits=5),),
    "unlike": (
        KeyField(name="a", bits=5),
        KeyField(name="b", bits=4, signed=False),
        KeyField(name="c", bits=1),
    ),
    "full": (
        KeyField(name="a", bits=31),
        KeyField(name="b", bits=31, signed=False),
        KeyField(name="c", bits=1, signed=False),
    ),
    "widest": (KeyField(name="a", bits=64), KeyField(name="b", bits=64, signed=False)),
}


def near_ends(first, final):
    """Strategy for integers of a range, often at its ends."""
    return st.one_of(
        st.integers(first, final),
        st.sampled_from([first, min(first + 1, final), max(final - 1, first), final]),
    )


def keys(fields):
    """Strategy for a key."""
    return st.fixed_dictionaries(
        {f.name: near_ends(least(f), least(f) + (1 << f.bits) - 1) for f in fields}
    )


def bounds(fields):
    """Strategy for the bounds of every field, open ones included."""
    return st.fixed_dictionaries(
        {f.name: st.tuples(*[near_ends(-(1 << f.bits), (1 << f.bits) - 1)] * 2) for f in fields}
    )
