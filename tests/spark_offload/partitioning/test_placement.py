# SPDX-License-Identifier: Apache-2.0
"""Ranges of time are taken unasked where they pay, and the reason is given."""

import pytest

from host import CountWindow, TimeWindow, UsageError
from host.query.queries import Query, Term
from spark_offload.cluster.query_plans import NO_ESTIMATE
from spark_offload.partitioning.placement import (
    Facts,
    Placement,
    choose_placement,
    require_partitions,
)
from spark_offload.partitioning.ranges import OrderProfile
from tests.windows import over

BAND = (Term("x", "x", -1, 1),)
EQUAL = (Term("k", "k"),)
COUNT = CountWindow(10)


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
    how="inner",
    rows=None,
    filtered=False,
    fills=False,
    advisory=1 << 26,
    most=200,
):
    window = TimeWindow(10) if window is None else window
    query = Query(band=terms, time="t", **over(window), how=how)

    def read(ranges):
        assert found is not None, "nothing is read where nothing need be known"
        assert ranges == (partitions or cores)
        return found

    facts = Facts(
        cores=cores,
        sizes=lambda: sizes,
        width=window.lifespan if isinstance(window, TimeWindow) and cut else None,
        order_type=None if cut else "interval day",
        profile=read,
        rows=lambda: rows,
        plain=lambda: plain,
        filtered=lambda: filtered,
        settings=lambda: (advisory, most),
        fills=fills,
    )
    return choose_placement(query, facts, partitions=partitions, partition_by=by)


def cut(found, **changes):
    """Cut rows by time as an action would; until then nothing has been read."""
    return placed(None, **changes).rule.cut(found)


def test_large_inputs_get_a_range_for_each_core():
    placement = placed(None)
    assert placement.partitions == 8
    assert placement.starts is None
    assert "at most one for each core" in placement.reason
    found = placement.rule.cut(profile(10_000_000, 10_000))
    assert len(found.starts) == 7
    assert "8 in all" in found.note
    assert "halos add about 0.7% of the rows" in found.note


def test_an_equality_is_partitioned_by_its_columns():
    placement = placed(terms=EQUAL)
    assert placement.keys == (("k",), ("k",))
    assert placement.starts is None
    assert placement.partitions == 8


def test_an_equality_is_cut_into_ranges_if_asked_for_or_rows_are_counted():
    assert cut(profile(10_000_000, 10_000), terms=EQUAL, by="range").starts
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
        (None, {"rows": 9_000}, "about 9,000 rows, by Spark's estimate, are too few"),
        (profile(9_000, 10_000), {"window": COUNT}, "9,000 rows are too few"),
        (profile(10_000_000, 10_000), {"window": CountWindow(6_000_000)}, "halos would dominate"),
        (profile(10_000_000, 0), {"window": COUNT}, "all rows have one time"),
    ],
)
def test_one_partition_has_its_reason(found, changes, reason):
    placement = placed(found, **changes)
    assert placement.partitions == 1
    assert placement.starts is None
    assert placement.rule is None
    assert reason in placement.reason


def test_the_only_task_reads_what_is_a_plain_read():
    placement = placed(partitions=1, plain=True)
    assert placement.direct
    assert "as asked for; its task reads the inputs itself" in placement.reason
    assert not placed(partitions=1).direct
    assert not placed(None, plain=True).direct
    assert placed(terms=EQUAL, cores=1, plain=True).direct
    assert not placed(terms=EQUAL, plain=True).direct
    assert not placed(terms=EQUAL, cores=2, plain=True).direct


SIZED = {"terms": EQUAL, "rows": 50_000_000, "filtered": True}


def test_the_sizes_of_the_inputs_and_the_settings_of_spark_say_how_many_partitions():
    few = {**SIZED, "sizes": (1 << 20, 1 << 20)}
    assert placed(**few).partitions == 48
    assert placed(**few, most=20).partitions == 20
    assert placed(**few, most=2).partitions == 8, "no core is left out"
    assert placed(**{**few, "rows": 2_000_000}).partitions == 8
    assert placed(**{**few, "rows": 2_000_000}, advisory=1 << 17).partitions == 16
    assert placed(terms=BAND, rows=50_000_000).partitions == 200


