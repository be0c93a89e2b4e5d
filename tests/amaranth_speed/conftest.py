# SPDX-License-Identifier: Apache-2.0
from contextlib import contextmanager

import pytest

from tests.amaranth_speed.changes import quicken


@pytest.fixture
def own_amaranth(quick_amaranth):
    """A context in which Amaranth is as it was installed."""

    @contextmanager
    def installed():
        quick_amaranth.undo()
        try:
            yield
        finally:
            quicken(quick_amaranth)

    return installed
