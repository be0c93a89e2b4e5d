# SPDX-License-Identifier: Apache-2.0
from dataclasses import replace

import pytest

from bench.figures import verification
from bench.figures.registry import FIGURES, NotMeasured
from bench.figures.verification import LEDGER, Entry, entries, record

RUN = Entry("2026-11-23", "abc1234", 2_026, 3, 40, 99_999_000, 12, 3_456, 0)
TABLE = "# Runs\n\n| day | commit |\n|---|---|\n"


@pytest.fixture
def ledger(tmp_path, monkeypatch):
    path = tmp_path / "soak.md"
    path.write_text(TABLE)
    monkeypatch.setattr(verification, "LEDGER", path)
    return path


def test_what_is_recorded_is_read(ledger):
    runs = [RUN, replace(RUN, seed=3, differences=1)]
    for run in runs:
        record(run, ledger)
    assert entries(ledger.read_text()) == runs


def test_ledger_of_the_repository_can_be_read():
    assert all(run.tuples > 0 for run in entries(LEDGER.read_text()))


def test_figure_asks_for_enough_tuples_without_a_difference(ledger):
    figure = FIGURES["soak.differences"]
    with pytest.raises(NotMeasured):
        figure.measured(print)
    record(RUN, ledger)
    result, met = figure.measured(print)
    assert (result.value, met) == (0, False)
    record(replace(RUN, tuples=1_000), ledger)
    assert figure.measured(print)[1]
    record(replace(RUN, differences=1), ledger)
    result, met = figure.measured(print)
    assert (result.value, met) == (1, False)
