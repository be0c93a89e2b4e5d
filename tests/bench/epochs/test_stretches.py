# SPDX-License-Identifier: Apache-2.0
"""Long runs with regular epochs: what a stretch counts, what is kept, and what is told."""

from argparse import Namespace
import csv
from types import SimpleNamespace

import pytest

from bench import epochs
from bench.epochs import ENGINES, Stretch, rows_of, run, stretches, write
from bench.experiments.sweep import prepare, sweep

KINDS = [("scan", "count-based"), ("index", "time-based")]


def test_stretches_take_the_kinds_in_turn_and_have_the_tuples_at_least():
    found = stretches(KINDS, tuples=2_500, length=1_000, distance=100, seed=7)
    assert [(one.accelerator, one.number) for one in found] == [
        ("scan", 0), ("index", 1), ("scan", 2),
    ]  # fmt: skip
    assert {(one.tuples, one.distance, one.seed) for one in found} == {(1_000, 100, 7)}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tuples": 0}, "Option --tuples must be at least 1, not 0"),
        ({"distance": 1_000}, "Option --distance must be 1 to 999, .* not 1000"),
        ({"distance": 0}, "Option --distance must be 1 to 999, .* not 0"),
    ],
)
def test_runs_without_tuples_or_epochs_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        stretches(KINDS, **{"tuples": 1, "length": 1_000, "distance": 100, "seed": 1, **options})


@pytest.mark.long
@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_a_stretch_counts_its_epochs_and_no_stall(tmp_path, engine):
    manifest = prepare(engine, ENGINES[engine], tmp_path, lambda text: None)
    stretch = Stretch(engine, "time-based", 3, 20_000, 100, 1)
    found = stretch.measure(manifest)
    assert found["bad"] == 0
    assert found["pairs"] > 3_000
    assert found["epochs"] == 199
    assert found["stalled_with"] == found["stalled_without"]
    assert found["cycles_with"] > found["cycles_without"]  # CORE and SEGMENT are words too
    assert stretch.measure(manifest) == found


def counts(**changes):
    return {
        "pairs": 10, "bad": 0, "epochs": 9, "superseded": 0, "cycles_with": 500,
        "cycles_without": 450, "stalled_with": 8, "stalled_without": 8, **changes,
    }  # fmt: skip


def test_rows_are_sums_of_a_kind_and_the_last_one_of_all(tmp_path):
    given = stretches(KINDS, tuples=3_000, length=1_000, distance=100, seed=1)
    rows = rows_of({stretch: counts(pairs=1 + stretch.number) for stretch in given})
    assert list(rows) == [*KINDS, ("all", "all")]
    assert [row["pairs"] for row in rows.values()] == [4, 2, 6]
    assert [row["tuples"] for row in rows.values()] == [2_000, 1_000, 3_000]
    write(rows, tmp_path / "epochs.csv", "python -m bench epochs")
    lines = (tmp_path / "epochs.csv").read_text().splitlines()
    assert lines[0] == "# python -m bench epochs"
    read = list(csv.DictReader(lines[2:]))
    assert [row["stalled_with"] for row in read] == ["16", "8", "24"]


@pytest.mark.parametrize(("changes", "code"), [({}, 0), ({"stalled_with": 9}, 1), ({"bad": 2}, 1)])
def test_the_command_fails_if_a_pair_is_bad_or_the_input_waits_for_epochs(
    tmp_path, monkeypatch, capsys, changes, code
):
    def swept(points, report, *, folder, advance):
        return sweep(points, report, folder=tmp_path, prepared=prepared, advance=advance)

    def prepared(name, parameters, folder, report):
        assert parameters == ENGINES[name]
        return SimpleNamespace(hash=name)

    monkeypatch.setattr(epochs, "sweep", swept)
    monkeypatch.setattr(Stretch, "measure", lambda stretch, manifest: counts(**changes))
    options = Namespace(
        tuples=4_000, stretch=1_000, distance=100, seed=1, output=str(tmp_path / "epochs.csv"),
        arguments=["epochs"],
    )  # fmt: skip
    assert run(options, lambda text: None) == code
    said = capsys.readouterr().out
    assert said.startswith("4,000 tuples, 36 epochs: the input waited for ")
