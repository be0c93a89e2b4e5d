# SPDX-License-Identifier: Apache-2.0
"""Whatever a program gives in the place of an argument, a wrong value is named by an error."""

from itertools import chain

import numpy as np
import pyarrow as pa
import pytest

import host
from host.errors import JoinError

ROWS = pa.table(
    {"t": [1, 2, 3, 5, 8], "e": [4, 4, 9, 6, 9], "k": [0, 1, 0, 1, 0], "v": [3, 1, 4, 1, 5]}
)
SUMS = {"n": "count", "s": "sum:v"}
#: A call of each function, with a value for each of its arguments.
CALLS = {
    "join": ((ROWS, ROWS), {
        "time": "t", "on": "k", "band": None, "where": None, "within": 5, "rows": None,
        "advance": None, "per_window": False, "pairs": "all", "how": "inner", "ordering": None,
        "sorted": False, "suffix": "_right", "elastic": None, "device": None, "reader": False,
    }),
    "asof_join": ((ROWS, ROWS), {
        "time": "t", "on": "k", "direction": "backward", "within": None, "device": None,
        "reader": False,
    }),
    "aggregate": ((ROWS,), {
        "time": "t", "window": 4, "advance": 2, "on": "k", "aggregates": SUMS, "sorted": False,
        "device": None, "reader": False,
    }),
    "join_aggregate": ((ROWS, ROWS), {
        "time": "t", "on": "k", "within": 5, "aggregates": SUMS, "device": None,
    }),
    "overlap_join": ((ROWS, ROWS), {
        "left_interval": ("t", "e"), "right_interval": ("t", "e"), "on": "k", "touching": True,
        "how": "inner", "device": None, "reader": False,
    }),
    "join_many": (({"a": ROWS, "b": ROWS},), {
        "time": "t", "on": "k", "within": 5, "advance": None, "where": "a.v < b.v", "device": None,
    }),
}  # fmt: skip
#: Values of all kinds, most of which are wrong at any place.
VALUES = [
    None, True, -1, float("nan"), 10**30, np.int64(3), "", "5s", "\ud800", b"x", [], (), [None],
    (1, 2), ["t", "t"], [("t", "t", "t")], {"t"}, {1: 2}, {"n": ("sum",)}, {"n": ("sum", "nope")},
    {3: "count"}, {"a": 3, "b": ROWS}, object(), iter(()), lambda one: one, pa.chunked_array([[1]]),
    5, 1.5, "k", ("t", "k"), [1], {}, {"n": 5}, ROWS,
]  # fmt: skip
#: Words of a query that a function does without; those of an overlap join are refused.
OTHERS = {
    "asof_join": ["how", "sorted", "suffix"], "join_aggregate": ["rows", "where"],
    "overlap_join": ["time", "within", "rows", "band"],
}  # fmt: skip
PLACES = [
    (name, place)
    for name, (rows, words) in CALLS.items()
    for place in chain(range(len(rows)), words, OTHERS.get(name, []))
]


@pytest.mark.parametrize(("name", "place"), PLACES)
def test_a_wrong_value_of_an_argument_is_an_error_of_the_kit(name, place):
    given, words = CALLS[name]
    getattr(host, name)(*given, **words)
    for value in VALUES:
        rows, changed = list(given), dict(words)
        (rows if isinstance(place, int) else changed)[place] = value
        try:
            getattr(host, name)(*rows, **changed)
        except JoinError:
            pass
        except Exception as error:
            raise AssertionError(f"{place}={value!r} ended in {error!r}") from error


@pytest.mark.parametrize("name", CALLS)
def test_a_missing_column_is_named_with_those_that_there_are(name):
    given, words = CALLS[name]
    changed = {"left_interval": ("nope", "e")} if "left_interval" in words else {"time": "nope"}
    with pytest.raises(host.UsageError, match=r"'nope'.* 't', 'e', 'k', 'v'"):
        getattr(host, name)(*given, **words | changed)
