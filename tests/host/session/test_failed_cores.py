# SPDX-License-Identifier: Apache-2.0
import pytest

from host.errors import DeviceError
from host.reference.window import CountWindow, TimeWindow
from host.session.cores import (
    exclude,
    failed_cores,
    has_gates,
    note_failed,
    note_new,
    participation,
)
from sim.model.words import JoinWords
from tests.host.failing_device import FailingDevice, gated
from tests.host.small_bundles import BUNDLES, write_manifest


def test_a_device_remembers_its_failed_cores_until_it_is_opened_again(tmp_path):
    bundle = write_manifest(gated(cores=3), tmp_path / "bundle")
    with FailingDevice(bundle, []) as device, FailingDevice(bundle, []) as other:
        assert has_gates(device.manifest)
        note_failed(device, 1)
        assert failed_cores(device) == {1}
        assert failed_cores(other) == set()
        codec = JoinWords(device.manifest)
        said = [codec.unpack_control(word) for word in participation(device)]
        assert said == [("UNMASK", 0, 0), ("MASK", 0, 1), ("UNMASK", 0, 2)]


def test_other_accelerators_have_no_gates(tmp_path):
    with FailingDevice(write_manifest(BUNDLES["tiny"], tmp_path / "bundle"), []) as device:
        assert not has_gates(device.manifest)


def test_new_failures_are_noted_once(tmp_path):
    bundle = write_manifest(gated(cores=4), tmp_path / "bundle")
    with FailingDevice(bundle, []) as device:
        assert note_new(device, {3, 1}) == [1, 3]
        assert note_new(device, {1, 2, 3}) == [2]
        assert note_new(device, set()) == []
        assert failed_cores(device) == {1, 2, 3}


def test_a_device_goes_on_with_the_cores_that_took_turns_and_have_not_failed(tmp_path):
    bundle = write_manifest(gated(cores=4), tmp_path / "bundle")
    with FailingDevice(bundle, []) as device:
        new = note_new(device, {2, 0})
        live, masks, segment = exclude(device, new, [3, 2, 1], TimeWindow(5))
        assert live == [3, 1]
        codec = JoinWords(device.manifest)
        assert [codec.unpack_control(word) for word in masks] == [("MASK", 0, 0), ("MASK", 0, 2)]
        names = [codec.unpack_control(word)[0] for word in segment]
        assert names == ["CORE", "CORE", "SEGMENT"]


def test_a_device_does_not_go_on_without_cores_or_with_too_few(tmp_path):
    bundle = write_manifest(gated(cores=2, sub_window=8), tmp_path / "bundle")
    with FailingDevice(bundle, []) as device:
        new = note_new(device, {1})
        with pytest.raises(DeviceError, match="window of 9 tuples does not fit 1 cores"):
            exclude(device, new, range(2), CountWindow(9))
        with pytest.raises(DeviceError, match="No core is left; reset the device"):
            exclude(device, note_new(device, {0}), range(2), CountWindow(4))
