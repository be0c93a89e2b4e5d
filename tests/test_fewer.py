# SPDX-License-Identifier: Apache-2.0
from itertools import product
from types import SimpleNamespace

from hypothesis import given, settings
from hypothesis import strategies as st
import pytest

from tests.fewer import ALL_EXAMPLES, leave_few, most_different, take_fewer_examples


def cross(*sizes):
    return [dict(enumerate(case)) for case in product(*map(range, sizes))]


@given(st.lists(st.integers(1, 5), min_size=1, max_size=3), st.integers(1, 200))
def test_there_are_as_many_as_asked_for(sizes, count):
    cases = cross(*sizes)
    assert len(most_different(cases, count)) == min(count, len(cases))


@given(st.lists(st.integers(1, 5), min_size=1, max_size=3))
def test_each_value_is_in_one_of_as_many_cases_as_the_longest_list_has_values(sizes):
    cases = cross(*sizes)
    chosen = [cases[number] for number in most_different(cases, max(sizes))]
    for name, size in enumerate(sizes):
        assert {case[name] for case in chosen} == set(range(size))


class Case:
    """What is asked of a case that pytest has collected."""

    def __init__(self, name, indices, *marks):
        self.nodeid = f"test_x.py::{name}"
        self.callspec = SimpleNamespace(indices=indices)
        self.marks = {mark.name: mark for mark in marks}

    def get_closest_marker(self, name):
        return self.marks.get(name)

    def add_marker(self, decorator):
        self.marks[decorator.mark.name] = decorator.mark


def test_the_rest_is_long_and_what_is_long_does_not_count():
    few, long = pytest.mark.few(2).mark, pytest.mark.long.mark
    cases = [Case(f"test_a[{n}]", {"n": n}, few, *[long] * (n == 0)) for n in range(4)]
    leave_few([*cases, Case("test_b[1]", {"n": 1}), Case("test_c", {})])
    assert [bool(case.get_closest_marker("long")) for case in cases] == [True, False, True, False]


class Property(Case):
    """A test of Hypothesis."""

    def __init__(self, count, *marks):
        super().__init__("test_d", {}, *marks)
        self.ran = 0

        @settings(max_examples=count, database=None)
        @given(st.integers())
        def test(_):
            self.ran += 1

        self.obj = test


class Chosen:
    """The options of a run: with a profile of Hypothesis, or without."""

    def __init__(self, profile=None):
        self.profile = profile

    def getoption(self, name, default):
        return self.profile or default


@pytest.mark.parametrize(
    ("marks", "variable", "profile", "expected"),
    [
        ([], "", None, [8, 10, 25]),
        ([pytest.mark.long.mark], "", None, [8, 25, 100]),
        ([], "1", None, [8, 25, 100]),
        ([], "", "faults", [8, 25, 100]),
    ],
)
def test_a_quarter_of_the_examples_is_taken(monkeypatch, marks, variable, profile, expected):
    monkeypatch.setenv(ALL_EXAMPLES, variable)
    items = [Property(count, *marks) for count in (8, 25, 100)]
    take_fewer_examples(Chosen(profile), [Case("test_c", {}), *items, *items])
    for item in items:
        item.obj()
    assert [item.ran for item in items] == expected
