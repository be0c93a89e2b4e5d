# SPDX-License-Identifier: Apache-2.0
"""A simulated aggregate, driven by whole arrays, against windows by their definition."""

from contextlib import closing

from hypothesis import given, settings
import numpy as np
import pyarrow as pa
import pytest

from hdl.bundle import write_bundle
from host.__main__ import main
from host.devices.simulated import SimulatedAggregate
from host.errors import DeviceError, ManifestError
from host.operators.aggregate import WindowAggregation
from host.protocol.codecs import AggregateCodec
from sim.verilated.library import build_library
from tests.hdl.aggregate.core_program import decoded
from tests.hdl.aggregate.input_program import InputProgram
from tests.host.operators.device_tables import SCHEMA, agree, cases, query
from tests.host.operators.small_aggregate import OPERATOR, PARAMETERS

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    place = tmp_path_factory.mktemp("aggregate") / "bundle"
    write_bundle(PARAMETERS, place)
    build_library(place)
    return place


@pytest.mark.parametrize(("stall_in", "stall_out"), [(0, 0), (100, 0), (0, 150), (60, 60)])
def test_the_simulated_accelerator_answers_as_defined(bundle, stall_in, stall_out):
    parameters = PARAMETERS
    program = InputProgram(OPERATOR, parameters)
    program.random_tuples(f"{stall_in} {stall_out}", 600)
    program.flush()
    columns = -(-program.layout.size // 64)
    bits = [word.as_value().value for word in program.words]
    words = np.array(
        [[word >> 64 * n & (1 << 64) - 1 for n in range(columns)] for word in bits], np.uint64
    )
    simulated = SimulatedAggregate(bundle, seed=3, stall_in=stall_in, stall_out=stall_out)
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


def test_tables_are_aggregated_as_on_the_host(bundle):
    simulated = SimulatedAggregate(bundle, seed=5, stall_in=40, stall_out=40)
    with closing(simulated) as device:

        @settings(max_examples=150)
        @given(cases())
        def compare(case):
            agree(device, case)

        compare()


def test_a_command_aggregates_a_file_on_a_bundle(bundle, tmp_path, capsys):
    (tmp_path / "rows.csv").write_text("at,of,price\n-3,A,5\n4,B,\n1,A,7\n9,B,-100\n")
    options = ["--input", str(tmp_path / "rows.csv"), "--time", "at", "--window", "6"]
    options += ["--advance", "3", "--on", "of", "--output", str(tmp_path / "out.json")]
    for value in ("n=count", "mean=mean:price", "low=min:price", "high=max:price"):
        options += ["--aggregate", value]
    assert main(["aggregate", *options, "--device", f"sim:{bundle}", "--verify"]) == 0
    assert "verify: all 7 results agree" in capsys.readouterr().err


def test_a_sum_that_leaves_its_bits_is_a_fault_of_its_window(bundle):
    rows = pa.RecordBatch.from_pylist([{"time": 3, "price": 127}] * 65, SCHEMA)
    asked = query(aggregates={"total": "sum:price"})
    with closing(SimulatedAggregate(bundle)) as device:
        with (
            WindowAggregation(SCHEMA, asked, device) as work,
            pytest.raises(DeviceError, match="a fault .range. by boundary"),
        ):
            work.last_rows(rows)


def test_a_fault_behind_the_last_star_is_told_by_the_mark_of_clear(bundle):
    with closing(SimulatedAggregate(bundle)) as device:
        codec = AggregateCodec(device.manifest)
        fields = {name: [0] for name in ("v", "low", "high", "known")}
        results = np.zeros((4, device.manifest.result_word.columns), np.uint64)
        late = [
            codec.pack_control("WATERMARK", value=9), codec.pack_control("FLUSH"),
            codec.pack_tuples([2], {"item": [1], **fields}),
        ]  # fmt: skip
        words = np.concatenate([*late, codec.pack_control("CLEAR")])
        produced = device.exchange(words, results, cycles=20_000).produced
        while produced < 2:
            produced += device.exchange(words[:0], results[produced:], cycles=1_000).produced
        codec.check(results[:1])
        with pytest.raises(DeviceError, match=r"fault \(disorder\): a tuple was below an earlier"):
            codec.check(results[1:2])
        rows = [{"time": time, "item": 1, "price": 5} for time in (2, 3, 20)]
        asked = (query(), [pa.RecordBatch.from_pylist(rows, SCHEMA)], "in order", None)
        agree(device, asked)
        # Somebody leaves a fault behind; a query does not take it for its own.
        device.exchange(np.concatenate([late[0], late[2]]), results, cycles=20_000)
        agree(device, asked)


def test_a_bundle_of_a_join_is_refused(tmp_path):
    (tmp_path / "manifest.json").write_text('{"format": 4}')
    with pytest.raises(ManifestError, match="this kit reads 6 here"):
        SimulatedAggregate(tmp_path)
