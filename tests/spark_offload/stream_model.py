# SPDX-License-Identifier: Apache-2.0
"""Spark's side of a streaming join in plain Python: state, timers, watermark, micro-batches."""

from collections import defaultdict
import copy
from datetime import UTC, datetime, timedelta
import random
import zlib

import numpy as np
import pandas as pd
import pyarrow as pa

from host import Ordering
from host.query.quantities import as_duration
from host.query.queries import Query, Term
from host.query.tables import output_schema
from spark_offload.stream.groups import group_keys
from spark_offload.stream.packing import pack_function, unpack_function
from spark_offload.stream.processor import GroupJoin
from spark_offload.stream.task import StreamTask, question_of, question_of_groups
from tests.spark_offload.device_sources import made_by_task

__all__ = ["BEGIN", "Cluster", "all_results", "cut", "new_pairs", "stream_task"]

BEGIN = datetime(2020, 1, 1, tzinfo=UTC)

SCHEMA = pa.schema(
    [("t", pa.timestamp("us", tz="UTC")), ("k", pa.int32()), ("x", pa.int64()), ("id", pa.int32())]
)


def stream_task(
    *,
    equal,
    groups,
    within,
    band=2,
    slice_length=700_000,
    device="software:",
    how="inner",
    software=None,
    devices=None,
):
    """Return a task that joins rows of ``t, k, x, id``."""
    terms = [Term("x", "x", -band, band)] if band is not None else []
    query = Query(
        time="t",
        on="k" if equal else None,
        band=terms,
        within=as_duration(within),
        ordering=Ordering.none(),
        how=how,
    )
    return StreamTask(
        query=query,
        times=query.time,
        devices=devices or made_by_task(device),
        left=SCHEMA,
        right=SCHEMA,
        output=output_schema(SCHEMA, SCHEMA, how=query.how),
        groups=group_keys(groups),
        width=int(within / timedelta(microseconds=1)),
        slice_length=slice_length,
        question=question_of(query, "left", "right") | question_of_groups(groups),
        software=software,
    )


def cut(seed, *, rows=160, batches=9, delay=timedelta(seconds=4), stray=0.0):
    """Return micro-batches of (left rows, right rows), some empty, out of order within ``delay``.

    A share of ``stray`` of the rows comes later than that.
    """
    rng = random.Random(seed)
    places = sorted(rng.randrange(batches) for _ in range(2 * rows))
    result = [([], []) for _ in range(batches)]
    for number, batch in enumerate(places):
        behind = delay * rng.random()
        if rng.random() < stray:
            behind += delay * 4 * rng.random()
        time = BEGIN + timedelta(seconds=number * 0.1) - behind
        row = {"t": time, "k": rng.randrange(4), "x": 2**61 + rng.randrange(12), "id": number}
        result[batch][rng.randrange(2)].append(row)
    return result


def new_pairs(task, batches, late=frozenset()):
    """Return the identities of all pairs that should come, every pair looked at."""
    sides = [[row for batch in batches for row in batch[side]] for side in (0, 1)]
    within = timedelta(microseconds=task.width)
    return sorted(
        (l["id"], r["id"])
        for l in sides[0]
        for r in sides[1]
        if not {l["id"], r["id"]} & late
        and abs(l["t"] - r["t"]) <= within
        and all(holds(term, l[term.left], r[term.right]) for term in task.query.terms)
    )


def holds(term, left, right):
    """Tell whether two values match; a null matches nothing."""
    if None in (left, right):
        return False
    difference = left - right
    return (term.low is None or difference >= term.low) and (
        term.high is None or difference <= term.high
    )


def all_results(task, batches, late=frozenset()):
    """Return the identities of all results of any type, None for no row, once time has passed."""
    pairs = new_pairs(task, batches, late)
    how = task.query.how.value
    results = [] if how.startswith("left_") else list(pairs)
    for side, kinds in enumerate([("left", "full", "left_semi", "left_anti"), ("right", "full")]):
        matched = {pair[side] for pair in pairs}
        if how in kinds:
            ids = [row["id"] for batch in batches for row in batch[side] if row["id"] not in late]
            alone = [id for id in ids if (id in matched) == (how == "left_semi")]
            results += [(id, None) if side == 0 else (None, id) for id in alone]
    return sorted(results, key=str)


class _Value:
    def __init__(self, cluster):
        self._cluster = cluster
        self.values = {}

    def get(self):
        return self.values.get(self._cluster.key)

    def update(self, newValue):
        self.values[self._cluster.key] = newValue

    def clear(self):
        self.values.pop(self._cluster.key, None)


class _Map:
    def __init__(self, cluster):
        self._cluster = cluster
        self.values = defaultdict(dict)

    def getValue(self, key):
        return self.values[self._cluster.key].get(key)

    def updateValue(self, key, value):
        self.values[self._cluster.key][key] = value

    def removeKey(self, key):
        del self.values[self._cluster.key][key]


