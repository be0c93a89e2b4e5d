# SPDX-License-Identifier: Apache-2.0
"""The same joins on the simulated accelerator, cycle by cycle."""

import json
import random
import shutil

import pytest

from host import InputRate, Ordering
from host.errors import CapacityError
from host.protocol.manifest import RoutedClock
from spark_offload import explain, metrics, plan_join, stream_join
from tests.spark_offload.oracle import join_rows
from tests.spark_offload.stream_folders import random_batch, row, rows_of
from tests.spark_offload.test_join import collected, frames, random_rows

LEFT, RIGHT = random_rows(5, 700, span=900), random_rows(6, 600, span=900)
BAND = {"x": (-3, 4)}


def matches(left, right):
    return left["k"] == right["k"] and -3 <= left["x"] - right["x"] <= 4


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "window", [{"within": 60}, {"rows": 192}, pytest.param({"rows": 33}, marks=pytest.mark.long)]
)
def test_the_simulated_accelerator_answers_as_plain_python_does(spark, simulated_bundle, window):
    joined = stream_join(
        *frames(spark, LEFT, RIGHT),
        on="k",
        band=BAND,
        time="t",
        device=simulated_bundle,
        partitions=1,
        **window,
    )
    assert collected(joined) == join_rows(LEFT, RIGHT, matches, time="t", **window)


@pytest.mark.long
def test_two_result_ports_have_the_answer_in_order(spark, two_port_bundle):
    joined = stream_join(
        *frames(spark, LEFT, RIGHT),
        on="k",
        band=BAND,
        time="t",
        within=60,
        device=two_port_bundle,
        partitions=1,
    )
    assert collected(joined) == join_rows(LEFT, RIGHT, matches, time="t", within=60)
    assert metrics(joined).counters()["results"] == joined.count()


def test_partitions_have_a_device_each(spark, simulated_bundle):
    joined = stream_join(
        *frames(spark, LEFT, RIGHT),
        on="k",
        band=BAND,
        time="t",
        within=60,
        device=simulated_bundle,
        partitions=3,
    )
    expected = join_rows(LEFT, RIGHT, matches, time="t", within=60)
    assert sorted(collected(joined)) == sorted(expected)
    measured = metrics(joined)
    assert len(measured.tasks) == 3
    assert measured.total("cycles") > 1_000
    counters = measured.counters()
    assert counters["tuples_r"] == len(LEFT)
    assert counters["tuples_s"] == len(RIGHT)
    assert counters["results"] == len(expected)


def test_an_adaptive_ordering_reports_its_decisions(spark, simulated_bundle):
    joined = stream_join(
        *frames(spark, LEFT, RIGHT),
        on="k",
        band=BAND,
        time="t",
        within=60,
        device=simulated_bundle,
        ordering=Ordering.adaptive(8, InputRate(0.01), interval=64),
        partitions=2,
    )
    expected = join_rows(LEFT, RIGHT, matches, time="t", within=60)
    assert sorted(collected(joined)) == sorted(expected)
    assert "8 or more before it" in explain(joined).ordering
    tasks = metrics(joined).tasks
    assert len(tasks) == 2
    assert all(1 <= task.precision.period <= task.precision.bound <= 8 for task in tasks)
    assert sum(task.precision.measurements for task in tasks) > 0
    assert "precision: 0.01 tuples per cycle held in" in str(metrics(joined))


def test_a_trace_tells_the_latency_of_every_result(spark, simulated_bundle):
    plan = plan_join(
        *frames(spark, LEFT, RIGHT),
        band=BAND,
        time="t",
        rows=30,
        device=simulated_bundle,
        trace=True,
    )
    count = plan.dataframe().count()
    measured = plan.metrics()
    assert sum(measured.latency().values()) == count
    assert sum(measured.processing().values()) == len(LEFT) + len(RIGHT)
    assert min(measured.latency()) > 0
    assert measured.tasks[0].timeline[-1][1] == count


