# SPDX-License-Identifier: Apache-2.0
"""A streaming join, group by group and without Spark: whatever the cut, the answer is the same."""

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from host import UsageError
from host.errors import CapacityError
from host.reference.types import JoinType
from spark_offload.stream.groups import MOST_GROUPS, group_keys
from tests.spark_offload.stream_model import (
    BEGIN,
    Cluster,
    all_results,
    cut,
    new_pairs,
    stream_task,
)

DELAY = timedelta(seconds=4)


def _seeds(count, *, short):
    """Seeds of random rows, those after the first few for the long run."""
    return [
        seed if seed < short else pytest.param(seed, marks=pytest.mark.long)
        for seed in range(count)
    ]


def run_all(cluster, batches):
    for left, right in batches:
        cluster.run(left, right)
    return sorted(cluster.pairs)


@pytest.mark.few(4)
@pytest.mark.parametrize("seed", _seeds(8, short=2))
@pytest.mark.parametrize(("equal", "groups"), [(True, 1), (True, 3), (False, 1)])
def test_any_cut_into_micro_batches_gives_the_batch_answer(seed, equal, groups):
    task = stream_task(equal=equal, groups=groups, within=timedelta(seconds=[0, 1, 3, 9][seed % 4]))
    batches = cut(seed, batches=[1, 3, 9, 20, 60][seed % 5])
    cluster = Cluster(task, DELAY)
    assert run_all(cluster, batches) == new_pairs(task, batches)
    assert cluster.late == 0


@pytest.mark.parametrize("bounds", [(None, 0), (1, None), (None, None)])
def test_inequalities_and_no_terms_at_all(bounds):
    task = stream_task(equal=False, groups=1, within=timedelta(seconds=2), band=None)
    if bounds != (None, None):
        task = replace(task, query=replace(task.query, on=(), band=[("x", "x", *bounds)]))
    batches = cut(5)
    assert run_all(Cluster(task, DELAY), batches) == new_pairs(task, batches)


@pytest.mark.parametrize("seed", range(4))
def test_late_rows_are_dropped_and_counted(seed):
    task = stream_task(equal=True, groups=2, within=timedelta(seconds=2))
    batches = cut(seed, batches=12, stray=0.2)
    cluster = Cluster(task, DELAY)
    late = set()
    for left, right in batches:
        if cluster.watermark > 0:
            late |= {
                row["id"]
                for row in (*left, *right)
                if row["t"].timestamp() * 1000 < cluster.watermark
            }
        cluster.run(left, right)
    assert late
    assert cluster.late == len(late)
    assert sorted(cluster.pairs) == new_pairs(task, batches, late)


@pytest.mark.few(3)
@pytest.mark.parametrize("seed", range(6))
def test_a_micro_batch_that_fails_and_runs_again_loses_and_repeats_nothing(seed):
    task = stream_task(equal=True, groups=3, within=timedelta(seconds=3))
    batches = cut(seed)
    cluster = Cluster(task, DELAY)
    failed = 0
    for number, (left, right) in enumerate(batches):
        if not cluster.run(left, right, fail_after=number % 3):
            failed += 1
            assert cluster.run(left, right)
    assert failed
    assert sorted(cluster.pairs) == new_pairs(task, batches)


@pytest.mark.parametrize("how", [kind.value for kind in JoinType])
@pytest.mark.parametrize("seed", _seeds(3, short=1))
def test_rows_come_alone_once_when_the_watermark_has_passed_their_window(how, seed):
    within = timedelta(seconds=[9, 1, 3][seed])
    task = stream_task(equal=True, groups=1 + seed, within=within, how=how, band=0)
    batches = cut(seed, rows=90, batches=[1, 4, 12][seed])
    for side in batches[0]:
        for row in side[:3]:
            row["k"] = None
    cluster = Cluster(task, DELAY)
    known = {row["id"]: row["t"] for batch in batches for side in batch for row in side}
    for number, (left, right) in enumerate(batches):
        come = len(cluster.pairs)
        # A micro-batch that fails and runs again repeats and loses nothing.
        if not cluster.run(left, right, fail_after=number % 3):
            assert cluster.run(left, right)
        for pair in cluster.pairs[come:]:
            for row in pair:
                if None in pair and row is not None:
                    passed = (known[row] + within).timestamp() * 1000
                    assert passed < cluster.worked_at, "nothing can match it any more"
    cluster.watermark += 3_600_000
    cluster.run([], [])
    assert cluster.kept == 0
    assert not any(slices for slices in cluster.rows.values.values()), "no bit is left behind"
    assert sorted(cluster.pairs, key=str) == all_results(task, batches)


