# SPDX-License-Identifier: Apache-2.0
"""Ranges of time are taken unasked where they pay, and the reason is given."""

import pytest

from host import CountWindow, TimeWindow
from host.query import JoinQuery, Term
from spark_offload.placement import Facts, choose_placement
from spark_offload.profile import OrderProfile

BAND = (Term("x", "x", -1, 1),)
EQUAL = (Term("k", "k"),)


def profile(rows, span, *, crowd=0.0):
    """Rows that lie evenly over a span; a share of them at its very middle."""
    shares = [place / 256 for place in range(1, 256)]
    numbers = []
    for share in shares:
        even = share if share < (1 - crowd) / 2 else max(0.5, share - crowd)
        numbers.append(int(even * span))
    return OrderProfile((rows // 2, rows - rows // 2), 0, span, tuple(sorted(numbers)))


def placed(
    found=None,
    *,
    terms=BAND,
    window=None,
    cores=8,
    sizes=(1 << 40, 1 << 40),
    cut=True,
    partitions=None,
    by=None,
    plain=False,
):
    window = TimeWindow(10) if window is None else window
    query = JoinQuery(terms=terms, order=("t", "t"), window=window)

    def read(ranges):
        assert found is not None, "nothing is read where nothing need be known"
        return found

    facts = Facts(
        cores=cores,
        sizes=lambda: sizes,
        width=window.lifespan if isinstance(window, TimeWindow) and cut else None,
        order_type=None if cut else "interval day",
        profile=read,
        plain=lambda: plain,
    )
    return choose_placement(query, facts, partitions=partitions, partition_by=by)


def test_large_inputs_get_a_range_for_each_core():
    placement = placed(profile(10_000_000, 10_000))
    assert placement.partitions == 8
    assert len(placement.starts) == 7
    assert "one for each core" in placement.reason
    assert "halos add about 0.7% of the rows" in placement.reason


def test_an_equality_is_partitioned_by_its_columns():
    placement = placed(terms=EQUAL)
    assert placement.keys == (("k",), ("k",))
    assert placement.starts is None
    assert placement.partitions == 8


def test_an_equality_is_cut_into_ranges_if_asked_for_or_rows_are_counted():
    assert placed(profile(10_000_000, 10_000), terms=EQUAL, by="range").starts
    counted = placed(profile(10_000_000, 10_000), terms=EQUAL, window=CountWindow(1_000))
    assert counted.partitions == 8
    assert "whatever their keys" in counted.reason


@pytest.mark.parametrize(
    ("found", "changes", "reason"),
    [
        (None, {"sizes": (1_000, 1 << 40)}, "1,000 bytes is too small"),
        (None, {"cores": 1}, "one core"),
        (None, {"cut": False}, "interval day cannot be cut"),
        (None, {"partitions": 1}, "as asked for"),
        (profile(9_000, 10_000), {}, "9,000 rows are too few"),
        (profile(10_000_000, 10_000), {"window": TimeWindow(9_000)}, "halos would dominate"),
        (profile(10_000_000, 10_000), {"window": CountWindow(6_000_000)}, "halos would dominate"),
        (profile(10_000_000, 0), {}, "all rows have one time"),
    ],
)
def test_one_partition_has_its_reason(found, changes, reason):
    placement = placed(found, **changes)
    assert placement.partitions == 1
    assert placement.starts is None
    assert reason in placement.reason


def test_the_only_task_reads_what_is_a_plain_read():
    placement = placed(partitions=1, plain=True)
    assert placement.direct
    assert "as asked for; its task reads the inputs itself" in placement.reason
    assert not placed(partitions=1).direct
    assert not placed(profile(10_000_000, 10_000), plain=True).direct
    assert placed(terms=EQUAL, cores=1, plain=True).direct
    assert not placed(terms=EQUAL, plain=True).direct


def test_fewer_ranges_are_taken_where_halos_would_dominate():
    placement = placed(profile(10_000_000, 10_000), window=TimeWindow(1_000))
    assert placement.partitions == 4
    assert "as many as pay" in placement.reason


def test_a_burst_counts_by_its_rows_not_by_its_time():
    # Half of all rows lie in a time that is far shorter than the window.
    placement = placed(profile(10_000_000, 10_000, crowd=0.5), window=TimeWindow(700))
    assert placement.partitions < 8


def test_a_crowd_at_one_time_gets_a_range_to_itself():
    starts = profile(1_000, 10_000, crowd=0.5).starts(8)
    assert {5_000, 5_001} <= set(starts)
    assert len(starts) <= 7


def test_the_number_asked_for_is_kept():
    placement = placed(profile(100, 10), partitions=40)
    assert placement.partitions == 40
    assert len(placement.starts) <= 10
    assert "of them empty" in placement.reason
