# SPDX-License-Identifier: Apache-2.0
"""Ways take turns, and answers that differ end the race."""

import pytest

from bench.figures import peers
from bench.figures.registry import FIGURES, NotMeasured
from bench.peers.race import Race, race
from tests.bench.peers.ways import Busy, Noted, Writing


def test_ways_take_turns_in_their_processes_after_their_answers_were_compared(tmp_path):
    log = tmp_path / "log"
    ways = {"a": Writing("a", log, (2, 1)), "b": Writing("b", log, (1, 2))}
    found = race(ways, tmp_path, turns=2, key=["t"], beside={"c": Noted("c", log)})
    calls = [line.split() for line in log.read_text().splitlines()]
    assert "".join(name for name, _ in calls) == "abc" + "abcabc"
    assert len(set(map(tuple, calls))) == 3  # one process each, for all turns
    assert found.rows == 2
    for seconds in (found.wall, found.processor):
        assert {name: len(turns) for name, turns in seconds.items()} == dict.fromkeys("abc", 2)


def test_another_row_ends_the_race(tmp_path):
    log = tmp_path / "log"
    other = {"a": Writing("a", log, (2, 1)), "c": Writing("c", log, (1, 3))}
    with pytest.raises(AssertionError, match="c has 2 rows and a 2, or other values"):
        race(other, tmp_path, turns=0, key=["t"])


def test_only_seconds_of_one_turn_are_compared():
    found = Race(1, wall={"a": [1.0, 8.0, 3.0], "b": [1.0, 2.0, 1.0]}, processor={})
    assert found.ratio(found.wall, "a", "b") == (3.0, 1.0, 4.0)


def test_processor_time_is_that_of_the_way(tmp_path):
    found = race({"a": Busy(0.05)}, tmp_path, turns=1, key=["t"])
    assert 0.05 <= found.processor["a"][0] < 1


def test_a_missing_peer_is_named_with_what_installs_it(monkeypatch):
    monkeypatch.setattr(peers, "find_spec", lambda package: None)
    with pytest.raises(NotMeasured, match=r"needs duckdb: make bench-peers installs"):
        FIGURES["host.band.ratio_duckdb_grid"].measured(print)
