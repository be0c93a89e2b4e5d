# SPDX-License-Identifier: Apache-2.0
"""What a worker holds is bounded, and the groups of the latest micro-batches stay."""

import numpy as np
import pyarrow as pa

from spark_offload.stream.passes import Reduction
from spark_offload.stream.state import HeldParts, KeptPart, identity_of
from tests.spark_offload.stream_model import SCHEMA, stream_task


def part(rows):
    return KeptPart(pa.table({"x": np.zeros(rows, np.int64)}))


def test_the_groups_that_were_not_used_for_longest_go_first():
    held = HeldParts(most_bytes=800)
    for group in range(3):
        held.of("query", group)[group] = part(25)
    held.trim()
    assert held.of("query", 0).keys() == {0}
    held.of("other", 0)[7] = part(50)  # 1,000 bytes in all
    held.trim()
    assert held.of("query", 0).keys() == {0}
    assert held.of("query", 1) == {}
    assert held.of("query", 2).keys() == {2}
    assert held.of("other", 0).keys() == {7}


def test_a_group_that_is_too_large_by_itself_is_not_held():
    held = HeldParts(most_bytes=800)
    held.of("query", 1)[1] = part(10)
    held.of("query", 2)[2] = part(101)
    held.trim()
    assert held.of("query", 1) == {}
    assert held.of("query", 2) == {}


def test_groups_without_parts_leave_nothing_behind():
    held = HeldParts()
    for group in range(9):
        held.of("query", group)
    held.trim()
    assert not held._groups


def test_cells_are_found_once():
    task = stream_task(equal=True, groups=1, within=np.timedelta64(1, "s").item())
    reduction = Reduction(task.query, SCHEMA, SCHEMA)
    kept = KeptPart(SCHEMA.empty_table())
    first, again = (kept.once(lambda rows: reduction.cells(rows, 0)) for _ in range(2))
    assert first is again
    assert first is not None


def test_identities_are_those_of_the_bytes_and_fit_the_directory():
    found = {identity_of(bytes([number % 256, number // 256])) for number in range(1_000)}
    assert len(found) == 1_000
    assert np.array(sorted(found), np.int64).tolist() == sorted(found)
    assert min(found) < 0 < max(found)
    assert identity_of(b"as it was") == identity_of(b"as it was")
