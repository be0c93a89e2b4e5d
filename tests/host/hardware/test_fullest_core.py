# SPDX-License-Identifier: Apache-2.0
from hypothesis import given
from hypothesis import strategies as st

from host.hardware.fullest_core import FullestCore
from tests.host.hardware.test_storage_segments import histories, stored_by


@given(histories(), st.integers(1, 20), st.integers(1, 12))
def test_a_core_that_overflows_is_foreseen_exactly(history, size, room):
    """Beside a window that is kept tuple by tuple, until it has only tuples of the last segment."""
    rule, changes = history
    fullest = FullestCore(rule, size, room)
    count = 0
    for gap, live in changes:
        count += gap
        fullest.begin(count, live)
    held = stored_by(rule, changes, count + size)
    most = max(
        sum(end - size <= ordinal < end for ordinal in mine)
        for end in range(count + 1, count + size + 1)
        for core, mine in enumerate(held)
        if end - 1 in mine  # only the core that stores can overflow
    )
    needed = fullest.needed(count)
    assert needed >= most
    assert needed == most or needed <= room
