# SPDX-License-Identifier: Apache-2.0
"""A worker's modules are visited by the collector once, its garbage always."""

import gc
import weakref

import pytest

from spark_offload.task import task
from spark_offload.task.task import spare_modules


@pytest.fixture
def worker(monkeypatch):
    """Pretend to be a worker; afterwards the collector sees everything again."""
    task._spare.cache_clear()
    monkeypatch.setattr(task.TaskContext, "get", staticmethod(lambda: object()))
    gc.unfreeze()
    yield
    gc.unfreeze()
    task._spare.cache_clear()


class Ring:
    """An object that only the collector can free."""

    def __init__(self):
        self.self = self


def test_modules_are_spared_once_and_garbage_goes(worker):
    before = weakref.ref(Ring())
    spare_modules()
    assert before() is None
    spared = gc.get_freeze_count()
    assert spared > 10_000
    later = weakref.ref(Ring())
    spare_modules()
    assert gc.get_freeze_count() <= spared, "what came since is not spared"
    gc.collect()
    assert later() is None


def test_nothing_is_spared_outside_of_a_worker():
    task._spare.cache_clear()
    frozen = gc.get_freeze_count()
    spare_modules()
    assert gc.get_freeze_count() == frozen