def test_large_inputs_with_equal_columns_are_cut_by_time_if_that_serves():
    placement = placed(**SIZED)
    assert placement.rule.keyed
    assert placement.keys == (("k",), ("k",))
    assert not placement.follows_time, "it may turn out that the keys divide the rows"
    for change in ({"filtered": False}, {"fills": True}, {"by": "key"}, {"cut": False}):
        alone = placed(**{**SIZED, **change})
        assert alone.rule is None
        assert alone.keys == (("k",), ("k",))
        assert alone.partitions == 200


def test_few_rows_with_equal_columns_are_one_partition():
    for change in ({"rows": 9_000}, {"sizes": (1 << 40, 1_000)}):
        placement = placed(**{**SIZED, **change}, plain=True)
        assert placement.partitions == 1
        assert placement.direct


def test_fewer_ranges_are_taken_where_halos_would_dominate():
    found = cut(profile(10_000_000, 10_000), window=TimeWindow(1_000))
    assert len(found.starts) == 3
    assert "as many as pay" in found.note


def test_a_burst_counts_by_its_rows_not_by_its_time():
    # Half of all rows lie in a time that is far shorter than the window.
    found = cut(profile(10_000_000, 10_000, crowd=0.5), window=TimeWindow(700))
    assert len(found.starts) < 7


def test_a_crowd_at_one_time_gets_a_range_to_itself():
    starts = profile(1_000, 10_000, crowd=0.5).starts(8)
    assert {5_000, 5_001} <= set(starts)
    assert len(starts) <= 7


def test_the_number_asked_for_is_kept():
    placement = placed(None, partitions=40)
    assert placement.partitions == 40
    found = placement.rule.cut(profile(100, 10))
    assert len(found.starts) <= 10
    assert "of them empty" in found.note


LARGE = profile(10_000_000, 10_000)
NO_KEY = "no column must be equal, so any two rows may meet"
NO_KEY_COUNTED = (
    "no column must be equal, and the last rows of a side are counted over all its rows"
)
COUNTED = "the last rows of a side are counted over all its rows, whatever their keys"
RANGES = f"by ranges of the order columns, as {NO_KEY}"
MOST = "at most one for each core that Spark has"
TOGETHER = "since rows of one time stay together"


@pytest.mark.parametrize(
    ("found", "changes", "reason"),
    [
        (
            None,
            {"terms": EQUAL, "cores": 3},
            "by the equal columns k; one for each core that Spark has",
        ),
        (
            None,
            {"terms": (*EQUAL, *BAND, Term("a", "b")), "partitions": 2},
            "by the equal columns k, a; the number as asked for",
        ),
        (
            None,
            {"partitions": 1, "plain": True},
            f"{NO_KEY}; as asked for; its task reads the inputs itself",
        ),
        (
            None,
            {"partitions": 1, "by": "range", "terms": EQUAL},
            "partition_by='range' was asked for; as asked for",
        ),
        (
            None,
            {"terms": EQUAL, "window": CountWindow(1), "cores": 1},
            f"{COUNTED}; Spark has one core",
        ),
        (None, {"window": CountWindow(1), "cores": 1}, f"{NO_KEY_COUNTED}; Spark has one core"),
        (
            None,
            {"cut": False},
            f"{NO_KEY}; order columns of type interval day cannot be cut into ranges of time",
        ),
        (
            None,
            {"sizes": (1 << 40, 65_535)},
            f"{NO_KEY}; an input of 65,535 bytes is too small for ranges of time to pay",
        ),
        (
            None,
            {"sizes": (65_536, 1 << 40), "rows": 499_999},
            (
                f"{NO_KEY}; about 499,999 rows, by Spark's estimate, "
                "are too few for ranges of time to pay"
            ),
        ),
        (
            None,
            {"sizes": (1 << 20, 1 << 20), "rows": 500_000},
            f"{RANGES}; {MOST}; cut when an action runs",
        ),
        (
            None,
            {"rows": 500_000},
            (
                f"{RANGES}; at most as many as Spark's estimate of the sizes asks for; "
                "cut when an action runs"
            ),
        ),
        (
            None,
            {"sizes": (NO_ESTIMATE, NO_ESTIMATE), "cores": 2},
            f"{RANGES}; Spark tells no sizes here; {MOST}; cut when an action runs",
        ),
        (
            None,
            {"partitions": 8},
            f"{RANGES}; the number as asked for; cut when an action runs",
        ),
        (
            LARGE,
            {"window": CountWindow(1_000), "partitions": 8},
            (
                f"by ranges of the order columns, as {NO_KEY_COUNTED}; the number as asked for; "
                "halos add about 0.1% of the rows"
            ),
        ),
    ],
)
def test_the_reason_is_told_whole(found, changes, reason):
    placement = placed(found, **changes)
    assert placement.reason == reason
    assert placement.profile is found
    assert placement.follows_time == (not any(placement.keys) or placement.partitions == 1)


