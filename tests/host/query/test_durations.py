# SPDX-License-Identifier: Apache-2.0
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st
import pytest

from host.errors import UsageError
from host.query.quantities import Duration, as_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("180min", 180 * 60 * 10**9),
        ("30s", 30 * 10**9),
        ("2h", 7200 * 10**9),
        ("1d", 86400 * 10**9),
        ("500ms", 5 * 10**8),
        ("1h30min", 5400 * 10**9),
        ("-2.5 s", -25 * 10**8),
        ("3 minutes", 180 * 10**9),
        ("7us", 7000),
        ("0s", 0),
        ("1 week", 604800 * 10**9),
        ("INTERVAL 5 SECONDS", 5 * 10**9),
        ("interval '5' second", 5 * 10**9),
        ("INTERVAL '-5 seconds'", -5 * 10**9),
        ("INTERVAL -1 HOUR 30 MINUTES", -5400 * 10**9),
        ("INTERVAL '1 02:03:04.5' DAY TO SECOND", 93784 * 10**9 + 5 * 10**8),
        ("INTERVAL '-0 00:00:05' DAY TO SECOND", -5 * 10**9),
    ],
)
def test_durations_are_read(text, nanoseconds):
    assert parse_duration(text) == Duration(nanoseconds)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-",
        "30",
        "s",
        "3 fortnights",
        "1h x",
        "0.5ns",
        "1..5s",
        "INTERVAL",
        "5 interval seconds",
        "INTERVAL '1 02:03' DAY TO SECOND",
    ],
)
def test_what_is_no_duration_is_an_error(text):
    with pytest.raises(UsageError, match="is not a duration"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["-0.5", "30", "1e3", " 7 "])
def test_a_number_in_quotes_is_told_that_it_lacks_a_unit(text):
    with pytest.raises(UsageError, match="has no unit") as caught:
        parse_duration(text, "The bound")
    assert f"The bound {text!r}" in str(caught.value)
    assert f"like {text.strip()}s" in str(caught.value)
    assert "write the number without quotes" in str(caught.value)


@pytest.mark.parametrize("text", ["2 months", "INTERVAL '1' YEAR", "1 year 3 days"])
def test_a_unit_of_the_calendar_is_told_to_have_no_length(text):
    with pytest.raises(UsageError, match="has no fixed length; write days"):
        parse_duration(text)


@given(st.integers(-(10**18), 10**18))
def test_a_written_duration_is_read_back(nanoseconds):
    assert parse_duration(str(Duration(nanoseconds))) == Duration(nanoseconds)


def test_a_timedelta_is_a_duration():
    assert as_duration(timedelta(days=-1, microseconds=1)) == Duration(-86400 * 10**9 + 1000)
    assert -Duration(3) < Duration(2)
