# SPDX-License-Identifier: Apache-2.0
"""Schedules of segments that are known beforehand."""

from host.query.cores import ListedSegments, Segment


def test_a_list_is_told_in_order_and_then_ends():
    schedule = ListedSegments([(3, [1, 0]), (7, (2,))])
    assert schedule.next(0) == Segment(3, (1, 0))
    assert schedule.next(5) == Segment(7, (2,))
    assert schedule.next(9) is None
    assert schedule.next(9) is None


def test_a_segment_keeps_the_order_of_its_cores():
    assert Segment(0, (1, 0)) != Segment(0, (0, 1))