@pytest.mark.parametrize(
    ("found", "changes", "note"),
    [
        (profile(499_999, 10_000), {}, "499,999 rows are too few for ranges of time to pay"),
        (profile(10_000_000, 0), {}, "all rows have one time"),
        (
            LARGE,
            {"window": TimeWindow(9_000)},
            "halos would dominate: two ranges of time would add 50% of the rows",
        ),
        (
            LARGE,
            {},
            "8 in all; halos add about 0.7% of the rows",
        ),
        (
            profile(500_000, 10_000),
            {},
            "as many as pay; halos add about 0.1% of the rows",
        ),
        (
            LARGE,
            {"partitions": 8},
            "the number as asked for; halos add about 0.7% of the rows",
        ),
        (
            profile(100, 3),
            {"partitions": 8},
            (
                "the number as asked for; "
                f"halos add about 199.2% of the rows; 4 of them empty, {TOGETHER}"
            ),
        ),
        (
            profile(10_000_000, 3),
            {"window": TimeWindow(0)},
            (f"8 in all; halos add about 0.0% of the rows; 4 instead of 8, {TOGETHER}"),
        ),
    ],
)
def test_the_note_on_ranges_is_told_whole(found, changes, note):
    assert cut(found, **changes).note == note


@pytest.mark.parametrize(
    ("how", "share"), [("inner", "14.0%"), ("left", "42.0%"), ("right", "15.8%"), ("full", "43.8%")]
)
def test_halos_of_a_count_based_window_reach_back_twice_where_rows_come_alone(how, share):
    found = OrderProfile((2_000_000, 8_000_000), 0, 10_000, LARGE.quantiles)
    placement = placed(found, window=CountWindow(100_000), how=how, partitions=8)
    # 7 halos of 100,000 rows a side, and what the other side had within as many of its rows.
    assert placement.reason.endswith(f"halos add about {share} of the rows")


@pytest.mark.parametrize(
    ("how", "share"), [("inner", "0.7%"), ("left", "1.2%"), ("right", "0.9%"), ("full", "1.4%")]
)
def test_halos_by_time_reach_back_twice_where_rows_come_alone(how, share):
    found = OrderProfile((3_000_000, 7_000_000), 0, 10_000, LARGE.quantiles)
    assert cut(found, how=how).note.endswith(f"halos add about {share} of the rows")


