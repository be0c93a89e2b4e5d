# SPDX-License-Identifier: Apache-2.0
from hypothesis import example, given
from hypothesis import strategies as st
import numpy as np

from host.session.staging import Staging


class Nowhere:
    """What a device is to the staging: something with debts, and memory."""

    def allocate(self, shape):
        return np.empty(shape, np.uint64)


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


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("add"), st.sampled_from([1, 2, 7, 40_000, 70_000])),
            st.tuples(st.just("mark"), st.just(1)),
            st.tuples(st.just("insert"), st.just(1)),
            st.tuples(st.just("accept"), st.one_of(st.integers(0, 5), st.just(200_000))),
        ),
        max_size=30,
    )
)
@example([("add", 1), ("mark", 1), ("insert", 1), ("accept", 2), ("accept", 1)])
@example([("mark", 1), ("insert", 1), ("accept", 1), ("accept", 1)])
def test_a_word_is_inserted_behind_the_first_one_that_waits(steps):
    """Its mark is due when it is accepted, and all other words keep their order and marks."""
    staging = Staging(Nowhere(), 1)
    staging.append(np.zeros((2, 1), np.uint64), marks=2)  # a configuration
    staging.offer()
    staging.accept(2)
    waiting, due, pending = [], 2, None
    for number, (step, count) in enumerate(steps, start=1):
        if step == "add":
            staging.reserve(count)[:] = number
            staging.add(count)
            waiting += [(number, False)] * count
        elif step == "mark":
            staging.append(np.full((1, 1), number, np.uint64), marks=1)
            waiting.append((number, True))
        elif step == "insert" and pending is None:
            staging.insert(np.full((1, 1), number, np.uint64))
            waiting.insert(min(1, len(waiting)), (number, True))
            pending = number
        elif step == "accept":
            taken = min(len(staging.offer()), count)
            staging.accept(taken)
            due += sum(marked for _, marked in waiting[:taken])
            del waiting[:taken]
        pending = pending if (pending, True) in waiting else None
        assert staging.words[:, 0].tolist() == [value for value, _ in waiting]
        assert staging.due == due
    staging.see_marks(due)
    assert (staging.due, staging.marks) == (0, due)
