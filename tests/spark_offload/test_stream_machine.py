# SPDX-License-Identifier: Apache-2.0
"""A streaming join as a state machine: micro-batches, failures and restarts in any order."""

from datetime import timedelta
import random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from pyspark import cloudpickle

from host.reference.types import JoinType
from tests.spark_offload.stream_model import BEGIN, Cluster, all_results, stream_task

DELAY = timedelta(seconds=4)


class StreamMachine(RuleBasedStateMachine):
    """What is emitted stands, micro-batch by micro-batch, and is all there is in the end."""

    @initialize(
        how=st.sampled_from([kind.value for kind in JoinType]),
        groups=st.sampled_from([None, 1, 3]),
        within=st.sampled_from([0, 1, 3, 9]),
        slice_length=st.sampled_from([100_000, 700_000, 20_000_000]),
    )
    def begin(self, how, groups, within, slice_length):
        self.task = stream_task(
            equal=groups is not None,
            groups=groups or 1,
            within=timedelta(seconds=within),
            how=how,
            slice_length=slice_length,
        )
        self.cluster = Cluster(self.task, DELAY)
        self.now = BEGIN
        self.count = 0
        self.batches = []  # left and right rows of each micro-batch
        self.checkpoints = [self.cluster.checkpoint()]  # before each of them
        self.emitted = []  # results of each of them
        self.late = set()

    def rows(self, rng, count, *, stray):
        rows = []
        for _ in range(count):
            behind = DELAY * rng.random() * (4 if stray and rng.random() < 0.3 else 1)
            key = None if rng.random() < 0.05 else rng.randrange(3)
            rows.append(
                {"t": self.now - behind, "k": key, "x": 2**61 + rng.randrange(5), "id": self.count}
            )
            self.count += 1
        return rows

    def come(self, left, right):
        """Run a micro-batch, and return its results."""
        before = len(self.cluster.pairs)
        assert self.cluster.run(left, right)
        return sorted(self.cluster.pairs[before:], key=str)

    @rule(
        seed=st.integers(0, 9999),
        left=st.integers(0, 9),
        right=st.integers(0, 9),
        seconds=st.sampled_from([0.0, 0.3, 2.0, 12.0]),
        failures=st.lists(st.integers(0, 2), max_size=2),
        stray=st.booleans(),
    )
    def micro_batch(self, seed, left, right, seconds, failures, stray):
        """Rows come, and the first attempts at joining them may fail after some groups."""
        rng = random.Random(seed)
        self.now += timedelta(seconds=seconds)
        batch = [self.rows(rng, count, stray=stray) for count in (left, right)]
        if self.cluster.watermark:
            self.late |= {
                row["id"]
                for side in batch
                for row in side
                if row["t"].timestamp() * 1000 < self.cluster.watermark
            }
        for groups in failures:
            before = len(self.cluster.pairs)
            if self.cluster.run(*batch, fail_after=groups):  # there were not so many groups
                results = sorted(self.cluster.pairs[before:], key=str)
                break
        else:
            results = self.come(*batch)
        self.batches.append(batch)
        self.emitted.append(results)
        self.checkpoints.append(self.cluster.checkpoint())

    @precondition(lambda self: self.batches)
    @rule(back=st.integers(1, 3))
    def restart(self, back):
        """Another process begins at an earlier checkpoint: it emits the same once more."""
        first = max(0, len(self.batches) - back)
        task = cloudpickle.loads(cloudpickle.dumps(self.task))
        self.cluster = Cluster(task, DELAY)
        self.cluster.restore(self.checkpoints[first])
        for batch, results in list(zip(self.batches, self.emitted, strict=True))[first:]:
            assert self.come(*batch) == results
        assert self.cluster.checkpoint() == self.checkpoints[-1]

    def teardown(self):
        if not hasattr(self, "cluster"):
            return
        later = (self.now + timedelta(hours=1)).timestamp() * 1000
        self.cluster.watermark = max(self.cluster.watermark, int(later))
        self.emitted.append(self.come([], []))
        assert self.cluster.kept == 0
        assert not any(self.cluster.rows.values.values())
        assert not self.cluster.timers
        results = sorted((pair for some in self.emitted for pair in some), key=str)
        assert results == all_results(self.task, self.batches, self.late)


StreamMachine.TestCase.settings = settings(max_examples=20, stateful_step_count=10)
TestAnyCourse = StreamMachine.TestCase
