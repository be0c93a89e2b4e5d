# SPDX-License-Identifier: Apache-2.0
"""Windows in common and rows joined with themselves, in Spark: as plain loops say."""

from datetime import UTC, date, datetime, timedelta
import random

import pyarrow as pa
import pytest

from host import Query, UsageError
from spark_offload import explain, plan_join, stream_join, verify
from tests.paths.cases import Case
from tests.paths.spark_answers import joined, wrong_answers
from tests.spark_offload.spark_tables import frame_of_table

MOMENT = datetime(1969, 12, 31, 23, 59, 50)
TIMES = {
    "numbers": (pa.int32(), lambda at: at - 12, 5, 2),
    "days": (pa.date32(), lambda at: date(1969, 12, 20) + timedelta(at), "5d", "2d"),
    "clocks": (pa.timestamp("us"), lambda at: MOMENT + timedelta(seconds=at), "5s", "2s"),
    "instants": (
        pa.timestamp("us", "UTC"),
        lambda at: (MOMENT + timedelta(seconds=at)).replace(tzinfo=UTC),
        "5s",
        "2s",
    ),
}


def case_of(name, **words):
    """Return a join over windows in common, of times of a kind."""
    kind, value, within, advance = TIMES[name]
    rng = random.Random(name)
    tables = [
        pa.table(
            {
                "t": pa.array([value(rng.randrange(25)) for _ in range(30)], kind),
                "k": [rng.randrange(3) for _ in range(30)],
                "id": range(30),
            }
        )
        for _ in range(2)
    ]
    query = Query(time="t", on="k", within=within, advance=advance, **words)
    return Case(f"{name} {words}", *tables, query)


def test_pairs_that_share_a_window_come_once_or_once_for_each(spark):
    cases = [case_of(name, per_window=each) for name in TIMES for each in (False, True)]
    by_key = [joined(spark, case, device="software:", partitions=3) for case in cases]
    assert wrong_answers(cases, by_key, ordered=False) == []
    assert "one of the windows of 5, every 2" in explain(by_key[0]).window
    for answer in by_key[1::2]:
        assert answer.columns[-2:] == ["window_start", "window_end"]
    assert all(verify(answer).agrees for answer in by_key[:2])


def test_ranges_of_time_have_the_pairs_in_order(spark):
    cases = [case_of("instants", per_window=True), case_of("numbers", how="left")]
    answers = [
        joined(spark, case, device="software:", partitions=3, partition_by="range")
        for case in cases
    ]
    assert wrong_answers(cases, answers, ordered=True) == []


def test_every_two_rows_of_a_frame_come_once_by_a_unique_column(spark):
    case = case_of("numbers")
    frame = frame_of_table(spark, case.left, "rows")
    once = stream_join(
        frame, frame, time="t", on="k", within=5, where="l.id < r.id", device="software:"
    )
    rows = case.left.to_pylist()
    expected = {
        (one["id"], other["id"])
        for one in rows
        for other in rows
        if one["k"] == other["k"] and abs(one["t"] - other["t"]) <= 5 and one["id"] < other["id"]
    }
    found = [(row["id"], row["id_right"]) for row in once.collect()]
    assert len(found) == len(expected)
    assert set(found) == expected
    with pytest.raises(UsageError, match="where='l.id < r.id'"):
        plan_join(frame, frame, time="t", within=5, pairs="once")


def test_what_has_no_windows_is_refused(spark):
    frame = frame_of_table(spark, case_of("numbers").left, "rows")
    with pytest.raises(UsageError, match="advance is for windows of one length"):
        plan_join(frame, frame, time="t", rows=5, advance=2)
    with pytest.raises(UsageError, match="how='inner'"):
        plan_join(frame, frame, time="t", within=5, advance=2, per_window=True, how="left")
