# SPDX-License-Identifier: Apache-2.0
from types import SimpleNamespace

import pyarrow as pa
import pytest

from hdl.manifest import describe
from hdl.presets import PRESETS
from host import Ordering, open_device
from host.cli import explanation
from host.cli.explanation import cost, size_of_join
from host.protocol.cost_model import JoinSize, describe_latency, estimated_cycles, mean_of_last
from host.protocol.manifest import Manifest
from host.query.queries import Query


def manifest_of(preset):
    return Manifest.from_dict(describe(PRESETS[preset], "", verilog_file=""))


def test_a_scan_reads_its_rows_for_each_full_group():
    size = JoinSize((80_000, 80_000), (8_000, 8_000))
    # 8,007 keys in 4 cores of 4 lanes, and 8 probes of each side in a pass.
    rows = (8_007 / 4 + 3) / 4
    assert estimated_cycles(manifest_of("demo"), size) == pytest.approx(10_000 * rows, abs=1)


def test_strict_order_is_restored_by_the_host_but_another_period_is_the_accelerators():
    size, manifest = JoinSize((8_000, 8_000), (800, 800)), manifest_of("demo")
    full = estimated_cycles(manifest, size)
    assert estimated_cycles(manifest, size, Ordering.outer()) == full
    assert estimated_cycles(manifest, size, Ordering.relaxed(2)) > 3 * full


@pytest.mark.parametrize("rows", [(0, 0), (0, 500), (500, 0), (500, 20)])
def test_an_index_takes_a_word_for_each_pair_of_tuples(rows):
    size = JoinSize(rows, (10, 10))
    assert estimated_cycles(manifest_of("demo-index"), size) == max(rows)


def test_a_side_alone_waits_for_nothing_else():
    size = JoinSize((8_000, 0), (800, 800))
    assert estimated_cycles(manifest_of("demo"), size) == 1_000 * ((800 / 4 + 3) / 4)


@pytest.mark.parametrize(("size", "rows", "mean"), [(10, 4, 2), (10, 10, 5), (10, 100, 9.5)])
def test_windows_fill_up_as_rows_come(size, rows, mean):
    assert mean_of_last(size, rows) == mean


def test_a_latency_is_told_with_what_it_consists_of():
    assert describe_latency(manifest_of("demo"), (1_600, 1_600)) == (
        "129 cycles from a tuple to its last result while nothing else is under way: 9 to the "
        "cores, 116 in them, 4 to the output"
    )


def test_an_explanation_tells_cycles_and_latency(monkeypatch):
    manifest = manifest_of("demo")
    device = SimpleNamespace(uri="sim:demo", manifest=manifest, is_software_engine=False)
    counted = Query(time="t", rows=1_600)
    rows = pa.table({"t": range(8_000)})
    for query in (counted, Query(time="t", within=1_599)):
        size = size_of_join(rows, rows, query)
        assert size.windows[1] == pytest.approx(1_440, abs=1)
        cycles, latency = cost(query, device, size)
        assert cycles.startswith("cycles   at least 9")
        assert cycles.endswith(" cycles, by the cost model; more where many rows match")
        assert latency.startswith("latency  1")
        # Where software joins, it is what the accelerator would take.
        monkeypatch.setattr(explanation, "known_accelerator", lambda query: manifest)
        with open_device("software:") as software:
            there, same = cost(query, software, size)
            assert there == cycles.replace("at least", "on the accelerator (sim:) at least")
            assert same == latency
            monkeypatch.setattr(explanation, "known_accelerator", lambda query: None)
            assert "--device sim: builds one" in cost(query, software, size)[0]
    model = SimpleNamespace(uri="software:demo", manifest=manifest, is_software_engine=False)
    assert cost(counted, model, size) == []


def test_the_size_of_a_join_counts_the_rows_of_each_window():
    left = pa.table({"t": [5, 0, 9, 5]})
    right = pa.table({"u": [4, 6, 20]})
    query = Query(time=("t", "u"), within=5)
    size = size_of_join(left, right, query)
    assert size == JoinSize((4, 3), ((1 + 2 + 0) / 3, (0 + 1 + 1 + 2) / 4))
    none = size_of_join(left.slice(0, 0), right, query)
    assert none == JoinSize((0, 3), (0.0, 0.0))
