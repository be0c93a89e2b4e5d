# SPDX-License-Identifier: Apache-2.0
"""Ways take turns, and answers that differ end the race."""

import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench.figures import peers
from bench.figures.registry import FIGURES, NotMeasured
from bench.peers.race import Race, race


def writing(rows, calls, name):
    def way(path):
        calls.append(name)
        pq.write_table(pa.table({"t": rows}), path)

    return way


def test_ways_take_turns_after_their_answers_were_compared(tmp_path):
    calls = []
    ways = {name: writing([2, 1], calls, name) for name in "ab"}
    found = race(ways, tmp_path, turns=2, key=["t"])
    assert "".join(calls) == "ab" + "abab"
    assert found.rows == 2
    assert {len(seconds) for seconds in found.wall.values()} == {2}


def test_what_has_no_answer_takes_its_turns(tmp_path):
    calls = []
    ways = {name: writing([1], calls, name) for name in "ab"}
    found = race(ways, tmp_path, turns=2, key=["t"], beside={"c": lambda: calls.append("c")})
    assert "".join(calls) == "ab" + "abcabc"
    assert len(found.wall["c"]) == len(found.processor["c"]) == 2


def test_an_order_does_not_matter_and_a_row_does(tmp_path):
    calls = []
    alike = {"a": writing([2, 1], calls, "a"), "b": writing([1, 2], calls, "b")}
    race(alike, tmp_path, turns=0, key=["t"])
    other = {**alike, "c": writing([1, 3], calls, "c")}
    with pytest.raises(AssertionError, match="c has 2 rows and a 2, or other values"):
        race(other, tmp_path, turns=0, key=["t"])


def test_only_seconds_of_one_turn_are_compared():
    found = Race(1, wall={"a": [1.0, 8.0, 3.0], "b": [1.0, 2.0, 1.0]}, processor={})
    assert found.ratio(found.wall, "a", "b") == (3.0, 1.0, 4.0)


def test_processor_time_is_that_of_all_threads(tmp_path):
    def busy(path):
        end = time.process_time() + 0.05
        while time.process_time() < end:
            pass
        pq.write_table(pa.table({"t": [1]}), path)

    found = race({"a": busy}, tmp_path, turns=1, key=["t"])
    assert found.processor["a"][0] >= 0.05


def test_a_missing_peer_is_named_with_what_installs_it(monkeypatch):
    monkeypatch.setattr(peers, "find_spec", lambda package: None)
    with pytest.raises(NotMeasured, match=r"needs duckdb: make bench-peers installs"):
        FIGURES["host.band.ratio_duckdb_grid"].measured(print)
