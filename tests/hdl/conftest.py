# SPDX-License-Identifier: Apache-2.0
import pytest

from hdl.memory import columns as block_ram
from tests.hdl.ecp5 import DP16KD, ECP5


@pytest.fixture(params=["inferred", "primitive"])
def platform(request, monkeypatch):
    """No platform, or one whose block RAM is replaced by its model."""
    if request.param == "inferred":
        return None
    monkeypatch.setattr(block_ram, "Instance", DP16KD)
    return ECP5()
