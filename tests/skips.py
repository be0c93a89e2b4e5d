# SPDX-License-Identifier: Apache-2.0
"""Which tests may be skipped where everything is installed: a skip that is not listed fails CI.

A test that skips for want of a tool tests nothing, and nobody sees that it stopped doing so.
"""

from dataclasses import dataclass
from fnmatch import fnmatchcase
import re

__all__ = ["ALLOWED", "Skip", "SkipRecord", "is_allowed"]


@dataclass(frozen=True)
class Skip:
    """A skip that is meant.

    Parameters
    ----------
    test : str
        Pattern of test ids, as of a shell.
    said : str
        Regular expression of what the test gives as its reason, all of it.
    why : str
        Why it is right that the test does not run.
    """

    test: str
    said: str
    why: str


ALLOWED = (
    Skip(
        "tests/host/*",
        "no timestamps|no bounds|order is free|order is not free",
        "one contract for all devices: some have no such words, or another order",
    ),
    Skip(
        "tests/test_flights.py*",
        "needs .*",
        "the file of real flights is no part of the repository",
    ),
)


def is_allowed(test, reason):
    """May the test with this id be skipped for this reason?"""
    return any(fnmatchcase(test, skip.test) and re.fullmatch(skip.said, reason) for skip in ALLOWED)


class SkipRecord:
    """A pytest plugin that gathers skips, and fails the session on one that is not listed."""

    def __init__(self):
        self.unlisted = {}

    def note(self, report):
        """Keep the reason of a report that says a test, or a whole file, was skipped."""
        if report.skipped and not hasattr(report, "wasxfail"):
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
            reason = str(reason).removeprefix("Skipped: ")
            if not is_allowed(report.nodeid, reason):
                self.unlisted[report.nodeid] = reason

    pytest_runtest_logreport = pytest_collectreport = note

    def pytest_terminal_summary(self, terminalreporter):
        """Name the skips that are not listed."""
        if self.unlisted:
            terminalreporter.section("skips that tests/skips.py does not list")
            for test, reason in sorted(self.unlisted.items()):
                terminalreporter.line(f"{test}: {reason}")

    def pytest_sessionfinish(self, session):
        """Fail the session; a failure of another kind keeps its own exit status."""
        if self.unlisted and session.exitstatus == 0:
            session.exitstatus = 1
