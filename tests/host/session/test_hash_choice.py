# SPDX-License-Identifier: Apache-2.0
"""Other seeds for an index after a join that read too much."""

from dataclasses import dataclass, field
from itertools import count
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from hdl.parameters import JoinParameters, KeyField
from host import open_device
from host.protocol.spread import seeds
from host.query.queries import Query
from host.session.join import Join
from host.session.staging import HashWatch
from sim.model.words import field_hash
from tests.host.simulated_bundle import simulated_bundle

WINDOW, BUCKET_BITS = 1 << 8, 8
PARAMETERS = JoinParameters.of(
    cores=1, sub_window=WINDOW, bucket_bits=BUCKET_BITS, engine="index", comparator="equality",
    probes=4, probe_bits=6, keys=(KeyField(name="x", bits=32, signed=False),),
)  # fmt: skip


#: No device has been found slow under a name that is new.
NUMBERS = count()


@dataclass
class Counted:
    """A device that only counts."""

    operations: tuple = ("COORDINATE",)
    uri: str = field(default_factory=lambda: f"counted:{next(NUMBERS)}")
    counts: dict = field(default_factory=dict)

    @property
    def manifest(self):
        storage = SimpleNamespace(cores=2, sub_window=64)
        return SimpleNamespace(
            operations=self.operations, storage=storage, index=SimpleNamespace(bucket_bits=4)
        )

    def counters(self):
        return dict(self.counts)


def watched(device, **counts):
    """The choice of a join that counted so much, and what is found at its end."""
    watch = HashWatch(device)
    device.counts = {name: device.counts.get(name, 0) + n for name, n in counts.items()}
    return watch.choice, watch.finish()


SLOW = {"tuples_r": 4000, "tuples_s": 1000, "region_busy": 170_001, "results": 2500}


def test_seeds_change_once_and_the_note_says_so():
    device = Counted()
    # 4 * (2,500 + 5,000 probes * 2 cores * 4 to a bucket)
    choice, note = watched(device, **SLOW)
    assert choice == 0
    assert note == (
        "an index read 170,001 entries for 5,000 probes and 2,500 results; the next join on this "
        "device hashes keys with other seeds"
    )
    choice, note = watched(Counted(uri=device.uri), **SLOW)
    assert choice == 1
    assert note == "an index read 170,001 entries for 5,000 probes and 2,500 results"
    assert watched(Counted(uri=device.uri))[0] == 1
    assert watched(Counted())[0] == 0


@pytest.mark.parametrize(
    "changes", [{"region_busy": 170_000}, {"tuples_r": 3000}, {"results": 2501}]
)
def test_seeds_stay_where_entries_are_few_for_the_results_or_probes_are(changes):
    device = Counted()
    assert watched(device, **{**SLOW, **changes})[1] == ""
    assert watched(device)[0] == 0


def test_a_scan_has_no_seeds():
    assert watched(Counted(operations=()), **SLOW)[1] == ""


def colliding(count):
    """Keys that share a bucket while the seeds are those after reset, zero among them."""
    generator = np.random.default_rng(3)
    values = np.append(np.uint64(0), generator.integers(1, 1 << 32, 1 << 21).astype(np.uint64))
    seed = seeds(0, 1)[0]
    hashes = field_hash(values, seed=seed, bits=32, bucket_bits=BUCKET_BITS)
    return np.unique(values[hashes == hashes[0]])[:count]


@pytest.mark.long
def test_keys_of_one_bucket_are_slow_once(tmp_path):
    """Windows of 256 keys in one bucket: 256 entries a probe, and with other seeds one or two."""
    uri = simulated_bundle(PARAMETERS, tmp_path)
    keys = colliding(WINDOW)
    assert len(keys) == WINDOW
    generator = np.random.default_rng(4)
    left, right = (
        pa.table({"t": np.arange(3000), "x": generator.permutation(np.resize(keys, 3000))})
        for _ in range(2)
    )
    query = Query(on="x", time="t", rows=WINDOW)
    found = []
    with open_device(uri) as device:
        for _ in range(3):
            join = Join(left, right, query, device)
            result = join.run()
            found.append((result.pairs, result.cycles, join.measured.hash_note))
    for pairs, _, _ in found[1:]:
        assert all(map(np.array_equal, pairs, found[0][0]))
    notes = [note for *_, note in found]
    assert notes[0].endswith("the next join on this device hashes keys with other seeds")
    assert notes[1:] == ["", ""]
    cycles = [cycles for _, cycles, _ in found]
    assert cycles[0] > 20 * max(cycles[1:])
