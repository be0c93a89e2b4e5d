# SPDX-License-Identifier: Apache-2.0
"""A simulated aggregate, driven by whole arrays, against windows by their definition."""

from contextlib import closing

import numpy as np
import pytest

from hdl.bundle import write_bundle
from host.device.simulated import SimulatedAggregate
from host.errors import DeviceError, ForeignManifestError
from host.words import AggregateCodec
from sim.verilated.library import build_library
from tests.hdl.aggregate.core_program import decoded
from tests.hdl.aggregate.input_program import InputProgram
from tests.hdl.aggregate.operators import aggregate_parameters, operator

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    place = tmp_path_factory.mktemp("aggregate") / "bundle"
    described = operator("sum", "max", "count", size=12, advance=3)
    parameters = aggregate_parameters(described, cores=3, keys=13)
    write_bundle(parameters, place)
    build_library(place)
    return place, described, parameters


@pytest.mark.parametrize(("stall_in", "stall_out"), [(0, 0), (100, 0), (0, 150), (60, 60)])
def test_the_simulated_accelerator_answers_as_defined(bundle, stall_in, stall_out):
    place, described, parameters = bundle
    program = InputProgram(described, parameters)
    program.random_tuples(f"{stall_in} {stall_out}", 600)
    program.flush()
    columns = -(-program.layout.size // 64)
    bits = [word.as_value().value for word in program.words]
    words = np.array(
        [[word >> 64 * n & (1 << 64) - 1 for n in range(columns)] for word in bits], np.uint64
    )
    simulated = SimulatedAggregate(place, seed=3, stall_in=stall_in, stall_out=stall_out)
    with closing(simulated) as device:
        codec = AggregateCodec(device.manifest)
        results = np.zeros(
            (len(program.expected) + 5, device.manifest.result_word.columns), np.uint64
        )
        done = device.exchange(words, results, cycles=200_000)
        counters = device.counters()
    assert done.accepted == len(words)
    rows = results[: done.produced]
    found = [sum(int(part) << 64 * n for n, part in enumerate(row)) for row in rows]
    assert decoded(parameters, found) == program.expected
    values = sum(result != "mark" and result[1] is not None for result in program.expected)
    assert counters["results"] == values
    assert counters["marks"] == 1
    assert counters["ingress_busy"] == len(words)
    with pytest.raises(DeviceError, match="key 1[345] is not below the capacity of 13 keys"):
        codec.check(rows)


def test_a_bundle_of_a_join_is_refused(tmp_path):
    (tmp_path / "manifest.json").write_text('{"format": 4}')
    with pytest.raises(ForeignManifestError, match="none of aggregates"):
        SimulatedAggregate(tmp_path)
