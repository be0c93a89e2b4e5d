# SPDX-License-Identifier: Apache-2.0
"""What all tests share: where the repository is, steady random data."""

import os
from pathlib import Path

from hypothesis import HealthCheck, settings
import pytest

from tests.skips import SkipRecord

ROOT = Path(__file__).resolve().parent.parent

# No deadline: two workers on two cores make times uneven. In CI, the same examples every time.
settings.register_profile(
    "local", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.register_profile("ci", settings.get_profile("local"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")


def pytest_addoption(parser):
    parser.addoption(
        "--fail-on-unlisted-skip", action="store_true",
        help="fail if a test is skipped that tests/skips.py does not list (make check)",
    )  # fmt: skip


def pytest_configure(config):
    # With several workers, the process that starts them receives all reports.
    if config.getoption("--fail-on-unlisted-skip") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(SkipRecord(), "skip-record")


@pytest.fixture(scope="session")
def root():
    """The folder that holds the packages."""
    return ROOT
