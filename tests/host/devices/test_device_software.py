# SPDX-License-Identifier: Apache-2.0
import json
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import settings
import numpy as np
import pytest

from hdl.manifest import describe
from hdl.parameters import JoinParameters
from host import (
    Arrivals,
    Bounds,
    CountWindow,
    DifferenceBand,
    Ordering,
    open_device,
    reference_join,
)
from host.devices.software import SOFTWARE_MANIFEST, SoftwareDevice
from host.errors import ManifestError, MissingToolError, UsageError
from host.protocol.manifest import Manifest
from host.protocol.storage import StorageRule
from sim.model.words import JoinWords
from tests.host.device_contract import DeviceContract, converse
from tests.host.device_machine import DeviceMachine, ThreadedDevice
from tests.host.protocol.punctuated import punctuate
from tests.host.small_bundles import BUNDLES, X8, write_manifest

SOFTWARE = JoinParameters.from_dict(Manifest.load(SOFTWARE_MANIFEST).values["parameters"])


class TestSoftwareDevice(DeviceContract):
    @pytest.fixture
    def open_bundle(self, tmp_path):
        def opened(parameters):
            return open_device(f"software:{write_manifest(parameters, tmp_path / 'bundle')}")

        return opened


class SoftwareMachine(DeviceMachine):
    """Any use of the software device, at times by way of a thread."""

    shapes = list(BUNDLES.values())

    def open_device(self, parameters, seed):
        with TemporaryDirectory() as folder:
            device = open_device(f"software:{write_manifest(parameters, Path(folder))}")
        return ThreadedDevice(device) if seed % 4 == 3 else device


SoftwareMachine.TestCase.settings = settings(max_examples=50)
TestAnyUse = SoftwareMachine.TestCase


def test_the_committed_manifest_has_the_layout_that_the_hardware_would_have():
    fresh = describe(SOFTWARE, "", verilog_file="")
    committed = json.loads(SOFTWARE_MANIFEST.read_text(encoding="utf-8"))
    for name in set(fresh) - {"kit", "hash", "files", "checksums", "tools"}:
        assert committed[name] == fresh[name], name


def test_software_without_a_bundle_is_always_there():
    with open_device("software:") as device:
        assert device.uri == "software:"
        assert [(key.bits, key.signed) for key in device.manifest.keys] == [(64, True)] * 4
        assert device.manifest.timestamp_bits == 64


@pytest.mark.parametrize("uri", ["", "software", "build/demo", "fpga:0"])
def test_an_unknown_device_is_a_clear_error(uri):
    with pytest.raises(UsageError, match="'sim:BUNDLE'") as caught:
        open_device(uri)
    assert repr(uri) in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_missing_bundle_is_a_clear_error(tmp_path):
    with pytest.raises(ManifestError, match="python -m sim build"):
        open_device(f"software:{tmp_path / 'nowhere'}")


def test_a_custom_predicate_that_cannot_be_imported_is_a_clear_error(tmp_path):
    parameters = JoinParameters.of(keys=X8, comparator="custom", predicate="nowhere_at_all:p")
    with pytest.raises(UsageError, match="nowhere_at_all:p"):
        SoftwareDevice(write_manifest(parameters, tmp_path / "bundle"))


@pytest.mark.few(1)
@pytest.mark.parametrize(("name", "period"), [("plain", 1), ("groups", 1), ("groups", 4)])
def test_many_tuples_in_batches_agree_with_the_reference_join(name, period, tmp_path):
    parameters = BUNDLES[name].with_(sub_window=200)
    rng = np.random.default_rng(10)
    count = 20_000
    limits = [(key, 60 if key.bits > 6 else 31) for key in parameters.keys]
    keys = {key.name: rng.integers(0, limit, count) for key, limit in limits}
    arrivals = Arrivals(rng.integers(0, 2, count), keys)
    band = DifferenceBand({key.name: Bounds(-1, 0) for key in parameters.keys})
    matches = reference_join(arrivals, band, CountWindow(parameters.capacity))
    assert len(matches) > 10_000
    with SoftwareDevice(write_manifest(parameters, tmp_path / "bundle")) as device:
        codec = JoinWords(device.manifest)
        controls = [("PRECISION", 0, period)]
        for index in range(len(parameters.keys)):
            controls += [("BOUND_LOW", index, -1), ("BOUND_HIGH", index, 0)]
        tuples = codec.pack_tuples(arrivals.side, arrivals.keys)
        words = [codec.pack_control(*c) for c in controls] + [tuples, codec.pack_control("FLUSH")]
        got = converse(device, np.concatenate(words), 2, room=4096)
        rule = StorageRule.of(device.manifest)
    want = [codec.pack_punctuation(codec.mark, 0, 0, 0)]
    groups = punctuate(
        matches,
        arrivals,
        Ordering.relaxed(period),
        probes=parameters.engine.probes,
        limit=parameters.cores * parameters.slack,
        cores=parameters.cores,
    )
    ordinals = arrivals.ordinals
    for group in groups:
        begin = ordinals[group.probes[0]]
        index = ordinals[matches.probe[group.matches]] - begin
        core, row, lane = rule.places(ordinals[matches.stored[group.matches]])
        want.append(codec.pack_pairs(group.side, index, core, row, lane))
        want.append(codec.pack_punctuation(codec.star, group.side, 0, 0))
    want.append(codec.pack_punctuation(codec.mark, 0, 0, 0))
    assert np.array_equal(got, np.concatenate(want))


def test_words_without_the_simulators_package_are_a_clear_error(monkeypatch):
    """Executors of Spark have no package ``sim``; rows need no model, and words say what lacks."""
    monkeypatch.setattr("host.devices.software.MODEL", "sim.nowhere")
    with SoftwareDevice(SOFTWARE_MANIFEST) as device:
        room = np.zeros((8, device.manifest.result_word.columns), np.uint64)
        words = JoinWords(device.manifest).pack_control("FLUSH")
        assert device.counters()["tuples_r"] == 0
        with pytest.raises(MissingToolError, match=r"sim\.nowhere.*'sim:BUNDLE' or a board"):
            device.exchange(words, room, cycles=1)
