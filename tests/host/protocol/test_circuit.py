# SPDX-License-Identifier: Apache-2.0
"""The terms that the model takes from a manifest are those that the components state."""

import pytest

from hdl.accelerator import Accelerator, JoinAggregateAccelerator
from hdl.index.layouts import group_count
from hdl.manifest import describe
from hdl.parameters import JoinParameters, KeyField
from host.protocol.cost_model import (
    Circuit,
    Workload,
    bottleneck,
    cycles_per_tuple,
    idle_processing_latency,
)
from host.protocol.manifest import JoinAggregateManifest, Manifest

KEYS = (KeyField(name="x", bits=16), KeyField(name="y", bits=9, signed=False))
SCANS = [
    {"cores": 1, "fan_out": 2, "fan_in": 2},
    {"cores": 2, "fan_out": 2, "fan_in": 2, "lanes": 4, "timestamp_bits": 12},
    {"cores": 3, "fan_out": 2, "fan_in": 4, "probes": 4},
    {"cores": 4, "fan_out": 4, "fan_in": 2, "comparator": "equality"},
    {"cores": 8, "fan_out": 8, "fan_in": 4, "comparator": "equality", "digest_bits": 6},
    {"cores": 2, "fan_out": 2, "fan_in": 2, "result_streams": 2},
    {"cores": 2, "fan_out": 2, "fan_in": 2, "lanes": 3, "digest_bits": 6, "timestamp_bits": 3},
]
INDICES = [
    {"cores": 1, "probes": 4, "timestamp_bits": 12},
    {"cores": 2, "comparator": "equality", "tuples_per_word": 2},
    {"cores": 2, "comparator": "equality", "tuples_per_word": 2, "result_streams": 2},
    {"cores": 3, "probes": 16, "tuples_per_word": 2},
    {"cores": 4, "probes": 16, "comparator": "equality", "timestamp_bits": 12},
]


REDUCING = [
    {"cores": 1, "fan_out": 2, "fan_in": 2},
    {"cores": 2, "fan_out": 2, "fan_in": 2, "lanes": 4, "timestamp_bits": 12},
    {"cores": 3, "fan_out": 2, "fan_in": 4, "probes": 4},
    {"cores": 8, "fan_out": 4, "fan_in": 4, "lanes": 3, "comparator": "equality"},
]


def circuit_of(parameters):
    kind = JoinAggregateManifest if parameters.is_aggregated else Manifest
    return Circuit.of(kind.from_dict(describe(parameters, "", verilog_file="")))


@pytest.mark.parametrize(
    "changes", [*SCANS, *({"engine": "index", "probe_bits": 10, **index} for index in INDICES)]
)
def test_the_cycles_of_all_parts_are_those_of_the_components(changes):
    parameters = JoinParameters.of(sub_window=64, keys=KEYS, **changes)
    circuit, built = circuit_of(parameters), Accelerator(parameters)
    assert circuit.ingress == built.ingress.latency
    assert circuit.distribution == built.distribution.latency
    assert circuit.region == built.cores[0].latency
    assert circuit.gathering == built.gathering[0].latency
    assert circuit.combiner == built.leaving.latency
    assert circuit.fixed == built.latency
    if parameters.engine.kind == "index":
        assert circuit.groups_under_way == group_count(parameters)


@pytest.mark.parametrize("changes", REDUCING)
def test_so_are_those_of_a_join_aggregate(changes):
    parameters = JoinParameters.of(sub_window=64, keys=KEYS, value_bits=16, **changes)
    circuit, built = circuit_of(parameters), JoinAggregateAccelerator(parameters)
    assert circuit.ingress == built.ingress.latency
    assert circuit.distribution == built.distribution.latency
    assert circuit.region == built.cores[0].latency
    assert circuit.gathering == built.gathering[0].latency
    assert circuit.fixed == built.latency


def test_where_matches_are_reduced_passes_decide_until_most_keys_match():
    circuit = circuit_of(
        JoinParameters.of(cores=4, sub_window=1024, keys=KEYS, lanes=4, probes=8, value_bits=16)
    )
    limit = {}
    for matches in (0, 100, 400, 4096):
        load = Workload(windows=(0, 4096), share=0.5, period=0, matches=matches)
        limit[matches] = bottleneck(circuit, load)
        # For each left row: 256 rows and a bit for eight probes, or the 1,024 keys of a core.
        if matches == 4096:
            assert 2 * cycles_per_tuple(circuit, load) == 1024 / 8
        elif limit[matches] == "passes":
            assert 32 < 2 * cycles_per_tuple(circuit, load) < 32.5
    assert limit == {
        0: "passes",
        100: "passes",
        400: "keys with a match",
        4096: "keys with a match",
    }


def test_two_result_ports_share_the_results_among_them():
    """Half of the results leave by each port, and neither side waits for the other one."""
    one = JoinParameters.of(cores=4, sub_window=64, keys=KEYS, probes=4, lanes=4)
    load = Workload(windows=(256, 256), matches=40, period=4)
    circuits = [circuit_of(one.with_(result_streams=ports)) for ports in (1, 2)]
    cycles = [cycles_per_tuple(circuit, load) for circuit in circuits]
    assert [bottleneck(circuit, load) for circuit in circuits] == ["results"] * 2
    assert cycles[0] == 2 * cycles[1]
    assert circuits[1].fixed == circuits[0].fixed - 1


def test_an_idle_scan_takes_a_cycle_for_each_row_beside_them():
    circuit = circuit_of(JoinParameters.of(cores=4, sub_window=64, keys=KEYS, lanes=4))
    for window, rows in ((0, 1), (1, 1), (16, 1 + 15 / 16), (160, 10 + 15 / 16)):
        load = Workload(windows=(window, window))
        assert idle_processing_latency(circuit, load) == circuit.fixed + rows
