# SPDX-License-Identifier: Apache-2.0
import pytest

from hdl.ecp5 import is_ecp5
from tests.hdl.ecp5 import ECP5


@pytest.mark.parametrize(
    ("device", "answer"),
    [("LFE5U-85F", True), ("lfe5um5g-25f", True), ("iCE40HX8K", False), ("", False)],
)
def test_an_ecp5_is_known_by_the_name_of_its_device(device, answer):
    platform = ECP5()
    platform.device = device
    assert is_ecp5(platform) == answer
    assert not is_ecp5(None)
    assert not is_ecp5(object())
