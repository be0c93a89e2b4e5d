# SPDX-License-Identifier: Apache-2.0
import pytest

from bench.figures.circuits import GateRun
from hdl.scalegate.gate import TimestampMerge


@pytest.mark.parametrize("sources", [2, 3])
def test_a_gate_with_gaps_passes_nearly_a_tuple_per_cycle(sources):
    run = GateRun(sources, tuples=600, gaps=0.25, seed=1)
    run.run(deadline=2_000)
    assert 0.98 < run.steady <= 1


def test_a_slow_source_is_seen_in_the_rate():
    run = GateRun(2, tuples=200, gaps=0.8, seed=1)
    run.run(deadline=4_000)
    assert 0.2 < run.steady < 0.6


def test_a_wrong_order_is_noticed(monkeypatch):
    choose = TimestampMerge.elaborate_choice

    def choose_the_later(*given):
        second, same = choose(*given)
        return ~second, same

    monkeypatch.setattr(TimestampMerge, "elaborate_choice", choose_the_later)
    run = GateRun(2, tuples=40, gaps=0.0)
    with pytest.raises(AssertionError, match=r"order of the reference|is late|has not ended"):
        run.run(deadline=500)
