# SPDX-License-Identifier: Apache-2.0
from host.streams.failed_cores import failed_cores, has_gates, note_failed, participation
from host.words import WordCodec
from tests.host.bundles import BUNDLES, write_manifest
from tests.host.failing_device import FailingDevice, gated


def test_a_device_remembers_its_failed_cores_until_it_is_opened_again(tmp_path):
    bundle = write_manifest(gated(cores=3), tmp_path / "bundle")
    with FailingDevice(bundle, []) as device, FailingDevice(bundle, []) as other:
        assert has_gates(device.manifest)
        note_failed(device, 1)
        assert failed_cores(device) == {1}
        assert failed_cores(other) == set()
        codec = WordCodec(device.manifest)
        said = [codec.unpack_control(word) for word in participation(device)]
        assert said == [("UNMASK", 0, 0), ("MASK", 0, 1), ("UNMASK", 0, 2)]


def test_other_accelerators_have_no_gates(tmp_path):
    with FailingDevice(write_manifest(BUNDLES["tiny"], tmp_path / "bundle"), []) as device:
        assert not has_gates(device.manifest)