class Cluster:
    """Runs micro-batches of a streaming join, keeping its state.

    Attributes
    ----------
    batch, partition : int
        Number of the micro-batch, and of its task that is at work.
    tasks : int
        Tasks of a micro-batch, one after another.
    pairs : list of (int, int)
        What has been emitted, by identities.
    late, software_rows : int
        Late rows, and rows joined in software, as counted.
    watermark, worked_at : int
        Milliseconds, for the next micro-batch, and of the last one.
    """

    def __init__(self, task, delay, *, tasks=1):
        self.task = task
        self.batch = self.partition = 0
        self.tasks = tasks
        self.key = None
        self.question, self.directory, self.rows = _Value(self), _Value(self), _Map(self)
        self.timers = set()
        self.pairs, self.late, self.watermark, self.worked_at = [], 0, 0, 0
        self.software_rows = 0
        self._delay = delay
        self._latest = [None, None]

    def registerTimer(self, expiryTimestampMs):
        assert (self.key, expiryTimestampMs) not in self.timers
        self.timers.add((self.key, expiryTimestampMs))

    def deleteTimer(self, expiryTimestampMs):
        self.timers.remove((self.key, expiryTimestampMs))

    @property
    def kept(self):
        """Rows in the state."""
        return sum(
            pa.ipc.open_stream(value[0]).read_all().num_rows
            for slices in self.rows.values.values()
            for (side, *_), value in slices.items()
            if side in (0, 1)
        )

    def checkpoint(self):
        """Return a copy of all that Spark keeps between two micro-batches."""
        return copy.deepcopy(
            (
                (self.question.values, self.directory.values, self.rows.values, self.timers),
                (self.watermark, self._latest),
            )
        )

    def restore(self, checkpoint):
        """Go back to a checkpoint; what has been emitted since is nobody's business here."""
        state, times = copy.deepcopy(checkpoint)
        self.question.values, self.directory.values, self.rows.values, self.timers = state
        self.watermark, self._latest = times

    def run(self, left, right, *, fail_after=None):
        """Run a micro-batch; with ``fail_after`` it fails after so many groups and leaves nothing.

        Returns whether it was committed.
        """
        saved = self.checkpoint()
        output, self.worked_at = [], self.watermark
        done = 0
        groups = self._groups(left, right)
        for task in range(self.tasks):
            self.partition = task
            join = GroupJoin(self.task, self.question, self.directory, self.rows, self)
            for key, frame in groups[task :: self.tasks]:
                if done == fail_after:
                    self.restore(saved)
                    join.close()
                    return False
                self.key = key
                output.extend(join.rows_came(key, iter([frame]), self.watermark))
                done += 1
            join.close()
        for key, timer in sorted(self.timers):
            if timer <= self.watermark:
                self.key = key
                output.extend(join.timer_fired(key, timer, self.watermark))
                self.timers.discard((key, timer))
        join.close()
        self.batch += 1
        self._emit(output)
        for side, rows in enumerate((left, right)):
            times = [row["t"] for row in rows]
            if self._latest[side] is not None:
                times.append(self._latest[side])
            self._latest[side] = max(times, default=None)
        if None not in self._latest:
            reached = (min(self._latest) - self._delay).timestamp() * 1000
            self.watermark = max(self.watermark, int(reached))
        return True

    def _groups(self, left, right):
        packed = defaultdict(list)
        for side, rows in enumerate((left, right)):
            batches = []
            for begin in range(0, len(rows), 7):
                part = pa.Table.from_pylist(rows[begin : begin + 7], SCHEMA)
                hashes = [zlib.crc32(str(row["k"]).encode()) for row in rows[begin : begin + 7]]
                group = np.array(hashes, np.uint32).view(np.int32)  # may be below zero, as Spark's
                part = part.add_column(0, "group", pa.array(group))
                batches.extend(part.to_batches())
            for batch in pack_function(self.task, side)(iter(batches)):
                for row in batch.to_pylist():
                    packed[row["group"]].append(row)
        return [(key, pd.DataFrame(rows)) for key, rows in packed.items()]

    def _emit(self, frames):
        for frame in frames:
            self.software_rows += int(frame["software_rows"].sum())
            self.late += int(frame["left_late"].sum() + frame["right_late"].sum())
            batch = pa.RecordBatch.from_pydict({"pairs": pa.array(frame["pairs"], pa.binary())})
            for part in unpack_function(self.task, "unpack")(iter([batch])):
                assert part.schema == self.task.output
                table = part.to_pydict()
                right = table.get("id_right", [None] * part.num_rows)
                self.pairs.extend(zip(table["id"], right, strict=True))
