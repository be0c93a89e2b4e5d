# SPDX-License-Identifier: Apache-2.0
import pytest

from bench.figures import aggregates
from bench.figures.aggregates import Matches, compare_matches, left_rows
from hdl.manifest import describe
from hdl.parameters import JoinParameters, KeyField
from host.protocol.cost_model import Circuit, bottleneck, cycles_per_tuple
from host.protocol.cost_model import Workload as Load
from host.protocol.manifest import JoinAggregateManifest

SMALL = JoinParameters.of(
    cores=2, sub_window=64, keys=(KeyField(name="x", bits=32),), lanes=2, probes=4, value_bits=32
)
WORKLOAD = Matches(window=128, rows=200, matches=12)


@pytest.mark.long
def test_a_left_row_is_one_word_and_its_pairs_are_as_many_as_it_matches(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    values, pairs = compare_matches(SMALL, WORKLOAD, report=print)
    assert values.results == 1
    assert values.words == 1 + 2 / 200  # the star and the mark of the end
    assert 9 < pairs.results < 15
    assert pairs.cycles > pairs.results
    assert 8 <= values.cycles < 9  # a pass of 32 rows for four probes


@pytest.mark.long
def test_the_cost_model_tells_the_cycles_that_the_hardware_counts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    circuit = Circuit.of(JoinAggregateManifest.from_dict(describe(SMALL, "", verilog_file="")))
    decides = {}
    for matches in (3, 12, 30, 60, 100):
        workload = Matches(window=SMALL.capacity, rows=1000, matches=matches)
        counted = left_rows(SMALL, workload, name="join-aggregate", report=print)
        load = Load(windows=(0, SMALL.capacity), period=0, matches=matches)
        assert 2 * cycles_per_tuple(circuit, load) == pytest.approx(counted.cycles, rel=0.03)
        decides[matches] = bottleneck(circuit, load)
    assert decides == {
        3: "passes", 12: "passes", 30: "keys with a match", 60: "keys with a match",
        100: "keys with a match",
    }  # fmt: skip


@pytest.mark.long
def test_a_wrong_result_is_found_out(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    real = aggregates.exchanged

    def wrong(device, words, marks):
        results = real(device, words, marks)
        results[0, 0] ^= device.uri.startswith("sim:")
        return results

    monkeypatch.setattr(aggregates, "exchanged", wrong)
    with pytest.raises(AssertionError, match="of join-aggregate are not those of the reference"):
        left_rows(SMALL, WORKLOAD, name="join-aggregate", report=print)
