# SPDX-License-Identifier: Apache-2.0
import pytest

from host import open_device
from host.devices import open_aggregate
from host.errors import UsageError


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A package with a device of one's own."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "link.py").write_text(
        "import host\n"
        "def open_device(place):\n"
        "    return host.open_device('software:') if place == 'good' else place\n"
    )
    (tmp_path / "mine" / "empty.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    return "mine.link"


def test_a_module_opens_devices_of_its_own(module):
    with open_device(f"{module}:good") as device:
        assert device.uri == "software:"


def test_what_is_no_device_is_refused(module):
    with pytest.raises(UsageError, match="opened as a str, which is no Device"):
        open_device(f"{module}:bad")
    with pytest.raises(UsageError, match="'mine.empty'"):
        open_device("mine.empty:1")
    with pytest.raises(UsageError, match="'mine.none'"):
        open_device("mine.none:1")


def test_an_accelerator_of_aggregates_has_a_bundle():
    with pytest.raises(UsageError, match="'sim:' lacks its bundle"):
        open_aggregate("sim:")
