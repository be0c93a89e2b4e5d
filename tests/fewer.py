# SPDX-License-Identifier: Apache-2.0
"""Which cases of a test run by default, and on how many examples of Hypothesis."""

import os

from hypothesis import settings
import pytest

__all__ = ["ALL_EXAMPLES", "leave_few", "most_different", "take_fewer_examples"]

#: Variable of the environment that lets tests have all of their examples (`make test-long`).
ALL_EXAMPLES = "ALL_EXAMPLES"
#: Number of examples that a test keeps in any case.
LEAST_EXAMPLES = 10


def leave_few(items):
    """Mark cases as ``long``, but for as many of a test as its mark ``few`` names.

    Parameters
    ----------
    items : list of pytest.Item
        All tests. Cases that are ``long`` already do not count.
    """
    cases = {}
    for item in items:
        if item.get_closest_marker("few") and not item.get_closest_marker("long"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for some in cases.values():
        (count,) = some[0].get_closest_marker("few").args
        kept = most_different([item.callspec.indices for item in some], count)
        for number, item in enumerate(some):
            if number not in kept:
                item.add_marker(pytest.mark.long)


def most_different(cases, count):
    """Return the numbers of the cases that share the fewest values with one another.

    Parameters
    ----------
    cases : list of dict of str to int
        For each case, which of its values a parameter has.
    count : int
        How many cases are chosen; there may be fewer.

    Returns
    -------
    set of int
        The last case, as lists go from the simple to the large; then each time the case with the
        most values that no chosen one has, and of those the one whose values are the rarest in what
        was chosen; the earliest in the list, if several are equal.
    """
    used, chosen = {}, set()

    def loneliness(number):
        times = [used.get(value, 0) for value in cases[number].items()]
        return (times.count(0), -sum(times))

    while len(chosen) < min(count, len(cases)):
        left = [number for number in range(len(cases)) if number not in chosen]
        best = max(left, key=loneliness) if chosen else left[-1]
        chosen.add(best)
        for value in cases[best].items():
            used[value] = used.get(value, 0) + 1
    return chosen


def take_fewer_examples(config, items):
    """Let tests of Hypothesis that are not ``long`` have a quarter of their examples.

    Whoever names a profile of Hypothesis, or sets :data:`ALL_EXAMPLES`, has all of them. So it is
    with the programs of a state machine.

    Parameters
    ----------
    config : pytest.Config
    items : list of pytest.Item
        All tests.
    """
    if os.environ.get(ALL_EXAMPLES) or config.getoption("--hypothesis-profile", None):
        return
    done = set()
    for item in items:
        test = getattr(item, "obj", None)
        test = getattr(test, "__func__", test)
        holder, name = test, "_hypothesis_internal_use_settings"
        if hasattr(test, "_hypothesis_state_machine_class"):
            holder, name = item.cls, "settings"
        own = getattr(holder, name, None)
        if own is None or holder in done or item.get_closest_marker("long"):
            continue
        done.add(holder)
        count = min(own.max_examples, max(LEAST_EXAMPLES, own.max_examples // 4))
        setattr(holder, name, settings(own, max_examples=count))
