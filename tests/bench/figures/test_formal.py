# SPDX-License-Identifier: Apache-2.0
from types import SimpleNamespace

import pytest

from bench.figures import verification
from bench.figures.verification import LEAST_MUTANTS, mutants_killed, properties


def outcome(*, failures=(), killed=LEAST_MUTANTS, survivors=0):
    return SimpleNamespace(
        name="tree", claims=7, spared=2, failures=list(failures),
        killed=["dead"] * killed, survivors=["alive"] * survivors,
    )  # fmt: skip


@pytest.fixture
def prove(monkeypatch):
    def proves(*outcomes):
        monkeypatch.setattr(verification, "proved", lambda report: outcomes)

    return proves


def test_properties_count_only_if_all_of_them_hold(prove):
    prove(outcome(), outcome())
    assert properties(print).value == 14
    prove(outcome(), outcome(failures=["a claim"]))
    result = properties(print)
    assert result.value == 0
    assert "tree" in result.notes[0]


def test_a_survivor_lowers_the_share(prove):
    prove(outcome(killed=150), outcome(killed=45, survivors=5))
    result = mutants_killed(print)
    assert result.value == 195 / 200
    assert result.details == {"mutants": 200, "spared": 4}


def test_few_mutants_reach_no_goal(prove):
    prove(outcome(killed=LEAST_MUTANTS - 1))
    result = mutants_killed(print)
    assert (result.value, result.judged) == (1.0, 0.0)
    prove(outcome(killed=0))
    assert mutants_killed(print).value == 0.0
