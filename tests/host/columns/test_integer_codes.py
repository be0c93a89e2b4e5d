# SPDX-License-Identifier: Apache-2.0
"""Codes of integers that come batch by batch are those of a dictionary of Python objects."""

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pyarrow as pa
import pytest

from host.columns.codes import GrowingCodes, IntegerCodes

BATCHES = st.lists(st.lists(st.none() | st.integers(0, 9), max_size=12), max_size=4)
FAR = st.sampled_from([-(2**63), 2**63 - 1, 0, 1, 1000, 1001])


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "dtype", [pa.int8(), pa.uint64(), pa.int64(), pa.timestamp("us"), pa.date32(), pa.bool_()]
)
@given(BATCHES)
def test_codes_follow_the_first_appearance(dtype, batches):
    slow, fast = GrowingCodes(), IntegerCodes()
    for batch in batches:
        plain = pa.int32() if dtype == pa.date32() else pa.int64()
        values = pa.array([9, *batch], plain).cast(dtype, safe=False)[1:]  # a slice of a buffer
        valid = values.is_valid().to_numpy(zero_copy_only=False)
        codes = fast.of_integers(values)
        assert codes.dtype == np.int64
        assert codes[valid].tolist() == slow.of_integers(values)[valid].tolist()
        assert not codes[~valid].any()
        assert len(fast) == len(slow)


@given(st.lists(st.lists(st.none() | st.integers(-9, 60) | FAR, max_size=12), max_size=6))
def test_codes_stay_where_values_come_to_lie_far_apart(batches):
    slow, fast = GrowingCodes(), IntegerCodes()
    for batch in batches:
        values = pa.array(batch, pa.int64())
        valid = values.is_valid().to_numpy(zero_copy_only=False)
        assert fast.of_integers(values)[valid].tolist() == (
            slow.of_integers(values)[valid].tolist()
        )
        assert len(fast) == len(slow)
