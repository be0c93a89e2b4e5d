# SPDX-License-Identifier: Apache-2.0
"""The cost model is within 5 % of what the hardware counters said, from 1 to 64 cores."""

from contextlib import closing

import pytest

from bench.figures.cost_model import (
    ACCELERATORS,
    RECORD,
    Condition,
    ModelRun,
    read,
    sweep,
    worst,
)
from bench.figures.latency_model import processing_latency
from host.protocol.cost_model import IDLE, Circuit, Workload, cycles_per_tuple
from tests.sim.verilated.test_cycles import MORE, SHAPES, shaped


def test_what_was_recorded_is_within_five_percent_of_the_model():
    rows = read(RECORD)
    assert {row.accelerator for row in rows} == set(ACCELERATORS)
    assert worst(rows) <= 0.05
    assert worst(rows, crowded=True) <= 0.35


@pytest.mark.long
@pytest.mark.parametrize(
    "shape",
    [*SHAPES, pytest.param(MORE[0], marks=pytest.mark.long)],
    ids=lambda shape: "-".join(map(str, shape)),
)
def test_an_accelerator_takes_the_cycles_of_the_model(tmp_path, shape):
    parameters = shaped(*shape)
    window = 80 * parameters.cores
    with closing(ModelRun(parameters, tmp_path / "bundle", lambda text: None)) as run:
        circuit = Circuit.of(run.manifest)
        idle = run.measure(Condition(window, interval=None), 64)
        load = Workload(windows=(window, window), interval=IDLE)
        assert idle.processing == pytest.approx(processing_latency(circuit, load), rel=0.02)
        for period in {1, parameters.engine.probes}:
            busy = run.measure(Condition(window, period), 600)
            load = Workload(windows=(window, window), period=period)
            expected = cycles_per_tuple(circuit, load)
            assert busy.cycles / busy.tuples == pytest.approx(expected, rel=0.05)
            assert busy.processing == pytest.approx(processing_latency(circuit, load), rel=0.05)


def test_a_sweep_goes_on_where_it_was_interrupted(tmp_path):
    said = []
    path = tmp_path / "model.csv"
    path.write_text(RECORD.read_text(encoding="utf-8"), encoding="utf-8")
    assert sweep(["1", "64 b8 c4"], path, said.append) == read(RECORD)
    assert not said
