# SPDX-License-Identifier: Apache-2.0
from hypothesis import example, given
from hypothesis import strategies as st

from host.protocol.segments import FullestCore
from host.protocol.storage import StorageRule
from tests.host.protocol.test_storage_segments import histories, stored_by


def most_stored(held, ends, size):
    """Return the most tuples of the window in a core that stores one, behind each of ``ends``."""
    return max(
        (
            sum(end - size <= ordinal < end for ordinal in mine)
            for end in ends
            for mine in held
            if end - 1 in mine  # only the core that stores can overflow
        ),
        default=0,
    )


@given(histories(), st.integers(1, 20), st.integers(1, 12))
@example((StorageRule(cores=3, lanes=1, ring_rows=2), [(0, [0]), (2, [1, 2, 0])]), 3, 1)
def test_a_core_that_overflows_is_foreseen_exactly(history, size, room):
    """Beside a window that is kept tuple by tuple, until it has only tuples of the last segment.

    The example has a core that has overflowed before the last segment, and still holds too much.
    """
    rule, changes = history
    fullest = FullestCore(rule, size, room)
    count = 0
    for gap, live in changes:
        count += gap
        fullest.begin(count, live)
    held = stored_by(rule, changes, count + size)
    before = most_stored(held, range(1, count + 1), size)
    most = most_stored(held, range(count + 1, count + size + 1), size)
    needed = fullest.needed(count)
    assert needed >= most
    assert needed == most or needed <= room or before > room
