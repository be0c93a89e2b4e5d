# SPDX-License-Identifier: Apache-2.0
"""Decisions on the devices of a pool are kept in a file, and repeated from it."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
import pytest

from host import ThresholdController
from host.errors import UsageError
from spark_offload.cluster.pools import (
    PoolDecision,
    PoolLoad,
    read_decisions,
    repeat_decisions,
    write_decisions,
)

DEVICES = 5
LAW = ThresholdController(interval=1_500_000)


def decided(machine, shares):
    """Return the decisions of micro-batches of a second each, with such loads in tenths."""
    load = PoolLoad.first(0, DEVICES, 100.0)
    decisions = []
    for batch, share in enumerate(shares):
        decisions.append(PoolDecision(machine, batch, DEVICES, load.active, load.seen))
        now = 101.0 + batch
        load = load.used(share * load.active / 10, 100, now)
        load = load.at_border(batch + 1, LAW, DEVICES, now)
    return decisions


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(0, 10), min_size=1, max_size=30), min_size=1, max_size=2))
def test_the_same_controller_decides_the_same_from_a_log(tmp_path_factory, shares):
    path = tmp_path_factory.mktemp("log") / "decisions.jsonl"
    decisions = [
        decision
        for machine, own in zip("ab", shares, strict=False)
        for decision in decided(machine, own)
    ]
    decisions.sort(key=lambda decision: decision.batch)
    write_decisions(decisions, path)
    assert read_decisions(path) == decisions
    assert repeat_decisions(decisions, LAW) == decisions


def test_a_log_that_was_changed_is_told_and_another_controller_decides_otherwise():
    decisions = decided("a", [1] * 10)
    assert {decision.active for decision in decisions} == {1, 5}
    wrong = [replace(one, active=3) if one.active == 1 else one for one in decisions]
    assert repeat_decisions(wrong, LAW) == decisions
    eager = ThresholdController(upper=0.3, target=0.2, lower=0.05, interval=1)
    assert repeat_decisions(decisions, eager) != decisions


@pytest.mark.parametrize("text", ["no json", "[]", '{"machine": "a"}', '{"seen": {"cores": 1}}'])
def test_what_is_no_decision_is_refused_with_its_line(tmp_path, text):
    path = tmp_path / "decisions.jsonl"
    write_decisions(decided("a", [3]), path)
    path.write_text(path.read_text() + text + "\n")
    with pytest.raises(UsageError, match="Line 2 of .* is no decision on the devices of a pool"):
        read_decisions(path)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(UsageError, match="cannot be read"):
        read_decisions(tmp_path / "nothing")
