# SPDX-License-Identifier: Apache-2.0
import pytest

from hdl.parameters import JoinParameters, KeyField
from sim.figures import join_aggregate
from sim.figures.join_aggregate import Workload, compare, left_rows

SMALL = JoinParameters(
    cores=2, sub_window=64, keys=(KeyField(name="x", bits=32),), lanes=2, probes=4, value_bits=32
)
WORKLOAD = Workload(window=128, rows=200, matches=12)


@pytest.mark.long
def test_a_left_row_is_one_word_and_its_pairs_are_as_many_as_it_matches(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    values, pairs = compare(SMALL, WORKLOAD, report=print)
    assert values.results == 1
    assert values.words == 1 + 2 / 200  # the star and the mark of the end
    assert 9 < pairs.results < 15
    assert pairs.cycles > pairs.results
    assert 8 <= values.cycles < 9  # a pass of 32 rows for four probes


@pytest.mark.long
def test_a_wrong_result_is_found_out(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    real = join_aggregate.exchanged

    def wrong(device, words, marks):
        results = real(device, words, marks)
        results[0, 0] ^= device.uri.startswith("sim:")
        return results

    monkeypatch.setattr(join_aggregate, "exchanged", wrong)
    with pytest.raises(AssertionError, match="of join-aggregate are not those of the reference"):
        left_rows(SMALL, WORKLOAD, name="join-aggregate", report=print)
