# SPDX-License-Identifier: Apache-2.0
from functools import cache
from hashlib import sha256

from hypothesis import settings
import pytest

from hdl.bundle import write_bundle
from host import open_device
from host.devices.simulated import SimulatedDevice
from sim.verilated.library import build_library
from tests.conftest import ROOT
from tests.host.device_contract import DeviceContract
from tests.host.device_machine import DeviceMachine, ThreadedDevice
from tests.host.session.test_driver_simulated import PARAMETERS
from tests.host.small_bundles import BUNDLES

FOLDER = ROOT / "build" / "tests"
LONG = pytest.mark.long

#: Each takes ten seconds to compile, so by default it is one that whole joins are tried on as well.
#: Fields of 64 bits are compiled for `test_every_path`, too, whose cases have their extremes; a
#: predicate of one's own is simulated as part of the hardware.
SHAPES = {"scan": PARAMETERS["scan"], **BUNDLES}

#: Two tuples in a word.
PAIRED = BUNDLES["tiny"].with_(engine="index", tuples_per_word=2)
#: A result port for each side, for one result in a word and for two.
TWO_PORTS = BUNDLES["tiny"].with_(result_streams=2)
#: With rounds, too. Of these, it is the one that whole joins are tried on.
PAIRED_PORTS = PARAMETERS["rounds, two ports"]

# One worker builds each library once.


@cache
def built(parameters):
    """Return the bundle of ``parameters`` with its library, which lasts from run to run."""
    bundle = FOLDER / sha256(repr(parameters).encode()).hexdigest()[:12]
    write_bundle(parameters, bundle)
    build_library(bundle)
    return bundle


class CompiledContract(DeviceContract):
    """The contract for accelerators that have to be compiled."""

    timed_parameters = SHAPES["scan"]

    @pytest.fixture(params=["scan", *(pytest.param(name, marks=LONG) for name in BUNDLES)])
    def parameters(self, request):
        return SHAPES[request.param]


class TestSimulatedDevice(CompiledContract):
    @pytest.fixture
    def open_bundle(self):
        return lambda parameters: open_device(f"sim:{built(parameters)}")


class TestStalledDevice(CompiledContract):
    """The same answers with random stalls on both sides and random memories at the start."""

    @pytest.fixture
    def open_bundle(self):
        return lambda parameters: SimulatedDevice(
            built(parameters), seed=11, stall_in=90, stall_out=90
        )


class TestTwoTuplesInAWord(DeviceContract):
    """The contract says nothing of words, so it holds whatever they carry."""

    pytestmark = LONG  # two ports have two tuples in a word, too

    @pytest.fixture(params=["tiny", "groups"])
    def parameters(self, request):
        return BUNDLES[request.param]

    @pytest.fixture
    def open_bundle(self):
        return lambda parameters: SimulatedDevice(
            built(parameters.with_(engine="index", tuples_per_word=2)),
            seed=5,
            stall_in=60,
            stall_out=60,
        )


class TestTwoResultPorts(DeviceContract):
    """The same answers of each side, with stalls of each port by itself."""

    timed_parameters = PAIRED_PORTS

    @pytest.fixture(
        params=[
            PAIRED_PORTS,
            pytest.param(PAIRED.with_(result_streams=2), marks=LONG),
            pytest.param(TWO_PORTS, marks=LONG),
            pytest.param(BUNDLES["groups"].with_(result_streams=2), marks=LONG),
        ],
        ids=["rounds, two ports", "small index, two in a word", "tiny", "groups"],
    )
    def parameters(self, request):
        return request.param

    @pytest.fixture
    def open_bundle(self):
        return lambda parameters: SimulatedDevice(
            built(parameters), seed=7, stall_in=60, stall_out=90
        )


class SimulatedMachine(DeviceMachine):
    """Any use of simulated devices that others compile too, with stalls, at times by a thread."""

    shapes = [SHAPES["scan"], PAIRED_PORTS]

    def open_device(self, parameters, seed):
        stalls = {"stall_in": seed % 3 * 90, "stall_out": seed // 3 % 3 * 90}
        device = SimulatedDevice(built(parameters), seed=seed, **stalls)
        return ThreadedDevice(device) if seed % 4 == 3 else device


SimulatedMachine.TestCase.settings = settings(max_examples=25, stateful_step_count=40)
TestAnyUse = SimulatedMachine.TestCase


class LongMachine(SimulatedMachine):
    """Devices that only other long tests compile."""

    shapes = [*(BUNDLES[name] for name in ("tiny", "groups")), PAIRED]


LongMachine.TestCase.settings = SimulatedMachine.TestCase.settings
LongMachine.TestCase.pytestmark = [LONG]
TestAnyUseOfMore = LongMachine.TestCase
