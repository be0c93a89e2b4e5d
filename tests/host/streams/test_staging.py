# SPDX-License-Identifier: Apache-2.0
from hypothesis import given
from hypothesis import strategies as st
import numpy as np

from host.streams.staging import Staging


class Nowhere:
    """What a device is to the staging: something with debts."""


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.sampled_from([1, 7, 1000, 40_000, 70_000])),
        st.tuples(st.just("begin"), st.just(0)),
        st.tuples(st.just("end"), st.integers(0, 100)),
    ),
    max_size=40,
)


@given(STEPS)
def test_words_that_a_device_looks_at_stay_as_they_are(steps):
    """Whatever is staged meanwhile, and however little of them is accepted."""
    device = Nowhere()
    staging = Staging(device, 1)
    added, accepted = 0, 0
    looked = copy = None
    for step, number in steps:
        if step == "add":
            staging.reserve(number)[:, 0] = np.arange(added, added + number)
            staging.add(number)
            added += number
        elif step == "begin" and looked is None:
            looked = staging.offer()
            copy = looked.copy()
            assert copy[:, 0].tolist() == list(range(accepted, added))
            assert staging.kept_back == 0
        elif step == "end" and looked is not None:
            count = len(looked) * number // 100
            staging.accept(count)
            accepted += count
            looked = copy = None
            assert staging.kept_back == staging.waiting
        if looked is not None:
            assert np.array_equal(looked, copy)
            assert staging.kept_back == added - accepted - len(looked)
        assert staging.waiting == added - accepted
