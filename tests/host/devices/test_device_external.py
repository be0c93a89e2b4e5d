# SPDX-License-Identifier: Apache-2.0
"""Simulated devices whose windows are in external memory, of any latency."""

import numpy as np
import pyarrow as pa
import pytest

from hdl.parameters import JoinParameters, KeyField
from host import CountWindow, open_device
from host.devices.simulated import MemoryPace, SimulatedDevice
from host.errors import DeviceError
from host.protocol.manifest import Manifest
from host.query.queries import Query
from host.session.join import join_tables
from tests.host.device_contract import DeviceContract, ask
from tests.host.devices.test_device_simulated import built
from tests.host.small_bundles import (
    BUNDLES,
    FLUSH,
    MIXED,
    configuration,
    expected,
    random_tuples,
    write_manifest,
)
from tests.host.tables import naive_join
from tests.windows import over

X16 = (KeyField(name="x", bits=16),)
#: Tuples go to memory in pairs or by the dozen; three cores are not a power of two.
SHAPES = {
    "tiny": JoinParameters.of(
        cores=2, sub_window=40, keys=X16, timestamp_bits=16, probe_bits=2,
        store="external", memory_width=16, memory_burst=2, memory_latency=3,
    ),
    "groups": JoinParameters.of(
        cores=3, sub_window=5, keys=MIXED, timestamp_bits=10, lanes=2, probes=4, fan_in=2,
        fan_out=2, probe_bits=3, result_streams=2, rounds=True,
        store="external", memory_width=128, memory_burst=1, memory_latency=9,
    ),
}  # fmt: skip

#: Windows of many bursts.
LARGE = JoinParameters.of(
    cores=1, sub_window=900, keys=X16, lanes=3, probes=4,
    store="external", memory_width=64, memory_burst=8, memory_latency=20,
)  # fmt: skip


class TestExternalDevice(DeviceContract):
    """The contract over a memory as slow as the accelerator was made for, and over a worse one."""

    timed_parameters = SHAPES["tiny"]

    @pytest.fixture(params=["tiny", pytest.param("groups", marks=pytest.mark.long)])
    def parameters(self, request):
        return SHAPES[request.param]

    @pytest.fixture(params=["good", "bad"])
    def open_bundle(self, request):
        if request.param == "good":
            return lambda parameters: open_device(f"sim:{built(parameters)}")
        pace = MemoryPace(latency=1, jitter=90, stalls=100)
        return lambda parameters: SimulatedDevice(
            built(parameters), seed=9, stall_in=60, stall_out=60, memory=pace
        )


@pytest.mark.long
@pytest.mark.parametrize(("latency", "stalls"), [(1, 0), (20, 0), (200, 120)])
def test_windows_of_many_bursts_are_those_of_the_naive_accelerator(latency, stalls):
    """Stores come in bursts and one by one, so rows are read that were written just before."""
    rng = np.random.default_rng(latency + stalls)
    script = configuration(LARGE, bounds=(0, 0), windows=[("WINDOW", 900), ("WINDOW", 411)])
    for share_r in (0.5, 0.02, 0.9):
        script += random_tuples(LARGE, rng, 500, share_r=share_r, spread=300)
    script += [("WINDOW", 0, 700), *random_tuples(LARGE, rng, 500, spread=100), FLUSH]
    pace = MemoryPace(latency=latency, jitter=latency // 2, stalls=stalls)
    with SimulatedDevice(built(LARGE), seed=latency, memory=pace) as device:
        assert ask(device, script, room=4_000) == expected(LARGE, script)


@pytest.mark.parametrize("faults", [0, 300])
def test_a_join_is_right_or_ends_when_a_memory_fails(faults):
    """The windows are as long as the capacity, and most of their rows come from memory."""
    rng = np.random.default_rng(3)
    left, right = (
        pa.table({"t": np.arange(1_300), "x": rng.integers(-9_000, 9_000, 1_300)}) for _ in "rs"
    )
    window = CountWindow(SHAPES["tiny"].capacity)
    query = Query(band=[("x", "x", -90, 90)], time="t", **over(window))
    pace = MemoryPace(latency=20, faults=faults)
    with SimulatedDevice(built(SHAPES["tiny"]), memory=pace) as device:
        if faults:
            with pytest.raises(DeviceError, match="its windows lack tuples"):
                join_tables(left, right, query, device)
            return
        result = join_tables(left, right, query, device)
        assert device.counters()["memory_errors"] == 0
    pairs = zip(*(rows.tolist() for rows in result.pairs), strict=True)
    assert sorted(pairs) == sorted(naive_join(left, right, query))


def test_the_manifest_tells_of_the_memory(tmp_path):
    memory = Manifest.load(write_manifest(LARGE, tmp_path / "bundle")).memory
    assert memory.ports == ("m_axi_0", "m_axi_1")
    assert (memory.beat_bytes, memory.key_bytes) == (8, 6)
    assert (memory.burst_beats, memory.latency) == (8, 20)
    assert memory.bytes == LARGE.ring_rows * 8


def test_windows_on_the_chip_have_no_memory_whose_pace_could_be_set(tmp_path):
    chip = write_manifest(BUNDLES["tiny"], tmp_path / "bundle")
    assert Manifest.load(chip).memory is None
    with pytest.raises(
        ValueError, match="'memory' is for windows in external memory, but those of"
    ):
        SimulatedDevice(chip, memory=MemoryPace(latency=3))


@pytest.mark.parametrize(
    ("name", "value"), [("latency", 0), ("jitter", -1), ("stalls", 256), ("faults", -1)]
)
def test_a_pace_is_in_range(name, value):
    with pytest.raises(ValueError, match=f"Parameter '{name}' must be .*, not {value}"):
        MemoryPace(**{"latency": 1, name: value})