@pytest.mark.parametrize(
    "window", [{"rows": 33}, pytest.param({"within": 60}, marks=pytest.mark.long)]
)
def test_ranges_of_time_give_the_same_answer_and_are_traced_alike(spark, simulated_bundle, window):
    plan = plan_join(
        *frames(spark, LEFT, RIGHT),
        on="k",
        band=BAND,
        time="t",
        device=simulated_bundle,
        partitions=3,
        partition_by="range",
        trace=True,
        **window,
    )
    expected = join_rows(LEFT, RIGHT, matches, time="t", **window)
    assert collected(plan.dataframe()) == expected
    measured = plan.metrics()
    assert measured.total("halo_rows") > 0
    assert sum(measured.latency().values()) == measured.total("results") == len(expected)
    assert sum(measured.processing().values()) == len(LEFT) + len(RIGHT)


def test_the_explanation_tells_cores_and_capacity(spark, simulated_bundle):
    joined = stream_join(
        *frames(spark, LEFT, RIGHT), on="k", time="t", within=60, device=simulated_bundle
    )
    explanation = explain(joined)
    assert "3 cores x 64 tuples = 192 tuples a side" in explanation.accelerator
    assert explanation.terms[0].field == "key field 'f0'"


def test_a_window_of_too_many_rows_is_joined_in_software_which_the_plan_says(
    spark, simulated_bundle
):
    inputs = frames(spark, LEFT, RIGHT)
    asked = {"on": "k", "time": "t", "rows": 193, "device": simulated_bundle}
    joined = stream_join(*inputs, **asked)
    said = explain(joined)
    assert said.device == "software:"
    assert "193" in str(said.causes[0])
    assert collected(joined) == join_rows(
        LEFT, RIGHT, lambda l, r: l["k"] == r["k"], time="t", rows=193
    )
    with pytest.raises(CapacityError, match="193.*192.*python -m sim build"):
        stream_join(*inputs, **asked, strict=True)


def test_metrics_and_cost_tell_what_the_cycles_take_in_hardware(spark, simulated_bundle, tmp_path):
    bundle = tmp_path / "bundle"
    shutil.copytree(simulated_bundle.removeprefix("sim:"), bundle)
    values = json.loads((bundle / "manifest.json").read_text())
    clock = RoutedClock("big", True, 4_000, "lfe5u-85f", 8, 150.0, "x.json")
    (bundle / "manifest.json").write_text(json.dumps({**values, "clock": vars(clock)}))
    twin = "150.0 MHz, the routed clock of its twin `big` on an lfe5u-85f of grade 8"
    for device, expected in (
        (f"sim:{bundle}", True), (f"software:{bundle}", False), (simulated_bundle, False),
    ):  # fmt: skip
        joined = stream_join(
            *frames(spark, LEFT, RIGHT), on="k", time="t", within=60, device=device, partitions=2
        )
        cost = explain(joined, count=True).cost
        assert (twin in str(cost)) == expected
        assert metrics(joined).hardware is None
        joined.count()
        measured = metrics(joined)
        cycles = f"{int(measured.total('cycles')):,} cycles: "
        assert (f"hardware: {cycles}" in str(measured)) == expected
        assert (twin in str(measured)) == expected


@pytest.mark.long
def test_an_accelerator_is_generated_for_a_condition(folders, tmp_path, monkeypatch):
    monkeypatch.setenv("SPLITJOIN_CACHE", str(tmp_path / "cache"))
    rng = random.Random(8)
    for number in range(3):
        folders.drop(random_batch(rng, number), random_batch(rng, number))
    folders.drop([row(50)], [row(50)])
    words = {"time": "t", "within": "9s", "where": "l.y * 2 < r.y and l.k != r.k"}

    def joined(source, **options):
        sides = (source(side).selectExpr("t", "k", "x % 7 as y") for side in ("left", "right"))
        return stream_join(*sides, **words, **options)

    expected = rows_of(joined(folders.batch))
    assert sum(expected.values()) > 20
    for source in (folders.batch, folders.stream):
        answer = joined(source, device="sim:", build=True, strict=True)
        said = str(explain(answer))
        assert "it finds (l.f1 * 2 < r.f1) & (l.f0 != r.f0)" in said
        assert "demo-where-" in said
        if answer.isStreaming:
            folders.run(answer)
            assert rows_of(folders.answer()) == expected
        else:
            assert rows_of(answer) == expected
            assert sum(task.cycles for task in metrics(answer).tasks) > 0
