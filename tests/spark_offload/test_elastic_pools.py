# SPDX-License-Identifier: Apache-2.0
"""Streaming joins that take more devices of their pool and give them back, without Spark."""

from dataclasses import dataclass, replace
from datetime import timedelta
from tempfile import TemporaryDirectory
from types import SimpleNamespace

from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark import TaskContext
import pytest

from host import UsageError
from host.devices.locks import LOCK_FOLDER
from host.query.cores import Controller, CoreControl
from spark_offload.cluster.devices import TaskDevice
from spark_offload.cluster.pools import PoolDecision
from spark_offload.stream import processor
from tests.spark_offload.device_sources import pool, software_devices
from tests.spark_offload.stream_model import Cluster, cut, new_pairs, stream_task

DELAY = timedelta(seconds=4)


@dataclass(frozen=True)
class Whims(Controller):
    """Asks for one of its numbers, whatever the load."""

    interval: int = 1
    numbers: tuple[int, ...] = (1,)
    name = text = "whims"

    def wanted(self, seen):
        return self.numbers[hash(seen) % len(self.numbers)]


@pytest.fixture(scope="module")
def devices(tmp_path_factory):
    """The addresses of three equal devices."""
    return software_devices(tmp_path_factory.mktemp("devices"), 3)


class Course:
    """Micro-batches of a task for each group on a pool, and which device each of them had."""

    def __init__(self, devices, controller):
        source = pool(*devices, seconds=5).with_elastic(controller, "splitjoin-1")
        within = timedelta(seconds=3)
        self.task = stream_task(equal=True, groups=5, within=within, devices=source)
        self.cluster = Cluster(self.task, DELAY, tasks=5)
        self.attempt = 0
        self.used = []  # (micro-batch, device)

    def context(self):
        cluster = self.cluster
        told = {"sql.streaming.queryId": "q", "streaming.sql.batchId": str(cluster.batch)}
        return SimpleNamespace(
            getLocalProperty=told.get,
            partitionId=lambda: cluster.partition,
            attemptNumber=lambda: self.attempt,
        )

    def run(self, batches, failures=()):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(TaskContext, "get", self.context)
            patch.setattr(processor, "take_device", self._taken(processor.take_device))
            for number, (left, right) in enumerate(batches):
                self.attempt = 0
                if number in failures and not self.cluster.run(left, right, fail_after=2):
                    self.attempt = 1
                    self.used = [use for use in self.used if use[0] != number]
                    assert self.cluster.run(left, right)
                elif number not in failures:
                    assert self.cluster.run(left, right)

    def _taken(self, take):
        def taken(source) -> TaskDevice:
            device = take(source)
            self.used.append((self.cluster.batch, device.name))
            return device

        return taken

    @property
    def decisions(self):
        """The decision of each micro-batch that had rows."""
        found = {PoolDecision.parse(text).batch: text for text in self.cluster.decisions}
        assert set(found.values()) == set(self.cluster.decisions), "all tasks tell the same"
        return [PoolDecision.parse(text) for _, text in sorted(found.items())]


@settings(max_examples=10)
@given(
    seed=st.integers(0, 99),
    numbers=st.lists(st.integers(0, 5), min_size=1, max_size=6),
    failures=st.sets(st.integers(0, 5)),
)
def test_whatever_is_decided_the_answer_is_the_batch_answer(devices, seed, numbers, failures):
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv(LOCK_FOLDER, folder)
        course = Course(devices, Whims(numbers=tuple(numbers)))
        batches = cut(seed, rows=60, batches=6)
        course.run(batches, failures)
    assert sorted(course.cluster.pairs) == new_pairs(course.task, batches)
    decisions = course.decisions
    # What was told is enough to decide again.
    control = CoreControl(Whims(numbers=tuple(numbers)), len(devices))
    for decision in decisions:
        if decision.seen is not None:
            control.see(decision.seen)
        assert decision.active == control.active
        used = {device for batch, device in course.used if batch == decision.batch}
        if decision.batch not in failures:
            assert len(used) <= decision.active
            assert used <= set(devices)


def test_groups_move_to_other_devices_and_back(tmp_path, monkeypatch, devices):
    monkeypatch.setenv(LOCK_FOLDER, str(tmp_path / "locks"))

    @dataclass(frozen=True)
    class Waves(Controller):
        interval: int = 1
        name = text = "waves"
        asked = iter([1, 1, 3, 3, 1, 1, 1, 3])

        def wanted(self, seen):
            return next(self.asked)

    course = Course(devices, Waves())
    batches = cut(3, rows=400)
    course.run(batches)
    assert sorted(course.cluster.pairs) == new_pairs(course.task, batches)
    active = [decision.active for decision in course.decisions]
    assert active == [3, 3, 1, 3, 3, 3, 1, 1, 3]
    used = [len({device for at, device in course.used if at == batch}) for batch in range(9)]
    assert used == active, "four tasks use as many devices as they may"


def test_another_attempt_may_take_any_device(tmp_path, monkeypatch, devices):
    monkeypatch.setenv(LOCK_FOLDER, str(tmp_path / "locks"))
    course = Course(devices, Whims())
    course.run(cut(1, rows=200), failures=range(3, 9))
    for batch in range(2, 9):
        used = {device for at, device in course.used if at == batch}
        assert len(used) == (1 if batch == 2 else 3)


def test_without_a_pool_there_is_nothing_to_choose():
    with pytest.raises(UsageError, match=r"device is 'software:', not a pool; give a list"):
        pool("software:").with_elastic(Whims(), "splitjoin-1")


def test_a_task_outside_of_a_query_uses_all_devices(devices):
    task = replace(
        stream_task(equal=True, groups=1, within=timedelta(seconds=1)),
        devices=pool(*devices).with_elastic(Whims(), "splitjoin-1"),
    )
    cluster = Cluster(task, DELAY)
    cluster.run(*cut(1, batches=1)[0])
    assert cluster.decisions == []