def test_a_checkpoint_belongs_to_a_type_of_join():
    arguments = {"equal": True, "groups": 2, "within": timedelta(seconds=1)}
    cluster = Cluster(stream_task(**arguments), DELAY)
    batches = cut(1, batches=2)
    cluster.run(*batches[0])
    cluster.task = stream_task(**arguments, how="left")
    with pytest.raises(UsageError, match="begun with how = inner, but now it is left"):
        cluster.run(*batches[1])


def test_the_state_holds_no_more_than_can_still_be_met():
    task = stream_task(equal=True, groups=2, within=timedelta(seconds=2), slice_length=500_000)
    batches = cut(3, rows=600, batches=40)
    cluster = Cluster(task, DELAY)
    seen, most = [], 0
    for left, right in batches:
        at_work = cluster.watermark
        cluster.run(left, right)
        seen += [row["t"].timestamp() * 1000 for row in (*left, *right)]
        # A slice goes as a whole, so its length is the slack.
        needed = sum(time >= at_work - 2000 - 500 for time in seen)
        assert cluster.kept <= needed
        most = max(most, cluster.kept)
    assert most < len(seen) / 4


def test_rows_are_forgotten_by_a_timer_although_their_group_gets_no_more_rows():
    task = stream_task(equal=True, groups=8, within=timedelta(seconds=1))
    cluster = Cluster(task, DELAY)

    def row(seconds, key):
        return {"t": BEGIN + timedelta(seconds=seconds), "k": key, "x": 0, "id": int(seconds)}

    cluster.run([row(0, key) for key in range(4)], [row(0, key) for key in range(4)])
    assert cluster.kept == 8
    assert cluster.timers
    for seconds in (20, 40):
        cluster.run([row(seconds, 0)], [row(seconds, 0)])
    cluster.run([], [])
    assert cluster.kept == 2, "only the rows of second 40"
    assert len(cluster.timers) == len(cluster.directory.values) == 1


def test_far_apart_times_take_no_room():
    task = stream_task(equal=False, groups=1, within=timedelta(seconds=1))
    batches = [
        (
            [{"t": BEGIN + timedelta(days=3000 * day), "k": 0, "x": 0, "id": day}],
            [{"t": BEGIN + timedelta(days=3000 * day, seconds=1), "k": 0, "x": 1, "id": day}],
        )
        for day in range(4)
    ]
    cluster = Cluster(task, DELAY)
    assert run_all(cluster, batches) == [(day, day) for day in range(4)]
    cluster.run([], [])
    assert cluster.kept == 2


def test_another_question_is_refused_naming_what_differs():
    cluster = Cluster(stream_task(equal=True, groups=2, within=timedelta(seconds=1)), DELAY)
    batches = cut(1, batches=2)
    cluster.run(*batches[0])
    cluster.task = stream_task(equal=True, groups=2, within=timedelta(seconds=2))
    with pytest.raises(UsageError, match="begun with within = 1s, but now it is 2s"):
        cluster.run(*batches[1])
    cluster.task = stream_task(equal=True, groups=3, within=timedelta(seconds=1))
    with pytest.raises(UsageError, match=r"begun with partitions = 2.*checkpointLocation"):
        cluster.run(*batches[1])


