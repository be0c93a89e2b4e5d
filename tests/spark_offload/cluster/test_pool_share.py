# SPDX-License-Identifier: Apache-2.0
"""Which devices of a pool a micro-batch uses, as the tasks of a machine find it out together."""

import os

import pytest

from host import ThresholdController
from host.devices.locks import LOCK_FOLDER, LockFolder, claim_device
from host.errors import DeviceLockError
from spark_offload.cluster import pools
from spark_offload.cluster.pools import ElasticPool, MicroBatchTask, PoolShare

POOL = ElasticPool(ThresholdController(), "splitjoin-1")
DEVICES = ["cards:0", "cards:1", "cards:2"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    path = tmp_path / "locks"
    monkeypatch.setenv(LOCK_FOLDER, str(path))
    return path


class Machine:
    """A clock, and the tasks that ask for their share."""

    def __init__(self):
        self.now = 1_000_000.0

    def share(self, batch, *, query="q", devices=DEVICES, pool=POOL):
        task = MicroBatchTask(query, batch)
        return PoolShare(pool, devices, task, clock=lambda: self.now)

    def quiet(self, batch):
        """Run a micro-batch of one task that takes a tenth of the time; return its share."""
        share = self.share(batch)
        self.now += 0.1
        share.note(0.1, 5)
        self.now += 0.9
        return share


def test_all_tasks_of_a_micro_batch_use_the_same_devices():
    machine = Machine()
    assert [machine.quiet(batch).decision.active for batch in range(3)] == [3, 3, 1]
    shares = [machine.share(3) for _ in range(4)]
    assert len({tuple(share.devices) for share in shares}) == 1
    assert len({share.decision.text for share in shares}) == 1, "each tells the same observation"
    assert shares[0].decision.seen.busy == 200_000


def test_an_observation_has_the_load_of_all_tasks():
    machine = Machine()
    shares = [machine.share(0) for _ in range(3)]
    for share in shares:
        machine.now += 0.25
        share.note(0.5, 7)
    machine.now += 0.25
    seen = machine.share(1).decision.seen
    assert (seen.cores, seen.cycles, seen.busy, seen.tuples) == (3, 1_000_000, 3_000_000, 21)
    assert seen.latency == 750_000


def test_a_task_that_outlives_its_micro_batch_changes_nothing():
    machine = Machine()
    straggler = machine.share(0)
    machine.now += 1
    machine.share(1)
    straggler.note(50.0, 9)
    assert machine.share(0).decision.active == 3
    machine.now += 1
    assert machine.share(2).decision.seen.busy == 0


def test_devices_that_have_failed_are_the_last_to_be_used():
    machine = Machine()
    first = machine.share(0).devices
    claim_device(first[:1], holder="a test", seconds=0).release(failed=True)
    assert machine.share(0).devices == [*first[1:], first[0]]


def test_queries_that_share_a_pool_begin_at_different_devices():
    machine = Machine()
    firsts = {machine.share(0, query=f"q{number}").devices[0] for number in range(30)}
    assert firsts == set(DEVICES)
    joins = [ElasticPool(POOL.controller, f"splitjoin-{number}") for number in range(30)]
    assert {machine.share(0, pool=pool).devices[0] for pool in joins} == set(DEVICES)


def test_a_pool_may_grow_and_shrink_between_two_runs_of_a_query():
    machine = Machine()
    assert len(machine.share(0, devices=DEVICES[:2]).devices) == 2
    assert machine.share(0).decision.active == 2, "until an observation asks for more"
    machine.now += 1
    assert machine.share(1, devices=DEVICES[:1]).devices == DEVICES[:1]


def test_a_file_that_holds_anything_else_begins_anew(folder):
    machine = Machine()
    for batch in range(3):
        machine.quiet(batch)
    (file,) = [path for path in folder.iterdir() if "query" in path.name]
    for text in ("", "{}", "x" * 70_000, '{"batch": -1}'):
        file.write_text(text)
        assert machine.share(3).decision.active == 3
    machine.now -= 500_000
    assert machine.share(4).decision.seen is None, "the clock was set back"


def test_a_file_that_somebody_keeps_locked_is_an_error(folder, monkeypatch):
    monkeypatch.setattr(pools, "LONGEST_WAIT_SECONDS", 0.05)
    machine = Machine()
    machine.share(0)
    descriptor = LockFolder().lock("streaming query q, splitjoin-1")
    try:
        with pytest.raises(DeviceLockError, match=r"load of streaming query q.*locked for 0\.05 s"):
            machine.share(0)
    finally:
        os.close(descriptor)