def test_a_halo_holds_no_more_rows_than_there_are():
    found = OrderProfile((1_000, 9_999_000), 0, 10_000, LARGE.quantiles)
    placement = placed(found, window=CountWindow(50_000), partitions=2)
    assert placement.reason.endswith("halos add about 0.5% of the rows")
    few = OrderProfile((4, 4), 0, 256, tuple(range(1, 256)))
    assert placed(few, window=CountWindow(1), partitions=2).reason.endswith("25.0% of the rows")
    few = OrderProfile((4, 1), 0, 256, tuple(range(1, 256)))
    # Of the left side all 4 rows, of the right one the only row.
    placement = placed(few, window=CountWindow(1), partitions=2, how="full")
    assert placement.reason.endswith("100.0% of the rows")
    one = OrderProfile((1, 0), 0, 256, tuple(range(1, 256)))
    note = cut(one, window=TimeWindow(64), partitions=2).note
    assert note.endswith("25.0% of the rows")
    empty = OrderProfile((0, 0), 0, 0, (0,) * 7)
    assert placed(empty, window=CountWindow(5), partitions=2, how="full").reason.count("0.0%") == 1


def test_ranges_are_halved_until_their_halos_pay():
    for width, ranges in ((400, 8), (600, 8), (800, 4), (1_600, 2), (2_400, 2), (2_600, 1)):
        assert len(cut(LARGE, window=TimeWindow(width)).starts) == ranges - 1
    assert len(cut(LARGE, cores=3, window=TimeWindow(1_700)).starts) == 1
    even = OrderProfile((5_000_000, 5_000_000), 0, 255, tuple(range(255)))
    for width, ranges in ((64, 2), (65, 1)):  # half of the rows, and more
        assert len(cut(even, cores=2, window=TimeWindow(width)).starts) == ranges - 1
    crowd = OrderProfile((5_000_000, 5_000_000), 0, 255, (*range(32), *[32] * 64, *range(96, 255)))
    note = cut(crowd, window=TimeWindow(0)).note
    assert note.endswith("7 instead of 8, since rows of one time stay together")


@pytest.mark.parametrize("wrong", [0, -1, True, False, 1.5, "2"])
def test_partitions_are_a_whole_number_from_one_on(wrong):
    with pytest.raises(UsageError) as raised:
        require_partitions(wrong)
    assert str(raised.value) == f"partitions must be a whole number of at least 1, not {wrong!r}."
    with pytest.raises(UsageError, match="whole number"):
        placed(None, partitions=wrong)
    for right in (None, 1, 2):
        require_partitions(right)


NOT_CUT = (
    "Order columns of type interval day cannot be cut into ranges of time; cast them to a whole "
    "number, or take partitions=1 and no partition_by."
)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"by": "hash"}, "partition_by must be 'files', 'key', 'range' or None, not 'hash'."),
        (
            {"by": "key"},
            "partition_by='key' is not possible: there is no equal column in on; take 'range'.",
        ),
        (
            {"by": "key", "terms": EQUAL, "window": CountWindow(3)},
            (
                "partition_by='key' is not possible: rows=... counts the rows of a side whatever "
                "their keys; take 'range'."
            ),
        ),
        ({"by": "range", "terms": EQUAL, "cut": False}, NOT_CUT),
        ({"partitions": 2, "cut": False}, NOT_CUT),
        ({"by": "range", "partitions": 1, "cut": False}, NOT_CUT),
    ],
)
def test_what_is_not_possible_is_refused(changes, words):
    with pytest.raises(UsageError) as raised:
        placed(None, **changes)
    assert str(raised.value) == words


def test_what_needs_no_ranges_is_not_refused_for_times_that_cannot_be_cut():
    assert placed(cut=False, partitions=1).partitions == 1
    assert placed(cut=False, terms=EQUAL, partitions=3).keys == (("k",), ("k",))
    assert placed(cut=False, terms=EQUAL, by="key").partitions == 8


def test_a_placement_says_by_itself_as_little_as_can_be():
    alone = Placement(1, "why")
    assert (alone.keys, alone.starts, alone.profile, alone.direct) == (((), ()), None, None, False)
    assert not Placement(2, "why").follows_time
    assert Placement(2, "why", starts=()).follows_time
    assert not Facts(1, lambda: (0, 0), None, None, profile).plain()