def test_kept_rows_of_a_group_that_is_no_more_are_noticed_by_a_timer():
    cluster = Cluster(stream_task(equal=True, groups=3, within=timedelta(seconds=1)), DELAY)
    cluster.run(*cut(1, batches=1)[0])
    cluster.watermark += 3_600_000
    cluster.task = stream_task(equal=True, groups=1, within=timedelta(seconds=1))
    with pytest.raises(UsageError, match=r"partitions=1.*checkpointLocation"):
        cluster.run([], [])


def test_a_null_in_the_order_column_is_named():
    cluster = Cluster(stream_task(equal=True, groups=2, within=timedelta(seconds=1)), DELAY)
    (left, right), *_ = cut(1, batches=1)
    left[9]["t"] = None
    with pytest.raises(
        UsageError, match=r"'left\.t' is null in the row with .*t=null.*partition 0"
    ):
        cluster.run(left, right)


def test_a_window_that_outgrows_the_device_is_an_error_that_leaves_the_state(software_bundle):
    task = stream_task(equal=True, groups=1, within=timedelta(hours=1), device=software_bundle)
    cluster = Cluster(task, DELAY)
    (left, right), *_ = cut(1, batches=1)
    with pytest.raises(CapacityError, match=r"capacity of 64.*partition 0"):
        cluster.run(left, right)


@pytest.mark.parametrize("how", ["inner", "full"])
def test_a_window_that_outgrows_the_device_is_joined_in_software(software_bundle, how):
    arguments = {"equal": True, "groups": 2, "within": timedelta(seconds=30), "how": how}
    batches = cut(2, rows=400, batches=4)
    found = []
    for device in (software_bundle, "software:"):
        cluster = Cluster(stream_task(**arguments, device=device, software="software:"), DELAY)
        for left, right in batches:
            cluster.run(left, right)
        found.append((cluster.pairs, cluster.software_rows))
    assert found[0][0] == found[1][0]
    assert found[0][1] > 0
    assert found[1][1] == 0


def test_groups_follow_the_partitions_of_the_state_if_none_are_asked_for(monkeypatch):
    partitions = 3
    monkeypatch.setattr(
        "spark_offload.stream.task.partitions_of_query", lambda planned: partitions or planned
    )
    fixed = stream_task(equal=True, groups=3, within=timedelta(seconds=2))
    question = {name: text for name, text in fixed.question.items() if name != "partitions"}
    task = replace(fixed, groups=(), question=question)
    assert task.in_query() == fixed
    assert fixed.in_query() is fixed
    batches = cut(4)
    cluster = Cluster(task, DELAY)
    assert run_all(cluster, batches) == new_pairs(fixed, batches)
    partitions = 2  # Spark keeps them in the checkpoint; were it to lose them, rows would be lost
    with pytest.raises(UsageError, match="begun with partitions = 3, but now it is 2"):
        cluster.run(*batches[0])


def test_groups_lie_in_different_partitions_of_the_state(spark):
    from pyspark.sql import functions as F

    keys = group_keys(40)
    assert len(set(keys)) == 40
    assert keys[:3] == group_keys(3)
    frame = spark.createDataFrame([(key,) for key in keys], "key int")
    hashes = np.array([row[0] for row in frame.select(F.hash("key")).collect()])
    assert (hashes % MOST_GROUPS).tolist() == list(range(40))
    for partitions in (1, 2, 3, 4, 5, 6, 8, 40, 200):
        spread = np.bincount(hashes % partitions, minlength=partitions)[:40]
        assert spread.max() - spread.min() <= 1


@pytest.mark.parametrize("count", [0, MOST_GROUPS + 1])
def test_a_number_of_groups_that_cannot_be_is_refused(count):
    with pytest.raises(UsageError, match="partitions"):
        group_keys(count)


def test_many_groups_all_have_keys():
    keys = group_keys(MOST_GROUPS)
    assert len(set(keys)) == MOST_GROUPS
    assert min(keys) >= 0
