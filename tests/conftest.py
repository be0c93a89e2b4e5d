# SPDX-License-Identifier: Apache-2.0
"""What all tests share: where the repository is, steady random data."""

import os
from pathlib import Path

from hypothesis import HealthCheck, settings
import pytest

ROOT = Path(__file__).resolve().parent.parent

# No deadline: two workers on two cores make times uneven. In CI, the same examples every time.
settings.register_profile(
    "local", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.register_profile("ci", settings.get_profile("local"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")


@pytest.fixture(scope="session")
def root():
    """The folder that holds the packages."""
    return ROOT
