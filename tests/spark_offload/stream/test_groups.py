# SPDX-License-Identifier: Apache-2.0
from dataclasses import replace
from datetime import timedelta

import pytest

from host import UsageError
from spark_offload.stream import task as task_module
from spark_offload.stream.groups import MOST_GROUPS, group_keys
from spark_offload.stream.task import question_of_groups
from tests.spark_offload.stream_model import SCHEMA, stream_task


@pytest.fixture(autouse=True)
def _forgotten():
    """Keys that another test has asked for are computed again."""
    group_keys.cache_clear()


def rotated(value, by):
    return (value << by | value >> 32 - by) & 0xFFFFFFFF


def murmur(key):
    """Return Spark's hash of an int: Murmur3 of 32 bits, as its authors have written it down."""
    mixed = rotated(key * 0xCC9E2D51 & 0xFFFFFFFF, 15) * 0x1B873593 & 0xFFFFFFFF
    state = (rotated(42 ^ mixed, 13) * 5 + 0xE6546B64) & 0xFFFFFFFF
    state ^= 4  # bytes
    state = (state ^ state >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    state = (state ^ state >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    state ^= state >> 16
    return state - (state >> 31 << 32)


@pytest.mark.parametrize("count", [1, 2, 7, 200, MOST_GROUPS])
def test_the_hashes_of_the_keys_are_the_numbers_of_the_groups(count):
    keys = group_keys(count)
    assert [murmur(key) % MOST_GROUPS for key in keys] == list(range(count))
    assert keys == group_keys(MOST_GROUPS)[:count]
    assert all(type(key) is int for key in keys)
    assert min(keys) >= 0, "no key of rows is that of the registry"


@pytest.mark.parametrize("count", [-1, 0, MOST_GROUPS + 1])
def test_a_number_of_groups_that_cannot_be_is_refused(count):
    words = rf"can have 1 to 3,600 groups of rows, not {count:,}; give partitions, for example 8"
    with pytest.raises(UsageError, match=words):
        group_keys(count)


@pytest.mark.parametrize(("partitions", "groups"), [(3, 3), (MOST_GROUPS + 5, MOST_GROUPS)])
def test_without_a_number_there_is_a_group_for_each_partition_of_the_state(
    monkeypatch, partitions, groups
):
    asked = []

    def tell(planned):
        asked.append(planned)
        return partitions

    monkeypatch.setattr(task_module, "partitions_of_query", tell)
    fixed = stream_task(equal=True, groups=2, within=timedelta(seconds=1))
    assert fixed.in_query() is fixed
    free = replace(fixed, groups=(), partitions=9)
    found = free.in_query()
    assert asked == [9]
    assert found.groups == group_keys(groups)
    assert found.question == fixed.question | question_of_groups(groups)
    assert found == replace(free, groups=found.groups, question=found.question)


def test_each_side_has_its_columns():
    both = stream_task(equal=True, groups=2, within=timedelta(seconds=1))
    other = SCHEMA.append(SCHEMA.field("x").with_name("y"))
    task = replace(both, right=other)
    assert [task.schema(side) for side in (0, 1)] == [SCHEMA, other]
